"""Files that cannot be what they are given as: one sentence with the file, the line or key, and what would be right."""

import re

import pytest

from machines import LLAMA

BASE = "base: perlmutter\n"


@pytest.fixture
def of_model(refused):
    return lambda path: refused("recommend", "--model", path, "--machine", "perlmutter", "--batch", 8, "--gpus", 4)


@pytest.fixture
def of_machine(run):
    """What is wrong with a profile; each of its problems is a line."""

    def ask(path):
        asked = ("recommend", "--machine", path, "--model", "gpt-tiny", "--batch", 8, "--gpus", 4)
        answers = [run(*asked), run("machines", "show", path), run("machines", "check", path)]
        assert {answer.code for answer in answers} == {1}
        assert {answer.out for answer in answers} == {""}
        (text,) = {answer.err for answer in answers}
        assert text.startswith("perfmodel: ")
        assert "Traceback" not in text
        return text.removeprefix("perfmodel: ").splitlines()

    return ask


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", r":1: not JSON"),
        ("{", r":1: not JSON"),
        ('{"model_type": "llama",\n "hidden_size": }', r":2: not JSON"),
        ("[]", "wanted an object with keys, found a list"),
        ("null", "found null"),
        ("{}", "missing model_type"),
        ('{"model_type": 3}', "model_type is 3, wanted a text"),
        ('{"model_type": "bert"}', "model_type is 'bert'; supported are .*llama.*qwen2"),
        ('{"model_type": "llama"}', "missing num_hidden_layers"),
        ('{"a":' * 50000, "nested too deeply"),
        ('{"model_type": "llama", "num_hidden_layers": ' + "9" * 5000 + "}", "thousands of digits"),
    ],
)
def test_a_config_that_cannot_be_read_is_refused(config, of_model, text, complaint):
    path = config(text)
    found = of_model(path)
    assert found.startswith(str(path))
    assert re.search(complaint, found), found


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"hidden_size": 0}, "hidden_size is 0"),
        ({"hidden_size": -1024}, "hidden_size is -1024"),
        ({"hidden_size": 1024.5}, "hidden_size is 1024.5"),
        ({"hidden_size": "1024"}, "hidden_size is '1024'"),
        ({"hidden_size": [1024]}, "hidden_size is a list"),
        ({"hidden_size": True}, "hidden_size is true"),
        ({"hidden_size": 2**40}, f"hidden_size is {2**40}"),
        ({"hidden_size": float("nan")}, "hidden_size is nan"),
        ({"num_attention_heads": 3}, "1024.* 3 heads"),
        ({"num_key_value_heads": 3}, "16 heads .* 3 key-value heads"),
        ({"num_hidden_layers": None}, "missing num_hidden_layers"),
        ({"tie_word_embeddings": "yes"}, "tie_word_embeddings is 'yes', wanted true or false"),
    ],
)
def test_a_config_with_an_impossible_value_is_refused_with_its_key(config, of_model, change, complaint):
    path = config({**LLAMA, **change})
    found = of_model(path)
    assert found.startswith(f"{path}: ")
    assert re.search(complaint, found), found


@pytest.mark.parametrize(
    ("values", "name"),
    [
        ({"model_type": "mixtral", "num_local_experts": 8}, "mixtral"),
        ({"model_type": "qwen3_moe", "num_experts": 128}, "qwen3_moe"),
        ({"model_type": "deepseek_v3", "n_routed_experts": 256}, "deepseek_v3"),
        (
            {"model_type": "llama4", "text_config": {"model_type": "llama4_text", "num_local_experts": 16}},
            "llama4_text",
        ),
        (LLAMA | {"num_experts": 8}, "llama"),
    ],
)
def test_a_mixture_of_experts_is_refused_by_name(config, of_model, values, name):
    found = of_model(config(values))
    experts = next(
        value for part in (values, values.get("text_config", {})) for key, value in part.items() if "exp" in key
    )
    assert f"{name} is a mixture of experts ({experts} experts" in found


def test_a_config_that_is_no_text_is_refused(tmp_path, of_model):
    path = tmp_path / "config.json"
    path.write_bytes(b"\xff\xfe{}")
    assert of_model(path) == f"{path} is not UTF-8 text (byte 0)"


def test_a_file_that_is_not_there_is_refused(tmp_path, of_model, of_machine):
    assert of_model(tmp_path / "config.json") == f"{tmp_path / 'config.json'} cannot be read: No such file or directory"
    path = tmp_path / "none.yaml"
    assert of_machine(path) == [f"{path} cannot be read: No such file or directory"]


def test_a_directory_is_refused_with_the_file_in_it(config, of_model, of_machine, tmp_path):
    path = config(LLAMA)
    assert of_model(path.parent) == f"{path.parent} is a directory, give {path}"
    assert "is a directory" in of_model(tmp_path)
    folder = tmp_path / "folder.yaml"
    folder.mkdir()
    assert of_machine(folder) == [f"{folder} is a directory, wanted a file"]
    assert "is a directory" in of_model(folder)


def test_a_file_of_another_kind_is_refused(tmp_path, of_model):
    path = tmp_path / "model.txt"
    path.write_text("x")
    assert "ends neither in .yaml" in of_model(path)


