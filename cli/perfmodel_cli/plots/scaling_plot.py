"""Scaling over counts of devices as a picture."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from perfmodel_cli.plots.picture_files import save
from perfmodel_cli.texts import grid_text


def scaling(record: Mapping[str, Any], path: Path) -> None:
    """Above, the step split into computation and exposed communication; below, the efficiency."""
    from matplotlib.figure import Figure

    rows = [row for row in record["points"] if "grid" in row]
    places = range(len(rows))
    computed = [row["compute_time_s"] or 0.0 for row in rows]
    exposed = [row["exposed_communication_time_s"] for row in rows]
    figure = Figure(figsize=(6, 6), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True)
    above.bar(places, computed, label="computation")
    above.bar(places, exposed, bottom=computed, label="exposed communication")
    above.set(ylabel="step, s", title=f"{record['model']} on {record['machine']}, {record['scaling']} scaling")
    above.margins(y=0.3)  # room for the legend
    above.legend(loc="upper left", ncols=2)
    efficiency = [100 * (row["efficiency"] or 0.0) for row in rows]
    below.plot(places, efficiency, "o-")
    below.set(ylabel="efficiency, %", xlabel="devices", ylim=(0, 1.1 * max(*efficiency, 100)))
    labels = [f"{row['gpus']}\n{grid_text(row)}" for row in rows]
    below.set_xticks(places, labels, fontsize="small")
    save(figure, path)
