"""What must hold for any grid, model and machine, whatever the numbers."""

from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from machines import EVERY_SHAPE, four_layers, gpt, job, linears, machine, script_machine, with_bandwidths
from perfmodel.costs import ring
from perfmodel.costs.bandwidth import Bandwidths
from perfmodel.costs.straddling import fewest_members
from perfmodel.machines import profiles
from perfmodel.memory.per_device import Memory, memory_per_device
from perfmodel.models.model import Block, Model
from perfmodel.numerics import divisors
from perfmodel.parallel.choices import RECOMPUTES, WEIGHT_CACHES
from perfmodel.parallel.enumeration import factorizations, placed
from perfmodel.parallel.layout import PLACEMENTS, Layout
from perfmodel.parallel.rules import first_broken, grid_rules
from perfmodel.parallel.sharding import replicated_parameters, sharded_parameters
from perfmodel.step.flops import compute_time
from perfmodel.step.predict import predict, step_time
from perfmodel.traffic.per_step import communication_time, traffic

MODELS = (
    gpt(),
    gpt(tied=False, kv_heads=4, gated=True, rms_norm=True, bias=False, vocabulary=50257),
    gpt(query_key_norm=True, head_bias=True, norms=4, embedding_norm=True),
    linears(*four_layers(960), repeat=3),
    linears(*four_layers(512), checkpointed=False),
)
MACHINES = (*EVERY_SHAPE, script_machine("perlmutter"), script_machine("frontier"))
CHOICES = st.fixed_dictionaries(
    {
        "optimizer": st.sampled_from(["adamw", "sgd"]),
        "flash_attention": st.booleans(),
        "dropout": st.booleans(),
        "data_gradient_bytes": st.sampled_from([None, 2, 4]),
        "vocabulary_multiple": st.sampled_from([0, 1, 128]),
    }
)


def jobs(*fidelities):
    return st.builds(
        lambda model, where, fidelity, chosen: job(model, where, batch=720, fidelity=fidelity, **chosen),
        st.sampled_from(MODELS),
        st.sampled_from(MACHINES),
        st.sampled_from(fidelities),
        CHOICES,
    )


JOBS = jobs("full", "flat", "paper")
COUNTS = st.sampled_from([1, 2, 3, 4, 6, 8, 12, 16, 24, 36, 48, 60, 72, 144, 192, 720, 1000])


@st.composite
def layouts(draw, gpus=COUNTS):
    """Many layouts of one count, every column different."""
    grids = placed(draw(gpus), tuple(range(len(PLACEMENTS))))
    rows = draw(st.lists(st.integers(0, len(grids.x) - 1), min_size=1, max_size=8))
    grids = grids.take(np.array(rows))
    columns = {"micro_batch": [1, 2, 3, 5], "recompute": [0, 1, 2], "weight_cache": [0, 1, 2]}
    drawn = {
        name: np.array(draw(st.lists(st.sampled_from(values), min_size=len(rows), max_size=len(rows))))
        for name, values in columns.items()
    }
    return replace(grids, **drawn)


@st.composite
def one_layout(draw, gpus=COUNTS):
    return draw(layouts(gpus)).take(0)


def terms(record):
    return {field.name: getattr(record, field.name) for field in fields(record)}


def at(value, row):
    return np.broadcast_to(value, np.shape(value) or (row + 1,))[row]


# One and many


@given(JOBS, layouts())
def test_row_i_of_many_layouts_is_the_single_call_exactly(question, many):
    whole = predict(question, many)
    for row in range(len(many.x)):
        one = many.take(row)
        single = predict(question, one)
        for record in ("communication", "memory"):
            for name, value in terms(getattr(whole, record)).items():
                assert at(value, row) == getattr(getattr(single, record), name), name
        assert at(whole.compute, row) == single.compute
        assert at(whole.utilization, row) == single.utilization
        assert at(whole.step, row) == single.step
        assert at(step_time(question, many), row) == step_time(question, one)


@given(JOBS, layouts())
def test_row_i_of_every_collective_and_link_is_the_single_call_exactly(question, many):
    whole = list(traffic(question, many))
    for row in range(len(many.x)):
        for batch, single in zip(whole, traffic(question, many.take(row)), strict=True):
            for name in ("buffer", "calls", "time", "total"):
                assert at(getattr(batch, name), row) == getattr(single, name), (batch.layer, batch.term, name)
            for name in ("size", "inner", "bandwidth"):
                assert at(getattr(batch.link, name), row) == getattr(single.link, name), (batch.layer, batch.term, name)


