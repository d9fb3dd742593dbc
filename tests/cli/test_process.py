"""The program as a process of its own: what it imports, that it stays off the network, pipes that close, full disks."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

RECOMMEND = ("recommend", "--model", "gpt-5b", "--machine", "perlmutter", "--gpus", "16", "--batch", "64")
EXPLAIN = ("explain", "--grid", "1x2x4x2", "--model", "llama-3-8b", "--machine", "frontier", "--batch", "64")
COMMANDS = (RECOMMEND, EXPLAIN, ("machines", "show", "perlmutter"), ("models", "list"))
PROGRAM = (sys.executable, "-m", "perfmodel_cli")


def python(code, *arguments, **options):
    """Run code in a new interpreter with the program's arguments."""
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)], capture_output=True, text=True, check=False, **options
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def shell(command, **environment):
    """Run a line of bash, in which $PERFMODEL is the program; exit codes of a pipe's parts, and standard error."""
    line = f'{command}; echo "${{PIPESTATUS[@]}}" >&3'
    with subprocess.Popen(
        ["bash", "-c", f"exec 3>&1; {line.replace('PERFMODEL', ' '.join(PROGRAM))}"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    ) as process:
        out, err = process.communicate(timeout=60)
    *_, codes = out.splitlines()
    return [int(code) for code in codes.split()], err


MODULES = """
import sys
from perfmodel_cli.app import main
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
print("\\n" + " ".join(sorted({name.partition(".")[0] for name in sys.modules})))
"""


@pytest.mark.parametrize("arguments", COMMANDS, ids=lambda arguments: arguments[0])
def test_planning_imports_no_heavy_library(arguments):
    loaded = set(python(MODULES, *arguments).splitlines()[-1].split())
    assert "perfmodel" in loaded
    assert not loaded & {"torch", "pandas", "scipy", "jax", "transformers", "requests", "matplotlib"}


@pytest.mark.parametrize("arguments", [("--help",), ("recommend", "--help"), ("--version",)])
def test_help_waits_for_no_numbers(arguments):
    loaded = set(python(MODULES, *arguments).splitlines()[-1].split())
    assert not loaded & {"numpy", "yaml", "torch", "pandas", "scipy"}


OFFLINE = """
import socket, sys
def refused(*arguments, **options):
    raise AssertionError("the network was asked for")
socket.socket = socket.create_connection = socket.getaddrinfo = refused
from perfmodel_cli.app import main
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
"""


@pytest.mark.parametrize("arguments", COMMANDS, ids=lambda arguments: arguments[0])
def test_no_command_asks_the_network(arguments):
    assert python(OFFLINE, *arguments)


def test_a_config_is_read_without_the_network(tmp_path):
    path = tmp_path / "config.json"
    sizes = {"n_embd": 256, "n_head": 4, "n_layer": 2, "vocab_size": 1000, "n_positions": 128}
    path.write_text(json.dumps({"model_type": "gpt2", **sizes}))
    assert "parameters" in python(OFFLINE, "models", "show", path)


def test_the_answer_does_not_depend_on_where_it_is_asked(tmp_path):
    (tmp_path / "machine_profiles").mkdir()
    elsewhere, here = (python(OFFLINE, *RECOMMEND, cwd=folder) for folder in (tmp_path, Path("/")))
    assert elsewhere == here


@pytest.mark.parametrize("form", ["table", "json", "csv"])
@pytest.mark.parametrize("reader", ["head -1", "true"])
def test_a_reader_that_has_seen_enough_is_no_error(form, reader):
    (_, read), err = shell(f"PERFMODEL {' '.join(RECOMMEND)} --top 1000 --format {form} | {reader}")
    assert (read, err) == (0, "")


@pytest.mark.parametrize("arguments", COMMANDS, ids=lambda arguments: arguments[0])
def test_a_full_disk_is_told_in_a_sentence(arguments):
    codes, err = shell(f"PERFMODEL {' '.join(arguments)} > /dev/full")
    assert codes == [1]
    assert err == "perfmodel: the answer cannot be written: No space left on device\n"


@pytest.mark.parametrize("form", ["table", "json", "csv"])
def test_a_closed_output_is_no_error(form):
    assert shell(f"PERFMODEL {' '.join(RECOMMEND)} --format {form} >&-") == ([0], "")


@pytest.mark.parametrize("arguments", COMMANDS, ids=lambda arguments: arguments[0])
def test_a_terminal_without_unicode_still_shows_tables(arguments):
    codes, err = shell(f"PERFMODEL {' '.join(arguments)} > /dev/null", PYTHONIOENCODING="ascii")
    assert (codes, err) == ([0], "")


def test_a_terminal_without_unicode_still_shows_names(tmp_path):
    model, profile = tmp_path / "model.yaml", tmp_path / "ours.yaml"
    model.write_text(
        "format: 1\nname: Modèle\ntransformer: {layers: 2, hidden: 64, heads: 2, vocabulary: 512, sequence: 8}\n",
        encoding="utf-8",
    )
    profile.write_text("format: 1\nname: ours\ntitle: Überrechner\nbase: perlmutter\n", encoding="utf-8")
    for form in ("table", "csv"):
        asked = f"PERFMODEL recommend --model {model} --machine {profile} --gpus 4 --batch 4 --format {form}"
        for command in (asked, f"PERFMODEL models show {model} --format {form}", f"PERFMODEL machines check {profile}"):
            assert shell(f"{command} > /dev/null", PYTHONIOENCODING="ascii") == ([0], "")


@pytest.mark.parametrize("where", ["2>&-", "2>/dev/full", "2>/dev/null"])
@pytest.mark.parametrize("question", ["--nope", "--model nothing --machine perlmutter --gpus 4 --batch 4"])
def test_a_question_that_is_not_well_formed_ends_in_2_though_nobody_can_be_told(where, question):
    assert shell(f"PERFMODEL recommend {question} {where}") == ([2], "")


def test_errors_go_to_standard_error_and_the_exit_code_says_so():
    codes, err = shell("PERFMODEL recommend --model nothing --machine perlmutter --gpus 4 --batch 4")
    assert codes == [2]
    assert err.startswith("perfmodel: no model is called 'nothing'")


def test_a_piped_table_has_no_colour_and_a_fixed_width():
    done = subprocess.run([*PROGRAM, *RECOMMEND], capture_output=True, text=True, check=True)
    assert "\x1b" not in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 132
