"""A grid, or a count of devices, that cannot be: which rule, by which number, and what would work instead."""

import math
import re

import pytest

DIVISION = re.compile(r"(\d+) .* cannot be split evenly by (.*); ([\d or]+) would divide")


def grid_text(grid):
    return "x".join(map(str, grid.values()))


def check_division(reason):
    """The number does not divide, the product is right, and what would divide does."""
    number, product, offers = DIVISION.fullmatch(reason).groups()
    factors, _, total = product.partition(" = ")
    divisor = math.prod(int(size) for size in re.findall(r"\w+ (\d+)", factors))
    assert not total or int(total) == divisor
    assert int(number) % divisor != 0
    assert all(int(number) % int(offer) == 0 for offer in offers.split(" or "))


@pytest.mark.parametrize(
    ("grid", "options", "rules"),
    [
        ("3x1x2x2", {}, {"heads", "kv_heads", "width_x", "weight_shards"}),
        ("64x1x1x1", {}, {"heads", "kv_heads"}),
        ("1x3x2x2", {}, {"width_y", "weight_shards"}),
        ("1x1x3x4", {}, {"weight_shards", "batch"}),
        ("1x1x4x3", {}, {"batch"}),
        ("1x1x64x2", {}, {"batch"}),
        ("1x1x4x2", {"micro_batch": 16, "model": "gpt-tiny"}, {"micro_batch"}),
        ("16x1x1x1", {"model": "llama-3-8b"}, {"kv_heads"}),
        ("1x2x2x1", {"model": "gpt-tiny", "vocabulary_multiple": 50000}, {"vocabulary_padding"}),
        ("1x1x1x4", {}, {"memory"}),
        ("1x1x2x3", {"batch": 6, "model": "gpt-tiny"}, {"whole_nodes"}),
        ("1x1x1x8192", {"batch": 8192, "model": "gpt-tiny"}, {"whole_nodes"}),
        ("3x2x1x1", {"model": "gpt-tiny"}, {"whole_nodes", "heads", "kv_heads", "width_x", "weight_shards"}),
    ],
)
def test_every_broken_rule_is_named_and_the_nearest_grid_works(explain, recommend, grid, options, rules):
    record = explain(grid, **options)
    found = {rejection["rule"]: rejection["reason"] for rejection in record["rejected"]}
    assert set(found) == rules
    for rule, reason in found.items():
        if rule not in ("memory", "whole_nodes", "vocabulary_padding"):
            check_division(reason)
    nearest = record["nearest_grid"]
    if rules == {"vocabulary_padding"}:
        assert nearest is None or nearest != record["grid"]
        return
    fix = ",".join(f"{axis}={size}" for axis, size in nearest.items())
    ranking = recommend(fix=fix, gpus=math.prod(nearest.values()), **options)
    assert ranking["results"][0]["grid"] == nearest


def test_the_nearest_grid_has_as_many_devices_if_any_such_grid_fits(explain):
    assert math.prod(explain("64x1x1x1")["nearest_grid"].values()) == 64
    assert math.prod(explain("1x1x4x3")["nearest_grid"].values()) in (8, 16)  # nothing splits 64 sequences by 3


@pytest.mark.parametrize("grid", ["3x2x2x2", "32x1x1x1", "1x1x1x16", "1x16x3x1"])
def test_the_nearest_grid_changes_the_axes_by_the_least_factors(explain, recommend, grid):
    def distance(sizes):
        return sum(abs(math.log2(size / wanted)) for size, wanted in zip(sizes, map(int, grid.split("x")), strict=True))

    record = explain(grid, model="gpt-20b", batch=48)
    nearest = tuple(record["nearest_grid"].values())
    others = recommend(model="gpt-20b", batch=48, gpus=math.prod(nearest), top=10**6)["results"]
    assert distance(nearest) == min(distance(result["grid"].values()) for result in others)


