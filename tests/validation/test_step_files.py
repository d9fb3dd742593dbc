"""Files of measured steps as the launcher writes them: every bad line told, every good one kept."""

import json

import pytest

from perfmodel.errors import FileProblems
from perfmodel.validation import compare, step_files

GOOD = {
    "status": "ok", "message": "", "model": "gpt-tiny", "machine": "localhost-cpu", "x": 2, "y": 1, "z": 2, "data": 1,
    "gpus": 4, "scale_layers": None, "scale_hidden": "", "placement": "y,x,z,data", "batch_sequences": 8,
    "sequence_length": 256, "micro_batch": 1, "recompute": "none", "weight_cache": "none", "overlap": "none",
    "attention": "flash", "dtype": "fp32", "optimizer": "adamw", "step_time_s": 1.5, "step_times_s": [1.5, 1.4],
    "memory_B": 700_000_000, "losses": [9.0],
    "communication": {"all-reduce": {"x": {"calls": 12, "bytes": 5000, "seconds": 0.25}}},
}  # fmt: skip


def changed(**values):
    return json.dumps(GOOD | values)


@pytest.fixture
def read(tmp_path):
    """Read a file of some lines."""

    def ask(*lines, **given):
        path = tmp_path / "runs.jsonl"
        path.write_text("\n".join(lines), encoding="utf-8")
        return step_files.read(path, **given)

    return ask


def test_a_result_is_a_row_with_all_that_was_run(read):
    (row,) = read(json.dumps(GOOD)).rows
    assert (row.grid, row.gpus, row.batch, row.micro_batch) == ((2, 1, 2, 1), 4, 8, 1)
    assert (row.dtype, row.placement, row.overlap, row.step) == ("fp32", ("y", "x", "z", "data"), frozenset(), 1.5)
    (timed,) = row.timed
    assert (timed.operation, timed.axis, timed.calls, timed.buffers, timed.seconds) == (
        "all-reduce",
        "x",
        12,
        5000,
        0.25,
    )


def test_a_row_is_predicted_as_the_model_that_was_made_of_it_in_the_order_of_its_axes(read):
    lines = [
        json.dumps(GOOD), changed(scale_layers=2), changed(scale_hidden="1/2"),
        changed(placement="data,z,x,y", machine="perlmutter", dtype="bf16", x=4, data=2, gpus=16),
        changed(machine="perlmutter", dtype="bf16", x=4, data=2, gpus=16),
    ]  # fmt: skip
    plain, shallow, narrow, turned, straight = compare.compare(read(*lines)).rows
    assert plain.job.model.parameters > shallow.job.model.parameters
    assert narrow.job.model.transformer.hidden * 2 == plain.job.model.transformer.hidden
    assert turned.predicted != straight.predicted
    assert len({plain.group, shallow.group, narrow.group}) == 3


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        (changed(x=3), "the grid 3x1x2x1 has 6 devices, not 4"),
        (changed(step_time_s=0), "step_time_s is '0', wanted a number from"),
        (changed(step_time_s=-2.0), "step_time_s is '-2.0', wanted a number from"),
        (changed(step_time_s=float("nan")), "step_time_s is 'nan', wanted a number from"),
        (changed(step_time_s=[1.5]), "step_time_s is [1.5], wanted text or a number"),
        (changed(dtype="fp64"), "dtype is 'fp64': steps are predicted in bf16, fp16, fp32"),
        (changed(placement="x,y"), "placement is 'x,y', wanted all axes in an order"),
        (changed(status="out of memory", message="rank 3"), "the run did not end well: out of memory: rank 3"),
        (changed(machine=""), "machine is missing"),
        (changed(communication={"broadcast": {}}), "communication names 'broadcast', none of"),
        (changed(communication={"all-reduce": {"x": {"calls": 1, "bytes": 1, "seconds": 0}}}), "communication over x"),
        (changed(communication=[1]), "communication holds [1], wanted calls"),
        (json.dumps(GOOD), "the same in everything as line 1"),
        (json.dumps(GOOD)[:-40], "no JSON object: cut off as it was written"),
        (json.dumps(GOOD) + json.dumps(GOOD), "no JSON object: cut off as it was written, or two in one line"),
        ("[1, 2]", "no JSON object; wanted one per line"),
        ("[" * 100_000, "no JSON object"),
        ('{"step_time_s": ' + "9" * 5000 + "}", "no JSON object"),
    ],
)
def test_a_bad_line_is_told_and_the_good_ones_are_kept(read, line, sentence):
    reading = read(json.dumps(GOOD), line, changed(batch_sequences=16))
    ((told, text),) = reading.problems
    assert told == 2
    assert text.startswith(sentence)
    assert ([row.line for row in reading.rows], reading.dropped) == ([1, 3], 1)


def test_a_last_line_that_was_cut_off_is_left_out(read):
    reading = read(json.dumps(GOOD), json.dumps(GOOD)[:200])
    assert (len(reading.rows), reading.dropped, reading.problems[0][0]) == (1, 1, 2)


