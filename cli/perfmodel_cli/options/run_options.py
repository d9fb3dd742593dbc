"""The options of `perfmodel run`, and the list of runs that they ask for."""

from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from perfmodel.errors import UsageError
from perfmodel.parallel import option_values
from perfmodel.parallel.axes import FORM, Shape
from perfmodel.parallel.choices import AXONN_OVERLAPS, OVERLAPS, RECOMPUTES, WEIGHT_CACHES
from perfmodel_cli.options import shared
from perfmodel_cli.options.groups import StepCounts

if TYPE_CHECKING:
    from perfmodel.launch.processes.environment import Place
    from perfmodel.launch.processes.experiment import Experiment
    from perfmodel.parallel.job import Job, Workload
    from perfmodel.parallel.layout import Layout
    from perfmodel.search.search import Space


class DtypeChoice(StrEnum):
    """Formats of products."""

    auto = "auto"
    fp32 = "fp32"
    bf16 = "bf16"
    fp64 = "fp64"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunQuestion:
    """What is run: model, grids, batch, and how the step is carried out."""

    model: shared.ModelName
    grid: Annotated[str, typer.Option("--grid", help=f"{FORM}, such as {Shape(x=2, y=2, data=2).text()}.")] = ""
    grids: Annotated[
        str,
        typer.Option(
            "--grids", help="Several instead: a file with one grid per line, all, top:5 (predicted), sample:20 (drawn)."
        ),
    ] = ""
    nproc: Annotated[int | None, typer.Option("--nproc", min=1, help="Ranks [default: as many as the grid has].")] = (
        None
    )
    machine: Annotated[
        str, typer.Option("--machine", help="This machine, for top:N and MFU: a shipped one, or a profile.")
    ] = ""
    backend: shared.Backend = shared.BackendChoice.auto
    dtype: Annotated[DtypeChoice, typer.Option("--dtype", help="auto: bf16 on GPUs, fp32 on CPUs.")] = DtypeChoice.auto
    step_counts: StepCounts = field(default_factory=StepCounts)
    rounds: Annotated[
        int,
        typer.Option("--rounds", min=1, max=1000, help="Times to run every grid: all of them, then all again."),
    ] = 1
    batch: Annotated[
        int | None, typer.Option("--batch", help="Sequences per step, all ranks together [default: one per rank].")
    ] = None
    seq: shared.Sequence = None
    micro_batch: Annotated[
        str, typer.Option("--micro-batch", help="Sequences per rank at once; any: as predicted, else 1.")
    ] = "any"
    recompute: Annotated[
        shared.RecomputeChoice,
        typer.Option("--recompute", help="Activations recomputed; any: as predicted, else none."),
    ] = shared.RecomputeChoice.any
    weight_cache: Annotated[
        shared.CacheChoice,
        typer.Option("--weight-cache", help="How long a weight is kept gathered; any: as predicted, else none."),
    ] = shared.CacheChoice.any
    placement: shared.Placement = shared.PlacementChoice.axonn
    overlap: Annotated[
        str, typer.Option("--overlap", help=f"Overlap with computation: none, or some of {','.join(OVERLAPS)}.")
    ] = ",".join(sorted(AXONN_OVERLAPS))
    flash_attention: shared.Flash = True
    tune: Annotated[bool, typer.Option("--tune", help="Take each product in the mode that is fastest for it.")] = False
    scale_layers: Annotated[
        int | None, typer.Option("--scale-layers", min=1, help="Number of layers, instead of the model's.")
    ] = None
    scale_hidden: Annotated[str, typer.Option("--scale-hidden", help="Factor of all widths, such as 0.25 or 1/4.")] = ""
    tokens: Annotated[
        str,
        typer.Option(
            "--tokens",
            help="Tokens to train on: a .npy file, or numbers in .uint16 or .uint32 [default: drawn at random].",
        ),
    ] = ""
    load: Annotated[
        str, typer.Option("--load", help="Continue from the checkpoint in this folder, written by any grid.")
    ] = ""
    save: Annotated[str, typer.Option("--save", help="Write a checkpoint into this folder after the last step.")] = ""
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed for weights, tokens, and sample:N.")] = 0

    def experiments(self, place: "Place | None") -> "list[Experiment]":
        """The runs in order; every rank of a launch comes to the same list."""
        from perfmodel.launch.processes.environment import refuse_other_counts

        if bool(self.grid) == bool(self.grids):
            raise UsageError("give either --grid or --grids")
        if self.save and not self.grid:
            raise UsageError("--save takes the checkpoint of one run: give --grid, not --grids")
        if self.save and self.rounds > 1:
            raise UsageError(f"--save takes the checkpoint of one run, not of {self.rounds} rounds")
        layouts = self._layouts(place)
        refuse_other_counts([(one.text(), int(one.gpus)) for one in layouts], self.nproc, place)
        batch = self.batch if self.batch is not None else max(int(one.gpus) for one in layouts)
        found = [self._experiment(layout, batch) for layout in layouts]
        for one in found:
            one.refuse()
        return [replace(one, round=number) for number in range(1, self.rounds + 1) for one in found]

    def _layouts(self, place: "Place | None") -> "list[Layout]":
        from perfmodel.launch.processes import selection
        from perfmodel.parallel.layout import NAMED_PLACEMENTS, parse_grid

        kind, colon, _ = self.grids.partition(":")
        if self.grids == "all" or (kind in ("top", "sample") and colon):
            space = self._space(place, selection.number_of(self.grids, kind) if colon else 1)
            if kind == "top":
                return selection.fastest(self._job(space.gpus), space)
            work = self._workload(space.gpus)
            return selection.drawn(work, space, self.seed) if kind == "sample" else selection.every(work, space)
        named = [parse_grid(self.grid)] if self.grid else selection.of_file(Path(self.grids))
        chosen = {"placement": NAMED_PLACEMENTS[self.placement.value][0], **self._modes()}
        return [replace(layout, **chosen) for layout in named]

    def _modes(self) -> dict[str, int]:
        """What is not predicted: a micro-batch of one sequence, nothing recomputed or kept, unless asked for."""
        recompute = "none" if self.recompute.value == "any" else self.recompute.value
        cache = "none" if self.weight_cache.value == "any" else self.weight_cache.value
        return {
            "micro_batch": option_values.count_or_any(self.micro_batch, "--micro-batch") or 1,
            "recompute": RECOMPUTES.index(recompute),
            "weight_cache": WEIGHT_CACHES.index(cache),
        }

    def _space(self, place: "Place | None", top: int) -> "Space":
        from perfmodel.parallel.layout import NAMED_PLACEMENTS
        from perfmodel.search.search import Space

        ranks = place.world if place is not None else self.nproc
        if ranks is None:
            raise UsageError(f"--grids {self.grids} needs --nproc, the number of ranks")
        if self.grids.startswith("top:") and not self.machine:
            raise UsageError(f"--grids {self.grids} needs --machine, for which the fastest grids are predicted")
        return Space(
            gpus=ranks,
            placements=NAMED_PLACEMENTS[self.placement.value],
            micro_batch=option_values.count_or_any(self.micro_batch, "--micro-batch"),
            recompute=None if self.recompute.value == "any" else self.recompute.value,  # type: ignore[arg-type]
            weight_cache=None if self.weight_cache.value == "any" else self.weight_cache.value,  # type: ignore[arg-type]
            top=top,
        )

    def _job(self, gpus: int) -> "Job":
        """The workload on the machine that the fastest grids are predicted for."""
        from perfmodel.machines import profiles
        from perfmodel.parallel.job import Job

        return Job.of(machine=profiles.load(self.machine), **self._asked(gpus))

    def _workload(self, gpus: int) -> "Workload":
        from perfmodel.parallel.job import Workload

        return Workload.plain(**self._asked(gpus))

    def _asked(self, gpus: int) -> dict[str, Any]:
        """What is trained and how."""
        from perfmodel.launch.processes.experiment import model_of
        from perfmodel.parallel.settings import Settings

        overlap = option_values.overlaps(self.overlap, "--overlap")
        return {
            "model": model_of(self.model, self.scale_layers, self.scale_hidden),
            "batch": self.batch if self.batch is not None else gpus,
            "sequence": self.seq,
            "settings": Settings(flash_attention=self.flash_attention, overlap=overlap),
        }

    def _experiment(self, layout: "Layout", batch: int) -> "Experiment":
        from perfmodel.launch.processes.experiment import Experiment
        from perfmodel.parallel.layout import PLACEMENTS

        overlap = option_values.overlaps(self.overlap, "--overlap")
        return Experiment(
            model=self.model,
            **layout.sizes(),
            batch_sequences=batch,
            scale_layers=self.scale_layers,
            scale_hidden=self.scale_hidden,
            machine=self.machine,
            placement=",".join(PLACEMENTS[int(layout.placement)]),
            sequence_length=self._workload(batch).sequence,
            micro_batch=int(layout.micro_batch),
            recompute=RECOMPUTES[int(layout.recompute)],
            weight_cache=WEIGHT_CACHES[int(layout.weight_cache)],
            overlap="+".join(kind for kind in OVERLAPS if kind in overlap) or "none",
            attention="flash" if self.flash_attention else "materialized",
            dtype=self.dtype.value,
            backend=self.backend.value,
            tune=self.tune,
            seed=self.seed,
            tokens=self.tokens,
            load=self.load,
            save=self.save,
            steps=self.step_counts.steps,
            warmup=self.step_counts.warmup,
        )
