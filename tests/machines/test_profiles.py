"""The shipped machine profiles: they load, their figures are those of the sources, and nothing impossible passes."""

import dataclasses
import re

import pytest

from perfmodel import units
from perfmodel.errors import FileProblems, PerfmodelError, UsageError
from perfmodel.machines import profiles, template
from perfmodel.sources import PLAUSIBLE, Figure

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
    ("perlmutter", "device.memory", "39.5 GiB"),
    ("perlmutter", "device.memory_bandwidth", "1555 GB/s"),
    ("perlmutter", "network.injection", "100 GB/s"),
    ("perlmutter", "bandwidth.between", "73 GB/s"),
    ("perlmutter", "node.devices", "4"),
    ("perlmutter-80gb", "device.memory", "79.15 GiB"),
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


def test_a_file_named_like_a_shipped_machine_is_read_by_its_path(tmp_path):
    file = tmp_path / "frontier.yaml"
    file.write_text(template.template("vista", "frontier"), encoding="utf-8")
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
