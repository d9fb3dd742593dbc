"""The command that ranks grids."""

from perfmodel_cli.options import shared
from perfmodel_cli.options.groups import Search, asks
from perfmodel_cli.options.question import Question, example
from perfmodel_cli.printing import renderer, show


@asks
@example("perfmodel recommend --model gpt-20b --machine perlmutter --gpus 256 --batch 2048")
def recommend(
    question: Question,
    search: Search,
    output: shared.Output = shared.Format.table,
) -> None:
    """Rank all ways to spread a model over some GPUs, and say why others were rejected."""
    from perfmodel.search.recommend import answer
    from perfmodel.search.results import answer_records

    job = question.job(search.limits, search.measured)
    devices, tokens = search.count.of(job.machine), search.training_tokens()
    ranking, beside = answer(job, question.space(devices, search.top), tokens, uncertain=search.uncertainty)
    record = answer_records.ranking_record(ranking, beside)
    show(record, record["results"], output, lambda: renderer("ranking_table").ranking(record, ranking))
