"""Predicted against measured as a picture."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from perfmodel_cli.plots.picture_files import save

_COLOURS = 6  # groups that are told apart


def scatter(record: Mapping[str, Any], path: Path) -> None:
    """One point per row on logarithmic axes, the diagonal of equal values, and lines 25 % off on each side."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import LogLocator, NullFormatter

    measured = [row["measured_s"] for row in record["rows"]]
    predicted = [row["predicted_s"] for row in record["rows"]]
    ends = [min(*measured, *predicted) / 1.2, 1.2 * max(*measured, *predicted)]
    figure = Figure(figsize=(5, 5), layout="constrained")
    axes = figure.subplots()
    for name, rows in _series(record["rows"]).items():
        points = [[row[side] for row in rows] for side in ("measured_s", "predicted_s")]
        axes.loglog(*points, ".", markersize=5, label=name)
    axes.plot(ends, ends, "-", color="black", linewidth=0.8, label="equal")
    for factor, label in ((1.25, "25 % off"), (0.75, None)):
        axes.plot(ends, [factor * end for end in ends], ":", color="grey", linewidth=0.8, label=label)
    axes.set(xlim=ends, ylim=ends, xlabel="measured step, s", ylabel="predicted step, s")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.set_major_formatter("{x:g}")
        axis.set_minor_formatter(NullFormatter())
    axes.legend(fontsize="small")
    save(figure, path)


def _series(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Mapping[str, Any]]]:
    """Rows by group, named by what differs between groups; one group where there are too many to tell apart."""
    groups = dict.fromkeys(row["group"] for row in rows)
    if not 1 < len(groups) <= _COLOURS:
        return {f"{len(rows)} rows": list(rows)}
    shared = set.intersection(*(set(group.split()) for group in groups))
    found: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        name = " ".join(word for word in row["group"].split() if word not in shared)
        found.setdefault(name or row["group"], []).append(row)
    return {f"{name}: {len(of)} rows": of for name, of in found.items()}
