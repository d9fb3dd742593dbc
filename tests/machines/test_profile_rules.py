"""What a profile must not say: each rule of the format is broken once, and told with file and line."""

import re

import pytest

from perfmodel import schema
from perfmodel.errors import FileProblems
from perfmodel.machines import profiles, template
from perfmodel.machines.machine import TRAINING_DTYPES, Machine


def plain(name):
    """A shipped profile with its bases written out and without comments."""
    lines = template.template(name, name).splitlines()
    return "\n".join(line for line in lines if not line.lstrip().startswith("#")) + "\n"


PLAIN = {name: plain(name) for name in ("perlmutter", "vista", "rtx4090-8x", "gb200-nvl72")}


# What is changed in which profile, and where and how that is told: `figure` at the changed line, a block's name at the
# block's first line, `file` at the file's first line.
BROKEN = [
    ("perlmutter", "format: 1", "format: 2", "file", "format 2 is unknown; this version reads format 1"),
    ("perlmutter", "name: perlmutter", "name: a b", "file", "the name 'a b' is not made of letters"),
    ("perlmutter", "  bf16: 312 T", "  bf16: 312 k", "figure", "is not between 1 Gflop/s and 20 Pflop/s"),
    ("perlmutter", "  bf16: 312 T", "  bf16: 3.12 E", "figure", "is not between 1 Gflop/s and 20 Pflop/s"),
    ("perlmutter", "39.5 GiB", "40960 B", "figure", "is not between 1 MiB and 100 TiB"),
    ("perlmutter", "1555 GB/s", "1.555 EB/s", "figure", "is not between 1 kB/s and 1 PB/s"),
    ("perlmutter", "1555 GB/s", "155 B/s", "figure", "is not between 1 kB/s and 1 PB/s"),
    ("perlmutter", "latency: 6.2 us", "latency: 6.2 s", "figure", "is not between 1 ps and 1 s"),
    ("perlmutter", "latency: 6.2 us", "latency: 0 us", "figure", "must be greater than 0"),
    ("perlmutter", "latency: 6.2 us", "latency: -6 us", "figure", "must be greater than 0"),
    ("perlmutter", "nodes: 1536", "nodes: 153600000", "figure", "is not between 0.001 and 1e7"),
    ("perlmutter", "1555 GB/s", "1555 GB", "figure", "is in B, wanted B/s"),
    ("perlmutter", "1555 GB/s", "1555", "figure", "is in no unit, wanted B/s"),
    ("perlmutter", "1555 GB/s [GKL]", "1555 GB/s", "figure", "names no source"),
    ("perlmutter", "1555 GB/s [GKL]", "1555 GB/s [GLK]", "figure", "does not list (did you mean GKL?)"),
    ("perlmutter", "bf16: 280", "bf16: 313", "device", "gemm bf16 of 313 Tflop/s is above the peak of 312 Tflop/s"),
    ("perlmutter", "    bf16: 280", "    fp8: 280", "device", "gemm has fp8, peak has none"),
    ("rtx4090-8x", "  gemm_efficiency: 0.85 [OWN]\n", "", "device", "neither gemm nor gemm_efficiency"),
    ("rtx4090-8x", "gemm_efficiency: 0.85", "gemm_efficiency: 1.3", "device", "gemm_efficiency is 1.3, wanted more"),
    ("perlmutter", "  devices: 4", "  devices: 4.5", "node", "node.devices is 4.5, wanted a whole number"),
    ("perlmutter", "  devices: 4", "  devices: 2048", "node", "node.devices is 2048, wanted at most 1024"),
    ("perlmutter", "  topology: mesh", "  topology: none", "fabric", "a fabric of topology none has no pair_bandwidth"),
    ("perlmutter", "  latency: 1 us [LAT]\n", "", "fabric", "a mesh fabric needs latency"),
    ("perlmutter", "pair_bandwidth: 100", "pair_bandwidth: 301", "fabric", "pair_bandwidth 301 GB/s is above"),
    ("perlmutter", "  efficiency: 0.76", "  efficiency: 76", "fabric", "fabric.efficiency is 76, wanted more than 0"),
    ("perlmutter", "  topology: mesh", "  topology: torus", "figure", "'torus' is none of mesh, switch, shared"),
    ("perlmutter", "  kind: slurm", "  kind: cron", "figure", "'cron' is none of slurm, pbs, flux, lsf, none"),
    ("gb200-nvl72", "domain: 72", "domain: 72.5", "fabric", "fabric.domain is 72.5, wanted a whole number"),
    ("gb200-nvl72", "domain: 72", "domain: 100000", "fabric", "fabric.domain is 100000, wanted at most 1024"),
    ("rtx4090-8x", "gemm_efficiency: 0.85", "gemm:\n    fp16: 100 Tflop/s", "device", "products in bf16 are"),
    ("gb200-nvl72", "domain: 72", "domain: 70", "file", "fabric.domain 70 is no multiple of node.devices 4"),
    ("vista", "  devices: 1", "  devices: 2", "file", "2 devices per node, but a fabric of topology none"),
    ("perlmutter", "1555 GB/s", "155 GB/s", "file", "device_bandwidth 300 GB/s is above the memory's 155 GB/s"),
    ("perlmutter", "device_bandwidth: 300 GB/s", "device_bandwidth: 20 GB/s", "fabric", "pair_bandwidth 100 GB/s is"),
    ("perlmutter", "dragonfly", "none", "network", "a network of topology none has no nics, nic_bandwidth, injection"),
    ("perlmutter", "  nics: 4", "  nics: 3", "network", "injection 100 GB/s is above 3 NICs of 25 GB/s = 75 GB/s"),
    ("perlmutter", "  nics: 4", "  nics: 4.5", "network", "network.nics is 4.5, wanted a whole number"),
    ("perlmutter", "  injection: 100 GB/s [NERSC-A]\n", "", "network", "a dragonfly network needs injection"),
    (
        "perlmutter",
        "group_nodes: 128",
        "group_nodes: 1537",
        "network",
        "a group of 1537 nodes is larger than the machine",
    ),
    ("perlmutter", "size: 4", "size: 8", "file", "inner 1, size 8 is for 8 devices, the fabric joins 4"),
    ("perlmutter", "225 GB/s", "325 GB/s", "file", "inner 1, size 4 has 325 GB/s, above the device's 300 GB/s"),
    ("perlmutter", "      inner: 2", "      inner: 1", "bandwidth", "inner 1, size 2 is given twice"),
    ("perlmutter", "between: 73", "between: 173", "file", "between 173 GB/s exceeds the injection of 100 GB/s per"),
    ("perlmutter", "  source: NERSC-DL\n", "  source: NERSC-LD\n", "file", "scheduler names the source NERSC-LD"),
    ("perlmutter", "tasks_per_node: 4", "tasks_per_node: 3", "file", "tasks_per_node is 3, wanted one per device (4)"),
    (
        "perlmutter",
        "tasks_per_node: 4",
        "tasks_per_node: 0",
        "scheduler",
        "0 tasks a node of 32 cores, wanted 1 or more",
    ),
    (
        "perlmutter",
        "cores_per_task: 32",
        "cores_per_task: 65",
        "file",
        "4 tasks of 65 cores are more than 4 threads on",
    ),
    ("perlmutter", '"48:00:00"', '"48 h"', "figure", "max_time '48 h' is not hours:minutes:seconds"),
    ("perlmutter", "max_nodes: 8", "max_nodes: 0", "figure", "debug allows 1 to 0 nodes, which nobody can ask for"),
    ("perlmutter", "max_nodes: 8", "max_nodes: 8.5", "figure", "'8.5' is not a whole number"),
    ("perlmutter", "name: NCCL_CROSS_NIC", "name: NCCL_NET", "scheduler", "the environment sets NCCL_NET twice"),
    ("perlmutter", "kind: paper", "kind: rumour", "figure", "'rumour' is none of vendor, measured, paper, assumed"),
    ("perlmutter", "date: 2025-02-12", "date: yesterday", "figure", "the date 'yesterday' is not like 2026"),
    (
        "perlmutter",
        '    address: "arXiv 2502.08145, section VI"\n',
        "",
        "figure",
        "paper needs an address and the date",
    ),
]


