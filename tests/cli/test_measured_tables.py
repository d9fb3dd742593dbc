"""A profile with measured tables at the command line: shown, used, explained, copied."""

import json
import re

import pytest

from machines import GOLDEN

FILE = GOLDEN / "perlmutter-measured.yaml"
GRID = "1x1x16x4"  # the gathers over z have 16 neighbours on 4 nodes, as measured


def sources(record, term):
    return {entry["time_source"] for entry in record["collectives"] if entry["term"] == term}


def test_explain_tells_where_each_time_comes_from(explain):
    record = explain(GRID, machine=FILE, fidelity="full")
    assert sources(record, "weight_gather") == {"measured table, measured [PCCL]"}
    assert sources(record, "gradient_scatter") == {"formula: the profile has no measured reduce-scatter"}
    assert sources(record, "forward_reduce") == {"nothing to send"}
    told = sources(record, "data_reduce").pop()
    assert told.startswith(
        "formula: no table of all-reduce is for 1 rank per node, stride 16, on 4 nodes (there is: 2 "
    )


def test_the_time_of_a_call_is_that_of_the_table(explain):
    record = explain(GRID, machine=FILE, fidelity="full")
    gathers = [entry for entry in record["collectives"] if entry["term"] == "weight_gather"]
    for entry in gathers:
        assert 0.47e-3 <= entry["time_per_call_s"] <= 4.45e-3  # 16 MiB to 256 MiB on 4 nodes
        assert 2**24 < entry["buffer_B"] < 2**28
        assert "measured table: " in entry["equation"]
        assert "/s" not in entry["equation"]  # no bandwidth enters
    plain = explain(GRID, fidelity="full")
    assert record["communication_s"]["gradient_scatter"] == plain["communication_s"]["gradient_scatter"]
    assert record["communication_s"]["weight_gather"] != plain["communication_s"]["weight_gather"]


@pytest.mark.parametrize("fidelity", ["paper", "flat"])
def test_other_fidelities_have_no_tables(explain, fidelity):
    record, plain = (explain(GRID, machine=where, fidelity=fidelity) for where in (FILE, "perlmutter"))
    assert record["step_time_s"] == plain["step_time_s"]
    assert sources(record, "weight_gather") == {f"formula of fidelity {fidelity}"}


def test_without_tables_every_time_is_the_formulas(explain):
    record = explain(GRID, fidelity="full")
    told = {entry["time_source"] for entry in record["collectives"] if entry["group_size"] > 1}
    assert all(
        re.fullmatch(r"formula: the profile has no measured [a-z-]+(; issuing .*)?(; this is .*)?", each)
        for each in told
    )


def test_a_short_call_that_takes_as_long_as_issuing_it_says_so(explain):
    record = explain("1x2x16x2", machine=FILE, fidelity="full", host_time="1 ms")
    every = [entry for entry in record["collectives"] if "bucket" not in entry["time_source"]]
    late = [entry for entry in every if "issuing" in entry["time_source"]]
    assert late
    assert all(entry["time_per_call_s"] == 1e-3 for entry in late)
    assert all(entry["time_source"].endswith("; issuing the call takes longer, 1 ms") for entry in late)


def test_the_text_tells_it_too_where_there_are_tables(run):
    asked = ("explain", "--grid", GRID, "--model", "gpt-5b", "--batch", 64, "--fidelity", "full", "--machine")
    text = re.sub(r"\s+", " ", run(*asked, FILE).out)
    assert "Times: z: all-gather of 16 ranks: measured table, measured [PCCL]" in text
    assert "z: reduce-scatter of 16 ranks: formula: the profile has no measured reduce-scatter" in text
    assert "Times:" not in run(*asked, "perlmutter").out


def test_a_recommended_step_uses_the_tables(recommend):
    asked = {"model": "gpt-5b", "gpus": 16, "batch": 64, "fidelity": "full", "fix": "z=16"}
    with_tables, without = (recommend(**asked, machine=where)["results"][0] for where in (FILE, "perlmutter"))
    assert with_tables["grid"] == without["grid"]
    assert with_tables["communication_s"]["weight_gather"] != without["communication_s"]["weight_gather"]


def test_a_machine_is_shown_with_its_tables_and_their_sources(run, read_csv):
    text = re.sub(r" +", " ", run("machines", "show", FILE).out)
    assert "Times of all-gather, 4 ranks per node, stride 1: measured [PCCL]" in text
    assert "size 4 nodes 16 nodes 64 nodes 256 nodes" in text
    assert "16 MiB 470 us 1.26 ms 2.98 ms 7.98 ms" in text
    assert "size 1 node 2 nodes 8 nodes" in text
    rows = {row["figure"]: row for row in read_csv(run("machines", "show", FILE, "--format", "csv").out)}
    cell = rows["collectives.all-gather(1,4).16.4 MiB"]
    assert (float(cell["value"]), cell["unit"], cell["kind"], cell["source"]) == (0.8e-3, "s", "measured", "PCCL")
    assert sum(name.startswith("collectives.") for name in rows) == 4 * 6 + 3 + 3 * 2
    record = json.loads(run("machines", "show", FILE, "--format", "json").out)
    assert record["collectives"][0]["rows"][1]["times"][1] == 0.8e-3


def test_a_copy_of_a_profile_without_tables_explains_how_one_is_written(run, tmp_path):
    file = tmp_path / "mine.yaml"
    assert run("machines", "new", "--from", "perlmutter", file).code == 0
    text = file.read_text(encoding="utf-8")
    template = text[text.index("\n# collectives:\n") : text.index("\nnotes:")]
    for name in ("operation", "ranks", "source", "sizes", "rows", "nodes", "times", "inner"):
        assert re.search(rf"^[# ]+# {name}:$", template, re.MULTILINE), name
