"""The commands that show one grid: its terms, and what runs when."""

from pathlib import Path
from typing import Annotated, Any

import typer

from perfmodel_cli import printing
from perfmodel_cli.options import shared
from perfmodel_cli.options.groups import asks
from perfmodel_cli.options.question import Question, example
from perfmodel_cli.printing import renderer, show


@asks
@example("perfmodel explain --grid 1x2x32x4 --model gpt-20b --machine perlmutter --batch 2048")
def explain(
    question: Question,
    grid: shared.Grid,
    timeline: Annotated[bool, typer.Option("--timeline", help="Show the timeline of a micro-step instead.")] = False,
    output: shared.Output = shared.Format.table,
) -> None:
    """Show every collective, its ranks, link and time, the memory terms, and the equations with their numbers."""
    from perfmodel.parallel import layout
    from perfmodel.search import explain as explaining
    from perfmodel.search.results import answer_records

    wanted = layout.parse_grid(grid)
    explanation = explaining.explain(question.job(), question.space(int(wanted.gpus), 1), wanted)
    if timeline:
        shown = answer_records.timeline_record(explanation, *explaining.timeline(explanation))
        _tell_rejections(shown)
        show(shown, shown["events"], output, lambda: renderer("explanation").timeline(shown))
        return
    record = answer_records.explanation_record(explanation)
    show(record, record["collectives"], output, lambda: renderer("explanation").explanation(record))


@asks
@example("perfmodel trace --grid 1x2x32x4 --model gpt-20b --machine perlmutter --batch 2048 trace.json")
def trace(
    question: Question,
    grid: shared.Grid,
    file: Annotated[str, typer.Argument(help="The file to write; Perfetto and chrome://tracing open it.")],
) -> None:
    """Write the timeline of one grid's micro-step as a Chrome trace."""
    import json

    from perfmodel.files import write_whole
    from perfmodel.parallel import layout
    from perfmodel.search import explain as explaining
    from perfmodel.search.results import answer_records
    from perfmodel.step.timeline import chrome_trace

    wanted = layout.parse_grid(grid)
    explanation = explaining.explain(question.job(), question.space(int(wanted.gpus), 1), wanted)
    events, end = explaining.timeline(explanation)
    of = answer_records.question_record(explanation)
    _tell_rejections(of)
    write_whole(Path(file), json.dumps(chrome_trace(events, of), allow_nan=False) + "\n")
    typer.echo(f"wrote {len(events):,} events of a micro-step of {end:.4g} s to {file}")


def _tell_rejections(of: dict[str, Any]) -> None:
    """Say on standard error that a timeline is of a grid that cannot run."""
    for rejection in of["rejected"]:
        printing.tell(f"rejected by {rejection['rule']}: {rejection['reason']}")
    if of["rejected"]:
        printing.tell("the timeline is for the setting that needs the least memory, and cannot run")
