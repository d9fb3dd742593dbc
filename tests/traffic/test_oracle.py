"""The closed forms against a simulator that moves real numbers round rings of ranks, and counts what is sent."""

import random
from dataclasses import replace
from math import gcd

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from machines import job, linears, machine
from perfmodel.costs import ring as closed_forms
from perfmodel.costs.bandwidth import Bandwidths
from perfmodel.costs.straddling import fewest_members, sharing
from perfmodel.models.layers import Linear
from perfmodel.numerics import divisors
from perfmodel.parallel.choices import WEIGHT_CACHES
from perfmodel.parallel.enumeration import factorizations, placed
from perfmodel.parallel.layout import PLACEMENTS, Layout
from perfmodel.parallel.ranks import groups, rank_array
from perfmodel.traffic.per_step import traffic
from rings import Ring, over

EXPECTED = {  # what each rank ends with, from all buffers
    "all_gather": lambda buffers: [np.concatenate(buffers)] * len(buffers),
    "reduce_scatter": lambda buffers: np.split(sum(buffers), len(buffers)),
    "all_reduce": lambda buffers: [sum(buffers)] * len(buffers),
}


@given(size=st.integers(1, 9), chunk=st.integers(1, 5), seed=st.integers(0, 9))
@pytest.mark.parametrize("operation", EXPECTED)
def test_a_ring_ends_with_the_right_numbers_and_sends_what_the_closed_form_says(operation, size, chunk, seed):
    generator = np.random.default_rng(seed)
    length = chunk if operation == "all_gather" else chunk * size
    buffers = [generator.integers(0, 100, length).astype(float) for _ in range(size)]
    ring = Ring(size)
    results = getattr(ring, operation)(buffers)
    for found, expected in zip(results, EXPECTED[operation](buffers), strict=True):
        assert found.tolist() == expected.tolist()
    whole = chunk * size  # gathered, or unreduced
    closed = getattr(closed_forms, operation)(float(whole), size=size, bandwidth=1.0)
    assert ring.sent == [pytest.approx(closed, rel=1e-12)] * size


def of_layers(question, layout):
    """What the layers send; the gradient norm and the loss, which end a step, do not pass through a layer."""
    return [collective for collective in traffic(question, layout) if collective.term != "small"]


GATHERED_ONCE = WEIGHT_CACHES.index("forward")


class World:
    """A layer of real numbers on a grid: every rank holds its parts by index sets, as Algorithm 1 of the paper says.

    The layer is O = I W, its gradient from a given dO. Rows of I and O are split over data and z; columns of I and
    rows of W over y (`inner`), columns of W and O over x (`outer`); a transposed layer exchanges the two axes.
    """

    def __init__(self, layout, sizes, *, transposed=False, seed=0):
        self.layout, self.sizes = layout, sizes
        self.inner, self.outer = ("x", "y") if transposed else ("y", "x")
        generator = np.random.default_rng(seed)
        m, k, n = sizes
        self.inputs, self.weight, self.gradient = (
            generator.integers(-4, 5, shape).astype(float) for shape in ((m, k), (k, n), (m, n))
        )
        where = np.argwhere(rank_array(layout) >= 0)
        self.coordinates = {
            int(rank_array(layout)[tuple(place)]): dict(zip(("x", "y", "z", "data"), place.tolist(), strict=True))
            for place in where
        }
        self.sent = {}

    def part(self, rank, length, *axes):
        """Indices of a dimension of `length` that a rank holds when the axes split it, the first one outermost."""
        start, step = 0, length
        for axis in axes:
            step //= self.layout.size(axis)
            start += step * self.coordinates[rank][axis]
        return slice(start, start + step)

    def rows(self, rank):
        return self.part(rank, self.sizes[0], "data", "z")

    def collective(self, term, axis, operation, buffers):
        results, self.sent[term] = over(groups(self.layout, axis), operation, buffers)
        return results

    def run(self):
        """One forward and one backward pass; afterwards every collective's elements are in `sent`."""
        _, k, n = self.sizes
        block = {r: (self.part(r, k, self.inner), self.part(r, n, self.outer)) for r in self.coordinates}
        shards = {
            r: np.split(self.weight[block[r]].ravel(), self.layout.z)[self.coordinates[r]["z"]]
            for r in self.coordinates
        }
        gathered = self.collective("weight_gather", "z", "all_gather", shards)
        outputs, input_gradients, weight_gradients = {}, {}, {}
        for r, flat in gathered.items():
            weight = flat.reshape(self.weight[block[r]].shape)
            mine, above = self.inputs[self.rows(r), block[r][0]], self.gradient[self.rows(r), block[r][1]]
            outputs[r] = (mine @ weight).ravel()
            input_gradients[r] = (above @ weight.T).ravel()
            weight_gradients[r] = (mine.T @ above).ravel()
        outputs = self.collective("forward_reduce", self.inner, "all_reduce", outputs)
        input_gradients = self.collective("backward_reduce", self.outer, "all_reduce", input_gradients)
        scattered = self.collective("gradient_scatter", "z", "reduce_scatter", weight_gradients)
        summed = self.collective("data_reduce", "data", "all_reduce", scattered)
        return block, outputs, input_gradients, summed

    def check(self):
        """Every rank ends with exactly its part of the dense result."""
        block, outputs, input_gradients, summed = self.run()
        dense = self.inputs @ self.weight, self.gradient @ self.weight.T, self.inputs.T @ self.gradient
        for r, place in self.coordinates.items():
            rows, (over_inner, over_outer) = self.rows(r), block[r]
            assert outputs[r].tolist() == dense[0][rows, over_outer].ravel().tolist()
            assert input_gradients[r].tolist() == dense[1][rows, over_inner].ravel().tolist()
            shard = np.split(dense[2][block[r]].ravel(), self.layout.z)[place["z"]]
            assert summed[r].tolist() == shard.tolist()


