"""`explain`: every collective of every layer, its ranks, link and bandwidth, and equations that can be worked out."""

import math
import re

import pytest

from perfmodel import models
from perfmodel.models.model import Linear
from perfmodel.parallel import ranks
from perfmodel.parallel.layout import PLACEMENTS, Layout

GRIDS = {
    "perlmutter": ("2x4x2x2", {}),
    "groups of one": ("1x2x16x1", {}),
    "data only": ("1x1x1x32", {"batch": 64, "ignore_memory": True}),
    "nodes of eight": ("4x2x8x2", {"machine": "frontier", "model": "llama-2-7b", "batch": 256}),
    "nodes of six": ("2x1x3x4", {"machine": "summit", "model": "gpt-tiny", "batch": 12}),
    "paper": ("2x4x2x2", {"fidelity": "paper"}),
    "paper's order": ("2x4x2x2", {"placement": "paper"}),
    "convolutions": ("2x4x2x2", {"model": "unet-7b", "machine": "frontier"}),
    "rejected": ("3x2x2x2", {}),
    "kept weights": ("1x2x8x2", {"recompute": "full", "weight_cache": "all", "micro_batch": 1}),
}
OPERATIONS = {
    "weight_gather": "all-gather",
    "gradient_scatter": "reduce-scatter",
    "forward_reduce": "all-reduce",
    "backward_reduce": "all-reduce",
    "data_reduce": "all-reduce",
}
UNITS = {"B": 1, "flop": 1, "s": 1} | {"ps": 1e-12, "ns": 1e-9, "us": 1e-6, "ms": 1e-3}
PREFIXES = {"": 1, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}
NUMBER = r"\d+(?:\.\d+)?(?:e[+-]?\d+)?"


@pytest.fixture(scope="module", params=GRIDS.values(), ids=GRIDS.keys())
def record(request, explain):
    grid, options = request.param
    return explain(grid, **options)


@pytest.fixture(scope="module", params=GRIDS.values(), ids=GRIDS.keys())
def simple_record(request, explain):
    """The same at flat fidelity, or at paper fidelity where that is asked for: bytes over bandwidth, no more."""
    grid, options = request.param
    return explain(grid, **{"fidelity": "flat"} | options)


def layout(record):
    return Layout(**record["grid"], placement=PLACEMENTS.index(tuple(record["placement"])))


def quantity(text):
    """The number at the end of an equation, in SI."""
    number, unit = re.fullmatch(rf"({NUMBER}) (\S+)", text).groups()
    if unit in UNITS:
        return float(number) * UNITS[unit]
    pytest.fail(f"{text!r} is no time")


def calculated(text):
    """The value of `3/4 * 12 * 5 / (2 * 4) * 2 B / 38 GB/s`."""
    for prefix, factor in PREFIXES.items():
        text = re.sub(rf"({NUMBER}) {prefix}(B/s|flop/s|flop|B)(?= |$|\))", rf"(\1 * {factor})", text)
    assert re.fullmatch(r"[\d.e+*/() ]+", text), text
    return eval(text)  # noqa: S307 - digits and operators alone


def worked_out(equation):
    """Both sides of `(1) 3/4 * 12 * 5 / (2 * 4) * 2 B / 38 GB/s = 9.4 ms`, the left one calculated."""
    left, right = re.sub(r"^\(\d\) ", "", equation).split(" = ")
    return calculated(left), quantity(right)


def shown_ranks(text):
    """First ranks, and the last one after dots."""
    head, dots, last = text.partition(",...,")
    return [int(rank) for rank in head.split(",")], int(last) if dots else None


def test_every_linear_layer_has_its_five_collectives(record):
    model = models.load(record["model"])
    owners = [(block.name, layer.name) for block, layer in model.layers() if isinstance(layer, Linear)]
    terms = [(entry["block"], entry["layer"], entry["term"]) for entry in record["collectives"]]
    wanted = [(*owner, term) for owner in owners for term in OPERATIONS]
    assert sorted(entry for entry in terms if entry[2] not in ("vocabulary", "small")) == sorted(wanted)
    for entry in record["collectives"]:
        assert entry["operation"] == OPERATIONS.get(entry["term"], entry["operation"])


