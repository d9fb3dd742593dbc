"""Errors of the collectives' formulas against measured times, by data set and size.

Run as `PERFMODEL_MEASURED=folder python tools/collective_errors.py`: the folder holds tables of measured collectives
that others published and that this project does not ship. With `--rows SET` it prints every row of one set instead.
"""

import csv
import os
import statistics
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from perfmodel.costs import nccl
from perfmodel.costs.bandwidth import Bandwidths
from perfmodel.costs.interpolated import MeasuredTable
from perfmodel.machines import profiles
from perfmodel.machines.collective_times import TimingRow, Timings
from perfmodel.units import KIBI, parse

MEBI = KIBI**2
CLASSES = {"< 1 MiB": (0, MEBI), "1-32 MiB": (MEBI, 33 * MEBI), ">= 64 MiB": (64 * MEBI, KIBI**5)}
OPERATIONS = {"allgather": "all_gather", "allreduce": "all_reduce", "reducescatter": "reduce_scatter"}

# axonn-ai/sc2025-pccl-reproducer 30dec9b, data: RCCL reduce-scatter on Frontier, 8 devices a node; ms by devices, MiB.
FRONTIER_MIB = (1, 4, 16, 64, 256, 1024)
FRONTIER_MS = {
    8: (0.11, 0.15, 0.30, 0.87, 3.17, 12.40),
    64: (0.86, 1.57, 2.04, 2.06, 3.66, 13.40),
    256: (21.78, 2.23, 4.38, 6.95, 7.96, 14.51),
    1024: (158.0, 4.82, 9.71, 27.20, 27.51, 31.62),
}
# Same place: NCCL all-gather on Perlmutter, 4 devices a node.
PERLMUTTER_MS = {
    16: (0.22, 0.35, 0.47, 1.14, 4.45, 16.25),
    64: (0.53, 0.80, 1.26, 1.63, 4.62, 17.36),
    256: (1.67, 2.01, 2.98, 4.82, 6.74, 19.13),
    1024: (6.37, 6.92, 7.98, 10.84, 18.55, 26.56),
}


@dataclass(frozen=True, slots=True)
class Row:
    """One measured call: bytes gathered or not yet reduced, devices of the group in each of its nodes, seconds."""

    machine: str
    operation: str
    nodes: int
    devices: int
    size: float
    seconds: float

    @property
    def shape(self) -> str:
        """Operation and group, for tables."""
        return f"{self.operation} {self.nodes}x{self.devices}"

    @property
    def predicted(self) -> float:
        """The formula's seconds with the stock profile."""
        along = _path(self.machine, self.nodes, self.devices)
        function: Callable[[float, nccl.Route], float] = getattr(nccl, self.operation)
        return float(function(self.size, along))

    @property
    def error(self) -> float:
        """Predicted over measured, less 1."""
        return self.predicted / self.seconds - 1


