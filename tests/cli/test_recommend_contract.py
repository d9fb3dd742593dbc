"""What `recommend` prints for machines and for people: keys, types, sums, order, and the same numbers in all forms."""

from itertools import pairwise

import pytest

COMMON = {
    "perfmodel_version": str,
    "model": str,
    "parameters": int,
    "machine": str,
    "device": str,
    "gpus": int,
    "nodes": int,
    "devices_per_node": int,
    "batch_sequences": int,
    "sequence_length": int,
    "fidelity": str,
    "framework": str,
    "attention_source": str,
    "model_flop": float,
    "memory_capacity_B": float,
    "compute_source": str,
    "bandwidth_source": str,
    "likely": dict,
    "searched": int,
    "feasible": int,
    "evaluated": int,
    "rejected": dict,
    "results": list,
    "baselines": list,
}
RESULT = {
    "rank": int,
    "grid": dict,
    "placement": list,
    "micro_batch": int,
    "accumulation_steps": int,
    "recompute": str,
    "weight_cache": str,
    "step_time_s": float,
    "step_time_low_s": float,
    "step_time_high_s": float,
    "compute_time_s": float,
    "communication_time_s": float,
    "exposed_communication_time_s": float,
    "latency_not_counted_s": float,
    "communication_s": dict,
    "memory_B": float,
    "memory_risk": float,
    "memory_terms_B": dict,
    "model_flops_utilization": float,
    "tokens_per_s": float,
    "sequences_per_s": float,
    "model_flop_per_s": float,
    "hardware_flop_per_s": float,
    "hardware_flops_utilization": float,
    "gemm_rate_utilization": float,
    "lower_bound_s": float,
    "upper_bound_s": float,
}
# Different machines, node sizes, models and settings: what holds, holds for all of them.
QUESTIONS = {
    "perlmutter": {},
    "paper's orders": {"placement": "paper", "fidelity": "paper"},
    "all orders": {"placement": "any", "gpus": 32, "top": 40},
    "nodes of six": {"machine": "summit", "model": "gpt-tiny", "gpus": 24, "batch": 48},
    "tiles": {"machine": "aurora", "model": "llama-2-7b", "nodes": 4, "batch": 96},
    "grouped queries": {"machine": "dgx-h100", "model": "llama-3-8b", "gpus": 64, "batch": 256},
    "part of a node": {"model": "gpt-tiny", "gpus": 2, "batch": 2},
    "one device": {"model": "gpt-tiny", "gpus": 1, "batch": 3},
    "convolutions": {"model": "unet-7b", "gpus": 64, "batch": 256},
    "too large": {"model": "gpt-640b", "gpus": 8, "ignore_memory": True},
}


@pytest.fixture(scope="module", params=QUESTIONS.values(), ids=QUESTIONS.keys())
def record(request, recommend):
    return recommend(**request.param)


def check_types(record, types):
    assert list(record) == list(types)
    for key, kind in types.items():
        assert type(record[key]) is kind, f"{key} is {record[key]!r}"


def test_the_answer_has_the_keys_and_types_of_the_contract(recommend):
    record = recommend()
    check_types(record, COMMON)
    for result in record["results"]:
        check_types(result, RESULT)
        check_types(result["grid"], dict.fromkeys(("x", "y", "z", "data"), int))
        assert sorted(result["placement"]) == ["data", "x", "y", "z"]
    assert all(type(count) is int and count > 0 for count in record["rejected"].values())


def test_the_question_is_repeated_in_the_answer(recommend):
    record = recommend(model="gpt-20b", machine="perlmutter", gpus=64, batch=512, seq=1024)
    asked = ("model", "machine", "gpus", "nodes", "batch_sequences", "sequence_length", "fidelity")
    assert [record[key] for key in asked] == ["gpt-20b", "perlmutter", 64, 16, 512, 1024, "full"]
    assert record["device"] == "NVIDIA A100-SXM4-40GB"


def test_grids_use_every_device_and_every_sequence(record):
    for result in record["results"]:
        x, y, z, data = result["grid"].values()
        assert x * y * z * data == record["gpus"]
        assert result["accumulation_steps"] * result["micro_batch"] * z * data == record["batch_sequences"]


def test_results_are_ranked_by_step_time_and_no_grid_comes_twice(record):
    results = record["results"]
    assert results
    assert [result["rank"] for result in results] == list(range(1, len(results) + 1))
    times = [result["step_time_s"] for result in results]
    assert all(later >= earlier / 1.0201 for earlier, later in pairwise(times))  # within 2 % the roomier goes first
    assert len({tuple(result["grid"].values()) for result in results}) == len(results)


