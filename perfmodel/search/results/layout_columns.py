"""The columns that give the grid of a row and how it is run, declared once."""

from perfmodel.parallel.axes import AXES, LISTED
from perfmodel.parallel.choices import RECOMPUTES, WEIGHT_CACHES
from perfmodel.parallel.layout import PLACEMENTS
from perfmodel.search.results.columns import Column, Context, Place


def _several_orders(context: Context) -> bool:
    return context.orders > 1


LAYOUT = (
    Column(
        key="grid",
        heading="grid",
        meaning=f"sizes of the axes {', '.join(AXES[:-1])} and {AXES[-1]}",
        value=lambda placed: placed.layout.sizes(),
        places=(
            Place(table="ranking", at=20, heading=f"grid\n{LISTED}", kind="grid"),
            Place(table="sweep", at=40, heading=f"grid\n{LISTED}", kind="grid"),
            Place(table="report", at=20, heading=f"grid {LISTED}", kind="grid"),
            Place(table="report of scaling", at=30, heading=f"grid {LISTED}", kind="grid"),
        ),
    ),
    Column(
        key="placement",
        heading="ranks, neighbours first",
        meaning="order of the axes over the ranks, innermost first",
        value=lambda placed: list(PLACEMENTS[int(placed.layout.placement)]),
        places=(
            Place(table="ranking", at=30, heading="ranks\norder", kind="order", when=_several_orders),
            Place(table="report", at=200, kind="order"),
        ),
    ),
    Column(
        key="micro_batch",
        heading="micro-batch",
        meaning="sequences that a device processes at once",
        value=lambda placed: int(placed.layout.micro_batch),
        places=(
            Place(
                table="ranking",
                at=40,
                heading="micro\nbatch",
                kind="micro-batches",
                legend="micro batch = sequences per device x steps",
            ),
            Place(table="sweep", at=50, heading="micro\nbatch", kind="micro-batches"),
            Place(table="report", at=30, heading="micro-batch x steps", kind="micro-batches"),
            Place(table="report of scaling", at=40, heading="micro-batch x steps", kind="micro-batches"),
        ),
    ),
    Column(
        key="accumulation_steps",
        heading="micro-steps",
        meaning="micro-batches that a device processes one after the other in a step",
        value=lambda placed: int(placed.job.accumulation(placed.layout)),
    ),
    Column(
        key="recompute",
        heading="recomputation",
        meaning="activations recomputed in the backward pass: none, selective (attention) or full (every block)",
        value=lambda placed: RECOMPUTES[int(placed.layout.recompute)],
        places=(
            Place(table="ranking", at=50, heading="recom-\npute", kind="word"),
            Place(table="sweep", at=60, heading="recom-\npute", kind="word"),
            Place(table="report", at=40, kind="word"),
            Place(table="report of scaling", at=50, kind="word"),
        ),
    ),
    Column(
        key="weight_cache",
        heading="weight cache",
        meaning="how long a weight gathered over Z is kept: none, forward (until its backward pass) or all",
        value=lambda placed: WEIGHT_CACHES[int(placed.layout.weight_cache)],
        places=(
            Place(
                table="ranking",
                at=60,
                heading="weight\ncache",
                kind="word",
                legend="weight cache = how long a weight gathered over Z is kept (forward: until its backward pass)",
            ),
            Place(table="report", at=50, kind="word"),
        ),
    ),
)
"""Columns of a `LayoutRow`: the grid and how it is run."""
