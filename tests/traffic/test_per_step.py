"""The paper's equations on a layer worked by hand, and the numbers that the authors' own scripts print."""

from dataclasses import replace

import numpy as np
import pytest

from machines import four_layers, golden, gpt, job, linears, machine, script_machine
from perfmodel.models.layers import Linear
from perfmodel.parallel.choices import RECOMPUTES, WEIGHT_CACHES
from perfmodel.parallel.enumeration import placed
from perfmodel.parallel.layout import NAMED_PLACEMENTS, Layout
from perfmodel.traffic.per_step import communication_time, ring_latency, traffic

AXONN, PAPER = NAMED_PLACEMENTS["axonn"][0], NAMED_PLACEMENTS["paper"][0]
FULL, FORWARD = RECOMPUTES.index("full"), WEIGHT_CACHES.index("forward")
NONE = 0
# One sequence of 4096 tokens on each of four data ranks (z * data): m = 8192 rows in a data group of two.
WORKED = Layout(x=2, y=2, z=2, data=2, placement=PAPER, micro_batch=1, recompute=0, weight_cache=FORWARD)


def worked_layer():
    where = machine(4, inside={(1, 2): 76e9, (2, 2): 76e9}, between=100e9)
    model = linears(Linear(name="layer", inputs=4096, outputs=12288, bias=False), sequence=4096)
    return job(model, where, batch=4, fidelity="paper")


def printed(value, text):
    """Whether `value` rounds to `text` at the digits that `text` shows."""
    digits = len(text.partition(".")[2])
    return abs(value - float(text)) <= 0.5000001 * 10**-digits


@pytest.mark.parametrize("row", golden("worked_layer")[:-1], ids=lambda row: row["term"])
def test_each_term_of_the_worked_layer_is_the_paper_s(row):
    (found,) = [collective for collective in traffic(worked_layer(), WORKED) if collective.term == row["term"]]
    half = 1 / 2  # (p - 1) / p
    sent = half * found.buffer * (2 if found.operation == "all-reduce" else 1)
    assert (found.operation, found.link.axis, found.calls) == (row["operation"], row["axis"], 1)
    assert sent == float(row["sent_B"])
    assert found.link.bandwidth == pytest.approx(float(row["bandwidth_GB_per_s"]) * 1e9)
    assert printed(found.total * 1e3, row["time_ms"])


def test_the_worked_layer_takes_what_its_terms_add_up_to():
    assert printed(communication_time(worked_layer(), WORKED).total * 1e3, golden("worked_layer")[-1]["time_ms"])


def script_job(model, where, *, batch, sequence=2048):
    """What the authors' script counts: gradients summed over data as fp32, groups stay at their place."""
    return job(model, where, batch=batch, sequence=sequence, fidelity="flat", data_gradient_bytes=4)


def of_layers(found):
    """What linear layers send: the script counts no biases, no gradient norm, no loss."""
    return found.total - found.small


def script_layer(k, *, transposed, hidden=4096):
    """The script takes K H as the width of every forward all-reduce, so also of MLP-down (K = 4, transposed).

    That exchanges the widths of MLP-down, which really has 4 H inputs and H outputs; here the layer is made so that
    the script's number comes out. K = 1 transposed (attention output) is the same either way.
    """
    return linears(Linear(name="layer", inputs=hidden, outputs=k * hidden, transposed=transposed, bias=False))


@pytest.mark.parametrize(
    "row", golden("script_single_layers"), ids=lambda row: f"{row['k']}-{row['transposed']}-{row['d']}"
)
def test_single_layers_take_what_the_authors_script_prints(row):
    x, y, z, data = (int(row[axis]) for axis in "rcdg")
    layer = script_layer(int(row["k"]), transposed=row["transposed"] == "yes")
    question = script_job(layer, script_machine("perlmutter"), batch=512)
    layout = Layout(
        x=x, y=y, z=z, data=data, placement=AXONN, micro_batch=512 // (z * data), recompute=FULL, weight_cache=FORWARD
    )
    assert printed(of_layers(communication_time(question, layout)), row["seconds"])


