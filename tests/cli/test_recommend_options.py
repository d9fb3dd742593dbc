"""Every option of `recommend` does what it says, seen on the results."""

import itertools

import pytest

EVERYTHING = 10**6


def grids(record):
    return [tuple(result["grid"].values()) for result in record["results"]]


def by_grid(record):
    return {tuple(result["grid"].values()): result for result in record["results"]}


def same_but(one, other, *keys):
    """Records with the same keys and values but for `keys`."""
    return {key: one[key] for key in one if key not in keys} == {key: other[key] for key in other if key not in keys}


@pytest.mark.parametrize(("machine", "devices"), [("perlmutter", 4), ("summit", 6), ("frontier", 8), ("aurora", 12)])
def test_nodes_are_the_devices_on_them(recommend, machine, devices):
    asked = {"model": "gpt-tiny", "machine": machine, "batch": 96}
    by_nodes = recommend(nodes=4, **asked)
    assert by_nodes == recommend(gpus=4 * devices, **asked)
    assert (by_nodes["gpus"], by_nodes["nodes"], by_nodes["devices_per_node"]) == (4 * devices, 4, devices)


def test_fixed_axes_keep_their_sizes_and_others_are_counted_as_rejected(recommend):
    free, fixed = recommend(top=EVERYTHING), recommend(fix="x=2,data=4", top=EVERYTHING)
    wanted = [grid for grid in grids(free) if grid[0] == 2 and grid[3] == 4]
    assert grids(fixed) == wanted
    assert wanted
    assert fixed["searched"] == free["searched"]
    kept = [grid for grid in itertools.product((1, 2, 4, 8, 16), repeat=2) if 2 * 4 * grid[0] * grid[1] == 16]
    assert fixed["rejected"]["fixed_by_user"] == fixed["searched"] - len(kept)


def test_all_axes_may_be_fixed(recommend):
    assert grids(recommend(fix=" x = 1, y=2,z=4 ,data=2,")) == [(1, 2, 4, 2)]


def test_maxima_bound_the_axes(recommend):
    free, bounded = recommend(top=EVERYTHING), recommend(max="z=4,data=2", top=EVERYTHING)
    assert grids(bounded) == [grid for grid in grids(free) if grid[2] <= 4 and grid[3] <= 2]
    assert bounded["rejected"]["above_user_maximum"] > 0
    assert bounded["searched"] == free["searched"]


def test_a_maximum_that_binds_nothing_changes_nothing(recommend):
    assert recommend(max="x=16") == recommend()


@pytest.mark.parametrize("top", [1, 3, EVERYTHING])
def test_top_is_the_number_of_grids_shown(recommend, top):
    everything, shown = recommend(top=EVERYTHING), recommend(top=top)
    assert shown["results"] == everything["results"][:top]
    assert len(everything["results"]) == everything["feasible"]


