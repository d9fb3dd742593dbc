"""A commented profile to edit, filled with the figures of another machine."""

import dataclasses
import textwrap
import types
import typing
from collections.abc import Mapping
from typing import Any, Literal

import yaml

from perfmodel import schema
from perfmodel.machines.machine import Machine
from perfmodel.machines.profile_text import WIDTH, quoted
from perfmodel.machines.profiles import _MOST_BASES, _with_bases, find, load
from perfmodel.sources import Figure

_WORDS = {str: "text", int: "whole number", float: "number", bool: "true or false"}

HELP: Mapping[str, str] = {
    "Machine.format": "version of this format",
    "Machine.name": "short name, the same as the file's without .yaml",
    "Machine.title": "a line for people: machine, centre, which of its nodes",
    "Machine.sources": "where the figures come from; a figure names one of these keys in brackets",
    "Machine.device": "what the scheduler and torch count as one GPU",
    "Machine.node": "a node of the scheduler",
    "Machine.fabric": "links between the devices of a node, one direction",
    "Machine.network": "links between nodes, one direction",
    "Machine.scheduler": "what a job script must say",
    "Machine.bandwidth": "measured bandwidths of groups; what is not here is derived from fabric and network",
    "Machine.collectives": "measured times of collectives, which full fidelity takes in place of its formula",
    "Machine.base": "another profile that this one changes in part; mappings are merged key by key, lists replaced",
    "Machine.notes": "what a user of the figures should know",
    "Source.kind": "vendor (also a centre's pages), measured, paper, or assumed",
    "Source.address": "where it can be looked up; needed unless assumed",
    "Source.date": "when it was read or measured, such as 2026-08-22; needed unless assumed",
    "Source.note": "what else there is to know; for assumed: why it is believed",
    "Device.name": "the device's name",
    "Device.kind": "GPU, half of a card, tile ...",
    "Device.peak": "FLOP/s of one device on paper, dense: never the doubled figure for 2:4 sparsity",
    "Device.memory": "bytes that the driver offers, before any framework takes its part",
    "Device.memory_bandwidth": "bandwidth of the device's own memory",
    "Device.gemm": "FLOP/s that large matrix products were measured to reach",
    "Device.reserve": "memory that framework, libraries and allocator take, where it is not a GPU's 1.5 GiB",
    "Device.communicator_buffer": "memory that each communicator holds, where it is not NCCL's 256 MiB",
    "Device.host_time": "time that the framework takes to issue a kernel; 42 us if not given (`--host-time`)",
    "Device.contention": "seconds that computation and communication lose for each second side by side, at most 1; "
    "0.115 if not given (`--contention`)",
    "Device.gemm_efficiency": "share of the peak that they reach, for number formats without a measurement",
    "Device.gemm_sustained": "share of `gemm` that the slowest of a hundred devices keeps up; 0.93 if not given",
    "Device.memory_sustained": "share of `memory_bandwidth` that simple kernels reach; 0.85 if not given",
    "Device.compute_units": "units that each work on a tile of a matrix product (SM, CU); without them products are "
    "cut into no tiles, as on processors",
    "Device.attention": "FLOP/s of attention kernels; where none is given, the share of products that an A100 reaches",
    "Device.slow_layout": "how many times longer products take in the layout that the library handles worst",
    "AttentionRates.flash_1": "the first FlashAttention",
    "AttentionRates.flash_2": "FlashAttention-2, and kernels of its kind on other makers' devices",
    "AttentionRates.flash_3": "FlashAttention-3",
    "AttentionRates.cudnn": "cuDNN's fused attention",
    "AttentionRate.forward": "at long causal sequences with heads of 128, the causal half counted once",
    "AttentionRate.backward": "the same for the backward pass, as 2.5 times the work",
    "DtypeRates.fp32": "single precision",
    "DtypeRates.tf32": "single precision through the matrix units with shortened factors",
    "DtypeRates.bf16": "bfloat16, accumulated in single precision",
    "DtypeRates.fp16": "half precision, accumulated in single precision",
    "DtypeRates.fp8": "eight bits",
    "Node.devices": "devices a node",
    "Node.cpu_cores": "physical cores a node",
    "Node.host_memory": "memory of the node's CPUs",
    "Fabric.topology": "mesh (links of its own for every pair), switch (a pair gets all of a device's bandwidth), "
    "shared (all go through one host or bus), irregular (the slowest link counts), none (one device a node)",
    "Fabric.pair_bandwidth": "between two devices that talk alone; on an irregular fabric, the slowest pair",
    "Fabric.device_bandwidth": "all links of one device together",
    "Fabric.efficiency": "share of the links' rate that collectives reach",
    "Fabric.latency": "time of one hop of a ring between devices, small messages (NCCL's LL protocol)",
    "Fabric.domain": "devices that the fabric joins, where that is more than a node (the paper's G_node)",
    "Fabric.reduction_bandwidth": "bus bandwidth of an all-reduce that the switch itself adds up (NVLS), where it can",
    "Fabric.description": "a line for people",
    "Fabric.slower_than_network": "why, where a device's share of the network is above its links inside the node",
    "Network.topology": "how nodes are joined; none is a single node",
    "Network.nics": "network cards (ports) a node",
    "Network.nic_bandwidth": "line rate of one of them",
    "Network.injection": "what a whole node can send",
    "Network.efficiency": "share of the injection that collectives reach",
    "Network.latency": "time of one hop of a ring between nodes, small messages (NCCL's LL protocol)",
    "Network.bulk_latency": "the same for large messages (NCCL's Simple protocol); 14/2.7 times as long if not given",
    "Network.ring_latency": "the same for large messages round a ring, where that takes longer than up a tree",
    "Network.far_latency": "the same for small messages of groups that span more nodes than group_nodes",
    "Network.far_eager": "largest message of such groups that does not wait for its receiver: LL's limit there",
    "Network.startup": "what a call that leaves the node pays once, beyond the library's own start",
    "Network.nodes": "nodes of this kind in the machine",
    "Network.group_nodes": "nodes of a dragonfly group, a cell, an island or a scalable unit",
    "Network.taper": "injection of such a group over its bandwidth to the others: 1 is no loss",
    "Network.description": "a line for people",
    "BandwidthDatabase.inside": "bandwidth of a group inside a node while all such groups of the node talk at once",
    "BandwidthDatabase.between": "bandwidth out of a node, or of a larger fabric domain: the paper's beta_inter",
    "GroupBandwidth.inner": "product of the grid dimensions placed inside this one, so the stride of the group",
    "GroupBandwidth.size": "devices in the group",
    "GroupBandwidth.bandwidth": "bus bandwidth of its large messages",
    "Timings.operation": "what was called",
    "Timings.ranks": "members of the group in each node (fabric domain, where that is larger)",
    "Timings.source": "key of the source of these times",
    "Timings.sizes": "bytes that an all-gather ends with, or a reduction begins with, ascending",
    "Timings.rows": "the times, a row for each number of nodes, ascending",
    "Timings.inner": "stride as in the bandwidth database; all such groups of the nodes talk at once; 1 if not given",
    "TimingRow.nodes": "nodes that the group spans",
    "TimingRow.times": "seconds of one call, one for each size",
    "Scheduler.kind": "which scheduler",
    "Scheduler.source": "key of the source of this block",
    "Scheduler.account": "whether jobs name an account",
    "Scheduler.account_note": "what an account looks like",
    "Scheduler.partition": "partition that jobs name",
    "Scheduler.constraint": "constraint that jobs name",
    "Scheduler.qos": "ways into the machine and their limits",
    "Scheduler.directives": "further options of the job",
    "Scheduler.launch": "command that starts the ranks, with options that have no field here",
    "Scheduler.tasks_per_node": "ranks a node: one a device, or one where a launcher starts the rest",
    "Scheduler.cores_per_task": "cores (or hardware threads, as the scheduler counts) for each",
    "Scheduler.cpu_binding": "how ranks are bound to cores, in the launcher's words",
    "Scheduler.gpu_binding": "how ranks are bound to GPUs, in the launcher's words",
    "Scheduler.visible_devices": "what each rank's list of visible devices is set to; empty leaves it alone",
    "Scheduler.master_address": "rank 0's address: hostname or hostname-i of the batch script's node, first-host of "
    "the job (what follows is added to its name), localhost",
    "Scheduler.module_paths": "folders that module use is told of first",
    "Scheduler.modules": "environment modules to load, in this order",
    "Scheduler.setup": "commands after them, each one a program and its arguments",
    "Scheduler.container": "what runs a container image: shifter, singularity, pyxis (srun --container-image), "
    "environment (srun --environment)",
    "Scheduler.environment": "variables that jobs set",
    "Qos.name": "its name",
    "Qos.source": "key of the source of its limits",
    "Qos.kind": "what the name is; a bin is no choice, it follows from the number of nodes",
    "Qos.max_nodes": "most nodes a job",
    "Qos.min_nodes": "fewest nodes a job",
    "Qos.max_time": "longest time, hours:minutes:seconds",
    "Qos.node_minutes": "most nodes times minutes of a job",
    "Qos.by_name": "taken only when asked for by its name: for tests, or where jobs may be ended early",
    "Qos.note": "what else limits it",
    "EnvironmentVariable.name": "the variable",
    "EnvironmentVariable.value": "its value",
    "EnvironmentVariable.why": "what it is for",
    "EnvironmentVariable.one_node": "its value in a job of a single node, where that differs",
    "EnvironmentVariable.source": "key of the source that recommends it",
}
"""What each field of a profile means, by class and field: the comments of a template and the table of the docs."""