def test_mlp_down_with_its_own_widths_is_cheaper_than_the_script_says_where_the_fast_axis_is_the_input_s():
    layout = Layout(x=2, y=2, z=2, data=8, placement=AXONN, micro_batch=512 // 16, recompute=FULL, weight_cache=FORWARD)
    right = script_job(
        linears(Linear(name="mlp down", inputs=4 * 4096, outputs=4096, transposed=True)),
        script_machine("perlmutter"),
        batch=512,
    )
    theirs = script_job(script_layer(4, transposed=True), script_machine("perlmutter"), batch=512)
    assert communication_time(right, layout).forward_reduce == communication_time(theirs, layout).forward_reduce / 4
    assert communication_time(right, layout).backward_reduce == communication_time(theirs, layout).backward_reduce * 4


def script_grids(row):
    """The script's candidates: powers of two, at least `least` tensor ranks, batch divisible by depth times data."""
    grids = placed(int(row["gpus"]), (AXONN,))
    keep = (grids.x * grids.y * grids.z >= int(row["least"])) & (int(row["batch"]) % (grids.z * grids.data) == 0)
    grids = grids.take(keep)
    micro = int(row["batch"]) // (grids.z * grids.data * int(row["accumulation"]))
    return replace(
        grids, micro_batch=micro, recompute=np.full_like(micro, FULL), weight_cache=np.full_like(micro, FORWARD)
    )


@pytest.mark.parametrize("row", golden("script_tables"), ids=lambda row: "-".join(row.values()))
def test_whole_models_take_what_the_authors_script_prints(row):
    grids = script_grids(row)
    model = linears(*four_layers(int(row["hidden"]), script=True), repeat=int(row["layers"]))
    seconds = of_layers(
        communication_time(script_job(model, script_machine(row["machine"]), batch=int(row["batch"])), grids)
    )
    place = np.flatnonzero(
        (grids.x == int(row["r"]))
        & (grids.y == int(row["c"]))
        & (grids.z == int(row["d"]))
        & (grids.data == int(row["g"]))
    )
    assert printed(seconds[place[0]], row["seconds"])
    if row["position"]:
        assert np.argsort(seconds, kind="stable").tolist().index(place[0]) + 1 == int(row["position"])


def test_the_script_s_lists_are_as_long_as_the_paper_s_candidates():
    lengths = {(row["gpus"], row["least"]): len(script_grids(row).x) for row in golden("script_tables")}
    assert lengths["64", "4"] == 80
    assert lengths["16", "1"] == 35
    assert lengths["32", "16"] == 36
    assert lengths["64", "32"] == 49
    assert lengths["1024", "8"] == 276
    assert lengths["2048", "16"] == 344
    assert lengths["4096", "32"] == 420
    assert lengths["8192", "64"] == 504


def test_the_later_script_s_layer_is_the_paper_s_with_two_gathers_and_single_reduces():
    # axonn-ai/sc2025-pccl-reproducer, data/comm_model.py without latency: 59.52 between nodes, each all-reduce once.
    layer = linears(Linear(name="qkv", inputs=4096, outputs=12288, bias=False))
    question = job(
        layer, script_machine("perlmutter", between=59.52), batch=512, fidelity="paper", data_gradient_bytes=4
    )
    layout = Layout(x=2, y=2, z=2, data=8, placement=AXONN, micro_batch=32, recompute=0, weight_cache=NONE)
    assert printed(communication_time(question, layout).total, "0.018276972")


@pytest.mark.parametrize(
    ("name", "between", "layers", "hidden", "gpus", "seconds"),
    [
        ("perlmutter", 59.52, 24, 4096, 512, "0.452743"),
        ("perlmutter", 59.52, 32, 7168, 2048, "1.851414"),
        ("perlmutter", 59.52, 38, 9216, 4096, "3.635232"),
        ("frontier", 109.98, 38, 9216, 4096, "1.967349"),
        ("frontier", 109.98, 42, 12288, 8192, "3.866140"),
    ],
)
def test_the_later_script_s_best_grids_take_what_it_prints_without_latency(
    *, name, between, layers, hidden, gpus, seconds
):
    # The same source: S 2048, B 8192, all of the best grids are depth only.
    model = linears(*four_layers(hidden, script=True), repeat=layers)
    where = script_machine(name, between=between)
    question = job(model, where, batch=8192, fidelity="paper", data_gradient_bytes=4)
    layout = Layout(x=1, y=1, z=gpus, data=1, placement=AXONN, micro_batch=8192 // gpus, recompute=0, weight_cache=NONE)
    assert printed(communication_time(question, layout).total, seconds)


def test_the_latency_of_a_ring_is_its_hops_times_theirs():
    # 8 ranks over two nodes of 4: two hops between nodes (5 us) and five inside (1 us), in every call.
    asked = job(gpt(), machine(4), batch=8)
    layout = Layout(x=1, y=1, z=8, data=1)
    sent = [entry for entry in traffic(asked, layout) if entry.link.axis == "z"]
    rounds = sum(float(entry.calls) * (2 if entry.operation == "all-reduce" else 1) for entry in sent)
    assert ring_latency(asked, traffic(asked, layout)) == pytest.approx(rounds * (2 * 5e-6 + 5 * 1e-6))


def test_an_all_reduce_goes_round_twice_and_one_rank_not_at_all():
    asked = job(gpt(), machine(4), batch=8)
    calls = sum(
        float(entry.calls) for entry in traffic(asked, Layout(x=1, y=1, z=1, data=4)) if entry.link.axis == "data"
    )
    assert ring_latency(asked, traffic(asked, Layout(x=1, y=1, z=1, data=4))) == pytest.approx(calls * 2 * 3 * 1e-6)
    assert ring_latency(asked, traffic(asked, Layout(x=1, y=1, z=1, data=1))) == 0
