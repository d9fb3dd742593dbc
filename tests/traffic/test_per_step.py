"""The paper's equations on a layer worked by hand, and the numbers that the authors' own scripts print."""

from dataclasses import replace

import numpy as np
import pytest

from machines import four_layers, golden, gpt, job, linears, machine, script_machine
from perfmodel.models.layers import Linear
from perfmodel.parallel.choices import RECOMPUTES, WEIGHT_CACHES
from perfmodel.parallel.enumeration import placed
from perfmodel.parallel.layout import NAMED_PLACEMENTS, Layout
from perfmodel.parallel.settings import BUCKET
from perfmodel.traffic.links import links
from perfmodel.traffic.per_step import communication_time, ring_latency, traffic

AXONN, PAPER = NAMED_PLACEMENTS["axonn"][0], NAMED_PLACEMENTS["paper"][0]
FULL, FORWARD = RECOMPUTES.index("full"), WEIGHT_CACHES.index("forward")
NONE = 0
# One sequence of 4096 tokens on each of four data ranks (z * data): m = 8192 rows in a data group of two.
WORKED = Layout(x=2, y=2, z=2, data=2, placement=PAPER, micro_batch=1, recompute=0, weight_cache=FORWARD)


def worked_layer():
    where = machine(4, inside={(1, 2): 76e9, (2, 2): 76e9}, between=100e9)
    model = linears(Linear(name="layer", inputs=4096, outputs=12288, bias=False), sequence=4096)
    return job(model, where, batch=4, fidelity="paper")


def printed(value, text):
    """Whether `value` rounds to `text` at the digits that `text` shows."""
    digits = len(text.partition(".")[2])
    return abs(value - float(text)) <= 0.5000001 * 10**-digits


@pytest.mark.parametrize("row", golden("worked_layer")[:-1], ids=lambda row: row["term"])
def test_each_term_of_the_worked_layer_is_the_paper_s(row):
    (found,) = [collective for collective in traffic(worked_layer(), WORKED) if collective.term == row["term"]]
    half = 1 / 2  # (p - 1) / p
    sent = half * found.buffer * (2 if found.operation == "all-reduce" else 1)
    assert (found.operation, found.link.axis, found.calls) == (row["operation"], row["axis"], 1)
    assert sent == float(row["sent_B"])
    assert found.link.bandwidth == pytest.approx(float(row["bandwidth_GB_per_s"]) * 1e9)
    assert printed(found.total * 1e3, row["time_ms"])


def test_the_worked_layer_takes_what_its_terms_add_up_to():
    assert printed(communication_time(worked_layer(), WORKED).total * 1e3, golden("worked_layer")[-1]["time_ms"])


def script_job(model, where, *, batch, sequence=2048):
    """What the authors' script counts: gradients summed over data as fp32, groups stay at their place."""
    return job(model, where, batch=batch, sequence=sequence, fidelity="flat", data_gradient_bytes=4)


def of_layers(found):
    """What linear layers send: the script counts no biases, no gradient norm, no loss."""
    return found.total - found.small


def script_layer(k, *, transposed, hidden=4096):
    """The script takes K H as the width of every forward all-reduce, so also of MLP-down (K = 4, transposed).

    That exchanges the widths of MLP-down, which really has 4 H inputs and H outputs; here the layer is made so that
    the script's number comes out. K = 1 transposed (attention output) is the same either way.
    """
    return linears(Linear(name="layer", inputs=hidden, outputs=k * hidden, transposed=transposed, bias=False))


@pytest.mark.parametrize(
    "row", golden("script_single_layers"), ids=lambda row: f"{row['k']}-{row['transposed']}-{row['d']}"
)
def test_single_layers_take_what_the_authors_script_prints(row):
    x, y, z, data = (int(row[axis]) for axis in "rcdg")
    layer = script_layer(int(row["k"]), transposed=row["transposed"] == "yes")
    question = script_job(layer, script_machine("perlmutter"), batch=512)
    layout = Layout(
        x=x, y=y, z=z, data=data, placement=AXONN, micro_batch=512 // (z * data), recompute=FULL, weight_cache=FORWARD
    )
    assert printed(of_layers(communication_time(question, layout)), row["seconds"])


