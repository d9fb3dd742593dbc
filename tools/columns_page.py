"""The tables of docs/columns.md, made from the declarations: columns of a result and of a sweep, terms of both kinds.

Run as `python tools/columns_page.py` to compare, as `python tools/columns_page.py --write` to put them in place.
"""

from collections.abc import Iterable
from pathlib import Path

from page_tables import run, table
from perfmodel.search.results import result_columns, sweep_columns
from perfmodel.search.results.columns import Column
from perfmodel.search.terms import MEMORY_TERMS, TERMS

PAGE = Path(__file__).parents[1] / "docs" / "columns.md"
_TABLES = ("ranking", "sweep", "report", "report of scaling")


def results() -> str:
    """One line for each column of a result."""
    return _declared(result_columns.RESULT)


def points() -> str:
    """One line for each column of a count of devices."""
    return _declared(sweep_columns.POINT)


def _declared(declared: Iterable[Column]) -> str:
    heads = ["key", "unit", "heading", "meaning", "tables that show it"]
    return table(heads, [_line(column) for column in declared])


def _line(column: Column) -> list[str]:
    shown = {place.table for place in column.places}
    named = ", ".join(name for name in _TABLES if name in shown)
    return [f"`{column.key}`", column.unit, column.heading, column.meaning, named]


def terms() -> str:
    """One line for each term of the communication."""
    rows = [
        [f"`{term.key}`", term.heading, term.meaning, f"Eq. {term.equation}" if term.equation else ""] for term in TERMS
    ]
    return table(["key", "heading", "meaning", "equation"], rows)


def memory() -> str:
    """One line for each term of the memory."""
    return table(["key", "meaning"], [[f"`{key}`", meaning] for key, meaning in MEMORY_TERMS.items()])


TABLES = {"results": results, "points": points, "terms": terms, "memory": memory}

if __name__ == "__main__":
    run(PAGE, TABLES, __doc__)