def test_a_file_without_a_good_line_is_refused_with_every_problem(read):
    with pytest.raises(FileProblems) as refused:
        read(changed(status="timeout"), changed(step_time_s=0))
    assert [problem.rpartition("runs.jsonl")[2][:3] for problem in refused.value.problems] == [":1:", ":2:", ": n"]


def test_a_machine_given_stands_for_that_of_all_lines(read):
    (row,) = read(changed(machine=""), machine="perlmutter").rows
    assert row.machine == "perlmutter"


@pytest.mark.parametrize(
    ("machine", "dtype", "predicted"), [("perlmutter", "fp32", True), ("localhost-cpu", "bf16", False)]
)
def test_a_step_is_predicted_at_the_rates_of_its_format_or_not_at_all(read, machine, dtype, predicted):
    found = compare.compare(read(changed(machine=machine, dtype=dtype)))
    if predicted:
        (one,) = found.rows
        (half,) = compare.compare(read(changed(machine=machine, dtype="bf16"))).rows
        assert (one.job.dtype, one.job.settings.weight_bytes) == ("fp32", 4)
        assert one.predicted > half.predicted
    else:
        assert f"in {dtype}, for which {machine} has no rate (it has fp32)" in found.problems[0]


def test_twice_the_same_row_of_a_table_is_told(tmp_path):
    path = tmp_path / "runs.csv"
    row = "perlmutter,gpt-5b,1,1,8,2,64,4,full,3.5"
    path.write_text(f"machine,model,x,y,z,data,batch_sequences,micro_batch,recompute,step_time_s\n{row}\n{row}\n")
    reading = step_files.read(path)
    assert reading.problems == ((3, "the same in everything as line 2"),)
    assert len(reading.rows) == 1


def test_what_is_no_text_is_refused_in_a_sentence(tmp_path):
    path = tmp_path / "runs.csv"
    path.write_bytes(b"\xff\xfe\x00machine")
    with pytest.raises(FileProblems, match="cannot be read"):
        step_files.read(path)


def with_seconds(seconds, **values):
    sent = {"all-reduce": {"x": {"calls": 12, "bytes": 5000, "seconds": seconds}}}
    return changed(communication=sent, **values)


def test_repetitions_of_one_run_are_one_row_with_medians(read):
    found = read(
        with_seconds(0.2, step_time_s=1.0, memory_B=7e8),
        with_seconds(0.9, step_time_s=5.0, memory_B=9e8, x=4, z=1),
        with_seconds(0.4, step_time_s=9.0, memory_B=5e8),
        with_seconds(0.3, step_time_s=1.2, memory_B=6e8, round=3, seed=1),
    )
    first, other = found.rows
    assert (first.line, first.repetitions, first.step, first.memory) == (1, 3, 1.2, 6e8)
    assert [timed.seconds for timed in first.timed] == [0.3]
    assert (other.line, other.repetitions, other.step, other.memory) == (2, 1, 5.0, 9e8)
    assert (found.dropped, found.problems) == (0, ())


def test_runs_on_other_hardware_or_carried_out_otherwise_are_no_repetitions(read):
    others = [changed(hardware="H200"), changed(backend="nccl"), changed(tune=True)]
    assert [row.repetitions for row in read(changed(), *others).rows] == [1] * 4


def test_the_order_in_which_collectives_are_written_does_not_matter(read):
    figures = {"calls": 1, "bytes": 1, "seconds": 1}
    lines = [
        changed(communication={"all-reduce": dict.fromkeys(axes, figures)}, losses=[loss])
        for axes, loss in ((("x", "z"), 1.0), (("z", "x"), 2.0))
    ]
    assert [row.repetitions for row in read(*lines).rows] == [2]


def test_every_repetition_counts_among_the_rows_that_are_left_out(read):
    broken = [changed(model="gpt-none", losses=[loss]) for loss in (1.0, 2.0)]
    found = compare.compare(read(changed(), *broken))
    assert (len(found.rows), found.dropped) == (1, 2)


def test_runs_that_differ_in_what_was_run_or_sent_or_told_are_rows_of_their_own(read):
    others = [
        changed(overlap="all-reduce"), changed(batch_sequences=16), changed(memory_B=None), changed(communication={}),
        changed(communication={"all-reduce": {"x": {"calls": 24, "bytes": 5000, "seconds": 0.25}}}),
    ]  # fmt: skip
    assert [row.repetitions for row in read(changed(), *others).rows] == [1] * 6


def test_rows_of_a_table_are_repetitions_unless_their_sources_differ(tmp_path):
    path = tmp_path / "measured.csv"
    path.write_text(
        "machine,model,gpus,x,batch_sequences,step_time_s,source\n"
        "perlmutter,gpt-5b,8,8,64,3.0,May\nperlmutter,gpt-5b,8,8,64,4.0,May\nperlmutter,gpt-5b,8,8,64,5.0,June\n"
    )
    assert [(row.step, row.repetitions) for row in step_files.read(path).rows] == [(3.5, 2), (5.0, 1)]
