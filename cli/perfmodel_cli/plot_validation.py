"""Predicted against measured as a picture; the one place that needs matplotlib (perfmodel[plot])."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from perfmodel.errors import PerfmodelError


def scatter(record: Mapping[str, Any], path: Path) -> None:
    """A point a row on logarithmic axes, the diagonal where both agree, and a quarter on each side of it."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise PerfmodelError("--plot needs matplotlib: pip install 'perfmodel[plot]'") from None
    measured = [row["measured_s"] for row in record["rows"]]
    predicted = [row["predicted_s"] for row in record["rows"]]
    ends = [min(*measured, *predicted) / 1.2, 1.2 * max(*measured, *predicted)]
    figure = Figure(figsize=(5, 5), layout="constrained")
    axes = figure.subplots()
    axes.loglog(measured, predicted, ".", markersize=5, label=f"{len(measured)} rows")
    axes.plot(ends, ends, "-", color="black", linewidth=0.8, label="equal")
    for factor, label in ((1.25, "25 % off"), (0.75, None)):
        axes.plot(ends, [factor * end for end in ends], ":", color="grey", linewidth=0.8, label=label)
    axes.set(xlim=ends, ylim=ends, xlabel="measured step, s", ylabel="predicted step, s")
    axes.legend()
    try:
        figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else {"Software": None})
    except OSError as error:
        raise PerfmodelError(f"{path} cannot be written: {error.strerror}") from None
