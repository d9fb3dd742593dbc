"""The device and its node, as far as the tools of the system describe them; a missing tool is not an error."""

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import torch

from perfmodel.errors import PerfmodelError
from perfmodel.launch.processes.devices import Device
from perfmodel.launch.processes.runner import processors
from perfmodel.units import KIBI, parse

_PATIENCE = 20.0  # seconds that a tool may run
_MEBI = float(KIBI**2)
_CGROUP = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
_NIC_RATES = "sys/class/infiniband/*/ports/*/rate"


def of_device(device: Device, ranks_here: int) -> dict[str, Any]:
    """Name, kind, memory, compute units and driver of this rank's device; a CPU process has its share of the host."""
    if device.device.type != "cuda":
        return {
            "device": device.name(),
            "device_kind": "CPU process",
            "device_memory_B": host_memory() / ranks_here,
            "compute_units": None,
            "driver": "",
            "resident_B": device.peak()[0],
        }
    properties = torch.cuda.get_device_properties(device.device)
    listed = _listed_by_nvidia(properties.name)
    return {
        "device": properties.name,
        "device_kind": "GPU",
        "device_memory_B": listed.get("memory") or float(properties.total_memory),
        "compute_units": properties.multi_processor_count,
        "driver": listed.get("driver") or _amd_driver(),
        "resident_B": None,
    }


def devices_here(backend: str) -> int:
    """The number of GPUs that torch sees, or of processors that this process may use."""
    return (0 if backend == "gloo" else torch.cuda.device_count()) or processors()


def of_node() -> dict[str, Any]:
    """Processor, physical cores, memory and network cards of this node."""
    return {"cpu_cores": cores(), "host_memory_B": host_memory(), "nic_bandwidths": network_cards()}


def _said(*command: str) -> str:
    """The output of a tool; empty if the tool is missing, fails, or hangs."""
    if shutil.which(command[0]) is None:
        return ""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE, check=False)  # noqa: S603 - fixed commands
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""


def _listed_by_nvidia(name: str) -> dict[str, Any]:
    """The memory that the driver reports for a device of this name, and the version of the driver."""
    said = _said("nvidia-smi", "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader,nounits")
    for line in said.splitlines():
        cells = [cell.strip() for cell in line.split(",")]
        if len(cells) == 3 and cells[0] == name and cells[1].isdigit():
            return {"memory": int(cells[1]) * _MEBI, "driver": f"NVIDIA {cells[2]}"}
    return {}


def _amd_driver() -> str:
    found = re.search(r"Driver version:\s*(\S+)", _said("rocm-smi", "--showdriverversion"))
    return f"AMD {found[1]}" if found else ""


def cores() -> int:
    """Physical cores of this node, from lscpu, from /proc/cpuinfo, or from the system's count of processors."""
    listed = {line for line in _said("lscpu", "-p=Core,Socket").splitlines() if line and not line.startswith("#")}
    if listed:
        return len(listed)
    blocks = _text("/proc/cpuinfo").split("\n\n")
    pairs = {tuple(re.findall(r"(?:physical id|core id)\s*:\s*(\d+)", block)) for block in blocks} - {()}
    return len(pairs) or os.cpu_count() or 1


def host_memory() -> float:
    """The memory of this node, or the limit of its container, in bytes."""
    return min(_meminfo("MemTotal"), *(_limit(file) for file in _CGROUP))


def free_memory(device: Device, ranks_here: int) -> float:
    """The memory that this rank may use now, in bytes; ranks on processors share the free memory."""
    if device.device.type == "cuda":
        return float(torch.cuda.mem_get_info(device.device)[0])
    return min(_meminfo("MemAvailable"), host_memory()) / ranks_here


def _meminfo(name: str) -> float:
    found = re.search(rf"^{name}:\s*(\d+) kB", _text("/proc/meminfo"), re.MULTILINE)
    if found:
        return float(found[1]) * KIBI
    try:
        return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (ValueError, OSError):
        raise PerfmodelError("this system does not say how much memory it has") from None


def _limit(file: str) -> float:
    """The limit of the container; without a limit the file says max, or a number larger than any host's memory."""
    text = _text(file).strip()
    return float(text) if text.isdigit() else float("inf")


def network_cards() -> list[float]:
    """Line rate of each network card that the system lists as InfiniBand, RoCE or the like, in bytes per second."""
    texts = [_text(str(file)) for file in sorted(Path("/").glob(_NIC_RATES))]
    found = [re.match(r"([\d.]+) Gb/sec", text) for text in texts]
    return [parse(f"{match[1]} Gbit/s", "B/s") for match in found if match]


def _text(file: str) -> str:
    try:
        return Path(file).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
