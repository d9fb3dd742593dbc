"""How a model is run on a grid: what every layer needs to know, handed down when the model is built."""

from dataclasses import dataclass, field

from perfmodel.launch.groups import Grid
from perfmodel.launch.schedule import Schedule
from perfmodel.launch.tuner import Products
from perfmodel.settings import AXONN_OVERLAPS, Overlap, Recompute, WeightCache


@dataclass(frozen=True, slots=True)
class Plan:
    """The grid, the traffic of weights, the products' modes, and what is recomputed and dropped."""

    grid: Grid
    schedule: Schedule
    products: Products = field(default_factory=Products)
    recompute: Recompute = "none"
    dropout: float = 0.0
    seed: int = 0

    @classmethod
    def of(
        cls,
        grid: Grid,
        *,
        overlap: frozenset[Overlap] = AXONN_OVERLAPS,
        weight_cache: WeightCache = "none",
        recompute: Recompute = "none",
        tune: bool = False,
    ) -> "Plan":
        """A plan with a schedule of its own."""
        schedule = Schedule(grid.z, overlap=overlap, weight_cache=weight_cache)
        return cls(grid, schedule, Products(tune=tune), recompute)
