"""How many evaluations per second one core does at full fidelity: every rule, memory, every kernel and collective.

An evaluation is one grid in one order with one micro-batch and one mode of recomputation and caching that keeps all
rules; grids that break one are in the time, not in the count. "in full" evaluates memory and time of every one of
them; "searched" is what `recommend` does, which skips the time of what does not fit or cannot be the best.

Each question is answered in a process of its own, pinned to one core, and its seconds are those of the processor, so
that others on the machine count little. Prints the machine's own speed (passes of numpy over an array per second, so
that rates of two machines can be compared), then the median and the best rate of several runs, peak memory, and their
ratios to the targets and to the peers' rates on a machine like this one. Run as `python bench/throughput.py`.

`--against REVISION` answers each question in turn with the code of that commit, too, and prints the ratio of the two
rates, run by run: the only comparison that holds where other work changes the machine's speed from minute to minute.
"""

import argparse
import contextlib
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from perfmodel import models
from perfmodel.machines import profiles
from perfmodel.memory.per_device import capacity, memory_per_device
from perfmodel.numerics import divisors
from perfmodel.parallel.enumeration import placed
from perfmodel.parallel.job import Job
from perfmodel.parallel.layout import PLACEMENTS
from perfmodel.parallel.rules import first_broken, grid_rules
from perfmodel.search.search import BLOCK_ROWS, Space, rank
from perfmodel.step.predict import step_time
from perfmodel_cli.options.question import keep_freed_memory

ROOT = Path(__file__).parents[1]
TARGET_RATE = 500_000  # evaluations a second on one core
TARGET_MEMORY = 300_000_000  # bytes at ten million evaluations
_PASSED, _PASSES, _TRIES = 1 << 13, 2000, 5  # elements of an array, passes over it, times that this is tried
# Evaluations per second and core, measured on a machine like this one, each tool at its best.
PEERS = {
    "Calculon, logger off": 286,
    "transformer-perf-estimates (NERSC)": 110,
    "SimuMax": 7,
    "llm-cluster-simulator": 19_100,
}


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked. `any_order` tries all placements; `in_full` skips nothing."""

    model: str
    machine: str
    gpus: int
    batch: int
    any_order: bool = True
    in_full: bool = True


QUESTIONS = (
    Question("gpt3-175b", "perlmutter", 1024, 1536, any_order=False),
    Question("gpt3-175b", "perlmutter", 24576, 24576 * 5040, any_order=False),
    Question("llama-3-8b", "dgx-h100", 512, 1024 * 27),
    Question("gpt3-175b", "frontier", 32768, 32768 * 720),
    Question("gpt3-175b", "perlmutter", 24576, 24576 * 5040),
    Question("gpt3-175b", "perlmutter", 24576, 24576 * 5040, in_full=False),
    Question("gpt3-175b", "perlmutter", 720720, 720720 * 16),
)


@dataclass(frozen=True, slots=True)
class Answer:
    """What one process measured."""

    searched: int
    evaluated: int
    seconds: float
    peak_bytes: int


def answer(question: Question) -> Answer:
    """Search once, in this process, set up as the program's is."""
    keep_freed_memory()
    job = Job.of(models.load(question.model), profiles.load(question.machine), batch=question.batch)
    space = Space(gpus=question.gpus, placements=tuple(range(len(PLACEMENTS))) if question.any_order else (0,))
    start = time.process_time()
    if question.in_full:
        searched, evaluated = evaluate(job, space)
    else:
        ranking = rank(job, space)
        searched, evaluated = ranking.searched, ranking.evaluated
    seconds = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return Answer(searched, evaluated, seconds, peak)


