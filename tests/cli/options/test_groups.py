"""Groups of options: on the command line in the place of their parameter, in the command as one record."""

import ast
import inspect
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import pytest
import typer

import perfmodel_cli
from machines import machine
from perfmodel.errors import UsageError
from perfmodel_cli.options.groups import AxisLimits, DeviceCount, StepCounts, asks, values

Name = Annotated[str, typer.Option("--name")]
Loud = Annotated[bool, typer.Option("--loud/--quiet")]


@dataclass(frozen=True, kw_only=True)
class Inner:
    loud: Loud = False


@dataclass(frozen=True, kw_only=True)
class Outer:
    name: Name
    inner: Inner
    steps: int = 1


def test_a_group_and_the_groups_inside_it_stand_where_their_parameter_does():
    seen = []

    @asks
    def command(first: int, group: Outer, last: int = 4) -> None:
        seen.append((first, group, last))

    assert list(inspect.signature(command).parameters) == ["first", "name", "loud", "steps", "last"]
    command(first=1, name="x", loud=True, steps=3, last=5)
    assert seen == [(1, Outer(name="x", inner=Inner(loud=True), steps=3), 5)]


def test_an_option_of_the_command_s_own_stands_in_the_place_of_a_group_s():
    seen = []

    @asks
    def command(group: Outer, steps: int) -> None:
        seen.append((group.steps, steps))

    assert list(inspect.signature(command).parameters) == ["name", "loud", "steps"]
    command(name="x", loud=False, steps=7)
    assert seen == [(7, 7)]


def test_a_filled_group_knows_its_options_by_the_names_of_the_command_line():
    assert list(values(Inner())) == [("--loud", False)]
    assert list(values(AxisLimits(fix="x=2"))) == [("--fix", "x=2"), ("--max", "")]
    assert dict(values(StepCounts())) == {"--steps": 10, "--warmup": 3}


def test_a_count_of_devices_is_given_in_one_way():
    assert DeviceCount(gpus=6).of(machine(4)) == 6
    assert DeviceCount(nodes=6).of(machine(4)) == 24
    with pytest.raises(UsageError, match="either --gpus or --nodes"):
        DeviceCount().of(machine(4))


def test_no_option_is_declared_twice_in_the_same_words():
    sources = Path(perfmodel_cli.__file__).parent.rglob("*.py")
    declared = Counter(
        ast.unparse(node)
        for path in sources
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "typer.Option"
    )
    assert [text for text, count in declared.items() if count > 1] == []