def random_grid(generator):
    """A grid of at most 36 ranks in a random order, and a layer that it splits evenly (all-reduced buffers too)."""
    gpus = generator.choice([1, 2, 3, 4, 6, 8, 12, 16, 18, 24, 36])
    x, y, z, data = (int(axis[0]) for axis in _one(factorizations(gpus), generator))
    layout = Layout(
        x=x, y=y, z=z, data=data, placement=generator.randrange(len(PLACEMENTS)), micro_batch=generator.choice([1, 2])
    )
    k, n = (gpus * generator.choice([1, 2]) for _ in range(2))
    tokens = x * y * generator.choice([1, 3])
    return layout, (z * data * layout.micro_batch * tokens, k, n), tokens


def _one(grids, generator):
    row = generator.randrange(len(grids[0]))
    return [axis[row : row + 1] for axis in grids]


BYTES = {"weight_gather": 5, "gradient_scatter": 7, "data_reduce": 11, "forward_reduce": 3, "backward_reduce": 3}


@pytest.mark.parametrize("fidelity", ["paper", "flat"])
@pytest.mark.parametrize("transposed", [False, True], ids=["normal", "transposed"])
@pytest.mark.parametrize("part", range(4))
def test_closed_forms_send_the_bytes_that_200_simulated_layers_send(part, transposed, fidelity):
    generator = random.Random(f"{part} {transposed}")  # noqa: S311
    for seed in range(50):
        layout, sizes, tokens = random_grid(generator)
        world = World(layout, sizes, transposed=transposed, seed=seed)
        world.check()
        _, inputs, outputs = sizes
        layer = Linear(name="layer", inputs=inputs, outputs=outputs, transposed=transposed, bias=False)
        model = linears(layer, sequence=tokens)
        batch = layout.z * layout.data * layout.micro_batch
        settings = {"activation_bytes": 3, "weight_bytes": 5, "gradient_bytes": 7, "data_gradient_bytes": 11}
        question = job(model, machine(4), batch=batch, fidelity=fidelity, **settings)
        for collective in of_layers(question, replace(layout, weight_cache=GATHERED_ONCE)):
            sent = max(world.sent[collective.term].values()) * BYTES[collective.term]
            assert collective.calls == 1
            assert collective.total == pytest.approx(sent / collective.link.bandwidth, rel=1e-12, abs=0)


@pytest.mark.parametrize("transposed", [False, True], ids=["normal", "transposed"])
def test_every_group_gets_its_share_of_the_links_that_it_really_uses(transposed):
    """Flat fidelity, where a transposed layer's groups keep their ranks: nodes of 4, all grids of 16 in all orders."""
    where = machine(4, between=1e9)
    question = job(linears(Linear(name="layer", inputs=16, outputs=16, transposed=transposed, bias=False)), where)
    axes = {"forward_reduce": "y", "backward_reduce": "x", "data_reduce": "data"}
    if transposed:
        axes |= {"forward_reduce": "x", "backward_reduce": "y"}
    grids = placed(16, tuple(range(len(PLACEMENTS))))
    for layout in map(grids.take, range(len(grids.x))):
        for collective in of_layers(question, layout):
            lines = groups(layout, axes.get(collective.term, "z"))
            sharers = leaving(lines, 4, 16)
            if lines.shape[1] > 1:
                assert collective.link.bandwidth == (1e9 / sharers if sharers else 300e9)


def test_a_transposed_layer_takes_what_a_normal_one_leaves_and_the_chain_is_the_dense_one():
    layout = Layout(x=2, y=3, z=2, data=1)
    first = World(layout, (12, 12, 24), seed=1)
    _, outputs, _, _ = first.run()
    second = World(layout, (12, 24, 12), transposed=True, seed=2)
    second.inputs = first.inputs @ first.weight
    second.check()
    for rank, output in outputs.items():
        wanted = second.inputs[second.rows(rank), second.part(rank, 24, second.inner)]
        assert output.tolist() == wanted.ravel().tolist()