@pytest.mark.parametrize(("name", "old", "new", "place", "message"), BROKEN, ids=[case[4][:50] for case in BROKEN])
def test_an_impossible_profile_is_refused_with_file_and_line(tmp_path, name, old, new, place, message):
    text = PLAIN[name]
    assert old in text
    file = tmp_path / "broken.yaml"
    file.write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(FileProblems) as caught:
        profiles.load(str(file))
    problem = next(problem for problem in caught.value.problems if message in problem)
    line = int(re.match(rf"{re.escape(str(file))}:(\d+): ", problem)[1])
    changed = text[: text.index(old)].count("\n") + 1
    if place == "figure":  # the line itself, or the first of the small record that it is in
        assert 0 <= changed - line <= 3
    else:
        assert line == (1 if place == "file" else text[: text.index(f"\n{place}:\n") + 1].count("\n") + 2)


def test_eight_slips_in_one_file_are_all_told():
    text = PLAIN["perlmutter"]
    slips = [
        ("max_nodes: 8", "max_nodes: eight", "'eight' is not a number"),
        ("1555 GB/s [GKL]", "1555 GB [GKL]", "is in B, wanted B/s"),
        ("host_memory: 256 GB [", "host_memory: 256 [", "is in no unit, wanted B"),
        ("  injection: 100", "  enjection: 100", "unknown key enjection (did you mean injection"),
        ("  cpu_cores: 64 [NERSC-A]\n", "", "missing cpu_cores"),
        ("title: ", "name: twice\ntitle: ", "the key name is given twice"),
        ("    fp32: 19.5 Tflop/s [GKL]", "    fp32: [19.5 Tflop/s, GKL]", "wanted one value, found a list"),
        ("  latency: 1 us", "  latency: 1 us/s", "is in s/s, wanted s"),
    ]
    for old, new, _ in slips:
        assert old in text
        text = text.replace(old, new, 1)
    with pytest.raises(FileProblems) as caught:
        schema.build(Machine, schema.compose(text, "broken.yaml"), "broken.yaml")
    for _, _, told in slips:
        assert any(told in problem for problem in caught.value.problems), told
    lines = [int(problem.split(":")[1]) for problem in caught.value.problems]
    assert lines == sorted(lines)
    assert len(lines) == len(slips)


def test_a_fabric_slower_than_the_network_is_refused_unless_the_profile_says_why(tmp_path):
    text = PLAIN["perlmutter"].replace("pair_bandwidth: 100 GB/s", "pair_bandwidth: 10 GB/s")
    text = text.replace("device_bandwidth: 300 GB/s", "device_bandwidth: 20 GB/s")
    text = re.sub(r"  inside:\n(    .*\n)+", "", text)
    file = tmp_path / "slow.yaml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(FileProblems, match="share of the network, 25 GB/s, is above the fabric's 20 GB/s"):
        profiles.load(str(file))
    file.write_text(text.replace("\nfabric:\n", "\nfabric:\n  slower_than_network: PCIe 3.0\n"), encoding="utf-8")
    assert profiles.load(str(file)).fabric.slower_than_network == "PCIe 3.0"


def test_a_device_needs_a_number_format_to_train_in(tmp_path):
    text = re.sub(r"  gemm:\n|    (fp32|bf16|fp16): .*\n", "", PLAIN["perlmutter"])
    file = tmp_path / "none.yaml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(FileProblems, match=f"peak needs at least one of {', '.join(TRAINING_DTYPES)}"):
        profiles.load(str(file))
