"""The whole loop on one computer (docs/examples/loop.sh) against its targets.

Run as `python tools/loop_targets.py docs/examples/loop/runs.jsonl`; the exit code is 1 where a target is missed. With
`--short` the targets are those of a loop of few steps and one round, which other work on the computer disturbs.
"""

import argparse
import dataclasses
import sys
from collections.abc import Iterator
from pathlib import Path

from page_tables import table
from perfmodel.validation import compare, step_files
from perfmodel.validation.compare import Compared
from perfmodel.validation.scores import Order, Sizes

RUNS = Path("docs/examples/loop/runs.jsonl")


@dataclasses.dataclass(frozen=True, slots=True)
class Bounds:
    """What is wanted of the grids of one number of ranks."""

    spearman: float
    regret: float
    error: float


_MET = "met"
FULL, SHORT = Bounds(0.9, 1.05, 0.25), Bounds(0.7, 1.3, 0.5)


@dataclasses.dataclass(frozen=True, slots=True)
class Scores:
    """How well the grids of one number of ranks were predicted."""

    ranks: int
    rows: tuple[Compared, ...]

    @property
    def order(self) -> Order:
        """Of all grids, as one group."""
        pairs = [(one.predicted, one.measured) for one in self.rows]
        predicted, measured = zip(*pairs, strict=True)
        return Order.of(predicted, measured, [self.ranks] * len(pairs))

    @property
    def error(self) -> float:
        """Mean, without sign."""
        return Sizes.of([one.error for one in self.rows]).mape

    def cells(self, bounds: Bounds) -> list[list[str]]:
        """A row a target: check, target, figure, whether it is met."""
        order = self.order
        spearman, regret = order.spearman or 0.0, order.regret or 0.0
        found = [
            ("Spearman", f"≥ {bounds.spearman:g}", f"{spearman:.3f}", spearman >= bounds.spearman),
            ("regret", f"≤ {bounds.regret:g}", f"{regret:.3f}", regret <= bounds.regret),
            ("fastest among the first three", "yes", "yes" if order.top3 else "no", bool(order.top3)),
            (
                "mean error",
                f"≤ {100 * bounds.error:g} %",
                f"{100 * self.error:.1f} %",
                self.error <= bounds.error,
            ),
        ]
        name = f"{len(self.rows)} grids of {self.ranks} ranks"
        return [
            [f"{name}: {check}", target, figure, _MET if met else "**missed**"] for check, target, figure, met in found
        ]


def scores(path: Path) -> Iterator[Scores]:
    """For each number of ranks in a file of runs."""
    found = compare.compare(step_files.read(path)).rows
    for ranks in dict.fromkeys(one.row.gpus for one in found):
        yield Scores(ranks, tuple(one for one in found if one.row.gpus == ranks))


def cells(path: Path, bounds: Bounds = FULL) -> list[list[str]]:
    """Every target of every number of ranks."""
    return [row for one in scores(path) for row in one.cells(bounds)]


def targets(path: Path = RUNS) -> str:
    """The table of a page."""
    return table(["check", "target", "figure", ""], cells(path))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path)
    parser.add_argument("--short", action="store_true")
    asked = parser.parse_args()
    found = cells(asked.runs, SHORT if asked.short else FULL)
    for row in found:
        print("  ".join(row))
    sys.exit(any(row[-1] != _MET for row in found))


if __name__ == "__main__":
    main()
