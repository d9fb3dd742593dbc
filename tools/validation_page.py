"""docs/validation.md: how far predictions are from what was published and measured, against the targets set for them.

Run as `python tools/validation_page.py` to print the one table of all targets, with `--write` to renew the page. Sets
of other people's measurements are read from the folder that PERFMODEL_MEASURED names; without it the table has the
published part alone, and the page keeps the measured part as it was recorded.
"""

import argparse
import dataclasses
import os
import re
import statistics
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import collective_errors
import loop_targets
import measured_sets
from page_tables import table
from perfmodel.machines import profiles
from perfmodel.parallel.settings import HOST_TIME, Settings
from perfmodel.units import parse
from perfmodel.validation import calibrated_profile, calibration, compare, published, records
from perfmodel.validation.compare import Comparison
from perfmodel.validation.measured_steps import COLUMNS, MeasuredStep, Reading
from perfmodel.validation.published import ContentionFit, Published
from perfmodel.validation.scores import Sizes
from perfmodel.validation.steps import records as step_records
from perfmodel.validation.steps import scores as step_scores

PAGE = Path(__file__).parents[1] / "docs" / "validation.md"
FOLDER = "PERFMODEL_MEASURED"
_BLOCK = re.compile(r"<!-- (columns|published|figures|measured|loop|steps) -->\n.*?<!-- end -->", re.DOTALL)
_FULL = Settings(fidelity="full")
_LITGPT = "as the authors' LitGPT runs by default: weights gathered in fp32, one sequence at a time"
_FITTED = [parse(f"{time} us", "s") for time in range(30, 61)]
_HALF = (12, 20)  # blocks of the models that the host time is fitted to; scored on the others, 16 and 24
# The cluster of vTrain's runs as its own configuration of them describes it: half the NICs of a DGX A100.
_CLUSTER = """format: 1
name: vtrain-cluster
base: dgx-a100
title: DGX A100 with 800 Gbit/s a node
sources:
  VTRAIN: {kind: paper, address: "https://github.com/VIA-Research/vTrain, commit f8dda84, configurations", date: 2024}
network:
  nics: 4 [VTRAIN]
  injection: 100 GB/s [VTRAIN]
"""


@dataclasses.dataclass(frozen=True, slots=True)
class Target:
    """One line of the table: what is checked, what is wanted, what came out."""

    check: str
    target: str
    figure: str
    met: bool

    @property
    def cells(self) -> list[str]:
        """For a table."""
        return [self.check, self.target, self.figure, "met" if self.met else "**missed**"]


def percent(share: float) -> str:
    """A share in percent."""
    return f"{100 * share:.1f} %"


def published_targets() -> Iterator[Target]:
    """What is shipped."""
    found, fits = published.validate(), published.fits()
    by_check, after = _by_check(found), _by_check(one for one in published.refitted(found, fits) if one)
    worst = {check: max(abs(one.error) for one in rows) for check, rows in by_check.items()}
    refitted = "… after that fit"
    yield _batch(
        "batch times, Perlmutter 5B to 40B and Frontier 5B to 80B, best predicted grid", by_check["batch time"]
    )
    yield _batch(f"… {_fitted(fits)}", after["batch time"])
    yield _batch(f"batch times, Frontier, {_LITGPT}", by_check["batch time (LitGPT)"])
    yield _batch(refitted, after["batch time (LitGPT)"])
    yield _worst("computation, Frontier, 5B to 80B", worst["computation"], 0.04)
    yield _worst(f"computation, Frontier, {_LITGPT}", worst["computation (LitGPT)"], 0.04)
    yield _ladder("overlap ladder, 80B on 8192 GCDs: none, +OAR, +ORS, +OAG", by_check["overlap ladder"])
    yield _ladder(refitted, after["overlap ladder"])
    yield _ladder(f"overlap ladder, {_LITGPT}", by_check["overlap ladder (LitGPT)"])
    yield _ladder(refitted, after["overlap ladder (LitGPT)"])
    ratios = [one.predicted for one in by_check["baseline / best"]]
    yield Target(
        "baseline / best, Frontier, 5B to 80B", "1.15 to 1.8", ", ".join(f"{ratio:.2f}" for ratio in ratios),
        all(1.15 <= ratio <= 1.8 for ratio in ratios),
    )  # fmt: skip
    yield _worst("nanoGPT 20B, 256 A100 of Perlmutter", worst["nanoGPT"], 0.1)
    yield _worst("memory, 22B on 8 A100: state, baseline, selective, full", worst["memory"], 0.05)


