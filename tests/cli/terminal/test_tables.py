"""Tables for people: names from files are plain text, and no number is cut, however small the window."""

import re

import pytest

from perfmodel_cli import printing
from perfmodel_cli.terminal import cells as rendered
from perfmodel_cli.terminal import windows

NAMES = ("'[/bold]'", "'[red]q[/x]'", r'"\x1b[31mx"')
ROWS = "\n".join(f"      - linear: {{name: {name}, inputs: 64, outputs: 64}}" for name in NAMES)
MODEL = f"format: 1\nname: strange\nsequence: 64\nblocks:\n  - name: '[b]block[/b]'\n    layers:\n{ROWS}\n"
PROFILE = r"""base: perlmutter
title: "\x1b[31m[bold]ours"
sources:
  b: {kind: assumed, note: "\x1b]0;x\x07[/b]"}
device:
  memory: 80 GiB [b]
"""


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "strange.yaml"
    path.write_text(MODEL, encoding="utf-8")
    return path


def plainly(answer):
    """What was printed, on one line, once it is certain that a terminal would only show it."""
    assert (answer.code, answer.err) == (0, "")
    assert answer.out.replace("\n", "").isprintable()
    return re.sub(r"\s+", " ", answer.out)


def test_names_that_look_like_markup_or_obey_a_terminal_are_shown_as_they_are(run, model):
    shown = plainly(run("models", "show", model))
    explained = plainly(run("explain", "--model", model, "--machine", "perlmutter", "--batch", 4, "--grid", "1x1x2x2"))
    for text in (shown, explained):
        assert "[/bold]" in text
        assert "[red]q[/x]" in text
        assert r"\x1b[31mx" in text
    assert "[b]block[/b]" in shown
    assert r"\x1b[31mx" in plainly(run("models", "show", model, "--format", "csv"))


def test_a_profile_s_names_are_shown_as_they_are(run, profile):
    path = profile(PROFILE)
    shown = plainly(run("machines", "show", path))
    assert re.search(r"device.memory 80 GiB assumed b ", shown)
    assert r"\x1b[31m[bold]ours" in shown
    assert r"\x1b]0;x\x07[/b]" in shown
    assert r"\x1b[31m[bold]ours" in plainly(run("machines", "check", path))


@pytest.mark.parametrize("columns", [20, 80, 104, 200])
def test_a_ranking_is_as_wide_as_its_numbers_need_and_its_text_as_wide_as_the_window(run, monkeypatch, columns):
    wide = run("recommend", "--model", "gpt-tiny", "--machine", "perlmutter", "--gpus", 16, "--batch", 16).out
    monkeypatch.setattr(windows, "PAGE_WIDTH", columns)
    small = run("recommend", "--model", "gpt-tiny", "--machine", "perlmutter", "--gpus", 16, "--batch", 16).out

    def table(text):
        lines = [line.rstrip() for line in text.splitlines()]
        start = next(number for number, line in enumerate(lines) if line.endswith("MFU"))
        return lines[start : lines.index("", start)]

    assert len(table(wide)) == 3 + 10
    assert table(small) == table(wide)
    assert all(len(line) <= columns for line in small.splitlines()[-4:])


def test_values_as_wide_as_they_come_are_never_cut(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    table = rendered.table_of("grid\nx,y,z,data", *"abcdefgh", wraps=False)
    cells = ["2147483647x1x1x1", *(f"{10.0**power:,.3f}" for power in range(8, 16))]
    rendered.add_row(table, *cells)
    printing.show({}, [], "table", lambda: table)
    assert capsys.readouterr().out.splitlines()[-2].split() == cells
