"""Sizes of elements: as the user says, else by the number format that products run in."""

from dataclasses import replace

import pytest

from machines import figure, gpt, job, linears, machine
from perfmodel.errors import PerfmodelError, UsageError
from perfmodel.machines.machine import DtypeRates
from perfmodel.memory.per_device import memory_per_device
from perfmodel.models.layers import Linear
from perfmodel.parallel.choices import OPTIMIZERS
from perfmodel.parallel.job import Job
from perfmodel.parallel.layout import Layout
from perfmodel.parallel.settings import CONTENTION, HOST_TIME, Settings
from perfmodel.traffic.per_step import traffic

NAMES = ("activation_bytes", "weight_bytes", "gradient_bytes")


def with_rates(dtype):
    """The machine of four, its device able to calculate in one format only."""
    rates = DtypeRates(**{dtype: figure(1e12)})
    return replace(machine(), device=replace(machine().device, peak=rates, gemm=rates))


@pytest.mark.parametrize(("dtype", "size"), [("bf16", 2), ("fp16", 2), ("fp32", 4)])
def test_elements_are_as_long_as_the_format_of_the_products(dtype, size):
    question = job(where=with_rates(dtype))
    assert question.dtype == dtype
    assert [getattr(question.settings, name) for name in NAMES] == [size] * 3


@pytest.mark.parametrize("name", NAMES)
def test_a_size_that_the_user_gives_holds_in_every_format(name):
    for dtype in ("bf16", "fp32"):
        assert getattr(job(where=with_rates(dtype), **{name: 3}).settings, name) == 3


def test_a_job_in_fp32_holds_and_sends_twice_the_bytes():
    single, half = (job(where=with_rates(dtype)) for dtype in ("fp32", "bf16"))
    layout = Layout(x=1, y=2, z=2, data=1)
    double, plain = memory_per_device(single, layout), memory_per_device(half, layout)
    assert double.weights == 2 * plain.weights
    assert double.gathered_weights == 2 * plain.gathered_weights
    for ours, theirs in zip(traffic(single, layout), traffic(half, layout), strict=True):
        if ours.term in ("weight_gather", "gradient_scatter", "forward_reduce", "backward_reduce"):
            assert ours.buffer == 2 * theirs.buffer


def test_weights_in_fp32_need_no_master_copy():
    model = linears(Linear(name="layer", inputs=64, outputs=64, bias=False))
    for name, optimizer in OPTIMIZERS.items():
        found = memory_per_device(job(model, with_rates("fp32"), optimizer=name), Layout(x=1, y=1, z=1, data=1))
        assert found.optimizer == 4096 * (optimizer.state - optimizer.copy)
    assert memory_per_device(job(model, with_rates("fp32")), Layout(x=1, y=1, z=1, data=1)).optimizer == 4096 * 8


def test_settings_that_are_decided_stay_as_they_are_in_another_job():
    question = job(where=with_rates("fp32"))
    again = Job.of(gpt(), machine(), batch=64, settings=question.settings)
    assert again.settings.weight_bytes == 4
    assert Settings().resolve("bf16") == Settings(weight_bytes=2).resolve("fp16")


@pytest.mark.parametrize("contention", [-0.1, 1.1, float("nan")])
def test_side_by_side_can_lose_neither_less_than_nothing_nor_more_than_all(contention):
    with pytest.raises(UsageError, match="wanted 0"):
        Settings(contention=contention)


@pytest.mark.parametrize(("name", "unit_value"), [("host_time", 9e-6), ("contention", 0.7)])
def test_what_a_profile_knows_of_the_framework_counts_unless_the_user_says_otherwise(name, unit_value):
    known = replace(machine(), device=replace(machine().device, **{name: figure(unit_value)}))
    assert getattr(job(where=known).settings, name) == unit_value
    assert getattr(job(where=known, **{name: 0.5}).settings, name) == 0.5
    assert getattr(job(where=machine()).settings, name) == {"host_time": HOST_TIME, "contention": CONTENTION}[name]


def test_a_contention_above_one_is_refused_in_a_profile():
    with pytest.raises(PerfmodelError, match=r"contention is 1\.2, wanted more than 0 and at most 1"):
        replace(machine().device, contention=figure(1.2))
