"""A commented profile to edit, filled with the figures of another machine."""

import dataclasses
import textwrap
import types
import typing
from collections.abc import Mapping
from typing import Any

import yaml

from perfmodel import schema
from perfmodel.machines.machine import Machine
from perfmodel.machines.profile_text import WIDTH, quoted
from perfmodel.machines.profiles import _MOST_BASES, _with_bases, find, load
from perfmodel.sources import Figure

_WORDS = {str: "text", int: "whole number", float: "number", bool: "true or false"}

HELP: Mapping[str, str] = {
    "Machine.format": "version of this format",
    "Machine.name": "short name, which is the file's name without .yaml",
    "Machine.title": "one line for people: machine, centre, and which of its nodes",
    "Machine.sources": "where the figures come from; a figure names one of these keys in brackets",
    "Machine.device": "what the scheduler and torch count as one GPU",
    "Machine.node": "a node of the scheduler",
    "Machine.fabric": "links between the devices of a node, one direction",
    "Machine.network": "links between nodes, one direction",
    "Machine.scheduler": "what a job script must say",
    "Machine.bandwidth": "measured bandwidths of groups; those not given are derived from fabric and network",
    "Machine.collectives": "measured times of collectives, which full fidelity uses instead of its formula",
    "Machine.base": "another profile that this one changes in part; mappings are merged key by key, lists are replaced",
    "Machine.notes": "what a user of the figures should know",
    "Source.kind": "vendor (or a centre's pages), measured, paper, or assumed",
    "Source.address": "where it can be looked up; required unless assumed",
    "Source.date": "when it was read or measured, such as 2026-08-22; required unless assumed",
    "Source.note": "anything else worth knowing; for assumed: why it is believed",
    "Device.name": "the device's name",
    "Device.kind": "GPU, half of a card, tile ...",
    "Device.peak": "peak FLOP/s of one device from its data sheet, dense: never the doubled figure for 2:4 sparsity",
    "Device.memory": "bytes that the driver reports, before any framework takes its share",
    "Device.memory_bandwidth": "bandwidth of the device's own memory",
    "Device.gemm": "FLOP/s that large matrix products reach when measured",
    "Device.reserve": "memory that framework, libraries and allocator take; 1.5 GiB of a GPU if not given",
    "Device.communicator_buffer": "memory that each communicator holds; NCCL's 256 MiB if not given",
    "Device.host_time": "time that the framework takes to issue a kernel; 42 us if not given (`--host-time`)",
    "Device.contention": "time that overlapping computation and communication lose, as a share of the time that they "
    "overlap, at most 1; 0.115 if not given (`--contention`)",
    "Device.gemm_efficiency": "share of the peak that large matrix products reach, for number formats without a "
    "measurement",
    "Device.gemm_sustained": "share of `gemm` that the slowest of a hundred devices sustains; 0.93 if not given",
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
    "DtypeRates.tf32": "single precision through the matrix units, with shortened factors",
    "DtypeRates.bf16": "bfloat16, accumulated in single precision",
    "DtypeRates.fp16": "half precision, accumulated in single precision",
    "DtypeRates.fp8": "eight bits",
    "Node.devices": "devices per node",
    "Node.cpu_cores": "physical cores per node",
    "Node.host_memory": "memory of the node's CPUs",
    "Fabric.topology": "mesh (a separate link for every pair), switch (a pair gets the full bandwidth of a device), "
    "shared (all traffic passes one host or bus), irregular (the slowest link counts), none (one device per node)",
    "Fabric.pair_bandwidth": "between two devices while no others communicate; on an irregular fabric, the slowest "
    "pair",
    "Fabric.device_bandwidth": "all links of one device together",
    "Fabric.efficiency": "share of the links' rate that collectives reach",
    "Fabric.latency": "time of one hop of a ring between devices for small messages (NCCL's LL protocol)",
    "Fabric.domain": "devices that the fabric connects, if that is more than a node (the paper's G_node)",
    "Fabric.reduction_bandwidth": "bus bandwidth of an all-reduce whose sums the switch computes (NVLS), if it can",
    "Fabric.description": "one line for people",
    "Fabric.slower_than_network": "the reason, if a device's share of the network exceeds its links inside the node",
    "Network.topology": "how nodes are connected; none if there is only one node",
    "Network.nics": "network cards (ports) per node",
    "Network.nic_bandwidth": "line rate of one network card (port)",
    "Network.injection": "bandwidth with which a whole node can send",
    "Network.efficiency": "share of the injection bandwidth that collectives reach",
    "Network.latency": "time of one hop of a ring between nodes for small messages (NCCL's LL protocol)",
    "Network.bulk_latency": "the same for large messages (NCCL's Simple protocol); 14/2.7 times `latency` if not given",
    "Network.ring_latency": "the same for large messages in a ring, if that takes longer than in a tree",
    "Network.far_latency": "the same for small messages of groups that span more nodes than group_nodes",
    "Network.far_eager": "largest message of such groups that does not wait for its receiver, where their LL protocol "
    "ends",
    "Network.startup": "start-up time of a call between nodes, in addition to that of the library itself",
    "Network.nodes": "nodes of this kind in the machine",
    "Network.group_nodes": "nodes of a dragonfly group, a cell, an island or a scalable unit",
    "Network.taper": "injection bandwidth of such a group divided by its bandwidth to other groups; 1 means no loss",
    "Network.description": "one line for people",
    "BandwidthDatabase.inside": "bandwidth of a group inside a node while all such groups of the node communicate",
    "BandwidthDatabase.between": "bandwidth out of a node or a larger fabric domain: the paper's beta_inter",
    "GroupBandwidth.inner": "product of the grid dimensions placed inside this one, which is the stride of the group",
    "GroupBandwidth.size": "devices in the group",
    "GroupBandwidth.bandwidth": "bus bandwidth of large messages in the group",
    "Timings.operation": "the measured collective",
    "Timings.ranks": "members of the group in each node (or fabric domain, if that is larger)",
    "Timings.source": "key of the source of these times",
    "Timings.sizes": "bytes of one rank's buffer after an all-gather or before a reduction, ascending",
    "Timings.rows": "the times, one row for each number of nodes, ascending",
    "Timings.inner": "stride, as in the bandwidth database; all such groups of the nodes communicate at once; 1 if "
    "not given",
    "TimingRow.nodes": "nodes that the group spans",
    "TimingRow.times": "seconds of one call, one value for each size",
    "Scheduler.kind": "which scheduler",
    "Scheduler.source": "key of the source of this block",
    "Scheduler.account": "whether jobs must name an account",
    "Scheduler.account_note": "what an account looks like",
    "Scheduler.partition": "partition that jobs name",
    "Scheduler.constraint": "constraint that jobs name",
    "Scheduler.qos": "QOS, partitions or queues to which jobs can be submitted, and their limits",
    "Scheduler.directives": "further options of the job",
    "Scheduler.launch": "command that starts the ranks, with options that have no field here",
    "Scheduler.tasks_per_node": "ranks per node: one per device, or one where a launcher starts the rest",
    "Scheduler.cores_per_task": "cores per rank (or hardware threads, if the scheduler counts those)",
    "Scheduler.cpu_binding": "how ranks are bound to cores, as an option of the launcher",
    "Scheduler.gpu_binding": "how ranks are bound to GPUs, as an option of the launcher",
    "Scheduler.visible_devices": "value of each rank's list of visible devices; if empty, the list is not set",
    "Scheduler.master_address": "rank 0's address: hostname or hostname-i of the node that runs the batch script, "
    "first-host of the job (any text after it is appended to the name), localhost",
    "Scheduler.module_paths": "folders that `module use` adds first",
    "Scheduler.modules": "environment modules to load, in this order",
    "Scheduler.setup": "commands after the modules, each a program and its arguments",
    "Scheduler.container": "what runs a container image: shifter, singularity, pyxis (srun --container-image), "
    "environment (srun --environment)",
    "Scheduler.environment": "variables that jobs set",
    "Qos.name": "its name",
    "Qos.source": "key of the source of its limits",
    "Qos.kind": "what the name stands for; a bin cannot be chosen, it follows from the number of nodes",
    "Qos.max_nodes": "most nodes per job",
    "Qos.min_nodes": "fewest nodes per job",
    "Qos.max_time": "longest time, hours:minutes:seconds",
    "Qos.node_minutes": "largest product of nodes and minutes per job",
    "Qos.by_name": "used only when named explicitly: it is for tests, or its jobs may be ended early",
    "Qos.note": "any other limit",
    "EnvironmentVariable.name": "the variable",
    "EnvironmentVariable.value": "its value",
    "EnvironmentVariable.why": "what it is for",
    "EnvironmentVariable.one_node": "its value in a job of a single node, if that differs",
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
        "# A figure is a number with its unit, and the key of its source in brackets.",
        "# A line such as `# taper:` is a field that is not given.",
    ]
    fields = _block(Machine, yaml.MappingNode(root.tag, list(given.values())), "", {"Machine.base"})
    return "\n".join([*head, *fields]) + "\n"


