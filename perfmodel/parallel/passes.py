"""How often passes run and weights are gathered over Z in a micro-step, by recomputation and weight cache."""

from dataclasses import dataclass

import numpy as np

from perfmodel.parallel.choices import RECOMPUTES, WEIGHT_CACHES
from perfmodel.parallel.layout import Layout
from perfmodel.units import Number

_FULL, _SELECTIVE, _OPERATIONS = (RECOMPUTES.index(name) for name in ("full", "selective", "operations"))
_NEVER_KEPT, _ALWAYS_KEPT = WEIGHT_CACHES.index("none"), WEIGHT_CACHES.index("all")


@dataclass(frozen=True, slots=True, kw_only=True)
class Passes:
    """Passes of a checkpointed block, as 0 or 1 (or arrays of them); other blocks run forward and backward once.

    `full`: the whole block runs forward again. `selective`: only its attention does. `operations`: all but attention
    and half of the products. `gather_again`: the repeated forward pass gathers the weights again. `gather_back`: the
    backward pass does.

    With a weight cache "none" every pass gathers, 3 times under full recomputation (AxoNN today). With "forward" the
    last forward's weight is kept for the backward pass: once, twice under full recomputation (the paper). With "all"
    the first is kept (AxoNN's caching level 2).
    """

    full: Number
    selective: Number
    operations: Number
    gather_again: Number
    gather_back: Number

    @classmethod
    def of(cls, layout: Layout) -> "Passes":
        """From a layout's recomputation and weight cache.

        >>> found = Passes.of(Layout(x=1, y=1, z=4, data=1, recompute=2, weight_cache=0))
        >>> float(found.forward), float(found.gathers)
        (2.0, 3.0)
        """
        recompute, cache = np.asarray(layout.recompute), np.asarray(layout.weight_cache)
        full = 1.0 * (recompute == _FULL)
        return cls(
            full=full,
            selective=1.0 * (recompute == _SELECTIVE),
            operations=1.0 * (recompute == _OPERATIONS),
            gather_again=full * (cache != _ALWAYS_KEPT),
            gather_back=1.0 * (cache == _NEVER_KEPT),
        )

    @property
    def forward(self) -> Number:
        """Forward passes of a checkpointed block in a micro-step."""
        return 1.0 + self.full

    @property
    def gathers(self) -> Number:
        """All-gathers of a checkpointed block's weights in a micro-step."""
        return 1.0 + self.gather_again + self.gather_back

    @property
    def gathers_once(self) -> Number:
        """The same for a block that is never recomputed."""
        return 1.0 + self.gather_back
