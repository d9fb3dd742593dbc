"""Find and read machine profiles, shipped ones or a user's file."""

from pathlib import Path

import yaml

from perfmodel import schema
from perfmodel.errors import FileProblems, UsageError, nearest
from perfmodel.machines.machine import Machine

_SUFFIX = ".yaml"
_MOST_BASES = 5


def folder() -> Path:
    """Where the shipped profiles are: inside the installed package, or beside it in a checkout."""
    packaged = Path(__file__).parents[1] / "machine_profiles"
    return packaged if packaged.is_dir() else packaged.parents[1] / "machine_profiles"


def names() -> list[str]:
    """Names of the shipped machines, sorted."""
    return sorted(path.name.removesuffix(_SUFFIX) for path in folder().glob(f"*{_SUFFIX}"))


def find(name: str) -> Path:
    """The file of a shipped machine called `name`, or the file of that path."""
    shipped = folder() / f"{name.lower()}{_SUFFIX}"
    if "/" not in name and _is_file(shipped):
        return shipped
    looks_like_a_path = "/" in name or name.endswith((_SUFFIX, ".yml"))
    if looks_like_a_path:
        return Path(name)
    raise UsageError(f"no machine is called {name!r} ({nearest(name, names())}; or give the path of a .yaml file)")


def load(name: str) -> Machine:
    """Read the machine called `name`, or the profile at that path."""
    return load_file(find(name))


def load_file(path: Path) -> Machine:
    """Read a profile and its bases; raise FileProblems with all that is wrong."""
    return schema.build(Machine, _with_bases(path, _MOST_BASES), str(path))


def _with_bases(path: Path, most: int) -> yaml.Node:
    """The profile's node tree merged over that of its `base`, and its base's base."""
    node = schema.compose(schema.read_text(path), str(path))
    base = schema.entry(node, "base")
    if base is None or not base.value:
        return node
    where = f"{path}:{base.start_mark.line + 1}"
    if most == 0:
        raise FileProblems(str(path), [f"{where}: more than {_MOST_BASES} bases, one on the other"])
    beside = path.parent / f"{base.value}{_SUFFIX}"
    try:
        file = beside if _is_file(beside) else find(base.value)
    except UsageError as error:
        raise FileProblems(str(path), [f"{where}: {error}"]) from None
    return schema.merge(_with_bases(file, most - 1), node)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # a name too long, or with a NUL
        return False
