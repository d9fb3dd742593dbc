"""The profile that measurements become: figures, tables, fits, and what is said where something is missing."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from perfmodel.errors import PerfmodelError
from perfmodel.launch.measuring import hardware, profile, rates
from perfmodel.launch.measuring.fits import fits, of_shape
from perfmodel.launch.measuring.lines import START, Lines
from perfmodel.launch.measuring.points import (
    Beside,
    Collective,
    Issue,
    Product,
    Stream,
    longest,
    plan,
    point_of,
    record_of,
    shapes,
    too_long,
)
from perfmodel.launch.measuring.worker import ranks_a_node
from perfmodel.logs.samples import traffic
from perfmodel.machines import profiles

START_UP, HOP, BETA, GEMM, MEMORY = 8.4e-6, 40e-6, 20e9, 200e12, 1.5e12
GPU = {
    "what": START, "started": "2026-11-30T10:00:00+00:00", "perfmodel_version": "0.1.0", "torch_version": "2.13.0",
    "python_version": "3.11.7", "collectives_version": "2.28.9", "backend": "nccl", "ranks": 8, "devices_per_node": 4,
    "device": "NVIDIA A100-SXM4-40GB", "device_kind": "GPU", "device_memory_B": 40.0 * 2**30, "compute_units": 108,
    "driver": "NVIDIA 580", "resident_B": None, "cpu_cores": 64, "host_memory_B": 256.0 * 2**30,
    "nic_bandwidths": [25e9] * 4, "scheduler": "slurm", "partition": "gpu", "dtypes": "bf16",
}  # fmt: skip


def alpha(size):
    """Start-up of a call: a ring's hops, and what the model counts beside them."""
    return START_UP + (size - 1) * HOP


def true_seconds(point):
    """What a point takes on a machine of known figures."""
    if isinstance(point, Collective):
        return alpha(point.size) + float(traffic(point.operation, point.bytes, point.size)) / BETA
    if isinstance(point, Product):
        return point.flops / GEMM
    return point.moved / MEMORY if isinstance(point, Stream) else 5e-6


def lines(noise=0.0, outliers=0.0, rounds=5, start=GPU):
    """Everything measured on that machine, with noise and with gross outliers."""
    found, random = Lines(starts=[start]), np.random.default_rng(7)
    for point in plan(start["ranks"], start["devices_per_node"], ["bf16"], 2.0**30):
        for number in range(rounds):
            factor = math.exp(noise * random.standard_normal()) * (20 if random.random() < outliers else 1)
            seconds = true_seconds(point) * factor
            sides = {"compute": 1e-3, "send": 8e-4, "seconds": 1.2e-3} if isinstance(point, Beside) else {}
            found.values.setdefault(point, {})[number] = {"seconds": seconds} | sides
    return found


def written(folder, found):
    path = folder / "ours.yaml"
    profile.write(found, path, folder / "ours.measured.jsonl")
    return profiles.load(str(path))


def test_a_machine_of_several_nodes_becomes_a_profile_with_its_figures(tmp_path):
    machine = written(tmp_path, lines())
    assert machine.device.gemm.bf16.value == pytest.approx(GEMM, rel=0.001)
    assert machine.device.memory_bandwidth.value == pytest.approx(MEMORY, rel=0.001)
    assert machine.device.host_time.value == pytest.approx(5e-6)
    assert machine.device.contention.value == pytest.approx(0.25)
    assert machine.device.peak.bf16.value == 312e12  # of the shipped profiles of this device
    assert (machine.node_devices, machine.scheduler.kind, machine.scheduler.partition) == (4, "slurm", "gpu")
    assert machine.fabric.latency.value == pytest.approx(HOP, rel=0.01)
    assert {(entry.inner, entry.size) for entry in machine.bandwidth.inside} == set(shapes(4, 4))
    assert all(entry.bandwidth.value == pytest.approx(BETA, rel=0.01) for entry in machine.bandwidth.inside)
    assert machine.bandwidth.between.value == pytest.approx(BETA, rel=0.01)
    assert machine.network.injection.value == 100e9


def test_tables_hold_the_medians_of_every_shape_on_one_node_and_on_two(tmp_path):
    machine = written(tmp_path, lines(noise=0.05))
    tables = {(one.operation, one.ranks, one.inner): one for one in machine.collectives}
    assert [row.nodes for row in tables["all-reduce", 4, 1].rows] == [1, 2]
    assert [row.nodes for row in tables["all-reduce", 2, 2].rows] == [1, 2]
    assert [row.nodes for row in tables["all-gather", 1, 4].rows] == [2]
    for (operation, ranks, _), table in tables.items():
        for row in table.rows:
            size = ranks * row.nodes
            true = [alpha(size) + float(traffic(operation, sent, size)) / BETA for sent in table.sizes]
            assert row.times == pytest.approx(true, rel=0.15)


