"""The tables of docs/python.md, made from the code: the names of `import perfmodel`, and the options of its functions.

Run as `python tools/python_page.py` to compare, as `python tools/python_page.py --write` to put them in place.
"""

import dataclasses
import inspect
import typing
from pathlib import Path
from typing import Any

import perfmodel
from page_tables import run, table
from perfmodel.api import SearchOptions
from perfmodel.search.question import Question
from perfmodel_cli.options import question, shared

PAGE = Path(__file__).parents[1] / "docs" / "python.md"


def names() -> str:
    """One line for each public name."""
    public = [name for name in perfmodel.__all__ if not name.startswith("_")]
    return table(["name", "what"], [[f"`{name}`", _first(getattr(perfmodel, name))] for name in public])


def _first(found: Any) -> str:
    """The first paragraph of its docstring."""
    return " ".join((inspect.getdoc(found) or "").split("\n\n")[0].split())


def option_table() -> str:
    """One line for each option: its name, default, and the help of the command line."""
    defaults = {field.name: field.default for field in dataclasses.fields(Question)}
    rows = [[f"`{name}`", _default(defaults[name]), _help(name)] for name in typing.get_type_hints(SearchOptions)]
    return table(["option", "default", "what"], rows)


def _default(value: Any) -> str:
    """As it would be written; nothing where there is none."""
    if isinstance(value, frozenset):
        value = sorted(value)
    return "" if value in ("", None, dataclasses.MISSING) else f"`{value!r}`"


def _help(name: str) -> str:
    kinds = typing.get_type_hints(question.Question, include_extras=True)
    kind = kinds.get(name) or {"fix": shared.Fix, "max": shared.Maximum}[name]
    (told,) = [extra for extra in typing.get_args(kind)[1:] if hasattr(extra, "help")]
    return str(told.help).replace("|", "\\|")


TABLES = {"names": names, "options": option_table}

if __name__ == "__main__":
    run(PAGE, TABLES, __doc__)
