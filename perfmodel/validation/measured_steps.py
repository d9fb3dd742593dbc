"""Measured steps as rows of documented columns: every problem with its line, every good row kept."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeVar, cast

from perfmodel.errors import FileProblems, PerfmodelError, nearest
from perfmodel.machines.collective_times import Operation
from perfmodel.machines.machine import Dtype
from perfmodel.parallel.axes import AXES, AXONN, KINDS
from perfmodel.parallel.choices import OPTIMIZERS, OVERLAPS, RECOMPUTES, WEIGHT_CACHES, Overlap

# Every column with what it holds: the documentation, the check of a file's heading, and the message are made of this.
COLUMNS: Mapping[str, str] = MappingProxyType(
    {
        "machine": "a shipped machine, or the path of a profile",
        "model": "a preset, the path of a model, or six numbers: hidden,layers,heads,kv_heads,ffn,vocabulary",
        "hidden": "instead of `model`, each of the six in a column of its own: width",
        "layers": "blocks",
        "heads": "attention heads",
        "kv_heads": "key-value heads; empty: as many as heads",
        "ffn": "width between the two MLP layers; empty: 4 x hidden",
        "vocabulary": "tokens known",
        "scale_layers": "blocks that the model was made to have, as by `run --scale-layers`; empty: its own",
        "scale_hidden": "factor of all its widths, as by `run --scale-hidden`; empty: 1",
        "sequence_length": "tokens in a sequence; empty: the model's own",
        "gpus": "devices in all; empty: what the grid has",
        **{
            axis: f"size of axis {kind.title}; empty: 1, and where all are, that of the best predicted grid"
            for axis, kind in KINDS.items()
        },
        "tp": "instead: tensor-parallel degree, which is X",
        "fsdp": "instead: degree of sharded data parallelism, which is Z",
        "dp": "instead: data-parallel degree, which is data",
        "placement": f"order of the axes, neighbouring ranks first; empty: {','.join(AXONN)}",
        "batch_sequences": "sequences in a step, all devices together",
        "micro_batch": "sequences that a device processes at once; empty: what is predicted to be fastest",
        "recompute": "none, selective or full; empty: what is predicted to be fastest",
        "weight_cache": "none, forward or all; empty: weights are gathered for the forward and the backward pass",
        "dtype": "bf16, fp16 or fp32; empty: what the machine trains in",
        "framework": "that trained, by name or path of a .yaml file; empty: perfmodel",
        "attention": "flash (FlashAttention-2), flash-1 (the first) or materialized; empty: flash",
        "dropout": "yes or no; empty: no",
        "overlap": f"beside computation: of {', '.join(OVERLAPS)}, joined by +; none; empty: the first three",
        "optimizer": f"one of {', '.join(OPTIMIZERS)}; empty: adamw",
        "step_time_s": "seconds per step",
        "tokens_per_s_per_gpu": "instead of step_time_s",
        "memory_B": "bytes that a device held at most",
        "group": "rows ranked against each other; empty: those of one machine, model, sequence, batch and gpus",
        "source": "where the row is from",
    }
)
_ALIASES = {"tp": "x", "fsdp": "z", "dp": "data"}
_DTYPES = ("bf16", "fp16", "fp32")
_SIZES = ("hidden", "layers", "heads", "kv_heads", "ffn", "vocabulary")
_YES = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
_MOST = 1 << 40
_LEAST, _GREATEST = 1 / _MOST, 1.0 * _MOST * _MOST  # plausible range of a measured step, rate or memory
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Timed:
    """A step's calls of one operation on one axis: their number, buffer bytes, and seconds when run alone."""

    operation: Operation
    axis: str
    calls: float
    buffers: float
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredStep:
    """One run: what ran, and how long a step took. None or "" = not stated; `model` is a name or six numbers.

    `ran`: the program that ran it, where the file says so. For a run with `repetitions` in the file, the figures are
    medians and the line is that of the first.
    """

    line: int
    machine: str
    model: str | tuple[int | None, ...]
    scale_layers: int | None
    scale_hidden: str
    sequence: int | None
    gpus: int
    grid: tuple[int, ...] | None
    placement: tuple[str, ...]
    batch: int
    micro_batch: int | None
    recompute: str | None
    weight_cache: str | None
    dtype: Dtype | None
    framework: str
    attention: str
    dropout: bool
    optimizer: str
    overlap: frozenset[Overlap] | None
    step: float | None
    tokens_per_s_per_gpu: float | None
    memory: float | None
    group: str
    source: str
    timed: tuple[Timed, ...] = ()
    ran: tuple[str, ...] = ()
    repetitions: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The good rows of a file, what is wrong with it (line, sentence), and how many rows are left out."""

    path: str
    rows: tuple[MeasuredStep, ...]
    problems: tuple[tuple[int, str], ...]
    dropped: int


def rows_of(
    path: str, heads: list[str], table: list[tuple[int, list[str]]], *, given: Mapping[str, str] | None = None
) -> Reading:
    """The rows of a table whose heading is `heads`; `table` holds the line and the cells of each row."""
    problems = [
        (1, f"unknown column {head!r} ({nearest(head, list(COLUMNS))})") for head in heads if head not in COLUMNS
    ]
    if doubled := sorted({head for head in heads if heads.count(head) > 1}):
        raise FileProblems(path, [f"{path}:1: column {head!r} is given twice" for head in doubled])
    fixed = {name: value for name, value in (given or {}).items() if value}
    rows = []
    seen: dict[tuple[str, ...], int] = {}
    for line, cells in table:
        try:
            first = seen.setdefault(tuple(cells), line)
            rows.append(row_of(line, _named(heads, cells) | fixed, same_as=first))
        except PerfmodelError as error:
            problems.append((line, str(error)))
    return Reading(path=path, rows=tuple(rows), problems=tuple(problems), dropped=len(table) - len(rows))


def _named(heads: list[str], cells: list[str]) -> dict[str, str]:
    if len(cells) != len(heads):
        raise PerfmodelError(f"{len(cells)} cells under {len(heads)} columns")
    return dict(zip(heads, (cell.strip() for cell in cells), strict=True))


def row_of(line: int, values: Mapping[str, str], *, same_as: int, timed: tuple[Timed, ...] = ()) -> MeasuredStep:
    """One row; its first problem is raised as a sentence. `same_as`: the place where the same values stood first."""
    if same_as != line:
        raise PerfmodelError(f"the same in everything as line {same_as}")
    grid = _grid(values)
    if values.get("dtype", "") not in ("", *_DTYPES):
        raise PerfmodelError(f"dtype is {values['dtype']!r}: steps are predicted in {', '.join(_DTYPES)}")
    step, rate = _number(values, "step_time_s"), _number(values, "tokens_per_s_per_gpu")
    if step is None and rate is None:
        raise PerfmodelError("neither step_time_s nor tokens_per_s_per_gpu is given")
    return MeasuredStep(
        line=line,
        machine=_needed(values.get("machine") or None, "machine"),
        model=_model(values),
        scale_layers=_whole(values, "scale_layers"),
        scale_hidden=values.get("scale_hidden", ""),
        sequence=_whole(values, "sequence_length"),
        gpus=_devices(values, grid),
        grid=grid,
        placement=_placement(values.get("placement", "")),
        batch=_needed(_whole(values, "batch_sequences"), "batch_sequences"),
        micro_batch=_whole(values, "micro_batch"),
        recompute=_recompute(values),
        weight_cache=_choice(values, "weight_cache", WEIGHT_CACHES),
        dtype=cast("Dtype | None", values.get("dtype") or None),
        framework=values.get("framework", ""),
        attention=_choice(values, "attention", ("flash", "flash-1", "materialized")) or "flash",
        dropout=_boolean(values, "dropout"),
        optimizer=_choice(values, "optimizer", tuple(OPTIMIZERS)) or "adamw",
        overlap=_overlap(values.get("overlap", "")),
        step=step,
        tokens_per_s_per_gpu=rate,
        memory=_number(values, "memory_B"),
        group=values.get("group", ""),
        source=values.get("source", ""),
        timed=timed,
    )


def _needed(value: _T | None, column: str) -> _T:
    if value is None:
        raise PerfmodelError(f"{column} is missing ({COLUMNS[column]})")
    return value


def _devices(values: Mapping[str, str], grid: tuple[int, ...] | None) -> int:
    """Devices of the grid, which a stated number must equal; without a grid, the stated number."""
    gpus = _whole(values, "gpus")
    if grid is None:
        return _needed(gpus, "gpus")
    product = math.prod(grid)
    if gpus not in (None, product):
        raise PerfmodelError(f"the grid {'x'.join(map(str, grid))} has {product} devices, not {gpus} (column gpus)")
    return product


def _grid(values: Mapping[str, str]) -> tuple[int, ...] | None:
    """Sizes of the axes, 1 where a row gives only others; None where it gives none."""
    sizes: dict[str, int] = {}
    for column in (*AXES, *_ALIASES):
        size, axis = _whole(values, column), _ALIASES.get(column, column)
        if size is None:
            continue
        if axis in sizes:
            raise PerfmodelError(f"{column} and {axis} are both given, and both mean {axis}")
        sizes[axis] = size
    return tuple(sizes.get(axis, 1) for axis in AXES) if sizes else None


def _placement(text: str) -> tuple[str, ...]:
    axes = tuple(axis.strip() for axis in text.split(",")) if text else AXONN
    if sorted(axes) != sorted(AXES):
        raise PerfmodelError(f"placement is {text!r}, wanted all axes in an order, such as {','.join(AXONN)}")
    return axes


def _model(values: Mapping[str, str]) -> str | tuple[int | None, ...]:
    text = values.get("model", "")
    if text:
        return shape_of(text) if "," in text else text
    if not values.get("hidden"):
        raise PerfmodelError(f"model is missing ({COLUMNS['model']})")
    return _shape(values)


def shape_of(text: str) -> tuple[int | None, ...]:
    """Read hidden,layers,heads,kv_heads,ffn,vocabulary; kv_heads and ffn may be empty.

    >>> shape_of("1024,24,16,,,51200")
    (1024, 24, 16, None, None, 51200)
    """
    cells = [cell.strip() for cell in text.split(",")]
    if len(cells) != len(_SIZES):
        raise PerfmodelError(f"model {text!r} has {len(cells)} numbers, wanted {len(_SIZES)}: {','.join(_SIZES)}")
    return _shape(dict(zip(_SIZES, cells, strict=True)))


def _shape(values: Mapping[str, str]) -> tuple[int | None, ...]:
    optional = ("kv_heads", "ffn")
    found = (_whole(values, name) if name in optional else _needed(_whole(values, name), name) for name in _SIZES)
    return tuple(found)


def _recompute(values: Mapping[str, str]) -> str | None:
    """The recomputation mode; also yes and no, as frameworks write it."""
    text = values.get("recompute", "").lower()
    if text in _YES:
        return "full" if _YES[text] else "none"
    return _choice(values, "recompute", RECOMPUTES)


def _choice(values: Mapping[str, str], column: str, choices: tuple[str, ...]) -> str | None:
    text = values.get(column, "").lower()
    if text and text not in choices:
        raise PerfmodelError(f"{column} is {text!r}, none of {', '.join(choices)}")
    return text or None


def _overlap(text: str) -> frozenset[Overlap] | None:
    """Kinds of overlap, such as all-reduce+all-gather; None = not stated."""
    if not text:
        return None
    names = [name.strip() for name in text.lower().split("+") if name.strip() not in ("", "none")]
    if unknown := [name for name in names if name not in OVERLAPS]:
        raise PerfmodelError(f"overlap names {unknown[0]!r}, none of {', '.join(OVERLAPS)}")
    return frozenset(kind for kind in OVERLAPS if kind in names)


def _boolean(values: Mapping[str, str], column: str) -> bool:
    text = values.get(column, "").lower() or "no"
    if text not in _YES:
        raise PerfmodelError(f"{column} is {text!r}, wanted yes or no")
    return _YES[text]


def _whole(values: Mapping[str, str], column: str) -> int | None:
    number = _converted(values.get(column, ""), column, float)
    if number is None:
        return None
    if not 1 <= number < _MOST or number != int(number):
        raise PerfmodelError(f"{column} is {values[column]!r}, wanted a whole number of at least 1")
    return int(number)


def _number(values: Mapping[str, str], column: str) -> float | None:
    number = _converted(values.get(column, ""), column, float)
    if number is not None and not _LEAST <= number <= _GREATEST:
        raise PerfmodelError(f"{column} is {values[column]!r}, wanted a number from {_LEAST:.1g} to {_GREATEST:.1g}")
    return number


def _converted(text: str, column: str, convert: Callable[[str], Any]) -> float | None:
    try:
        return float(convert(text)) if text else None
    except ValueError:
        raise PerfmodelError(f"{column} is {text!r}, wanted a number") from None
