"""Find and read frameworks, shipped ones or a user's file."""

from functools import cache
from pathlib import Path

from perfmodel import schema
from perfmodel.errors import UsageError, nearest
from perfmodel.frameworks.framework import Framework

DEFAULT = "perfmodel"
_SUFFIX = ".yaml"


def _folder() -> Path:
    return Path(__file__).parent / "data"


def names() -> list[str]:
    """Names of the shipped frameworks; the project's own launcher first."""
    found = sorted(path.name.removesuffix(_SUFFIX) for path in _folder().glob(f"*{_SUFFIX}"))
    return sorted(found, key=lambda name: name != DEFAULT)


def find(name: str) -> Path:
    """The file of a shipped framework called `name`, or the file of that path."""
    if name in names():
        return _folder() / f"{name}{_SUFFIX}"
    if "/" in name or name.endswith((_SUFFIX, ".yml")):
        return Path(name)
    raise UsageError(f"no framework is called {name!r} ({nearest(name, names())}; or give the path of a .yaml file)")


@cache
def load(name: str = DEFAULT) -> Framework:
    """Read the framework called `name`, or the file at that path; raise FileProblems with all that is wrong."""
    path = find(name)
    return schema.build(Framework, schema.compose(schema.read_text(path), str(path)), str(path))
