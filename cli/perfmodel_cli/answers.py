"""A search with what stands beside its ranking: other strategies, a training of many tokens, how sure the order is."""

from dataclasses import replace
from typing import TYPE_CHECKING

from perfmodel import advice
from perfmodel.baselines import baselines
from perfmodel.job import Job
from perfmodel.search import Ranking, Space
from perfmodel.tables import Beside

if TYPE_CHECKING:
    from perfmodel.uncertainty import Uncertainty

_EXAMINED = 50  # grids whose uncertainty is looked at: the fastest is never further down
_SEED = 1  # the same question has the same answer


def answer(job: Job, space: Space, tokens: int | None, *, uncertain: bool) -> tuple[Ranking, Beside]:
    """The ranking of `space`, deeper than what is shown of it where its uncertainty is asked for."""
    searched = replace(space, top=max(space.top, _EXAMINED)) if uncertain else space
    ranking = advice.recommend(job, searched)
    return ranking, Beside(baselines(job, space), tokens, _doubt(ranking) if uncertain else None, shown=space.top)


def _doubt(ranking: Ranking) -> "Uncertainty":
    import numpy as np  # its random numbers alone take 8 ms to load

    from perfmodel.uncertainty import sample, sigmas

    return sample(ranking, np.random.default_rng(_SEED), sigmas(ranking.job))
