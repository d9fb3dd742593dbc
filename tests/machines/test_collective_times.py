"""Tables of measured collectives in a profile: what they say is read, and each slip is told with its line."""

import re
from dataclasses import replace

import pytest

from machines import GOLDEN, job
from perfmodel.errors import FileProblems
from perfmodel.machines import profiles, template
from perfmodel.parallel.layout import Layout
from perfmodel.traffic.per_step import communication_time
from perfmodel.units import parse

FILE = GOLDEN / "perlmutter-measured.yaml"
TEXT = FILE.read_text(encoding="utf-8")
FIRST = "{nodes: 4, times: [0.22 ms, "
LAST = "10.84 ms, 18.55 ms, 26.56 ms]}"

# What is changed, how that is told, and the text at the start of whose line.
BROKEN = [
    ("0.22 ms, 0.35 ms", "0.22 ms", "the row of 4 nodes has 5 times for 6 sizes", FIRST[:9]),
    ("0.22 ms, 0.35", "0.22 ms, 0.3 ms, 0.35", "the row of 4 nodes has 7 times for 6 sizes", FIRST[:9]),
    ("0.22 ms", "0 ms", "'0 ms' must be greater than 0", FIRST[:9]),
    ("0.22 ms", "-1 ms", "'-1 ms' must be greater than 0", FIRST[:9]),
    ("0.22 ms", "0.22", "'0.22' is in no unit, wanted s", FIRST[:9]),
    ("0.22 ms", "0.22 ns", "'0.22 ns' is not between 100 ns and 1000 s", FIRST[:9]),
    ("0.22 ms", "nan", "'nan' is not a number with a unit", FIRST[:9]),
    ("[1 MiB, 4 MiB, 16", "[0 MiB, 4 MiB, 16", "'0 MiB' must be greater than 0", "sizes: [0 MiB"),
    ("[1 MiB, 4 MiB, 16", "[1 MiB/s, 4 MiB, 16", "'1 MiB/s' is in B/s, wanted B", "sizes: [1 MiB/s"),
    ("[1 MiB, 4 MiB, 16", "[4 MiB, 1 MiB, 16", "the size 1 MiB comes after 4 MiB", "sizes: [4 MiB"),
    ("[1 MiB, 4 MiB, 16", "[4 MiB, 4 MiB, 16", "the size 4 MiB comes after 4 MiB", "sizes: [4 MiB"),
    ("[1 MiB, 256 MiB]", "[256 MiB]", "1 sizes, wanted two or more", "sizes: [256 MiB]"),
    ("nodes: 16,", "nodes: 4,", "the row of 4 nodes comes after 4; wanted each once", "{nodes: 4, times: [0.53"),
    ("nodes: 16,", "nodes: 65,", "the row of 64 nodes comes after 65", "{nodes: 64,"),
    ("nodes: 4,", "nodes: 0,", "4 ranks on each of 0 nodes are no group", "{nodes: 0,"),
    ("nodes: 4,", "nodes: 4.5,", "'4.5' is not a whole number", "{nodes: 4.5,"),
    ("operation: all-gather", "operation: all-to-all", "'all-to-all' is none of all-gather,", "operation: all-to-all"),
    ("ranks: 4", "ranks: 0", "a group of 0 ranks per node, stride 1", "operation: all-gather"),
    ("    source: PCCL\n", "", "missing source", "operation: all-gather"),
    ("    source: PCCL\n", "    source: CCL\n", "names the source CCL, which the file does not list", "source: CCL"),
    ("    ranks: 4\n", "    ranks: 4\n    stride: 1\n", "unknown key stride", "stride: 1"),
    (
        "ranks: 4",
        "ranks: 2",
        "2 ranks per node, stride 1: in several nodes, ranks times stride must be the 4",
        "operation:",
    ),
    ("ranks: 4", "ranks: 8", "8 ranks per node, stride 1: in several nodes, ranks times stride must be", "operation:"),
    (
        "    inner: 2\n",
        "    inner: 3\n",
        "with 2 ranks per node, stride 3 does not divide the 4",
        "all-reduce\n    ranks: 2\n    in",
    ),
    (
        "    inner: 2\n",
        "",
        "the all-reduce of 2 ranks per node, stride 1 is given twice",
        "all-reduce\n    ranks: 2\n    source: INVENTED\n    sizes: [1 ",
    ),
]


@pytest.mark.parametrize(("old", "new", "message", "place"), BROKEN, ids=[case[2][:40] for case in BROKEN])
def test_a_slip_in_a_table_is_told_with_its_line(tmp_path, old, new, message, place):
    assert old in TEXT
    text = TEXT.replace(old, new, 1)
    file = tmp_path / "broken.yaml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(FileProblems) as caught:
        profiles.load_file(file)
    problem = next(problem for problem in caught.value.problems if message in problem)
    line = int(re.match(rf"{re.escape(str(file))}:(\d+): ", problem)[1])
    assert line == text[: text.index(place)].count("\n") + 1


def test_a_table_without_rows_is_told_at_its_rows(tmp_path):
    text = TEXT[: TEXT.index("    rows:\n")] + "    rows: []\n"
    file = tmp_path / "broken.yaml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(FileProblems, match=f":{text.count(chr(10))}: no row of times, wanted one or more"):
        profiles.load_file(file)


def test_a_table_is_read_as_written():
    first = profiles.load_file(FILE).collectives[0]
    assert (first.operation, first.ranks, first.inner, first.source) == ("all-gather", 4, 1, "PCCL")
    assert first.sizes == tuple(parse(size, "B") for size in ("1 MiB", "4 MiB", "16 MiB", "64 MiB", "256 MiB", "1 GiB"))
    assert [row.nodes for row in first.rows] == [4, 16, 64, 256]
    assert first.rows[1].times[0] == parse("0.53 ms", "s")


def test_a_profile_based_on_one_with_tables_has_them_unless_it_says_otherwise(tmp_path):
    (tmp_path / "perlmutter-measured.yaml").write_text(TEXT, encoding="utf-8")
    file = tmp_path / "mine.yaml"
    head = "base: perlmutter-measured\nname: mine\n"
    for own, count in (("", 3), ("collectives: []\n", 0)):
        file.write_text(head + own, encoding="utf-8")
        assert len(profiles.load_file(file).collectives) == count


def test_a_template_made_from_a_profile_with_tables_reads_back_the_same(tmp_path):
    file = tmp_path / "ours.yaml"
    file.write_text(template.template(str(FILE), "ours"), encoding="utf-8")
    assert profiles.load_file(file) == replace(profiles.load_file(FILE), name="ours", base="")


def test_tables_count_at_full_fidelity_only():
    with_tables, without = profiles.load_file(FILE), profiles.load("perlmutter")
    for fidelity, same in (("paper", True), ("flat", True), ("full", False)):
        sent = [
            communication_time(job(where=where, fidelity=fidelity), Layout(x=1, y=1, z=16, data=1))
            for where in (with_tables, without)
        ]
        assert (sent[0] == sent[1]) is same, fidelity
