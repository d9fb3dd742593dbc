"""Tables in a page, each between `<!-- NAME -->` and `<!-- end -->`: made, compared with the page, put in place."""

import argparse
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

Tables = Mapping[str, Callable[[], str]]


def table(heads: list[str], rows: list[list[str]], *, numbers_right: bool = False) -> str:
    """A Markdown table; with `numbers_right`, columns of which every cell begins with a digit are set right."""
    right = [numbers_right and all(re.match(r"[0-9]", row[column]) for row in rows) for column in range(len(heads))]
    rule = ["--:" if number else "---" for number in right]
    return "\n".join(f"| {' | '.join(row)} |" for row in [heads, rule, *rows])


def renewed(page: Path, tables: Tables) -> str:
    """The page's text with its tables as they are now."""
    blocks = re.compile(rf"<!-- ({'|'.join(tables)}) -->\n.*?<!-- end -->", re.DOTALL)
    return blocks.sub(
        lambda found: f"<!-- {found[1]} -->\n{tables[found[1]]()}\n<!-- end -->", page.read_text(encoding="utf-8")
    )


def run(page: Path, tables: Tables, purpose: str | None) -> None:
    """The command line of a tool: compare or, with --write, renew the page; exit code 1 for a stale one."""
    parser = argparse.ArgumentParser(description=purpose, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="put the tables into the page")
    write = parser.parse_args().write
    text = renewed(page, tables)
    stale = text != page.read_text(encoding="utf-8")
    if stale and write:
        page.write_text(text, encoding="utf-8")
    print(f"{page.name}: {'fresh' if not stale else 'renewed' if write else 'stale'}")
    sys.exit(stale and not write)
