"""The device of a rank, and the parts of torch that depend on it: backend, number format, waiting, memory."""

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
    """Where a rank computes, and the backend with which it communicates."""

    device: torch.device
    backend: Backend
    dtype: Dtype

    @classmethod
    def of(cls, seat: Seat, backend: Backend, dtype: Dtype) -> "Device":
        """Unless the caller chooses: nccl (RCCL on AMD GPUs) and bf16 on a GPU, gloo and fp32 on a processor."""
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
        """The number format of matrix products."""
        return DTYPES[self.dtype]

    def wait(self) -> None:
        """Wait until the device has finished everything that was started on it."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)

    def start_peak(self) -> None:
        """Reset the peak of device memory; the peak of a process on a processor cannot be reset."""
        if self.device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(self.device)

    def peak(self) -> tuple[int, int]:
        """Peak bytes allocated to tensors and peak bytes reserved; on a processor, the peak resident set for both."""
        if self.device.type == "cuda":
            return torch.cuda.max_memory_allocated(self.device), torch.cuda.max_memory_reserved(self.device)
        resident = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else KIBI)
        return resident, resident

    def name(self) -> str:
        """The name that the hardware reports."""
        if self.device.type == "cuda":
            return torch.cuda.get_device_name(self.device)
        return f"{_processor()}, {torch.get_num_threads()} of {os.cpu_count()} processors per rank"


def _index(seat: Seat) -> int:
    """This rank's GPU: that of its local rank, or the only visible one if the launcher gives each rank its own."""
    seen = torch.cuda.device_count()
    if seat.local_rank < seen:
        return seat.local_rank
    if seen == 1 and seat.own_devices:
        return 0
    raise PerfmodelError(
        f"{seat.local_world} ranks on a host where torch sees {seen} GPUs, but nccl needs one per rank; "
        "--backend gloo runs on processors"
    )


def _processor() -> str:
    """The name of the processor, if the system reports it."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:  # noqa: PTH123 - a file of the system
            names = [line.partition(":")[2].strip() for line in file if line.startswith("model name")]
    except OSError:
        names = []
    return names[0] if names else platform.processor() or platform.machine()
