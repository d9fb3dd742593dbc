"""Whatever is asked: an answer with at least one grid, or one sentence."""

import json
import math
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

MACHINES = [
    "perlmutter",
    "frontier",
    "summit",
    "aurora",
    "vista",
    "gb200-nvl72",
    "localhost-cpu",
    "rtx4090-8x",
    "nowhere",
]
MODELS = ["gpt-tiny", "gpt-5b", "llama-3-8b", "qwen2.5-7b", "unet-7b", "gpt-640b", "nothing"]
COUNTS = st.one_of(
    st.integers(1, 96), st.sampled_from([0, -4, 128, 192, 240, 500, 512, 720, 1000, 1536, 4096, 9408, 2**31 - 1])
)
AXES = st.dictionaries(st.sampled_from(["x", "y", "z", "data"]), st.integers(1, 16), max_size=2).map(
    lambda sizes: ",".join(f"{axis}={size}" for axis, size in sizes.items())
)
OPTIONS = {
    "--seq": st.integers(1, 5000),
    "--micro-batch": st.one_of(st.just("any"), st.integers(0, 64)),
    "--recompute": st.sampled_from(["any", "none", "selective", "full"]),
    "--weight-cache": st.sampled_from(["any", "none", "forward", "all"]),
    "--placement": st.sampled_from(["axonn", "paper", "any"]),
    "--fidelity": st.sampled_from(["full", "flat", "paper"]),
    "--optimizer": st.sampled_from(["adamw", "adamw-8bit", "sgd", "magic"]),
    "--bytes": st.sampled_from(["activations=4", "weights=1,gradients=4", "data-gradients=2", "w=2"]),
    "--vocabulary-multiple": st.integers(0, 4096),
    "--top": st.integers(1, 20),
    "--fix": AXES,
    "--max": AXES,
}
FLAGS = st.lists(st.sampled_from(["--ignore-memory", "--no-flash-attention", "--dropout"]), unique=True, max_size=3)


@st.composite
def arguments(draw):
    """A question: model, machine, batch and devices, and some of the other options."""
    asked = ["--model", draw(st.sampled_from(MODELS)), "--machine", draw(st.sampled_from(MACHINES))]
    asked += ["--batch", draw(st.one_of(st.integers(1, 256), st.sampled_from([512, 960, 2048, 4096])))]
    asked += [draw(st.sampled_from(["--gpus", "--nodes"])), draw(COUNTS)]
    for option in draw(st.lists(st.sampled_from(sorted(OPTIONS)), unique=True, max_size=4)):
        asked += [option, draw(OPTIONS[option])]
    return [*asked, *draw(FLAGS)]


@pytest.fixture(scope="module")
def ask(run, sentence, read_csv):
    """Rows of the answer as CSV, None where there was a sentence instead."""

    def asked(words):
        answer = run("recommend", *words, "--format", "csv")
        if answer.code == 0:
            assert answer.err == ""
            return read_csv(answer.out)
        assert answer.code in (1, 2)
        assert sentence(answer)
        return None

    return asked


@settings(max_examples=50, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@example(["--model", "gpt-5b", "--machine", "perlmutter", "--batch", 64, "--gpus", 64])
@example(["--model", "gpt-tiny", "--machine", "summit", "--batch", 1, "--nodes", 2**31 - 1])
@example(["--model", "gpt-tiny", "--machine", "vista", "--batch", 3, "--gpus", 1, "--fidelity", "paper"])
@given(arguments())
def test_any_question_has_an_answer_with_a_grid_or_a_sentence(ask, words):
    rows = ask(words)
    if rows is None:
        return
    assert rows
    times = [float(row["step_time_s"]) for row in rows]
    assert all(later >= earlier / 1.0201 for earlier, later in pairwise(times))  # within 2 % the roomier goes first
    assert all(math.isfinite(seconds) and seconds >= 0 for seconds in times)
    devices = {math.prod(int(row[f"grid_{axis}"]) for axis in ("x", "y", "z", "data")) for row in rows}
    assert len(devices) == 1


@settings(max_examples=20, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.tuples(*[st.integers(1, 12)] * 4), st.sampled_from(MODELS[:5]), st.sampled_from(MACHINES[:8]), st.integers(1, 64)
)
def test_any_grid_is_explained_and_a_rejected_one_has_a_nearest(run, sentence, sizes, model, machine, batch):
    asked = ("--model", model, "--machine", machine, "--batch", batch)
    answer = run("explain", "--grid", "x".join(map(str, sizes)), *asked, "--format", "json")
    if answer.code == 1:  # a machine of one node has no network to leave it by
        assert sentence(answer).startswith(f"{machine} has ")
        return
    assert (answer.code, answer.err) == (0, "")
    record = json.loads(answer.out)
    count = ("--gpus", math.prod(sizes))
    fix = ",".join(f"{axis}={size}" for axis, size in record["grid"].items())
    assert (run("recommend", *asked, *count, "--fix", fix).code == 0) == (not record["rejected"])
    if nearest := record["nearest_grid"]:
        fix = ",".join(f"{axis}={size}" for axis, size in nearest.items())
        assert run("recommend", *asked, "--gpus", math.prod(nearest.values()), "--fix", fix).code == 0
