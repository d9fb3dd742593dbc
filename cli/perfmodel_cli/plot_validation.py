"""Predicted against measured as a picture."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from perfmodel_cli.pictures import save


def scatter(record: Mapping[str, Any], path: Path) -> None:
    """A point a row on logarithmic axes, the diagonal where both agree, and a quarter on each side of it."""
    from matplotlib.figure import Figure

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
    save(figure, path)
