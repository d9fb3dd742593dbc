"""Samples as tables: which groups a machine's tables hold, which results count, which sizes are left."""

import dataclasses

import pytest

from perfmodel.errors import PerfmodelError
from perfmodel.logs.combined import combine
from perfmodel.logs.samples import Log, RankGroup, Sample
from perfmodel.machines import profiles
from perfmodel.machines.collective_times import TimingRow
from perfmodel.machines.overlay import over, source, source_key, text

PERLMUTTER, FRONTIER, PCIE, NVL72 = (
    profiles.load(name) for name in ("perlmutter", "frontier", "a100-pcie-8x", "gb200-nvl72")
)


def samples(group, times, *, operation="all-gather", place="", line=1):
    return [
        Sample(operation=operation, group=group, size=size, time=time, file="a.log", line=line + number, place=place)
        for number, (size, time) in enumerate(times.items())
    ]


def combined(*lists, machine=PERLMUTTER, buffers="as-called"):
    return combine([Log(tuple(each), ()) for each in lists], machine, "LOGS", buffers)


TIMES = {2.0**20: 1e-3, 2.0**21: 2e-3, 2.0**22: 4e-3}


def test_the_median_of_several_logs_counts_and_the_spread_is_told():
    group = RankGroup(nodes=2, ranks=4)
    found = combined(*[samples(group, {size: time * factor for size, time in TIMES.items()}) for factor in (1, 1.1, 3)])
    assert found.tables[0].rows == (TimingRow(2, tuple(pytest.approx(time * 1.1) for time in TIMES.values())),)
    assert found.parts[0].spread == pytest.approx(2 / 1.1)
    assert found.used == 9


@pytest.mark.parametrize(("buffers", "factor"), [("as-called", 2), ("out-of-place", 1), ("in-place", 2), ("both", 1.5)])
def test_an_all_reduce_counts_in_place_unless_told(buffers, factor):
    twice = {size: 2 * time for size, time in TIMES.items()}
    found = combined(
        samples(RankGroup(nodes=2, ranks=4), TIMES, operation="all-reduce", place="out-of-place"),
        samples(RankGroup(nodes=2, ranks=4), twice, operation="all-reduce", place="in-place"),
        buffers=buffers,
    )
    assert found.tables[0].rows[0].times == pytest.approx([factor * time for time in TIMES.values()])


def test_numbers_of_nodes_share_a_table_of_the_sizes_that_all_have():
    found = combined(
        samples(RankGroup(nodes=2, ranks=4), TIMES),
        samples(RankGroup(nodes=4, ranks=4), {**TIMES, 2.0**23: 9e-3}, line=50),
    )
    (table,) = found.tables
    assert [row.nodes for row in table.rows] == [2, 4]
    assert table.sizes == tuple(TIMES)
    assert "the size 8 MiB is not in the table" in str(found.problems[0])


def test_a_number_of_nodes_with_sizes_of_its_own_is_left_out():
    found = combined(
        samples(RankGroup(nodes=2, ranks=4), TIMES),
        samples(RankGroup(nodes=4, ranks=4), {3.0e6: 1e-3, 4.0e6: 1e-3}, line=50),
    )
    assert [row.nodes for row in found.tables[0].rows] == [2]
    assert found.problems[0].rows == 2


@pytest.mark.parametrize(
    ("machine", "group", "reason"),
    [
        (PERLMUTTER, RankGroup(nodes=2, ranks=2), "no step leaves some idle"),
        (PERLMUTTER, RankGroup(nodes=2, ranks=1), "no step leaves some idle"),
        (PERLMUTTER, RankGroup(nodes=1, ranks=3), "does not divide the 4 devices"),
        (PERLMUTTER, RankGroup(nodes=1, ranks=8), "does not divide the 4 devices"),
        (FRONTIER, RankGroup(nodes=1, ranks=2), "the other devices of the node idled, and the irregular fabric"),
        (PCIE, RankGroup(nodes=1, ranks=4), "the shared fabric"),
        (NVL72, RankGroup(nodes=36, ranks=4), "the log does not say"),
    ],
)
def test_a_group_that_no_step_has_is_left_out_and_told(machine, group, reason):
    found = combined(samples(group, TIMES), machine=machine)
    assert found.tables == ()
    assert {problem.rows for problem in found.problems} == {1}
    assert reason in str(found.problems[0])


@pytest.mark.parametrize(
    ("machine", "group", "ranks"),
    [
        (PERLMUTTER, RankGroup(nodes=1, ranks=2), 2),  # a mesh: pairs share no link
        (PERLMUTTER, RankGroup(nodes=8, ranks=4), 4),
        (PERLMUTTER, RankGroup(nodes=8, ranks=1, inner=4, idle=False), 1),
        (FRONTIER, RankGroup(nodes=1, ranks=2, idle=False), 2),
        (PCIE, RankGroup(nodes=1, ranks=8), 8),
        (NVL72, RankGroup(nodes=18, ranks=4), 72),  # nodes of one fabric are one
    ],
)
def test_a_group_as_steps_have_it_makes_a_table_that_the_profile_takes(machine, group, ranks):
    found = combined(samples(group, TIMES), machine=machine)
    assert found.problems == ()
    assert found.tables[0].ranks == ranks
    key = source_key(machine)
    tables = [dataclasses.replace(table, source=key) for table in found.tables]
    made = over(machine, tables, "mine", key, source(["a.log"], [], "note", "2026-11"))
    assert made.collectives == tuple(tables)


def test_a_written_profile_reads_as_it_was_made_and_keeps_the_tables_of_its_base(tmp_path):
    group = RankGroup(nodes=2, ranks=4)
    file, later = tmp_path / "mine.yaml", tmp_path / "later.yaml"
    of = source([f"{number}.log" for number in range(9)], ['NCCL version 2.19.3+cuda12.3 "a: b"'], "note", "2026-11")
    first = over(PERLMUTTER, combined(samples(group, TIMES)).tables, "mine", "LOGS", of)
    file.write_text(text(first, "perlmutter", "LOGS", file), encoding="utf-8")
    read = profiles.load(str(file))
    assert (read.collectives, read.sources["LOGS"], read.title) == (first.collectives, of, first.title)
    key = source_key(read)
    reduced = combine([Log(tuple(samples(group, TIMES, operation="all-reduce")), ())], read, key)
    second = over(read, reduced.tables, "later", key, of)
    later.write_text(text(second, str(file), key, later), encoding="utf-8")
    assert [table.operation for table in profiles.load(str(later)).collectives] == ["all-gather", "all-reduce"]


def test_a_name_that_no_profile_can_have_is_refused():
    of = source(["a.log"], [], "note", "2026-11")
    with pytest.raises(PerfmodelError, match="is not made of letters"):
        over(PERLMUTTER, combined(samples(RankGroup(nodes=2, ranks=4), TIMES)).tables, "my cluster", "LOGS", of)
