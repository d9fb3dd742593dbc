"""Whatever job is asked for: a script that a shell takes, or one sentence."""

import subprocess

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from job_requests import MACHINES
from perfmodel.jobscripts.frameworks import FRAMEWORKS

MODELS = ["gpt-tiny", "gpt-5b", "llama-3-8b", "unet-7b"]
TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8)
OPTIONS = {
    "--top": st.integers(0, 4),
    "--grid": st.sampled_from(["1x1x8x1", "2x1x4x1", "1x2x2x2", "4x4x4x4", "x"]),
    "--time": st.one_of(st.sampled_from(["00:30:00", "100:00:00", "9-00:00:00", "soon"]), TEXT),
    "--qos": st.one_of(st.sampled_from(["regular", "debug", "prod", "batch"]), TEXT),
    "--launcher": st.sampled_from([*FRAMEWORKS, "horovod"]),
    "--arguments": st.one_of(st.just("--data-path d"), TEXT),
    "--program": st.one_of(st.just("python train.py"), TEXT),
    "--setup": st.one_of(st.just("module load a"), TEXT),
    "--container": st.one_of(st.just("image"), TEXT),
    "--mode": st.sampled_from(["one", "array", "many"]),
    "--name": TEXT,
    "--results": TEXT,
    "--placement": st.sampled_from(["axonn", "paper", "any"]),
    "--steps": st.integers(0, 5),
}


@st.composite
def arguments(draw):
    """A job: model, machine, batch, nodes, who pays, and some of the other options."""
    asked = ["--model", draw(st.sampled_from(MODELS)), "--machine", draw(st.sampled_from(MACHINES))]
    asked += ["--batch", draw(st.sampled_from([64, 96, 512])), "--nodes", draw(st.sampled_from([1, 1, 2, 4, 300]))]
    asked += draw(st.sampled_from([["--account", "m1"], ["--account", "a b"], []]))
    chosen = draw(st.lists(st.sampled_from(sorted(OPTIONS)), unique=True, max_size=5))
    if "--time" not in chosen:
        asked += ["--time", "00:30:00"]
    for option in chosen:
        asked += [f"{option}={draw(OPTIONS[option])}"]
    return asked


@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(arguments())
def test_any_job_is_a_script_that_a_shell_takes_or_a_sentence(run, sentence, words):
    answer = run("job", *words)
    if answer.code != 0:
        assert answer.code in (1, 2)
        assert sentence(answer)
        return
    shell = subprocess.run(["bash", "-n"], input=answer.out, capture_output=True, text=True, check=False, timeout=60)
    assert (shell.returncode, shell.stderr) == (0, "")
