from dataclasses import replace

import numpy as np
import pytest

from perfmodel.costs import kernels
from perfmodel.costs.gemm import Chip, LayerTimes, gemm, linear, waves
from perfmodel.costs.kernels import DeviceShare, device_times, kernel_counts, layer_times
from perfmodel.machines import profiles
from perfmodel.models.layers import Activation, Attention, Embedding, Head, Linear, Norm

A100 = Chip(gemm=258.7e12, memory=1.73e12, units=108, attention=(186e12, 160e12))
LAUNCH = 4e-6

LAYERS = (
    Linear(name="qkv", inputs=4096, outputs=12288),
    Linear(name="down", inputs=16384, outputs=4096, transposed=True),
    Attention(name="attention", heads=32, kv_heads=8, head_dim=128),
    Norm(name="norm", width=4096),
    Activation(name="activation", width=16384, gated=True),
    Embedding(name="embedding", vocabulary=51200, width=4096),
    Head(name="head", vocabulary=51200, width=4096),
)


def times(found: LayerTimes) -> tuple[float, float, float]:
    return float(found.forward), float(found.input_gradient), float(found.weight_gradient)


@pytest.mark.parametrize(
    ("m", "n", "k", "expected"),
    [
        (27648, 256 * 64, 8192, 128.0),  # 108 rows of tiles: full waves
        (128, 128, 8192, 0.5 + 0.5 / 108),  # one tile: half of the idle units are used at this depth
        (256, 128 * 109, 8192, 109 / 108 + 0.5 * 107 / 108),
        (1, 1, 8192, 0.5 + 0.5 / 108),
    ],
)
def test_waves_are_tiles_over_units_rounded_up_in_part(m, n, k, expected):
    assert waves(m=m, n=n, k=k, compute_units=108) == pytest.approx(expected)


def test_tiles_are_laid_the_way_that_needs_fewer():
    assert waves(m=128, n=2560, k=64, compute_units=1) == 10
    assert waves(m=2560, n=128, k=64, compute_units=1) == 10


def test_a_processor_cuts_no_tiles_so_that_its_products_take_what_their_flops_do():
    processor = Chip(gemm=30e9, memory=10e9, units=0)
    whole = gemm(m=512, n=512, k=512, chip=processor)
    assert whole == pytest.approx(2 * 512**3 / 30e9, rel=0.001)
    assert gemm(m=512, n=32, k=512, chip=processor) == pytest.approx(whole / 16, rel=0.02)
    rows = np.array([32, 512])
    assert list(gemm(m=512, n=rows, k=512, chip=processor)) == [gemm(m=512, n=n, k=512, chip=processor) for n in rows]


def test_a_deep_product_loses_nothing_to_its_last_wave():
    even = 32 * 33 / 2 / 108
    assert waves(m=32 * 128, n=33 * 128, k=1e9, compute_units=108) == pytest.approx(even, rel=1e-4)


def test_a_large_product_runs_at_the_rate():
    seconds = gemm(m=108 * 256, n=128 * 256, k=1 << 20, chip=A100)
    assert 2.0 * 108 * 256 * 128 * 256 * (1 << 20) / seconds == pytest.approx(A100.gemm, rel=1e-3)


def test_a_thin_product_waits_for_memory():
    slow = replace(A100, memory=1e12)
    seconds = gemm(m=4096, n=65536, k=64, chip=slow)
    moved = 2.0 * (4096 * 64 + 64 * 65536 + 4096 * 65536)
    assert seconds == pytest.approx(moved / slow.memory + LAUNCH)


def test_a_tiny_product_takes_a_launch_and_about_a_tile():
    tile = 2.0 * 256 * 128 * (64 + 96) * 108 / A100.gemm
    assert gemm(m=64, n=64, k=64, chip=A100) == pytest.approx(LAUNCH + tile, rel=0.01)


