"""The device of a rank, and what of torch depends on it: backend, number format, waiting, memory."""

import os
import platform
import resource
import sys
from dataclasses import dataclass

import torch

from perfmodel.errors import PerfmodelError
from perfmodel.launch.processes.experiment import AUTO, USUAL_DTYPES, Backend, Dtype, Seat
from perfmodel.units import KIBI

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp64": torch.float64}


@dataclass(frozen=True, slots=True)
class Device:
    """Where a rank computes, and how it talks to the others."""

    device: torch.device
    backend: Backend
    dtype: Dtype

    @classmethod
    def of(cls, seat: Seat, backend: Backend, dtype: Dtype) -> "Device":
        """On a GPU nccl (which is RCCL on AMD's) and bf16, on a processor gloo and fp32, unless told otherwise."""
        if backend == AUTO:
            backend = "nccl" if torch.cuda.is_available() else "gloo"
        if dtype == AUTO:
            dtype = USUAL_DTYPES[backend]
        if backend == "gloo":
            if seat.threads is not None:
                torch.set_num_threads(seat.threads)
            return cls(torch.device("cpu"), backend, dtype)
        device = torch.device("cuda", _index(seat))
        torch.cuda.set_device(device)
        return cls(device, backend, dtype)

    @property
    def torch_dtype(self) -> torch.dtype:
        """The format of products."""
        return DTYPES[self.dtype]

    def wait(self) -> None:
        """Until everything that was asked of the device is done."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)

    def start_peak(self) -> None:
        """Forget the peak of memory so far; that of a process cannot be forgotten."""
        if self.device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(self.device)

    def peak(self) -> tuple[int, int]:
        """Bytes in tensors, and bytes taken from the device, at the peak; of a process its resident set for both."""
        if self.device.type == "cuda":
            return torch.cuda.max_memory_allocated(self.device), torch.cuda.max_memory_reserved(self.device)
        resident = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else KIBI)
        return resident, resident

    def name(self) -> str:
        """What the hardware calls itself."""
        if self.device.type == "cuda":
            return torch.cuda.get_device_name(self.device)
        return f"{_processor()}, {torch.get_num_threads()} of {os.cpu_count()} processors a rank"


def _index(seat: Seat) -> int:
    """This rank's GPU: of its local rank, or the only one where the launcher shows each rank one of its own."""
    seen = torch.cuda.device_count()
    if seat.local_rank < seen:
        return seat.local_rank
    if seen == 1 and seat.own_devices:
        return 0
    raise PerfmodelError(
        f"{seat.local_world} ranks on a host where torch sees {seen} GPUs, and nccl wants one for each rank; "
        "--backend gloo runs on processors"
    )


def _processor() -> str:
    """The name of the processor, where the system tells it."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:  # noqa: PTH123 - a file of the system's
            names = [line.partition(":")[2].strip() for line in file if line.startswith("model name")]
    except OSError:
        names = []
    return names[0] if names else platform.processor() or platform.machine()
