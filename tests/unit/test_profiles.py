"""The shipped machine profiles: they load, their figures are those of the sources, and nothing impossible passes."""

import dataclasses
import re

import pytest

from perfmodel import profiles, reading, units
from perfmodel.errors import FileProblems, PerfmodelError, UsageError
from perfmodel.machine import TRAINING_DTYPES, Machine
from perfmodel.sources import KINDS, PLAUSIBLE, Figure

REQUIRED = [
    "perlmutter",
    "perlmutter-80gb",
    "frontier",
    "alps",
    "polaris",
    "leonardo",
    "lumi-g",
    "juwels-booster",
    "jupiter",
    "marenostrum5",
    "vista",
    "delta",
    "summit",
    "dgx-a100",
    "dgx-h100",
    "dgx-h200",
    "dgx-b200",
    "gb200-nvl72",
    "mi300x-node",
    "aws-p4d",
    "aws-p5",
    "azure-ndv4",
    "azure-ndv5",
    "gcp-a3-mega",
    "rtx4090-8x",
    "localhost-cpu",
    "aurora",
    "deltaai",
    "el-capitan",
    "tuolumne",
    "aws-p4de",
    "aws-p5en",
    "aws-p6-b200",
    "azure-ndm-a100-v4",
    "azure-nd-mi300x-v5",
    "a100-pcie-8x",
]
SHIPPED = {name: profiles.load(name) for name in profiles.names()}

# Typed by hand from the pages named in the profiles: vendors' data sheets, centres' pages, papers, logs.
FACTS = [
    ("perlmutter", "device.peak.bf16", "312 Tflop/s"),
    ("perlmutter", "device.gemm.bf16", "280 Tflop/s"),  # AxoNN at SC24, section VI
    ("perlmutter", "device.memory", "40 GiB"),
    ("perlmutter", "device.memory_bandwidth", "1555 GB/s"),
    ("perlmutter", "network.injection", "100 GB/s"),
    ("perlmutter", "bandwidth.between", "76 GB/s"),
    ("perlmutter", "node.devices", "4"),
    ("perlmutter-80gb", "device.memory", "80 GiB"),
    ("perlmutter-80gb", "device.memory_bandwidth", "2039 GB/s"),
    ("perlmutter-80gb", "network.nodes", "256"),
    ("frontier", "device.peak.bf16", "191.5 Tflop/s"),  # a GCD, half of a card
    ("frontier", "device.gemm.bf16", "125 Tflop/s"),
    ("frontier", "device.memory_bandwidth", "1.6 TB/s"),
    ("frontier", "node.devices", "8"),
    ("frontier", "fabric.pair_bandwidth", "50 GB/s"),
    ("frontier", "network.taper", "1.753"),
    ("lumi-g", "network.nodes", "2978"),
    ("alps", "device.peak.bf16", "989.4 Tflop/s"),
    ("alps", "device.gemm.bf16", "813 Tflop/s"),
    ("alps", "fabric.pair_bandwidth", "150 GB/s"),
    ("alps", "network.nodes", "2688"),
    ("polaris", "network.injection", "50 GB/s"),  # two NICs, half of Perlmutter
    ("polaris", "bandwidth.between", "36.5 GB/s"),
    ("leonardo", "device.memory", "63.4 GiB"),
    ("leonardo", "network.nic_bandwidth", "100 Gbit/s"),
    ("juwels-booster", "network.group_nodes", "48"),
    ("jupiter", "network.nic_bandwidth", "200 Gbit/s"),
    ("marenostrum5", "network.nodes", "1120"),
    ("vista", "network.injection", "50 GB/s"),
    ("vista", "node.devices", "1"),
    ("delta", "network.injection", "25 GB/s"),
    ("summit", "device.peak.fp16", "125 Tflop/s"),
    ("summit", "node.devices", "6"),
    ("dgx-a100", "fabric.pair_bandwidth", "300 GB/s"),
    ("dgx-h100", "device.peak.fp8", "1978.9 Tflop/s"),
    ("dgx-h100", "network.injection", "400 GB/s"),
    ("dgx-h200", "device.memory_bandwidth", "4.8 TB/s"),
    ("dgx-b200", "device.peak.bf16", "2250 Tflop/s"),  # 4500 is with sparsity
    ("gb200-nvl72", "fabric.domain", "72"),
    ("gb200-nvl72", "device.peak.bf16", "2500 Tflop/s"),
    ("mi300x-node", "device.peak.bf16", "1307.4 Tflop/s"),
    ("mi300x-node", "fabric.pair_bandwidth", "64 GB/s"),
    ("aws-p4d", "network.injection", "50 GB/s"),
    ("aws-p5", "network.nics", "32"),
    ("aws-p5en", "network.nics", "16"),
    ("aws-p6-b200", "bandwidth.between", "382 GB/s"),
    ("azure-ndv5", "network.injection", "400 GB/s"),
    ("gcp-a3-mega", "network.injection", "200 GB/s"),
    ("rtx4090-8x", "device.peak.bf16", "165.2 Tflop/s"),  # 330.3 is with fp16 accumulation
    ("a100-pcie-8x", "device.gemm.bf16", "252.9 Tflop/s"),
    ("aurora", "node.devices", "12"),
    ("aurora", "device.peak.bf16", "298.2 Tflop/s"),
    ("el-capitan", "network.nodes", "11136"),
]
# Figures that nobody of this project read anywhere: they must not look better founded than they are.
ASSUMED = [
    ("leonardo", "device.peak.bf16"),
    ("leonardo", "device.memory_bandwidth"),
    ("marenostrum5", "device.peak.bf16"),
    ("marenostrum5", "device.memory_bandwidth"),
    ("marenostrum5", "fabric.pair_bandwidth"),
    ("summit", "bandwidth.inside.0.bandwidth"),
    ("tuolumne", "network.nodes"),
    ("azure-ndv4", "network.nic_bandwidth"),
    ("dgx-a100", "network.group_nodes"),
    ("rtx4090-8x", "fabric.efficiency"),
    ("aws-p5", "network.efficiency"),
    ("el-capitan", "device.gemm_efficiency"),
    ("localhost-cpu", "device.peak.fp32"),
]


