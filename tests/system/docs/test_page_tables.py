"""Tables in a page are renewed in their places, the rest is kept; a stale page is told by the exit code."""

import sys

import pytest

import page_tables

TABLES = {"one": lambda: page_tables.table(["a", "b"], [["x", "1"]], numbers_right=True), "two": lambda: "2"}
STALE = (
    "before\n<!-- one -->\nold\n<!-- end -->\nbetween\n<!-- two -->\n2\n<!-- end -->\n<!-- other -->\n<!-- end -->\n"
)
FRESH = STALE.replace("old", "| a | b |\n| --- | --: |\n| x | 1 |")


@pytest.fixture
def page(tmp_path):
    (tmp_path / "page.md").write_text(STALE, encoding="utf-8")
    return tmp_path / "page.md"


def test_tables_are_renewed_where_they_stand(page):
    assert page_tables.renewed(page, TABLES) == FRESH


def test_a_stale_page_is_told_and_renewed_when_asked(page, monkeypatch, capsys):
    for options, code, said, left in (
        ([], 1, "stale", STALE),
        (["--write"], 0, "renewed", FRESH),
        ([], 0, "fresh", FRESH),
    ):
        monkeypatch.setattr(sys, "argv", ["tool", *options])
        with pytest.raises(SystemExit) as end:
            page_tables.run(page, TABLES, "")
        assert (int(end.value.code), capsys.readouterr().out) == (code, f"page.md: {said}\n")
        assert page.read_text(encoding="utf-8") == left
