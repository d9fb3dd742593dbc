"""Files that nccl-tests and rccl-tests write beside their text: JSON and CSV, whole, damaged and cut."""

import json

import pytest

from perfmodel.logs import nccl_json, rccl_files, readers
from perfmodel.logs.combined import combine
from perfmodel.logs.samples import RankGroup, Told
from perfmodel.machines import profiles
from synthetic_logs import SIZES, Truth, json_result, nccl_tests, rccl_csv, rccl_json
from synthetic_logs import nccl_json as json_of

GATHER = Truth("all_gather", 2, 4, 40e-6, 70e9)
SCATTER = Truth("reduce_scatter", 2, 4, 45e-6, 65e9)
REDUCE = Truth("all_reduce", 4, 4, 90e-6, 50e9)
TRUTHS = pytest.mark.parametrize("truth", [GATHER, SCATTER, REDUCE], ids=lambda truth: truth.operation)
RESULTS = [json_result(GATHER, size) for size in SIZES]
FILES = {
    "JSON": json_of,
    "rccl JSON": rccl_json,
    "rccl JSON, old": lambda truth: rccl_json(truth, old=True),
    "rccl CSV": rccl_csv,
    "rccl CSV, old": lambda truth: rccl_csv(truth, old=True),
    "rccl CSV, nodes in its heading": lambda truth: rccl_csv(truth, headed=True),
}


def read(text, **told):
    return readers.read(text, "a.json", Told(**told))


def told(log):
    return [str(problem) for problem in log.problems]


def said(truth):
    return {"nodes": truth.nodes, "ranks": truth.ranks}


@TRUTHS
@pytest.mark.parametrize("kind", FILES)
def test_every_kind_of_file_gives_back_the_line_that_it_was_made_from(kind, truth):
    log = read(FILES[kind](truth), **said(truth))
    assert log.problems == ()
    assert {sample.operation for sample in log.samples} == {truth.operation.replace("_", "-")}
    assert [sample.size for sample in log.samples if sample.place == "in-place"] == list(SIZES)
    assert [sample.size for sample in log.samples if sample.place == "out-of-place"] == list(SIZES)
    (part,) = combine([log], profiles.load("perlmutter"), "LOGS").parts
    assert part.group == RankGroup(nodes=truth.nodes, ranks=truth.ranks, idle=False)
    assert part.line.alpha == pytest.approx(truth.alpha, rel=0.01)
    assert part.line.beta == pytest.approx(truth.beta, rel=0.01)


def test_text_is_still_text():
    assert len(read(nccl_tests(GATHER)).samples) == 2 * len(SIZES)


def test_json_says_group_versions_and_devices():
    log = read(json_of(GATHER))
    assert {sample.group for sample in log.samples} == {RankGroup(nodes=2, ranks=4)}
    assert log.facts == ("NCCL version 2.23.4", "NVIDIA A100-SXM4-40GB")


def test_ranks_behind_the_first_of_a_process_are_counted():
    eight = Truth("all_gather", 1, 8, 40e-6, 70e9)
    for truth, each in ((GATHER, 4), (GATHER, 2), (eight, 8)):
        log = read(json_of(truth, [json_result(truth, size) for size in SIZES], each=each))
        assert {sample.group for sample in log.samples} == {RankGroup(nodes=truth.nodes, ranks=truth.ranks)}


def test_groups_side_by_side_have_their_stride_in_json():
    pair = Truth("all_reduce", 2, 1, 50e-6, 20e9)
    text = json_of(Truth("all_reduce", 2, 4, 1, 1), [json_result(pair, size) for size in SIZES], group=lambda r: r % 4)
    assert {sample.group for sample in read(text).samples} == {RankGroup(nodes=2, ranks=1, inner=4, idle=False)}


def test_several_runs_and_lines_of_json_keep_their_own_lines():
    pretty = json.dumps(json.loads(json_of(REDUCE)), indent=2)
    log = read(json_of(GATHER) + "\n" + pretty)
    assert log.problems == ()
    assert {(sample.operation, sample.line == 1) for sample in log.samples} == {
        ("all-gather", True), ("all-reduce", False),
    }  # fmt: skip
    sample = next(sample for sample in log.samples if sample.line > 1 and sample.size == 2**20)
    assert '"size": 1048576' in (json_of(GATHER) + "\n" + pretty).split("\n")[sample.line]


