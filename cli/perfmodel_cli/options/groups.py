"""Options that several commands share, declared once in groups, and `asks`, which adds groups to a command.

A parameter of a command whose annotation is a dataclass stands for the options that are its fields: `@asks` puts these
in its place on the command line, and hands the command the filled record. Groups may hold groups.
"""

import inspect
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Any, get_args

from perfmodel.parallel import option_values
from perfmodel_cli.options import shared
from perfmodel_cli.texts import spelled

if TYPE_CHECKING:
    from perfmodel.machines.machine import Machine


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceCount:
    """How many devices, in one of two ways."""

    gpus: shared.Gpus = None
    nodes: shared.Nodes = None

    def of(self, machine: "Machine") -> int:
        """Devices asked for, by --gpus or by --nodes."""
        from perfmodel.search.question import device_count

        return device_count(machine, self.gpus, self.nodes, spelled)


@dataclass(frozen=True, slots=True, kw_only=True)
class AxisLimits:
    """Sizes that axes must have, or must not exceed."""

    fix: shared.Fix = ""
    maximum: shared.Maximum = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """What is searched for a recommendation, and what is shown with it."""

    count: DeviceCount
    top: shared.Top = 10
    limits: AxisLimits
    tokens: shared.Tokens = ""
    measured: shared.Measured = ""
    uncertainty: shared.Doubt = False

    def training_tokens(self) -> int | None:
        """Tokens to train on, where they are asked for."""
        return option_values.tokens(self.tokens, "--tokens") if self.tokens else None


@dataclass(frozen=True, slots=True, kw_only=True)
class StepCounts:
    """How many steps are run for a measurement."""

    steps: shared.Steps = 10
    warmup: shared.Warmup = 3


def asks(command: Callable[..., None]) -> Callable[..., None]:
    """Replace the groups among a command's parameters by their options.

    If the command has a parameter of the same name as a group's field, there is one option, and both get its value.
    """
    parameters = list(inspect.signature(command).parameters.values())
    own = {parameter.name for parameter in parameters if not _is_group(parameter.annotation)}
    shown = [
        option.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for parameter in parameters
        for option in (_options(parameter.annotation, own) if _is_group(parameter.annotation) else [parameter])
    ]

    def run(**given: Any) -> None:
        command(**_filled(parameters, given))

    run.__name__, run.__doc__ = command.__name__, command.__doc__
    run.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
    run.__annotations__ = {option.name: option.annotation for option in shown}
    return run


def _is_group(annotation: Any) -> bool:
    return is_dataclass(annotation)


def _options(group: Any, own: set[str]) -> Iterator[inspect.Parameter]:
    """The options of a group and of those inside it, without those that a command has of its own."""
    for field in inspect.signature(group).parameters.values():
        if _is_group(field.annotation):
            yield from _options(field.annotation, own)
        elif field.name not in own:
            yield field


def _filled(parameters: Iterable[inspect.Parameter], given: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a command or a group."""
    found: dict[str, Any] = {}
    for parameter in parameters:
        group = parameter.annotation
        if _is_group(group):
            found[parameter.name] = group(**_filled(inspect.signature(group).parameters.values(), given))
        else:
            found[parameter.name] = given[parameter.name]
    return found


def values(group: Any) -> Iterator[tuple[str, Any]]:
    """The options of a filled group under the names that the command line gives them, with their values."""
    for field in fields(group):
        value = getattr(group, field.name)
        if is_dataclass(value):
            yield from values(value)
        else:
            _, option, *_ = get_args(field.type)
            name = next(text for text in (option.default, *option.param_decls) if isinstance(text, str))
            yield name.split("/")[0], value