def template(name: str, new_name: str) -> str:
    """YAML text of the profile `name` under `new_name`: bases written out, each block and field explained.

    >>> print(template("vista", "ours").splitlines()[6])
    name: ours
    """
    original = load(name)
    dataclasses.replace(original, name=new_name)  # refuses a bad name
    root = _with_bases(find(name), _MOST_BASES)
    given = {key.value: (key, value) for key, value in root.value if key.value != "base"}
    given["name"] = (given["name"][0], _scalar_node(new_name))
    head = [
        f"# A machine profile for perfmodel, made from {original.name}: change what differs, then check the file.",
        "# A figure is a number, its unit and, in brackets, the key of one of the sources.",
        "# A line such as `# taper:` is a field that is not given.",
    ]
    fields = _block(Machine, yaml.MappingNode(root.tag, list(given.values())), "", {"Machine.base"})
    return "\n".join([*head, *fields]) + "\n"


def words(hint: Any) -> str:
    """A field's type in a profile writer's words, such as `figure in B/s`.

    >>> words(typing.get_type_hints(Machine, include_extras=True)["notes"])
    'list of text'
    """
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        return words(arguments[0])
    if origin is typing.Annotated:
        kind = "figure" if arguments[0] is Figure else "numbers"
        return f"{kind} without a unit" if arguments[1] == "1" else f"{kind} in {arguments[1]}"
    if origin is Literal:
        return f"one of {', '.join(arguments)}"
    if origin is tuple:
        return f"list of {words(arguments[0])}"
    if origin is Mapping:
        return f"keys, each with {words(arguments[1])}"
    return _WORDS.get(hint) or f"{hint.__name__} block"


