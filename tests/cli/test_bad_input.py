"""A question that makes no sense: one sentence on standard error, exit 1 or 2, never a traceback or an empty table."""

import re

import pytest

from perfmodel import models
from perfmodel.machines import profiles

ASKED = {"--model": "gpt-5b", "--machine": "perlmutter", "--batch": "64", "--gpus": "16"}

THREE = "\N{ARABIC-INDIC DIGIT THREE}"


def arguments(changes, command="recommend"):
    """The usual question with options changed, or left out where None."""
    asked = ASKED | changes
    return (command, *(text for option, value in asked.items() if value is not None for text in (option, value)))


@pytest.mark.parametrize("option", ["--gpus", "--nodes", "--batch", "--seq", "--micro-batch", "--top"])
@pytest.mark.parametrize("value", ["0", "-1", "1.5", "abc", "", "1e3", "0x10", "nan", "inf", "9" * 25, "4,4", "1 2"])
def test_a_count_that_is_none_is_refused_by_name(refused, option, value):
    changes = {option: value} | ({"--gpus": None} if option == "--nodes" else {})
    text = refused(*arguments(changes))
    assert option in text or option.strip("-").replace("seq", "sequence length") in text
    assert value in text or "valid integer" in text


@pytest.mark.parametrize(("option", "most"), [("--gpus", 2**31), ("--nodes", 2**29), ("--top", 2**40)])
def test_a_count_too_large_to_be_meant_says_how_large_it_may_be(refused, option, most):
    text = refused(*arguments(({"--gpus": None} if option == "--nodes" else {}) | {option: str(most + 1)}))
    assert text in {f"{name} is {most + 1}, wanted 1 to {most}" for name in (option, "the top")}


@pytest.mark.parametrize("value", ["-1", "1.5", "abc", "9" * 25])
def test_a_vocabulary_multiple_that_is_none_is_refused(refused, value):
    assert "--vocabulary-multiple" in refused(*arguments({"--vocabulary-multiple": value}))


@pytest.mark.parametrize(
    "option", ["--batch", "--seq", "--micro-batch", "--vocabulary-multiple", "--gpus", "--nodes", "--top"]
)
@pytest.mark.parametrize("value", [str(2**31 - 1), THREE, " 4", "+4", "1_2", "007"])
def test_a_huge_or_odd_count_has_an_answer_or_a_sentence(run, refused, option, value):
    changes = {option: value} | ({"--gpus": None} if option == "--nodes" else {})
    answer = run(*arguments(changes))
    if answer.code != 0:
        assert refused(*arguments(changes))
    else:
        assert "grids searched" in answer.out


@pytest.mark.parametrize("option", ["--fix", "--max"])
@pytest.mark.parametrize(
    "value",
    [
        "w=3", "x=0", "x=-1", "x", "=", "x=", "=3", f"x={THREE}", "x=1e3", "x=1.5", "x=2;z=3", "x==2", "z=16,z", "X=2",
        "x=" + "9" * 20,
    ],
)  # fmt: skip
def test_axes_that_are_none_are_refused(refused, option, value):
    text = refused(*arguments({option: value}))
    assert text.startswith(option)
    assert "x, y, z, data" in text


@pytest.mark.parametrize("option", ["--fix", "--max"])
def test_an_axis_given_twice_is_refused(refused, option):
    assert refused(*arguments({option: "x=1,x=2"})) == f"{option} gives x twice"


@pytest.mark.parametrize("value", ["w=3", "activations=0", "activations=1.5", "weights=-1", "weights", "2"])
def test_bytes_that_make_no_sense_are_refused(refused, value):
    assert "activations, weights, gradients, data-gradients" in refused(*arguments({"--bytes": value}))


@pytest.mark.parametrize(
    "value", ["nan s", "inf s", "1e999 s", "-1 us", "2 s", "1 h", "5 GB", "42", "us", "", "1e-999999999999 x"]
)
def test_a_host_time_that_makes_no_sense_is_refused(refused, run, value):
    asked = arguments({"--host-time": value})
    text = refused(*asked)
    assert "host" in text
    assert run(*asked).code == 2


@pytest.mark.parametrize("value", ["nan", "inf", "1e300", "0", "-1"])
def test_a_time_that_no_run_can_be_given_is_refused(refused, value):
    text = refused("run", "--model", "gpt-tiny", "--grid", "1x1x1x1", "--timeout", value)
    assert "--timeout" in text


def test_a_seed_below_zero_is_refused(refused):
    assert "--seed" in refused("run", "--model", "gpt-tiny", "--grids", "sample:2", "--nproc", "2", "--seed", "-1")


@pytest.mark.parametrize("optimizer", ["nope", "", "Adam"])
def test_an_unknown_optimizer_is_refused_with_those_known(refused, optimizer):
    text = refused(*arguments({"--optimizer": optimizer}))
    assert repr(optimizer) in text
    assert "adamw, adamw-bf16-gradients" in text


@pytest.mark.parametrize(
    ("option", "choice"),
    [
        ("--recompute", "some"),
        ("--weight-cache", "yes"),
        ("--placement", "yxz"),
        ("--fidelity", "exact"),
        ("--format", "xml"),
    ],
)
def test_a_word_that_is_no_choice_is_refused_with_the_choices(refused, option, choice):
    text = refused(*arguments({option: choice}))
    assert option in text
    assert repr(choice) in text
    assert "is not one of" in text


def test_gpus_and_nodes_together_are_refused(refused):
    assert refused(*arguments({"--nodes": "4"})) == "give either --gpus or --nodes"


def test_neither_gpus_nor_nodes_is_refused(refused):
    assert refused(*arguments({"--gpus": None})) == "give either --gpus or --nodes"