def test_the_three_products_of_a_layer():
    chip = replace(A100, worst_mode=2.0)
    found = linear(rows=8192, inputs=4096, outputs=1024, chip=chip, gradient=4)
    assert found.forward == gemm(m=8192, n=1024, k=4096, chip=A100)
    assert found.input_gradient == 2 * gemm(m=8192, n=4096, k=1024, chip=A100)
    assert found.weight_gradient == gemm(m=4096, n=1024, k=8192, chip=A100, result=4)
    assert found.backward == found.input_gradient + found.weight_gradient


def test_x_splits_the_outputs_of_a_normal_layer_and_y_its_inputs():
    part = DeviceShare(rows=8192, sequence=2048, x=4, y=2)
    products = linear(rows=8192, inputs=2048, outputs=3072, chip=A100)
    found = device_times(Linear(name="qkv", inputs=4096, outputs=12288, bias=False), part=part, chip=A100)
    assert times(found) == pytest.approx(times(products))
    transposed = device_times(
        Linear(name="out", inputs=12288, outputs=4096, transposed=True, bias=False), part=part, chip=A100
    )
    products = linear(rows=8192, inputs=3072, outputs=2048, chip=A100)
    added = 3 * 2 * 8192 * 2048 / A100.memory
    assert transposed.forward == pytest.approx(products.forward + added)
    assert transposed.input_gradient == pytest.approx(products.input_gradient + added)


def test_dropout_adds_its_mask_to_the_residual():
    dropped = kernels.residual(elements=1e9, part=DeviceShare(rows=1, sequence=1, dropout=True), chip=A100)
    plain = kernels.residual(elements=1e9, part=DeviceShare(rows=1, sequence=1), chip=A100)
    assert (dropped.forward - plain.forward) * A100.memory == pytest.approx(1e9)
    assert (dropped.input_gradient - plain.input_gradient) * A100.memory == pytest.approx(3e9)


@pytest.mark.parametrize(
    ("layer", "forward", "backward"),
    [
        (Norm(name="norm", width=1024), 2, 5),
        (Activation(name="gelu", width=1024), 2, 3),
        (Activation(name="swiglu", width=1024, gated=True), 3, 5),
        (Embedding(name="embedding", vocabulary=50000, width=1024), 3, 3),
    ],
)
def test_other_layers_are_bytes_over_bandwidth(layer, forward, backward):
    found = device_times(layer, part=DeviceShare(rows=8192, sequence=1024), chip=A100)
    one = 2 * 8192 * 1024 / A100.memory
    assert (found.forward, found.backward) == pytest.approx((forward * one, backward * one))


def test_flash_attention_computes_the_causal_half_at_its_kernel_s_rate():
    layer, part = (
        Attention(name="attention", heads=16, kv_heads=16, head_dim=128),
        DeviceShare(rows=65536, sequence=65536, x=2),
    )
    found = kernels.flash(layer, part=part, chip=A100)
    useful = 0.5 * 4 * 16 / 2 * 128 * 65536 * 65536
    assert useful / found.forward == pytest.approx(186e12 * 65536 / (65536 + 512))
    assert 2.5 * useful / found.backward == pytest.approx(160e12 * 65536 / (65536 + 512))


def test_heads_of_64_are_a_little_slower_than_heads_of_128():
    part = DeviceShare(rows=8192, sequence=2048)
    narrow = kernels.flash(Attention(name="attention", heads=32, kv_heads=32, head_dim=64), part=part, chip=A100)
    wide = kernels.flash(Attention(name="attention", heads=16, kv_heads=16, head_dim=128), part=part, chip=A100)
    assert narrow.forward / wide.forward == pytest.approx(1 / 0.9)


def test_materialized_scores_pass_through_memory():
    layer = Attention(name="attention", heads=16, kv_heads=16, head_dim=1024)
    slow = replace(A100, memory=1e9)  # so slow that the products wait for memory too
    found = kernels.materialized(layer, part=DeviceShare(rows=8192, sequence=1024, dropout=True), chip=slow)
    one = 2 * 8192 * 16 * 1024 / slow.memory
    assert (found.forward, found.backward) == pytest.approx((6.5 * one, 9.5 * one))
    found = kernels.materialized(layer, part=DeviceShare(rows=8192, sequence=1024), chip=slow)
    assert (found.forward, found.backward) == pytest.approx((4 * one, 7 * one))


