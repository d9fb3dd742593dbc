"""Passes of kernels by how they are built."""

from dataclasses import fields

import pytest

from perfmodel.costs.gemm import Chip
from perfmodel.costs.kernel_sets import COMPILED, EAGER, FUSED, KERNEL_SETS, KernelSet
from perfmodel.costs.kernels import DeviceShare, attention, norm
from perfmodel.models.layers import Attention, Norm

CHIP = Chip(gemm=1e15, memory=1e12, units=0)


@pytest.mark.parametrize("kind", [each.name for each in fields(KernelSet) if each.name != "loss"])
def test_eager_kernels_never_need_fewer_passes_than_fused_ones(kind):
    for eager, fused in zip(getattr(EAGER, kind).passes, getattr(FUSED, kind).passes, strict=True):
        assert eager >= fused


def test_a_kernel_fused_with_the_loss_reads_fewer_logits():
    assert sum(COMPILED.loss.passes) < sum(EAGER.loss.passes) < sum(FUSED.loss.passes)


@pytest.mark.parametrize("name", KERNEL_SETS)
def test_a_norm_takes_its_passes_over_what_is_split(name):
    kernels = KERNEL_SETS[name]
    part = DeviceShare(rows=1000.0, sequence=1000, y=2, between=4, kernels=kernels)
    found = norm(Norm(name="n", width=512, bias=False), part=part, chip=CHIP)
    assert found.forward == pytest.approx(1000 * 512 / 8 * kernels.rms_norm.passes[0] * 2 / 1e12)


def test_rotary_positions_cost_their_passes_over_queries_and_keys():
    layer = Attention(name="a", heads=8, kv_heads=2, head_dim=64)
    plain, turned = (
        attention(layer, part=DeviceShare(rows=1000.0, sequence=1000, rotary=rotary, kernels=EAGER), chip=CHIP)
        for rotary in (False, True)
    )
    assert turned.forward - plain.forward == pytest.approx(1000 * 64 * 10 * 10 * 2 / 1e12)