def test_json_whose_names_are_in_the_order_of_the_alphabet_is_read():
    one, two = (json.dumps(json.loads(json_of(truth)), sort_keys=True) for truth in (GATHER, REDUCE))
    assert read(one).samples == read(json_of(GATHER)).samples
    assert len(read(f"{one}\n{two}").samples) == 4 * len(SIZES)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ('"alg_bw":', '"alg_bw":9', "result 17: algbw is"),
        ('"bus_bw":', '"bus_bw":9', "result 17: busbw is"),
        ('"time":', '"time":-', "result 17: the time"),
        ('"time":', '"time":"nan","was":', "result 17: the time 'nan' is no number"),
        ('"time":', '"time":inf,"was":', "result 17: it is cut or damaged"),
        ('"nwrong":0.0', '"nwrong":3.0', "result 17: the results were wrong (3.0"),
        ('"redop":"none"', '"redop":"sum"', "result 17: a row of all-gather with a reduction"),
        ('"in_place":{', '"in_place":', "result 17: it is cut or damaged"),
        ('"size":67108864', '"size":"many"', "result 17: its size 'many' is no number"),
        (',"nwrong":0.000000', "", "result 17: it is cut or damaged"),
    ],
)
def test_a_bad_result_of_json_is_named_and_the_others_are_kept(old, new, reason):
    bad = SIZES.index(2**26)
    assert old in RESULTS[bad]
    results = [*RESULTS[:bad], RESULTS[bad].replace(old, new), *RESULTS[bad + 1 :]]
    log = read(json_of(GATHER, results))
    assert [problem.rows for problem in log.problems] == [1]
    assert told(log)[0].startswith(f"a.json:1: {reason}")
    assert {sample.size for sample in log.samples} == set(SIZES) - {2**26}


def test_results_that_nothing_checked_or_that_ran_in_place_only_are_used():
    log = read(json_of(GATHER, [json_result(GATHER, size, unchecked=True) for size in SIZES]))
    assert len(log.samples) == 2 * len(SIZES)
    parts = [result.split('"out_of_place":')[0] + '"out_of_place":null,"in_place"' + result.split('"in_place"')[1]
             for result in RESULTS]  # fmt: skip
    assert {sample.place for sample in read(json_of(GATHER, parts)).samples} == {"in-place"}


def test_a_result_that_stands_there_twice_counts_once_in_json():
    log = read(json_of(GATHER, [*RESULTS, RESULTS[4]]))
    assert told(log) == [f"a.json:1: result {len(SIZES) + 1}: it is the same as result 5"]


@pytest.mark.parametrize("kept", [5, 9])
def test_json_of_a_run_that_was_killed_keeps_its_whole_results(kept):
    text = json_of(GATHER)
    log = read(text[: text.index(RESULTS[kept]) + 60])
    assert {sample.size for sample in log.samples} == set(SIZES[:kept])
    assert "a.json:1: the run has no end; its results so far are used" in told(log)
    assert f"a.json:1: result {kept + 1}: it is cut or damaged" in told(log)
    assert sum(problem.rows for problem in log.problems) == 1


def test_a_run_that_was_killed_takes_no_results_of_the_next():
    text = json_of(GATHER)
    log = read(text[: text.index(RESULTS[5]) + 60] + "\n" + json_of(REDUCE))
    assert {sample.size for sample in log.samples if sample.operation == "all-gather"} == set(SIZES[:5])
    assert sum(sample.operation == "all-reduce" for sample in log.samples) == 2 * len(SIZES)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (json_of(GATHER).replace('"time":', '"cpu_time":'), "the times are of the CPU"),
        (json_of(GATHER, program="alltoall_perf"), "the run is of alltoall"),
        (json_of(GATHER, program="bench"), "say so with --operation"),
        (json_of(GATHER).replace('"rank":3,', '"rank":2,'), "rank 2 is listed twice"),
        (json_of(GATHER).replace('"hostname":"node0001",', ""), "without rank, group or host"),
        (json_of(GATHER).replace('"ngpus":1,', '"ngpus":9999999,').replace('"nthreads":1', '"nthreads":9999999'),
         "processes of"),
        (json_of(GATHER, [json_result(GATHER, 1024, name="AllReduce")]), "which is which is not known"),
    ],
)  # fmt: skip
def test_a_run_in_json_of_which_too_little_is_known_is_left_out_whole(text, reason):
    log = read(text)
    assert log.samples == ()
    assert reason in told(log)[0]
    assert log.problems[0].rows == text.count('"size":')
    assert len(log.problems) == 1


def test_json_of_something_else_is_named():
    assert "no results in this JSON" in told(nccl_json.read('{"a": 1}', "a.json", Told()))[0]


def test_damage_in_the_head_of_json_asks_for_what_it_held():
    text = json_of(GATHER).replace('"nthreads":1', '"nthreads":,')
    assert "lists no ranks" in told(read(text))[0]
    assert len(read(text, nodes=2, ranks=4).samples) == 2 * len(SIZES)


def test_damage_before_what_is_needed_in_the_head_of_json_costs_nothing():
    assert read(json_of(GATHER).replace('"env":[', '"env":[?')).samples == read(json_of(GATHER)).samples


@pytest.mark.parametrize("place", [0, 7])
def test_a_result_of_json_that_lost_its_beginning_is_counted(place):
    results = [*RESULTS[:place], RESULTS[place].replace('{"size":', ""), *RESULTS[place + 1 :]]
    log = read(json_of(GATHER, results))
    assert told(log) == [f"a.json:1: result {place + 1}: it is cut or damaged"]
    assert len(log.samples) == 2 * len(SIZES) - 2