def test_transposed_layers_exchange_x_and_y(explain):
    record = explain("2x4x2x2")
    transposed = {"attention output", "mlp down"}
    for entry in record["collectives"]:
        if entry["term"] == "forward_reduce":
            assert entry["axis"] == ("x" if entry["layer"] in transposed else "y")
        if entry["term"] == "backward_reduce":
            assert entry["axis"] == ("y" if entry["layer"] in transposed else "x")
        if entry["term"] in ("weight_gather", "gradient_scatter"):
            assert entry["axis"] == "z"
        if entry["term"] == "data_reduce":
            assert entry["axis"] == "data"


def test_groups_are_those_of_the_launcher(record):
    for entry in record["collectives"]:
        group = ranks.groups(layout(record), entry["axis"])[0].tolist()
        first, last = shown_ranks(entry["ranks"])
        assert entry["group_size"] == len(group)
        assert first == group[: len(first)]
        assert last == (group[-1] if len(first) < len(group) else None)


def test_the_stride_is_the_distance_of_neighbours(record):
    for entry in record["collectives"]:
        group = ranks.groups(layout(record), entry["axis"])[0].tolist()
        # The paper's model prices a transposed layer as if x and y had changed places, although no rank moves.
        if len(group) > 1 and record["fidelity"] != "paper":
            assert entry["stride"] == group[1] - group[0]