def _by_check(found: Iterable[Published]) -> dict[str, list[Published]]:
    by_check: dict[str, list[Published]] = {}
    for one in found:
        by_check.setdefault(one.row["check"], []).append(one)
    return by_check


def _fitted(fits: Sequence[ContentionFit]) -> str:
    """What was fitted to which run."""
    values = "; ".join(
        f"{fit.contention:.2f} to {fit.row['model'].removeprefix('gpt-').upper()} on {fit.row['gpus']} of "
        f"{fit.row['machine'].capitalize()}"
        for fit in fits
    )
    return f"contention fitted ({values}), those runs not scored"


def _batch(check: str, found: list[Published]) -> Target:
    sizes = Sizes.of([one.error for one in found])
    figure = f"mean {percent(sizes.mape)}, worst {percent(sizes.worst)}, {sizes.rows} runs"
    return Target(check, "mean ≤ 8 %, worst ≤ 18 %", figure, sizes.mape <= 0.08 and sizes.worst <= 0.18)


def _ladder(check: str, found: list[Published]) -> Target:
    seconds, worst = [one.predicted for one in found], max(abs(one.error) for one in found)
    ordered = seconds == sorted(seconds, reverse=True)
    figure = f"worst {percent(worst)}, {'in order' if ordered else 'out of order'}"
    return Target(check, "each ≤ 10 %, in order", figure, ordered and worst <= 0.1)


def _worst(check: str, found: float, most: float) -> Target:
    return Target(check, f"each ≤ {100 * most:g} %", f"worst {percent(found)}", found <= most)


def measured_targets(folder: Path) -> Iterator[Target]:
    """What others measured."""
    yield from collective_targets(folder)
    single, multi = measured_sets.vtrain(folder, "single"), measured_sets.vtrain(folder, "multi")
    stock = compare.compare(measured_sets.only(single, lambda row: not measured_sets.set_the_host_time(row)), _FULL)
    yield _mean("vTrain, one node, but for the rows that set the host time", stock, 0.15)
    order = stock.order
    spearman, regret = order.spearman or 0.0, order.regret or 0.0
    yield Target("… Spearman within groups, median", "≥ 0.97", f"{spearman:.3f}", spearman >= 0.97)
    yield Target("… regret, mean", "≤ 1.02", f"{regret:.3f}", regret <= 1.02)
    yield calibrated(single)
    yield after_calibration(single)
    with tempfile.TemporaryDirectory() as place:
        cluster = Path(place) / "vtrain-cluster.yaml"
        cluster.write_text(_CLUSTER, encoding="utf-8")
        rows = tuple(dataclasses.replace(row, machine=str(cluster)) for row in multi.rows)
        theirs = compare.compare(dataclasses.replace(multi, rows=rows), _FULL)
    whole = compare.compare(multi, _FULL).sizes.mape
    told = _mean("vTrain, 8 to 64 nodes of 800 Gbit/s, as its configuration says", theirs, 0.11)
    yield dataclasses.replace(told, figure=f"{told.figure} (dgx-a100 with 1600: {percent(whole)})")
    yield _mean("llm-foundry, FSDP on 8 to 128 A100", compare.compare(measured_sets.foundry(folder), _FULL), 0.1)


def _mean(check: str, found: Comparison, most: float) -> Target:
    sizes = found.sizes
    figure = f"mean {percent(sizes.mape)}, bias {100 * sizes.bias:+.1f} %, {sizes.rows} rows"
    return Target(check, f"mean ≤ {100 * most:g} %", figure, sizes.mape <= most)


