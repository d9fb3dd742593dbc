"""The content of a job script as a frozen record, from which the text follows."""

from dataclasses import dataclass

from perfmodel.machines.machine import Machine
from perfmodel.machines.scheduler import Qos

# The variable that lists the devices that a process may see, for each vendor.
VISIBLE_DEVICES = {"NVIDIA": "CUDA_VISIBLE_DEVICES", "AMD": "ROCR_VISIBLE_DEVICES", "Intel": "ZE_AFFINITY_MASK"}


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a script and its purpose; the comment goes above a directive, and after anything else."""

    text: str
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One grid: the command of each rank, and what it needs.

    `files` are written to the folder of the job first. `environment` lists the variables of this run with reasons; one
    without a value is unset. `seconds` is the time limit, or 0 if the run ends by itself.
    """

    grid: str
    title: str
    command: tuple[str, ...]
    files: tuple[tuple[str, str], ...] = ()
    environment: tuple[tuple[str, str | None, str], ...] = ()
    seconds: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A job: machine, size, time limit, and runs with one rank per device. All is checked, nothing is quoted yet.

    `setup`, if given, replaces the modules of the profile; `activate` follows either. `finds_device`: the program of
    each rank finds its device even if it sees no other. `resumes`: a restarted run continues where it stopped.
    """

    machine: Machine
    gpus: int
    nodes: int
    time: int
    title: str
    name: str
    runs: tuple[Run, ...]
    way: Qos | None = None
    account: str = ""
    setup: tuple[tuple[str, ...], ...] = ()
    activate: tuple[tuple[str, ...], ...] = ()
    container: str = ""
    array: bool = False
    finds_device: bool = False
    resumes: bool = False
    closing: tuple[str, ...] = ()

    @property
    def tasks_per_node(self) -> int:
        """Ranks per node: one per device."""
        return min(self.gpus, self.machine.node_devices)

    @property
    def visible_devices(self) -> str:
        """The variable of this vendor; empty if there is none."""
        return VISIBLE_DEVICES.get(vendor(self.machine), "")


def one_device_each(machine: Machine) -> bool:
    """Whether each rank sees only one device, which then has the number 0."""
    scheduler = machine.scheduler
    bound = scheduler.gpu_binding not in ("", "none")
    launched = any(word in ("--gpus-per-task=1", "-g1") for word in scheduler.launch.split())
    return "$" in scheduler.visible_devices or bound or launched


def vendor(machine: Machine) -> str:
    """The vendor of the devices."""
    return machine.device.name.split()[0]
