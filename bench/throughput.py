"""How many evaluations a second one core does: every rule, memory, every layer's time, and the best ones kept.

An evaluation is one grid in one order with one micro-batch and one mode of recomputation and caching that keeps all
rules; grids that break one are in the time, not in the count. A search drops what does not fit before timing it, so
`whole` questions ignore the limit of memory, which makes every evaluation a full one.

Each question is searched in a process of its own, pinned to one core. Prints rates, peak memory, and their ratios to
the targets and to the peers' rates on a machine like this one. Run as `python bench/throughput.py`.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from dataclasses import asdict, dataclass

from perfmodel import models, profiles
from perfmodel.job import Job
from perfmodel.layout import PLACEMENTS
from perfmodel.search import Space, rank
from perfmodel.settings import Settings

TARGET_RATE = 1_000_000  # evaluations a second on one core
TARGET_MEMORY = 300_000_000  # bytes at ten million evaluations
# Evaluations a second and core, measured on a machine like this one, each tool at its best.
PEERS = {
    "Calculon, logger off": 286,
    "transformer-perf-estimates (NERSC)": 110,
    "SimuMax": 7,
    "llm-cluster-simulator": 19_100,
}


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked. `any_order` tries all placements; `whole` times grids that do not fit in memory as well."""

    model: str
    machine: str
    gpus: int
    batch: int
    any_order: bool = True
    whole: bool = True


QUESTIONS = (
    Question("gpt3-175b", "perlmutter", 1024, 1536, any_order=False),
    Question("gpt3-175b", "perlmutter", 24576, 24576 * 5040, any_order=False),
    Question("llama-3-8b", "dgx-h100", 512, 1024 * 27),
    Question("gpt3-175b", "frontier", 32768, 32768 * 720),
    Question("gpt3-175b", "perlmutter", 24576, 24576 * 5040),
    Question("gpt3-175b", "perlmutter", 24576, 24576 * 5040, whole=False),
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
    """Search once, in this process."""
    settings = Settings(ignore_memory=question.whole)
    job = Job.of(models.load(question.model), profiles.load(question.machine), batch=question.batch, settings=settings)
    space = Space(question.gpus, tuple(range(len(PLACEMENTS))) if question.any_order else (0,))
    start = time.perf_counter()
    ranking = rank(job, space)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return Answer(ranking.searched, ranking.evaluated, seconds, peak)


def asked(index: int) -> Answer:
    """Search in a new process, pinned to the core that the command line chose, with no threads behind numpy."""
    command = [sys.executable, __file__, "--answer", str(index)]
    single = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=os.environ | single)
    return Answer(**json.loads(done.stdout))


def report(question: Question, answers: list[Answer]) -> str:
    """One line on one question: the median rate of several runs."""
    first = answers[0]
    rate = statistics.median(run.evaluated / run.seconds for run in answers)
    peak = max(run.peak_bytes for run in answers)
    order = "any order" if question.any_order else "one order"
    kind = "all timed" if question.whole else "fitting ones timed"
    return (
        f"{question.model:10} {question.machine:10} {question.gpus:6} GPUs, {order}, {kind}: {first.searched:,} grids, "
        f"{first.evaluated:10,} evaluations, {rate:10,.0f} a second = {rate / TARGET_RATE:.2f} of the target, "
        f"peak {peak / 1e6:.0f} MB = {peak / TARGET_MEMORY:.2f} of what is allowed"
    )


def main() -> None:
    """Print a line a question, then ratios to the peers at the slowest rate."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--core", type=int, default=min(os.sched_getaffinity(0)))
    parser.add_argument("--answer", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.answer is not None:
        print(json.dumps(asdict(answer(QUESTIONS[options.answer]))))
        return
    os.sched_setaffinity(0, {options.core})
    rates = []
    for index, question in enumerate(QUESTIONS):
        answers = [asked(index) for _ in range(options.runs)]
        print(report(question, answers), flush=True)
        if question.whole and answers[0].evaluated >= TARGET_RATE:  # shorter searches are mostly start-up
            rates.append(statistics.median(run.evaluated / run.seconds for run in answers))
    for name, rate in PEERS.items():
        print(f"{min(rates) / rate:12,.0f} times {name} ({rate:,} a second)")


if __name__ == "__main__":
    main()
