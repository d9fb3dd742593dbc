"""Paper and flat fidelity run on quantities with units: every term is a time, a size or a rate, for one and many."""

from dataclasses import fields, replace

import numpy as np
import pint
import pytest

from machines import gpt, job
from perfmodel.costs.bandwidth import shared_between
from perfmodel.costs.gemm import GemmRate
from perfmodel.costs.ring import all_gather, all_reduce, reduce_scatter
from perfmodel.memory import activations, peak
from perfmodel.memory.per_device import memory_per_device
from perfmodel.models import model
from perfmodel.parallel import settings
from perfmodel.parallel.choices import Optimizer
from perfmodel.parallel.enumeration import placed
from perfmodel.parallel.layout import Layout
from perfmodel.step.flops import compute_time, hardware_flops, model_flops
from perfmodel.traffic import per_layer, per_step
from perfmodel.traffic.per_step import communication_time, traffic

UNITS = pint.UnitRegistry()
UNITS.define("flop = [operation]")
UNITS.define("octet = [information]")  # pint's own byte is a pure number, so a forgotten factor would not be seen
BYTE, SECOND, FLOP = UNITS.octet, UNITS.second, UNITS.flop
PLAIN = settings.Settings().resolve("bf16")
RATE = GemmRate(80e12 * FLOP / SECOND, "a round number")


@pytest.fixture
def question(monkeypatch):
    """A job whose sizes, bandwidths and FLOPs carry units; constants in bytes an element get theirs too."""
    constants = (
        (per_layer, "FP32"),
        (per_step, "FP32"),
        (peak, "_FP32"),
        *((activations, n) for n in ("_FP32", "_MASK", "_TOKEN")),
    )
    for module, name in constants:
        monkeypatch.setattr(module, name, getattr(module, name) * BYTE)
    sized = {
        name: Optimizer(o.state * BYTE, o.gradient * BYTE, o.copy * BYTE) for name, o in settings.OPTIMIZERS.items()
    }
    monkeypatch.setattr(settings, "OPTIMIZERS", sized)
    monkeypatch.setattr(settings, "_BYTES", {name: size * BYTE for name, size in settings._BYTES.items()})
    plain = model.layer_flops
    monkeypatch.setattr(model, "layer_flops", lambda layer, sequence: plain(layer, sequence) * FLOP)

    def build(**chosen):
        sizes = (
            "activation_bytes", "weight_bytes", "stored_weight_bytes", "gradient_bytes", "reserve",
            "communicator_buffer",
        )  # fmt: skip
        given = {name: getattr(PLAIN, name) * BYTE for name in sizes}
        found = job(gpt(tied=False, head_bias=True, query_key_norm=True), **given, **{"fidelity": "flat"} | chosen)
        bandwidths = found.costs.bandwidths
        rate = BYTE / SECOND
        rates = {name: getattr(bandwidths, name) * rate for name in ("inside", "between", "links")}
        return replace(found, costs=replace(found.costs, bandwidths=replace(bandwidths, **rates)))

    return build


def many():
    grids = placed(16, (0, 5))
    modes = np.arange(len(grids.x)) % 3
    return replace(grids, micro_batch=np.ones_like(grids.x), recompute=modes, weight_cache=(modes + 1) % 3)


LAYOUTS = [Layout(x=2, y=2, z=2, data=2), Layout(x=1, y=1, z=1, data=1, recompute=2), many()]
ONE_OR_MANY = pytest.mark.parametrize("layout", LAYOUTS, ids=["one", "one rank", "many"])
CHOICES = [{}, {"fidelity": "paper"}, {"flash_attention": False, "dropout": True}, {"data_gradient_bytes": 4 * BYTE}]


def is_in(quantity, unit, shape):
    """Whether a quantity has the unit's dimension and one value a layout; a term that is not counted is a plain 0."""
    if not isinstance(quantity, pint.Quantity):
        return bool(np.all(quantity == 0))
    return quantity.check(unit.dimensionality) and np.shape(quantity.magnitude) in ((), shape)


@ONE_OR_MANY
@pytest.mark.parametrize("chosen", CHOICES, ids=str)
def test_every_term_of_communication_is_a_time(question, chosen, layout):
    found = communication_time(question(**chosen), layout)
    for term in fields(found):
        assert is_in(getattr(found, term.name), SECOND, np.shape(layout.gpus)), term.name
    assert found.total.check("[time]")


@ONE_OR_MANY
@pytest.mark.parametrize("chosen", CHOICES, ids=str)
def test_every_buffer_is_a_size_every_bandwidth_a_rate_and_every_count_a_number(question, chosen, layout):
    for collective in traffic(question(**chosen), layout):
        assert is_in(collective.buffer, BYTE, np.shape(layout.gpus)), collective
        assert is_in(collective.link.bandwidth, BYTE / SECOND, np.shape(layout.gpus)), collective
        assert not isinstance(collective.calls, pint.Quantity)


@ONE_OR_MANY
@pytest.mark.parametrize("chosen", CHOICES, ids=str)
def test_every_term_of_memory_is_a_size(question, chosen, layout):
    found = memory_per_device(question(**chosen), layout)
    for term in fields(found):
        assert is_in(getattr(found, term.name), BYTE, np.shape(layout.gpus)), term.name
    assert found.total.check(BYTE.dimensionality)


@ONE_OR_MANY
def test_flops_over_a_rate_are_a_time(question, layout):
    asked = question()
    assert model_flops(asked).check("[operation]")
    assert hardware_flops(asked, layout).check("[operation]")
    assert is_in(compute_time(asked, layout, RATE), SECOND, np.shape(layout.gpus))


@pytest.mark.parametrize("collective", [all_gather, reduce_scatter, all_reduce])
def test_bytes_over_a_bandwidth_are_a_time(collective):
    assert collective(1e9 * BYTE, size=4, bandwidth=25e9 * BYTE / SECOND).check("[time]")


def test_a_share_of_a_bandwidth_is_a_bandwidth():
    shared = shared_between(100e9 * BYTE / SECOND, sharing=np.array([1, 2, 4]))
    assert (shared.to(BYTE / SECOND).magnitude / 1e9).tolist() == [100, 50, 25]


def test_the_check_sees_a_wrong_unit():
    assert not is_in(1.0 * BYTE, SECOND, ())
    assert not is_in(1.0, SECOND, ())
