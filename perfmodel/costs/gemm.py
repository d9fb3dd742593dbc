"""Time of one local matrix product on one device, relative to the measured rate of large products.

A product is split into tiles that the device's compute units process in waves. The last wave is seldom full, each tile
pays for filling and draining its pipeline, and a thin product is limited by memory rather than arithmetic.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from perfmodel import units
from perfmodel.errors import PerfmodelError
from perfmodel.machines.machine import Device, Machine
from perfmodel.sources import Figure
from perfmodel.units import Bytes, BytesPerSecond, Number, Seconds

_TILE = 128  # rows or columns of half a tile; cuBLAS and rocBLAS favour 256 x 128 for large products
# Filling the pipeline of a tile and writing the result cost as much as this much extra depth.
_FILL = 96
_DIVISIBLE = 8192  # depth from which a tile is worth dividing, see waves()
_LAUNCH = units.parse("4 us", "s")  # least time of a kernel on the device, from start to end

# Where a profile has no attention kernel: shares of the large-product rate that FlashAttention-2 reaches on an A100,
# forward and backward, at long sequences (arXiv 2307.08691, figures 4 to 6). Whoever uses them is told so.
A100_SHARES = (0.72, 0.62)
# Defaults if a profile gives none: STREAM reaches 0.85 of the peak on most devices (recalled). Products as on
# Perlmutter, where 99 of 100 A100 reach 0.93 of the best (hpcgroup/perf-variability): the slowest device sets the pace
# of a step.
MEMORY_SUSTAINED = 0.85
GEMM_SUSTAINED = 0.93


@dataclass(frozen=True, slots=True)
class GemmRate:
    """FLOP/s of one device on large matrix products, and the source."""

    value: float
    origin: str


def gemm_rate(machine: Machine) -> GemmRate:
    """The measured rate in the number format of the profile, else the profile's efficiency times the peak."""
    device = machine.device
    dtype = device.dtype
    measured, peak, efficiency = device.gemm.get(dtype), device.peak.get(dtype), device.gemm_efficiency
    if measured:
        return GemmRate(measured.value, f"measured GEMM rate in {dtype}, {measured.origin}")
    if peak and efficiency:
        return GemmRate(efficiency.value * peak.value, f"{efficiency.value:g} x {dtype} peak, {efficiency.origin}")
    raise PerfmodelError(
        f"{machine.name} gives neither a measured GEMM rate in {dtype} nor a gemm_efficiency: compute has no time"
    )


@dataclass(frozen=True, slots=True)
class AttentionCost:
    """FLOP/s of an attention kernel, forward and backward, with its name and the source."""

    kernel: str
    rates: tuple[float, float]
    origin: str


def attention_cost(machine: Machine, names: Sequence[str]) -> AttentionCost:
    """The first of the kernels `names` that the profile has, in 16-bit formats; else an A100's share of products."""
    device = machine.device
    found = device.attention.first(names) if device.dtype in ("bf16", "fp16") else None
    if found:
        name, rate = found
        return AttentionCost(name, (rate.forward.value, rate.backward.value), rate.forward.origin)
    products = gemm_rate(machine).value * _figure(device.gemm_sustained, GEMM_SUSTAINED)
    forward, backward = (share * products for share in A100_SHARES)
    return AttentionCost("flash_2", (forward, backward), "assumed: the share of products that an A100 reaches")


@dataclass(frozen=True, slots=True, kw_only=True)
class Chip:
    """The figures of one device that kernels need, in SI units.

    `gemm`: sustained FLOP/s of large matrix products. `memory`: sustained bandwidth. `units`: number of SMs, CUs or the
    like; 0 for a device that does not use large tiles, such as a CPU.
    `host`: seconds that the framework takes to issue a kernel. `attention`: FLOP/s that the attention kernel reaches
    forward and backward at long sequences. `worst_mode`: how much slower the worst product mode is.
    """

    gemm: float
    memory: BytesPerSecond
    units: float
    host: Seconds = 0.0
    attention: tuple[float, float] = (math.inf, math.inf)
    worst_mode: float = 1.0

    @classmethod
    def of(
        cls,
        device: Device,
        *,
        gemm: float,
        host: Seconds,
        attention: tuple[float, float] = (math.inf, math.inf),
        tuned: bool = True,
    ) -> "Chip":
        """From a profile's device; `gemm` is the best rate of large products, which the sustained share reduces.

        `tuned`: whether every product runs in its best layout, as after AxoNN's tuning.
        """
        return cls(
            gemm=gemm * _figure(device.gemm_sustained, GEMM_SUSTAINED),
            memory=device.memory_bandwidth.value * _figure(device.memory_sustained, MEMORY_SUSTAINED),
            units=_figure(device.compute_units, 0.0),
            host=host,
            attention=attention,
            worst_mode=1.0 if tuned else _figure(device.slow_layout, 1.0),
        )


