"""machines import: the tables of collectives of a profile, from a user's logs."""

import datetime as dt
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from perfmodel.errors import MOST_PROBLEMS, PerfmodelError, UsageError
from perfmodel.units import count
from perfmodel_cli import printing
from perfmodel_cli.options import shared
from perfmodel_cli.options.question import example
from perfmodel_cli.texts import shortened

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perfmodel.logs.combined import Combined
    from perfmodel.logs.samples import Log, Problem, Told

_MOST = 1 << 20


class Buffers(StrEnum):
    """Which of the two results in a log is used: in place or out of place."""

    as_called = "as-called"
    out_of_place = "out-of-place"
    in_place = "in-place"
    both = "both"


@example(
    "perfmodel machines import --nccl-tests docs/examples/all_gather_2_nodes.log --base perlmutter --out mine.yaml"
)
def machines_import(
    logs: Annotated[list[str], typer.Argument(help="Files, all of one kind.")],
    base: Annotated[str, typer.Option("--base", help="The machine that they were measured on: shipped, or a file.")],
    out: shared.NewProfile,
    nccl_tests: Annotated[
        bool, typer.Option("--nccl-tests", help="Output of nccl-tests or rccl-tests: text, JSON or CSV.")
    ] = False,
    osu: Annotated[bool, typer.Option("--osu", help="Output of OSU micro-benchmarks: text.")] = False,
    table: Annotated[bool, typer.Option("--csv", help="CSV with the columns of docs/profiles.md.")] = False,
    operation: Annotated[
        str, typer.Option("--operation", help="all-gather, reduce-scatter or all-reduce, if a log does not say.")
    ] = "",
    nodes: Annotated[
        str, typer.Option("--nodes", help="Nodes, if a log does not say: one number, or one per log: 2,4,8.")
    ] = "",
    ranks: Annotated[
        str, typer.Option("--ranks-per-node", help="Ranks per node, if a log does not say; given like --nodes.")
    ] = "",
    buffers: Annotated[
        Buffers,
        typer.Option("--buffers", help="Results to use; as-called: all-reduce in place, the others out of place."),
    ] = Buffers.as_called,
    date: Annotated[str, typer.Option("--date", help="Date of measurement [default: the newest file's day].")] = "",
    output: shared.Output = shared.Format.table,
) -> None:
    """Fill the tables of collectives of a profile from logs of benchmarks.

    Medians go into a new profile on top of the base. A line is also fitted: start-up time and bus bandwidth.
    """
    if date:
        _check_date(date)
    kind = _kind({"--nccl-tests": nccl_tests, "--osu": osu, "--csv": table})
    told = _from_options(operation, nodes, ranks, len(logs))
    found, record = _imported(kind, list(zip(logs, told, strict=True)), (base, out), buffers, date)
    _tell_problems(found.problems, found.used)
    printing.show(record, record["parts"], output.value, lambda: printing.renderer("import_table").imported(record))


def _check_date(text: str) -> None:
    """A day, or a month, or a year."""
    rest = "-01-01"[len(text) - 4 :] if len(text) in (4, 7) else ""
    try:
        day = dt.date.fromisoformat(text + rest)
    except ValueError:
        raise UsageError(f"--date is {text!r}, wanted a day such as 2025-05-31, or 2025-05, or 2025") from None
    if day > dt.datetime.now(tz=dt.UTC).date() + dt.timedelta(days=1):
        raise UsageError(f"--date is {text}, which is in the future")


def _imported(
    kind: str, logs: "list[tuple[str, Told]]", files: tuple[str, str], buffers: Buffers, date: str
) -> "tuple[Combined, dict[str, Any]]":
    """Read the logs and write the profile."""
    from perfmodel.files import write_new
    from perfmodel.logs import combined
    from perfmodel.machines import overlay, profiles

    base, path = files[0], shared.profile_path(files[1])
    machine = profiles.load(base)
    key, names = overlay.source_key(machine), [log for log, _ in logs]
    read = [_read(kind, log, told) for log, told in logs]
    found = combined.combine(read, machine, key, buffers.value)
    if not found.tables:
        _tell_problems(found.problems, found.used)
        raise PerfmodelError(f"nothing to import in {', '.join(names)}: no row is left for a table")
    facts = [fact for log in read for fact in log.facts]
    of = overlay.source(names, facts, _note(found, kind, buffers), date or overlay.written_on(names))
    made = overlay.over(machine, found.tables, path.stem, key, of)
    write_new(path, overlay.text(made, base, key, path))
    return found, combined.import_record(found, files[1])


def _kind(given: dict[str, bool]) -> str:
    wanted = [name for name, is_given in given.items() if is_given]
    if len(wanted) != 1:
        said = " and ".join(wanted) if wanted else "none"
        raise UsageError(f"give one of {', '.join(given)}, not {said}: it says how the files are read")
    return wanted[0]


def _from_options(operation: str, nodes: str, ranks: str, logs: int) -> "list[Told]":
    """What the options say about each log."""
    from perfmodel.logs.samples import Told, operation_named

    named = operation_named(operation)
    if operation and named is None:
        raise UsageError(f"--operation is {operation!r}, wanted all-gather, reduce-scatter or all-reduce")
    each = zip(_counts(nodes, "--nodes", logs), _counts(ranks, "--ranks-per-node", logs), strict=True)
    return [Told(named, *counts) for counts in each]


def _counts(text: str, option: str, logs: int) -> "list[int | None]":
    if not text:
        return [None] * logs
    counts = [count(word.strip(), _MOST) for word in text.split(",")]
    if None in counts or len(counts) not in (1, logs):
        raise UsageError(f"{option} is {text!r}, wanted a whole number, or {logs} of them with commas between")
    return counts if len(counts) == logs else counts * logs


def _read(kind: str, log: str, told: "Told") -> "Log":
    from perfmodel.logs import osu, readers, timings_csv
    from perfmodel.logs.text import read_log

    by_option: dict[str, Any] = {"--nccl-tests": readers.read, "--osu": osu.read, "--csv": timings_csv.read}
    found: Log = by_option[kind](read_log(Path(log)), log, told)
    return found


def _note(found: "Combined", kind: str, buffers: Buffers) -> str:
    """How the numbers were obtained, for readers of the profile."""
    dropped = sum(problem.rows for problem in found.problems)
    placed = f", {buffers.value} buffers" if kind == "--nccl-tests" else ""
    return f"medians of {found.used} samples of {kind[2:]}{placed}; {dropped} rows dropped"


def _tell_problems(problems: "Sequence[Problem]", used: int) -> None:
    named = [str(problem) for problem in problems]
    for line in shortened(named, MOST_PROBLEMS, "and {} more problems"):
        printing.tell(line)
    dropped = sum(problem.rows for problem in problems)
    if dropped:
        printing.tell(f"{dropped} row{'s' * (dropped > 1)} dropped, {used} times used")
