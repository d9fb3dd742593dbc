"""The columns of a device count, declared once; in a row those of its best grid (`result_columns`) follow."""

from perfmodel.search.results.columns import Column, Place, SweepRow
from perfmodel.search.terms import largest_term, limit


def _efficiency(scaled: SweepRow) -> float | None:
    here, first = scaled.tokens_per_device, scaled.first
    return here / first if here and first else None


POINT = (
    Column(
        key="gpus",
        heading="devices",
        meaning="total number of devices",
        value=lambda scaled: scaled.point.gpus,
        places=(
            Place(table="sweep", at=10, heading="GPUs"),
            Place(table="report of scaling", at=10, kind="count"),
        ),
    ),
    Column(
        key="nodes",
        heading="nodes",
        meaning="nodes that hold these devices",
        value=lambda scaled: -(-scaled.point.gpus // scaled.job.machine.node_devices),
        places=(Place(table="sweep", at=20), Place(table="report of scaling", at=20, kind="count")),
    ),
    Column(
        key="batch_sequences",
        heading="batch",
        meaning="sequences per step, all devices together",
        value=lambda scaled: scaled.point.batch,
        places=(Place(table="sweep", at=30),),
    ),
    Column(
        key="reason",
        heading="reason",
        meaning="why there is no answer, where there is none",
        value=lambda scaled: scaled.point.reason,
    ),
    Column(
        key="efficiency",
        heading="efficiency",
        meaning="tokens/s per device against the first count that has an answer",
        value=_efficiency,
        places=(
            Place(
                table="sweep",
                at=90,
                heading="effi-\nciency %",
                kind="share",
                legend="efficiency = tokens per second per device against the first count with an answer",
            ),
            Place(table="report of scaling", at=80, kind="share"),
        ),
    ),
    Column(
        key="tokens_per_device_s",
        heading="tokens per second and device",
        unit="tokens/s",
        meaning="tokens that one device trains per second",
        value=lambda scaled: scaled.tokens_per_device,
    ),
    Column(
        key="limited_by",
        heading="largest part",
        meaning="compute, or the largest term of the communication where more of it is exposed",
        value=lambda scaled: limit(scaled.result) if scaled.result else None,
        places=(
            Place(
                table="sweep",
                at=120,
                heading="limited\nby",
                kind="limit",
                # The legend explains `exposed` first, because `limited by` refers to it.
                legend="exposed = communication that computation does not hide; limited by = compute, or the largest "
                "term of the communication where more of it is exposed",
            ),
            Place(table="report of scaling", at=110, kind="limit"),
        ),
    ),
    Column(
        key="largest_communication",
        heading="most sent",
        meaning="the largest term of the communication, hidden or not",
        value=lambda scaled: largest_term(scaled.result) if scaled.result else None,
        places=(Place(table="sweep", at=130, heading="most\nsent", kind="term"),),
    ),
)
"""Columns of a `SweepRow`: one device count of a sweep."""