def test_a_group_inside_a_node_says_so(record):
    devices = record["devices_per_node"]
    for entry in record["collectives"]:
        if entry["group_size"] > 1 and record["fidelity"] != "paper":
            groups = ranks.groups(layout(record), entry["axis"])
            within = all(len(set(group // devices)) == 1 for group in groups)
            assert (entry["link"] == "inside the node") == within


def test_a_group_of_one_sends_nothing(record):
    for entry in record["collectives"]:
        if entry["group_size"] == 1:
            assert (entry["time_per_call_s"], entry["time_s"], entry["bandwidth_B_per_s"]) == (0, 0, None)
            assert "nothing to send" in entry["equation"]
        else:
            assert entry["time_per_call_s"] > 0


def test_below_full_fidelity_equations_work_out_to_the_time_shown(simple_record):
    for entry in simple_record["collectives"]:
        if entry["group_size"] > 1:
            left, right = worked_out(entry["equation"])
            assert left == pytest.approx(entry["time_per_call_s"], rel=0.01), entry  # a bandwidth has three digits
            assert right == pytest.approx(entry["time_per_call_s"], rel=0.005), entry


def test_below_full_fidelity_the_equation_of_compute_works_out_to_the_time_shown(simple_record):
    if simple_record["fidelity"] == "paper":
        assert simple_record["compute_equation"] == "the paper's model has no computation"
        return
    equation = re.fullmatch(r"(.*? = \S+ \w+) \(.*\)", simple_record["compute_equation"])[1]
    left, right = worked_out(equation)
    assert left == pytest.approx(simple_record["compute_time_s"], rel=0.01)
    assert right == pytest.approx(simple_record["compute_time_s"], rel=0.005)


def test_at_full_fidelity_equations_name_the_way_and_no_ring_beats_its_bandwidth(record):
    for entry in record["collectives"]:
        if entry["group_size"] == 1 or record["fidelity"] != "full":
            continue
        form = r"(?:\(\d\) )?(ring|tree|switch), (?:LL|Simple|NVLS): (.*) at (.*) of (\d+) ranks = (.*)"
        way, buffer, rate, ranks, time = re.fullmatch(form, entry["equation"]).groups()
        size = int(ranks)
        assert size == entry["group_size"]
        assert calculated(buffer) == pytest.approx(entry["buffer_B"], rel=1e-5)
        assert calculated(rate) == pytest.approx(entry["bandwidth_B_per_s"], rel=0.005)
        assert quantity(time) == pytest.approx(entry["time_per_call_s"], rel=0.005)
        passes = 2 if entry["operation"] == "all-reduce" else 1
        if way == "ring":
            assert entry["time_per_call_s"] > passes * (size - 1) / size * calculated(buffer) / calculated(rate) * 0.99


def test_at_full_fidelity_computation_takes_longer_than_its_large_products_alone_would(record):
    if record["fidelity"] == "full":
        assert record["compute_equation"].startswith("kernels one by one; large matrix products at ")
        assert 0 < record["gemm_rate_utilization"] < 1


def test_collectives_sum_to_the_terms_of_the_step(record, close):
    for term, seconds in record["communication_s"].items():
        entries = [entry for entry in record["collectives"] if entry["term"] == term]
        assert close(sum(entry["time_s"] for entry in entries), seconds)
        assert all(close(entry["calls"] * entry["time_per_call_s"], entry["time_s"]) for entry in entries)


def test_bandwidths_say_where_they_are_from(explain):
    sources = {entry["axis"]: entry["bandwidth_source"] for entry in explain("1x2x4x4")["collectives"]}
    assert sources["x"] == "nothing to send"
    assert re.fullmatch(r"database \(1, 2\), measured \[\w+\]", sources["y"])
    assert re.fullmatch(r"\S+ GB/s between nodes, measured \[\w+\], shared by 2 groups", sources["z"])
    assert sources["data"].endswith("shared by 4 groups")
    derived = {entry["axis"]: entry["bandwidth_source"] for entry in explain("1x2x4x4", machine="alps")["collectives"]}
    assert re.fullmatch(r"derived for \(1, 2\): \S+ x link rate \(\w+\), \w+ \[.*\]", derived["y"])
    assert re.match(r"\S+ GB/s between domains of \d+, \S+ x injection, \w+ \[.*\], shared by 2 groups", derived["z"])


def test_a_recommended_grid_is_explained_with_the_same_numbers(recommend, explain):
    asked = {"model": "gpt-20b", "batch": 256, "machine": "frontier"}
    ranking = recommend(**asked, gpus=64)
    for result in ranking["results"][:3]:
        record = explain("x".join(map(str, result["grid"].values())), **asked)
        assert {key: record[key] for key in result if key != "rank"} == {
            key: value for key, value in result.items() if key != "rank"
        }
        assert record["rejected"] == []
        assert record["nearest_grid"] is None


@pytest.mark.parametrize("grid", ["2x4x2x2", "1x1x32x1", "3x2x2x2"])
def test_the_table_holds_all_of_it(run, explain, grid):
    answer = run("explain", "--grid", grid, "--model", "gpt-5b", "--machine", "perlmutter", "--batch", 64)
    assert (answer.code, answer.err) == (0, "")
    text = re.sub(r"\s+", " ", answer.out)
    record = explain(grid)
    for entry in record["collectives"]:
        if entry["group_size"] > 1:
            assert entry["equation"] in text
            assert entry["bandwidth_source"] in text
    assert record["compute_equation"] in text
    assert f"{record['gpus']} devices" in text
    for rejection in record["rejected"]:
        assert f"rejected by {rejection['rule']}: {rejection['reason']}" in text
    if nearest := record["nearest_grid"]:
        sizes = list(nearest.values())
        assert f"nearest grid that fits: {'x'.join(map(str, sizes))} ({math.prod(sizes)} devices)" in text
    for name in record["memory_terms_B"]:
        assert name.replace("_", " ") in text


def test_csv_has_a_row_for_each_collective(run, explain, read_csv):
    asked = ("--grid", "1x2x4x4", "--model", "gpt-5b", "--machine", "perlmutter", "--batch", 64)
    rows = read_csv(run("explain", *asked, "--format", "csv").out)
    collectives = explain("1x2x4x4")["collectives"]
    assert [(row["layer"], row["term"], float(row["time_s"])) for row in rows] == [
        (entry["layer"], entry["term"], entry["time_s"]) for entry in collectives
    ]


def test_a_grid_may_be_written_with_a_capital_x(explain):
    assert explain("1X2X4X4")["grid"] == {"x": 1, "y": 2, "z": 4, "data": 4}


@pytest.mark.parametrize(
    ("machine", "inside", "between"),
    [
        ("gb200-nvl72", "inside the domain of 72", "between domains of 72"),
        ("dgx-h100", "inside the node", "between nodes"),
    ],
)
def test_a_link_is_inside_what_the_fabric_joins(explain, machine, inside, between):
    record = explain("1x8x1x9", machine=machine, batch=72, model="gpt-tiny", ignore_memory=True)
    links = {entry["axis"]: entry["link"] for entry in record["collectives"]}
    assert links["y"] == inside
    assert explain("1x8x1x18", machine=machine, batch=72, model="gpt-tiny")["collectives"]
    far = explain("1x8x1x18", machine=machine, batch=72, model="gpt-tiny")["collectives"]
    assert {entry["link"] for entry in far if entry["axis"] == "data"} == {between}
