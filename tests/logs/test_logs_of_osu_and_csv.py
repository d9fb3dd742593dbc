"""Text of OSU micro-benchmarks, and CSV: sizes, units, groups, and what is wrong."""

import re

import pytest

from perfmodel.errors import PerfmodelError
from perfmodel.logs import osu, timings_csv
from perfmodel.logs.samples import RankGroup, Told
from synthetic_logs import SIZES, Truth
from synthetic_logs import osu as text_of

GATHER = Truth("all_gather", 2, 4, 40e-6, 70e9)
SCATTER = Truth("reduce_scatter", 4, 4, 45e-6, 65e9)
REDUCE = Truth("all_reduce", 4, 4, 90e-6, 50e9)


def read(text, **told):
    return osu.read(text, "o.log", Told(**told))


def csv(text, **told):
    return timings_csv.read(text, "t.csv", Told(**told))


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("truth", [GATHER, SCATTER, REDUCE])
def test_sizes_are_those_of_the_tables_and_times_the_means(truth, full):
    log = read(text_of(truth, full=full))
    assert log.problems == ()
    each = truth.size if truth.operation == "all_gather" else 1  # osu_allgather counts one rank's part
    assert [sample.size for sample in log.samples] == [size * each for size in SIZES]
    for sample in log.samples:
        assert sample.time == pytest.approx(truth.time(sample.size), rel=5e-4)
        assert sample.group == RankGroup(nodes=truth.nodes, ranks=truth.ranks)


def test_the_ranks_are_the_launchers_or_the_users_and_must_agree():
    bare = text_of(GATHER, launcher=False)
    assert "say so with --nodes and --ranks-per-node" in str(read(bare).problems[0])
    assert read(bare).problems[0].rows == len(SIZES)
    assert len(read(bare, nodes=2, ranks=4).samples) == len(SIZES)
    assert read(text_of(GATHER), nodes=1, ranks=8).samples == ()


def test_other_benchmarks_and_bad_rows_are_named():
    text = text_of(REDUCE, full=True) + "# OSU MPI Bandwidth Test v7.4\n# Size      Bandwidth (MB/s)\n1   2.32\n"
    lines = text.split("\n")
    lines[6] = lines[6].replace(lines[6].split()[1], "nan", 1)
    lines[7] = " ".join(lines[7].split()[:2])
    lines[8] = lines[8].replace(lines[8].split()[1], "1e5", 1)
    log = read("\n".join(lines))
    said = [str(problem) for problem in log.problems]
    assert "o.log:7: 'nan' is no number" in said
    assert "o.log:8: the row has 2 columns, wanted 4 or more: it is cut" in said
    assert any(each.startswith("o.log:9: the mean 100000 is not between") for each in said)
    assert any("the run is of Bandwidth" in each for each in said)
    assert len(log.samples) == len(SIZES) - 3


def test_a_failed_validation_is_a_wrong_result():
    title = "# OSU MPI Allreduce Latency Test v7.5\n# Size       Avg Latency(us)        Validation\n"
    text = f"{title}1024   5.0   Pass\n2048  6.0  Fail\n"
    log = read(text, nodes=2, ranks=2)
    assert [sample.size for sample in log.samples] == [1024]
    assert "Fail" in str(log.problems[0])


def test_equal_blocks_of_a_reduce_scatter_have_the_size_of_the_whole_array():
    text = text_of(SCATTER).replace("Reduce_scatter Latency", "Reduce_scatter_block Latency")
    assert read(text).samples == read(text_of(SCATTER)).samples


@pytest.mark.parametrize(("datatype", "kept"), [("MPI_CHAR", [4096, 2**20]), ("MPI_INT", [2**20])])
def test_a_block_that_leaves_much_of_the_array_over_is_named(datatype, kept):
    title = f"# OSU MPI-CUDA Reduce_scatter_block Latency Test v7.5\n# Datatype: {datatype}.\n"
    text = f"{title}# Size       Avg Latency(us)\n16     4.0\n4096   5.0\n1048576   60.0\n"
    log = read(text, nodes=2, ranks=12)
    assert [sample.size for sample in log.samples] == kept
    assert "24 equal blocks of elements of" in str(log.problems[0])
    assert [problem.line for problem in log.problems] == [4, 5][: 3 - len(kept)]