def test_the_user_and_json_must_agree():
    assert "not of 8 ranks per node" in told(read(json_of(GATHER), nodes=1, ranks=8))[0]
    assert "not of all-reduce" in told(read(json_of(GATHER), operation="all-reduce"))[0]


@pytest.mark.parametrize("text", [rccl_json(REDUCE), rccl_csv(REDUCE)])
def test_nodes_are_asked_for_where_rccl_tests_counts_processes_only(text):
    log = read(text)
    assert log.samples == ()
    assert [problem.rows for problem in log.problems] == [2 * len(SIZES)]
    assert "16 devices took part, but not on how many nodes" in told(log)[0]
    assert "the run is of 16 devices, not of 4 ranks per node" in told(read(text, nodes=2, ranks=4))[0]


def test_rccl_tests_says_of_each_row_whether_it_is_in_place():
    lines = rccl_json(REDUCE).split("\n")
    for sample in read(rccl_json(REDUCE), **said(REDUCE)).samples:
        assert ('"inPlace":1' in lines[sample.line - 1]) == (sample.place == "in-place")


@pytest.mark.parametrize("write", [rccl_json, rccl_csv])
def test_a_process_of_several_devices_is_one_node(write):
    log = read(write(Truth("all_reduce", 1, 8, 20e-6, 200e9), mpi=False))
    assert {sample.group for sample in log.samples} == {RankGroup(nodes=1, ranks=8)}
    assert log.problems == ()


def test_groups_side_by_side_are_left_out_where_their_ranks_are_not_known():
    text = rccl_json(REDUCE).replace('"nodes":1, "ranks":16', '"nodes":4, "ranks":64')
    log = read(text, nodes=4, ranks=4)
    assert log.samples == ()
    assert "64 ranks in groups of 16 side by side" in told(log)[0]


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ('"busBw":', '"busBw":9', "busbw is"),
        ('"algBw":', '"algBw":9', "algbw is"),
        ('"time":', '"time":-', "the time"),
        ('"wrong":"0"', '"wrong":"4"', "the results were wrong (4)"),
        ('"redop":"sum"', '"redop":"none"', "without a reduction"),
        ('"inPlace":0', '"inPlace":2', "wanted a number, and 0 or 1"),
        ('"size":', '"size":,', "a result that is cut or damaged"),
        ("{", "", "a result that is cut or damaged"),
        ('"ranks":16', '"ranks":"x"', "ranks is 'x'"),
        ('"AllReduce"', '"AllReduceBias"', "the run is of AllReduceBias"),
    ],
)
def test_a_bad_row_of_rccl_json_is_named_with_its_line_and_the_others_are_kept(old, new, reason):
    lines = rccl_json(REDUCE).split("\n")
    assert old in lines[9]
    lines[9] = lines[9].replace(old, new, 1)
    log = read("\n".join(lines), **said(REDUCE))
    assert [(problem.line, problem.rows) for problem in log.problems] == [(10, 1)]
    assert reason in told(log)[0]
    assert len(log.samples) == 2 * len(SIZES) - 1
    assert 10 not in {sample.line for sample in log.samples}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda cells: cells[:9], "the row is cut or mixed: 9 cells, wanted 14"),
        (lambda cells: [*cells[:-1], '"7"'], "the results were wrong (7)"),
        (lambda cells: [*cells[:-4], "5.0", *cells[-3:]], "algbw is"),
        (lambda cells: [*cells[:-2], "1.0", cells[-1]], "busbw is 1 GB/s"),
    ],
)
def test_a_bad_row_of_rccl_csv_is_named_with_its_line_and_the_others_are_kept(change, reason):
    lines = rccl_csv(REDUCE).split("\n")
    lines[8] = ",".join(change(lines[8].split(",")))
    log = read("\n".join([*lines[:12], lines[11], *lines[12:]]), **said(REDUCE))
    assert told(log)[0].startswith("a.json:9: ")
    assert reason in told(log)[0]
    assert told(log)[1:] == ["a.json:13: the same row as in line 12"]
    assert len(log.samples) == 2 * len(SIZES) - 1


@pytest.mark.parametrize("text", [rccl_json(REDUCE), rccl_csv(REDUCE), rccl_json(REDUCE, old=True)])
def test_a_file_of_rccl_tests_that_was_cut_keeps_its_whole_rows(text):
    lines = text.split("\n")
    log = read("\n".join([*lines[:20], lines[20][:70]]), **said(REDUCE))
    whole = [line for line in lines[:20] if "AllReduce" in line]
    assert len(log.samples) == len(whole)
    assert sum(problem.rows for problem in log.problems) == 1
    assert any("the list has no end" in each for each in told(log)) == text.startswith("[")


def test_cycles_and_several_files_in_one_are_read():
    again = rccl_csv(REDUCE) + rccl_csv(REDUCE).replace("\n0,", "\n1,")
    assert len(rccl_files.read(again, "a.csv", Told(None, 4, 4)).samples) == 4 * len(SIZES)
