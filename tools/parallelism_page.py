"""What docs/parallelism.md shows: the code, cut out of the sources, and the picture of what each rank holds.

Run as `python tools/parallelism_page.py` to compare, with `--write` to put them in place.
"""

import argparse
import ast
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from perfmodel.parallel.layout import Layout
from perfmodel.parallel.ranks import rank_array
from perfmodel.units import Array

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "parallelism.md"
PICTURE = ROOT / "docs" / "parallelism.svg"
_CODE = re.compile(r"<!-- code (\S+) (\S+) -->\n.*?<!-- end -->", re.DOTALL)
_SHOWN = Layout(x=2, y=2, z=2, data=1)
_CELL, _GAP, _TOP = 46, 90, 56  # pixels: a quarter of a block's side, between matrices, above them
_COLOURS = ("#4477aa", "#66ccee", "#228833", "#ccbb44", "#ee6677", "#aa3377", "#777777", "#ee8866")


def code(path: str, name: str) -> str:
    """A function or class of a module, as it stands there; `name` may be Class.method."""
    text = (ROOT / path).read_text(encoding="utf-8")
    node: ast.AST = ast.parse(text)
    for part in name.split("."):
        node = next(child for child in ast.iter_child_nodes(node) if getattr(child, "name", None) == part)
    found = ast.get_source_segment(text, node, padded=True)
    return f"<!-- code {path} {name} -->\n```python\n{_flush(found or '')}\n```\n<!-- end -->"


def _flush(source: str) -> str:
    indent = len(source) - len(source.lstrip())
    return "\n".join(line[indent:] for line in source.splitlines())


def page() -> str:
    """The page with its code as it is now."""
    return _CODE.sub(lambda found: code(found[1], found[2]), PAGE.read_text(encoding="utf-8"))


def picture() -> str:
    """I, W and O of a normal layer on eight ranks as SVG: whose part each block is."""
    ranks = rank_array(_SHOWN)[..., 0]
    matrices = [
        ("I  (m × k)", "rows over Z, columns over Y; a copy over X", _blocks(lambda z, y: ranks[:, y, z])),
        ("W  (k × n)", "rows over Y, columns over X, shards over Z", _shards(ranks)),
        ("O  (m × n)", "rows over Z, columns over X; a copy over Y", _blocks(lambda z, x: ranks[x, :, z])),
    ]
    side = 4 * _CELL
    width, height = 3 * side + 4 * _GAP, side + 2 * _TOP
    shapes = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif">',
        "<title>What each of eight ranks holds of a linear layer on the grid 2 x 2 x 2 x 1</title>",
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]
    for number, (title, words, blocks) in enumerate(matrices):
        left = _GAP + number * (side + _GAP)
        shapes.append(f'<text x="{left}" y="{_TOP - 16}" font-size="13" font-weight="bold">{title}</text>')
        shapes.append(f'<text x="{left}" y="{_TOP + side + 22}" font-size="10">{words}</text>')
        shapes += [_box(left + x, _TOP + y, wide, high, held) for x, y, wide, high, held in blocks]
    for place, sign in ((1, "×"), (2, "=")):
        at = _GAP + place * (side + _GAP) - _GAP / 2
        shapes.append(f'<text x="{at}" y="{_TOP + side / 2}" font-size="26" text-anchor="middle">{sign}</text>')
    return "\n".join([*shapes, "</svg>", ""])


def _blocks(holders: Callable[[int, int], Array]) -> Iterator[tuple[int, int, int, int, list[int]]]:
    """Two by two blocks, the ranks that hold a copy of each."""
    for row in range(2):
        for column in range(2):
            held = [int(rank) for rank in holders(row, column)]
            yield 2 * _CELL * column, 2 * _CELL * row, 2 * _CELL, 2 * _CELL, held


def _shards(ranks: Array) -> Iterator[tuple[int, int, int, int, list[int]]]:
    """Two by two blocks, each cut into two flat shards."""
    for y in range(2):
        for x in range(2):
            for z in range(2):
                rank = int(ranks[x, y, z])
                yield 2 * _CELL * x, 2 * _CELL * y + _CELL * z, 2 * _CELL, _CELL, [rank]


def _box(x: int, y: int, wide: int, high: int, held: list[int]) -> str:
    """A rectangle in stripes of its holders' colours, their numbers inside."""
    stripe = wide / len(held)
    stripes = "".join(
        f'<rect x="{x + place * stripe:g}" y="{y}" width="{stripe:g}" height="{high}" fill="{_COLOURS[rank]}" '
        f'fill-opacity="0.45"/>'
        for place, rank in enumerate(held)
    )
    names = ", ".join(map(str, held))
    return (
        f'{stripes}<rect x="{x}" y="{y}" width="{wide}" height="{high}" fill="none" stroke="black"/>'
        f'<text x="{x + wide / 2:g}" y="{y + high / 2 + 5:g}" font-size="13" text-anchor="middle">{names}</text>'
    )


def main() -> None:
    """Compare or, with --write, renew page and picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="put code and picture in place")
    write, stale = parser.parse_args().write, False
    for path, text in ((PAGE, page()), (PICTURE, picture())):
        differs = not path.exists() or path.read_text(encoding="utf-8") != text
        if differs and write:
            path.write_text(text, encoding="utf-8")
        print(f"{path.name}: {'fresh' if not differs else 'renewed' if write else 'stale'}")
        stale |= differs
    sys.exit(stale and not write)


if __name__ == "__main__":
    main()