def at(machine, path):
    """The value at a dotted path such as bandwidth.inside.0.bandwidth."""
    value = machine
    for part in path.split("."):
        value = value[int(part)] if part.isdigit() else getattr(value, part)
    return value


def figures(record, path=""):
    """Path and figure of every number in a record."""
    if isinstance(record, Figure):
        yield path, record
    elif isinstance(record, tuple):
        for number, item in enumerate(record):
            yield from figures(item, f"{path}.{number}")
    elif dataclasses.is_dataclass(record):
        for field in dataclasses.fields(record):
            yield from figures(getattr(record, field.name), f"{path}.{field.name}")


def test_all_required_machines_are_shipped():
    assert sorted(set(REQUIRED) - set(SHIPPED)) == []


@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_profile_is_named_like_its_file(name):
    assert SHIPPED[name].name == name


def test_no_two_machines_have_the_same_title():
    assert len({machine.title for machine in SHIPPED.values()}) == len(SHIPPED)


@pytest.mark.parametrize(("name", "path", "text"), FACTS)
def test_a_figure_is_that_of_its_source(name, path, text):
    found = at(SHIPPED[name], path)
    unit = next(unit for unit in PLAUSIBLE if _parses(text, unit))
    assert found.value == pytest.approx(units.parse(text, unit), rel=1e-12)


def _parses(text, unit):
    try:
        return units.parse(text, unit) is not None
    except PerfmodelError:
        return False


def test_frontier_has_the_authors_measured_database():
    found = {(group.inner, group.size): group.bandwidth.value for group in SHIPPED["frontier"].bandwidth.inside}
    assert found == {(1, 2): 129e9, (1, 4): 52e9, (1, 8): 135e9, (2, 2): 50e9, (2, 4): 72e9, (4, 2): 36e9}


@pytest.mark.parametrize(("name", "path"), ASSUMED)
def test_what_was_only_recalled_or_guessed_is_marked_assumed(name, path):
    assert at(SHIPPED[name], path).source.kind == "assumed"


@pytest.mark.parametrize("name", SHIPPED)
def test_a_source_that_says_recalled_or_guess_is_of_kind_assumed(name):
    for key, source in SHIPPED[name].sources.items():
        if re.search(r"\b(recalled|guess(es)?|placeholders)\b", source.note):
            assert source.kind == "assumed", key


@pytest.mark.parametrize("name", SHIPPED)
def test_every_source_of_a_file_is_used_in_it_or_in_a_profile_based_on_it(name):
    machine = SHIPPED[name]
    scheduler = machine.scheduler
    used = {figure.key for _, figure in figures(machine)} | {scheduler.source}
    used |= {part.source for part in (*scheduler.qos, *scheduler.environment)}
    own = (profiles.folder() / f"{name}.yaml").read_text(encoding="utf-8")
    listed = {key for key in machine.sources if re.search(rf"^  {re.escape(key)}: ", own, re.MULTILINE)}
    assert sorted(listed - used) == []