@given(JOBS, layouts())
def test_row_i_of_the_rules_is_the_single_call_exactly(question, many):
    rules = grid_rules(question)
    assert first_broken(rules, many).tolist() == [int(first_broken(rules, many.take(i))) for i in range(len(many.x))]


# Communication


@given(JOBS, st.integers(1, 5))
def test_one_rank_communicates_nothing(question, micro_batch):
    assert communication_time(question, Layout(x=1, y=1, z=1, data=1, micro_batch=micro_batch)).total == 0


@given(JOBS, one_layout())
def test_only_split_axes_communicate(question, layout):
    sizes = {"x": layout.x, "y": layout.y, "z": layout.z, "data": layout.data, "xy": layout.x * layout.y}
    for collective in traffic(question, layout):
        assert (collective.total > 0) == (collective.link.size > 1)
        assert sizes[collective.link.axis] == collective.link.size


@given(JOBS, one_layout())
def test_terms_add_up_to_the_total_and_to_the_sum_of_the_collectives(question, layout):
    found = communication_time(question, layout)
    assert sum(terms(found).values()) == pytest.approx(found.total)
    assert sum(collective.total for collective in traffic(question, layout)) == pytest.approx(found.total)


@given(
    JOBS,
    one_layout(),
    st.sampled_from(["activation_bytes", "weight_bytes", "gradient_bytes", "data_gradient_bytes"]),
    st.floats(1, 1.9),  # at twice, activations are fp32, and what is computed in fp32 needs no copy
)
def test_more_bytes_are_never_cheaper_in_time_or_memory(question, layout, name, factor):
    settings = replace(question.settings, data_gradient_bytes=question.settings.sent_gradient_bytes)
    larger = replace(settings, **{name: factor * getattr(settings, name)})
    lean, fat = (replace(question, settings=chosen) for chosen in (settings, larger))
    before, after = terms(communication_time(lean, layout)), terms(communication_time(fat, layout))
    assert all(after[term] >= before[term] for term in before)
    assert memory_per_device(fat, layout).total >= memory_per_device(lean, layout).total * (
        1 - 1e-9
    )  # terms are those of the fullest moment


@given(size=st.integers(1, 4096), buffer=st.floats(0, 1e15), bandwidth=st.floats(1, 1e13))
def test_an_all_reduce_is_a_reduce_scatter_and_an_all_gather(size, buffer, bandwidth):
    group = {"size": size, "bandwidth": bandwidth}
    halves = ring.reduce_scatter(buffer, **group) + ring.all_gather(buffer, **group)
    assert ring.all_reduce(buffer, **group) == pytest.approx(halves, rel=1e-12)


def exchanged_order(code):
    swapped = {"x": "y", "y": "x"}
    return PLACEMENTS.index(tuple(swapped.get(axis, axis) for axis in PLACEMENTS[code]))


def flipped(model):
    """The same model with normal layers transposed and transposed ones normal."""
    blocks = (
        Block(
            name=b.name,
            layers=tuple(replace(layer, transposed=not layer.transposed) for layer in b.layers),
            repeat=b.repeat,
            checkpointed=b.checkpointed,
        )
        for b in model.blocks
    )
    return Model(name=model.name, sequence=model.sequence, blocks=tuple(blocks))


LINEARS = st.sampled_from(MODELS[3:])


@given(LINEARS, st.sampled_from(MACHINES), one_layout())
def test_exchanging_x_and_y_with_their_places_and_the_layers_roles_changes_nothing(model, where, layout):
    mirrored = replace(layout.exchanged(), placement=exchanged_order(layout.placement))
    here, there = job(model, where), job(flipped(model), where)
    assert communication_time(there, mirrored).total == pytest.approx(communication_time(here, layout).total, rel=1e-12)
    mine, theirs = memory_per_device(here, layout), memory_per_device(there, mirrored)
    assert theirs.weights == pytest.approx(mine.weights)
    assert theirs.activations == pytest.approx(mine.activations)


