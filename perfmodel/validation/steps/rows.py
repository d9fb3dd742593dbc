"""Rows of published steps, in the columns of docs/validation.md, as jobs on layouts; or the reason why not."""

import csv
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from perfmodel import models
from perfmodel.costs.costs import Factors
from perfmodel.errors import PerfmodelError
from perfmodel.frameworks import loading
from perfmodel.machines import profiles
from perfmodel.models.model import Model, Transformer
from perfmodel.models.scaling import scaled
from perfmodel.parallel.axes import Shape
from perfmodel.parallel.choices import OVERLAPS, RECOMPUTES
from perfmodel.parallel.job import Job
from perfmodel.parallel.settings import Settings
from perfmodel.units import GIBI, parse
from perfmodel.validation.compare import training_in
from perfmodel.validation.steps import sets as step_sets
from perfmodel.validation.steps.sets import StepSet

# How sets call what `choices` calls otherwise.
_RECOMPUTED = {"selective per op": "operations", "op": "operations"}
NEEDED = ("row", "gpus", "model", "sequence_tokens", "tp", "status")
_GATED_RATIO = 3.9  # an MLP narrower than this times the width has a gate (8/3), one of 4 times has none
_NUMBER = re.compile(r"[0-9]+(\.[0-9]+)?")
_OVER = re.compile(r"sharded over ([0-9]+)")
_INSTEAD = re.compile(r"agrees with ([0-9]+), not")  # a batch that the row's other figures contradict
_MICRO_STEPS = re.compile(r"([0-9]+) micro-batches a step")


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One row: its job, its grid, what it states of micro-batch and recomputation, and what was measured.

    `step`: seconds, None where only memory counts. `memory`: bytes, None where not measured. `status`: ok or oom.
    """

    set: str
    row: str
    job: Job
    grid: Shape
    micro_batch: int | None
    recompute: str | None
    step: float | None
    memory: float | None
    status: str


def has_columns(path: Path) -> bool:
    """Whether a file has the columns that every row needs."""
    with path.open(encoding="utf-8", newline="") as file:
        return set(NEEDED) <= set(csv.DictReader(file).fieldnames or ())


def read(path: Path, framework: str = "") -> Iterator[Case | tuple[str, str]]:
    """The rows of a file: each a case, or (row, why it cannot be predicted). `framework` replaces that of the set."""
    with path.open(encoding="utf-8", newline="") as file:
        lines = csv.DictReader(file)
        missing = [name for name in NEEDED if name not in (lines.fieldnames or ())]
        if missing:
            raise PerfmodelError(f"{path} has no column {', '.join(missing)}; wanted those of docs/validation.md")
        for columns in lines:
            plain = {key: (value or "").strip() for key, value in columns.items() if key}
            try:
                yield _case(path.stem, plain, framework)
            except PerfmodelError as error:
                yield plain["row"], str(error)


def _case(name: str, columns: Mapping[str, str], framework: str) -> Case:
    own = step_sets.of(name, columns)
    if framework:
        own = replace(own, framework=framework)
    _refuse(columns)
    on = own.machine or step_sets.machine(columns)
    if not on:
        raise PerfmodelError(f"no profile for {columns.get('machine')}, {columns.get('gpu')}")
    model, settings = _model(columns, own), _settings(columns, own)
    grid, gpus = _grid(columns), _count(columns, "gpus")
    if grid.gpus != gpus:
        raise PerfmodelError(f"its degrees make {grid.gpus} devices, not {gpus}")
    micro, batch = _optional(columns, "micro_batch_sequences"), _batch(columns, grid)
    job = Job.of(
        model, _machine(on, columns), batch=batch, sequence=_count(columns, "sequence_tokens"), settings=settings
    )
    if own.network != 1:
        job = replace(job, costs=job.costs.scaled(replace(Factors.all(1.0), between=own.network)))
    stated = columns.get("recompute", "")
    if "selective op" in columns.get("caveat", "").split(";")[0]:
        stated = "selective per op"
    stated = _RECOMPUTED.get(stated, stated)
    return Case(
        set=name,
        row=columns["row"],
        job=job,
        grid=grid,
        micro_batch=micro,
        recompute=own.recompute or (stated if stated in RECOMPUTES else None),
        step=_step(columns, batch, gpus) if own.seconds else None,
        memory=_memory(columns),
        status=columns["status"],
    )


def _refuse(columns: Mapping[str, str]) -> None:
    """Raise for what the model does not know, and for rows whose authors doubt them."""
    if columns["status"] not in ("ok", "oom"):
        raise PerfmodelError(f"its status is {columns['status'] or 'not given'}")
    for degree, what in (("pp", "pipeline"), ("cp", "context"), ("ep", "expert")):
        if columns.get(degree, "") not in ("", "0", "1"):
            raise PerfmodelError(f"{what} parallelism is not modelled")
    precision = columns.get("precision", "").lower()
    if any(small in precision for small in ("fp8", "mx", "nvfp4")):
        raise PerfmodelError("products in fp8 are not modelled")
    if "lora" in columns.get("caveat", "").lower():
        raise PerfmodelError("fine-tuning of few weights is not modelled")
    if any(name in columns["model"].lower() for name in ("moe", "mixtral", "gpt-oss")):
        raise PerfmodelError("experts are not modelled")


@cache
def _loaded(name: str) -> Any:
    return profiles.load(name)


def _machine(name: str, columns: Mapping[str, str]) -> Any:
    precision = columns.get("precision", "").lower()
    return training_in("fp32" if precision == "fp32" else None, _loaded(name))


def _model(columns: Mapping[str, str], own: StepSet) -> Model:
    hidden, layers = _optional(columns, "hidden_features"), _optional(columns, "layers")
    if not hidden:
        return scaled(models.load(_preset(columns["model"])), layers=layers)
    heads, sequence = _count(columns, "heads"), _count(columns, "sequence_tokens")
    feed_forward = _optional(columns, "ffn_features") or 4 * hidden
    gated = own.family == "llama" or (own.family == "" and feed_forward < _GATED_RATIO * hidden)
    kv_heads = _optional(columns, "kv_heads") or heads
    vocabulary = _optional(columns, "vocabulary_tokens") or (32000 if gated else 51200)
    shape = Transformer(
        layers=layers or 1, hidden=hidden, heads=heads, kv_heads=kv_heads, feed_forward=feed_forward,
        vocabulary=vocabulary, sequence=sequence, gated=gated, rms_norm=gated, bias=not gated, tied=not gated,
        learned_positions=0 if gated else sequence,
    )  # fmt: skip
    return shape.model(columns["model"] or "model")


def _preset(model: str) -> str:
    """A preset's name for a name such as llama3-70b."""
    name = re.sub(r"^llama-?([0-9])", r"llama-\1", model.lower().replace("_", "-"))
    return {"llama-3-405b": "llama-3-405b", "llama-3.1-405b": "llama-3-405b"}.get(name, name)


