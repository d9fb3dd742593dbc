"""`perfmodel sweep`: counts in, rows out, in every form."""

import json

import pytest

ASKED = ("sweep", "--model", "gpt-5b", "--machine", "perlmutter", "--fidelity", "full")


def test_json_csv_and_table_hold_the_same_counts(run, read_csv):
    asked = (*ASKED, "--gpus", "16,30,64", "--batch", 256)
    record = json.loads(run(*asked, "--format", "json").out)
    assert (record["scaling"], record["model"], record["fidelity"]) == ("strong", "gpt-5b", "full")
    points = record["points"]
    assert [point["gpus"] for point in points] == [16, 30, 64]
    assert points[0]["efficiency"] == 1
    rows = read_csv(run(*asked, "--format", "csv").out)
    assert [row["gpus"] for row in rows] == ["16", "30", "64"]
    assert float(rows[2]["step_time_s"]) == points[2]["step_time_s"]
    assert rows[1]["step_time_s"] == ""
    table = run(*asked)
    assert (table.code, table.err) == (0, "")
    assert "30 devices are not whole nodes of 4" in table.out
    assert "strong scaling" in table.out
    assert max(map(len, table.out.splitlines())) <= 132


def test_weak_scaling(run):
    record = json.loads(run(*ASKED, "--gpus", "16,64", "--batch-per-gpu", 4, "--format", "json").out)
    assert record["scaling"] == "weak"
    assert [point["batch_sequences"] for point in record["points"]] == [64, 256]


@pytest.mark.parametrize("fidelity", ["paper", "flat"])
def test_other_fidelities_have_answers_too(run, fidelity):
    answer = run(*ASKED[:-1], fidelity, "--gpus", "16,64", "--batch", 64)
    assert (answer.code, answer.err) == (0, "")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--gpus", "16"), "--batch"),
        (("--gpus", "16", "--batch", 64, "--batch-per-gpu", 4), "either --batch or --batch-per-gpu"),
        (("--gpus", "16,,32", "--batch", 64), "separated by commas"),
        (("--gpus", "0", "--batch", 64), "separated by commas"),
        (("--gpus", "30", "--batch", 64), "not whole nodes"),
    ],
)
def test_what_has_no_answer_is_a_sentence(refused, options, said):
    assert said in refused(*ASKED, *options)


@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_a_plot_is_written_and_is_the_same_each_time(run, tmp_path, suffix):
    pytest.importorskip("matplotlib")
    paths = [tmp_path / f"{name}.{suffix}" for name in "ab"]
    for path in paths:
        answer = run(*ASKED, "--gpus", "16,30,64", "--batch", 256, "--plot", path)
        assert (answer.code, answer.err) == (0, "")
    assert paths[0].stat().st_size > 1000
    if suffix == "png":
        assert paths[0].read_bytes() == paths[1].read_bytes()


def test_recommend_tells_throughput_baselines_training_and_chances(run):
    asked = ("recommend", *ASKED[1:], "--gpus", 64, "--batch", 256, "--top", 3)
    table = run(*asked, "--tokens", "2T", "--uncertainty")
    assert (table.code, table.err) == (0, "")
    for words in ("HFU", "node-hours", "The best grid against: fsdp", "(5 to 95 %)"):
        assert words in table.out
    record = json.loads(run(*asked, "--tokens", "2T", "--uncertainty", "--format", "json").out)
    assert len(record["results"]) == 3
    assert [one["name"] for one in record["baselines"]] == ["fsdp", "hsdp", "megatron-tp", "megatron-hsdp", "ddp"]
    best = record["results"][0]
    assert best["lower_bound_s"] < best["step_time_s"] < best["upper_bound_s"]
    assert best["training_steps"] * 256 * 2048 >= 2 * 10**12
    low, high = record["uncertainty"]["best_step_time_interval_s"]
    assert low < best["step_time_s"] < high
    assert sum(one["chance_of_being_fastest"] for one in record["uncertainty"]["worth_a_try"]) >= 0.9
    assert "training_steps" not in json.loads(run(*asked, "--format", "json").out)["results"][0]


@pytest.mark.parametrize("tokens", ["2X", "0", "-1", "1e99", "9999999T"])
def test_tokens_are_a_count_with_a_prefix(refused, tokens):
    asked = ("recommend", *ASKED[1:], "--gpus", 16, "--batch", 64)
    assert "--tokens" in refused(*asked, "--tokens", tokens)
