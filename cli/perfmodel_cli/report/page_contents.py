"""What a report shows, as records: the library's answers collected."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from perfmodel.errors import PerfmodelError, nothing_left
from perfmodel.parallel.job import Job
from perfmodel.search.recommend import answer
from perfmodel.search.results.answer_records import ranking_record, sweep_record
from perfmodel.search.scaling import Batch, points
from perfmodel.search.search import Ranking, Space
from perfmodel.step.exposed import exposed_by_stream
from perfmodel.validation import compare, records
from perfmodel.validation.measured_steps import Reading
from perfmodel_cli.report.recommendation_section import CHARTED

Record = dict[str, Any]

_FULL = (
    "In the timeline of a step (perfmodel explain --timeline): how long computation stands still, by what it waits "
    "for, and how much slower it gets beside communication. Communication that is hidden takes no time here."
)
_OTHER = "Nothing overlaps at fidelity {}: all communication adds to the step time."


def ranked(job: Job, space: Space, tokens: int | None, *, uncertain: bool) -> tuple[Ranking, Record]:
    """The search and its record; `all_results` holds more than are shown where uncertainty considers more."""
    ranking, beside = answer(job, space, tokens, uncertain=uncertain)
    record = ranking_record(ranking, replace(beside, shown=None))
    kept = "that keep the rules (memory ignored)" if job.settings.ignore_memory else "that fit"
    return ranking, record | {"results": record["results"][: space.top], "all_results": record["results"], "kept": kept}


def breakdown(ranking: Ranking, record: Record) -> tuple[tuple[Mapping[str, float], ...], str]:
    """The step time of each of the best grids in parts, in seconds, and a sentence about the parts."""
    results = record["results"][:CHARTED]
    fidelity = ranking.job.settings.fidelity
    if fidelity != "full":
        return tuple(_computed(one) | one["communication_s"] for one in results), _OTHER.format(fidelity)
    try:
        found = [
            asdict(exposed_by_stream(ranking.job, ranking.layouts.take(row), one["exposed_communication_time_s"]))
            for row, one in enumerate(results)
        ]
    except PerfmodelError as error:  # the model has too many layers for a timeline
        exposed = tuple(_computed(one) | {"exposed": one["exposed_communication_time_s"]} for one in results)
        return exposed, f"Not split further: {error}."
    return tuple(_computed(one) | waited for one, waited in zip(results, found, strict=True)), _FULL


def _computed(result: Record) -> dict[str, float]:
    """Nothing at paper fidelity, which knows no computation."""
    return {"compute": result["compute_time_s"] or 0.0}


def scaling(job: Job, space: Space, counts: Sequence[int]) -> Record:
    """The best grid of each count with the job's own batch, in ascending order: efficiency is against the first."""
    batch = Batch(whole=job.batch)
    return sweep_record(job, batch, list(points(job, space, sorted(counts), batch)))


def compared(reading: Reading) -> tuple[Record, tuple[str, ...]]:
    """Measured steps with predictions, and what is wrong with the rows that are left out."""
    found = compare.compare(reading)
    if not found.rows:
        raise nothing_left(found.problems, reading.path, "compare")
    return records.record(found), found.problems
