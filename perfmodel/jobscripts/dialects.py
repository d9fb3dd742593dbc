"""The syntax of a scheduler's job scripts: directives, the start of the ranks, and the expressions that name a rank.

Each scheduler of `machines.scheduler_kinds` has a module of its name beside this one, with its `DIALECT`.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module

from perfmodel.jobscripts.request import Line, Request


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """One scheduler.

    `reads_input`: the command of `submit` reads the script, instead of taking its path. `start` are lines before
    anything else; `first_host` is a command that prints the first host. `rank` and `local_rank` are expressions of the
    shell, empty where they are the variables of the table; `index` numbers the jobs of an array from 1.
    """

    submit: tuple[str, ...]
    directives: Callable[[Request], Iterator[Line]]
    launch: Callable[[Request], tuple[str, ...]]
    reads_input: bool = False
    start: tuple[Line, ...] = ()
    first_host: str = ""
    port: str = "29500"
    rank: str = ""
    local_rank: str = ""
    index: str = ""


def dialect_of(kind: str) -> Dialect:
    """The syntax of the scheduler that a profile calls `kind`.

    >>> dialect_of("flux").submit
    ('flux', 'batch')
    """
    found: Dialect = import_module(f"perfmodel.jobscripts.{kind}").DIALECT
    return found
