"""Answers of the Python functions as the tables that the program prints: for Rich, as text, and as HTML."""

import io

from rich.console import Console, Group

from perfmodel.answers import Answer, Recommendation
from perfmodel_cli.render import calibration_table, comparison_tables, explanation, ranking_table, sweep_table
from perfmodel_cli.terminal.windows import PAGE_WIDTH, put, window

_PICTURES = {
    "explain": explanation.explanation,
    "sweep": sweep_table.sweep,
    "compare": comparison_tables.comparison,
    "calibrate": calibration_table.calibration,
}
# As Rich's own for notebooks: as wide as the text, with a bar to scroll where the page is narrower.
_HTML = '<pre style="white-space:pre;overflow-x:auto;line-height:normal;font-family:monospace">{code}</pre>\n'


def picture(answer: Answer) -> Group:
    """An answer as a Rich renderable."""
    if isinstance(answer, Recommendation):
        return ranking_table.ranking(answer.record, answer.ranking)
    return _PICTURES[answer.command](answer.record)


def text(answer: Answer) -> str:
    """An answer as the program's output: as wide as the window, or as a page where there is none."""
    file = io.StringIO()
    console = Console(file=file, highlight=False, force_terminal=False, color_system=None, force_jupyter=False)
    put(console, picture(answer), window())
    return file.getvalue().rstrip("\n")


def html(answer: Answer) -> str:
    """An answer as HTML with its styles."""
    console = Console(file=io.StringIO(), highlight=False, record=True, force_jupyter=False)
    put(console, picture(answer), PAGE_WIDTH)
    return console.export_html(inline_styles=True, code_format=_HTML)