@pytest.mark.parametrize("option", ["--model", "--machine", "--batch"])
def test_what_must_be_given_is_asked_for(refused, option):
    assert option in refused(*arguments({option: None}))


def test_an_unknown_option_or_command_is_refused_with_the_nearest(refused):
    assert "--model" in refused("recommend", "--modell", "gpt-5b")
    assert "recomend" in refused("recomend")


@pytest.mark.parametrize(
    ("name", "offered"),
    [("perlmuter", "perlmutter"), ("Frontie", "frontier"), ("h100", "dgx-h100"), ("lumi", "lumi-g")],
)
def test_an_unknown_machine_is_refused_with_the_nearest(refused, name, offered):
    for command in (arguments({"--machine": name}), ("machines", "show", name)):
        text = refused(*command)
        assert repr(name) in text
        assert offered in text


@pytest.mark.parametrize(
    ("name", "offered"),
    [
        ("gpt20b", "gpt-20b"),
        ("llama3-8b", "llama-3-8b"),
        ("Qwen2.5", "qwen2.5-7b"),
        ("meta-llama/llama-3-8", "llama-3-8b"),
    ],
)
def test_an_unknown_model_is_refused_with_the_nearest(refused, name, offered):
    for command in (arguments({"--model": name}), ("models", "show", name)):
        text = refused(*command)
        assert repr(name) in text
        assert offered in text


def test_a_name_like_no_other_is_refused_with_all_there_are(refused):
    assert all(name in refused(*arguments({"--machine": "qqqqq"})) for name in profiles.names())
    assert all(name in refused(*arguments({"--model": "qqqqq"})) for name in models.names())


STRANGE = {
    "empty": "",
    "blank": " ",
    "NUL": "a\0b",
    "NUL in a path": "a/\0.yaml",
    "NUL in a json": "\0.json",
    "long": "a" * 5000,
    "long path": "a/" * 3000 + "b.yaml",
    "long json": "a" * 300 + ".json",
    "escape": "\x1b[31mred",
    "escape in a path": "./\x1b[31mred.yaml",
    "bytes that are no text": "\udcff.json",
    "dots": "..",
    "slash": "/",
    "device": "/dev/null",
    "option": "--gpus",
    "dots and slashes": "../../etc/passwd",
    "wildcard": "*",
    "url": "https://example.com/config.json",
}


@pytest.mark.parametrize("option", ["--model", "--machine"])
@pytest.mark.parametrize("name", STRANGE.values(), ids=STRANGE.keys())
def test_a_strange_name_is_refused(refused, option, name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert refused(*arguments({option: name}))


@pytest.mark.parametrize(
    "grid",
    [
        "", "1", "1x2x3", "1x2x3x4x5", "axbxcxd", "1x1x1x0", "-1x1x1x1", "1.5x1x1x1", "1*2*2*4", "1 x 2 x 2 x 4",
        "x" * 10, "1x1x1x", "1x1x1x" + "9" * 20, f"{THREE}x1x1x1", "1x1x1x1\n", "1,2,2,4",
    ],
)  # fmt: skip
def test_a_text_that_is_no_grid_is_refused_with_an_example(refused, grid):
    text = refused(*arguments({"--gpus": None, "--grid": grid}, "explain"))
    assert repr(grid) in text
    assert "1x2x32x4" in text


def test_a_grid_of_too_many_devices_is_refused(refused):
    assert refused(*arguments({"--gpus": None, "--grid": "x".join(["2147483647"] * 4)}, "explain"))


@pytest.mark.parametrize("grid", ["2147483647x2147483629x1x1", "1x2x1x1073741825", "2147483649x1x1x1"])
def test_a_grid_of_more_devices_than_any_job_has_is_refused_with_the_most(refused, grid):
    text = refused(*arguments({"--gpus": None, "--grid": grid}, "explain"))
    assert re.search(r"\d+ devices, wanted at most 2147483648|is no grid", text)


@pytest.mark.parametrize("grid", ["2147483647x1x1x1", "1x1x67108864x1", "1x1x1x2147483648", "1x2147483648x1x1"])
@pytest.mark.parametrize("machine", ["perlmutter", "dgx-h100"])
def test_a_grid_of_very_many_devices_is_explained_without_looking_at_each(explain, grid, machine):
    record = explain(grid, machine=machine)
    size = max(record["grid"].values())
    (entry, *_) = [entry for entry in record["collectives"] if entry["group_size"] == size]
    assert entry["ranks"] == f"0,1,2,3,...,{size - 1}"


@pytest.mark.parametrize(
    ("option", "start"),
    [("--fix", "x="), ("--max", "x="), ("--bytes", "weights="), ("--micro-batch", ""), ("--grid", "1x1x1x")],
)
@pytest.mark.parametrize("digit", ["9", "0"])
def test_a_count_of_thousands_of_digits_is_refused(refused, option, start, digit):
    command = "explain" if option == "--grid" else "recommend"
    changes = {"--gpus": None} if option == "--grid" else {}
    assert start + 4999 * digit in refused(*arguments(changes | {option: start + 5000 * digit}, command))


@pytest.mark.parametrize(
    ("option", "name"), [("--batch", "the batch"), ("--seq", "the sequence length"), ("--micro-batch", "--micro-batch")]
)
def test_a_count_that_nobody_means_is_refused_with_the_most(refused, option, name):
    text = refused(*arguments({option: str(2**40 + 1)}))
    assert text.startswith(name)
    assert text.endswith(f"1 to {2**40}")


def test_a_new_profile_without_a_name_is_not_told_to_end_as_it_does(refused):
    text = refused("machines", "new", "--from", "vista", ".yaml")
    assert "does not end" not in text
    assert text.startswith("the name ''")
