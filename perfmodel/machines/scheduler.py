"""What a job script needs to know about a machine: queues and their limits, launcher, binding, environment."""

import re
from dataclasses import dataclass
from typing import Annotated, Literal

from perfmodel.errors import PerfmodelError
from perfmodel.machines.scheduler_kinds import SCHEDULERS

_TIME_LIMIT = re.compile(r"[0-9]{1,3}:[0-5][0-9]:[0-5][0-9]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Qos:
    """A QOS, partition or queue of the machine, and its limits (empty = no limit known).

    `kind` says what `name` is; a bin cannot be chosen but follows from the number of nodes. `node_minutes`: nodes times
    minutes of a job. `by_name`: for tests, or for jobs that may be ended early, so used only on request.
    """

    name: str
    source: str
    kind: Literal["qos", "partition", "queue", "bin"] = "qos"
    max_nodes: int | None = None
    min_nodes: int | None = None
    max_time: str = ""
    node_minutes: int | None = None
    by_name: bool = False
    note: str = ""

    def __post_init__(self) -> None:
        """Refuse limits that no job can meet."""
        if self.max_time and not _TIME_LIMIT.fullmatch(self.max_time):
            raise PerfmodelError(f"max_time {self.max_time!r} is not hours:minutes:seconds, for example 48:00:00")
        least, most = self.min_nodes or 1, self.max_nodes
        if least < 1 or (most is not None and most < least):
            raise PerfmodelError(f"{self.name} allows {least} to {most} nodes, which nobody can ask for")
        if self.node_minutes is not None and self.node_minutes < 1:
            raise PerfmodelError(f"{self.name} allows {self.node_minutes} node-minutes, wanted 1 or more")


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentVariable:
    """A variable that a job on this machine sets, and why."""

    name: str
    value: str
    why: str
    source: str
    one_node: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheduler:
    """What a job script needs to know."""

    kind: Annotated[str, SCHEDULERS]
    source: str
    account: Literal["required", "optional", "none"] = "optional"
    account_note: str = ""
    partition: str = ""
    constraint: str = ""
    qos: tuple[Qos, ...] = ()
    directives: tuple[str, ...] = ()
    launch: str = ""
    tasks_per_node: int = 1
    cores_per_task: int = 1
    cpu_binding: str = ""
    gpu_binding: str = ""
    visible_devices: str = ""
    master_address: str = ""
    module_paths: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    setup: tuple[str, ...] = ()
    container: Literal["", "shifter", "singularity", "pyxis", "environment"] = ""
    environment: tuple[EnvironmentVariable, ...] = ()

    def __post_init__(self) -> None:
        """Counts are counts, and a variable is set once."""
        if self.tasks_per_node < 1 or self.cores_per_task < 1:
            raise PerfmodelError(
                f"{self.tasks_per_node} tasks a node of {self.cores_per_task} cores, wanted 1 or more of each"
            )
        names = [variable.name for variable in self.environment]
        doubled = sorted({name for name in names if names.count(name) > 1})
        if doubled:
            raise PerfmodelError(f"the environment sets {doubled[0]} twice")