@pytest.mark.parametrize("name", SHIPPED)
def test_a_profile_tells_nothing_of_the_computer_it_was_written_on(name):
    text = (profiles.folder() / f"{name}.yaml").read_text(encoding="utf-8")
    assert re.search(r"/(work|home|tmp|root)/|\.\./", text) is None


@pytest.mark.parametrize("name", SHIPPED)
def test_every_device_says_how_fast_its_matrix_products_are(name):
    device = SHIPPED[name].device
    main = next(dtype for dtype in ("bf16", "fp16", "fp32") if device.peak.get(dtype))
    measured = device.gemm.get(main)
    share = measured.value / device.peak.get(main).value if measured else device.gemm_efficiency.value
    assert 0.4 < share < 0.95


@pytest.mark.parametrize("name", SHIPPED)
def test_number_formats_get_faster_as_they_get_shorter(name):
    peak = SHIPPED[name].device.peak
    rates = [rate.value for rate in (peak.fp32, peak.tf32, peak.bf16 or peak.fp16, peak.fp8) if rate]
    assert rates == sorted(rates)
    assert peak.bf16 is None or peak.fp16 is None or peak.bf16.value == peak.fp16.value


@pytest.mark.parametrize("name", SHIPPED)
def test_a_mesh_gives_a_device_a_link_to_each_other(name):
    machine = SHIPPED[name]
    if machine.fabric.topology == "mesh":
        links = (machine.node_devices - 1) * machine.fabric.pair_bandwidth.value
        assert links == pytest.approx(machine.fabric.device_bandwidth.value)
    if machine.fabric.topology == "switch":
        assert machine.fabric.pair_bandwidth.value == machine.fabric.device_bandwidth.value


@pytest.mark.parametrize("name", SHIPPED)
def test_the_injection_of_a_node_is_that_of_its_nics(name):
    network = SHIPPED[name].network
    if network.topology != "none" and name != "summit":  # the centre gives 23 of 25 GB/s
        assert network.injection.value == pytest.approx(network.nics.value * network.nic_bandwidth.value)


def test_the_same_device_has_the_same_figures_on_every_machine():
    for one in SHIPPED.values():
        for other in SHIPPED.values():
            if one.device.name == other.device.name:
                for field in ("memory", "memory_bandwidth"):
                    assert at(one.device, field).value == at(other.device, field).value, (one.name, other.name, field)
                rates = [[rate and rate.value for rate in _rates(machine)] for machine in (one, other)]
                assert rates[0] == rates[1], (one.name, other.name)


def _rates(machine):
    peak = machine.device.peak
    return (peak.fp32, peak.tf32, peak.bf16, peak.fp16, peak.fp8)


@pytest.mark.parametrize("name", SHIPPED)
def test_a_template_reads_back_as_the_same_machine(name):
    text = profiles.template(name, "ours")
    copy = reading.build(Machine, reading.compose(text, "ours.yaml"), "ours.yaml")
    assert copy == dataclasses.replace(SHIPPED[name], name="ours", base="")


def test_a_template_explains_every_field_once():
    text = profiles.template("perlmutter", "ours")
    explained = re.sub(r"\n *# ", " ", text)
    for help_text in profiles.HELP.values():
        if help_text != profiles.HELP["Machine.base"]:
            assert help_text in explained
    assert text.count(profiles.HELP["Qos.max_time"]) == 1


def test_a_template_needs_a_name_that_can_be_a_file_name():
    with pytest.raises(PerfmodelError, match=r"the name .* is not made of letters"):
        profiles.template("perlmutter", "../ours")


