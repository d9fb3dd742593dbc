"""Records for machines: nested keys as columns, dataclasses as plain values."""

from dataclasses import dataclass
from types import MappingProxyType

from perfmodel.records import flat, plain


@dataclass(frozen=True)
class Inner:
    size: int
    names: tuple[str, ...]


@dataclass(frozen=True)
class Outer:
    inner: Inner
    limits: MappingProxyType[str, int]


def test_nested_keys_are_joined_and_lists_are_one_column():
    record = {"grid": {"x": 1, "deep": {"y": 2}}, "order": ["y", "x"], "reason": None}
    assert dict(flat(record)) == {"grid_x": 1, "grid_deep_y": 2, "order": "y x", "reason": None}


def test_columns_keep_the_order_of_the_keys():
    assert [name for name, _ in flat({"b": 1, "a": {"d": 1, "c": 2}})] == ["b", "a_d", "a_c"]


def test_dataclasses_mappings_and_tuples_become_dicts_and_lists():
    value = Outer(Inner(3, ("a", "b")), MappingProxyType({"x": 4}))
    assert plain(value) == {"inner": {"size": 3, "names": ["a", "b"]}, "limits": {"x": 4}}
