"""Whatever is done to a log, reading it ends in samples and named problems, never in anything else."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perfmodel.errors import PerfmodelError
from perfmodel.logs import nccl_json, nccl_tests, osu, rccl_files, timings_csv
from perfmodel.logs.combined import combine
from perfmodel.logs.samples import Told
from perfmodel.machines import profiles
from synthetic_logs import Truth, json_result, rccl_csv, rccl_json
from synthetic_logs import nccl_json as nccl_object
from synthetic_logs import nccl_tests as nccl_text
from synthetic_logs import osu as osu_text

TRUTH = Truth("all_reduce", 2, 4, 40e-6, 70e9)
SIZES = tuple(2**power for power in range(16, 24))
CSV = "operation,nodes,ranks,size,time (us),busbw\n" + "".join(f"all-reduce,2,8,{size} B,{size},\n" for size in SIZES)
KINDS = {
    "nccl": (nccl_tests.read, nccl_text(TRUTH, sizes=SIZES) + nccl_text(TRUTH, sizes=SIZES, old=True)),
    "nccl json": (nccl_json.read, 2 * f"{nccl_object(TRUTH, [json_result(TRUTH, size) for size in SIZES])}\n"),
    "rccl json": (rccl_files.read, rccl_json(TRUTH, sizes=SIZES) + rccl_json(TRUTH, sizes=SIZES, old=True)),
    "rccl csv": (rccl_files.read, rccl_csv(TRUTH, sizes=SIZES)),
    "osu": (osu.read, osu_text(TRUTH, sizes=SIZES, full=True)),
    "csv": (timings_csv.read, CSV),
}
NASTY = st.sampled_from(
    (
        *(
            "nan",
            "inf",
            "-1",
            "0",
            "1e999",
            "1e-999",
            "9" * 400,
            "N/A",
            "",
            "\x00",
            '"',
            "'",
            "us",
            "# ",
            "½",
            ",",
            "\r",
        ),
        *('{"size":', '"results":[', '{"version":', "}", "null", "[" * 5000, "," * 9),
        *("\x1b[31m", "--nodes=0", "mpirun -np 8 -N ", "# Rank 0", "OSU MPI Allreduce Latency Test"),
        *("# Size Avg Latency(ms)", "\N{ARABIC-INDIC DIGIT ONE}"),
    )
)
WORDS = st.one_of(NASTY, st.text(max_size=8))
EDITS = st.lists(st.tuples(st.floats(0, 1), st.floats(0, 0.1), WORDS), max_size=6)
MACHINE = profiles.load("perlmutter")


def edited(text, edits):
    for where, share, word in edits:
        start = int(where * len(text))
        text = text[:start] + word + text[start + int(share * len(text)) :]
    return text


@pytest.mark.parametrize("kind", KINDS)
@given(edits=EDITS, operation=st.sampled_from([None, "all-reduce", "all-gather"]))
@settings(max_examples=150, deadline=None)
def test_an_edited_log_gives_good_rows_and_named_problems(kind, edits, operation):
    read, text = KINDS[kind]
    text = edited(text, edits)
    try:
        log = read(text, "a.log", Told(operation, 2, 4))
        found = combine([log], MACHINE, "LOGS")
    except PerfmodelError:  # a heading that is none
        return
    last = text.count("\n") + 1
    assert all(1 <= problem.line <= last and problem.text for problem in found.problems)
    for sample in log.samples:
        assert math.isfinite(sample.time)
        assert 100e-9 <= sample.time <= 1000
        assert 1 <= sample.line <= last
    for part in found.parts:
        assert part.line is None or (part.line.alpha >= 0 and part.line.beta > 0)


@pytest.mark.parametrize("kind", KINDS)
@given(text=st.text())
@settings(max_examples=100, deadline=None)
def test_any_text_is_a_log_without_rows_or_an_error_in_words(kind, text):
    try:
        log = KINDS[kind][0](text, "a.log", Told())
    except PerfmodelError:
        return
    assert log.samples == ()


@pytest.mark.parametrize("kind", KINDS)
@given(cut=st.floats(0, 1))
@settings(max_examples=60, deadline=None)
def test_a_cut_log_never_has_more_rows_or_other_times(kind, cut):
    read, text = KINDS[kind]
    whole = {(sample.line, sample.place, sample.time) for sample in read(text, "a.log", Told(None, 2, 4)).samples}
    try:
        log = read(text[: int(cut * len(text))], "a.log", Told(None, 2, 4))
    except PerfmodelError:
        return
    rows = [(sample.line, sample.place, sample.time) for sample in log.samples]
    assert len(set(rows) - whole) <= (
        1 if kind in ("osu", "csv") else 0
    )  # the last number of the last row may have lost digits
