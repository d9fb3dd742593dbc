"""What was measured, as plain records."""

from collections.abc import Sequence
from typing import Any

from perfmodel.launch.measuring import rates
from perfmodel.launch.measuring.fits import Fit
from perfmodel.launch.measuring.lines import Lines


def summary(lines: Lines, found: Sequence[Fit], profile: str, results: str) -> dict[str, Any]:
    """The device's rates, and a row for each operation in each shape of group."""
    start = lines.start
    best = {dtype: rates.best_product(lines, dtype) for dtype in start["dtypes"].split("+")}
    return {
        "profile": profile,
        "results": results,
        "device": start["device"],
        "ranks": start["ranks"],
        "devices_per_node": start["devices_per_node"],
        "backend": start["backend"],
        "torch_version": start["torch_version"],
        "dates": lines.dates,
        "measurements": lines.count,
        "rounds": max((len(rounds) for rounds in lines.values.values()), default=0),
        "gemm_flop_per_s": {dtype: pair[1] for dtype, pair in best.items() if pair is not None},
        "memory_bandwidth_B_per_s": rates.memory_bandwidth(lines),
        "host_time_s": rates.host_time(lines),
        "contention": rates.contention(lines),
        "collectives": [_row(one) for one in found],
    }


def _row(one: Fit) -> dict[str, Any]:
    alphas, betas = one.line.alpha_interval or (None, None), one.bandwidth_interval or (None, None)
    return {
        "operation": one.operation,
        "inner": one.inner,
        "size": one.size,
        "sizes": one.sizes,
        "samples": one.samples,
        "alpha_s": one.alpha,
        "alpha_low_s": alphas[0],
        "alpha_high_s": alphas[1],
        "beta_B_per_s": one.bandwidth,
        "beta_low_B_per_s": betas[0],
        "beta_high_B_per_s": betas[1],
        "error": one.line.error,
        "outliers": [
            {"size_B": size, "round": number + 1, "time_s": seconds} for size, number, seconds in one.outliers
        ],
    }