def test_missing_memory_is_told_in_gib(explain):
    record = explain("1x1x1x4")
    (rejection,) = record["rejected"]
    needs, has, missing = re.findall(r"([\d.]+) GiB", rejection["reason"])
    assert float(has) == pytest.approx(0.93 * 39.5, rel=0.01)
    assert float(needs) == pytest.approx(float(has) + float(missing), rel=0.01)
    assert float(needs) == pytest.approx(record["memory_B"] / 2**30, rel=0.01)
    assert record["memory_B"] > record["memory_capacity_B"] == pytest.approx(0.93 * 39.5 * 2**30)


def test_memory_is_no_reason_where_it_is_ignored(explain):
    assert explain("1x1x1x4", ignore_memory=True)["rejected"] == []


def test_a_grid_that_fits_is_not_rejected(explain):
    record = explain("2x2x2x2")
    assert (record["rejected"], record["nearest_grid"]) == ([], None)


def test_a_rejected_grid_still_shows_its_terms(explain):
    record = explain("3x2x2x2")
    assert record["rejected"]
    assert record["step_time_s"] > 0
    assert record["collectives"]


def nearest_counts(text):
    found = re.search(r"nearest counts that work: ([\d and]+)", text)
    assert found, text
    return [int(count) for count in found[1].split(" and ")]