@cache
def _path(name: str, nodes: int, devices: int) -> nccl.Route:
    """A group alone has the share of the NICs that its devices can use: what `inner` = domain / devices gives."""
    machine = profiles.load(name)
    bandwidths = Bandwidths.of(machine)
    size, inner = nodes * devices, max(machine.domain // devices, 1) if nodes > 1 else 1
    where = {"inner": inner, "size": size, "gpus": size * inner}
    return nccl.route(
        nccl.Constants.of(machine),
        inner=inner,
        size=size,
        inside=bandwidths.contained(**where),
        bandwidth=bandwidths.of_group(**where),
    )


def _read(folder: Path, name: str) -> Iterator[dict[str, str]]:
    with (folder / f"{name}.csv").open(encoding="utf-8", newline="") as lines:
        yield from csv.DictReader(lines)


def perlmutter(folder: Path) -> Iterator[Row]:
    """Github ShashankSubramanian/transformer-perf-estimates, comm_validation."""
    for line in _read(folder, "perlmutter_nccl_tests"):
        yield _nccl_tests("perlmutter", line, OPERATIONS[line["collective"]])


def _nccl_tests(machine: str, line: dict[str, str], operation: str) -> Row:
    time = float(line["out_of_place_time_us"]) * parse("1 us", "s")
    devices = int(line["gpus_per_node"])
    return Row(machine, operation, int(line["nodes"]), devices, float(line["size_bytes"]), time)


def polaris(folder: Path, setup: str, system: str = "polaris") -> Iterator[Row]:
    """Github argonne-lcf/alcf-nccl-tests, one set-up of the environment."""
    for line in _read(folder, "polaris_nccl_tests"):
        if line["system"] == system and line["env_setup_index"] == setup and line["collective"] != "alltoall":
            yield _nccl_tests("polaris" if system != "sophia" else "dgx-a100", line, line["collective"])


def benchmarks(folder: Path) -> Iterator[Row]:
    """Github hpcgroup/gpu-benchmarks, NCCL on Perlmutter, rows without a caveat."""
    for line in _read(folder, "perlmutter_frontier_collectives"):
        if line["library"] == "nccl" and not line["caveat"]:
            where = int(line["nodes"]), int(line["gpus_per_node"])
            operation = line["collective"].replace("-", "_")
            yield Row(line["machine"], operation, *where, float(line["total_payload_bytes"]), float(line["time_s"]))


def logs(machine: str, table: Mapping[int, tuple[float, ...]], operation: str, devices: int) -> Iterator[Row]:
    """One of the two tables above."""
    for gpus, times in table.items():
        for size, time in zip(FRONTIER_MIB, times, strict=True):
            nodes = gpus // devices
            yield Row(machine, operation, nodes, devices, size * MEBI, time * parse("1 ms", "s"))


def clouds(folder: Path) -> Iterator[Row]:
    """Github aws-samples/awsome-distributed-training: two instances."""
    for line in _read(folder, "aws_nccl_tests_all_reduce"):
        if float(line["size_bytes"]) and "2.18.5" not in line["system"]:
            machine = "aws-p4de" if "p4de" in line["system"] else "aws-p5"
            yield _nccl_tests(machine, line | {"nodes": "2", "gpus_per_node": "8"}, "all_reduce")


def alps(folder: Path) -> Iterator[Row]:
    """Github eth-cscs/cscs-docs: two nodes with the network plug-in."""
    for line in _read(folder, "cscs_alps_gh200_all_reduce"):
        if "*" not in line["test"]:
            yield _nccl_tests("alps", line | {"nodes": "2", "gpus_per_node": "4"}, "all_reduce")


def servers(folder: Path) -> Iterator[Row]:
    """Github stas00/ml-engineering, network: bus bandwidths of 8-device nodes."""
    names = {
        "A100": "dgx-a100",
        "H200": "dgx-h200",
        "B200": "dgx-b200",
        "MI300X": "mi300x-node",
        "4 nodes of 8x B200": "aws-p6-b200",
    }
    for line in _read(folder, "stas00_network_all_reduce"):
        found = [machine for text, machine in names.items() if text in line["system"]]
        if not found or not line["busbw_gb_per_s"] or not line["payload_bytes"]:
            continue
        nodes, gpus, size = int(line["nodes"]), int(line["gpus"]), float(line["payload_bytes"])
        sent = (2 if line["collective"] == "all_reduce" else 1) * (gpus - 1) / gpus * size
        seconds = sent / (float(line["busbw_gb_per_s"]) * parse("1 GB/s", "B/s"))
        yield Row(found[-1], line["collective"], nodes, gpus // nodes, size, seconds)


def sets(folder: Path) -> dict[str, list[Row]]:
    """Every data set by name."""
    found = {
        "perlmutter nccl-tests": list(perlmutter(folder)),
        "perlmutter benchmarks": list(benchmarks(folder)),
        "perlmutter logs": list(logs("perlmutter", PERLMUTTER_MS, "all_gather", 4)),
        "polaris set-up 4": list(polaris(folder, "4")),
        "polaris set-up 5": list(polaris(folder, "5")),
        "frontier logs": list(logs("frontier", FRONTIER_MS, "reduce_scatter", 8)),
        "sirius set-up 4": list(polaris(folder, "4", "sirius")),
        "sophia": [row for setup in ("1", "5") for row in polaris(folder, setup, "sophia")],
        "alps": list(alps(folder)),
    }
    for row in (*clouds(folder), *servers(folder)):
        found.setdefault(row.machine, []).append(row)
    return {name: rows for name, rows in found.items() if rows}


def summary(rows: list[Row]) -> str:
    """Median absolute error in percent: all, by size class; and the median error with its sign."""
    cells = []
    for least, most in ((0, KIBI**5), *CLASSES.values()):
        errors = [abs(row.error) for row in rows if least <= row.size < most]
        cells.append(f"{100 * statistics.median(errors):9.1f}" if errors else " " * 8 + "-")
    bias = statistics.median(row.error for row in rows)
    return f"{len(rows):5d}" + "".join(cells) + f"{100 * bias:9.1f}"


def left_out(rows: list[Row], keep: Callable[[int, int], bool]) -> str:
    """Errors of measured tables on rows that they do not hold; `keep` says which place of (nodes, size) they hold."""
    errors = []
    for operation, devices in sorted({(row.operation, row.devices) for row in rows}):
        mine = [row for row in rows if (row.operation, row.devices) == (operation, devices) and row.nodes > 1]
        counts, sizes = sorted({row.nodes for row in mine}), sorted({row.size for row in mine})
        held = [row for row in mine if keep(counts.index(row.nodes), sizes.index(row.size))]
        table = _measured(held)
        for row in mine:
            found = table.match(_path(row.machine, row.nodes, row.devices))
            if row not in held and len(found.rows) and table.sizes[0] <= row.size <= table.sizes[-1]:
                errors.append(abs(float(found.override(0.0, row.size, float)) / row.seconds - 1))
    return f"{len(errors):5d}{100 * statistics.median(errors):9.1f}"


def _measured(rows: list[Row]) -> MeasuredTable:
    """The table of rows of one operation and one number of devices a node."""
    first, seconds = rows[0], {(row.nodes, row.size): row.seconds for row in rows}
    sizes = tuple(sorted({row.size for row in rows}))
    lines = [
        TimingRow(nodes, tuple(seconds[nodes, size] for size in sizes)) for nodes in sorted({n for n, _ in seconds})
    ]
    inner = int(_path(first.machine, first.nodes, first.devices).inner)
    operation: Any = first.operation.replace("_", "-")
    return MeasuredTable.of(
        Timings(operation=operation, ranks=first.devices, source="", sizes=sizes, rows=tuple(lines), inner=inner), lines
    )


def main() -> None:
    """Print the table, or the rows of one set."""
    found = sets(Path(os.environ["PERFMODEL_MEASURED"]))
    if sys.argv[1:2] == ["--rows"]:
        for row in found[sys.argv[2]]:
            print(f"{row.shape:24s} {row.size:14.0f} B {row.seconds:10.3e} s {100 * row.error:+7.1f} %")
        return
    print(f"{'median absolute error, %':26s} rows" + "".join(f"{head:>9s}" for head in ("all", *CLASSES, "bias")))
    together = [row for name in list(found)[:2] for row in found[name]] + found["polaris set-up 4"]
    for name, rows in ({"the three of the target": together} | found).items():
        print(f"{name:26s}{summary(rows)}")
    tests = found["perlmutter nccl-tests"]
    print(f"{'table: every other size':26s}{left_out(tests, lambda _, size: size % 2 == 0)}")
    print(f"{'table: without 4 nodes':26s}{left_out(tests, lambda nodes, _: nodes != 1)}")


if __name__ == "__main__":
    main()
