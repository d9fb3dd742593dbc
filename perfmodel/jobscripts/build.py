"""From a question, an allocation and some grids to the records of jobs, with everything checked."""

import re
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Literal

from perfmodel.errors import NoGridError, PerfmodelError, UsageError
from perfmodel.jobscripts import flags, frameworks, limits, quoting
from perfmodel.jobscripts.frameworks import FRAMEWORKS
from perfmodel.jobscripts.request import Request, Run
from perfmodel.machines import allocation
from perfmodel.machines.machine import Machine
from perfmodel.machines.scheduler import Scheduler
from perfmodel.parallel.choices import MAX_COUNT
from perfmodel.parallel.job import Job
from perfmodel.parallel.layout import Layout
from perfmodel.search import no_answer
from perfmodel.search.explain import explain
from perfmodel.search.search import Space
from perfmodel.step.predict import step_time

Mode = Literal["one", "array", "many"]
_SHARE_OF_TIME = 0.9  # share of the job's time for all grids; the rest is for its start and end
_MOST_RUNS = 500
_LONGEST_NAME = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Allocation:
    """What is requested from the scheduler, as the user wrote it."""

    time: str
    account: str = ""
    qos: str = ""
    name: str = ""
    setup: tuple[str, ...] = ()
    activate: tuple[str, ...] = ()
    container: str = ""
    mode: Mode = "one"
    results: str = ""
    compare: bool = False


def chosen(job: Job, space: Space, launcher: str, grid: Layout) -> Layout:
    """A grid with its best settings; raises if it cannot run, or if the framework cannot express it."""
    framework = FRAMEWORKS[launcher]
    frameworks.refuse_device(framework, job)
    space = frameworks.suited(framework, job, space)
    found = explain(job, space, grid)
    if found.rejections:
        near = f"; the nearest that can is {found.nearest.text()}" if found.nearest else ""
        raise NoGridError(f"{grid.text()} cannot run {job.model.name}: {found.rejections[0][1]}{near}")
    frameworks.refuse(framework, job, space, found.layout)
    return found.layout


def fastest(job: Job, space: Space, launcher: str) -> tuple[list[Layout], list[str]]:
    """The `space.top` fastest grids that the framework can express, and those before them that it cannot."""
    framework = FRAMEWORKS[launcher]
    frameworks.refuse_device(framework, job)
    if space.top > _MOST_RUNS:
        raise UsageError(f"--top is {space.top}, wanted 1 to {_MOST_RUNS} grids for a job")
    ranking = no_answer.recommend(job, replace(frameworks.suited(framework, job, space), top=MAX_COUNT))
    found: list[Layout] = []
    left_out: list[str] = []
    for row in range(len(ranking)):
        layout = ranking.layouts.take(row)
        if reason := frameworks.problem(framework, job, layout):
            left_out.append(f"{layout.text()}: {launcher} {reason}")
        else:
            found.append(layout)
        if len(found) == space.top:
            break
    if not found:
        raise NoGridError(f"{launcher} can express none of {len(left_out)} grids; the fastest, {left_out[0]}")
    return found, left_out


def requests(plan: flags.Plan, layouts: list[Layout], wish: Allocation) -> list[Request]:
    """The jobs: one for all grids, an array with one per grid, or one job per grid."""
    _check(plan, wish)
    groups = [[layout] for layout in layouts] if wish.mode == "many" else [layouts]
    return [_request(plan, group, wish) for group in groups]


def _request(plan: flags.Plan, layouts: list[Layout], wish: Allocation) -> Request:
    job, machine = plan.job, plan.job.machine
    gpus, time = int(layouts[0].gpus), limits.seconds(wish.time)
    nodes = allocation.whole_nodes(machine, gpus)
    name = quoting.directive(wish.name or _name(job.model.name), "--name")
    if wish.mode == "many":
        name = f"{name}-{layouts[0].text()}"
    results, array = wish.results or f"{name}.jsonl", wish.mode == "array"
    share = 1 if array else len(layouts)
    own = replace(plan, seconds=max(1, int(_SHARE_OF_TIME * time / share)), shared=share > 1)
    _check_time(own, layouts, share)
    runs = tuple(_array_runs(own, layouts, results) if array else (flags.run(own, one, results) for one in layouts))
    ours = plan.launcher == "perfmodel"
    return Request(
        machine=machine, gpus=gpus, nodes=nodes, time=time, title=_title(job, gpus), name=name, runs=runs,
        way=limits.way_in(machine, nodes, time, wish.qos), account=wish.account,
        setup=tuple(quoting.words(command, "--setup") for command in wish.setup),
        activate=tuple(quoting.words(command, "--activate") for command in wish.activate), container=wish.container,
        array=array, finds_device=ours, resumes=ours, closing=_closing(plan, results, wish),
    )  # fmt: skip