def test_a_step_is_compute_and_exposed_communication(record, close):
    for result in record["results"]:
        exposed = result["exposed_communication_time_s"]
        assert close(result["step_time_s"], (result["compute_time_s"] or 0) + exposed)
        assert 0 <= exposed <= result["communication_time_s"] * (1 + 1e-12)
        assert (result["compute_time_s"] is None) == (record["fidelity"] == "paper")


def test_terms_sum_to_their_totals(record, close):
    for result in record["results"]:
        assert close(sum(result["communication_s"].values()), result["communication_time_s"])
        assert close(sum(result["memory_terms_B"].values()), result["memory_B"])
        assert all(value >= 0 for value in (*result["communication_s"].values(), *result["memory_terms_B"].values()))


def test_every_grid_is_accounted_for(record):
    assert record["searched"] == record["feasible"] + sum(record["rejected"].values())
    assert len(record["results"]) <= record["feasible"] <= record["evaluated"]


def test_utilization_and_throughput_follow_from_the_step_time(record, close):
    for result in record["results"]:
        if record["fidelity"] == "paper":
            assert (result["model_flops_utilization"], result["tokens_per_s"]) == (None, None)
            continue
        tokens = record["batch_sequences"] * record["sequence_length"]
        assert close(result["tokens_per_s"], tokens / result["step_time_s"])
        assert 0 < result["model_flops_utilization"] < 1
        flops = record["model_flop"] / result["step_time_s"] / record["gpus"]
        peak = flops / result["model_flops_utilization"]
        assert 1e10 < peak < 1e16  # of one device, in flop/s


def test_results_fit_the_memory_of_a_device(recommend):
    for result in recommend(model="gpt-20b", gpus=64, batch=256, top=100)["results"]:
        assert result["memory_B"] <= 40 * 2**30


def test_a_single_device_communicates_nothing(recommend):
    (result,) = recommend(model="gpt-tiny", gpus=1, batch=4)["results"]
    assert result["communication_time_s"] == 0
    assert result["step_time_s"] == result["compute_time_s"] > 0


def test_csv_holds_the_numbers_of_the_json(run, recommend, read_csv):
    asked = ("--model", "gpt-5b", "--machine", "perlmutter", "--batch", 64, "--gpus", 16)
    answer = run("recommend", *asked, "--format", "csv")
    assert (answer.code, answer.err) == (0, "")
    results = recommend()["results"]
    rows = read_csv(answer.out)
    assert len(rows) == len(results)
    for row, result in zip(rows, results, strict=True):
        assert None not in row
        assert row["rank"] == str(result["rank"])
        assert row["placement"] == " ".join(result["placement"])
        assert row["recompute"] == result["recompute"]
        for key in ("step_time_s", "compute_time_s", "communication_time_s", "memory_B", "model_flops_utilization"):
            assert float(row[key]) == result[key]
        for group in ("grid", "communication_s", "memory_terms_B"):
            assert {key: float(row[f"{group}_{key}"]) for key in result[group]} == result[group]


def test_the_table_shows_grids_device_counts_and_reasons(run, recommend):
    asked = ("--model", "gpt-20b", "--machine", "perlmutter", "--batch", 256, "--gpus", 64)
    answer = run("recommend", *asked)
    assert (answer.code, answer.err) == (0, "")
    assert "64 devices (NVIDIA A100-SXM4-40GB) = 16 nodes of 4" in answer.out
    assert "20,114,683,904 parameters" in answer.out
    record = recommend(model="gpt-20b", batch=256, gpus=64)
    lines = answer.out.splitlines()
    for result in record["results"]:
        grid = "x".join(map(str, result["grid"].values()))
        assert any(line.split()[:2] == [str(result["rank"]), grid] for line in lines)
    assert f"{record['searched']:,} grids searched, {record['feasible']:,} fit" in answer.out
    for reason, count in record["rejected"].items():
        assert f"{reason} {count}" in answer.out


def test_the_table_says_what_its_numbers_rest_on(run):
    asked = ("--model", "gpt-tiny", "--batch", 64, "--gpus", 8)
    measured = run("recommend", "--machine", "perlmutter", *asked).out
    assert "Bandwidths: inside nodes measured" in measured
    derived = run("recommend", "--machine", "alps", *asked).out
    assert "inside nodes derived: " in derived
    assert "between nodes derived: " in derived
    assert "x injection" in derived


def test_the_same_question_has_the_same_answer(run):
    asked = ("recommend", "--model", "gpt-5b", "--machine", "frontier", "--batch", 64, "--gpus", 64)
    assert run(*asked) == run(*asked)
