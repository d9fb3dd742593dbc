"""Every command says what it does and shows an example that runs."""

import re
import shlex
import shutil
from pathlib import Path

import pytest

COMMANDS = [
    ("recommend",), ("explain",), ("trace",), ("sweep",), ("job",), ("compare",),
    ("validate",), ("run",), ("dryrun",), ("calibrate",), ("report",),
    ("machines", "list"), ("machines", "show"), ("machines", "check"),
    ("machines", "new"), ("machines", "import"), ("models", "list"), ("models", "show"),
    ("frameworks", "list"), ("frameworks", "show"),
]  # fmt: skip
ON_RANKS = {("machines", "measure")}  # its example takes minutes; tests/launch/test_measure.py runs it
EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
GROUPS = [(), ("machines",), ("models",), ("frameworks",)]


def helped(run, words):
    answer = run(*words, "--help")
    assert (answer.code, answer.err) == (0, "")
    assert answer.out.startswith(f"Usage: {' '.join(('perfmodel', *words))} ")
    return answer.out


def example(text):
    """The words after `Example: perfmodel`, which may go over several lines."""
    found = re.search(r"^ +Example: perfmodel (.*?)\n\s*\n", text, re.MULTILINE | re.DOTALL)
    assert found, text
    return shlex.split(found[1])


def test_all_commands_are_known_here(run):
    listed = {
        (*group, found)
        for group in GROUPS
        for found in re.findall(r"^  (\w+) ", helped(run, group).split("Commands:\n")[1], re.MULTILINE)
    }
    assert listed - set(GROUPS) == set(COMMANDS) | ON_RANKS


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_the_example_of_a_command_runs(run, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(EXAMPLES, tmp_path / "docs" / "examples")
    if words == ("machines", "check"):
        assert run("machines", "new", "--from", "perlmutter", "my-cluster.yaml").code == 0
    arguments = example(helped(run, words))
    assert tuple(arguments[: len(words)]) == words
    answer = run(*arguments)
    assert answer.code == 0
    assert answer.err == "" or words in (("run",), ("calibrate",))  # which say what they are at, and what they wrote
    assert answer.out.strip()


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_every_option_says_what_it_is(run, words):
    text = helped(run, words).split("Options:\n")[1]
    entries = re.split(r"^  (?=--)", text, flags=re.MULTILINE)[1:]
    assert entries
    for entry in entries:
        described = re.sub(r"--[\w-]+|<[^>]*>|\[[^\]]*\]|/", "", entry).split()
        assert len(described) >= 2, entry


@pytest.mark.parametrize("words", GROUPS, ids=lambda words: " ".join(words) or "perfmodel")
def test_a_group_without_a_command_shows_its_help(run, words):
    answer = run(*words)
    assert answer.code == 2
    assert "Commands:" in answer.err + answer.out
    assert "Traceback" not in answer.err


def test_the_version_is_that_of_the_package(run):
    from perfmodel import __version__

    assert run("--version").out == f"{__version__}\n"


def test_options_have_the_same_help_in_every_command(run):
    texts = [helped(run, words).split("Options:\n")[1] for words in (("recommend",), ("explain",))]
    recommend, explain = (
        {entry.split()[0]: entry for entry in re.split(r"^  (?=--)", text, flags=re.MULTILINE)[1:]} for text in texts
    )
    shared = recommend.keys() & explain.keys()
    assert len(shared) > 10
    assert all(recommend[option].split() == explain[option].split() for option in shared)
