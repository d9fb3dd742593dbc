"""docs/cli.md: the help of every command, as the program prints it.

Run as `python tools/cli_reference.py` to write the page; a test compares it with the program.
"""

from collections.abc import Iterator
from pathlib import Path

import typer.main
from typer.testing import CliRunner

from perfmodel_cli.app import app

PAGE = Path(__file__).parents[1] / "docs" / "cli.md"
PROGRAM = "perfmodel"
WIDTH = 100
HEAD = """# Commands

Written by `python tools/cli_reference.py` from the program's own help; do not edit by hand.
[Versions](versioning.md) says which changes of commands, options and JSON keys break, and how long an old key stays.
"""


def commands() -> Iterator[tuple[str, ...]]:
    """The words of every command, groups before their members: (), ("machines",), ("machines", "list"), ..."""
    yield from _below((), typer.main.get_command(app))


def _below(words: tuple[str, ...], command: object) -> Iterator[tuple[str, ...]]:
    yield words
    # Typer brings click along under a name of its own, so a group is told by what it has.
    for name, member in getattr(command, "commands", {}).items():
        if not member.hidden:
            yield from _below((*words, name), member)


def help_text(words: tuple[str, ...]) -> str:
    """What `perfmodel WORDS --help` prints at a fixed width."""
    plain = {"COLUMNS": str(WIDTH), "TERMINAL_WIDTH": str(WIDTH), "NO_COLOR": "1", "TERM": "dumb"}
    done = CliRunner().invoke(app, [*words, "--help"], prog_name=PROGRAM, env=plain)
    if done.exit_code:
        raise ValueError(f"{' '.join(words)} --help ended with {done.exit_code}:\n{done.output}")
    return "\n".join(line.rstrip() for line in done.output.strip("\n").splitlines())


def page() -> str:
    """The whole page: a section a command."""
    sections = [f"## {' '.join((PROGRAM, *words))}\n\n```text\n{help_text(words)}\n```\n" for words in commands()]
    return "\n".join([HEAD, *sections])


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
