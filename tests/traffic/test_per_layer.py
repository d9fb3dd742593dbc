"""What each kind of layer sends: its collectives, their bytes and calls, and where they go."""

from dataclasses import replace

import pytest

from machines import gpt, job, linears
from perfmodel.models.layers import Linear
from perfmodel.parallel.choices import RECOMPUTES, WEIGHT_CACHES
from perfmodel.parallel.layout import NAMED_PLACEMENTS, Layout
from perfmodel.parallel.settings import BUCKET
from perfmodel.traffic.links import links
from perfmodel.traffic.per_step import communication_time, traffic

PAPER = NAMED_PLACEMENTS["paper"][0]
FULL = RECOMPUTES.index("full")
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
