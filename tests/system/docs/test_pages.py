"""README.md and docs/: examples print what the pages show, links lead somewhere, the commands' page is fresh."""

import difflib
import re

import pytest

import examples
import links
from examples import ROOT, pages


def named(page):
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", pages(), ids=named)
def test_examples_print_what_the_page_shows(page):
    shown, real = page.read_text(encoding="utf-8"), examples.renew(page)
    assert "\n".join(difflib.unified_diff(shown.splitlines(), real.splitlines(), "page", "program", lineterm="")) == ""


def test_the_readme_shows_what_its_first_command_prints():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    block = re.search(r"^<!-- run-command -->\n```\w*\n(.*?)^```", readme, re.MULTILINE | re.DOTALL)[1]
    main_job = re.search(r"perfmodel recommend .*", block.replace("\\\n", ""))[0]
    commands = [example.command for example in examples.examples(ROOT / "README.md")]
    assert main_job.split() in [command.replace("\\\n", "").split() for command in commands]


@pytest.mark.parametrize("page", pages(), ids=named)
def test_links_lead_somewhere(page):
    assert links.broken(page) == []


def test_a_broken_link_is_found(tmp_path):
    (tmp_path / "other.md").write_text("# A heading\n")
    page = tmp_path / "page.md"
    page.write_text("[a](other.md#a-heading) [b](other.md#no) [c](none.md) [d](#there)\n# There\n")
    assert links.broken(page) == ["other.md#no", "none.md"]


def test_the_page_of_commands_is_fresh():
    import cli_reference

    assert cli_reference.PAGE.read_text(encoding="utf-8") == cli_reference.page(), "run python tools/cli_reference.py"


def test_every_command_has_help_and_an_example():
    import cli_reference

    for words in cli_reference.commands():
        text = cli_reference.help_text(words)
        assert re.search(r"\n\n  \S", text), f"{words} says nothing about itself"
        assert "Commands:" in text or f"perfmodel {' '.join(words)}" in text.split("\n", 1)[1], f"{words}: no example"
