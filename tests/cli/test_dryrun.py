"""perfmodel dryrun: the launch code beside the model, and questions that it refuses."""

import json

import pytest

pytest.importorskip("torch")
ASKED = ("--model", "gpt-tiny", "--machine", "perlmutter", "--batch", "32", "--seq", "64")


def test_a_dry_run_of_many_ranks_sends_and_multiplies_what_the_model_counts(run):
    answer = run("dryrun", "--grid", "2x2x4x4", "--gpus", "64", *ASKED, "--format", "json")
    assert answer.code == 0, answer.err
    record = json.loads(answer.out)
    assert record["product_flop"] == record["model_product_flop"]
    assert record["memory_B"] == pytest.approx(record["model_memory_B"], rel=0.05)
    assert {(row["operation"], row["axis"]): row["sent_B"] for row in record["collectives"]} == {
        (row["operation"], row["axis"]): row["model_sent_B"] for row in record["collectives"]
    }
    assert {row["axis"] for row in record["collectives"]} == {"x", "y", "z", "data", "xy"}


def test_the_table_and_the_csv_hold_the_collectives(run):
    table, csv = (run("dryrun", "--grid", "1x2x2x1", *ASKED, "--format", name) for name in ("table", "csv"))
    assert "peak memory" in table.out
    assert csv.out.splitlines()[0] == "operation,axis,group_size,calls,model_calls,sent_B,model_sent_B"


@pytest.mark.parametrize(
    ("given", "code", "said"),
    [
        (("--grid", "2x2x1x1", "--gpus", "8"), 2, "--grid 2x2x1x1 has 4 devices, --gpus says 8"),
        (("--grid", "2x2x1x1", "--rank", "4"), 2, "rank 4 of 4 ranks; wanted 0 to 3"),
        (("--grid", "3x1x1x1"), 1, "3x1x1x1 cannot run gpt-tiny"),
        (("--grid", "2x2x1x1", "--fidelity", "paper"), 2, "--fidelity paper leaves out"),
        (("--grid", "2x2x1x1", "--dropout"), 2, "AdamW and no dropout"),
    ],
)
def test_what_cannot_be_run_dry_is_said_in_a_sentence(run, given, code, said):
    answer = run("dryrun", *given, *ASKED)
    assert answer.code == code
    assert said in answer.err
