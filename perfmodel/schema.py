"""YAML text to frozen dataclasses: the declared type reads the text, and every problem is reported with file and line.

PyYAML's own guesses (on/off, 12:30:00, 1_000, doubled keys kept silently) never happen: only its node tree is used.
"""

import dataclasses
import io
import stat
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, TypeVar, cast

import yaml

from perfmodel import units
from perfmodel.errors import FileProblems, PartError, PerfmodelError, nearest, printable
from perfmodel.sources import Figure, Source, figure, quantity

T = TypeVar("T")
_MOST_BYTES = 4_000_000
_DEEPEST = 40
_MOST_PROBLEMS = 200
_LONGEST_PROBLEM = 400
NULLS = ("", "null", "~")
_BOOLEANS = {"true": True, "false": False}
# The C parser is ten times faster; the pure one reads the same files where PyYAML was built without it.
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Skip(Exception):  # noqa: N818 - not an error: the problem is already recorded
    """A value could not be read; its problem is in the list."""


class _Enough(Exception):  # noqa: N818 - as above
    """Too many problems: the rest of the file is not read."""


@dataclasses.dataclass(frozen=True, slots=True)
class _Reader:
    """One pass over a node tree; problems (file, line, text) are collected, not raised."""

    problems: list[tuple[str, int, str]]
    sources: Mapping[str, Source]

    def complain(self, node: yaml.Node, text: str) -> _Skip:
        mark = node.start_mark
        if len(self.problems) == _MOST_PROBLEMS:
            raise _Enough
        self.problems.append((mark.name, mark.line + 1, _one_line(text)))
        return _Skip()


def _one_line(text: str) -> str:
    """`text` as one printable line of limited length, since parts of it come from the file."""
    shown = text if len(text) <= _LONGEST_PROBLEM else f"{text[:_LONGEST_PROBLEM]}..."
    return printable(shown).replace("\n", "\\n")


