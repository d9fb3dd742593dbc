"""The command that writes an answer, and what it is based on, as one page."""

import shlex
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from perfmodel.errors import UsageError, printable
from perfmodel.parallel import option_values
from perfmodel_cli.options.groups import Search, asks, values
from perfmodel_cli.options.question import Question, example
from perfmodel_cli.texts import grid_text

if TYPE_CHECKING:
    from perfmodel.parallel.job import Job
    from perfmodel.search.search import Ranking
    from perfmodel.validation.measured_steps import Reading

_ENDINGS = (".html", ".htm")
_SHARES, _MULTIPLES = (4, 2), (1, 2, 4)  # of --gpus: the counts of the scaling plot unless others are asked for


@dataclass(frozen=True, slots=True, kw_only=True)
class PageOptions(Search):
    """What is searched, and what the page shows beside the answer."""

    gpus_list: Annotated[
        str, typer.Option("--gpus-list", help="Counts for the scaling plot [default: a quarter to 4 times --gpus].")
    ] = ""


@asks
@example("perfmodel report --model gpt-20b --machine perlmutter --gpus 256 --batch 2048 --out report.html")
def report(
    question: Question,
    out: Annotated[str, typer.Option("--out", help="The page to write, a name that ends in .html.")],
    search: PageOptions,
) -> None:
    """Write a recommendation and all that it is based on as one HTML page that needs no network.

    The fastest grids, where their time and memory go, scaling, the machine's figures with sources, and the settings.
    """
    path = _page(out)
    from perfmodel.files import write_whole
    from perfmodel_cli.report import page

    made = _made(question, search, out)
    write_whole(path, page.page(made))
    best = made.ranking["results"][0]
    typer.echo(printable(f"wrote {out}: the fastest grid is {grid_text(best)}, {best['step_time_s']:.4g} s per step"))


def _page(out: str) -> Path:
    """The file to write, after a check that it can be written."""
    from perfmodel.files import check_writable

    if not out.lower().endswith(_ENDINGS):
        raise UsageError(f"--out {out!r}: wanted a name that ends in {' or '.join(_ENDINGS)}")
    check_writable(Path(out))
    return Path(out)


def _made(question: Question, search: PageOptions, out: str) -> Any:
    """Everything that the page shows."""
    from perfmodel.costs import profile_record
    from perfmodel.machines import records
    from perfmodel_cli.report import page_contents
    from perfmodel_cli.report.page import Report

    wanted = search.training_tokens()
    reading = _reading(search.measured)
    job = _leveled(question.job(search.limits), reading)
    devices = search.count.of(job.machine)
    listed = option_values.devices(search.gpus_list, "--gpus-list") if search.gpus_list else _around(devices)
    space = question.space(devices, search.top)
    ranking, record = page_contents.ranked(job, space, wanted, uncertain=search.uncertainty)
    comparison, problems = page_contents.compared(reading) if reading else (None, ())
    parts, note = page_contents.breakdown(ranking, record)
    figures = [*records.machine_figures(job.machine), *records.timing_figures(job.machine)]
    return Report(
        ranking=record,
        parts=parts,
        parts_note=note,
        scaling=page_contents.scaling(job, space, listed),
        machine=profile_record.machine_record(job.machine) | {"figures": figures},
        settings=_settings([*values(question), *values(search), ("--out", out)], ranking)
        | {key: record[key] for key in ("compute_source", "bandwidth_source")},
        comparison=comparison,
        problems=problems,
    )


def _reading(measured: str) -> "Reading | None":
    """Measured steps, read before anything is computed."""
    if not measured:
        return None
    from perfmodel.validation import step_files

    return step_files.read(Path(measured))


def _leveled(job: "Job", reading: "Reading | None") -> "Job":
    """The job at the level of measured steps, where any is of its machine."""
    if reading is None or all(row.machine != job.machine.name for row in reading.rows):
        return job
    from perfmodel.validation import level

    return level.at_level(job, reading)


def _around(devices: int) -> list[int]:
    """Counts around the one asked for, those that are whole numbers."""
    return [devices // share for share in _SHARES if devices % share == 0] + [devices * times for times in _MULTIPLES]


def _settings(given_options: Iterable[tuple[str, Any]], ranking: "Ranking") -> dict[str, Any]:
    """The command line, all its options including those not given, and the resulting settings."""
    from perfmodel import __version__
    from perfmodel.search.results.answer_records import settings_record

    given = {word.split("=")[0] for word in sys.argv}
    rows = []
    for name, value in given_options:
        shown = _SHOWN.get(value, value) if value is None or isinstance(value, (bool, str)) else value
        rows.append((name, str(shown), bool(given & {name, f"--no-{name[2:]}"})))
    return {
        "command": shlex.join(["perfmodel", *sys.argv[1:]]),
        "options": rows,
        "settings": settings_record(ranking.job.settings),
        "version": __version__,
    }


_SHOWN = {None: "-", "": "-", True: "yes", False: "no"}