def evaluate(job: Job, space: Space) -> tuple[int, int]:
    """Evaluate everything, keep the fastest that fits; returns how many grids there were and how many evaluations."""
    grids = placed(space.gpus, space.placements)
    rules = grid_rules(job)
    kept = grids.take(first_broken(rules, grids) == len(rules))
    micro_batches, modes = np.array(divisors(job.batch)), np.array(space.modes(job.settings))
    block = max(1, BLOCK_ROWS // (len(micro_batches) * len(modes)))
    evaluated, fastest = 0, np.inf
    for start in range(0, int(np.size(kept.x)), block):
        some = kept.take(slice(start, start + block))
        grid, micro = np.nonzero((job.batch // (some.z * some.data))[:, None] % micro_batches == 0)  # type: ignore[index]
        grid, micro = np.repeat(grid, len(modes)), np.repeat(micro_batches[micro], len(modes))
        recompute, cache = np.tile(modes, (len(grid) // len(modes), 1)).T
        rows = replace(some.take(grid), micro_batch=micro, recompute=recompute, weight_cache=cache)
        fits = memory_per_device(job, rows).total <= capacity(job)
        fastest = min(fastest, float(np.min(np.where(fits, step_time(job, rows), np.inf))))
        evaluated += len(grid)
    return int(np.size(grids.x)), evaluated


def asked(index: int, checkout: Path = ROOT) -> Answer:
    """Search in a new process, pinned to the core that the command line chose, with no threads behind numpy."""
    command = [sys.executable, str(checkout / "bench" / "throughput.py"), "--answer", str(index)]
    single = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    code = {"PYTHONPATH": os.pathsep.join((str(checkout), str(checkout / "cli")))}
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=os.environ | single | code)
    return Answer(**json.loads(done.stdout))


def own_speed() -> float:
    """Passes of numpy per second over an array that fits in the cache: a product and a sum, as formulas make them."""
    values = np.ones(_PASSED)
    best = float("inf")
    for _ in range(_TRIES):
        start = time.process_time()
        for _ in range(_PASSES):
            values * 1.5 + values
        best = min(best, time.process_time() - start)
    return _PASSES / best


@contextlib.contextmanager
def checked_out(revision: str) -> Iterator[Path]:
    """A checkout of another commit of this repository, for as long as it is needed."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "other"
        subprocess.run(["git", "worktree", "add", "--detach", str(place), revision], cwd=ROOT, check=True)
        try:
            yield place
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", str(place)], cwd=ROOT, check=True)


def compared(index: int, runs: int, other: Path) -> str:
    """One line on one question: the ratio of this code's rate to the other's, pair by pair."""
    pairs = [(asked(index), asked(index, other)) for _ in range(runs)]
    ratios = sorted(ours.evaluated / ours.seconds / (theirs.evaluated / theirs.seconds) for ours, theirs in pairs)
    return f"  {statistics.median(ratios):.2f} times the other's rate ({ratios[0]:.2f} to {ratios[-1]:.2f})"


def report(question: Question, answers: list[Answer]) -> str:
    """One line on one question: the median rate of several runs, and the best."""
    first = answers[0]
    rates = [run.evaluated / run.seconds for run in answers]
    rate, best = statistics.median(rates), max(rates)
    peak = max(run.peak_bytes for run in answers)
    order = "any order" if question.any_order else "one order"
    kind = "in full" if question.in_full else "searched"
    return (
        f"{question.model:10} {question.machine:10} {question.gpus:6} GPUs, {order}, {kind}: {first.searched:,} grids, "
        f"{first.evaluated:10,} evaluations, {rate:10,.0f} per second = {rate / TARGET_RATE:.2f} of the target, "
        f"best {best:,.0f}, peak {peak / 1e6:.0f} MB = {peak / TARGET_MEMORY:.2f} of what is allowed"
    )


def main() -> None:
    """Print a line a question, then ratios to the peers at the slowest rate."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--core", type=int, default=min(os.sched_getaffinity(0)))
    parser.add_argument("--against", metavar="REVISION", help="compare with the code of this commit, run by run")
    parser.add_argument("--answer", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.answer is not None:
        print(json.dumps(asdict(answer(QUESTIONS[options.answer]))))
        return
    os.sched_setaffinity(0, {options.core})
    print(f"this core: {own_speed():,.0f} numpy passes per second over {_PASSED} numbers")
    if options.against:
        with checked_out(options.against) as other:
            for index, question in enumerate(QUESTIONS):
                print(f"{question.model} on {question.gpus} GPUs of {question.machine}", flush=True)
                print(compared(index, options.runs, other), flush=True)
        return
    rates = []
    for index, question in enumerate(QUESTIONS):
        answers = [asked(index) for _ in range(options.runs)]
        print(report(question, answers), flush=True)
        if question.in_full and answers[0].evaluated >= TARGET_RATE:  # shorter searches are mostly start-up
            rates.append(statistics.median(run.evaluated / run.seconds for run in answers))
    for name, rate in PEERS.items():
        print(f"{min(rates) / rate:12,.0f} times {name} ({rate:,} per second)")


if __name__ == "__main__":
    main()