def _settings(columns: Mapping[str, str], own: StepSet) -> Settings:
    given: dict[str, Any] = _sharding(columns.get("zero_stage", ""), own)
    compiled = own.compiled_where and own.compiled_where in columns.get("caveat", "")
    if compiled or own.kernels:
        given["kernels"] = "compiled" if compiled else own.kernels
    if own.sequence_parallel is not None:
        given["sequence_parallel"] = own.sequence_parallel
    elif columns.get("sequence_parallel", "") in ("yes", "no"):
        given["sequence_parallel"] = columns["sequence_parallel"] == "yes"
    if own.overlap:
        given["overlap"] = frozenset(kind for kind in OVERLAPS if kind in own.overlap.split("+"))
    if own.summed:
        given["data_gradient_bytes"] = {"fp32": 4.0, "bf16": 2.0}[own.summed]
    return Settings(
        framework=loading.load(own.framework),
        dropout=own.dropout,
        optimizer=own.optimizer,
        flash_attention=not own.materialized,
        attention_kernel=own.attention or None,
        ignore_memory=True,
        **given,
    )


def _sharding(stage: str, own: StepSet) -> dict[str, Any]:
    """What ranks of data shard, by the set or by the row's stage of ZeRO."""
    if own.shards:
        return {"shards": own.shards}
    if stage[:1] not in ("0", "1", "2"):
        return {}
    over = _OVER.search(stage)
    shards = ("nothing", "optimizer", "gradients")[int(stage[0])]
    return {"shards": shards} | ({"shard_ranks": int(over.group(1))} if over else {})


def _grid(columns: Mapping[str, str]) -> Shape:
    """X is tp; Z what shards weights (FSDP, ZeRO-3); data the replicas."""
    tensor, data, sharded = (_optional(columns, name) for name in ("tp", "dp", "fsdp"))
    x = tensor or 1
    if not sharded and columns.get("zero_stage", "").startswith("3"):
        sharded, data = data, 1
    z = sharded or 1
    return Shape(x=x, z=z, data=data or _count(columns, "gpus") // (x * z))


def _batch(columns: Mapping[str, str], grid: Shape) -> int:
    said = _INSTEAD.search(columns.get("caveat", ""))
    batch = int(said.group(1)) if said else _optional(columns, "global_batch_sequences")
    if batch:
        return batch
    steps = _MICRO_STEPS.search(columns.get("caveat", ""))
    if not steps:
        raise PerfmodelError("its batch is not published")
    return int(steps.group(1)) * _count(columns, "micro_batch_sequences") * int(grid.z * grid.data)


def _step(columns: Mapping[str, str], batch: int, gpus: int) -> float | None:
    if columns["status"] != "ok":
        return None
    if columns.get("step_s"):
        return _float(columns, "step_s")
    if columns.get("tokens_per_s_per_gpu"):
        return batch * _count(columns, "sequence_tokens") / (_float(columns, "tokens_per_s_per_gpu") * gpus)
    return None


def _memory(columns: Mapping[str, str]) -> float | None:
    if not columns.get("memory_GiB"):
        return None
    unit = parse("1 GB", "B") if "memory in GB" in columns.get("caveat", "") else GIBI
    return _float(columns, "memory_GiB") * unit


def _float(columns: Mapping[str, str], name: str) -> float:
    if not _NUMBER.fullmatch(columns[name]):
        raise PerfmodelError(f"{name} is {columns[name]!r}, wanted a number")
    return float(columns[name])


def _optional(columns: Mapping[str, str], name: str) -> int | None:
    """A count, None where nothing is given."""
    if not columns.get(name):
        return None
    value = _float(columns, name)
    if value != int(value):
        raise PerfmodelError(f"{name} is {columns[name]}, wanted a whole number")
    return int(value) or None


def _count(columns: Mapping[str, str], name: str) -> int:
    found = _optional(columns, name)
    if not found:
        raise PerfmodelError(f"{name} is not published")
    return found