def words(hint: Any) -> str:
    """A field's type in the words of this help, such as `figure in B/s`.

    >>> words(typing.get_type_hints(Machine, include_extras=True)["notes"])
    'list of text'
    """
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        return words(arguments[0])
    if allowed := schema.choices(hint):
        return f"one of {', '.join(allowed)}"
    if origin is typing.Annotated:
        kind = "figure" if arguments[0] is Figure else "numbers"
        return f"{kind} without a unit" if arguments[1] == "1" else f"{kind} in {arguments[1]}"
    if origin is tuple:
        return f"list of {words(arguments[0])}"
    if origin is Mapping:
        return f"keys, each with {words(arguments[1])}"
    return _WORDS.get(hint) or f"{hint.__name__} block"


def _block(kind: Any, node: yaml.Node, indent: str, told: set[str]) -> list[str]:
    """The lines of a record; a field is explained at its first occurrence, and later shown only if it is given."""
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
    """What a list of records that is not given could hold, as comments; explained once, like all fields."""
    kinds = [argument for argument in typing.get_args(hint) if dataclasses.is_dataclass(argument)]
    if typing.get_origin(hint) is not tuple or not kinds:
        return []
    lines = _block(kinds[0], yaml.MappingNode("", []), "    ", told)
    return [f"{indent}# {line}" for line in ("  -", *lines)] if lines else []


def _comment(text: str, indent: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent=f"{indent}# ", subsequent_indent=f"{indent}# ")


def _entry(key: str, hint: Any, node: yaml.Node, indent: str, told: set[str]) -> list[str]:
    """The lines of a key and its value, of any type."""
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
