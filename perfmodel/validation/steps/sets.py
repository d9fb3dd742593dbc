"""What is known of sets of published steps beyond their columns: framework, machine, settings, each with its source.

A set is a file of the columns that `rows` reads; nothing of its rows is kept here. For a file that
`data/step_sets.yaml` does not list, the framework follows from what its rows say of their source and sharding.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Literal

from perfmodel import schema
from perfmodel.frameworks.framework import KernelSet, ShardedState
from perfmodel.sources import Source

_FILE = "validation/data/step_sets.yaml"


@dataclass(frozen=True, slots=True, kw_only=True)
class StepSet:
    """One set: what its rows leave out.

    `framework`: that trains. `family`: gpt (GELU, LayerNorm, biases) or llama (gated, RMSNorm). `attention`: the
    kernel. `overlap`: names joined by +, or none. `compiled_where`: words of a caveat that say that a row was compiled.
    `seconds`: whether its steps are scored, or its memory only. `summed`: format of
    gradients over data. `network`: share of the profile's bandwidth between nodes. `why`: reasons for these choices.
    """

    source: str
    framework: str
    machine: str = ""
    family: Literal["", "gpt", "llama"] = ""
    attention: str = ""
    overlap: str = ""
    kernels: KernelSet | None = None
    compiled_where: str = ""
    shards: ShardedState | None = None
    sequence_parallel: bool | None = None
    dropout: bool = False
    optimizer: str = "adamw"
    recompute: str = ""
    seconds: bool = True
    materialized: bool = False
    summed: Literal["", "fp32", "bf16"] = ""
    network: float = 1.0
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepSets:
    """The file: sets by the name of their file, machines by the words of a row's columns, in order of trial."""

    format: int
    sources: Mapping[str, Source]
    machines: tuple["NamedMachine", ...]
    frameworks: tuple["NamedFramework", ...]
    sets: Mapping[str, StepSet] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedMachine:
    """A shipped profile, and words of which one is in the columns `machine` and `gpu` of its rows."""

    words: str
    profile: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedFramework:
    """A framework, and words of which one is in a row's columns `source`, `caveat` and `zero_stage`."""

    words: str
    framework: str


@cache
def known() -> StepSets:
    """The shipped file."""
    text = files("perfmodel").joinpath(_FILE).read_text(encoding="utf-8")
    return schema.build(StepSets, schema.compose(text, _FILE), _FILE)


def of(name: str, columns: Mapping[str, str]) -> StepSet:
    """The set called `name`, or one that is inferred from a row's columns.

    >>> of("a file of my own", {"zero_stage": "3 (FSDP2)"}).framework
    'fsdp2'
    """
    if name in known().sets:
        return known().sets[name]
    said = " ".join(columns.get(key, "") for key in ("source", "caveat", "zero_stage")).lower()
    for one in known().frameworks:
        if any(word in said for word in one.words.split(" | ")):
            return StepSet(source="", framework=one.framework)
    sharded = columns.get("fsdp", "") not in ("", "0", "1")
    return StepSet(source="", framework="fsdp2" if sharded else "megatron-lm")


def machine(columns: Mapping[str, str]) -> str:
    """The profile of a row's machine, empty if none is known.

    >>> machine({"machine": "selene", "gpu": "A100-80GB"})
    'dgx-a100'
    """
    said = f"{columns.get('machine', '')} {columns.get('gpu', '')}".lower()
    for one in known().machines:
        if any(word in said for word in one.words.split(" | ")):
            return one.profile
    return ""
