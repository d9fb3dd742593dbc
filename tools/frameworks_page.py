"""The tables of docs/frameworks.md, made from the files of the frameworks.

Run as `python tools/frameworks_page.py` to compare, as `python tools/frameworks_page.py --write` to put them in place.
"""

from dataclasses import fields
from pathlib import Path

from page_tables import run, table
from perfmodel.costs.kernel_sets import KERNEL_SETS, KernelSet
from perfmodel.frameworks import loading, records
from perfmodel.units import show

PAGE = Path(__file__).parents[1] / "docs" / "frameworks.md"
_HEADS = ("axes", "sharded over data", "sequence parallel", "uneven shards", "kernels", "hidden")
_SIZES = ("held.context", "held.communicator", "overlapping.bucket", "overlapping.bucket_per_rank")


def frameworks() -> str:
    """One line for each framework."""
    rows = []
    for name in loading.names():
        found = records.summary(loading.load(name))
        title = loading.load(name).title
        rows.append([f"`{name}`", title, *(str(value) for key, value in found.items() if key != "name")])
    heads = [
        "name",
        "what it is",
        "axes",
        "sharded over data",
        "sequence parallel",
        "uneven shards",
        "kernels",
        "hidden",
    ]
    return table(heads, rows)


def traits() -> str:
    """One line for each trait, a column for each framework."""
    all_of = {name: {t["trait"]: t for t in records.traits(loading.load(name))} for name in loading.names()}
    names = list(next(iter(all_of.values())))
    rows = [[f"`{trait}`", *(_shown(trait, found[trait]["value"]) for found in all_of.values())] for trait in names]
    return table(["trait", *(f"`{name}`" for name in all_of)], rows)


def _shown(trait: str, value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return show(value, "B") if trait in _SIZES else f"{value:g}"
    return {True: "yes", False: "no"}.get(value, str(value)) if isinstance(value, bool) else str(value)


def kernels() -> str:
    """Passes of each kind of kernel, forward and backward, by how it is built."""
    rows = [
        [each.name.replace("_", " "), *(_passes(getattr(kernels, each.name)) for kernels in KERNEL_SETS.values())]
        for each in fields(KernelSet)
    ]
    return table(["kernel", *KERNEL_SETS], rows)


def _passes(cost: object) -> str:
    forward, backward = cost.passes  # type: ignore[attr-defined]
    return f"{forward:g} + {backward:g}"


TABLES = {"frameworks": frameworks, "traits": traits, "kernels": kernels}

if __name__ == "__main__":
    run(PAGE, TABLES, __doc__)