def read_text(path: Path) -> str:
    """The text of a file that a user named, or an error that says why it cannot be read."""
    try:
        mode = path.stat().st_mode
        if not stat.S_ISREG(mode):  # opening a pipe would wait for somebody to write into it
            kind = "a directory" if stat.S_ISDIR(mode) else "a pipe or a device"
            raise PerfmodelError(f"{path} is {kind}, wanted a file")
        with path.open("rb") as stream:
            content = stream.read(_MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        raise PerfmodelError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if len(content) > _MOST_BYTES:
        raise PerfmodelError(f"{path} has more than the {_MOST_BYTES} bytes expected at most")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise PerfmodelError(f"{path} is not UTF-8 text (byte {error.start})") from None


def compose(text: str, name: str) -> yaml.Node:
    """The node tree of YAML text; messages refer to lines of `name`."""
    stream = io.StringIO(text)
    stream.name = name
    try:
        node = yaml.compose(stream, Loader=_Loader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f"{name}:{mark.line + 1}" if mark else name
        problem = _one_line(" ".join(str(getattr(error, "problem", None) or error).split()))
        raise FileProblems(name, [f"{line}: not YAML: {problem}"]) from None
    except (ValueError, RecursionError) as error:
        raise FileProblems(name, [f"{name}: not YAML: {error}"]) from None
    if node is None:
        raise FileProblems(name, [f"{name}: the file is empty"])
    _refuse_tangles(node, name)
    return node


def build(kind: type[T], node: yaml.Node, name: str) -> T:
    """Read `node` as the dataclass `kind`; raise FileProblems with all problems."""
    problems: list[tuple[str, int, str]] = []
    value, cut = None, []
    try:
        sources = _sources(node, problems)
        value = _read(kind, node, _Reader(problems, sources))
    except _Skip:
        pass
    except _Enough:
        cut = [f"{name}: and more, which is not shown"]
    if problems:
        in_order = sorted(dict.fromkeys(problems), key=lambda problem: problem[:2])
        raise FileProblems(name, [f"{file}:{line}: {text}" for file, line, text in in_order] + cut)
    return cast(T, value)


def merge(base: yaml.Node, own: yaml.Node) -> yaml.Node:
    """`own` laid over `base`: mappings are merged key by key, anything else is replaced.

    A source that both list is refused: figures inherited from the base would silently get another source.
    """
    for key in sorted(filter(None, _keys_of(base, "sources") & _keys_of(own, "sources"))):
        mark = own.start_mark
        raise FileProblems(mark.name, [f"{mark.name}: the base lists the source {key} too; give yours another key"])
    if not (isinstance(base, yaml.MappingNode) and isinstance(own, yaml.MappingNode)):
        return own
    replaced = {key.value: value for key, value in own.value if isinstance(key, yaml.ScalarNode)}
    inherited = [
        (key, merge(value, replaced[key.value]) if _text(key) in replaced else value) for key, value in base.value
    ]
    # Duplicate and non-text keys of `own` stay in the list, so that the reader still refuses them.
    known = {_text(key) for key, _ in base.value}
    added = []
    for key, value in own.value:
        if _text(key) not in known:
            added.append((key, value))
        known.discard(_text(key))
    return yaml.MappingNode(own.tag, inherited + added, own.start_mark, own.end_mark)


def _keys_of(node: yaml.Node, block: str) -> set[str | None]:
    """The keys of a top-level block."""
    return {_text(key) for name, value in _pairs(node) if _text(name) == block for key, _ in _pairs(value)}


def _text(key: yaml.Node) -> str | None:
    return cast(str, key.value) if isinstance(key, yaml.ScalarNode) else None


def is_null(node: yaml.Node, kind: Any) -> bool:
    """Whether `node` leaves a field of type `X | None` empty: nothing, null or ~ without quotes."""
    may_be_empty = typing.get_origin(kind) in (types.UnionType, typing.Union)
    return may_be_empty and isinstance(node, yaml.ScalarNode) and node.value in NULLS and not node.style


def entry(node: yaml.Node, key: str) -> yaml.ScalarNode | None:
    """The value under a top-level key, if it is a single value."""
    for found, value in _pairs(node):
        if found.value == key and isinstance(value, yaml.ScalarNode):
            return value
    return None


def _refuse_tangles(node: yaml.Node, name: str) -> None:
    """Refuse aliases (which can make a small file huge) and deep nesting; our files need neither."""
    seen = {id(node)}
    level = [node]
    for _ in range(_DEEPEST):
        level = [child for parent in level for child in _children(parent)]
        for child in level:
            if id(child) in seen:
                line = child.start_mark.line + 1
                raise FileProblems(name, [f"{name}:{line}: used again by an alias (*name); write it out instead"])
            seen.add(id(child))
        if not level:
            return
    raise FileProblems(name, [f"{name}: nested deeper than {_DEEPEST} levels"])


def _children(node: yaml.Node) -> Iterator[yaml.Node]:
    for key, value in _pairs(node):
        yield key
        yield value
    if isinstance(node, yaml.SequenceNode):
        yield from node.value


def _pairs(node: yaml.Node) -> list[tuple[yaml.Node, yaml.Node]]:
    return node.value if isinstance(node, yaml.MappingNode) else []


def _sources(node: yaml.Node, problems: list[tuple[str, int, str]]) -> dict[str, Source]:
    """The file's sources, read first because every figure in it points to one."""
    reader = _Reader(problems, {})
    for key, value in _pairs(node):
        if key.value == "sources":
            try:
                return dict(_mapping(Source, value, reader))
            except _Skip:
                break
    return {}


def _read(kind: Any, node: yaml.Node, reader: _Reader) -> Any:
    if dataclasses.is_dataclass(kind) and kind is not Figure:
        return _record(cast(type[Any], kind), node, reader)
    origin = typing.get_origin(kind)
    arguments = typing.get_args(kind)
    if origin is typing.Annotated and arguments[0] is not str:
        return _scalar(node, reader, lambda text: _number(text, arguments, reader.sources))
    if origin in (types.UnionType, typing.Union):  # the only unions used are `X | None`
        return None if is_null(node, kind) else _read(arguments[0], node, reader)
    if origin is tuple:
        return _sequence(arguments[0], node, reader)
    if origin is Mapping:
        return types.MappingProxyType(_mapping(arguments[1], node, reader))
    return _scalar(node, reader, _converter(kind))


def _number(text: str, arguments: tuple[Any, ...], sources: Mapping[str, Source]) -> Figure | float:
    """What `Annotated[Figure, unit, ...]` or `Annotated[float, unit, least, most]` stands for."""
    kind, unit, *bounds = arguments
    return quantity(text, unit, *bounds) if kind is float else figure(text, unit, sources, *bounds)


def choices(kind: Any) -> tuple[str, ...]:
    """What `Literal[...]`, or `Annotated[str, TABLE]` by the keys of a table, allows; empty for any other type."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    by_table = origin is typing.Annotated and arguments[0] is str
    return tuple(arguments[1]) if by_table else arguments if origin is Literal else ()


def _converter(kind: Any) -> Callable[[str], Any]:
    if allowed := choices(kind):
        return lambda text: _choice(text, allowed)
    converters: dict[Any, Callable[[str], Any]] = {str: str, bool: _boolean, int: _integer, float: _plain}
    return converters[kind]


def _boolean(text: str) -> bool:
    return _BOOLEANS[_choice(text, tuple(_BOOLEANS))]


def _choice(text: str, choices: tuple[Any, ...]) -> str:
    if text not in choices:
        raise PerfmodelError(f"{text!r} is none of {', '.join(map(str, choices))}")
    return text


def _plain(text: str) -> float:
    return units.parse(text, "1")


def _integer(text: str) -> int:
    number = _plain(text)
    if number != int(number) or abs(number) > 2**53:
        raise PerfmodelError(f"{text!r} is not a whole number")
    return int(number)


def _shape(node: yaml.Node) -> str:
    """The kind of a node, in plain words."""
    if isinstance(node, yaml.SequenceNode):
        return "a list"
    return "keys and values" if isinstance(node, yaml.MappingNode) else "one value"


def _scalar(node: yaml.Node, reader: _Reader, convert: Callable[[str], Any]) -> Any:
    if not isinstance(node, yaml.ScalarNode):
        raise reader.complain(node, f"wanted one value, found {_shape(node)}")
    try:
        return convert(node.value)
    except PerfmodelError as error:
        raise reader.complain(node, str(error)) from None


def _sequence(kind: Any, node: yaml.Node, reader: _Reader) -> tuple[Any, ...]:
    if not isinstance(node, yaml.SequenceNode):
        raise reader.complain(node, f"wanted a list, found {_shape(node)}")
    return tuple(_each(node.value, lambda item: _read(kind, item, reader)))


def _mapping(kind: Any, node: yaml.Node, reader: _Reader) -> dict[str, Any]:
    pairs = _unique(node, reader)
    return dict(_each(pairs, lambda pair: (pair[0].value, _read(kind, pair[1], reader))))


def _each(items: list[Any], read: Callable[[Any], Any]) -> list[Any]:
    """Read every item even when one fails, so that all problems are seen at once."""
    values, failed = [], False
    for item in items:
        try:
            values.append(read(item))
        except _Skip:
            failed = True
    if failed:
        raise _Skip
    return values


def _unique(node: yaml.Node, reader: _Reader) -> list[tuple[yaml.Node, yaml.Node]]:
    """The pairs of a mapping; a key given twice is a problem at its second occurrence."""
    if not isinstance(node, yaml.MappingNode):
        raise reader.complain(node, f"wanted keys and values, found {_shape(node)}")
    seen: set[str] = set()
    for key, _ in node.value:
        if not isinstance(key, yaml.ScalarNode):
            raise reader.complain(key, f"a key must be text, found {_shape(key)}")
        if key.value in seen:
            reader.complain(key, f"the key {key.value} is given twice")
        seen.add(key.value)
    return cast("list[tuple[yaml.Node, yaml.Node]]", node.value)


def _record(kind: type[Any], node: yaml.Node, reader: _Reader) -> Any:
    """Read a mapping as the dataclass `kind`; a broken rule is reported at its part, or at the record's first line.

    Rules are checked once all keys are right.
    """
    hints = typing.get_type_hints(kind, include_extras=True)
    fields = {field.name: field for field in dataclasses.fields(kind) if field.init}
    pairs = _unique(node, reader)
    for key, _ in pairs:
        if key.value not in fields:
            reader.complain(key, f"unknown key {key.value} ({nearest(key.value, list(fields))})")
    given = {key.value for key, _ in pairs}
    missing = [name for name, field in fields.items() if name not in given and not _has_default(field)]
    if missing:
        reader.complain(node, f"missing {', '.join(missing)}")
    known = [pair for pair in pairs if pair[0].value in fields]
    values = dict(_each(known, lambda pair: (pair[0].value, _read(hints[pair[0].value], pair[1], reader))))
    if missing or len(known) < len(pairs):
        raise _Skip
    try:
        return kind(**values)
    except PartError as error:
        raise reader.complain(_part(node, error.parts), str(error)) from None
    except PerfmodelError as error:
        raise reader.complain(node, str(error)) from None


def _part(node: yaml.Node, parts: tuple[str | int, ...]) -> yaml.Node:
    """The node at a path of field names and list indices, all of which exist."""
    for part in parts:
        inside = node.value if isinstance(part, int) else {key.value: value for key, value in node.value}
        node = inside[part]
    return node


def _has_default(field: "dataclasses.Field[Any]") -> bool:
    return field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING
