"""Whatever a user gives to a job script arrives as it is, or is refused; nothing of it is carried out.

The shell that runs the scripts here has no programs but the stand-ins below, which write down what they are given.
"""

import os
import random
import subprocess
from pathlib import Path

import pytest

from job_requests import request
from perfmodel.errors import UsageError
from perfmodel.jobscripts import quoting
from perfmodel.jobscripts.script import script
from perfmodel.parallel.layout import Layout

COUNT = 1000
# Each tries to leave its place: by quotes, expansions, ends of lines, ends of what they might stand in, options.
FRAGMENTS = [
    "'", '"', "'\"'\"'", "\\", "\\\\", "$(: >broken)", "`: >broken`", "$((1+1))", "${IFS}", "$HOME", "$@", "$0",
    ";: >broken;", "\n: >broken\n", "\r", "\t", "\x1b[2J", "\x00", "|", "||", "&", "&&", "<", ">broken", ">>", "(", ")",
    "{", "}", "[", "]", "*", "?", "~", "!", "!!", "#", " # ", "\n#SBATCH --exclusive\n", "-", "--", "--wrap=x",
    "END_OF_FILE", "\nEND_OF_FILE\n", "; exit 7", "' ; exit 7 ; '", '" ; exit 7 ; "', "%j", "{{id}}", "=", "a=b", " ",
    "é", "日本", "\u202e", "\u00a0", "\u2028", "\ud800", "if", "then", "fi", "esac", ";;", "1)", "word", "m1234", "x",
]  # fmt: skip
# Functions win over programs, and a command that is neither comes to the handler; the log has a record a call.
STAND_INS = """
note() { printf '%s\\0' "$@" >>"$LOG"; printf '\\n\\0' >>"$LOG"; }
srun() { note srun "$@"; }
module() { note module "$@"; }
perfmodel() { note perfmodel "$@"; }
hostname() { printf 'host\\n'; }
enable -n [  # no program, but what the shell itself would run
command_not_found_handle() { note missing "$@"; }
export -f note srun module perfmodel hostname command_not_found_handle
"""


def hostile():
    """A thousand values, the same at every run."""
    draw = random.Random(6)  # noqa: S311 - no secret
    return ["".join(draw.choices(FRAGMENTS, k=draw.randint(1, 5))) for _ in range(COUNT)]


def made(value, option):
    """The record with one option set to a value; a refusal is None."""
    plan = {"program": {"program": (value,)}, "arguments": {"arguments": (value,)}}
    plan |= {"model": {"model": value}, "machine": {"machine": value}}
    changes = {"plan_changes": plan[option]} if option in plan else {option: value}
    if option == "setup":
        changes = {"setup": (value,)}
    try:
        found = request("perlmutter", 8, [Layout(x=1, y=1, z=8, data=1)], compare=True, **changes)
        return found, script(found)
    except UsageError:
        return None


def obeyed(scripts, folder):
    """What the stand-ins were given by each script, run one after the other in one shell without programs."""
    for number, text in enumerate(scripts):
        (folder / f"{number}.sh").write_text(text, encoding="utf-8")
    run = f'for number in {{0..{len(scripts) - 1}}}; do LOG=$LOGS/$number; (source "$SCRIPTS/$number.sh"); done\n'
    work = folder / "work"
    work.mkdir()
    (folder / "logs").mkdir()
    environment = {"PATH": "/nonexistent", "LOGS": str(folder / "logs"), "SCRIPTS": str(folder), "LC_ALL": "C.UTF-8"}
    bash = next(path for path in ("/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash") if os.access(path, os.X_OK))
    shell = subprocess.run(
        [bash, "--norc", "-c", STAND_INS + "export LOG\n" + run],
        cwd=work, env=environment, capture_output=True, check=False, timeout=300,
    )  # fmt: skip
    assert list(work.iterdir()) == [], "something was carried out"
    assert shell.stderr == b"", shell.stderr[:2000]
    return [calls(folder / "logs" / str(number)) for number in range(len(scripts))]


def calls(log: Path):
    records = log.read_bytes().decode("utf-8").split("\n\0")
    return [tuple(record.split("\0")[:-1]) for record in records if record]


def expected(found):
    """The calls that a record stands for."""
    told = "RANK=$SLURM_PROCID WORLD_SIZE=8 LOCAL_RANK=$SLURM_LOCALID LOCAL_WORLD_SIZE=4 CUDA_VISIBLE_DEVICES=3,2,1,0"
    wrapper = f'export {told}; exec "$@"'
    contained = ("shifter", f"--image={found.container}", "--module=gpu,nccl-plugin") if found.container else ()
    options = (
        "--nodes=2", "--ntasks=8", "--ntasks-per-node=4", "--cpus-per-task=32", "--kill-on-bad-exit=1",
        "--cpu-bind=cores", "--gpu-bind=none", "bash", "-c", wrapper, "rank",
    )  # fmt: skip
    setup = found.setup or (("module", "load", "pytorch"),)
    before = [words if words[0] == "module" else ("missing", *words) for words in setup]
    closing = (*contained, *found.closing)
    closing = closing if closing[0] == "perfmodel" else ("missing", *closing)
    return [*before, ("srun", *options, *contained, *found.runs[0].command), closing]


@pytest.mark.parametrize("option", ["setup", "container", "program", "arguments", "results", "model", "machine"])
def test_a_hostile_value_arrives_as_it_is_or_is_refused(option, tmp_path):
    values = hostile()
    prepared = [f"module load {value}" for value in values] if option == "setup" else values
    both = [(value, made(one, option)) for value, one in zip(values, prepared, strict=True)]
    taken = [(value, *done) for value, done in both if done is not None]
    assert len(values) == COUNT
    assert len(taken) > COUNT / 10, "nearly all are refused: the test sees nothing"
    heard = obeyed([text for _, _, text in taken], tmp_path)
    for (value, found, _), told in zip(taken, heard, strict=True):
        assert told == expected(found), value
        words = [word for call in told for word in call]
        if option != "setup":
            assert any(value in word for word in words), value


def test_a_command_of_setup_that_begins_with_anything_is_a_name_and_its_arguments(tmp_path):
    both = [(value, made(value, "setup")) for value in hostile()]
    taken = [(value, *done) for value, done in both if done is not None]
    assert len(taken) > COUNT / 10
    heard = obeyed([text for _, _, text in taken], tmp_path)
    for (value, found, _), told in zip(taken, heard, strict=True):
        assert told[0] == ("missing", *quoting.words(value, "--setup")) == ("missing", *found.setup[0]), value


@pytest.mark.parametrize(("option", "directive"), [("account", "account"), ("name", "job-name")])
def test_a_hostile_value_of_a_directive_is_that_value_or_refused(option, directive, tmp_path):
    benign = made("m1", option)[1].count("\n#SBATCH ")
    taken = [(value, done[1]) for value in [*hostile(), "m1234_g"] if (done := made(value, option)) is not None]
    assert ("m1234_g", made("m1234_g", option)[1]) in taken
    for value, text in taken:
        lines = text.splitlines()
        assert [line.startswith("#SBATCH ") for line in lines].count(True) == benign
        assert f"#SBATCH --{directive}={value}" in lines
        assert not set(value) & set(" \t\n'\"\\`$;&|<>(){}[]*?~!#%,"), value
    obeyed([text for _, text in taken], tmp_path)


def test_a_hostile_way_in_is_refused():
    assert [value for value in hostile() if made(value, "qos") is not None] == []


def test_the_name_of_a_model_from_a_file_stays_in_its_comment():
    from dataclasses import replace

    found = request("perlmutter", 8)
    text = script(replace(found, title="a\n: >broken\r\x1b[2J\u2028#SBATCH --exclusive"))
    assert text.splitlines()[1].startswith("# a : >broken\\r")
    assert len(text.splitlines()) == len(script(found).splitlines())
