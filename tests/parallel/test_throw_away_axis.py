"""An axis is added in one place: a copy of the program with one more line in the table of axes searches and prints it.

The throw-away axis shares the batch and shards nothing, so that it does what data does, under another name.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from perfmodel.parallel.axes import AXES

ROOT = Path(__file__).parents[2]
LINE = '    replica: Count = field(default=1, metadata=_axis(title="replica", axonn=4, shares_batch=True))\n'
JOB = ("--model", "gpt-5b", "--machine", "perlmutter", "--batch", "64")

pytestmark = pytest.mark.checkout


@pytest.fixture(scope="module")
def with_one_more(tmp_path_factory):
    """Runs a command of the copy that has the axis."""
    return program(tmp_path_factory.mktemp("one more"), LINE)


@pytest.fixture(scope="module")
def as_it_is(tmp_path_factory):
    """Runs the same command of a copy without it."""
    return program(tmp_path_factory.mktemp("as it is"), "")


def program(folder, line):
    for name in ("perfmodel", "cli", "machine_profiles"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    table = folder / "perfmodel" / "parallel" / "axes.py"
    text = table.read_text(encoding="utf-8")
    before, last, after = text.partition(next(each for each in text.splitlines(True) if each.startswith("    data: ")))
    table.write_text(before + last + line + after, encoding="utf-8")

    def run(*words):
        environment = {**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{folder / 'cli'}", "COLUMNS": "200"}
        done = subprocess.run(
            [sys.executable, "-m", "perfmodel_cli", *words],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def record(run, *words):
    return json.loads(run(*words, *JOB, "--format", "json"))


def results(run, *words):
    return record(run, "recommend", "--gpus", "32", "--top", "200", *words)["results"]


def test_it_is_in_grids_search_and_json(with_one_more, as_it_is):
    ask = ("recommend", "--gpus", "32", "--top", "200")
    more, before = record(with_one_more, *ask), record(as_it_is, *ask)
    assert all(list(result["grid"]) == [*AXES, "replica"] for result in more["results"])
    assert more["searched"] == 126 > before["searched"] == 56  # 32 = 2^5, dealt to five axes and to four
    assert more["feasible"] > before["feasible"]
    assert {result["grid"]["replica"] for result in more["results"]} > {1, 2}
    assert more["results"][0]["placement"] == ["y", "x", "z", "data", "replica"]


def test_it_is_in_the_table_and_in_the_help(with_one_more):
    table = with_one_more("recommend", "--gpus", "32", *JOB)
    assert "x,y,z,data,replica" in table
    assert "1x1x16x2x1" in table
    assert "Ranks order, neighbours first: y, x, z, data, replica" in table
    assert "Gx x Gy x Gz x Gdata x Greplica" in with_one_more("explain", "--help")


def test_it_is_fixed_and_bounded_by_its_name(with_one_more):
    assert {result["grid"]["replica"] for result in results(with_one_more, "--fix", "replica=2")} == {2}
    assert {result["grid"]["replica"] for result in results(with_one_more, "--max", "replica=2")} == {1, 2}


def test_a_grid_of_five_sizes_is_explained_and_its_gradients_summed_over_both(with_one_more):
    found = record(with_one_more, "explain", "--grid", "2x1x4x2x2")
    assert found["grid"] == {"x": 2, "y": 1, "z": 4, "data": 2, "replica": 2}
    sums = [one for one in found["collectives"] if one["term"] == "data_reduce"]
    assert {(one["axis"], one["group_size"], one["stride"]) for one in sums} == {("data+replica", 4, 8)}
    assert sums[0]["ranks"] == "0,8,16,24"


def without_names(result):
    """A result with its axes apart, and ranked by itself: equal times are ordered by the axes."""
    rest = {key: value for key, value in result.items() if key not in ("grid", "placement", "rank")}
    return result["grid"], rest


def test_of_size_one_it_changes_nothing(with_one_more, as_it_is):
    more, before = results(with_one_more, "--fix", "replica=1"), results(as_it_is)
    assert len(more) == len(before) > 20
    for mine, theirs in zip(more, before, strict=True):
        (grid, told), (other, same) = without_names(mine), without_names(theirs)
        assert grid == {**other, "replica": 1}
        assert told == same


def test_it_costs_what_data_costs(with_one_more):
    as_data, as_replica = (
        {tuple(grid[axis] for axis in "xyz"): told for grid, told in map(without_names, found)}
        for found in (
            results(with_one_more, "--fix", "replica=1,data=2"),
            results(with_one_more, "--fix", "replica=2,data=1"),
        )
    )
    assert as_data == as_replica
    assert as_data


def test_the_launcher_sums_over_it_what_the_model_says(with_one_more):
    pytest.importorskip("torch")
    tiny = ("--model", "gpt-tiny", "--machine", "perlmutter", "--batch", "16")
    found = json.loads(with_one_more("dryrun", "--grid", "2x1x2x2x2", "--gpus", "16", *tiny, "--format", "json"))
    sums = [one for one in found["collectives"] if (one["operation"], one["axis"]) == ("all-reduce", "data+replica")]
    assert [(one["group_size"], one["sent_B"]) for one in sums] == [(4, pytest.approx(sums[0]["model_sent_B"]))]
    assert sums[0]["sent_B"] > 0