def _block(kind: Any, node: yaml.Node, indent: str, told: set[str]) -> list[str]:
    """The lines of a record; a field is explained where it first comes up, later only shown where it is given."""
    given = {key.value: value for key, value in node.value}
    hints = typing.get_type_hints(kind, include_extras=True)
    lines = []
    for name in (field.name for field in dataclasses.fields(kind)):
        where, value = f"{kind.__name__}.{name}", given.get(name)
        new = where not in told
        if new:
            told.add(where)
            lines += _comment(f"{HELP[where]} ({words(hints[name])})", indent)
        if value is not None and not schema.is_null(value, hints[name]):
            lines += _entry(name, hints[name], value, indent, told)
        elif new:
            lines += [f"{indent}# {name}:", *_absent(hints[name], indent, told)]
    return lines


def _absent(hint: Any, indent: str, told: set[str]) -> list[str]:
    """What a list of records that is not given could hold, as comments; told once, as all else."""
    kinds = [argument for argument in typing.get_args(hint) if dataclasses.is_dataclass(argument)]
    if typing.get_origin(hint) is not tuple or not kinds:
        return []
    lines = _block(kinds[0], yaml.MappingNode("", []), "    ", told)
    return [f"{indent}# {line}" for line in ("  -", *lines)] if lines else []


def _comment(text: str, indent: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent=f"{indent}# ", subsequent_indent=f"{indent}# ")


def _entry(key: str, hint: Any, node: yaml.Node, indent: str, told: set[str]) -> list[str]:
    """The lines of a key and its value, whatever the value is."""
    here = f"{indent}{quoted(key)}:"
    if typing.get_origin(hint) in (types.UnionType, typing.Union):
        hint = typing.get_args(hint)[0]
    if isinstance(node, yaml.ScalarNode):
        return [f"{here} {quoted(node.value)}"]
    inner = [argument for argument in typing.get_args(hint) if argument is not str][:1]
    if isinstance(node, yaml.SequenceNode) and inner and typing.get_origin(inner[0]) is typing.Annotated:
        return textwrap.wrap(
            f"{here} [{', '.join(quoted(item.value) for item in node.value)}]", WIDTH, subsequent_indent=f"{indent}  "
        )
    if isinstance(node, yaml.SequenceNode):
        lines = [line for item in node.value for line in _item(item, inner, f"{indent}  ", told)]
    elif inner:
        lines = [
            line for name, value in node.value for line in _entry(name.value, inner[0], value, f"{indent}  ", told)
        ]
    else:
        lines = _block(hint, node, f"{indent}  ", told)
    if all(line.lstrip().startswith("#") for line in lines):
        return [f"{here} {'[]' if isinstance(node, yaml.SequenceNode) else '{}'}"]
    return [here, *lines]


def _item(node: yaml.Node, kinds: list[Any], indent: str, told: set[str]) -> list[str]:
    if isinstance(node, yaml.ScalarNode):
        return [f"{indent}- {quoted(node.value)}"]
    return [f"{indent}-", *_block(kinds[0], node, f"{indent}  ", told)]


def _scalar_node(text: str) -> yaml.ScalarNode:
    return yaml.ScalarNode("tag:yaml.org,2002:str", text, style='"')