def _figure(figure: Figure | None, otherwise: float) -> float:
    return otherwise if figure is None else figure.value


@dataclass(frozen=True, slots=True)
class LayerTimes:
    """Seconds on one device of one layer in one micro-step: forward, input gradient (dI), weight gradient (dW)."""

    forward: Seconds = 0.0
    input_gradient: Seconds = 0.0
    weight_gradient: Seconds = 0.0

    def longer(self, factor: Number) -> "LayerTimes":
        """The same, so many times as long."""
        return LayerTimes(self.forward * factor, self.input_gradient * factor, self.weight_gradient * factor)

    @property
    def backward(self) -> Seconds:
        """Both gradients."""
        return self.input_gradient + self.weight_gradient


def waves(*, m: Number, n: Number, k: Number, compute_units: float) -> Number:
    """Waves of tiles, one tile per compute unit, of a product with a result of m x n and depth k.

    They are even = tiles / units, rounded up for the idle units of the last wave. A deep product is rounded up less,
    since a deep tile can be divided among units (split-k) or replaced by smaller ones:
    even + (ceil(even) - even) * 8192 / (8192 + k). Tiles are 256 x 128, in the orientation that needs fewer. 8192 is
    from simumax_gemm_efficiency.csv, A100: with it the deviation of 183 products is 4.7 % (s.d.), with whole waves
    6.6 %, with even ones 8 %.

    >>> float(waves(m=4096, n=4096, k=4096, compute_units=108))
    4.913580
    """
    rows, columns = np.ceil(m / _TILE), np.ceil(n / _TILE)
    tiles = np.minimum(np.ceil(0.5 * rows) * columns, rows * np.ceil(0.5 * columns))
    even = tiles / compute_units
    found: Number = even + (np.ceil(even) - even) * (_DIVISIBLE / (_DIVISIBLE + k))
    return found


def gemm(*, m: Number, n: Number, k: Number, chip: Chip, element: Bytes = 2, result: Bytes = 2) -> Seconds:
    """Seconds of a product of m x k by k x n: max(arithmetic, memory) + launch.

    arithmetic = waves * 2 * 256 * 128 * (k + 96) / (rate / units); memory = bytes of the three matrices / bandwidth.
    Valid for 16-bit formats and m, n, k of 64 and more. Against 183 products of an A100 (simumax_gemm_efficiency.csv,
    m, n, k 512 to 131072): mean error 3.4 %, s.d. 4.7 %. `element`, `result`: bytes per element read, written. Without
    units arithmetic = 2 m n k / rate: half a core of an EPYC has 33 Gflop/s at m = n = k = 128 and at 1024.

    >>> a100 = Chip(gemm=271.2e12, memory=1.73e12, units=108)
    >>> float(2 * 4096**3 / gemm(m=4096, n=4096, k=4096, chip=a100) / 1e12)
    253.780
    """
    moved = (1.0 * m * k + 1.0 * k * n) * element + 1.0 * m * n * result
    found: Seconds = np.maximum(_arithmetic(m, n, k, chip), moved / chip.memory) + _LAUNCH
    return found


def _arithmetic(m: Number, n: Number, k: Number, chip: Chip) -> Seconds:
    if chip.units == 0:
        return 2.0 * m * n * k / chip.gemm
    deep = (4.0 * _TILE * _TILE) * chip.units / chip.gemm
    tiled: Seconds = waves(m=m, n=n, k=k, compute_units=chip.units) * ((k + _FILL) * deep)
    return tiled


def linear(*, rows: Number, inputs: Number, outputs: Number, chip: Chip, gradient: Bytes = 2) -> LayerTimes:
    """Seconds of O = I W with I of rows x inputs: forward (NN), dI = dO W^T (NT), dW = I^T dO (TN).

    `inputs`, `outputs` are those of this device. `gradient`: bytes per element of dW. The chip's `worst_mode` applies
    to dI. On MI250X at widths of 20,000 one product ran at 6 % of peak, but others at 55 %, until AxoNN tried all modes
    and kept the best (arXiv 2502.08145, section V-C). With that tuning, and on other devices, it is 1.

    >>> a100 = Chip(gemm=271.2e12, memory=1.73e12, units=108)
    >>> float(linear(rows=8192, inputs=4096, outputs=1024, chip=a100).forward * 1e6)
    309.25
    """
    return LayerTimes(
        gemm(m=rows, n=outputs, k=inputs, chip=chip),
        gemm(m=rows, n=inputs, k=outputs, chip=chip) * chip.worst_mode,
        gemm(m=inputs, n=outputs, k=rows, chip=chip, result=gradient),
    )
