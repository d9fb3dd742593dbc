"""Figures that follow from the time of a step."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from machines import job
from perfmodel import models
from perfmodel.machines import profiles
from perfmodel.models.model import closed_form_flops
from perfmodel.parallel.choices import AXONN_OVERLAPS
from perfmodel.parallel.job import Job
from perfmodel.parallel.layout import Layout
from perfmodel.parallel.settings import Settings
from perfmodel.search.search import Space, rank
from perfmodel.step.flops import hardware_flops, model_flops
from perfmodel.step.predict import predict
from perfmodel.step.throughput import needed_flops, throughput, training_run


def derived(question, layout):
    rate = question.costs.rate
    prediction = predict(question, layout)
    return prediction, throughput(question, layout, prediction, rate)


@pytest.mark.parametrize("fidelity", ["flat", "full"])
def test_rates_and_shares_follow_from_the_step(fidelity):
    question, layout = job(fidelity=fidelity), Layout(x=2, y=2, z=2, data=2, micro_batch=4, recompute=2, weight_cache=1)
    prediction, found = derived(question, layout)
    assert found.tokens_per_second * prediction.step == pytest.approx(64 * 1024)
    assert found.sequences_per_second * 1024 == pytest.approx(found.tokens_per_second)
    assert found.mfu == pytest.approx(prediction.utilization)
    assert found.mfu == pytest.approx(found.model_flops_per_second / 16 / 100e12)
    assert found.hfu == pytest.approx(found.hardware_flops_per_second / 16 / 100e12)
    masked = 0.5 * 4 * 64 * question.model.attention_flops(1024) / prediction.step  # four passes of its causal half
    assert found.gemm_utilization == pytest.approx((found.hardware_flops_per_second - masked) / 16 / 80e12)
    assert found.hardware_flops_per_second > found.model_flops_per_second


def test_without_recomputation_hardware_flops_are_model_flops_whatever_y_repeats():
    question, layout = job(), Layout(x=1, y=4, z=2, data=2)
    assert needed_flops(question, layout) == model_flops(question) < hardware_flops(question, layout)


def test_flops_are_counted_as_the_paper_does_within_a_percent():
    """Its 96 B s l h^2 (1 + ...) counts four passes; the head is not recomputed here."""
    question = Job.of(models.load("gpt-80b"), profiles.load("frontier"), batch=8192)
    shape = question.model.transformer
    paper = closed_form_flops(
        batch=8192, sequence=2048, layers=shape.layers, hidden=shape.hidden, vocabulary=shape.vocabulary, recompute=True
    )
    assert needed_flops(question, Layout(x=1, y=1, z=8192, data=1, recompute=2)) == pytest.approx(paper, rel=0.01)


@settings(max_examples=60, derandomize=True)
@given(
    model=st.sampled_from(["gpt-5b", "gpt-20b", "llama-3-8b"]),
    machine=st.sampled_from(["perlmutter", "frontier", "dgx-h100", "localhost-cpu"]),
    gpus=st.sampled_from([8, 64, 512]),
    batch=st.sampled_from([64, 512, 4096]),
    overlap=st.sampled_from([frozenset(), frozenset({"all-gather"}), AXONN_OVERLAPS]),
    fidelity=st.sampled_from(["flat", "full"]),
)
def test_a_step_lies_between_its_bounds_up_to_contention(model, machine, gpus, batch, overlap, fidelity):
    """Of the communication only the largest term counts below: different groups may send side by side."""
    chosen = Settings(fidelity=fidelity, overlap=overlap, ignore_memory=True)
    question = Job.of(models.load(model), profiles.load(machine), batch=batch, settings=chosen)
    found = rank(question, Space(gpus=gpus, top=10**6))
    if not len(found):
        return
    prediction = found.prediction
    bounds = throughput(question, found.layouts, prediction, found.job.product_rate)
    sent = prediction.communication
    terms = [sent.weight_gather, sent.gradient_scatter, sent.forward_reduce, sent.backward_reduce, sent.data_reduce]
    least = np.maximum(prediction.compute, np.max(np.broadcast_arrays(*terms), axis=0))
    assert np.all(prediction.step >= least * (1 - 1e-9))
    assert np.all(prediction.step <= bounds.upper_bound * (1 + 1e-9))
    assert np.all(bounds.lower_bound <= bounds.upper_bound)
    if not overlap or fidelity == "flat":
        assert np.all(prediction.step >= bounds.lower_bound * (1 - 1e-9))


def test_training_takes_whole_steps_and_whole_nodes():
    question = replace(job(batch=10, sequence=100))
    found = training_run(question, gpus=6, tokens=1001, step=1800.0)
    assert (found.steps, found.time, found.node_hours) == (2, 3600.0, 2.0)
