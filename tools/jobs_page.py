"""The table of frameworks in docs/jobs.md, made from the code.

Run as `python tools/jobs_page.py` to compare, as `python tools/jobs_page.py --write` to put it in place.
"""

import argparse
import re
import sys
from pathlib import Path

from perfmodel.jobscripts.frameworks import FRAMEWORKS

PAGE = Path(__file__).parents[1] / "docs" / "jobs.md"
_TABLE = re.compile(r"<!-- frameworks -->\n.*?<!-- end -->", re.DOTALL)
GRIDS = {
    "perfmodel": "all",
    "axonn-nanogpt": "all, of GPT decoders; the batch is shared by all ranks",
    "megatron-axonn": "all, of GPT decoders",
    "litgpt-axonn": "X alone, on nodes whose ranks see all devices",
    "torchtitan": "Z and data, X beside Z: shard, replicate and tensor degree",
    "megatron-lm": "X, Z, data: tensor parallelism and Megatron-FSDP",
    "deepspeed": "Z and data: ZeRO-3, MiCS where both (DeepSpeed up to 0.19.6)",
}


def frameworks() -> str:
    """One line a framework."""
    rows = [
        [
            "`--launcher`",
            "grids",
            "recomputation with weight cache",
            "ranks, neighbours first",
            "`--arguments` must give",
            "flags were read in",
        ],
        ["---"] * 6,
    ]
    for name, one in FRAMEWORKS.items():
        orders = " or ".join(",".join(order) for order in one.orders)
        rows.append([f"`{name}`", GRIDS[name], one.told_modes, orders, one.needs, one.source])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def page() -> str:
    """The page with its table as it is now."""
    table = f"<!-- frameworks -->\n{frameworks()}\n<!-- end -->"
    return _TABLE.sub(lambda _: table, PAGE.read_text(encoding="utf-8"))


def main() -> None:
    """Compare or, with --write, renew the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="put the table into the page")
    write = parser.parse_args().write
    text = page()
    stale = text != PAGE.read_text(encoding="utf-8")
    if stale and write:
        PAGE.write_text(text, encoding="utf-8")
    print(f"{PAGE.name}: {'fresh' if not stale else 'renewed' if write else 'stale'}")
    sys.exit(stale and not write)


if __name__ == "__main__":
    main()
