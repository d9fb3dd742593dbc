"""Which grids are run: named ones, those of a file, the fastest predicted, all, or some drawn at random."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from perfmodel import schema
from perfmodel.errors import FileProblems, NoGridError, PerfmodelError, UsageError
from perfmodel.parallel.choices import RECOMPUTES, WEIGHT_CACHES
from perfmodel.parallel.enumeration import each_placed, shapes
from perfmodel.parallel.job import Job, Workload
from perfmodel.parallel.layout import Layout, parse_grid
from perfmodel.parallel.rules import first_broken, grid_rules, micro_batch_rule
from perfmodel.search import no_answer
from perfmodel.search.search import Space


def of_file(path: Path) -> list[Layout]:
    """Read a file with one grid per line; a # starts a comment."""
    found, problems = [], []
    for number, line in enumerate(schema.read_text(path).splitlines(), start=1):
        text = line.partition("#")[0].strip()
        try:
            found += [parse_grid(text)] if text else []
        except PerfmodelError as error:
            problems.append(f"{path}:{number}: {error}")
    if problems or not found:
        raise FileProblems(str(path), problems or [f"{path} holds no grid; wanted one per line, such as 2x2x1x2"])
    return found


def fastest(job: Job, space: Space) -> list[Layout]:
    """The grids of `space` that are predicted to be fastest, with the settings predicted to be best."""
    ranking = no_answer.recommend(job, space)
    return [ranking.layouts.take(row) for row in range(len(ranking))]


def every(work: Workload, space: Space) -> list[Layout]:
    """All grids that satisfy the rules, with the settings of `space`; those that it leaves open take the simplest."""
    grids = _keeping(work, space)
    return [grids.take(row) for row in range(np.size(grids.x))]


def drawn(work: Workload, space: Space, seed: int) -> list[Layout]:
    """`space.top` grids of `every`, drawn without repetition; all of them if there are fewer."""
    grids = _keeping(work, space)
    rows = np.random.default_rng(seed).permutation(np.size(grids.x))[: space.top]
    return [grids.take(int(row)) for row in rows]


def _keeping(work: Workload, space: Space) -> Layout:
    """The grids of `every` as arrays; there may be many more than are run."""
    modes = {
        "micro_batch": space.micro_batch or 1,
        "recompute": RECOMPUTES.index(space.recompute or "none"),
        "weight_cache": WEIGHT_CACHES.index(space.weight_cache or "none"),
    }
    grids = replace(shapes(space.gpus), **modes)
    rules = (*grid_rules(work), micro_batch_rule(work))
    reasons = first_broken(rules, grids)
    keeping = grids.take(reasons == len(rules))
    if not np.size(keeping.x):
        example = rules[int(reasons[0])].sentence(grids.take(0))
        raise NoGridError(f"no grid of {space.gpus} can run {work.model.name} (for example, {example})")
    _, placed = each_placed(keeping, space.placements)
    return placed


def number_of(text: str, kind: str) -> int:
    """The number of `top:5` or `sample:20`.

    >>> number_of("top:5", "top")
    5
    """
    number = text.removeprefix(f"{kind}:")
    if not (number.isascii() and number.isdigit() and 0 < int(number[:6]) == int(number)):
        raise UsageError(f"--grids {text!r}: wanted {kind}: and a number, such as {kind}:5")
    return int(number)
