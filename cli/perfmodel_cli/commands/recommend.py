"""The command that ranks grids."""

import typer

from perfmodel_cli import options
from perfmodel_cli.printing import renderer, show
from perfmodel_cli.question import Question, asks, example, gpu_count


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    app.command()(recommend)


@asks
@example("perfmodel recommend --model gpt-20b --machine perlmutter --gpus 256 --batch 2048")
def recommend(
    question: Question,
    gpus: options.Gpus = None,
    nodes: options.Nodes = None,
    top: options.Top = 10,
    fix: options.Fix = "",
    maximum: options.Maximum = "",
    tokens: options.Tokens = "",
    uncertainty: options.Doubt = False,
    output: options.Output = options.Format.table,
) -> None:
    """Rank all ways to spread a model over some GPUs, and say why the others were turned down."""
    from perfmodel.search import answer_records
    from perfmodel.search.recommend import answer

    job = question.job(fix=fix, maximum=maximum)
    devices = gpu_count(job.machine.node_devices, gpus, nodes)
    wanted = options.tokens(tokens, "--tokens") if tokens else None
    ranking, beside = answer(job, question.space(devices, top), wanted, uncertain=uncertainty)
    record = answer_records.ranking_record(ranking, beside)
    show(record, record["results"], output, lambda: renderer("ranking_table").ranking(record, ranking))
