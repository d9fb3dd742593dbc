"""Commands that a group lists by name and purpose, and whose modules are loaded when they are called.

A list of commands needs one line of each. Their options take longer to declare than all else that `--help` does.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import Any, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup

# Plain help text: Rich would double the time of --help.
PLAIN: dict[str, Any] = {"rich_markup_mode": None, "add_completion": False, "pretty_exceptions_enable": False}


class Listed(NamedTuple):
    """Where a command's function is, as `module:function` of the room `commands`, and the first lines of its help."""

    place: str
    purpose: str


class OnDemand(TyperCommand):
    """Stands for a command in the list of its group; once called, it makes way for the command itself."""

    def __init__(self, name: str, listed: Listed) -> None:
        """Know the name and the purpose, as the list shows them."""
        super().__init__(name, help=listed.purpose, rich_markup_mode=None)
        self._listed = listed

    def make_context(self, *given: Any, **named: Any) -> Any:
        """The context of the command itself: what is read, explained and run is never the one that stands for it."""
        return self.loaded().make_context(*given, **named)

    def loaded(self) -> Any:
        """The command itself."""
        module, function = self._listed.place.split(":")
        alone = typer.Typer(**PLAIN)
        alone.command(self.name)(getattr(import_module(f"perfmodel_cli.commands.{module}"), function))
        return typer.main.get_command(alone)


def group(purpose: str, commands: Mapping[str, Listed]) -> typer.Typer:
    """A group of commands that are loaded on demand; groups may be added to it, and stand after its commands."""

    class Group(TyperGroup):
        def __init__(self, **given: Any) -> None:
            super().__init__(**given)
            self.commands = {**{name: OnDemand(name, listed) for name, listed in commands.items()}, **self.commands}

    return typer.Typer(cls=Group, help=purpose, no_args_is_help=True, **PLAIN)
