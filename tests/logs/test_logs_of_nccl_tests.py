"""Text of nccl-tests: every layout is read, everything that is wrong has its line."""

import re

import pytest

from perfmodel.logs import nccl_tests
from perfmodel.logs.samples import RankGroup, Told
from synthetic_logs import HEADING, SIZES, UNITS, Truth, head, row
from synthetic_logs import nccl_tests as text_of

GATHER = Truth("all_gather", 2, 4, 40e-6, 70e9)
SCATTER = Truth("reduce_scatter", 2, 4, 45e-6, 65e9)
REDUCE = Truth("all_reduce", 4, 4, 90e-6, 50e9)


def read(text, **told):
    return nccl_tests.read(text, "a.log", Told(**told))


def told(log):
    return [str(problem) for problem in log.problems]


def edited(text, old, new, count=1):
    assert old in text
    return text.replace(old, new, count)


def line_of(text, size):
    """Number and text of the row of a size."""
    return next((place, line) for place, line in enumerate(text.split("\n"), 1) if re.match(rf"\s*{size}\s", line))


@pytest.mark.parametrize("truth", [GATHER, SCATTER, REDUCE])
def test_a_log_says_operation_group_sizes_and_both_times(truth):
    log = read(text_of(truth))
    assert log.problems == ()
    assert {sample.operation for sample in log.samples} == {truth.operation.replace("_", "-")}
    assert {sample.group for sample in log.samples} == {RankGroup(nodes=truth.nodes, ranks=truth.ranks)}
    assert [sample.size for sample in log.samples if sample.place == "in-place"] == list(SIZES)
    for sample in log.samples:
        assert sample.time == pytest.approx(truth.time(sample.size), rel=5e-4)
    assert "NCCL version 2.19.3+cuda12.3" in log.facts


def test_the_line_of_a_sample_is_the_line_of_its_row():
    text = text_of(GATHER)
    sample = next(sample for sample in read(text).samples if sample.size == 2**20)
    assert sample.line == line_of(text, 2**20)[0]


@pytest.mark.parametrize(
    "tag", ["[1,0]<stdout>:", "(head, rank=0, pid=3808) [1,0]<stdout>:", " 0: ", "> ", "worker-0: "]
)
def test_what_launchers_put_in_front_of_lines_is_left_out(tag):
    assert read(text_of(GATHER, tag=tag)).samples == read(text_of(GATHER)).samples


def test_colours_and_carriage_returns_are_left_out():
    text = text_of(GATHER)
    assert read(text.replace("\n", "\x1b[0m\r\n")).samples == read(text).samples


def test_the_older_layout_without_a_root_and_with_an_error_is_read():
    log = read(text_of(REDUCE, old=True, named=False).replace("     0\n", " 5e-07\n"), operation="all-reduce")
    assert len(log.samples) == 2 * len(SIZES)
    assert log.problems == ()


def test_a_blank_reduction_is_that_of_an_all_gather():
    assert read(text_of(GATHER).replace("   none ", "        ")).samples == read(text_of(GATHER)).samples


ITERATIONS = "i_min   i_max   i_p99   i_cv%"


@pytest.mark.parametrize(
    ("heading", "change"),
    [
        (f"{HEADING} timestamp", lambda first, out, inside: [*first, *out, *inside, "2026-11-30", "12:00:00"]),
        (f"{HEADING} algo proto nchannels", lambda first, out, inside: [*first, *out, *inside, "RING", "LL", "8"]),
        (HEADING.replace("#wrong", f"#wrong {ITERATIONS}"),
         lambda first, out, inside: [*first, *out, "1.0", "9.0", "8.0", "3.1", *inside, "1.0", "9.0", "8.0", "3.1"]),
        (HEADING.replace("#wrong", "#wrong #bitdiff"), lambda first, out, inside: [*first, *out, "7", *inside, "0"]),
        (HEADING.replace(" time ", " time hipevt "),
         lambda first, out, inside: [*first, out[0], "5.1", *out[1:], inside[0], "N/A", *inside[1:]]),
    ],
    ids=["-S", "-M", "-I", "bits", "hipevt"],
)  # fmt: skip
def test_columns_that_are_not_needed_are_passed_over(heading, change):
    text = text_of(GATHER)
    lines = [
        " ".join(change(line.split()[:5], line.split()[5:9], line.split()[9:])) if re.match(r" *\d", line) else line
        for line in text.split("\n")
    ]
    log = read("\n".join(heading if line == HEADING else line for line in lines))
    assert log.problems == ()
    assert log.samples == read(text).samples


@pytest.mark.parametrize("place", ["in-place", "out-of-place"])
def test_a_run_of_one_of_the_two_results_says_which(place):
    one = "#   size   count   type   redop   root   time   algbw   busbw #wrong"
    lines = [" ".join(line.split()[:9]) if re.match(r" *\d", line) else line for line in text_of(GATHER).split("\n")]
    log = read("\n".join(f"#            {place}     \n{one}" if line == HEADING else line for line in lines))
    assert {sample.place for sample in log.samples} == {place}
    assert len(log.samples) == len(SIZES)