def test_mlp_down_with_its_own_widths_is_cheaper_than_the_script_says_where_the_fast_axis_is_the_input_s():
    layout = Layout(x=2, y=2, z=2, data=8, placement=AXONN, micro_batch=512 // 16, recompute=FULL, weight_cache=FORWARD)
    right = script_job(
        linears(Linear(name="mlp down", inputs=4 * 4096, outputs=4096, transposed=True)),
        script_machine("perlmutter"),
        batch=512,
    )
    theirs = script_job(script_layer(4, transposed=True), script_machine("perlmutter"), batch=512)
    assert communication_time(right, layout).forward_reduce == communication_time(theirs, layout).forward_reduce / 4
    assert communication_time(right, layout).backward_reduce == communication_time(theirs, layout).backward_reduce * 4


def script_grids(row):
    """The script's candidates: powers of two, at least `least` tensor ranks, batch divisible by depth times data."""
    grids = placed(int(row["gpus"]), (AXONN,))
    keep = (grids.x * grids.y * grids.z >= int(row["least"])) & (int(row["batch"]) % (grids.z * grids.data) == 0)
    grids = grids.take(keep)
    micro = int(row["batch"]) // (grids.z * grids.data * int(row["accumulation"]))
    return replace(
        grids, micro_batch=micro, recompute=np.full_like(micro, FULL), weight_cache=np.full_like(micro, FORWARD)
    )


@pytest.mark.parametrize("row", golden("script_tables"), ids=lambda row: "-".join(row.values()))
def test_whole_models_take_what_the_authors_script_prints(row):
    grids = script_grids(row)
    model = linears(*four_layers(int(row["hidden"]), script=True), repeat=int(row["layers"]))
    seconds = of_layers(
        communication_time(script_job(model, script_machine(row["machine"]), batch=int(row["batch"])), grids)
    )
    place = np.flatnonzero(
        (grids.x == int(row["r"]))
        & (grids.y == int(row["c"]))
        & (grids.z == int(row["d"]))
        & (grids.data == int(row["g"]))
    )
    assert printed(seconds[place[0]], row["seconds"])
    if row["position"]:
        assert np.argsort(seconds, kind="stable").tolist().index(place[0]) + 1 == int(row["position"])


def test_the_script_s_lists_are_as_long_as_the_paper_s_candidates():
    lengths = {(row["gpus"], row["least"]): len(script_grids(row).x) for row in golden("script_tables")}
    assert lengths["64", "4"] == 80
    assert lengths["16", "1"] == 35
    assert lengths["32", "16"] == 36
    assert lengths["64", "32"] == 49
    assert lengths["1024", "8"] == 276
    assert lengths["2048", "16"] == 344
    assert lengths["4096", "32"] == 420
    assert lengths["8192", "64"] == 504


def test_the_later_script_s_layer_is_the_paper_s_with_two_gathers_and_single_reduces():
    # axonn-ai/sc2025-pccl-reproducer, data/comm_model.py without latency: 59.52 between nodes, each all-reduce once.
    layer = linears(Linear(name="qkv", inputs=4096, outputs=12288, bias=False))
    question = job(
        layer, script_machine("perlmutter", between=59.52), batch=512, fidelity="paper", data_gradient_bytes=4
    )
    layout = Layout(x=2, y=2, z=2, data=8, placement=AXONN, micro_batch=32, recompute=0, weight_cache=NONE)
    assert printed(communication_time(question, layout).total, "0.018276972")


@pytest.mark.parametrize(
    ("name", "between", "layers", "hidden", "gpus", "seconds"),
    [
        ("perlmutter", 59.52, 24, 4096, 512, "0.452743"),
        ("perlmutter", 59.52, 32, 7168, 2048, "1.851414"),
        ("perlmutter", 59.52, 38, 9216, 4096, "3.635232"),
        ("frontier", 109.98, 38, 9216, 4096, "1.967349"),
        ("frontier", 109.98, 42, 12288, 8192, "3.866140"),
    ],
)
def test_the_later_script_s_best_grids_take_what_it_prints_without_latency(
    *, name, between, layers, hidden, gpus, seconds
):
    # The same source: S 2048, B 8192, all of the best grids are depth only.
    model = linears(*four_layers(hidden, script=True), repeat=layers)
    where = script_machine(name, between=between)
    question = job(model, where, batch=8192, fidelity="paper", data_gradient_bytes=4)
    layout = Layout(x=1, y=1, z=gpus, data=1, placement=AXONN, micro_batch=8192 // gpus, recompute=0, weight_cache=NONE)
    assert printed(communication_time(question, layout).total, seconds)


GATHERS = {  # (recomputation, caching): all-gathers of a weight, forward all-reduces
    ("none", "none"): (2, 1),
    ("none", "forward"): (1, 1),
    ("none", "all"): (1, 1),
    ("selective", "none"): (2, 1),
    ("selective", "forward"): (1, 1),
    ("full", "none"): (3, 2),
    ("full", "forward"): (2, 2),
    ("full", "all"): (1, 2),
}


def calls(model, layout, **chosen):
    """{term: calls a step of the first layer}."""
    found = {}
    for collective in traffic(job(model, batch=48, **chosen), layout):
        if collective.term != "small":
            found.setdefault(collective.term, collective.calls)
    return found


@pytest.mark.parametrize(("recompute", "cache"), GATHERS)
@pytest.mark.parametrize("fidelity", ["paper", "flat"])
def test_weights_are_gathered_and_outputs_reduced_as_often_as_the_mode_says(recompute, cache, fidelity):
    mode = {"recompute": RECOMPUTES.index(recompute), "weight_cache": WEIGHT_CACHES.index(cache)}
    found = calls(
        linears(Linear(name="l", inputs=64, outputs=64), repeat=7),
        Layout(x=2, y=2, z=2, data=2, micro_batch=3, **mode),
        fidelity=fidelity,
    )
    steps = 7 * 48 / (2 * 2 * 3)
    gathers, passes = GATHERS[recompute, cache]
    assert found == {
        "weight_gather": gathers * steps,
        "gradient_scatter": steps,
        "forward_reduce": passes * steps,
        "backward_reduce": steps,
        "data_reduce": 7,
    }


@pytest.mark.parametrize(("cache", "gathers"), [("none", 2), ("forward", 1), ("all", 1)])
def test_blocks_that_are_not_checkpointed_are_passed_once_and_gathered_as_without_recomputation(cache, gathers):
    mode = {"recompute": FULL, "weight_cache": WEIGHT_CACHES.index(cache)}
    found = calls(
        linears(Linear(name="l", inputs=64, outputs=64), checkpointed=False),
        Layout(x=1, y=1, z=4, data=1, micro_batch=12, **mode),
    )
    assert (found["weight_gather"], found["forward_reduce"]) == (gathers, 1)


def buffers(question, layout, name):
    """[(operation, axis, bytes a call, calls)] of one layer."""
    return [
        (found.operation, found.link.axis, found.buffer, found.calls)
        for found in traffic(question, layout)
        if found.layer == name
    ]


def test_a_convolution_sends_its_kernel_and_its_positions():
    layer = Linear(name="conv", inputs=8, outputs=16, kernel=3, positions=0.25, bias=False)
    question = job(linears(layer, sequence=64), batch=4, activation_bytes=2, weight_bytes=2)
    sent = {found.term: found.buffer for found in traffic(question, Layout(x=2, y=2, z=2, data=1, micro_batch=2))}
    assert sent["weight_gather"] == 9 * 8 * 16 / 4 * 2
    assert sent["forward_reduce"] == 2 * 64 * 0.25 * 16 / 2 * 2
    assert sent["backward_reduce"] == 2 * 64 * 0.25 * 8 / 2 * 2


def test_the_embedding_sends_what_a_vocabulary_split_over_x_and_y_needs():
    question = job(gpt(vocabulary=50257), batch=48)
    layout = Layout(x=2, y=4, z=2, data=3, micro_batch=2)
    part = 51200 * 1024 / 8  # 50257 padded to a multiple of 128 * 8
    hidden = 2 * 1024 * 1024 * 2  # sequences, tokens, features, bytes
    steps = 48 / (2 * 3 * 2)
    assert buffers(question, layout, "embedding") == [
        ("all-gather", "z", part * 2, steps),
        ("all-reduce", "xy", hidden, steps),
        ("all-gather", "y", hidden, steps),
        ("reduce-scatter", "z", part * 2, steps),
        ("all-reduce", "data", part / 2 * 4, 1),
    ]


@pytest.mark.parametrize("tied", [True, False])
def test_the_head_gathers_hidden_states_and_reduces_the_loss_three_times_in_fp32(tied):
    question = job(gpt(tied=tied), batch=48)
    layout = Layout(x=2, y=4, z=2, data=3, micro_batch=2)
    part, tokens = 51200 * 1024 / 8, 2 * 1024
    own = [("reduce-scatter", "z", part * 2, 4), ("all-reduce", "data", part / 2 * 4, 1)]
    assert buffers(question, layout, "head") == [
        ("all-gather", "z", part * 2, 4),
        ("all-gather", "y", tokens * 1024 * 2, 4),
        ("all-reduce", "xy", tokens * 4, 12),
        ("all-reduce", "xy", tokens * 1024 * 2, 4),
        *([] if tied else own),
    ]


def test_the_paper_s_model_knows_neither_embedding_nor_head():
    assert communication_time(job(fidelity="paper"), Layout(x=2, y=2, z=2, data=2)).vocabulary == 0
    assert communication_time(job(fidelity="flat"), Layout(x=2, y=2, z=2, data=2)).vocabulary > 0


def test_transposed_layers_use_the_other_axis_and_keep_their_ranks_at_flat_fidelity():
    # x is innermost and inside a node of four, y outside it.
    layout = Layout(x=4, y=4, z=1, data=1, placement=PAPER)
    question = job(linears(Linear(name="l", inputs=64, outputs=64, transposed=True, bias=False)), fidelity="flat")
    found = {collective.term: collective.link for collective in traffic(question, layout)}
    plain = links(question, layout)
    assert (found["forward_reduce"].axis, found["backward_reduce"].axis) == (plain["x"].axis, plain["y"].axis)
    assert (found["forward_reduce"].inner, found["backward_reduce"].inner) == (1, 4)


def test_transposed_layers_exchange_places_too_at_paper_fidelity():
    layout = Layout(x=2, y=8, z=1, data=1, placement=PAPER)
    question = job(linears(Linear(name="l", inputs=64, outputs=64, transposed=True, bias=False)), fidelity="paper")
    found = {collective.term: collective.link for collective in traffic(question, layout)}
    # As if the grid were 8 x 2: its y has 2 ranks, 8 apart; its x has 8 ranks, neighbours.
    assert (found["forward_reduce"].size, found["forward_reduce"].inner) == (2, 8)
    assert (found["backward_reduce"].size, found["backward_reduce"].inner) == (8, 1)


def test_gradients_are_summed_over_data_as_they_accumulate_unless_told_otherwise():
    model = linears(Linear(name="l", inputs=64, outputs=64, bias=False))
    sent = {
        (fidelity, asked): next(
            found.buffer
            for found in traffic(
                job(model, fidelity=fidelity, data_gradient_bytes=asked), Layout(x=1, y=1, z=1, data=2, micro_batch=32)
            )
            if found.term == "data_reduce"
        )
        / 4096
        for fidelity in ("paper", "flat")
        for asked in (None, 3)
    }
    assert sent == {("paper", None): 2, ("paper", 3): 3, ("flat", None): 4, ("flat", 3): 3}


def test_the_latency_of_a_ring_is_its_hops_times_theirs():
    # 8 ranks over two nodes of 4: two hops between nodes (5 us) and five inside (1 us), in every call.
    asked = job(gpt(), machine(4), batch=8)
    layout = Layout(x=1, y=1, z=8, data=1)
    sent = [entry for entry in traffic(asked, layout) if entry.link.axis == "z"]
    rounds = sum(float(entry.calls) * (2 if entry.operation == "all-reduce" else 1) for entry in sent)
    assert ring_latency(asked, traffic(asked, layout)) == pytest.approx(rounds * (2 * 5e-6 + 5 * 1e-6))


def test_an_all_reduce_goes_round_twice_and_one_rank_not_at_all():
    asked = job(gpt(), machine(4), batch=8)
    calls = sum(
        float(entry.calls) for entry in traffic(asked, Layout(x=1, y=1, z=1, data=4)) if entry.link.axis == "data"
    )
    assert ring_latency(asked, traffic(asked, Layout(x=1, y=1, z=1, data=4))) == pytest.approx(calls * 2 * 3 * 1e-6)
    assert ring_latency(asked, traffic(asked, Layout(x=1, y=1, z=1, data=1))) == 0


def over_data(layer, repeat, **question):
    """The all-reduce of a weight's gradient over 16 ranks of data."""
    layout = Layout(x=1, y=1, z=1, data=16)
    asked = job(linears(layer, repeat=repeat), batch=16, **question)
    (found,) = [one for one in traffic(asked, layout) if one.term == "data_reduce"]
    return found


@pytest.mark.parametrize("repeat", [1, 7])
def test_gradients_that_fit_into_one_bucket_take_one_all_reduce_over_data(repeat):
    found = over_data(Linear(name="l", inputs=64, outputs=64, bias=False), repeat, fidelity="full")
    whole = replace(found, buffer=repeat * found.buffer, bucket=None, calls=1)
    assert found.sent == pytest.approx(1)
    assert found.total == pytest.approx(whole.total)
    assert repeat == 1 or found.total < repeat * replace(found, bucket=None).time


def test_a_weight_as_large_as_a_bucket_travels_alone():
    found = over_data(Linear(name="l", inputs=8192, outputs=8192, bias=False), 3, fidelity="full")
    assert found.buffer > BUCKET
    assert (found.sent, found.time) == (3, replace(found, bucket=None).time)


def test_buckets_hold_no_more_than_64_mib_of_smaller_weights():
    found = over_data(Linear(name="l", inputs=1024, outputs=1024, bias=False), 160, fidelity="full")
    assert found.sent == pytest.approx(160 * 1024**2 * 4 / BUCKET)


def test_gradients_may_travel_one_by_one_as_axonn_sends_them():
    found = over_data(Linear(name="l", inputs=64, outputs=64, bias=False), 7, fidelity="full", bucket=0.0)
    assert (found.sent, found.time) == (7, replace(found, bucket=None).time)


def test_without_a_start_up_time_it_does_not_matter_what_travels_together():
    found = over_data(Linear(name="l", inputs=64, outputs=64, bias=False), 7, fidelity="flat")
    assert (found.bucket, found.sent) == (None, 7)