def calibrated(single: Reading) -> Target:
    """The host's time fitted on the models of 12 and 20 blocks, scored on those of 16 and 24."""
    fitted = measured_sets.only(single, lambda row: _blocks(row) in _HALF)
    others = measured_sets.only(single, lambda row: _blocks(row) not in _HALF)
    best = min(_FITTED, key=lambda time: _error(fitted, time))
    before, after = _error(others, HOST_TIME), _error(others, best)
    return Target(
        "… host time fitted on models of 12 and 20 blocks, scored on 16 and 24",
        "mean ≤ 7 %",
        f"mean {percent(after)} at {best / parse('1 us', 's'):.0f} us ({percent(before)} before)",
        after <= 0.07,
    )


def after_calibration(single: Reading) -> Target:
    """All that can be calibrated, as `perfmodel calibrate` does it, by the same halves."""
    fitted = measured_sets.only(single, lambda row: _blocks(row) in _HALF)
    others = measured_sets.only(single, lambda row: _blocks(row) not in _HALF)
    found = calibration.calibrate(compare.compare(fitted, _FULL), profiles.load(single.rows[0].machine))
    with tempfile.TemporaryDirectory() as place:
        source, file = Path(place) / single.path, Path(place) / "calibrated.yaml"
        source.touch()
        file.write_text(calibrated_profile.profile(found, "dgx-a100", file, [str(source)]), encoding="utf-8")
        rows = tuple(dataclasses.replace(row, machine=str(file)) for row in others.rows)
        after = compare.compare(dataclasses.replace(others, rows=rows), _FULL).sizes.mape
    before = compare.compare(others, _FULL).sizes.mape
    return Target(
        f"… `calibrate` on the same halves: {', '.join(one.adjustment.name for one in found.fitted)}",
        "lower than before",
        f"mean {percent(after)} ({percent(before)} before)",
        after < before,
    )


def _error(rows: Reading, host_time: float) -> float:
    return compare.compare(rows, dataclasses.replace(_FULL, host_time=host_time)).sizes.mape


def _blocks(row: MeasuredStep) -> int | None:
    return row.model[1] if isinstance(row.model, tuple) else None


def collective_targets(folder: Path) -> Iterator[Target]:
    """Formulas and measured tables against calls of collectives."""
    found = collective_errors.sets(folder)
    rows = [
        row for name in ("perlmutter nccl-tests", "perlmutter benchmarks", "polaris set-up 4") for row in found[name]
    ]
    classes = {"all sizes": ((0.0, float("inf")), 0.15)}
    classes |= {"1-32 MiB": (collective_errors.CLASSES["1-32 MiB"], 0.2)}
    classes |= {"≥ 64 MiB": (collective_errors.CLASSES[">= 64 MiB"], 0.08)}
    for name, ((least, most), target) in classes.items():
        errors = [abs(row.error) for row in rows if least <= row.size < most]
        median = statistics.median(errors)
        yield Target(
            f"collectives by formula, Perlmutter and Polaris, {name}", f"median ≤ {100 * target:g} %",
            f"median {percent(median)}, {len(errors)} rows", median <= target,
        )  # fmt: skip
    tests = found["perlmutter nccl-tests"]
    for name, keep in (("every other size", lambda _, size: size % 2 == 0), ("4 nodes", lambda nodes, _: nodes != 1)):
        count, left = collective_errors.left_out(tests, keep).split()
        yield Target(
            f"collectives by measured table, left out: {name}", "median ≤ 8 %", f"median {left} %, {count} rows",
            float(left) <= 8,
        )  # fmt: skip


def targets(found: Iterator[Target]) -> str:
    """The table of targets."""
    return table(["check", "target", "figure", ""], [one.cells for one in found])


