"""The map of docs/architecture.md: rooms in the order of the import contracts, files and what their docstrings say.

Run as `python tools/architecture_page.py` to compare, as `python tools/architecture_page.py --write` to put it in
place. A room is a package that a contract of pyproject.toml places in a layer; what is no package is a base module.
"""

import ast
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from page_tables import run, table

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "architecture.md"
LIBRARY, LAUNCHER, PROGRAM = "perfmodel", "perfmodel.launch", "perfmodel_cli"
_FOLDERS = {LIBRARY: ROOT / "perfmodel", LAUNCHER: ROOT / "perfmodel" / "launch", PROGRAM: ROOT / "cli/perfmodel_cli"}
_BASE_ALONE = "It may import no other room, only the base modules."
_INSIDE = {LAUNCHER: "launcher", PROGRAM: "program"}
# What a page names between backticks that has a slash is a path, unless it begins as an option or an address does.
_PATH = re.compile(r"`([\w.*]+/[\w./*-]*)`")


@cache
def layers(container: str) -> tuple[tuple[str, ...], ...]:
    """The layers of a container, highest first, each with the names that stand side by side in it."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    found = next(one["layers"] for one in settings["contracts"] if one.get("containers") == [container])
    return tuple(tuple(re.split(r" [|:] ", layer)) for layer in found)


def rooms(container: str) -> list[str]:
    """The packages of a container, in the order of its contract."""
    return [name for layer in layers(container) for name in layer if (_FOLDERS[container] / name).is_dir()]


def permission(container: str, room: str) -> str:
    """What a room may import, as a sentence: every layer below its own."""
    own = next(number for number, layer in enumerate(layers(container)) if room in layer)
    below = [name for layer in layers(container)[own + 1 :] for name in layer]
    if container == LIBRARY:
        others = [name for name in below if name in rooms(container)]
        return f"It may import the rooms {_list(others)}, and the base modules." if others else _BASE_ALONE
    inside = _INSIDE[container]
    return (
        f"Within the {inside} it may import {_list(below)}."
        if below
        else f"Within the {inside} it may import nothing else."
    )


def _list(names: list[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def docstring(path: Path) -> str:
    """The docstring of a module, each paragraph on one line."""
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in text.split("\n\n"))


def room_docstring(container: str, room: str) -> str:
    """The docstring of a room's package."""
    return docstring(_FOLDERS[container] / room / "__init__.py")


def library() -> str:
    """The rooms of the library, those of the launcher inside it, and the base modules."""
    parts = [part for room in rooms(LIBRARY) for part in _room(LIBRARY, room)]
    alone = [name for layer in layers(LIBRARY) for name in layer if name not in rooms(LIBRARY)]
    highest = next(number for number, layer in enumerate(layers(LIBRARY)) if set(layer) & set(rooms(LIBRARY)))
    above = [name for layer in layers(LIBRARY)[:highest] for name in layer]
    doors = _files([_FOLDERS[LIBRARY] / f"{name}.py" for name in ("__init__", *above)])
    base = _files([_FOLDERS[LIBRARY] / f"{name}.py" for name in alone if name not in above])
    front = ["### Above the rooms", "What `import perfmodel` gives.", doors]
    return "\n\n".join([*front, *parts, "### Base modules", "They do not depend on the subject of training.", base])


def program() -> str:
    """The rooms of the program, and its modules beside them."""
    beside = sorted(_FOLDERS[PROGRAM].glob("*.py"))
    parts = [part for room in rooms(PROGRAM) for part in _room(PROGRAM, room)]
    return "\n\n".join([*parts, "### Beside them in `cli/perfmodel_cli/`", _files(beside)])


def _room(container: str, room: str, mark: str = "###") -> Iterator[str]:
    folder = _FOLDERS[container] / room
    yield f"{mark} `{folder.relative_to(ROOT)}/`"
    yield f"{_first_paragraph(folder / '__init__.py')} {permission(container, room)}"
    if files := _files(sorted(folder.glob("*.py"))):
        yield files
    if f"{container}.{room}" == LAUNCHER:
        for inner in rooms(LAUNCHER):
            yield from _room(LAUNCHER, inner, "####")
        return
    for within in sorted(path.parent for path in folder.glob("*/__init__.py")):
        yield f"#### `{within.relative_to(ROOT)}/`"
        yield docstring(within / "__init__.py").replace("\n\n", " ")
        yield _files(sorted(within.glob("*.py")))


def _files(paths: list[Path]) -> str:
    """A table of files, each with the first paragraph of its docstring; a package's own was said above."""
    rows = [
        [f"`{path.name}`", _first_paragraph(path).replace("|", "\\|")]
        for path in paths
        if path.name != "__init__.py" or _defines(path)
    ]
    return table(["file", "what it is"], rows) if rows else ""


def _first_paragraph(path: Path) -> str:
    return docstring(path).split("\n\n", maxsplit=1)[0]


def _defines(path: Path) -> bool:
    """Whether a package's own file holds more than its docstring."""
    return len(ast.parse(path.read_text(encoding="utf-8")).body) > 1


def paths(text: str) -> list[str]:
    """Paths that a text names between backticks, each once; NAME stands in them for any name.

    >>> paths("`perfmodel/units.py`, `docs/`, `units.py`, `--x/y`, `perfmodel/costs/NAME.py`, `docs/`")
    ['perfmodel/units.py', 'docs/', 'perfmodel/costs/NAME.py']
    """
    return list(dict.fromkeys(_PATH.findall(text)))


def missing(text: str) -> list[str]:
    """The paths of a text at which the project has nothing.

    >>> missing("`perfmodel/units.py`, `perfmodel/costs/NAME.py`, `perfmodel/no.py`, `perfmodel/no/NAME.py`")
    ['perfmodel/no.py', 'perfmodel/no/NAME.py']
    """
    return [path for path in paths(text) if not any(ROOT.glob(path.replace("NAME", "*").rstrip("/")))]


TABLES = {"library": library, "program": program}

if __name__ == "__main__":
    run(PAGE, TABLES, __doc__)
