"""What starting costs: whole processes of perfmodel against the imports that they cannot do without.

Prints medians, least times and their ratios; run as `python bench/startup.py` in the environment that perfmodel is
installed in. Both processes of a pair run in turn, so that a busy machine slows both, and both find their bytecode.
"""

import argparse
import os
import statistics
import subprocess
import sys
import sysconfig
import time
from dataclasses import dataclass
from pathlib import Path

PERFMODEL = str(Path(sysconfig.get_path("scripts"), "perfmodel"))
RECOMMEND = [
    "recommend",
    "--model",
    "gpt-80b",
    "--machine",
    "frontier",
    "--gpus",
    "32768",
    "--batch",
    "32768",
    "--placement",
    "any",
    "--format",
    "json",
]


@dataclass(frozen=True, slots=True)
class Pair:
    """A command, what it is measured against, and the ratio that it should stay below."""

    name: str
    command: tuple[str, ...]
    against: str
    target: float


PAIRS = (
    Pair("recommend, 32,768 GPUs, any placement", (PERFMODEL, *RECOMMEND), "import numpy, typer, rich", 3.0),
    Pair("--help", (PERFMODEL, "--help"), "import typer, rich", 1.5),
)


def seconds(command: tuple[str, ...]) -> float:
    """Time of one whole process."""
    start = time.perf_counter()
    cached = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=cached)
    return time.perf_counter() - start


def measure(pair: Pair, runs: int) -> tuple[list[float], list[float]]:
    """Times of the command and of the bare imports, run in turn."""
    bare = (sys.executable, "-c", pair.against)
    seconds(pair.command)  # writes the bytecode caches
    seconds(bare)
    times = [(seconds(pair.command), seconds(bare)) for _ in range(runs)]
    return [ours for ours, _ in times], [theirs for _, theirs in times]


def line(pair: Pair, runs: int) -> str:
    """One result in words."""
    all_ours, all_theirs = measure(pair, runs)
    ours, theirs = statistics.median(all_ours), statistics.median(all_theirs)
    least, least_theirs = min(all_ours), min(all_theirs)
    verdict = "meets" if ours <= pair.target * theirs else "MISSES"
    return (
        f"{pair.name}: {ours * 1e3:.0f} ms against {theirs * 1e3:.0f} ms for {pair.against!r}: "
        f"ratio {ours / theirs:.2f}, {verdict} {pair.target:g}; "
        f"least {least * 1e3:.0f} and {least_theirs * 1e3:.0f} ms: ratio {least / least_theirs:.2f}"
    )


def main() -> None:
    """Print a line a pair."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=15)
    runs = parser.parse_args().runs
    for pair in PAIRS:
        print(line(pair, runs))


if __name__ == "__main__":
    main()
