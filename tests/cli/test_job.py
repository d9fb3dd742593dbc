"""`perfmodel job` at the command line: what it writes, where, what it says, and what it refuses."""

import os
import re
import stat
import sys

import pytest

PERLMUTTER = ("job", "--model", "gpt-20b", "--machine", "perlmutter", "--batch", 2048, "--time", "00:30:00")
PAID = (*PERLMUTTER, "--account", "m1234")


@pytest.fixture
def scheduler(tmp_path, monkeypatch):
    """A program called as a scheduler's that writes down its arguments and input, and ends as it is told."""

    def install(name, code=0):
        folder = tmp_path / "bin"
        folder.mkdir(exist_ok=True)
        program = folder / name
        program.write_text(
            f"#!{sys.executable}\nimport sys\n"
            f"open({str(tmp_path / 'heard')!r}, 'a').write(repr((sys.argv[1:], sys.stdin.read())) + '\\n')\n"
            f"print('Submitted batch job 7', flush=True)\nsys.exit({code})\n"
        )
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
        return lambda: [eval(line) for line in (tmp_path / "heard").read_text().splitlines()]  # noqa: S307

    return install


def grids(text):
    return re.findall(r"--grid=(\S+)", text)


def test_the_fastest_grids_are_those_of_recommend(run):
    wanted = run("recommend", *PERLMUTTER[1:-2], "--gpus", 256, "--top", 3, "--format", "csv").out.splitlines()
    names = wanted[0].split(",")
    rows = [dict(zip(names, row.split(","), strict=True)) for row in wanted[1:]]
    answer = run(*PAID, "--gpus", 256, "--top", 3)
    assert (answer.code, answer.err) == (0, "")
    assert grids(answer.out) == ["x".join(row[f"grid_{axis}"] for axis in ("x", "y", "z", "data")) for row in rows]
    assert re.findall(r"--micro-batch=(\d+)", answer.out) == [row["micro_batch"] for row in rows]
    assert answer.out.startswith("#!/bin/bash\n")


def test_a_grid_brings_its_own_number_of_devices(run):
    answer = run(*PAID, "--grid", "1x1x64x4")
    assert grids(answer.out) == ["1x1x64x4"]
    assert "#SBATCH --nodes=64\n" in answer.out


def test_more_grids_than_fit_are_those_that_fit(run):
    answer = run(*PAID, "--gpus", 256, "--top", 500, "--time", "48:00:00", "--steps", 1, "--warmup", 0)
    assert len(grids(answer.out)) == 110