def test_a_template_can_be_made_from_a_file(tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text(profiles.template("vista", "mine"), encoding="utf-8")
    assert profiles.template(str(file), "vista") == profiles.template("vista", "vista").replace(
        "from vista", "from mine"
    )


def test_a_new_profile_overwrites_nothing(tmp_path):
    file = tmp_path / "mine.yaml"
    profiles.write_new(file, "first")
    with pytest.raises(PerfmodelError, match=r"mine.yaml is there already"):
        profiles.write_new(file, "second")
    assert file.read_text(encoding="utf-8") == "first"


@pytest.mark.parametrize("name", ["nowhere/mine.yaml", "a\0b.yaml", "x" * 5000])
def test_a_new_profile_that_cannot_be_written_is_told(tmp_path, name):
    with pytest.raises(PerfmodelError, match="cannot be written"):
        profiles.write_new(tmp_path / name, "text")


def test_a_file_named_like_a_shipped_machine_is_read_by_its_path(tmp_path):
    file = tmp_path / "frontier.yaml"
    file.write_text(profiles.template("vista", "frontier"), encoding="utf-8")
    assert profiles.load(str(file)).device == profiles.load_file(file).device == SHIPPED["vista"].device


def test_an_unknown_name_offers_the_nearest():
    with pytest.raises(UsageError, match=r"no machine is called 'perlmuter'.*did you mean perlmutter"):
        profiles.load("perlmuter")


@pytest.mark.parametrize("name", ["", "x" * 5000, "a\0b", ".", "..", "perlmutter\n"])
def test_a_name_that_is_no_name_is_refused(name):
    with pytest.raises(UsageError, match="no machine is called"):
        profiles.load(name)


@pytest.mark.parametrize("name", ["./nowhere.yaml", "x.yaml", "a\0b.yaml", "x" * 5000 + ".yaml", "/dev/null/x.yaml"])
def test_a_path_that_leads_nowhere_is_refused(name):
    with pytest.raises(PerfmodelError, match="cannot be read"):
        profiles.load(name)


def test_a_folder_is_refused(tmp_path):
    with pytest.raises(PerfmodelError, match="is a directory, wanted a file"):
        profiles.load(f"{tmp_path}/")


def test_a_profile_may_be_based_on_one_beside_it_or_on_a_shipped_one(tmp_path):
    first, second = tmp_path / "first.yaml", tmp_path / "second.yaml"
    first.write_text("base: perlmutter\nname: first\nnode:\n  devices: 4 [NERSC-A]\n", encoding="utf-8")
    second.write_text("base: first\nname: second\nnode:\n  host_memory: 512 GB [NERSC-A]\n", encoding="utf-8")
    found = profiles.load(str(second))
    assert (found.name, found.node.host_memory.value, found.device) == ("second", 512e9, SHIPPED["perlmutter"].device)


def test_a_profile_based_on_itself_is_refused(tmp_path):
    file = tmp_path / "loop.yaml"
    file.write_text("base: loop\n", encoding="utf-8")
    with pytest.raises(FileProblems, match="more than 5 bases"):
        profiles.load(str(file))


def test_what_a_base_gives_can_be_taken_away(tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text("base: alps\nname: mine\nnetwork: {group_nodes: ~}\n", encoding="utf-8")
    assert profiles.load(str(file)).network.group_nodes is None


def test_a_key_doubled_over_a_base_is_still_refused(tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text("base: alps\nname: mine\ntitle: one\ntitle: two\n", encoding="utf-8")
    with pytest.raises(FileProblems, match=r"mine.yaml:4: the key title is given twice"):
        profiles.load(str(file))


def test_a_key_that_is_no_text_is_refused_over_a_base(tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text("base: alps\nname: mine\n? [a, b]\n: 1\n", encoding="utf-8")
    with pytest.raises(FileProblems, match=r"mine.yaml:3: a key must be text, found a list"):
        profiles.load(str(file))


def test_a_wrong_figure_in_a_base_is_told_with_the_line_of_the_base(tmp_path):
    (tmp_path / "first.yaml").write_text("base: alps\nname: first\nnode:\n  devices: four\n", encoding="utf-8")
    (tmp_path / "second.yaml").write_text("base: first\nname: second\n", encoding="utf-8")
    with pytest.raises(FileProblems, match=r"first.yaml:4: 'four' names no source"):
        profiles.load(str(tmp_path / "second.yaml"))


def plain(name):
    """A shipped profile with its bases written out and without comments."""
    lines = profiles.template(name, name).splitlines()
    return "\n".join(line for line in lines if not line.lstrip().startswith("#")) + "\n"


PLAIN = {name: plain(name) for name in ("perlmutter", "vista", "rtx4090-8x", "gb200-nvl72")}


# What is changed in which profile, and where and how that is told: `figure` at the changed line, a block's name at the
# block's first line, `file` at the file's first line.
BROKEN = [
    ("perlmutter", "format: 1", "format: 2", "file", "format 2 is unknown; this version reads format 1"),
    ("perlmutter", "name: perlmutter", "name: a b", "file", "the name 'a b' is not made of letters"),
    ("perlmutter", "  bf16: 312 T", "  bf16: 312 k", "figure", "is not between 1 Gflop/s and 1 Eflop/s"),
    ("perlmutter", "  bf16: 312 T", "  bf16: 3.12 E", "figure", "is not between 1 Gflop/s and 1 Eflop/s"),
    ("perlmutter", "40960 MiB", "40960 B", "figure", "is not between 1 MiB and 100 TiB"),
    ("perlmutter", "1555 GB/s", "1.555 EB/s", "figure", "is not between 1 kB/s and 1 PB/s"),
    ("perlmutter", "1555 GB/s", "155 B/s", "figure", "is not between 1 kB/s and 1 PB/s"),
    ("perlmutter", "latency: 6 us", "latency: 6 s", "figure", "is not between 1 ps and 1 s"),
    ("perlmutter", "latency: 6 us", "latency: 0 us", "figure", "must be greater than 0"),
    ("perlmutter", "latency: 6 us", "latency: -6 us", "figure", "must be greater than 0"),
    ("perlmutter", "nodes: 1536", "nodes: 153600000", "figure", "is not between 0.001 and 1e7"),
    ("perlmutter", "1555 GB/s", "1555 GB", "figure", "is in B, wanted B/s"),
    ("perlmutter", "1555 GB/s", "1555", "figure", "is in no unit, wanted B/s"),
    ("perlmutter", "1555 GB/s [GKL]", "1555 GB/s", "figure", "names no source"),
    ("perlmutter", "1555 GB/s [GKL]", "1555 GB/s [GLK]", "figure", "which the file does not list ("),
    ("perlmutter", "bf16: 280", "bf16: 313", "device", "gemm bf16 of 313 Tflop/s is above the peak of 312 Tflop/s"),
    ("perlmutter", "    bf16: 280", "    fp8: 280", "device", "gemm has fp8, peak has none"),
    ("rtx4090-8x", "  gemm_efficiency: 0.85 [OWN]\n", "", "device", "neither gemm nor gemm_efficiency"),
    ("rtx4090-8x", "gemm_efficiency: 0.85", "gemm_efficiency: 1.3", "device", "gemm_efficiency is 1.3, wanted more"),
    ("perlmutter", "  devices: 4", "  devices: 4.5", "node", "node.devices is 4.5, wanted a whole number"),
    ("perlmutter", "  devices: 4", "  devices: 2048", "node", "node.devices is 2048, wanted at most 1024"),
    ("perlmutter", "  topology: mesh", "  topology: none", "fabric", "a fabric of topology none has no pair_bandwidth"),
    ("perlmutter", "  latency: 0.6 us [LAT]\n", "", "fabric", "a mesh fabric needs latency"),
    ("perlmutter", "pair_bandwidth: 100", "pair_bandwidth: 301", "fabric", "pair_bandwidth 301 GB/s is above"),
    ("perlmutter", "  efficiency: 0.76", "  efficiency: 76", "fabric", "fabric.efficiency is 76, wanted more than 0"),
    ("perlmutter", "  topology: mesh", "  topology: torus", "figure", "'torus' is none of mesh, switch, shared"),
    ("gb200-nvl72", "domain: 72", "domain: 72.5", "fabric", "fabric.domain is 72.5, wanted a whole number"),
    ("gb200-nvl72", "domain: 72", "domain: 70", "file", "fabric.domain 70 is no multiple of node.devices 4"),
    ("vista", "  devices: 1", "  devices: 2", "file", "2 devices a node, but a fabric of topology none"),
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
    ("perlmutter", "between: 76", "between: 176", "file", "between 176 GB/s is above the injection of 100 GB/s a node"),
    ("perlmutter", "  source: NERSC-DL\n", "  source: NERSC-LD\n", "file", "scheduler names the source NERSC-LD"),
    ("perlmutter", "tasks_per_node: 4", "tasks_per_node: 3", "file", "tasks_per_node is 3, wanted one a device (4)"),
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
        ("  latency: 0.6 us", "  latency: 0.6 us/s", "is in s/s, wanted s"),
    ]
    for old, new, _ in slips:
        assert old in text
        text = text.replace(old, new, 1)
    with pytest.raises(FileProblems) as caught:
        reading.build(Machine, reading.compose(text, "broken.yaml"), "broken.yaml")
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


def test_kinds_of_source_are_told_in_the_help():
    assert all(kind in profiles.HELP["Source.kind"] for kind in KINDS)
