"""The lines below a ranking: rates of its best grid, times of other strategies, and how sure the order is."""

from collections.abc import Iterable

from rich.text import Text

from perfmodel.units import parse, show
from perfmodel_cli.terminal.cells import Record, line
from perfmodel_cli.texts import grid_text

_DAY, _HOUR = parse("24 h", "s"), parse("1 h", "s")


def beside(record: Record) -> Iterable[Text]:
    """All lines that the fidelity and the question call for."""
    best = record["results"][0]
    if record["likely"]:
        yield line(_likely(best, record))
    if best["tokens_per_s"]:
        yield line(_throughput(best))
        yield line(_bounds(best))
    if "training_tokens" in best and best["training_time_s"]:
        yield line(_training(best))
    if record["baselines"]:
        yield line(f"The best grid against: {'; '.join(map(_baseline, record['baselines']))}")
    if "uncertainty" in record:
        yield from map(line, _uncertainty(record["uncertainty"]))


def _throughput(best: Record) -> str:
    return (
        f"Best grid: {best['tokens_per_s']:,.0f} tokens/s = {best['sequences_per_s']:,.2f} sequences/s; "
        f"{show(best['model_flop_per_s'], 'flop/s')} of the model, {show(best['hardware_flop_per_s'], 'flop/s')} with "
        f"recomputation = HFU {100 * best['hardware_flops_utilization']:.1f} %, "
        f"{100 * best['gemm_rate_utilization']:.1f} % of the GEMM rate"
    )


def _likely(best: Record, record: Record) -> str:
    found = record["likely"]
    low, high = show(best["step_time_low_s"], "s"), show(best["step_time_high_s"], "s")
    if found["of"] == "your own measurement":
        steps = f"{found['published_runs']} measured step{'s' * (found['published_runs'] > 1)} of yours"
        return f"Step {show(best['step_time_s'], 's')}, likely {low} to {high}, at the level of {steps}"
    runs = f"{found['published_runs']} runs in {found['published_sets']} set{'s' * (found['published_sets'] > 1)}"
    return (
        f"Step {show(best['step_time_s'], 's')}, likely {low} to {high}: 9 of 10 published runs lie in such a range "
        f"({found['of']}: {runs})"
    )


def _bounds(best: Record) -> str:
    least, most = best["lower_bound_s"], best["upper_bound_s"]
    return (
        f"Its step of {show(best['step_time_s'], 's')} would take {show(least, 's')} if computation and communication "
        f"overlapped fully (the longer of both), {show(most, 's')} if not at all (their sum)"
    )


def _training(best: Record) -> str:
    time = best["training_time_s"]
    readable = f"{time / _DAY:,.2f} days" if time >= _DAY else f"{time / _HOUR:,.2f} hours"
    return (
        f"{best['training_tokens']:,} tokens: {best['training_steps']:,} steps, {readable}, "
        f"{best['training_node_hours']:,.0f} node-hours (steps only: no start-up, checkpoints or failures)"
    )


def _baseline(one: Record) -> str:
    if one["step_time_s"] is None:
        return f"{one['name']} - ({one['reason']})"
    factor = one["slower_than_best"]
    compared = f"{factor:.2f} times its time" if factor else show(one["step_time_s"], "s")
    return f"{one['name']} {grid_text(one)} {compared}"


def _uncertainty(found: Record) -> Iterable[str]:
    low, high = found["best_step_time_interval_s"]
    grids = f"{found['grids']} grid{'s' * (found['grids'] > 1)}"
    yield (
        f"Uncertainty of the profile's figures and the model ({found['samples']} samples, {grids}): "
        f"the best grid's step takes {show(low, 's')} to {show(high, 's')} (5 to 95 %)"
    )
    worth = found["worth_a_try"]
    named = ", ".join(f"{grid_text(one)} ({100 * one['chance_of_being_fastest']:.0f} %)" for one in worth)
    if len(worth) == 1:
        yield f"Probability of being fastest: {named}; no other needs a try"
    else:
        yield f"These {len(worth)} cannot be told apart; try them (probability of being fastest): {named}"