@pytest.mark.parametrize(
    ("options", "code", "refusal"),
    [
        (("--gpus", 254), 1, "254 devices are not whole nodes of 4 on perlmutter"),
        (("--gpus", 256, "--nodes", 64), 2, "give either --gpus or --nodes"),
        (("--grid", "1x1x64x4", "--top", 2), 2, "give either --grid or --top"),
        (("--grid", "1x1x64x4", "--gpus", 128), 2, "128 devices, but --grid 1x1x64x4 has 256"),
        (("--gpus", 256, "--qos", "debug"), 1, "debug: at most 8 nodes, asked for 64; vendor [NERSC-Q]"),
        (("--gpus", 256, "--time", "49:00:00"), 1, "regular: at most 48:00:00, asked for 49:00:00; vendor [NERSC-Q]"),
        (("--gpus", 256, "--time", "30"), 2, "--time '30': wanted [days-]hours:minutes:seconds"),
        (("--gpus", 256, "--account", "a b"), 2, "--account 'a b': wanted letters, digits and"),
        (("--gpus", 256, "--account", "a\n#SBATCH --x"), 2, "wanted letters, digits and"),
        (("--gpus", 256, "--setup", "a 'b"), 2, '--setup "a \'b": no closing quotation'),
        (("--gpus", 256, "--launcher", "torchtitan"), 2, "needs --arguments with the model"),
        (("--gpus", 256, "--launcher", "megatron-lm", "--compare"), 2, "--compare reads what perfmodel run measures"),
        (("--grid", "1x2x32x4", "--launcher", "megatron-lm"), 1, "the nearest that can is "),
        (("--gpus", 256, "--mode", "many"), 2, "--mode many needs -o"),
        (("--gpus", 256, "--submit"), 2, "--submit needs -o"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(run, options, code, refusal):
    answer = run(*PAID, *options)
    assert (answer.code, answer.out) == (code, "")
    assert refusal in answer.err
    assert "Traceback" not in answer.err


def test_who_pays_is_asked_for(run):
    answer = run(*PERLMUTTER, "--gpus", 256)
    assert answer.code == 2
    assert "perlmutter need an account: give --account" in answer.err


def test_grids_that_a_framework_cannot_express_are_named(run):
    answer = run(*PAID, "--gpus", 256, "--top", 3, "--launcher", "deepspeed", "--program", "python train.py")
    assert answer.code == 0
    assert re.findall(r"^# Grid 1x1x", answer.out, re.MULTILINE) == ["# Grid 1x1x"] * 3
    asked = ("--gpus", 256, "--top", 6, "--launcher", "deepspeed", "--program", "python train.py")
    fewer = run(*PAID, *asked, "--framework", "perfmodel")  # with its traits alone these would not even be ranked
    assert len(re.findall(r"^# Grid 1x1x", fewer.out, re.MULTILINE)) == 5
    assert "perfmodel: left out 2x1x128x1: deepspeed shards only over Z and data" in fewer.err
    assert re.search(r"left out \d+ more grids$", fewer.err.strip())


def test_a_job_is_written_and_its_use_told(run, tmp_path):
    out = tmp_path / "a job.sh"
    answer = run(*PAID, "--gpus", 256, "-o", out)
    assert answer.out == f"wrote {out}; submit it with sbatch {out}\n"
    assert out.read_text() == run(*PAID, "--gpus", 256).out


def test_many_jobs_are_as_many_files_with_names_and_results_of_their_own(run, tmp_path):
    answer = run(*PAID, "--gpus", 256, "--top", 3, "--mode", "many", "-o", tmp_path / "job.sh")
    assert answer.code == 0
    texts = [(tmp_path / f"job-{number}.sh").read_text() for number in (1, 2, 3)]
    found = [grids(text) for text in texts]
    assert [len(one) for one in found] == [1, 1, 1]
    for (grid,), text in zip(found, texts, strict=True):
        assert f"#SBATCH --job-name=gpt-20b-{grid}\n" in text
        assert f"--out=gpt-20b-{grid}.jsonl " in text


def test_a_job_is_submitted_by_the_machines_scheduler(run, tmp_path, scheduler, capfd):
    heard = scheduler("sbatch")
    out = tmp_path / "-job.sh"
    answer = run(*PAID, "--gpus", 256, "-o", out, "--submit")
    assert (answer.code, answer.err) == (0, "")
    assert heard() == [([str(out)], "")]
    assert "Submitted batch job 7" in capfd.readouterr().out


def test_lsf_reads_the_job_from_its_input(run, tmp_path, scheduler):
    heard = scheduler("bsub")
    out = tmp_path / "job.sh"
    given = ("--model", "gpt-tiny", "--machine", "summit", "--gpus", 12, "--batch", 96, "--time", "00:30:00")
    assert run("job", *given, "--account", "abc", "-o", out, "--submit").code == 0
    assert heard() == [([], out.read_text())]
    told = run("job", *given, "--account", "abc", "-o", out).out
    assert told.endswith(f"; submit it with bsub < {out}\n")  # of a file that it is named it reads no directives


def test_what_the_scheduler_refuses_is_an_error(run, tmp_path, scheduler):
    scheduler("sbatch", code=1)
    answer = run(*PAID, "--gpus", 256, "-o", tmp_path / "job.sh", "--submit")
    assert answer.code == 1
    assert "sbatch did not take" in answer.err


def test_where_there_is_no_scheduler_the_file_is_written_and_nothing_submitted(run, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    answer = run(*PAID, "--gpus", 256, "-o", tmp_path / "job.sh", "--submit")
    assert answer.code == 1
    assert f"no sbatch here: {tmp_path / 'job.sh'} is written; submit it on perlmutter" in answer.err
    assert (tmp_path / "job.sh").exists()


def test_a_box_without_a_scheduler_gets_a_script_for_bash(run, tmp_path):
    given = ("--model", "gpt-tiny", "--machine", "rtx4090-8x", "--gpus", 8, "--batch", 64, "--time", "00:30:00")
    answer = run("job", *given, "-o", tmp_path / "job.sh")
    assert answer.out.endswith(f"; run it with bash {tmp_path / 'job.sh'}\n")
    assert run("job", *given, "-o", tmp_path / "job.sh", "--submit").code == 1
