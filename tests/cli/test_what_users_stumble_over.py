"""What users of other tools reported (facts/peers.md, section 4): odd node sizes and counts, dies, odd configs."""

import math
import re

import pytest

from machines import LLAMA

PARAMETERS = 32000 * 1024 * 2 + 4 * (4 * 1024**2 + 3 * 1024 * 4096 + 2 * 1024) + 1024


@pytest.fixture
def nodes_of(run, tmp_path):
    """A profile of nodes with that many devices, made from a shipped one as a user would."""

    def make(devices):
        path = tmp_path / f"nodes-of-{devices}.yaml"
        assert run("machines", "new", "--from", "dgx-a100", path).code == 0
        lines = path.read_text().splitlines()
        at = next(number for number, line in enumerate(lines) if re.match(r"  devices: 8\b", line))
        lines[at] = lines[at].replace("8", str(devices), 1)
        lines = [line.replace("tasks_per_node: 8", f"tasks_per_node: {devices}") for line in lines]
        path.write_text("\n".join(lines))
        checked = run("machines", "check", path)
        assert (checked.code, checked.err) == (0, "")
        return path

    return make


@pytest.mark.parametrize("devices", [1, 3, 4, 6, 8, 12])
@pytest.mark.parametrize("nodes", [1, 2, 5, 8])
def test_nodes_of_any_size_have_an_answer(recommend, nodes_of, devices, nodes):
    record = recommend(machine=nodes_of(devices), model="gpt-tiny", nodes=nodes, batch=240)
    assert (record["gpus"], record["devices_per_node"], record["nodes"]) == (devices * nodes, devices, nodes)
    assert all(math.prod(result["grid"].values()) == devices * nodes for result in record["results"])


@pytest.mark.parametrize("devices", [3, 6, 12])
def test_a_group_in_nodes_that_are_no_power_of_two_is_inside_only_if_all_are(explain, nodes_of, devices):
    asked = {"machine": nodes_of(devices), "model": "gpt-tiny", "batch": 240, "vocabulary_multiple": 1}
    links = {entry["axis"]: entry["link"] for entry in explain(f"2x1x1x{devices}", **asked)["collectives"]}
    assert links["x"] == ("inside the node" if devices % 2 == 0 else "between nodes")
    assert links["data"] == "between nodes"


# (machine, devices a node): a named machine and what a rank is there.
COUNTS = [24, 60, 192, 1000]
MACHINES = ["perlmutter", "summit", "frontier", "aurora", "dgx-h100"]


@pytest.mark.parametrize("gpus", COUNTS)
@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("batch", [960, 2048])
def test_an_odd_count_has_an_answer_or_counts_or_batches_that_work(run, gpus, machine, batch):
    def ask(count, sequences=batch):
        asked = ("--model", "llama-2-7b", "--machine", machine, "--batch", sequences)
        return run("recommend", *asked, "--gpus", count, "--format", "csv")

    answer = ask(gpus)
    if answer.code == 0:
        assert len(answer.out.splitlines()) > 1
        return
    assert (answer.code, answer.out) == (1, "")
    counts = re.search(r"nearest counts that work: ([\d and]+)", answer.err)
    batches = re.search(r"nearest batches that work: ([\d and]+)", answer.err)
    assert counts or batches or "no other count nearby works either" in answer.err
    assert all(ask(count).code == 0 for count in (counts[1].split(" and ") if counts else ()))
    assert all(ask(gpus, sequences).code == 0 for sequences in (batches[1].split(" and ") if batches else ()))


@pytest.mark.parametrize(
    ("machine", "gpus"),
    [("perlmutter", 24), ("perlmutter", 60), ("summit", 192), ("dgx-h100", 192), ("frontier", 1000)],
)
def test_counts_that_are_no_powers_of_two_work_with_a_batch_that_they_divide(recommend, machine, gpus):
    record = recommend(model="llama-2-7b", machine=machine, gpus=gpus, batch=4 * gpus)
    assert record["gpus"] == gpus


@pytest.mark.parametrize("machine", ["frontier", "lumi-g"])
def test_a_rank_on_an_mi250x_is_one_of_its_two_dies(run, recommend, machine):
    record = recommend(machine=machine, nodes=128, batch=4096, model="gpt-20b")
    assert record["device"] == "AMD MI250X GCD"
    assert (record["gpus"], record["nodes"], record["devices_per_node"]) == (1024, 128, 8)
    best = record["results"][0]
    peak = record["model_flop"] / best["step_time_s"] / record["gpus"] / best["model_flops_utilization"]
    assert peak == pytest.approx(191.5e12)
    assert all(result["memory_B"] <= 64 * 2**30 for result in record["results"])
    table = run("recommend", "--machine", machine, "--nodes", 128, "--batch", 4096, "--model", "gpt-20b").out
    assert "1024 devices (AMD MI250X GCD) = 128 nodes of 8" in re.sub(r"\s+", " ", table)
    shown = run("machines", "show", machine).out
    assert "GCD" in shown
    assert re.search(r"device\.peak\.bf16 +191\.5 Tflop/s", shown)