def test_the_layout_of_nccl_1_has_milliseconds_and_no_units():
    text = """./all_reduce_test 10000000
# Using devices
#   Device  0 ->  0 [0x0a] GeForce GTX TITAN X
#   Device  1 ->  1 [0x09] GeForce GTX TITAN X
#   Device  2 ->  2 [0x06] GeForce GTX TITAN X
#   Device  3 ->  3 [0x05] GeForce GTX TITAN X

#                                                 out-of-place                    in-place
#      bytes             N    type      op     time  algbw  busbw      res     time  algbw  busbw      res
    10000000      10000000    char     sum    1.628   6.14   9.21    0e+00    1.932   5.18   7.77    0e+00
    10000000       2500000     int     min    1.619   6.18   9.27    0e+00    1.624   6.16   9.24    0e+00
"""
    log = read(text)
    assert [sample.time for sample in log.samples] == pytest.approx([1.628e-3, 1.932e-3, 1.619e-3, 1.624e-3])
    assert {sample.group for sample in log.samples} == {RankGroup(nodes=1, ranks=4)}
    gathers = read(text.replace("all_reduce_test", "all_gather_test"))
    assert gathers.samples == ()
    assert "say nowhere what the size of their all-gather counts" in told(gathers)[0]


def test_a_run_on_one_node_with_eight_devices_of_one_process_is_read():
    text = """$ ./build/all_gather_perf -b 1M -e 2M -f 2 -g 8
# nThread 1 nGpus 8 minBytes 1048576 maxBytes 2097152 step: 2(factor) warmup iters: 5 iters: 20 validation: 0
# Using devices
""" + "".join(f"#   Rank  {rank} Pid 112372 on localhost device  {rank} [0x00] A100-SXM4-40GB\n" for rank in range(8))
    truth = Truth("all_gather", 1, 8, 20e-6, 230e9)
    rows = [row(truth, size, truth.time(size), truth.time(size)).replace(" 0\n", " N/A\n") for size in (2**20, 2**21)]
    log = read("\n".join([text + HEADING, UNITS, *rows, "# Out of bounds values : 0 OK"]))
    assert {sample.group for sample in log.samples} == {RankGroup(nodes=1, ranks=8)}
    assert len(log.samples) == 4


def test_groups_that_ran_side_by_side_have_their_stride():
    truth = Truth("all_reduce", 2, 4, 50e-6, 20e9)
    text = text_of(truth)
    split = edited(text, "\n".join(head(truth)), "\n".join(head(truth, groups=lambda rank: rank % 4)))
    pair = Truth("all_reduce", 2, 1, 50e-6, 20e9)
    log = read(re.sub(r"(?s)(# +\(B\).*?\n).*(# Out of)", lambda m: m[1] + "".join(
        f"{row(pair, size, pair.time(size), pair.time(size))}\n" for size in SIZES) + m[2], split))  # fmt: skip
    assert {sample.group for sample in log.samples} == {RankGroup(nodes=2, ranks=1, inner=4, idle=False)}
    assert log.problems == ()


def test_several_runs_in_one_file_keep_their_own_operation_and_group():
    log = read(text_of(GATHER) + "some talk\n" + text_of(REDUCE) + text_of(SCATTER))
    assert {(sample.operation, sample.group.nodes) for sample in log.samples} == {
        ("all-gather", 2), ("all-reduce", 4), ("reduce-scatter", 2),
    }  # fmt: skip
    assert log.problems == ()


def test_the_command_line_in_a_log_names_the_operation_but_the_end_of_another_run_does_not():
    text = "# Collective test concluded: reduce_scatter_perf\n$ ./all_gather_perf -b 1K -g 4\n" + text_of(
        GATHER, named=False
    )
    assert {sample.operation for sample in read(text).samples} == {"all-gather"}


@pytest.mark.parametrize("echo", ["", "Linking all_reduce.o > ../build/all_reduce_perf\n",
                                  "./all_gather_perf -b 8\n./reduce_scatter_perf -b 8\n"])  # fmt: skip
def test_an_operation_that_a_log_does_not_say_is_the_users(echo):
    text = echo + text_of(GATHER, named=False)
    assert "say so with --operation" in told(read(text))[0]
    assert read(text).samples == ()
    assert len(read(text, operation="all-gather").samples) == 2 * len(SIZES)


def test_a_user_who_contradicts_the_log_is_told():
    assert "the run is of all-gather, not of all-reduce" in told(read(text_of(GATHER), operation="all-reduce"))[0]
    assert "not of 8 ranks per node" in told(read(text_of(GATHER), nodes=1, ranks=8))[0]


