"""The options of `perfmodel job`, and what they ask for."""

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from perfmodel.errors import UsageError
from perfmodel.parallel.axes import FORM
from perfmodel_cli.options.groups import DeviceCount, StepCounts
from perfmodel_cli.options.question import Question

if TYPE_CHECKING:
    from perfmodel import search
    from perfmodel.jobscripts.build import Allocation
    from perfmodel.jobscripts.flags import Plan
    from perfmodel.machines.machine import Machine
    from perfmodel.parallel.layout import Layout


class LauncherChoice(StrEnum):
    """The program that trains."""

    perfmodel = "perfmodel"
    axonn_nanogpt = "axonn-nanogpt"
    megatron_axonn = "megatron-axonn"
    litgpt_axonn = "litgpt-axonn"
    torchtitan = "torchtitan"
    megatron_lm = "megatron-lm"
    deepspeed = "deepspeed"


class ModeChoice(StrEnum):
    """How several grids are distributed over jobs."""

    one = "one"
    array = "array"
    many = "many"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobQuestion(Question):
    """What runs, where, how much of it and for how long."""

    time: Annotated[str, typer.Option("--time", help="Time limit as [days-]hours:minutes:seconds.")]
    count: DeviceCount
    grid: Annotated[str, typer.Option("--grid", help=f"{FORM} [default: the fastest].")] = ""
    top: Annotated[int | None, typer.Option("--top", min=1, help="Number of fastest grids, instead of --grid.")] = None
    account: Annotated[str, typer.Option("--account", help="Account to charge.")] = ""
    qos: Annotated[
        str, typer.Option("--qos", help="QOS, partition or queue [default: the profile's first that admits the job].")
    ] = ""
    name: Annotated[str, typer.Option("--name", help="Name of the job and its files [default: the model's].")] = ""
    launcher: Annotated[LauncherChoice, typer.Option("--launcher", help="Program that trains.")] = (
        LauncherChoice.perfmodel
    )
    program: Annotated[str, typer.Option("--program", help="The launcher's program, instead of its usual one.")] = ""
    arguments: Annotated[
        str, typer.Option("--arguments", help="Extra arguments of the program, quoted as in a shell.")
    ] = ""
    step_counts: StepCounts
    setup: Annotated[
        list[str] | None,
        typer.Option("--setup", help="A command before the ranks start, instead of the profile's modules; repeatable."),
    ] = None
    activate: Annotated[
        list[str] | None,
        typer.Option(
            "--activate", help="A command after the software is loaded, such as conda activate my; repeatable."
        ),
    ] = None
    container: Annotated[str, typer.Option("--container", help="Container image that ranks run in.")] = ""
    mode: Annotated[
        ModeChoice, typer.Option("--mode", help="Several grids: in one job, in an array of jobs, or in many jobs.")
    ] = ModeChoice.one
    results: Annotated[str, typer.Option("--results", help="File for the measurements [default: NAME.jsonl].")] = ""
    compare: Annotated[bool, typer.Option("--compare", help="End with predictions against measurements.")] = False

    def put(self, **limits: Any) -> "search.question.Question":
        """The question with the launcher's own traits, unless a framework is asked for."""
        from perfmodel.jobscripts.frameworks import FRAMEWORKS

        return replace(Question.put(self, **limits), framework=self.framework or FRAMEWORKS[self.launcher.value].traits)

    def layouts(self) -> "tuple[list[Layout], list[str]]":
        """The grids with their best settings, and which grids were left out."""
        from perfmodel.jobscripts import build
        from perfmodel.machines import profiles
        from perfmodel.machines.allocation import whole_nodes
        from perfmodel.parallel.layout import parse_grid

        if self.grid and self.top is not None:
            raise UsageError("give either --grid or --top")
        machine = profiles.load(self.machine)
        devices = self._devices(machine)
        whole_nodes(machine, devices)
        job, space = self.job(), self.space(devices, self.top or 1)
        if self.grid:
            return [build.chosen(job, space, self.launcher.value, parse_grid(self.grid))], []
        return build.fastest(job, space, self.launcher.value)

    def plan(self) -> "Plan":
        """What all grids have in common."""
        from perfmodel.jobscripts.flags import Plan
        from perfmodel.jobscripts.quoting import words

        return Plan(
            launcher=self.launcher.value,
            job=self.job(),
            model=self.model,
            machine=self.machine,
            steps=self.step_counts.steps,
            warmup=self.step_counts.warmup,
            program=words(self.program, "--program") if self.program else (),
            arguments=words(self.arguments, "--arguments") if self.arguments else (),
        )

    def allocation(self) -> "Allocation":
        """What is asked of the scheduler."""
        from perfmodel.jobscripts.build import Allocation

        return Allocation(
            time=self.time,
            account=self.account,
            qos=self.qos,
            name=self.name,
            setup=tuple(self.setup or ()),
            activate=tuple(self.activate or ()),
            container=self.container,
            mode=self.mode.value,
            results=self.results,
            compare=self.compare,
        )

    def _devices(self, machine: "Machine") -> int:
        """Devices: as asked for, or as many as the grid has."""
        from perfmodel.parallel.layout import parse_grid

        of_grid = int(parse_grid(self.grid).gpus) if self.grid else None
        if of_grid is not None and self.count == DeviceCount():
            return of_grid
        asked = self.count.of(machine)
        if of_grid not in (None, asked):
            raise UsageError(f"{asked} devices, but --grid {self.grid} has {of_grid}")
        return asked