def test_the_head_pays_for_a_padded_vocabulary_and_a_loss_in_fp32():
    part = DeviceShare(rows=4096, sequence=2048)
    layer = Head(name="head", vocabulary=50257, width=1024)
    found = device_times(layer, part=part, chip=A100, vocabulary=51200)
    products = linear(rows=4096, inputs=1024, outputs=51200, chip=A100)
    logits = 4 * 4096 * 51200 / A100.memory
    assert found.forward == pytest.approx(products.forward + 9.5 * logits)
    assert found.backward == pytest.approx(products.backward + 3.5 * logits)


@pytest.mark.parametrize("layer", LAYERS, ids=lambda layer: layer.name)
def test_no_pass_is_faster_than_its_kernels_are_issued(layer):
    slow = replace(A100, host=1.0)
    found = layer_times(layer, part=DeviceShare(rows=64, sequence=64), chip=slow)
    forward, backward = kernel_counts(layer, part=DeviceShare(rows=1, sequence=1))
    assert (found.forward, found.backward) == (forward, backward)
    quick = layer_times(layer, part=DeviceShare(rows=8192, sequence=2048), chip=A100)
    assert times(quick) == times(device_times(layer, part=DeviceShare(rows=8192, sequence=2048), chip=A100))


@pytest.mark.parametrize("layer", LAYERS, ids=lambda layer: layer.name)
def test_a_row_of_a_batch_is_the_single_call_exactly(layer):
    chip = replace(A100, host=42e-6)
    x, y, rows = np.array([1, 2, 4, 8]), np.array([8, 1, 2, 3]), np.array([512.0, 2048.0, 8192.0, 1e5])
    for attention in ("flash", "materialized"):
        part = DeviceShare(rows=rows, sequence=2048, x=x, y=y, attention=attention, dropout=True)
        batch = layer_times(layer, part=part, chip=chip, vocabulary=51200)
        for i in range(4):
            single = DeviceShare(
                rows=float(rows[i]), sequence=2048, x=int(x[i]), y=int(y[i]), attention=attention, dropout=True
            )
            alone = layer_times(layer, part=single, chip=chip, vocabulary=51200)
            row = tuple(np.broadcast_to(getattr(batch, name), 4)[i] for name in LayerTimes.__dataclass_fields__)
            assert row == times(alone)


@pytest.mark.parametrize("faster", [{"gemm": 500e12}, {"memory": 3e12}, {"host": 1e-6}])
def test_a_better_device_is_never_slower(faster):
    slow = replace(A100, host=42e-6)
    for layer in LAYERS:
        for rows in (64, 1024, 65536):
            part = DeviceShare(rows=rows, sequence=1024)
            before, after = (layer_times(layer, part=part, chip=c) for c in (slow, replace(slow, **faster)))
            assert all(new <= old for new, old in zip(times(after), times(before), strict=True))


def test_a_chip_takes_the_profile_s_sustained_rates():
    device = profiles.load("dgx-a100").device
    chip = Chip.of(device, gemm=271.2e12, host=1e-5)
    assert chip == Chip(gemm=271.2e12 * 0.927, memory=2039e9 * 0.85, units=108, host=1e-5)
    bare = replace(device, gemm_sustained=None, memory_sustained=None, compute_units=None)
    assert Chip.of(bare, gemm=1e14, host=42e-6) == Chip(gemm=1e14 * 0.93, memory=2039e9 * 0.85, units=0, host=42e-6)


def test_weights_in_another_format_are_cast_before_the_two_products_that_they_are_in():
    layer = Linear(name="qkv", inputs=4096, outputs=12288, bias=False)
    plain, mixed = (
        kernels.projection(layer, part=DeviceShare(rows=8192, sequence=2048, x=2, y=2, weight=size), chip=A100)
        for size in (2, 4)
    )
    casting = 4096 * 12288 / 4 * 6 / A100.memory
    assert mixed.forward - plain.forward == pytest.approx(casting)
    assert mixed.input_gradient - plain.input_gradient == pytest.approx(casting)
    assert mixed.weight_gradient == plain.weight_gradient
