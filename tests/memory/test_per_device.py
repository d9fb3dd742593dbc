"""Bytes on a device: published memory figures, and each term on its own."""

from dataclasses import fields, replace

import numpy as np
import pytest

from machines import golden, job, linears, machine
from perfmodel.machines import profiles
from perfmodel.memory.per_device import Memory, capacity, memory_per_device
from perfmodel.models.layers import Linear
from perfmodel.models.model import Transformer
from perfmodel.parallel.choices import OPTIMIZERS, RECOMPUTES, WEIGHT_CACHES
from perfmodel.parallel.enumeration import placed
from perfmodel.parallel.job import Job
from perfmodel.parallel.layout import Layout
from perfmodel.parallel.rules import first_broken, grid_rules
from perfmodel.parallel.settings import Settings
from perfmodel.units import GIBI

FULL, FORWARD = RECOMPUTES.index("full"), WEIGHT_CACHES.index("forward")


def decoder(row):
    sizes = {"vocabulary": 51200, "sequence": 2048, "learned_positions": 2048}
    return Transformer(layers=int(row["layers"]), hidden=int(row["hidden"]), heads=int(row["heads"]), **sizes).model(
        row["model"]
    )


def smallest_that_fits(question):
    """The smallest power of two of tensor ranks with a grid that keeps the rules and fits, one sequence at a time."""
    for degree in (2**power for power in range(12)):
        grids = placed(degree, (0,))
        grids = grids.take((grids.data == 1) & (first_broken(grid_rules(question), grids) == len(grid_rules(question))))
        ones = np.ones_like(grids.x)
        grids = replace(grids, micro_batch=ones, recompute=FULL * ones, weight_cache=FORWARD * ones)
        if np.any(memory_per_device(question, grids).total <= capacity(question)):
            return degree
    return None


@pytest.mark.parametrize("row", golden("minimum_tensor_degrees"), ids=lambda row: row["model"])
def test_smallest_tensor_degrees_are_the_authors_within_a_factor_of_two(row):
    question = Job.of(decoder(row), profiles.load("perlmutter"), batch=8192, settings=Settings())
    assert int(row["least"]) / 2 <= smallest_that_fits(question) <= 2 * int(row["least"])


def test_nine_of_the_ten_smallest_tensor_degrees_are_exactly_the_authors():
    perlmutter = profiles.load("perlmutter")
    found = [
        smallest_that_fits(Job.of(decoder(row), perlmutter, batch=8192)) == int(row["least"])
        for row in golden("minimum_tensor_degrees")
    ]
    assert sum(found) == 9


@pytest.fixture
def korthikanti():
    """{recomputation: memory} of the 22B of Korthikanti et al.: tensor degree 8, micro-batch 4."""
    model = Transformer(
        layers=48, hidden=6144, heads=64, vocabulary=51200, sequence=2048, learned_positions=2048
    ).model("22B")
    question = job(model, machine(8), batch=4, flash_attention=False, dropout=True)
    modes = enumerate(RECOMPUTES)
    return {
        mode: memory_per_device(question, Layout(x=8, y=1, z=1, data=1, micro_batch=4, recompute=index))
        for index, mode in modes
    }


@pytest.mark.parametrize("row", golden("korthikanti_22b"), ids=lambda row: row["quantity"])
def test_a_22b_with_tensor_degree_8_holds_what_korthikanti_report_within_a_tenth(korthikanti, row):
    none, selective, full, _ = (korthikanti[mode] for mode in RECOMPUTES)
    found = {
        "weights_gradients_optimizer_GiB": (none.weights + none.gradients + none.optimizer) / GIBI,
        "activations_GiB": none.activations / GIBI,
        "full_percent": 100 * full.activations / none.activations,
        "selective_percent": 100 * selective.activations / none.activations,
    }
    assert found[row["quantity"]] == pytest.approx(float(row["value"]), rel=0.1)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers_cost_their_bytes_a_parameter(name):
    model = linears(Linear(name="layer", inputs=64, outputs=64, bias=False))
    found = memory_per_device(job(model, optimizer=name), Layout(x=1, y=1, z=1, data=1))
    assert found.weights == 2 * 4096
    assert found.gradients == OPTIMIZERS[name].gradient * 4096
    assert found.optimizer == OPTIMIZERS[name].state * 4096


def test_a_communicator_is_counted_for_each_axis_that_is_split():
    settings = {"communicator_buffer": 7.0, "reserve": 5.0}
    found = [
        memory_per_device(job(**settings), layout)
        for layout in (Layout(x=1, y=1, z=1, data=1), Layout(x=2, y=1, z=8, data=1), Layout(x=2, y=2, z=2, data=2))
    ]
    assert [memory.communicators for memory in found] == [0, 14, 28]
    assert [memory.reserve for memory in found] == [5, 5, 5]


def test_the_total_is_the_sum_of_the_terms():
    found = memory_per_device(job(), Layout(x=2, y=2, z=2, data=2))
    assert found.total == sum(getattr(found, term.name) for term in fields(Memory))


def test_capacity_is_the_device_s_memory():
    assert capacity(job(where=machine(memory=12e9))) == 12e9
