"""Job scripts as text: shells and linters take them, they say what the profile says, and the same as before."""

import re
import shlex
import shutil
import subprocess
from dataclasses import replace

import pytest

import job_requests
from job_requests import load, nodes, request, text
from machines import GOLDEN
from perfmodel.errors import PerfmodelError, UsageError
from perfmodel.jobscripts.script import script
from perfmodel.parallel.layout import Layout

BLESSED = {
    "perlmutter": ("gpt-20b", 256, ["1x1x64x4", "2x1x32x4"]),
    "frontier": ("gpt-20b", 1024, ["1x1x64x16", "2x1x64x8"]),
    "alps": ("gpt-20b", 256, ["1x1x32x8", "2x1x32x4"]),
}


def grids(*texts):
    return [Layout.of(map(int, one.split("x"))) for one in texts]


def exported(script_text):
    """Variables that a script exports, with their reasons."""
    found = re.findall(r"^export (\w+)=(.*?)(?:  # (.*))?$", script_text, re.MULTILINE)
    return {name: (value, why) for name, value, why in found}


def launched(script_text):
    """The words of the command that starts the ranks, each quoted word as one."""
    joined = script_text.replace("\\\n", " ")
    starts = re.compile(r"(?:timeout \d+ )?((?:srun|mpiexec|flux run|jsrun|torchrun) .*)")
    line = next(found[1] for line in joined.splitlines() if (found := starts.match(line)))
    return shlex.split(line.removesuffix("|| failed=1"))


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Scripts of every machine with every launcher, each for two grids, and as an array where there can be one."""
    folder = tmp_path_factory.mktemp("scripts")
    for machine, launcher in job_requests.pairs():
        gpus, grid = job_requests.suiting(machine, launcher)
        container = "image" if load(machine).scheduler.container else ""
        changes = {"compare": launcher == "perfmodel", "container": container}
        found = request(machine, gpus, [grid, grid], launcher, **changes)
        (folder / f"{machine}.{launcher}.sh").write_text(script(found))
        if load(machine).scheduler.kind in ("slurm", "pbs", "lsf"):
            (folder / f"{machine}.{launcher}.array.sh").write_text(script(replace(found, array=True)))
    return folder


def test_a_shell_takes_the_script_of_every_machine_and_launcher(written):
    scripts = sorted(written.iterdir())
    assert len(scripts) > 300
    for path in scripts:
        done = subprocess.run(["bash", "-n", path], capture_output=True, text=True, check=False, timeout=60)
        assert (done.returncode, done.stderr) == (0, ""), path.name


@pytest.mark.skipif(shutil.which("shellcheck") is None, reason="shellcheck is not installed")
def test_shellcheck_finds_nothing_in_the_script_of_any_machine_and_launcher(written):
    command = ["shellcheck", *sorted(written.iterdir())]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("machine", BLESSED)
def test_the_script_is_the_one_that_was_blessed(machine, bless):
    model, gpus, wanted = BLESSED[machine]
    assert model == "gpt-20b"
    fresh = text(machine, gpus, grids(*wanted), compare=True)
    path = GOLDEN / "jobs" / f"{machine}.sh"
    if bless:
        path.write_text(fresh, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == fresh, "run pytest --bless where the change is meant, and read the diff"


@pytest.mark.parametrize("machine", job_requests.MACHINES)
def test_every_variable_of_the_profile_is_set_with_its_reason_and_source(machine):
    launcher = next(launcher for name, launcher in job_requests.pairs() if name == machine)
    gpus, grid = job_requests.suiting(machine, launcher)
    set_ = exported(text(machine, gpus, [grid], launcher))
    for variable in load(machine).scheduler.environment:
        value, why = set_[variable.name]
        assert why == f"{variable.why} [{variable.source}]"
        assert shlex.split(value) == [variable.value]


def test_every_line_of_the_environment_and_every_directive_has_a_reason():
    for machine in ("perlmutter", "frontier", "alps", "polaris", "tuolumne", "summit"):
        lines = text(machine, nodes(2, machine)).splitlines()
        bare = [line for line in lines if line.startswith("export ") and "  # " not in line]
        assert bare in ([], ["export MASTER_ADDR"])
        directives = [number for number, line in enumerate(lines) if re.match(r"#(SBATCH|PBS|flux:|BSUB) ", line)]
        assert directives
        assert all(lines[number - 1].startswith("# ") for number in directives)


@pytest.mark.parametrize(
    ("machine", "words"),
    [
        ("perlmutter", ["--cpus-per-task=32", "--cpu-bind=cores", "--gpu-bind=none", "--ntasks=8"]),
        ("frontier", ["--cpus-per-task=7", "--mem-bind=map_mem:3,3,1,1,0,0,2,2", "--ntasks-per-node=8"]),
        ("delta", ["--gpu-bind=closest", "--cpus-per-task=16"]),
        ("juwels-booster", ["--cpu-bind=none"]),
        ("polaris", ["-n", "8", "--ppn", "4", "--cpu-bind", "depth"]),
        ("tuolumne", ["--nodes=2", "--ntasks=8", "--cores-per-task=24", "--gpus-per-task=1"]),
        ("summit", ["-n", "12", "-r6", "-g1", "-c7"]),
    ],
)
def test_ranks_are_bound_as_the_profile_says(machine, words):
    found = launched(text(machine, nodes(2, machine)))
    assert [word for word in words if word not in found] == []


@pytest.mark.parametrize(
    ("machine", "told"),
    [
        ("perlmutter", "MASTER_ADDR=$(hostname)  #"),
        ("frontier", "MASTER_ADDR=$(hostname -i)  #"),
        ("alps", 'MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)  #'),
        ("juwels-booster", 'MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)i  #'),
        ("polaris", 'MASTER_ADDR=$(head -n 1 "$PBS_NODEFILE" | cut -d . -f 1)  #'),
        ("summit", 'MASTER_ADDR=$(sort -u "$LSB_DJOB_HOSTFILE" | grep -v -e login -e batch | head -n 1)  #'),
        ("tuolumne", "MASTER_ADDR=$(flux hostlist --expand local | cut -d ' ' -f 1)  #"),
    ],
)
def test_rank_0_is_found_as_the_centre_says(machine, told):
    assert told in text(machine, nodes(2, machine))


def test_auroras_first_host_is_named_on_the_fast_network():
    assert "| cut -d . -f 1).hsn.cm.aurora.alcf.anl.gov  #" in text("aurora", 24, launcher="torchtitan")


@pytest.mark.parametrize(
    ("machine", "launcher", "local"),
    [
        ("perlmutter", "megatron-lm", "LOCAL_RANK=$SLURM_LOCALID"),  # sees all four
        ("perlmutter", "megatron-lm", "CUDA_VISIBLE_DEVICES=3,2,1,0;"),  # in reverse
        ("alps", "megatron-lm", "LOCAL_RANK=0"),  # sees its own alone
        ("alps", "perfmodel", "LOCAL_RANK=$SLURM_LOCALID"),  # finds its own by itself
        ("lumi-g", "megatron-lm", 'ROCR_VISIBLE_DEVICES="$SLURM_LOCALID"'),
        ("polaris", "megatron-lm", 'CUDA_VISIBLE_DEVICES="$((3 - ${PMI_LOCAL_RANK:-$PALS_LOCAL_RANKID} % 4))"'),
        ("polaris", "megatron-lm", "RANK=${PMI_RANK:-$PALS_RANKID}"),
        ("summit", "megatron-lm", "RANK=$OMPI_COMM_WORLD_RANK"),
        ("tuolumne", "megatron-lm", "RANK=$FLUX_TASK_RANK"),
    ],
)
def test_a_rank_learns_who_it_is_and_which_device_it_has(machine, launcher, local):
    words = launched(text(machine, nodes(2, machine), launcher=launcher))
    assert local in words[words.index("-c") + 1]


QUEUES = "CUDA_DEVICE_MAX_CONNECTIONS"


@pytest.mark.parametrize("machine", ["perlmutter", "alps"])  # one sets the variable for all, the other does not
def test_each_run_has_the_queues_that_its_framework_starts_with(machine):
    found = text(machine, 8, grids("2x1x1x4", "1x1x8x1", "2x1x2x2"), launcher="megatron-lm")
    told = re.findall(rf"^(export {QUEUES}=1|unset {QUEUES})  # |^timeout 540 (srun) ", found, re.MULTILINE)
    in_order = [line or launch for line, launch in told]
    one, several = f"export {QUEUES}=1", f"unset {QUEUES}"
    assert in_order[-6:] == [one, "srun", several, "srun", several, "srun"]
    assert f"export {QUEUES}=1  # " in text(machine, 8, launcher="megatron-axonn").split("failed=0")[1]


def test_a_variable_may_differ_on_a_single_node():
    assert exported(text("frontier", 8))["NCCL_NET"][0] == "Socket"
    assert exported(text("frontier", 16))["NCCL_NET"][0] == "OFI"


def test_commands_of_the_user_replace_the_modules_of_the_profile():
    ours = text("polaris", 8)
    assert "module use /soft/modulefiles || exit 1\nmodule load conda || exit 1\nconda activate || exit 1\n" in ours
    theirs = text("polaris", 8, setup=("module load nvhpc", "source '/a b/activate'"))
    assert "conda" not in theirs
    assert "module load nvhpc || exit 1\n" in theirs
    assert "source '/a b/activate' || exit 1\n" in theirs


@pytest.mark.parametrize(
    ("machine", "words"),
    [
        ("perlmutter", ["shifter", "--image=nersc/pytorch:24.08.01", "--module=gpu,nccl-plugin", "perfmodel"]),
        ("lumi-g", ["singularity", "exec", "nersc/pytorch:24.08.01", "perfmodel"]),
        ("alps", ["--environment=nersc/pytorch:24.08.01"]),
        ("dgx-h100", ["--container-image=nersc/pytorch:24.08.01"]),
    ],
)
def test_a_container_is_run_by_what_the_machine_has_for_it(machine, words):
    found = launched(text(machine, nodes(2, machine), container="nersc/pytorch:24.08.01"))
    start = found.index(words[0])
    assert found[start : start + len(words)] == words


def test_a_container_where_nothing_is_known_to_run_one_is_refused():
    with pytest.raises(UsageError, match="does not say what runs a container"):
        text("vista", 4, container="image")


def test_several_grids_share_the_time_of_one_job():
    one = text("perlmutter", 8, grids("1x1x8x1"))
    three = text("perlmutter", 8, grids("1x1x8x1", "1x1x4x2", "1x1x2x4"))
    assert "--timeout=1620 " in one
    assert three.count("--timeout=540 ") == three.count("--grid=") == 3


def test_each_job_of_an_array_has_a_grid_and_a_file_of_its_own():
    found = text("perlmutter", 8, grids("1x1x8x1", "1x1x4x2"), mode="array", results="here/of it.jsonl")
    assert "#SBATCH --array=1-2\n" in found
    branches = re.findall(r"^(\d)\)\n.*?--grid=(\S+).*?--out=(.*?)' --resume", found, re.DOTALL | re.MULTILINE)
    assert branches == [
        ("1", "1x1x8x1", "here/of it-1.jsonl"),
        ("2", "1x1x4x2", "here/of it-2.jsonl"),
    ]
    assert found.count("--timeout=1620 ") == 2


def test_flux_has_no_arrays():
    with pytest.raises(UsageError, match="no arrays"):
        text("tuolumne", 8, mode="array")


def test_a_job_that_can_go_on_is_requeued_and_another_is_not():
    assert "#SBATCH --requeue\n" in text("perlmutter", 8)
    assert "--requeue" not in text("perlmutter", 8, launcher="megatron-lm")


@pytest.mark.parametrize(
    ("machine", "account", "refusal"),
    [("perlmutter", "", "give --account (accounts for GPU nodes"), ("aws-p5", "m1", "have no accounts")],
)
def test_who_pays_is_asked_for_where_somebody_does(machine, account, refusal):
    with pytest.raises(UsageError, match=re.escape(refusal)):
        text(machine, nodes(2, machine), account=account)


def test_a_profile_of_one_task_a_node_is_refused():
    found = request("perlmutter", 8)
    assert found.tasks_per_node == 4
    machine = load("perlmutter")
    one = replace(machine, scheduler=replace(machine.scheduler, tasks_per_node=1))
    plan = job_requests.plan("perlmutter", 8)
    with pytest.raises(PerfmodelError, match="wanted tasks_per_node 4"):
        job_requests.build.requests(
            replace(plan, job=replace(plan.job, machine=one)), grids("1x1x8x1"), job_requests.allocation("perlmutter")
        )


def test_what_is_activated_follows_the_software_of_the_profile_or_of_the_user():
    lines = script(request("perlmutter", 8, activate=("conda activate my",))).splitlines()
    assert lines.index("conda activate my || exit 1") > lines.index("module load pytorch || exit 1")
    lines = script(request("perlmutter", 8, setup=("module load mine",), activate=("conda activate my",))).splitlines()
    assert lines.index("conda activate my || exit 1") > lines.index("module load mine || exit 1")
    assert "module load pytorch || exit 1" not in lines


def test_that_the_program_is_there_is_asked_before_the_ranks_start_unless_it_is_in_an_image():
    asked = "command -v perfmodel >/dev/null || "
    text = script(request("perlmutter", 8))
    assert text.index(asked) < text.index("\nsrun ")
    assert asked not in script(request("perlmutter", 8, container="image"))
    assert asked not in script(request("perlmutter", 8, plan_changes={"program": ("python", "-m", "perfmodel_cli")}))


def test_a_framework_that_would_not_end_leaves_the_other_grids_their_turn():
    grids = [Layout(x=1, y=1, z=64, data=1), Layout(x=2, y=1, z=32, data=1)]
    text = script(request("perlmutter", 64, grids, "axonn-nanogpt"))
    assert text.count("\ntimeout 810 srun ") == 2
    assert "timeout " not in script(request("perlmutter", 64, grids[:1], "axonn-nanogpt"))


def test_steps_that_do_not_fit_into_the_time_are_refused_with_what_would_do():
    with pytest.raises(UsageError, match=r"13 steps of 1x1x64x1 are predicted to take \d+ s, and --time leaves 18 s"):
        request("perlmutter", 64, [Layout(x=1, y=1, z=64, data=1)] * 3, time="00:01:00")


@pytest.mark.parametrize("mode", ["array", "many"])
def test_grids_of_several_jobs_are_not_compared_by_one_of_them(mode):
    with pytest.raises(UsageError, match=f"--mode {mode} gives each its own; wanted --mode one"):
        request("perlmutter", 64, compare=True, mode=mode)


def test_devices_without_bf16_run_in_fp32():
    assert "--dtype=fp32" in script(request("summit", 6))
    assert "--dtype" not in script(request("perlmutter", 8))