def test_start_up_and_bandwidth_are_found_through_noise_and_gross_outliers_which_are_named():
    clean, noisy = fits(lines()), fits(lines(noise=0.1, outliers=0.05))
    for one in clean:
        assert one.alpha == pytest.approx(alpha(one.size), rel=0.01)
        assert one.bandwidth == pytest.approx(BETA, rel=0.01)
        assert not one.outliers
    assert np.median([abs(one.alpha / alpha(one.size) - 1) for one in noisy]) < 0.05
    assert np.median([abs(one.bandwidth / BETA - 1) for one in noisy]) < 0.05
    held = [one.line.beta_interval[0] <= BETA <= one.line.beta_interval[1] for one in noisy]
    assert np.mean(held) > 0.8
    strange = max(noisy, key=lambda one: len(one.outliers))
    assert "off the line: " in strange.words
    assert "in round " in strange.words


def test_a_shape_has_one_bandwidth_for_the_bytes_of_all_three_operations():
    found = lines()
    for point, rounds in found.values.items():
        if isinstance(point, Collective) and point.operation == "all-gather":
            for values in rounds.values():
                values["seconds"] *= 2
    # 1 + 1 + 2 parts of bytes in 2 + 1 + 2 parts of time
    assert of_shape(fits(found), 1, 4) == pytest.approx(BETA * 4 / 5, rel=0.01)


def test_the_largest_call_counts_where_the_line_through_smaller_ones_does_not_tell_it():
    found = lines(noise=0.02)
    for point, rounds in found.values.items():
        if isinstance(point, Collective) and point.bytes == 2.0**30:  # where a cache ends
            for values in rounds.values():
                values["seconds"] *= 3
    one = next(one for one in fits(found) if (one.operation, one.inner, one.size) == ("all-gather", 1, 4))
    assert not one.holds
    assert one.bandwidth == pytest.approx(BETA / 3, rel=0.05)
    assert "of the largest, for which no line holds" in one.words


def test_small_messages_alone_promise_no_bandwidth_that_none_of_them_had():
    found = lines(noise=0.3)
    found.values = {point: values for point, values in found.values.items() if getattr(point, "bytes", 0) <= 4096}
    open_ended = [one for one in fits(found) if not one.holds]
    assert open_ended
    assert all(one.bandwidth < 4096 / START_UP for one in open_ended)


def test_without_a_data_sheet_the_fastest_product_stands_in_for_the_peak(tmp_path):
    machine = written(tmp_path, lines(start=GPU | {"device": "Some CPU"}, noise=0.1))
    assert machine.device.peak.bf16.value >= machine.device.gemm.bf16.value
    assert any("is used as the peak" in note for note in machine.notes)


def test_a_table_ends_where_the_larger_groups_ended(tmp_path):
    found = lines()
    for point in [one for one in found.values if isinstance(one, Collective) and one.size == 8 and one.bytes > 2**20]:
        del found.values[point]
    tables = {(one.operation, one.ranks, one.inner): one for one in written(tmp_path, found).collectives}
    assert tables["all-gather", 4, 1].sizes[-1] == 2**20
    assert tables["all-gather", 2, 1].sizes[-1] == 2**30


@pytest.mark.parametrize(("kind", "said"), [(Stream, "no memory yet"), (Product, "no products in bf16 yet"),
                                            (Collective, "no collective yet")])  # fmt: skip
def test_too_little_for_a_profile_is_said_and_nothing_is_written(tmp_path, kind, said):
    found = lines(rounds=1)
    found.values = {point: values for point, values in found.values.items() if not isinstance(point, kind)}
    with pytest.raises(PerfmodelError, match=said):
        written(tmp_path, found)
    assert not list(tmp_path.iterdir())


def test_a_device_alone_needs_no_collectives(tmp_path):
    found = lines(start=GPU | {"ranks": 1, "devices_per_node": 1})
    assert not any(isinstance(point, (Collective, Beside)) for point in found.values)
    machine = written(tmp_path, found)
    assert (machine.fabric.topology, machine.network.topology, machine.collectives) == ("none", "none", ())


def test_more_ranks_than_threads_are_still_a_profile(tmp_path):
    machine = written(tmp_path, lines(start=GPU | {"cpu_cores": 2, "ranks": 16, "devices_per_node": 16}))
    assert machine.scheduler.tasks_per_node == 1