@pytest.mark.parametrize("wrong", ["all-reduce", "reduce-scatter"])
def test_a_wrong_name_of_the_operation_is_seen_in_the_columns(wrong):
    log = read(text_of(GATHER, named=False), operation=wrong)
    assert log.samples == ()
    assert sum(problem.rows for problem in log.problems) == len(SIZES)


def test_a_wrong_number_of_ranks_is_seen_in_the_bus_bandwidth():
    text = "\n".join(line for line in text_of(REDUCE).split("\n") if "Rank" not in line)
    log = read(text, nodes=1, ranks=2)
    assert "busbw is" in told(log)[-1]
    assert log.samples == ()


def test_other_collectives_are_named_and_counted():
    log = read(text_of(GATHER).replace("all_gather_perf", "alltoall_perf"))
    assert log.samples == ()
    assert [problem.rows for problem in log.problems] == [len(SIZES)]
    assert "the run is of alltoall" in told(log)[0]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda words: [*words[:5], "0.00", *words[6:]], "no positive number"),
        (lambda words: [*words[:5], "-12.5", *words[6:]], "no positive number"),
        (lambda words: [*words[:5], "nan", *words[6:]], "'nan' is no number"),
        (lambda words: [*words[:5], "inf", *words[6:]], "'inf' is no number"),
        (lambda words: [*words[:6], "999.99", *words[7:]], "algbw is 1000 GB/s, but 64 MiB in"),
        (lambda words: [*words[:7], "1.00", *words[8:]], "busbw is 1 GB/s"),
        (lambda words: words[:9], "5 numbers after its kind, wanted 8"),
        (lambda words: [*words, "7"], "wanted 8"),
        (lambda words: [*words[:8], "12", *words[9:]], "the results were wrong (12)"),
        (lambda words: ["host:12", "NCCL", "INFO", *words], "mixed with other output"),
        (lambda words: [words[0], "1.5", *words[2:]], "damaged"),
    ],
)  # fmt: skip
def test_a_bad_row_is_named_with_its_line_and_the_others_are_kept(change, reason):
    text = text_of(GATHER)
    place, line = line_of(text, 2**26)
    log = read(text.replace(line, " ".join(change(line.split()))))
    assert len(log.samples) == 2 * (len(SIZES) - 1)
    assert len(log.problems) == 1
    assert told(log)[0].startswith(f"a.log:{place}: ")
    assert reason in told(log)[0]
    assert log.problems[0].rows == 1


def test_a_result_that_is_not_applicable_leaves_the_other_of_its_row():
    text = text_of(GATHER)
    _place, line = line_of(text, 2**26)
    log = read(text.replace(line, " ".join([*line.split()[:9], "N/A", "N/A", "N/A", "N/A"])))
    assert log.problems == ()
    assert {sample.place for sample in log.samples if sample.size == 2**26} == {"out-of-place"}


def test_a_row_that_stands_there_twice_counts_once():
    text = text_of(GATHER)
    place, line = line_of(text, 2**26)
    log = read(text.replace(line, f"{line}\n{line}"))
    assert told(log) == [f"a.log:{place + 1}: the same row as in line {place}"]
    assert len(log.samples) == 2 * len(SIZES)


def test_a_log_that_was_cut_keeps_its_whole_rows():
    text = text_of(GATHER)
    place, line = line_of(text, 2**26)
    log = read(text[: text.index(line) + 60])
    assert len(log.samples) == 2 * SIZES.index(2**26)
    assert any(said.startswith(f"a.log:{place}: the row is cut") for said in told(log))
    assert any("the run has no end" in said for said in told(log))


def test_two_runs_that_wrote_at_once_are_not_told_apart():
    one, two = (text_of(truth, named=False).split("\n") for truth in (GATHER, REDUCE))
    cut = one.index(UNITS) + 3
    log = read("\n".join([*one[:cut], *two[:-5], *one[cut:], *two[-5:]]), operation="all-gather")
    assert {sample.size for sample in log.samples} == set(SIZES[:2])
    assert any("wrote at once" in said for said in told(log))


def test_a_list_of_ranks_with_holes_or_doubles_gives_no_group():
    text = text_of(GATHER)
    rank = next(line for line in text.split("\n") if "Rank  3" in line)
    assert "its 7 ranks are not 0 to 7" in told(read(edited(text, rank + "\n", "")))[0]
    assert "rank 3 is listed twice" in told(read(edited(text, rank, f"{rank}\n{rank}")))[0]


def test_a_failed_run_of_the_older_layout_is_left_out_whole():
    text = edited(text_of(REDUCE, old=True), "values : 0 OK", "values : 3 FAILED")
    assert read(text).samples == ()


def test_times_of_the_cpu_are_no_times_of_the_call():
    text = re.sub(r"\btime\b", "cputime", text_of(GATHER))
    assert "the times are of the CPU" in told(read(text))[0]


def test_rows_without_a_heading_are_named():
    text = text_of(GATHER).replace(HEADING + "\n", "").replace(UNITS + "\n", "")
    assert "rows without a heading" in told(read(text))[0]