def test_a_fixed_micro_batch_is_used_by_every_grid(recommend):
    record = recommend(micro_batch=4, top=EVERYTHING)
    assert {result["micro_batch"] for result in record["results"]} == {4}
    share = [64 // (grid[2] * grid[3]) for grid in grids(record)]
    assert all(count % 4 == 0 for count in share)


def test_a_micro_batch_too_large_for_a_grid_is_counted(recommend):
    record = recommend(micro_batch=32, top=EVERYTHING)
    assert all(grid[2] * grid[3] <= 2 for grid in grids(record))
    assert record["rejected"]["micro_batch"] > 0


@pytest.mark.parametrize(
    ("option", "choices"),
    [
        ("micro_batch", [2**power for power in range(7)]),
        ("recompute", ["none", "full"]),
        ("weight_cache", ["none", "forward", "all"]),
    ],
)
def test_any_is_the_fastest_of_all_choices(recommend, option, choices):
    best = by_grid(recommend(top=EVERYTHING))
    fixed = [by_grid(recommend(top=EVERYTHING, **{option: choice})) for choice in choices]
    for grid, result in best.items():
        times = [record[grid]["step_time_s"] for record in fixed if grid in record]
        assert result["step_time_s"] <= 1.02 * min(times)  # the roomier one goes first within this
        assert result["step_time_s"] >= 0.98 * min(times)


@pytest.mark.parametrize("recompute", ["none", "selective", "full"])
def test_the_recomputation_asked_for_is_used(recommend, recompute):
    record = recommend(recompute=recompute, gpus=32)
    assert {result["recompute"] for result in record["results"]} == {recompute}


def test_recomputation_costs_a_forward_pass_and_saves_activations(recommend):
    asked = {"fix": "x=2,y=1,z=4,data=2", "micro_batch": 1}
    (none,), (full,) = (recommend(recompute=mode, **asked)["results"] for mode in ("none", "full"))
    assert 1.2 < full["compute_time_s"] / none["compute_time_s"] < 4 / 3
    assert full["memory_terms_B"]["activations"] < none["memory_terms_B"]["activations"] / 5


@pytest.mark.parametrize("cache", ["none", "forward", "all"])
def test_the_weight_cache_asked_for_is_used(recommend, cache):
    record = recommend(weight_cache=cache, gpus=32)
    assert {result["weight_cache"] for result in record["results"]} == {cache}


def test_a_kept_weight_is_gathered_less_often_and_takes_memory(recommend):
    asked = {"fix": "x=1,y=1,z=16,data=1", "recompute": "full", "micro_batch": 1}
    results = [recommend(weight_cache=cache, **asked)["results"][0] for cache in ("none", "forward", "all")]
    gathers = [result["communication_s"]["weight_gather"] for result in results]
    assert gathers[0] / gathers[2] == pytest.approx(3, rel=1e-9)
    assert gathers[1] / gathers[2] == pytest.approx(2, rel=1e-9)
    memory = [result["memory_terms_B"]["gathered_weights"] for result in results]
    assert memory[0] <= memory[1] < memory[2]


def test_placements_are_the_orders_they_are_named_after(recommend):
    assert {tuple(result["placement"]) for result in recommend()["results"]} == {("y", "x", "z", "data")}
    paper = recommend(placement="paper")
    assert {tuple(result["placement"]) for result in paper["results"]} == {("x", "y", "z", "data")}
    asked = {"machine": "frontier", "gpus": 96, "batch": 96, "top": EVERYTHING, "placement": "any"}
    assert len({tuple(result["placement"]) for result in recommend(**asked)["results"]}) > 2


def test_any_placement_is_never_slower_than_a_named_one(recommend):
    asked = {"machine": "frontier", "gpus": 96, "batch": 96, "top": EVERYTHING}
    best = by_grid(recommend(placement="any", **asked))
    for name in ("axonn", "paper"):
        named = by_grid(recommend(placement=name, **asked))
        assert named.keys() <= best.keys()
        assert all(best[grid]["step_time_s"] <= result["step_time_s"] for grid, result in named.items())
        assert any(best[grid]["step_time_s"] < result["step_time_s"] for grid, result in named.items())


def test_paper_fidelity_counts_communication_alone(recommend):
    record = recommend(fidelity="paper")
    assert record["fidelity"] == "paper"
    for result in record["results"]:
        assert result["compute_time_s"] is None
        assert result["step_time_s"] == result["communication_time_s"]
        assert result["communication_s"]["vocabulary"] == 0


def test_ignoring_memory_lets_every_grid_in(recommend):
    asked = {"model": "gpt-20b", "gpus": 16, "top": EVERYTHING, "weight_cache": "forward", "recompute": "full"}
    within, all_of_them = recommend(**asked), recommend(ignore_memory=True, **asked)
    assert within["rejected"]["memory"] > 0
    assert "memory" not in all_of_them["rejected"]
    assert all_of_them["feasible"] == within["feasible"] + within["rejected"]["memory"]
    assert max(result["memory_B"] for result in all_of_them["results"]) > 40 * 2**30


ONE_WAY = {"fix": "x=2,y=1,z=4,data=2", "micro_batch": 1, "recompute": "none", "ignore_memory": True}


def test_without_flash_attention_scores_take_memory_and_at_flat_fidelity_nothing_else(recommend):
    asked = ONE_WAY | {"fidelity": "flat"}
    (flash,), (stored,) = (recommend(**asked, **more)["results"] for more in ({}, {"no_flash_attention": True}))
    heads, layers, sequence = 32, 24, 2048
    more = stored["memory_terms_B"]["activations"] - flash["memory_terms_B"]["activations"]
    # What the softmax gives is a square of the sequence for each head, two bytes each; flash keeps a row's sum alone.
    assert more == pytest.approx(layers * heads // 2 * sequence**2 * 2, rel=2e-3)
    assert same_but(flash, stored, "memory_B", "memory_terms_B", "memory_risk", "gemm_rate_utilization")


def test_dropout_masks_take_memory_and_at_flat_fidelity_nothing_else(recommend):
    asked = ONE_WAY | {"fidelity": "flat"}
    (without,), (masks,) = (recommend(**asked, **more)["results"] for more in ({}, {"dropout": True}))
    assert masks["memory_terms_B"]["activations"] > without["memory_terms_B"]["activations"]
    assert same_but(without, masks, "memory_B", "memory_terms_B", "memory_risk")


@pytest.mark.parametrize("option", ["no_flash_attention", "dropout"])
def test_scores_and_masks_cost_time_too(recommend, option):
    (without,), (more,) = (recommend(**ONE_WAY, **chosen)["results"] for chosen in ({}, {option: True}))
    assert more["compute_time_s"] > 1.001 * without["compute_time_s"]
    assert more["communication_s"] == without["communication_s"]


@pytest.mark.parametrize(
    ("name", "terms"),
    [
        ("activations", {"forward_reduce", "backward_reduce"}),
        ("weights", {"weight_gather"}),
        ("gradients", {"gradient_scatter"}),
        ("data-gradients", {"data_reduce"}),
    ],
)
@pytest.mark.parametrize(("fidelity", "least"), [("flat", 2), ("full", 1.2)])  # start-up is paid once
def test_bytes_an_element_scale_what_is_sent(recommend, name, terms, fidelity, least):
    asked = {"fix": "x=2,y=2,z=2,data=2", "micro_batch": 1, "recompute": "full", "ignore_memory": True}
    asked |= {"weight_cache": "forward", "fidelity": fidelity}
    two, four = (recommend(bytes=f"{name}={size}", **asked)["results"][0] for size in (2, 4))
    for term, seconds in two["communication_s"].items():
        if term in terms:
            assert least * (1 - 1e-12) <= four["communication_s"][term] / seconds <= 2 * (1 + 1e-12)
        elif term != "vocabulary" and (term, name) != ("small", "data-gradients"):  # part of it, a bias's, does
            assert four["communication_s"][term] == pytest.approx(seconds, rel=1e-12)


@pytest.mark.parametrize(
    ("optimizer", "bytes_a_parameter"), [("adamw", 12), ("adamw-8bit", 6), ("adamw-pure-bf16", 4), ("sgd", 4)]
)
def test_the_optimizer_decides_the_bytes_of_its_state(recommend, optimizer, bytes_a_parameter):
    record = recommend(model="gpt-tiny", gpus=1, batch=1, optimizer=optimizer)
    (result,) = record["results"]
    # Rows that pad the vocabulary have state too; gpt-tiny's needs no more than 128 * 256 elements of it.
    padded = result["memory_terms_B"]["optimizer"] / bytes_a_parameter - record["parameters"]
    assert 0 <= padded <= 128 * 256


def test_the_sequence_length_may_be_chosen(recommend):
    asked = {"fix": "x=2,y=2,z=2,data=2", "micro_batch": 1, "recompute": "full", "weight_cache": "forward"}
    asked["fidelity"] = "flat"
    (short,), (long,) = (recommend(seq=length, **asked)["results"] for length in (1024, 2048))
    for term in ("forward_reduce", "backward_reduce"):
        assert long["communication_s"][term] == pytest.approx(2 * short["communication_s"][term])
    assert long["communication_s"]["weight_gather"] == short["communication_s"]["weight_gather"]
    assert long["compute_time_s"] > 2 * short["compute_time_s"]  # attention grows with the square
    assert recommend()["sequence_length"] == recommend(seq=2048)["sequence_length"] == 2048


def test_padding_the_vocabulary_may_be_switched_off(recommend, explain):
    asked = {"vocabulary_multiple": 0, "model": "gpt-tiny", "gpus": 8}
    assert "vocabulary_padding" not in recommend(**asked)["rejected"]
    grid, plain = "2x2x2x1", {"model": "gpt-tiny"}
    padded, bare = explain(grid, **plain), explain(grid, **plain, vocabulary_multiple=0)
    gathered = [
        next(entry["buffer_B"] for entry in record["collectives"] if entry["layer"] == "embedding")
        for record in (padded, bare)
    ]
    assert gathered[0] >= gathered[1]


@pytest.mark.parametrize(("fidelity", "least"), [("flat", 2), ("full", 1.98)])  # the optimizer runs once a step
def test_twice_the_batch_takes_twice_the_arithmetic(recommend, fidelity, least):
    asked = {"fix": "x=2,y=1,z=4,data=2", "micro_batch": 1, "recompute": "full", "fidelity": fidelity}
    (one,), (two,) = (recommend(batch=batch, **asked)["results"] for batch in (64, 128))
    assert least * (1 - 1e-9) <= two["compute_time_s"] / one["compute_time_s"] <= 2 * (1 + 1e-9)
    assert (fidelity == "full") == (two["compute_time_s"] < 2 * one["compute_time_s"] * (1 - 1e-6))
    assert two["communication_s"]["data_reduce"] == one["communication_s"]["data_reduce"]
    assert two["accumulation_steps"] == 2 * one["accumulation_steps"]


def test_a_measured_step_sets_the_level_and_narrows_the_range(recommend, tmp_path):
    asked = {"gpus": 8, "batch": 64, "micro_batch": 4, "recompute": "full", "weight_cache": "forward"}
    plain = recommend(**asked)
    best = plain["results"][0]
    grid, seconds = ",".join(map(str, best["grid"].values())), 1.3 * best["step_time_s"]
    path = tmp_path / "mine.csv"
    head = "machine,model,sequence_length,x,y,z,data,batch_sequences,micro_batch,recompute,weight_cache,step_time_s"
    path.write_text(f"{head}\nperlmutter,gpt-5b,2048,{grid},64,4,full,forward,{seconds!r}\n", encoding="utf-8")
    leveled = recommend(**asked, measured=path)
    assert leveled["results"][0]["step_time_s"] == pytest.approx(seconds)
    assert leveled["likely"]["of"] == "your own measurement"
    assert leveled["likely"]["high"] / leveled["likely"]["low"] < plain["likely"]["high"] / plain["likely"]["low"]