def _array_runs(plan: flags.Plan, layouts: list[Layout], results: str) -> list[Run]:
    """The runs of an array, each with its own file: they may run at once, and must not append to the same file."""
    runs = []
    for number, layout in enumerate(layouts, start=1):
        path = PurePath(results)
        own = str(path.with_name(f"{path.stem}-{number}{path.suffix}"))
        runs.append(flags.run(plan, layout, own))
    return runs


def _closing(plan: flags.Plan, results: str, wish: Allocation) -> tuple[str, ...]:
    """The last commands of the job, which belong to the measuring program."""
    program = plan.program or FRAMEWORKS[plan.launcher].program
    return (*program, "compare", f"--measured={results}", f"--machine={plan.machine}") if wish.compare else ()


def _check_time(plan: flags.Plan, layouts: list[Layout], share: int) -> None:
    """Check that the predicted time of each grid's steps fits into its share of the job's time."""
    steps = plan.steps + plan.warmup
    for layout in layouts:
        step = float(step_time(plan.job, layout))
        if steps * step > plan.seconds:
            least = limits.clock(int(share * steps * step / _SHARE_OF_TIME) + 1)
            raise UsageError(
                f"{steps} steps of {layout.text()} are predicted to take {steps * step:.0f} s, and --time leaves "
                f"{plan.seconds} s to each of {share} grids; wanted more than {least}, or fewer --steps or --top"
            )


def _check(plan: flags.Plan, wish: Allocation) -> None:
    if wish.compare and wish.mode != "one":
        raise UsageError(
            f"--compare compares the grids of one job, but --mode {wish.mode} gives each its own; "
            "wanted --mode one, or no --compare: join the files of results afterwards for perfmodel compare"
        )
    machine = plan.job.machine
    scheduler = machine.scheduler
    _check_account(machine, scheduler, wish.account)
    if scheduler.tasks_per_node != machine.node_devices:
        raise PerfmodelError(
            f"{machine.name} starts {scheduler.tasks_per_node} task per node of {machine.node_devices} devices; "
            f"wanted tasks_per_node {machine.node_devices} in its profile: jobs start one rank per device"
        )
    _check_container(machine, scheduler, wish.container)
    if wish.compare and plan.launcher != "perfmodel":
        raise UsageError(f"--compare reads what perfmodel run measures, not what {plan.launcher} prints")
    for text, what in ((wish.results, "--results"), (plan.model, "--model"), (plan.machine, "--machine")):
        quoting.one_line(text or "-", what)
    for word in (*plan.program, *plan.arguments):
        quoting.one_line(word or "-", "--program or --arguments")
    if "/" in wish.name or len(wish.name) > _LONGEST_NAME:
        raise UsageError(
            f"--name {wish.name[:_LONGEST_NAME]!r}: wanted at most {_LONGEST_NAME} characters without /, for file names"
        )
    if wish.results and (wish.results.endswith("/") or not PurePath(wish.results).name):
        raise UsageError(f"--results {wish.results!r}: wanted the name of a file")


def _check_account(machine: Machine, scheduler: Scheduler, account: str) -> None:
    note = f" ({scheduler.account_note})" if scheduler.account_note else ""
    if scheduler.account == "required" and not account:
        source = allocation.cited(machine, scheduler.source)
        raise UsageError(f"jobs on {machine.name} need an account: give --account{note}; {source}")
    if scheduler.account == "none" and account:
        raise UsageError(f"jobs on {machine.name} have no accounts; leave --account out")


def _check_container(machine: Machine, scheduler: Scheduler, image: str) -> None:
    if not image:
        return
    quoting.one_line(image, "--container")
    if image.startswith("-"):
        raise UsageError(f"--container {image!r}: a leading dash makes an option of the program that runs it")
    if not scheduler.container:
        raise UsageError(
            f"the profile of {machine.name} does not say what runs a container: give scheduler.container in a "
            "profile of your own (perfmodel machines new)"
        )


def _title(job: Job, gpus: int) -> str:
    batch = f"{job.batch} sequences of {job.sequence} tokens per step"
    return f"{job.model.name} on {job.machine.name}: {gpus} devices ({job.machine.device.name}), {batch}."


def _name(model: str) -> str:
    """A model's name in a form that schedulers accept."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", model).strip("-._") or "perfmodel"
