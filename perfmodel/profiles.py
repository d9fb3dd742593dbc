"""Find and read machine profiles: shipped with the package, or a file the user names."""

import importlib.resources
from pathlib import Path

import yaml

from perfmodel import reading
from perfmodel.errors import FileProblems, UsageError, nearest
from perfmodel.machine import Machine

_SUFFIX = ".yaml"
_MOST_BASES = 5


def folder() -> Path:
    """Where the shipped profiles are: inside the installed package, or beside it in a checkout."""
    packaged = importlib.resources.files("perfmodel") / "machine_profiles"
    return Path(str(packaged)) if packaged.is_dir() else Path(__file__).parents[1] / "machine_profiles"


def names() -> list[str]:
    """Names of the shipped machines, sorted."""
    return sorted(path.name.removesuffix(_SUFFIX) for path in folder().glob(f"*{_SUFFIX}"))


def find(name: str) -> Path:
    """The file of a shipped machine called `name`, or the file of that path."""
    shipped = folder() / f"{name}{_SUFFIX}"
    if "/" not in name and "\0" not in name and shipped.is_file():
        return shipped
    looks_like_a_path = "/" in name or name.endswith((_SUFFIX, ".yml"))
    if looks_like_a_path:
        return Path(name)
    raise UsageError(f"no machine is called {name!r} ({nearest(name, names())}; or give the path of a .yaml file)")


def load(name: str) -> Machine:
    """Read the machine called `name`, or the profile at that path."""
    path = find(name)
    return reading.build(Machine, _with_bases(path, _MOST_BASES), str(path))


def _with_bases(path: Path, most: int) -> yaml.Node:
    """The profile's node tree laid over that of its `base`, and its base's base."""
    node = reading.compose(reading.read_text(path), str(path))
    base = reading.entry(node, "base")
    if not base:
        return node
    if most == 0:
        raise FileProblems(str(path), [f"{path}: more than {_MOST_BASES} bases, one on the other"])
    beside = path.parent / f"{base}{_SUFFIX}"
    return reading.merge(_with_bases(beside if beside.is_file() else find(base), most - 1), node)