@pytest.mark.parametrize(
    ("gpus", "options", "rule"),
    [
        (40, {}, "batch leaves none"),
        (1000, {}, "batch leaves none"),
        (4, {"model": "gpt-20b"}, "memory leaves none"),
        (10, {}, "10 devices are not whole nodes of 4 on perlmutter"),
        (7000, {"batch": 6144}, "perlmutter has 6144 devices"),
        (3, {}, "leaves none"),
        (60, {"machine": "aurora", "model": "gpt-20b"}, "leaves none"),
        (192, {"machine": "frontier", "model": "gpt-20b", "batch": 2048}, "batch leaves none"),
        (16, {"fix": "x=8,y=4"}, "fixed_by_user"),
        (64, {"max": "z=2,data=2,x=2,y=2"}, "above_user_maximum"),
        (64, {"micro_batch": 64, "fix": "z=2,data=2"}, "micro_batch leaves none"),
        (32, {"machine": "dgx-h100", "model": "llama-3-405b"}, "memory leaves none"),
        (16, {"machine": "a100-pcie-8x"}, "a100-pcie-8x has 8 devices"),
    ],
)
def test_a_count_that_no_grid_fits_names_the_rule_and_counts_that_work(run, refused, gpus, options, rule):
    asked = {"model": "gpt-5b", "machine": "perlmutter", "batch": 64} | options

    def arguments(count):
        named = [text for key, value in asked.items() for text in (f"--{key.replace('_', '-')}", value)]
        return ("recommend", *named, "--gpus", count)

    if run(*arguments(gpus)).code == 0:
        pytest.fail(f"{gpus} devices work")
    text = refused(*arguments(gpus))
    assert re.search(rule, text), text
    if "no other count nearby works either" in text:
        assert all(run(*arguments(count)).code == 1 for count in (gpus // 2, 2 * gpus))
        return
    counts = nearest_counts(text)
    assert gpus not in counts
    assert len(counts) <= 2
    assert len(counts) == 1 or counts[0] < gpus < counts[1]
    assert all(run(*arguments(count)).code == 0 for count in counts)


@pytest.mark.parametrize(
    ("machine", "gpus", "batch"),
    [("summit", 30, 96), ("perlmutter", 10, 96), ("perlmutter", 7000, 6144), ("frontier", 3, 8), ("aurora", 5, 12)],
)
def test_the_nearest_counts_are_the_nearest(run, refused, machine, gpus, batch):
    def asked(count):
        named = ("--model", "gpt-tiny", "--machine", machine, "--batch", batch, "--vocabulary-multiple", 1)
        return ("recommend", *named, "--fidelity", "flat", "--gpus", count)  # rules know no fidelity

    counts = nearest_counts(refused(*asked(gpus)))
    below, above = counts if len(counts) == 2 else (counts[0], gpus)
    assert below < gpus <= above
    between = [count for count in range(below + 1, above) if run(*asked(count)).code == 0]
    assert between == []


@pytest.mark.parametrize(
    ("question", "gpus", "batch"),
    [
        ("--model qwen2.5-7b --machine dgx-h100", 32749, 32749),
        ("--model gpt-640b --machine frontier --placement any", 32768, 7),
        ("--model gpt-5b --machine dgx-h100", 2147483647, 8),
        ("--model llama-3-405b --machine dgx-h100 --max x=4,z=6", 40, 5040),
        ("--model gpt-20b --machine perlmutter --fix z=7 --micro-batch 3", 60, 42),
    ],
)
def test_no_count_between_the_nearest_counts_works(run, refused, question, gpus, batch):
    asked = ("recommend", *question.split(), "--batch", batch, "--fidelity", "flat", "--gpus")
    counts = nearest_counts(refused(*asked, gpus))
    assert all(run(*asked, count).code == 0 for count in counts)
    numbers = {1, 2, 3, 4, 5, 7, 8, 12, 14, 16, 28, 49, 56, 98, 112, 196, 392, 448, 784, 896}  # and their products
    others = {one * other for one in numbers for other in numbers | {batch * number for number in numbers}}
    low, high = (counts[0] if counts[0] < gpus else 0), (counts[-1] if counts[-1] > gpus else 2**31)
    between = sorted((count for count in others if low < count < high), key=lambda count: abs(count - gpus))[:40]
    assert [count for count in between if run(*asked, count).code == 0] == []


@pytest.mark.parametrize(
    ("grid", "batch", "micro_batch", "steps"),
    [("1x1x1x64", 32, None, 1), ("1x1x4x3", 64, None, 6), ("1x1x2x8", 64, 3, 2)],
)
def test_a_rejected_grid_is_timed_in_whole_steps(explain, grid, batch, micro_batch, steps):
    record = explain(grid, batch=batch, micro_batch=micro_batch, model="gpt-tiny")
    assert record["rejected"]
    assert record["accumulation_steps"] == steps
    assert all(float(entry["calls"]).is_integer() for entry in record["collectives"])


def test_how_much_memory_the_nearest_grid_lacks_is_told(refused):
    text = refused("recommend", "--model", "gpt-20b", "--machine", "perlmutter", "--batch", 64, "--gpus", 4)
    found = re.search(r"\(nearest: (\S+) needs (\S+) GiB, a device has (\S+) GiB: (\S+) GiB are missing\)", text)
    assert found, text
    needs, has, missing = map(float, found.groups()[1:])
    assert math.prod(map(int, found[1].split("x"))) == 4
    assert has == pytest.approx(0.93 * 39.5, rel=0.01)
    assert needs == pytest.approx(has + missing, rel=0.01)


def test_a_batch_smaller_than_the_grid_leaves_tensor_parallel_grids_or_nothing(recommend, refused):
    for result in recommend(batch=2, top=100)["results"]:
        assert result["grid"]["z"] * result["grid"]["data"] <= 2
    text = refused("recommend", "--model", "gpt-tiny", "--machine", "perlmutter", "--batch", 1, "--gpus", 4096)
    assert "batch leaves none" in text
    assert nearest_counts(text)


def test_every_rejected_grid_is_counted_in_the_sentence(refused):
    text = refused("recommend", "--model", "gpt-5b", "--machine", "perlmutter", "--batch", 64, "--gpus", 40)
    searched, counts = re.search(r"of (\d+) grids, rejected by (.*?);", text).groups()
    assert sum(int(count) for count in re.findall(r"\w+ (\d+)", counts)) == int(searched)
