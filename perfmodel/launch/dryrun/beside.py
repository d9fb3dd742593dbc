"""A dry run compared with the analytical model: collectives, FLOPs and memory of both."""

from collections.abc import Iterator
from typing import Any

from perfmodel.launch.dryrun.step import DryRun
from perfmodel.memory.per_device import memory_per_device
from perfmodel.parallel.choices import RECOMPUTES, WEIGHT_CACHES
from perfmodel.parallel.job import Job
from perfmodel.parallel.layout import PLACEMENTS, Layout
from perfmodel.records import plain
from perfmodel.step.flops import product_flops
from perfmodel.traffic.per_step import traffic

Record = dict[str, Any]


def beside_record(job: Job, layout: Layout, rank: int, found: DryRun) -> Record:
    """Everything that a dry run has counted, with the model's figure for each."""
    memory = memory_per_device(job, layout)
    held = float(memory.total - memory.slack - memory.communicators - memory.reserve)
    return {
        "model": job.model.name,
        "machine": job.machine.name,
        "dtype": job.dtype,
        "gpus": int(layout.gpus),
        "rank": rank,
        "grid": layout.sizes(),
        "placement": list(PLACEMENTS[int(layout.placement)]),
        "micro_batch": int(layout.micro_batch),
        "accumulation_steps": int(job.accumulation(layout)),
        "recompute": RECOMPUTES[int(layout.recompute)],
        "weight_cache": WEIGHT_CACHES[int(layout.weight_cache)],
        "product_flop": found.products,
        "model_product_flop": float(product_flops(job, layout)),
        "attention_flop": found.attention,
        "memory_B": found.peak,
        "model_memory_B": held,
        "memory_kinds_B": dict(found.kinds),
        "model_memory_terms_B": {name: float(size) for name, size in plain(memory).items()},
        "collectives": list(_collectives(job, layout, found)),
    }


def _collectives(job: Job, layout: Layout, found: DryRun) -> Iterator[Record]:
    """One record for each operation and axis."""
    counted: dict[tuple[str, str], tuple[float, float]] = {}
    for one in traffic(job, layout):
        key = one.operation, one.link.axis
        calls, sent = counted.get(key, (0.0, 0.0))
        if one.link.size > 1:
            counted[key] = calls + float(one.sent), sent + float(one.calls * one.buffer)
    ran = {(str(operation), axis): both for (operation, axis), both in found.ledger.totals().items()}
    for operation, axis in dict.fromkeys([*counted, *ran]):
        calls, sent = ran.get((operation, axis), (0, 0))
        of_model = counted.get((operation, axis), (0.0, 0.0))
        yield {
            "operation": operation,
            "axis": axis,
            "group_size": int(layout.size(axis)),
            "calls": calls,
            "model_calls": of_model[0],
            "sent_B": sent,
            "model_sent_B": of_model[1],
        }