def leaving(group_rows, devices, gpus):
    """The most groups that share one node's way out: groups with members on the node and members elsewhere."""
    count = np.zeros(-(-gpus // devices), dtype=int)
    for nodes in group_rows // devices:
        touched = np.unique(nodes)
        if len(touched) > 1:
            count[touched] += 1
    return int(count.max())


def shapes(gpus):
    """Every (inner, size) that a job of so many ranks can have."""
    return [(i, size) for i in divisors(gpus) for size in divisors(gpus // i) if size > 1]


def shared(bandwidths, inner, size, gpus):
    """Groups that the rule lets share the bandwidth between nodes; 0 inside a node."""
    if bandwidths.contained(inner=inner, size=size, gpus=gpus):
        return 0
    groups_out = int(sharing(inner=inner, size=size, domain=bandwidths.domain, gpus=gpus))
    found = bandwidths.of_group(inner=inner, size=size, gpus=gpus)
    assert found <= bandwidths.between / groups_out  # less where its members reach too few NICs
    return groups_out


ODD = [(gpus, devices) for gpus in (24, 60, 192, 1000) for devices in (3, 4, 6, 8, 12) if gpus % devices == 0]


@pytest.mark.parametrize(("gpus", "devices"), [(2, 4), (4, 4), (8, 4), (64, 4), (64, 8), (256, 4), (6, 12), *ODD])
def test_case_1_is_exactly_when_no_group_leaves_its_node(gpus, devices):
    bandwidths = Bandwidths.of(machine(devices))
    for inner, size in shapes(gpus):
        lines = groups(Layout(x=inner, y=size, z=gpus // (inner * size), data=1, placement=1), "y")
        stays = leaving(lines, devices, gpus) == 0
        assert bool(bandwidths.contained(inner=inner, size=size, gpus=gpus)) == stays, (inner, size)


@pytest.mark.parametrize(("gpus", "devices"), [(8, 4), (64, 4), (64, 8), (256, 4), (1024, 8)])
def test_case_2_counts_the_groups_that_really_share_a_node_s_way_out_for_powers_of_two(gpus, devices):
    bandwidths = Bandwidths.of(machine(devices, between=1e9))
    for inner, size in shapes(gpus):
        lines = groups(Layout(x=inner, y=size, z=gpus // (inner * size), data=1, placement=1), "y")
        assert shared(bandwidths, inner, size, gpus) == leaving(lines, devices, gpus), (inner, size)


@pytest.mark.parametrize(("gpus", "devices"), ODD)
def test_case_2_is_exact_for_odd_sizes_too_where_blocks_and_nodes_are_aligned(gpus, devices):
    """Elsewhere a node can hold the end of one block and the start of the next, and the rule errs on the safe side."""
    bandwidths = Bandwidths.of(machine(devices, between=1e9))
    for inner, size in shapes(gpus):
        lines = groups(Layout(x=inner, y=size, z=gpus // (inner * size), data=1, placement=1), "y")
        rule, truth = shared(bandwidths, inner, size, gpus), leaving(lines, devices, gpus)
        if gcd(inner * size, devices) in (inner * size, devices):
            assert rule == truth, (inner, size)
        else:
            assert truth <= rule <= 2 * truth, (inner, size)


FEW = [(gpus, devices) for devices in (3, 4, 6, 8, 12, 72) for gpus in (12, 30, 76, 120) if 1 < gpus / devices <= 9]


@pytest.mark.parametrize(("gpus", "devices"), [*FEW, (648, 72), (36, 4)])
def test_in_jobs_of_few_domains_sharers_and_fewest_members_are_exact_however_blocks_lie(gpus, devices):
    bandwidths = Bandwidths.of(machine(devices, between=1e9))
    for inner, size in shapes(gpus):
        if bandwidths.contained(inner=inner, size=size, gpus=gpus):
            continue
        lines = groups(Layout(x=inner, y=size, z=gpus // (inner * size), data=1, placement=1), "y")
        counts = [np.unique(row, return_counts=True)[1] for row in lines // devices]
        shape = {"inner": inner, "size": size, "domain": devices, "gpus": gpus}
        assert int(sharing(**shape)) == leaving(lines, devices, gpus), shape
        assert int(fewest_members(**shape)) == min(int(row.min()) for row in counts if len(row) > 1), shape


@pytest.mark.parametrize("axis", ["x", "y", "z", "data"])
def test_layouts_say_the_stride_that_the_ranks_have(axis):
    grids = placed(24, tuple(range(24)))
    for row in range(len(grids.x)):
        layout = grids.take(row)
        lines = groups(layout, axis)
        assert lines.shape == (24 // layout.size(axis), layout.size(axis))
        assert sorted(lines.ravel().tolist()) == list(range(24))
        if layout.size(axis) > 1:
            assert set(np.diff(lines, axis=1).ravel().tolist()) == {layout.inner(axis)}