def test_side_by_side_that_costs_nothing_or_everything_stays_within_what_a_profile_takes():
    found = lines(rounds=1)
    for together, share in ((0.9e-3, 0.001), (9e-3, 1.0)):
        for point in [one for one in found.values if isinstance(one, Beside)]:
            found.values[point] = {0: {"compute": 1e-3, "send": 8e-4, "seconds": together}}
        assert rates.contention(found) == share


def test_sizes_stop_where_the_next_call_would_take_too_long_but_small_messages_never_do():
    small, large, larger = (
        Collective(operation="all-gather", inner=1, size=2, bytes=size) for size in (2.0**12, 2.0**22, 2.0**24)
    )
    seconds = {small: 1.0, large: 0.1}
    assert not too_long(Collective(operation="all-gather", inner=1, size=2, bytes=2.0**14), seconds, 0.5)
    assert not too_long(larger, {large: 0.1}, 0.5)
    assert too_long(larger, {large: 0.2}, 0.5)
    assert not too_long(Collective(operation="all-gather", inner=2, size=2, bytes=2.0**24), {large: 0.2}, 0.5)
    cube = [Product(dtype="fp32", mode="nn", form="square", m=width, n=width, k=width) for width in (128, 256)]
    assert too_long(cube[1], {cube[0]: 0.1}, 0.7)
    assert not too_long(cube[1], {cube[0]: 0.1}, 0.9)
    assert not too_long(Issue(), {Issue(): 1.0}, 0.5)


def test_a_call_may_take_what_lets_all_rounds_of_all_series_fit_into_the_budget():
    points = plan(8, 8, ["fp32"], 2.0**30)
    limit, series = longest(300.0, 5, points), {point.series for point in points}
    growing = sum(limit * sum(1 / 4**place for place in range(10)) for _ in series)
    assert growing * 5 < 300.0 < growing * 50


@pytest.mark.parametrize("node", [1, 2, 4, 6, 8, 12])
@pytest.mark.parametrize("nodes", [1, 2, 3, 4])
def test_groups_of_every_shape_divide_the_ranks_and_leave_no_device_idle(node, nodes):
    for inner, size in shapes(node * nodes, node):
        assert (node * nodes) % (inner * size) == 0
        assert node % (inner * size) == 0 or (inner * size) % node == 0
    assert len(set(shapes(node * nodes, node))) == len(shapes(node * nodes, node))


def test_a_point_is_the_same_after_it_was_written_down():
    for point in plan(8, 4, ["fp32", "bf16"], 2.0**20):
        assert point_of(record_of(point)) == point


def test_ranks_that_are_not_spread_evenly_are_refused():
    for names in (["a", "a", "b"], ["a", "b", "a", "b"]):
        with pytest.raises(PerfmodelError, match="start as many on each"):
            ranks_a_node(names)


def test_tools_that_are_not_there_are_no_error(monkeypatch, tmp_path):
    before = hardware.cores()
    monkeypatch.setenv("PATH", str(tmp_path))
    assert 1 <= hardware.cores() <= 4 * before
    assert hardware.host_memory() > 2**28
    assert isinstance(hardware.network_cards(), list)


def test_a_tool_that_says_nonsense_or_fails_is_passed_over(monkeypatch, tmp_path):
    for name, text in (("lscpu", "exit 3"), ("nvidia-smi", "echo N/A, N/A"), ("rocm-smi", "echo ?")):
        Path(tmp_path, name).write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
        Path(tmp_path, name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    assert hardware.cores() >= 1
    assert hardware._listed_by_nvidia("NVIDIA A100") == {}
    assert hardware._amd_driver() == ""


def test_the_driver_names_the_memory_that_it_offers(monkeypatch, tmp_path):
    Path(tmp_path, "nvidia-smi").write_text("#!/bin/sh\necho 'NVIDIA H200, 143771, 570.1'\n", encoding="utf-8")
    Path(tmp_path, "nvidia-smi").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")
    assert hardware._listed_by_nvidia("NVIDIA H200") == {"memory": 143771 * 2**20, "driver": "NVIDIA 570.1"}


@pytest.mark.parametrize(
    "damage",
    [{"values": 3}, {"values": {}}, {"round": "x"}, {"values": {"seconds": 0}}, {"values": {"seconds": float("nan")}}],
)
def test_a_damaged_line_is_named_and_the_others_are_kept(tmp_path, damage):
    point = Collective(operation="all-reduce", inner=1, size=2, bytes=1024.0)
    good = {"status": "ok", **record_of(point), "round": 0, "values": {"seconds": 1e-3}}
    path = tmp_path / "here.measured.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in (GPU | {"status": "ok"}, good, good | damage)))
    found = Lines.read(path)
    assert (found.count, found.median(point)) == (1, 1e-3)
    assert [problem.split(": ")[0].rpartition(":")[2] for problem in found.problems] == ["3"]
