"""`explain --timeline` and `trace`: what they are of, whether that can run, and what has no timeline."""

import json

import pytest

from machines import LLAMA

ASKED = ("--model", "gpt-5b", "--machine", "perlmutter", "--batch", 64)


@pytest.fixture
def timeline(run):
    """The record of `explain --timeline`, and what was said beside it."""

    def ask(grid, *more):
        answer = run("explain", "--timeline", "--grid", grid, *ASKED, *more, "--format", "json")
        assert answer.code == 0
        return json.loads(answer.out), answer.err.splitlines()

    return ask


@pytest.fixture
def trace(run, tmp_path):
    """The file that `trace` writes, and what was said beside it."""

    def ask(grid, *more):
        answer = run("trace", "--grid", grid, *ASKED, *more, tmp_path / "trace.json")
        assert answer.code == 0
        return json.loads((tmp_path / "trace.json").read_text()), answer.err.splitlines()

    return ask


def test_a_timeline_names_its_question(timeline, explain):
    record, said = timeline("1x2x4x2", "--overlap", "data,all-gather", "--host-time", "20 us", "--bytes", "weights=4")
    assert said == []
    whole = explain("1x2x4x2", bytes="weights=4", host_time="20 us", overlap="data,all-gather")
    for key in ("model", "machine", "gpus", "batch_sequences", "sequence_length", "fidelity", "grid", "placement",
                "micro_batch", "recompute", "weight_cache", "rejected"):  # fmt: skip
        assert record[key] == whole[key], key
    assert record["settings"]["overlap"] == ["all-gather", "data"]
    assert record["settings"]["host_time_s"] == pytest.approx(20e-6)
    assert record["settings"]["weight_bytes"] == 4
    assert record["events"][0]["start"] == 0
    assert record["micro_step_s"] >= max(event["end"] for event in record["events"] if event["stream"] == "compute")


def test_a_trace_names_its_question_too(timeline, trace):
    record, _ = timeline("1x2x4x2")
    written, said = trace("1x2x4x2")
    assert said == []
    assert written["otherData"] == {
        key: value for key, value in record.items() if key not in ("micro_step_s", "events")
    }
    assert sum(entry["ph"] == "X" for entry in written["traceEvents"]) == len(record["events"])


def test_a_timeline_is_headed_by_what_it_is_of(run):
    text = run("explain", "--timeline", "--grid", "1x2x4x2", *ASKED).out
    for words in ("gpt-5b", "perlmutter", "16 devices", "grid 1x2x4x2", "micro-batch"):
        assert words in text


@pytest.mark.parametrize(
    ("grid", "more", "rule"), [("3x2x2x2", (), "heads"), ("1x1x1x4", ("--model", "gpt-20b"), "memory")]
)
def test_a_grid_that_cannot_run_is_told(timeline, trace, grid, more, rule):
    (record, said), (written, said_too) = timeline(grid, *more), trace(grid, *more)
    assert said_too == said
    for question in (record, written["otherData"]):
        assert rule in [rejection["rule"] for rejection in question["rejected"]]
    assert said[0].startswith(f"perfmodel: rejected by {rule}: ")
    assert said[-1] == "perfmodel: the timeline is for the setting that needs the least memory, and cannot run"


@pytest.mark.parametrize("fidelity", ["flat", "paper"])
@pytest.mark.parametrize("command", [("explain", "--timeline"), ("trace",)])
def test_a_timeline_exists_at_full_fidelity_only(refused, run, tmp_path, command, fidelity):
    asked = (*command, "--grid", "1x2x4x2", *ASKED, *([tmp_path / "t.json"] if "trace" in command else []))
    assert "a timeline exists at full fidelity only" in refused(*asked, "--fidelity", fidelity)
    assert run(*asked, "--fidelity", fidelity).code == 2
    assert list(tmp_path.iterdir()) == []
    assert run(*asked, "--fidelity", "full").code == 0


def test_a_timeline_too_long_to_show_is_refused(refused, run, config):
    asked = ("explain", "--timeline", "--grid", "1x1x4x1", *ASKED[2:])
    # Embedding and head are a pass each, a layer of Llama four; three of each: forward, again, backward.
    long, longer = (config(LLAMA | {"num_hidden_layers": layers}, f"of-{layers}") for layers in (8332, 8334))
    assert "is too long to show: at most 100,000" in refused(*asked, "--model", longer)
    assert run(*asked, "--model", long).code == 0