@pytest.mark.parametrize(
    ("body", "line", "complaint"),
    [
        ("device:\n  memory: 40 GB/s [TORCH]\n", 5, "'40 GB/s' is in B/s, wanted B"),
        ("device:\n  memory: 40 [TORCH]\n", 5, "'40' is in no unit, wanted B"),
        ("device:\n  memory: 40 GX [TORCH]\n", 5, "unknown unit 'GX'"),
        ("device:\n  memory: -40 GB [TORCH]\n", 5, "-40"),
        ("device:\n  memory: lots [TORCH]\n", 5, "'lots' is not a number with a unit"),
        ("device:\n  memory: 40 GB\n", 5, "source"),
        ("device:\n  memory: 40 GB [NOBODY]\n", 5, "names the source NOBODY"),
        ("device:\n  memory: [40, GB]\n", 5, "list"),
        ("device:\n  peak:\n    bf16: 312 TB/s [TORCH]\n", 6, "wanted flop/s"),
        ("device:\n  memory: 1e300 GB [TORCH]\n", None, "device.memory|too large|at most"),
        ("node:\n  devices: 0 [TORCH]\n", 5, "greater than 0"),
        ("node:\n  devices: 4.5 [TORCH]\n", None, "devices"),
        ("fabric:\n  efficiency: 1.3 [TORCH]\n", None, "efficiency"),
        ("fabric:\n  efficiency: 0 [TORCH]\n", 5, "greater than 0"),
        ("fabric:\n  topology: ring\n", 5, "'ring'"),
        ("devise:\n  memory: 40 GB [TORCH]\n", 4, r"unknown key devise \(did you mean device\?\)"),
        ("device:\n  memroy: 40 GB [TORCH]\n", 5, r"unknown key memroy \(did you mean memory"),
        ("device:\n  memory: 40 GB [TORCH]\n  memory: 80 GB [TORCH]\n", 6, "memory is given twice"),
        ("device: many\n", 4, "wanted keys and values"),
        ("network:\n  injection: 1 GB/s [TORCH]\n", None, "injection"),
        ("bandwidth:\n  between: 900 GB/s [TORCH]\n", None, "between"),
    ],
)
def test_a_profile_with_an_impossible_figure_is_refused_with_its_line(profile, of_machine, body, line, complaint):
    path = profile(BASE + body)
    problems = of_machine(path)
    assert all(problem.startswith(str(path)) for problem in problems)
    where = rf"^{re.escape(str(path))}:{line}: " if line else "^"
    assert any(re.search(where, problem) and re.search(complaint, problem) for problem in problems), problems


def test_all_problems_of_a_profile_are_told_at_once(profile, of_machine):
    path = profile(BASE + "device:\n  memory: 40 GB/s [TORCH]\n  memory_bandwidth: x [TORCH]\n  nmae: y\nfabrik: {}\n")
    lines = [int(problem.removeprefix(f"{path}:").split(":")[0]) for problem in of_machine(path)]
    assert sorted(lines) == [5, 6, 7, 8]


@pytest.mark.parametrize(
    "text", ["", "# only a comment\n", "perlmutter", "- a\n- b\n", "{", "a: [1", "a: b: c", "\t- x", "%"]
)
def test_a_file_that_is_no_profile_is_refused(tmp_path, of_machine, text):
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    (problem,) = of_machine(path)
    assert problem.startswith(str(path))


def test_a_profile_on_an_unknown_base_is_refused_with_the_nearest(run, tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text("format: 1\nname: mine\nbase: perlmuter\n")
    answer = run("machines", "check", path)
    assert answer.code == 1
    assert answer.err.startswith(f"perfmodel: {path}:3: no machine is called 'perlmuter' (did you mean perlmutter")


def test_profiles_that_build_on_each_other_in_a_circle_are_refused(tmp_path, of_machine):
    for one, other in (("first", "second"), ("second", "first")):
        (tmp_path / f"{one}.yaml").write_text(f"format: 1\nname: {one}\nbase: {other}\n")
    (problem,) = of_machine(tmp_path / "first.yaml")
    assert "bases" in problem


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("format: 1\nname: m\n", "transformer or blocks"),
        ("format: 2\nname: m\ntransformer: {}\n", "format is 2|missing"),
        (
            "format: 1\nname: m\ntransformer: {layers: 4, hidden: 1000, heads: 3, vocabulary: 9, sequence: 8}\n",
            "hidden 1000 is no multiple of 3 heads",
        ),
        ("format: 1\nname: m\ntransformer:\n  layers: four\n", ":4: "),
        ("format: 1\nname: m\nsequence: 8\nblocks: []\n", "transformer or blocks"),
    ],
)  # fmt: skip
def test_a_model_file_that_makes_no_sense_is_refused(run, tmp_path, text, complaint):
    path = tmp_path / "model.yaml"
    path.write_text(text)
    answer = run("models", "show", path)
    assert (answer.code, answer.out) == (1, "")
    assert re.search(complaint, answer.err), answer.err
    assert "Traceback" not in answer.err