@given(LINEARS, st.sampled_from(MACHINES), one_layout())
def test_at_paper_fidelity_it_holds_without_moving_the_places(model, where, layout):
    here, there = (job(chosen, where, fidelity="paper") for chosen in (model, flipped(model)))
    assert communication_time(there, layout.exchanged()).total == pytest.approx(
        communication_time(here, layout).total, rel=1e-12
    )


@given(jobs("flat", "paper"), one_layout(), st.floats(1e-3, 1e3))
def test_below_full_fidelity_scaling_bytes_and_bandwidths_together_changes_nothing(question, layout, factor):
    settings, bandwidths = question.settings, question.costs.bandwidths
    sizes = {name: factor * getattr(settings, name) for name in ("activation_bytes", "weight_bytes", "gradient_bytes")}
    settings = replace(settings, **sizes, data_gradient_bytes=factor * settings.sent_gradient_bytes)
    rates = {name: factor * getattr(bandwidths, name) for name in ("inside", "between", "links")}
    scaled = with_bandwidths(replace(question, settings=settings), **rates)
    before, after = communication_time(question, layout), communication_time(scaled, layout)
    for name in ("weight_gather", "gradient_scatter", "forward_reduce", "backward_reduce", "data_reduce"):
        assert getattr(after, name) == pytest.approx(getattr(before, name))


@given(JOBS, one_layout(), st.sampled_from(["inside", "between"]), st.floats(1, 100))
def test_more_bandwidth_is_never_slower(question, layout, name, factor):
    faster = with_bandwidths(question, **{name: factor * getattr(question.costs.bandwidths, name)})
    before, after = communication_time(question, layout), communication_time(faster, layout)
    assert all(after_ <= before_ for before_, after_ in zip(terms(before).values(), terms(after).values(), strict=True))


def device_links(where):
    return where.fabric.device_bandwidth.value if where.fabric.device_bandwidth else float("inf")


@given(JOBS, one_layout())
def test_no_collective_beats_the_links_of_a_device_or_the_way_out_of_a_node(question, layout):
    bandwidths, domain = question.costs.bandwidths, question.machine.domain
    for collective in traffic(question, layout):
        link = collective.link
        if link.size == 1:
            continue
        share = (link.size - 1) / link.size * (2 if collective.operation == "all-reduce" else 1)
        achieved = share * collective.buffer / collective.time
        assert achieved <= device_links(question.machine) * (1 + 1e-12)
        if link.inner * link.size > max(domain, 1) and layout.gpus > domain:
            assert achieved <= bandwidths.between * (1 + 1e-12)
            assert achieved * min(domain, link.inner) <= bandwidths.between * (1 + 1e-12)


@pytest.mark.parametrize("name", profiles.names())
def test_no_shipped_machine_has_a_group_that_beats_its_own_links(name):
    where = profiles.load(name)
    bandwidths, domain = Bandwidths.of(where), where.domain
    for inner in (1, 2, 3, 4, 8, 64):
        for size in (2, 3, 4, 8, 16, 72):
            gpus = inner * size * 4
            if where.network.topology == "none" and gpus > domain:
                continue
            found = bandwidths.of_group(inner=inner, size=size, gpus=gpus)
            assert 0 < found <= device_links(where)
            if not bandwidths.contained(inner=inner, size=size, gpus=gpus):
                members = int(fewest_members(inner=inner, size=size, domain=domain, gpus=gpus))
                if members > 1:
                    assert found <= bandwidths.of_group(inner=inner, size=members, gpus=inner * members)
                assert found <= where.network.injection.value * domain / where.node_devices / min(domain, inner)


# Grids