def figures() -> str:
    """Every published figure with its prediction, and where it is printed."""
    heads = [
        "check",
        "machine",
        "model",
        "GPUs",
        "overlap",
        "grid",
        "of",
        "predicted",
        "published",
        "error",
        "after the fit",
        "printed in",
    ]
    found = published.validate()
    record = records.published_record(found, 1.0, refitted=published.refitted(found, published.fits()))
    rows = [
        [
            row["check"], row["machine"], row["model"], str(row["gpus"]), row["overlap"],
            "x".join(map(str, row["grid"].values())), row["quantity"], f"{row['predicted']:.4g}",
            f"{row['published']:.4g} {row['unit']}", f"{100 * row['error']:+.1f} %",
            "" if row["error_after_fit"] is None else f"{100 * row['error_after_fit']:+.1f} %", row["source"],
        ]
        for row in record["rows"]
    ]  # fmt: skip
    return table(heads, rows)


def step_sets(folder: Path) -> str:
    """Scores of each set of published steps, and over all of them; with the traits of frameworks and without."""
    files = step_scores.files([str(folder)])
    own = step_records.steps_record(*step_scores.scored(files))
    plain = step_records.steps_record(*step_scores.scored(files, "perfmodel"))
    without = {one["set"]: one["mean_error"] for one in plain["sets"]}
    heads = [
        "set", "rows", "refused", "mean error", "as our launcher", "bias", "worst", "one factor", "Spearman", "regret",
        "memory", "ran", "ran out",
    ]  # fmt: skip
    rows = [
        [
            one["set"], str(one["rows"]), str(one["refused"]), _percent(one["mean_error"]),
            _percent(without[one["set"]]), _percent(one["bias"]), _percent(one["worst"]),
            _percent(one["with_one_factor"]), _plain(one["spearman"]), _plain(one["regret"]),
            _percent(one["memory_error"]), _percent(one["ran_called_right"]), _percent(one["ran_out_called_right"]),
        ]
        for one in own["sets"]
        if one["rows"] or one["memory_rows"]
    ]  # fmt: skip
    today = datetime.now(tz=UTC).date()
    over = (
        f"Recorded on {today}. Mean over sets {_percent(own['mean_error'])}, bias {_percent(own['bias'])}; as our own "
        f"launcher {_percent(plain['mean_error'])}. Likely ranges, each set left out: {_percent(own['coverage'])} of "
        f"runs inside (nominal 90 %), median width {own['median_width']:.2f}."
    )
    return f"{over}\n\n{table(heads, rows)}"


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.1f} %"


def _plain(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def page(folder: Path | None = None) -> str:
    """The page as it is now; its measured part is renewed only where there is a folder to renew it from."""

    def block(found: re.Match[str]) -> str:
        made = {
            "columns": lambda: table(["column", "holds"], [[f"`{name}`", text] for name, text in COLUMNS.items()]),
            "published": lambda: targets(published_targets()),
            "figures": figures,
            "loop": loop_targets.targets,
        }
        if found[1] in made:
            return f"<!-- {found[1]} -->\n{made[found[1]]()}\n<!-- end -->"
        if folder is None:
            return found[0]
        if found[1] == "steps":
            return f"<!-- steps -->\n{step_sets(folder / 'steps')}\n<!-- end -->"
        today = datetime.now(tz=UTC).date()
        return f"<!-- measured -->\nRecorded on {today}.\n\n{targets(measured_targets(folder))}\n<!-- end -->"

    return _BLOCK.sub(block, PAGE.read_text(encoding="utf-8"))


def main() -> None:
    """Print the table of targets, or renew the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="put the tables into the page")
    folder = Path(os.environ[FOLDER]) if os.environ.get(FOLDER) else None
    if parser.parse_args().write:
        PAGE.write_text(page(folder), encoding="utf-8")
        return
    print(targets(iter([*published_targets(), *(measured_targets(folder) if folder else ())])))
    if folder is None:
        sys.stderr.write(f"set {FOLDER} to the folder of measured sets for the rest\n")


if __name__ == "__main__":
    main()