@pytest.mark.parametrize(
    "title",
    [
        "# OSU MPI-CUDA Non-blocking Allreduce Latency Test v7.5",
        "# OSU MPI-ROCM Allreduce Persistent Latency Test v7.5",
        "# OSU MPI Non-blocking Reduce_scatter_block Latency Test v7.5",
        "# OSU MPI Reduce_scatter_block Persistent Latency Test v7.5",
        "# OSU MPI Allgatherv Latency Test v7.5",
        "# OSU MPI Neighborhood Allgather Latency Test v7.5",
        "# OMB Python MPI Allreduce Test",
    ],
)
def test_variants_of_the_three_operations_are_refused_by_name_behind_a_run_that_is_none(title):
    text = text_of(REDUCE) + f"{title}\n# Size       Avg Latency(us)\n1024   5.0\n2048   6.0\n"
    log = read(text, operation="all-reduce")
    assert len(log.samples) == len(SIZES)
    assert [problem.rows for problem in log.problems] == [2]
    assert re.search("the run is of (.*); tables are of", str(log.problems[0]))[1] in title


def test_csv_takes_units_of_the_heading_or_of_the_value():
    log = csv("operation,nodes,ranks,size (MiB),time_us\nAllReduce,2,8,1,50\nall_gather,2,8,2,60 us\n")
    assert [(sample.operation, sample.size, sample.time) for sample in log.samples] == [
        ("all-reduce", 2.0**20, pytest.approx(50e-6)), ("all-gather", 2.0**21, pytest.approx(60e-6)),
    ]  # fmt: skip
    assert {sample.group for sample in log.samples} == {RankGroup(nodes=2, ranks=4)}


def test_bandwidths_are_turned_into_times_by_their_definition():
    log = csv("operation,nodes,ranks_per_node,size,busbw\nall-gather,1,4,4 GB,100 GB/s\nall-reduce,1,4,4 GB,100 GB/s\n")
    assert [sample.time for sample in log.samples] == pytest.approx([0.03, 0.06])
    assert csv("ranks,size,algbw\n4,4 GB,100 GB/s\n", operation="all-reduce").samples[0].time == pytest.approx(0.04)


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("all-gather,2,8,1 MiB,50 ms,", "is not in us"),
        ("all-gather,2,8,1 MB/s,50,", "wanted B"),
        ("all-gather,2,8,1024,50,", "has no unit"),
        ("all-gather,2,8,1 MiB,0,", "no positive number"),
        ("all-gather,2,8,1 MiB,-4,", "no positive number"),
        ("all-gather,2,8,1 MiB,nan,", "is not in us"),
        ("all-gather,2,8,1 MiB,,", "neither time nor bandwidth"),
        ("all-gather,2,8,1 MiB,50,90 GB/s", "they do not agree"),
        ("all-gather,2,7,1 MiB,50,", "the same number on each"),
        ("all-gather,two,8,1 MiB,50,", "wanted a whole number"),
        ("broadcast,2,8,1 MiB,50,", "tables are of"),
        ("all-gather,2,8,1 MiB,50,,,,", "the row has"),
        ("all-gather,1,1,1 MiB,50,", "no group"),
        ("all-gather,2,8,2 MiB,60,", "the same row as in line 2"),
    ],
)
def test_a_bad_row_of_a_csv_is_named_with_its_line(row, reason):
    log = csv(
        f"operation,nodes,ranks,size,time (us),busbw\nall-gather,2,8,2 MiB,60,\n{row}\nall-gather,2,8,4 MiB,70,\n"
    )
    assert [sample.size for sample in log.samples] == [2.0**21, 2.0**22]
    assert len(log.problems) == 1
    assert str(log.problems[0]).startswith("t.csv:3: ")
    assert reason in str(log.problems[0])


@pytest.mark.parametrize(
    "heading", ["operation,nodes,ranks,size", "operation,ranks,size,time,tiem", "ranks,size,time,time"]
)
def test_a_csv_without_its_columns_is_refused(heading):
    with pytest.raises(PerfmodelError, match=r"t\.csv:1: "):
        csv(f"{heading}\n1,2,3,4\n")