@given(st.integers(1, 3000))
def test_factorizations_are_all_the_ordered_ones_once_each_and_sorted(gpus):
    grids = [tuple(int(size) for size in row) for row in zip(*factorizations(gpus), strict=True)]
    expected = [
        (x, y, z, gpus // (x * y * z))
        for x in divisors(gpus)
        for y in divisors(gpus // x)
        for z in divisors(gpus // x // y)
    ]
    assert grids == expected


@given(layouts())
def test_the_product_of_the_axes_is_the_number_of_gpus(many):
    assert np.all(many.x * many.y * many.z * many.data == many.gpus)
    assert len(set(many.gpus.tolist())) == 1


# Memory


FINER = st.sampled_from(["x", "y", "z"])


@given(JOBS, one_layout(), FINER, st.sampled_from([2, 3, 4]))
def test_what_is_stored_never_grows_as_an_axis_grows(question, layout, axis, factor):
    """Not what is gathered (from Z = 2 on) nor communicators; what tokens take is of the fullest moment."""
    question = replace(question, settings=replace(question.settings, vocabulary_multiple=0))  # padding grows with x y
    finer = replace(layout, **{axis: factor * getattr(layout, axis)})
    before, after = memory_per_device(question, layout), memory_per_device(question, finer)
    for name in ("weights", "gradients", "optimizer"):
        assert getattr(after, name) <= getattr(before, name) * (1 + 1e-9), name
    if layout.z > 1:
        assert after.total - after.communicators <= (before.total - before.communicators) * (1 + 1e-9)


@given(JOBS, one_layout())
def test_data_parallel_ranks_hold_copies(question, layout):
    more = replace(layout, data=2 * layout.data)
    before, after = terms(memory_per_device(question, layout)), terms(memory_per_device(question, more))
    del before["communicators"], after["communicators"]
    assert before == after


@given(JOBS, one_layout())
def test_parts_add_up_to_the_whole_with_what_is_replicated_counted_once_a_copy(question, layout):
    """Sharded parameters times x y z are the weights and padded tables; nobody holds less than an even share."""
    model = question.model
    tables = weights = 0
    for block, layer in model.layers():
        weights += block.repeat * getattr(layer, "weight", 0)
        if type(layer).__name__ == "Embedding" or (type(layer).__name__ == "Head" and not layer.tied):
            tables += question.padded_vocabulary(layer.vocabulary, layout) * layer.width
    shards = layout.x * layout.y * layout.z
    held = sharded_parameters(question, layout)
    assert held * shards == pytest.approx(weights + tables, rel=1e-12)
    assert held + replicated_parameters(job(model), layout) >= model.parameters / shards * (1 - 1e-12)


@given(JOBS, one_layout())
def test_memory_terms_are_positive_and_add_up(question, layout):
    found = memory_per_device(question, layout)
    assert all(value >= 0 for value in terms(found).values())
    assert found.total == pytest.approx(sum(terms(found).values()), rel=1e-12)
    assert [field.name for field in fields(Memory)] == list(terms(found))


@given(JOBS, one_layout())
def test_more_recomputation_never_keeps_more_and_never_computes_less(question, layout):
    modes = [replace(layout, recompute=index) for index in range(len(RECOMPUTES))]
    kept = [memory_per_device(question, mode).activations for mode in modes]
    work = [compute_time(question, mode, question.costs.rate) for mode in modes]
    assert kept[0] >= kept[1] >= kept[2] * (1 - 1e-12)
    assert work[0] <= work[1] <= work[2]


@given(JOBS, one_layout(), st.integers(0, 2))
def test_more_caching_never_holds_less_and_never_gathers_more(question, layout, recompute):
    modes = [replace(layout, recompute=recompute, weight_cache=index) for index in range(len(WEIGHT_CACHES))]
    gathered = [communication_time(question, mode).weight_gather for mode in modes]
    assert gathered[0] >= gathered[1] >= gathered[2]
    held = [memory_per_device(question, mode).gathered_weights for mode in modes]
    assert held[0] <= held[1] <= held[2]


@given(JOBS, one_layout(), st.integers(2, 4))
def test_a_larger_micro_batch_takes_more_memory_and_no_more_time(question, layout, factor):
    larger = replace(layout, micro_batch=factor * layout.micro_batch)
    assert memory_per_device(question, larger).activations >= memory_per_device(question, layout).activations
    if question.batch % (larger.z * larger.data * larger.micro_batch) == 0:  # else a last micro-step is partly filled
        assert communication_time(question, larger).total <= communication_time(question, layout).total * (1 + 1e-12)


def test_a_machine_with_one_device_a_node_talks_only_between_nodes():
    question = job(linears(*four_layers(256)), machine(1, between=50e9))
    for collective in traffic(question, Layout(x=2, y=2, z=2, data=2)):
        assert collective.link.bandwidth == 50e9
