"""The examples in README.md and docs/: run them, compare what they print, and write it anew when told to.

A fenced `console` or `bash` block whose first line starts with `$ perfmodel` is an example: lines after `$ ` are
commands, the rest is what they print. A line `...` stands for any lines. The word `exit-1` (or `exit-2`) after the
block's language says that its commands end with that code. The examples of one page run in order in one folder, which
begins with a copy of docs/examples in its place. Blocks of Python are those of `python_examples`.

Run as `python tools/examples.py` to compare, as `python tools/examples.py --write` to put the real output in place.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import python_examples

ROOT = Path(__file__).parents[1]
WIDTH = 104
ANY_LINES = "..."
_BLOCK = re.compile(
    r"^```(?P<language>console|bash)(?: exit-(?P<code>\d+))?\n(?P<body>\$ perfmodel.*?)^```$", re.MULTILINE | re.DOTALL
)


@dataclass(frozen=True, slots=True)
class Example:
    """A command of a page, what the page says it prints, and the exit code it should end with."""

    command: str
    shown: tuple[str, ...]
    code: int = 0


def pages() -> list[Path]:
    """README.md and every page of docs/."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def parse(body: str, code: int = 0) -> list[Example]:
    r"""The commands of a block; a command goes on after a line that ends in a backslash.

    >>> parse("$ perfmodel a \\\n    b\nx\n$ perfmodel c\n")
    [Example(command='perfmodel a \\\n    b', shown=('x',), code=0), Example(command='perfmodel c', shown=(), code=0)]
    """
    examples: list[Example] = []
    for part in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
        command, shown = re.split(r"(?<!\\)\n", part, maxsplit=1)
        examples.append(Example(command, tuple(shown.splitlines()), code))
    return examples


def run(example: Example, folder: Path) -> tuple[str, ...]:
    """What the command prints in `folder`, both streams as a terminal shows them."""
    scripts = sysconfig.get_path("scripts")
    plain = {
        "COLUMNS": str(WIDTH),
        "NO_COLOR": "1",
        "TERM": "dumb",
        "PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}",
    }
    done = subprocess.run(
        ["bash", "-c", example.command],
        cwd=folder,
        env={**os.environ, **plain},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=120,
    )
    if done.returncode != example.code:
        raise ValueError(f"{example.command!r} ended with {done.returncode}, wanted {example.code}:\n{done.stdout}")
    return tuple(line.rstrip() for line in done.stdout.rstrip("\n").splitlines())


def agrees(shown: tuple[str, ...], real: tuple[str, ...]) -> bool:
    """Whether `shown` is `real`, where a line `...` stands for any lines.

    >>> agrees(("a", "...", "c"), ("a", "b", "b", "c")), agrees(("a", "..."), ("b",)), agrees((), ("a",))
    (True, False, False)
    """
    patterns = [r"(?:.*\n)*" if line == ANY_LINES else re.escape(line.rstrip()) + r"\n" for line in shown]
    return re.fullmatch("".join(patterns), "".join(f"{line}\n" for line in real)) is not None


def renewed(shown: tuple[str, ...], real: tuple[str, ...]) -> tuple[str, ...]:
    """The text to show: `real`, cut where `shown` was cut, with as many lines before and after.

    >>> renewed(("a", "...", "c"), ("A", "B", "B", "C"))
    ('A', '...', 'C')
    """
    if agrees(shown, real):
        return shown
    if ANY_LINES not in shown:
        return real
    before, after = shown.index(ANY_LINES), shown[::-1].index(ANY_LINES)
    return (*real[:before], ANY_LINES, *(real[-after:] if after else ()))


def renew(page: Path) -> str:
    """The page's text with the output of each of its examples as it is now."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        shutil.copytree(ROOT / "docs" / "examples", folder / "docs" / "examples")
        text = _BLOCK.sub(_renew_block_in(folder), page.read_text(encoding="utf-8"))
        return python_examples.renew(text, folder, WIDTH, renewed)


def _renew_block_in(folder: Path) -> Callable[[re.Match[str]], str]:
    def renew_block(block: re.Match[str]) -> str:
        head = block[0].split("\n", 1)[0]
        examples = parse(block["body"], int(block["code"] or 0))
        lines = [
            line
            for example in examples
            for line in (f"$ {example.command}", *renewed(example.shown, run(example, folder)))
        ]
        return "\n".join([head, *lines, "```"])

    return renew_block


def examples(page: Path) -> list[Example]:
    """The examples of a page."""
    blocks = _BLOCK.finditer(page.read_text(encoding="utf-8"))
    return [example for block in blocks for example in parse(block["body"], int(block["code"] or 0))]


def main() -> None:
    """Compare or, with --write, renew every page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="put the real output into the pages")
    write = parser.parse_args().write
    texts = {page: renew(page) for page in pages()}
    stale = [page for page, text in texts.items() if text != page.read_text(encoding="utf-8")]
    for page in stale:
        if write:
            page.write_text(texts[page], encoding="utf-8")
        print(f"{'renewed' if write else 'stale'}: {page.relative_to(ROOT)}")
    sys.exit(bool(stale) and not write)


if __name__ == "__main__":
    main()
