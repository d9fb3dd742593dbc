"""Small machines and models made in code, for tests: round numbers, any node size, every figure assumed."""

import csv
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from perfmodel.machines.machine import (
    BandwidthDatabase,
    Device,
    DtypeRates,
    Fabric,
    GroupBandwidth,
    Machine,
    Network,
    Node,
    Scheduler,
)
from perfmodel.models.layers import Linear
from perfmodel.models.model import Block, Model, Transformer
from perfmodel.parallel.job import Job
from perfmodel.parallel.settings import Settings
from perfmodel.sources import Figure, Source
from perfmodel.units import GIBI

# A config.json of a small Llama, as Hugging Face writes it.
LLAMA = {
    "model_type": "llama",
    "hidden_size": 1024,
    "num_hidden_layers": 4,
    "num_attention_heads": 16,
    "vocab_size": 32000,
    "max_position_embeddings": 2048,
    "intermediate_size": 4096,
}

GOLDEN = Path(__file__).parents[1] / "golden"
ASSUMED = Source(kind="assumed", note="a round number for a test")


def figure(value):
    return Figure(float(value), "T", ASSUMED)


def machine(devices=4, *, domain=None, inside=None, between=100e9, memory=80e9, peak=100e12, gemm=80e12):
    """Nodes of `devices`; `inside` is {(inner, size): bandwidth}, the rest is derived, 300 GB/s by a switch."""
    joined = domain or devices
    switch = Fabric(
        topology="switch",
        pair_bandwidth=figure(300e9),
        device_bandwidth=figure(300e9),
        efficiency=figure(1),
        latency=figure(1e-6),
        domain=domain and figure(domain),
    )
    entries = tuple(GroupBandwidth(*key, figure(value)) for key, value in (inside or {}).items())
    return Machine(
        format=1,
        name=f"{devices}-devices-{joined}-joined",
        title="made for a test",
        sources={"T": ASSUMED},
        device=Device(
            name="round",
            kind="GPU",
            peak=DtypeRates(bf16=figure(peak)),
            memory=figure(memory),
            memory_bandwidth=figure(2e12),
            gemm=DtypeRates(bf16=figure(gemm)),
        ),
        node=Node(figure(devices), figure(16 * devices), figure(512e9)),
        fabric=switch if joined > 1 else Fabric(topology="none"),
        network=Network(
            topology="fat-tree",
            nics=figure(devices),
            nic_bandwidth=figure(100e9),
            injection=figure(100e9 * devices),
            efficiency=figure(0.5),
            latency=figure(5e-6),
        ),
        scheduler=Scheduler(kind="none", source="T", tasks_per_node=devices),
        bandwidth=BandwidthDatabase(entries, between and figure(between)),
    )


# Nodes as people have them: one device, odd counts, Summit's six, Frontier's eight, twelve tiles, a rack of 72.
EVERY_SHAPE = (*(machine(devices) for devices in (1, 3, 4, 6, 8, 12)), machine(4, domain=72))

# The tables of the authors' Gordon Bell script (Megatron-AxoNN 885d2e7, examples/comm_model.py), whose GB are GiB.
SCRIPT_INSIDE: Mapping[str, dict[tuple[int, int], float]] = {
    "perlmutter": {(1, 2): 76, (1, 4): 225, (2, 2): 76},
    "frontier": {(1, 2): 129, (1, 4): 52, (1, 8): 135, (2, 2): 50, (2, 4): 72, (4, 2): 36},
}
SCRIPT_DEVICES = {"perlmutter": 4, "frontier": 8}
SCRIPT_BETWEEN = {"perlmutter": 80, "frontier": 40}


def script_machine(name, *, between=None):
    """A machine that holds the script's table; `between` (GiB/s) replaces the bandwidth between nodes."""
    inside = {key: value * GIBI for key, value in SCRIPT_INSIDE[name].items()}
    return machine(SCRIPT_DEVICES[name], inside=inside, between=(between or SCRIPT_BETWEEN[name]) * GIBI)


def linears(*layers, repeat=1, sequence=2048, checkpointed=True):
    """A model of linear layers only, one block `repeat` times."""
    return Model(
        name="linears",
        sequence=sequence,
        blocks=(Block(name="block", layers=layers, repeat=repeat, checkpointed=checkpointed),),
    )


def four_layers(hidden, *, script=False):
    """The linear layers of a transformer block; `script`: MLP-down's widths exchanged, as in the authors' scripts."""
    inputs, outputs = (hidden, 4 * hidden) if script else (4 * hidden, hidden)
    return (
        Linear(name="qkv", inputs=hidden, outputs=3 * hidden, bias=False),
        Linear(name="attention output", inputs=hidden, outputs=hidden, transposed=True, bias=False),
        Linear(name="mlp up", inputs=hidden, outputs=4 * hidden, bias=False),
        Linear(name="mlp down", inputs=inputs, outputs=outputs, transposed=True, bias=False),
    )


def gpt(layers=4, hidden=1024, heads=16, vocabulary=51200, sequence=1024, **others):
    """A small decoder with everything in it."""
    shape = {"layers": layers, "hidden": hidden, "heads": heads, "vocabulary": vocabulary, "sequence": sequence}
    return Transformer(**shape, learned_positions=sequence, **others).model("small-gpt")


def job(model=None, where=None, *, batch=64, sequence=None, **settings):
    """A job on the small decoder and a node of four unless told otherwise."""
    return Job.of(model or gpt(), where or machine(), batch=batch, sequence=sequence, settings=Settings(**settings))


def with_bandwidths(question, **figures):
    """The same job where some figures of its bandwidths are others."""
    costs = question.costs
    return replace(question, costs=replace(costs, bandwidths=replace(costs.bandwidths, **figures)))


def golden(name):
    """Rows of a file of published numbers, as dictionaries of text; lines that start with # say where they are from."""
    lines = (GOLDEN / f"{name}.csv").read_text(encoding="utf-8").splitlines()
    return list(csv.DictReader(line for line in lines if not line.startswith("#")))
