"""The rules a grid must keep, each with a name, a check of many layouts, and a message for one.

They are those of AxoNN's library and training scripts (a head, width or shard count that does not divide stops a run at
start-up), checked in the order of `grid_rules`. A rejected grid is counted under the first rule that it breaks.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import gcd
from typing import Protocol

import numpy as np

from perfmodel.models.model import Activation, Attention, Embedding, Head, Linear, Model, Norm
from perfmodel.numerics import divisors
from perfmodel.parallel.axes import AXES, BATCH_AXES, MEMBERS, SHARD_GROUP, TENSOR_AXES
from perfmodel.parallel.job import Workload
from perfmodel.parallel.layout import Layout
from perfmodel.parallel.settings import Settings
from perfmodel.units import Array

MEMORY = "memory"
BATCH = "batch"
MICRO_BATCH = "micro_batch"
FIXED = "fixed_by_user"
_SHARD_AXES = MEMBERS[SHARD_GROUP]
_WASTE = 2  # a vocabulary padded to more than twice its size would spend more on padding than on tokens


class Rule(Protocol):
    """A condition that a grid must meet."""

    @property
    def name(self) -> str:
        """The reason under which rejected grids are counted."""

    def broken(self, layout: Layout) -> Array:
        """Which layouts break the rule."""

    def sentence(self, layout: Layout) -> str:
        """What is wrong with one layout, with the numbers, and what would be right."""


@dataclass(frozen=True, slots=True)
class Divides:
    """`numbers` must all be divisible by the product of the axes; `what` names each in the message."""

    name: str
    axes: tuple[str, ...]
    numbers: tuple[tuple[int, str], ...]

    def broken(self, layout: Layout) -> Array:
        """All numbers are divisible if and only if their greatest common divisor is."""
        return np.asarray(gcd(*(number for number, _ in self.numbers)) % self._divisor(layout) != 0)

    def sentence(self, layout: Layout) -> str:
        """Name the first number that does not divide, and the divisors that would."""
        by = int(self._divisor(layout))
        number, what = next((number, what) for number, what in self.numbers if number % by)
        sizes = " * ".join(f"{axis} {getattr(layout, axis)}" for axis in self.axes)
        product = f"{sizes} = {by}" if len(self.axes) > 1 else sizes
        fitting = _around(by, gcd(*(number for number, _ in self.numbers)))
        return f"{number} {what} cannot be split evenly by {product}; {' or '.join(map(str, fitting))} would divide"

    def _divisor(self, layout: Layout) -> Array:
        product = np.asarray(1)
        for axis in self.axes:
            product = product * getattr(layout, axis)
        return product


def _around(number: int, whole: int) -> list[int]:
    """The nearest divisors of `whole` below and above `number`."""
    fitting = divisors(whole)
    below, above = [d for d in fitting if d <= number], [d for d in fitting if d > number]
    return below[-1:] + above[:1]


@dataclass(frozen=True, slots=True)
class VocabularyPadding:
    """Padding the vocabulary for x * y devices must not more than double it."""

    work: Workload
    vocabulary: int
    name: str = "vocabulary_padding"

    def broken(self, layout: Layout) -> Array:
        """More padded rows than twice the vocabulary."""
        return np.asarray(self.work.padded_vocabulary(self.vocabulary, layout) > _WASTE * self.vocabulary)

    def sentence(self, layout: Layout) -> str:
        """The padded size and the largest x * y that stays within."""
        padded = self.work.padded_vocabulary(self.vocabulary, layout)
        multiple = self.work.settings.vocabulary_multiple
        return (
            f"a vocabulary of {self.vocabulary} padded to a multiple of {multiple} * x * y would have {padded} rows; "
            f"x * y of at most {_WASTE * self.vocabulary // multiple} keeps it within twice its size"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TableShards:
    """The padded table of a vocabulary must be divisible into flat shards for x * y * z devices, as weights are."""

    work: Workload
    vocabulary: int
    width: int
    name: str = "weight_shards"

    def broken(self, layout: Layout) -> Array:
        """Layouts whose table, padded for their x and y, does not divide."""
        elements = np.asarray(self.work.padded_vocabulary(self.vocabulary, layout)) * self.width
        return np.asarray(elements % layout.size(SHARD_GROUP) != 0)

    def sentence(self, layout: Layout) -> str:
        """As for a weight of that many elements."""
        elements = int(self.work.padded_vocabulary(self.vocabulary, layout)) * self.width
        table = (elements, "elements of the padded vocabulary table")
        return Divides(self.name, _SHARD_AXES, (table,)).sentence(layout)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """The size or maximum of an axis that the user set."""

    name: str
    axis: str
    least: int
    most: int

    def broken(self, layout: Layout) -> Array:
        """Outside the bounds."""
        size = np.asarray(getattr(layout, self.axis))
        return np.asarray((size < self.least) | (size > self.most))

    def sentence(self, layout: Layout) -> str:
        """The size and the bound."""
        wanted = f"= {self.most}" if self.least == self.most else f"at most {self.most}"
        return f"{self.axis} is {getattr(layout, self.axis)}, asked for {self.axis} {wanted}"


@dataclass(frozen=True, slots=True, kw_only=True)
class NoAxis:
    """A framework splits nothing along `axis`."""

    framework: str
    axis: str
    name: str = "framework"

    def broken(self, layout: Layout) -> Array:
        """A size above 1."""
        return np.asarray(np.asarray(getattr(layout, self.axis)) > 1)

    def sentence(self, layout: Layout) -> str:
        """The size, and the only one there is."""
        size = getattr(layout, self.axis)
        return f"{self.framework} does not split along {self.axis}, which is {size}; wanted {self.axis} = 1"


def grid_rules(work: Workload) -> tuple[Rule, ...]:
    """All rules that do not depend on micro-batch and recomputation, in the order of checking."""
    rules: list[Rule] = [*_bounds(work.settings), *_framework_rules(work), *_head_rules(work.model)]
    rules += [*_width_rules(work), *_vocabulary_rules(work)]
    rules.append(Divides(BATCH, BATCH_AXES, ((work.batch, "sequences per step"),)))
    return tuple(rules)


def micro_batch_rule(work: Workload) -> Rule:
    """The rule for a micro-batch that the user fixed."""
    return Divides(MICRO_BATCH, (*BATCH_AXES, "micro_batch"), ((work.batch, "sequences per step"),))


def first_broken(rules: tuple[Rule, ...], layout: Layout) -> Array:
    """Index of the first rule that each layout breaks, or len(rules) if it breaks none."""
    first = np.full(np.shape(layout.gpus), len(rules))
    for index in reversed(range(len(rules))):
        first = np.where(rules[index].broken(layout), index, first)
    return first


def complaints(rules: tuple[Rule, ...], layout: Layout) -> list[tuple[str, str]]:
    """Every rule that one layout breaks, with its sentence."""
    return [(rule.name, rule.sentence(layout)) for rule in rules if rule.broken(layout)]


def _bounds(settings: Settings) -> Iterator[Rule]:
    for axis in AXES:
        if axis in settings.fixed:
            yield Bound(name=FIXED, axis=axis, least=settings.fixed[axis], most=settings.fixed[axis])
        if axis in settings.maximum:
            yield Bound(name="above_user_maximum", axis=axis, least=1, most=settings.maximum[axis])


def _framework_rules(work: Workload) -> Iterator[Rule]:
    framework = work.settings.framework
    for axis in AXES:
        if framework.spread.axes and axis not in framework.spread.axes:
            yield NoAxis(framework=framework.name, axis=axis)
    if work.settings.sequence_parallel:
        yield Divides("sequence", ("x",), ((work.sequence, "tokens of a sequence"),))


def _head_rules(model: Model) -> Iterator[Rule]:
    attention = [layer for _, layer in model.layers() if isinstance(layer, Attention)]
    if attention:
        yield Divides("heads", ("x",), tuple((layer.heads, "attention heads") for layer in attention))
        yield Divides("kv_heads", ("x",), tuple((layer.kv_heads, "key-value heads") for layer in attention))


def _width_rules(work: Workload) -> Iterator[Rule]:
    """Features that x and y split, and the flat weight shards that z splits where they are not padded."""
    model = work.model
    over_x: dict[tuple[int, str], None] = {}
    over_y: dict[tuple[int, str], None] = {}
    shards: dict[tuple[int, str], None] = {}
    for layer, before in (pair for block in model.blocks for pair in block.split()):
        if isinstance(layer, Linear):
            outputs, inputs = (over_y, over_x) if layer.transposed else (over_x, over_y)
            outputs[layer.outputs, f"outputs of {layer.name}"] = None
            inputs[layer.inputs, f"inputs of {layer.name}"] = None
            shards[layer.weight, f"weights of {layer.name}"] = None
        elif isinstance(layer, (Activation, Norm)):
            (over_x if before == "x" else over_y)[layer.width, f"features of {layer.name}"] = None
        elif isinstance(layer, (Embedding, Head)):
            over_y[layer.width, f"features of {layer.name}"] = None
    yield Divides("width_x", ("x",), tuple(over_x))
    yield Divides("width_y", ("y",), tuple(over_y))
    if not _padded(work):
        yield Divides("weight_shards", _SHARD_AXES, tuple(shards))


def _padded(work: Workload) -> bool:
    return work.settings.framework.spread.uneven_shards == "padded"


def _vocabulary_rules(work: Workload) -> Iterator[Rule]:
    tables = {(e.vocabulary, e.width) for _, e in work.model.layers() if isinstance(e, (Embedding, Head))}
    for vocabulary in sorted({vocabulary for vocabulary, _ in tables}):
        if work.settings.vocabulary_multiple:
            yield VocabularyPadding(work, vocabulary)
        else:
            yield Divides("vocabulary", TENSOR_AXES, ((vocabulary, "rows of the vocabulary"),))
    for vocabulary, width in sorted(tables) if not _padded(work) else ():
        yield TableShards(work=work, vocabulary=vocabulary, width=width)
