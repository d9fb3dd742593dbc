"""A search with what accompanies its ranking: other strategies, training time, and uncertainty."""

from dataclasses import replace
from typing import TYPE_CHECKING

from perfmodel.parallel.job import Job
from perfmodel.search import no_answer
from perfmodel.search.baselines import baselines
from perfmodel.search.results.answer_records import Beside
from perfmodel.search.search import Ranking, Space

if TYPE_CHECKING:
    from perfmodel.search.uncertainty import Uncertainty

_EXAMINED = 50  # grids whose uncertainty is sampled: the fastest is never further down
_SEED = 1  # the same question has the same answer


def answer(job: Job, space: Space, tokens: int | None, *, uncertain: bool) -> tuple[Ranking, Beside]:
    """The ranking of `space`, with more rows than are shown if its uncertainty is requested."""
    searched = replace(space, top=max(space.top, _EXAMINED)) if uncertain else space
    ranking = no_answer.recommend(job, searched)
    return ranking, Beside(
        baselines=baselines(job, space),
        tokens=tokens,
        uncertainty=_doubt(ranking) if uncertain else None,
        shown=space.top,
    )


def _doubt(ranking: Ranking) -> "Uncertainty":
    import numpy as np  # noqa: PLC0415 - its random numbers alone take 8 ms to load

    from perfmodel.search.uncertainty import sample, sigmas  # noqa: PLC0415 - as above

    return sample(ranking, np.random.default_rng(_SEED), sigmas(ranking.job))
