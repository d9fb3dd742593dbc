"""Time of arithmetic at a flat rate."""

from dataclasses import replace

import numpy as np
import pytest

from machines import four_layers, gpt, job, linears, machine
from perfmodel import models
from perfmodel.costs.gemm import gemm_rate
from perfmodel.errors import PerfmodelError
from perfmodel.machines import profiles
from perfmodel.machines.machine import DtypeRates
from perfmodel.models.model import closed_form_flops
from perfmodel.parallel.choices import RECOMPUTES
from perfmodel.parallel.job import Job
from perfmodel.parallel.layout import Layout
from perfmodel.step.flops import compute_time, hardware_flops, model_flops, utilization

NONE, SELECTIVE, FULL, OPERATIONS = range(len(RECOMPUTES))


def test_a_step_passes_three_times_over_every_weight():
    question = job(linears(*four_layers(64), repeat=5, sequence=16), batch=8)
    assert model_flops(question) == 3 * 2 * (12 * 64 * 64) * 5 * 16 * 8


def test_full_recomputation_repeats_the_blocks_and_not_the_head():
    question = job(batch=8)
    blocks = 8 * question.model.block_flops(1024)
    assert hardware_flops(question, Layout(x=1, y=1, z=1, data=1, recompute=NONE)) == model_flops(question)
    assert hardware_flops(question, Layout(x=1, y=1, z=1, data=1, recompute=FULL)) == model_flops(question) + blocks


def test_selective_recomputation_repeats_attention_only():
    question = job(batch=8)
    attention = 8 * 4 * 1024 * 1024 * 4 * 1024  # sequences, 4 tokens keys width, layers
    found = hardware_flops(question, Layout(x=1, y=1, z=1, data=1, recompute=SELECTIVE)) - model_flops(question)
    assert found == attention


def test_recomputation_of_operations_repeats_half_of_the_products():
    question = job(batch=8)
    products = 8 * (question.model.block_flops(1024) - question.model.attention_flops(1024))
    found = hardware_flops(question, Layout(x=1, y=1, z=1, data=1, recompute=OPERATIONS)) - model_flops(question)
    assert found == 0.5 * products


@pytest.mark.parametrize("recompute", [False, True])
@pytest.mark.parametrize("name", ["gpt-5b", "gpt-20b", "gpt-80b"])
def test_layers_add_up_to_the_paper_s_formula(name, recompute):
    question = Job.of(models.load(name), profiles.load("perlmutter"), batch=8192)
    shape = question.model.transformer
    closed = closed_form_flops(
        batch=8192, sequence=2048, layers=shape.layers, hidden=shape.hidden, vocabulary=51200, recompute=recompute
    )
    layout = Layout(x=1, y=1, z=512, data=1, recompute=FULL if recompute else NONE)
    assert hardware_flops(question, layout) == pytest.approx(closed, rel=1e-12)


@pytest.mark.parametrize("mode", [NONE, SELECTIVE, FULL])
def test_every_rank_of_y_repeats_the_attention_of_the_others(mode):
    question = job(batch=8)
    attention = 8 * question.model.attention_flops(1024)
    passes = {NONE: 3, SELECTIVE: 4, FULL: 4}[mode]
    alone, four = (hardware_flops(question, Layout(x=2, y=y, z=1, data=1, recompute=mode)) for y in (1, 4))
    assert four - alone == pytest.approx(3 * passes * attention, rel=1e-12)


def test_without_attention_work_is_split_evenly_over_every_axis():
    question = job(linears(*four_layers(64)))
    rate = question.costs.rate
    grids = Layout(
        x=np.array([16, 1, 1, 1, 2]),
        y=np.array([1, 16, 1, 1, 2]),
        z=np.array([1, 1, 16, 1, 2]),
        data=np.array([1, 1, 1, 16, 2]),
    )
    times = compute_time(question, grids, rate)
    assert set(times.tolist()) == {model_flops(question) / 16 / rate.value}


def test_a_flat_103_tflops_a_gcd_gives_frontier_s_computation_times():
    # arXiv 2502.08145, figure 7, last bars: seconds of computation on 512 to 8192 GCDs, read off the figure.
    frontier = profiles.load("frontier")
    for name, gcds, seconds in (("gpt-5b", 512, 13.84), ("gpt-10b", 1024, 13.87), ("gpt-80b", 8192, 12.44)):
        question = Job.of(models.load(name), frontier, batch=8192)
        rate = replace(question.costs.rate, value=103e12)
        assert compute_time(question, Layout(x=1, y=1, z=gcds, data=1, recompute=FULL), rate) == pytest.approx(
            seconds, rel=0.02
        )


def test_the_measured_rate_goes_before_an_efficiency_of_the_peak():
    where = machine(gemm=80e12)
    assert gemm_rate(where).value == 80e12
    assert gemm_rate(where).origin == "measured GEMM rate in bf16, assumed [T]"
    device = replace(where.device, gemm=DtypeRates(), gemm_efficiency=replace(where.node.devices, value=0.5))
    derived = gemm_rate(replace(where, device=device))
    assert (derived.value, derived.origin) == (50e12, "0.5 x bf16 peak, assumed [T]")


def test_a_device_without_either_in_the_format_that_it_trains_in_is_refused_in_a_sentence():
    device = machine().device
    with pytest.raises(PerfmodelError, match="neither gemm nor gemm_efficiency"):
        replace(
            device,
            peak=DtypeRates(bf16=device.peak.bf16, fp16=device.peak.bf16),
            gemm=DtypeRates(fp16=device.peak.bf16),
        )


def test_utilization_is_one_when_the_peak_is_reached():
    question = job()
    ideal = model_flops(question) / (16 * 100e12)
    assert utilization(question, Layout(x=2, y=2, z=2, data=2), ideal) == 1
    assert utilization(question, Layout(x=2, y=2, z=2, data=2), 2 * ideal) == 0.5


def test_utilization_counts_no_recomputation():
    question = job(gpt())
    layouts = [Layout(x=1, y=1, z=1, data=1, recompute=mode) for mode in (NONE, FULL)]
    assert len({utilization(question, layout, 1.0) for layout in layouts}) == 1