def test_half_an_mi250x_has_half_its_memory(explain):
    found = explain("1x2x2x2", machine="frontier", model="gpt-tiny", memory_margin=0)
    assert 63 * 2**30 < found["memory_capacity_B"] <= 64 * 2**30


def parameters(run, path):
    answer = run("models", "show", path)
    assert (answer.code, answer.err) == (0, "")
    return int(re.search(r"([\d,]+) parameters", answer.out)[1].replace(",", ""))


def test_a_config_is_counted_exactly_and_named_after_its_folder(run, config, recommend):
    path = config(LLAMA, "my-llama")
    assert parameters(run, path) == PARAMETERS
    record = recommend(model=path, gpus=8)
    assert (record["model"], record["parameters"], record["sequence_length"]) == ("my-llama", PARAMETERS, 2048)


def test_without_key_value_heads_every_head_has_its_own(run, config):
    assert parameters(run, config(LLAMA)) == parameters(run, config({**LLAMA, "num_key_value_heads": 16}, "other"))
    grouped = parameters(run, config({**LLAMA, "num_key_value_heads": 4}, "grouped"))
    assert PARAMETERS - grouped == 4 * 2 * 12 * 64 * 1024  # keys and values of twelve heads, in each of four layers


def test_tied_embeddings_are_counted_once(run, config):
    assert PARAMETERS - parameters(run, config({**LLAMA, "tie_word_embeddings": True})) == 32000 * 1024


def test_a_head_may_be_wider_than_its_share_of_the_hidden_size(run, config, recommend):
    path = config({**LLAMA, "head_dim": 128})
    assert parameters(run, path) - PARAMETERS == 4 * 4 * 1024**2  # all four projections of each layer are twice as wide
    assert recommend(model=path, gpus=8)["results"]


def test_the_text_part_of_a_larger_model_is_what_is_planned(run, config, recommend):
    text = {**LLAMA, "num_key_value_heads": 16}
    path = config({"model_type": "llava", "text_config": text, "vision_config": {"hidden_size": 1024}})
    assert parameters(run, path) == PARAMETERS
    assert recommend(model=path, gpus=8)["model"] == "some-model (text part)"


def test_without_key_value_heads_every_head_of_a_text_part_has_its_own(run, config):
    assert parameters(run, config({"model_type": "llava", "text_config": LLAMA})) == PARAMETERS


def test_null_is_the_same_as_absent(run, config):
    assert parameters(run, config({**LLAMA, "num_key_value_heads": None, "head_dim": None})) == PARAMETERS


def test_a_width_that_nothing_divides_leaves_the_axes_that_do_not_split_it(config, explain, recommend):
    path = config({**LLAMA, "hidden_size": 15 * 67, "num_attention_heads": 15, "intermediate_size": 4001})
    record = explain("2x1x2x1", model=path)
    reasons = {entry["rule"]: entry["reason"] for entry in record["rejected"]}
    assert reasons["heads"] == "15 attention heads cannot be split evenly by x 2; 1 or 3 would divide"
    assert "cannot be split evenly by x 2" in reasons["width_x"]
    nearest = record["nearest_grid"]
    assert nearest["x"] == 1
    fix = ",".join(f"{axis}={size}" for axis, size in nearest.items())
    assert recommend(model=path, gpus=math.prod(nearest.values()), fix=fix)["results"][0]["grid"] == nearest


def test_key_value_heads_bound_x(config, recommend):
    path = config({**LLAMA, "num_key_value_heads": 2})
    record = recommend(model=path, gpus=16, top=1000)
    assert {result["grid"]["x"] for result in record["results"]} == {1, 2}
    assert record["rejected"]["kv_heads"] > 0


@pytest.mark.parametrize("machine", ["frontier", "alps", "summit"])
def test_where_layers_come_in_pairs_x_and_y_of_equal_links_are_alike(recommend, tmp_path, machine):
    """Square layers, one normal and one transposed: exchanging x and y, and their places, exchanges nothing else.

    At full fidelity it exchanges more: computation hides what the backward pass sends, not what the forward pass does.
    """
    path = tmp_path / "square.yaml"
    layers = "\n".join(
        f"      - linear: {{name: {name}, inputs: 4608, outputs: 4608, transposed: {transposed}, bias: false}}"
        for name, transposed in (("first", "false"), ("second", "true"))
    )
    path.write_text(f"format: 1\nname: square\nsequence: 1024\nblocks:\n  - name: pair\n    layers:\n{layers}\n")
    asked = {"model": path, "machine": machine, "gpus": 48, "batch": 96, "top": 10**6, "micro_batch": 1}
    asked |= {"recompute": "none", "weight_cache": "forward", "fidelity": "flat"}

    def times(placement):
        record = recommend(placement=placement, **asked)
        return {tuple(result["grid"].values()): result["step_time_s"] for result in record["results"]}

    axonn, paper = times("axonn"), times("paper")
    assert len({grid for grid in axonn if grid[0] != grid[1]}) > 10
    assert axonn.keys() == {(y, x, z, data) for x, y, z, data in axonn}
    for (x, y, z, data), seconds in axonn.items():
        assert paper[y, x, z, data] == pytest.approx(seconds, rel=1e-9)
