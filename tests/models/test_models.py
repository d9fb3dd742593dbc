"""Models by name and from our own files, and the page that describes them."""

import dataclasses
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from perfmodel import models
from perfmodel.errors import FileProblems, PerfmodelError, UsageError
from perfmodel.models.model import Linear, Model, Transformer
from perfmodel.models.presets import PRESETS
from perfmodel.models.unet import UNet

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "models.md"
PUBLISHED = {
    "llama-2-7b": 6_738_415_616,
    "llama-2-13b": 13_015_864_320,
    "llama-2-70b": 68_976_648_192,
    "llama-3-8b": 8_030_261_248,
    "llama-3-70b": 70_553_706_496,
    "llama-3-405b": 405_853_388_800,
    "mistral-7b": 7_241_732_096,
    "qwen2.5-7b": 7_615_616_512,
    "qwen2.5-72b": 72_706_203_648,
}
BLOCKS = """\
format: 1
name: two layers
sequence: 8
blocks:
  - name: only
    layers:
      - linear: {name: up, inputs: 4, outputs: 16}
      - linear: {name: down, inputs: 16, outputs: 4, transposed: true}
"""
SIZES = """\
format: 1
name: small
transformer: {layers: 2, hidden: 8, heads: 2, vocabulary: 10, sequence: 4}
"""


@pytest.fixture
def write(tmp_path):
    def written(text, name="model.yaml"):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return str(path)

    return written


def examples():
    return dict(re.findall(r"<!-- file (\S+) -->\n```yaml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL))


def problems(path):
    with pytest.raises(FileProblems) as caught:
        models.load(path)
    return [problem.removeprefix(f"{path}:") for problem in caught.value.problems]


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_preset_has_its_published_number_of_parameters(name):
    assert models.load(name).parameters == PUBLISHED[name]


@pytest.mark.parametrize("name", models.names())
def test_a_preset_is_a_model_called_by_its_name(name):
    model = models.load(name)
    assert isinstance(model, Model)
    assert (model.name, model.transformer) == (name, None if name.startswith("unet") else PRESETS[name].shape)
    assert models.load(name.upper()) == model


@pytest.mark.parametrize("name", [name for name in models.names() if re.search(r"\d+b$", name)])
def test_a_preset_has_about_as_many_parameters_as_its_name_says(name):
    billions = int(re.search(r"(\d+)b$", name)[1])
    assert models.load(name).parameters / 1e9 == pytest.approx(billions, rel=0.1)


def test_every_preset_of_a_gpt_is_counted_by_the_papers_formula():
    assert [name for name in models.names() if name.startswith(("gpt", "megatron"))] == [
        name for name in models.names() if isinstance(PRESETS[name].shape, Transformer) and PRESETS[name].shape.is_gpt
    ]


def test_a_preset_is_loaded_without_a_parser():
    ask = (
        "import sys; from perfmodel import models; [models.load(name) for name in models.names()]; "
        "print(sorted({'json', 'yaml', 'perfmodel.schema'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "[]\n"


def test_a_preset_is_loaded_in_less_than_two_milliseconds():
    def seconds(name):
        start = time.perf_counter()
        models.load(name)
        return time.perf_counter() - start

    assert max(min(seconds(name) for _ in range(5)) for name in models.names()) < 2e-3


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("gpt20b", "no model is called 'gpt20b' (did you mean gpt-20b, "),
        ("meta-llama/Llama-2-7b-hf", "no model is called 'meta-llama/Llama-2-7b-hf' (did you mean llama-2-7b, "),
        ("zzz", "no model is called 'zzz' (known: gpt-100b, "),
        ("", "no model is called '' (known: "),
        ("a\0b", "no model is called 'a\\x00b' (known: "),
        ("/" + "x" * 5000, "no model is called '/xxx"),
        ("none.yaml", "none.yaml cannot be read: No such file or directory"),
        ("none.YML", "none.YML cannot be read: No such file or directory"),
        ("none.json", "none.json cannot be read: No such file or directory"),
        ("a\0b.yaml", "a\0b.yaml cannot be read: "),
        ("x" * 5000 + ".json", "x"),
    ],
)
def test_what_is_no_model_is_refused_in_one_sentence(text, message, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(PerfmodelError) as caught:
        models.load(text)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


def test_a_directory_is_refused_with_the_file_to_give(tmp_path):
    with pytest.raises(UsageError, match=r"is a directory, wanted a \.yaml file or a config\.json$"):
        models.load(str(tmp_path))
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(UsageError, match=f"is a directory, give {tmp_path}/config.json$"):
        models.load(str(tmp_path))


@pytest.mark.parametrize("suffix", [".yaml", ".yml", ".json"])
def test_a_directory_that_is_called_like_a_file_is_a_directory(suffix, tmp_path):
    folder = tmp_path / f"model{suffix}"
    folder.mkdir()
    with pytest.raises(UsageError, match="is a directory, wanted"):
        models.load(str(folder))


def test_a_file_of_another_kind_is_refused(write):
    with pytest.raises(UsageError, match=r"ends neither in \.yaml .* nor in \.json"):
        models.load(write("", "model.txt"))


def test_a_file_of_sizes_is_the_transformer_of_those_sizes(write):
    shape = Transformer(layers=2, hidden=8, heads=2, vocabulary=10, sequence=4)
    assert models.load(write(SIZES)) == shape.model("small")


def test_a_file_of_blocks_has_the_layers_it_lists(write):
    model = models.load(write(BLOCKS, "model.yml"))
    assert [layer for _, layer in model.layers()] == [
        Linear(name="up", inputs=4, outputs=16),
        Linear(name="down", inputs=16, outputs=4, transposed=True),
    ]
    assert (model.name, model.sequence, model.transformer) == ("two layers", 8, None)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("format: 1", "format: 2", ["1: format is 2, this version reads 1"]),
        ("format: 1\n", "", ["1: missing format"]),
        ("name: two layers", "name: ' '", ["1: name is ' ', wanted some letters"]),
        ("name: two layers", 'name: "a\\e"', ["1: name is 'a\\x1b', wanted some letters"]),
        ("sequence: 8\n", "", ["1: missing sequence, which blocks need beside them"]),
        ("sequence: 8", "sequence: 0", ["1: sequence is 0, wanted a number greater than 0 and at most 2147483648"]),
        ("sequence: 8", "sequence: 8.5", ["3: '8.5' is not a whole number"]),
        ("sequence: 8", "sequence: eight", ["3: 'eight' is not a number with a unit, for example 4"]),
        ("inputs: 16", "inputs: 16, width: 3", ["8: unknown key width (known: bias, inputs, "]),
        ("inputs: 16", "inputs: 16, inputs: 16", ["8: the key inputs is given twice"]),
        ("inputs: 4", "inputs: -4", ["7: inputs is -4, wanted a number greater than 0 and at most 2147483648"]),
        ("- linear", "- linaer", ["7: unknown key linaer (did you mean linear?)"]),
        ("outputs: 4, transposed: true}", "}", ["8: missing outputs"]),
        ("transposed: true", "transposed: yes", ["8: 'yes' is none of true, false"]),
        ("- linear: {name: up, inputs: 4, outputs: 16}", "- {}", ["7: a layer has exactly one kind of linear, "]),
        ("blocks:", "blocks: []\nmore:", ["5: unknown key more "]),
    ],
)
def test_a_problem_of_a_file_is_told_with_its_line(before, after, expected, write):
    assert before in BLOCKS
    found = problems(write(BLOCKS.replace(before, after, 1)))
    for problem, start in zip(sorted(found), sorted(expected), strict=True):
        assert problem.startswith(start)


def test_two_problems_are_told_at_once(write):
    text = BLOCKS.replace("inputs: 4", "inputs: four").replace("transposed: true", "transposed: yes")
    assert [problem.partition(":")[0] for problem in problems(write(text))] == ["7", "8"]


def test_a_layer_of_two_kinds_is_refused(write):
    text = BLOCKS.replace("outputs: 16}\n", "outputs: 16}\n        norm: {name: n, width: 4}\n")
    assert problems(write(text))[0].endswith("this one has 2")


def test_a_file_gives_sizes_or_blocks_and_one_sequence(write):
    both = BLOCKS + SIZES.partition("name: small\n")[2]
    assert problems(write(both)) == ["1: wanted either transformer or blocks"]
    assert problems(write("format: 1\nname: a\n")) == ["1: wanted either transformer or blocks"]
    twice = SIZES.replace("format: 1\n", "format: 1\nsequence: 4\n")
    assert problems(write(twice)) == ["1: sequence stands inside transformer, not beside it"]


def test_the_unet_has_four_levels_whose_positions_are_quartered():
    shares = {}
    for block, layer in models.load("unet-7b").layers():
        if isinstance(layer, Linear):
            shares.setdefault(layer.positions, []).append((block.name, layer.outputs))
    assert sorted(shares, reverse=True) == [1, 1 / 4, 1 / 16, 1 / 64]
    assert [{outputs for _, outputs in layers} for _, layers in sorted(shares.items(), reverse=True)] == [
        {2048},
        {4096},
        {4096},
        {4096},
    ]


def test_a_residual_block_is_a_normal_and_a_transposed_convolution_and_a_skip_where_the_width_changes():
    for block in models.load("unet-28b").blocks:
        first, second, *skip = [layer for layer in block.layers if isinstance(layer, Linear)]
        assert (first.kernel, first.transposed, second.kernel, second.transposed) == (3, False, 3, True)
        assert [(layer.kernel, layer.transposed) for layer in skip] == (
            [(1, False)] if first.inputs != first.outputs else []
        )


def test_the_way_up_of_the_unet_takes_all_that_the_way_down_kept():
    channels = 64
    model = UNet(channels=channels, image=32).model("unet")
    inputs = {"down": 0, "up": 0}
    outputs = {"down": 0, "up": 0}
    for block in model.blocks:
        first = next(layer for layer in block.layers if isinstance(layer, Linear))
        way = block.name.split()[0]
        if way in inputs:
            inputs[way] += block.repeat * first.inputs
            outputs[way] += block.repeat * first.outputs
    # Kept: the image's own width, every block's output, and each of the three smaller images.
    kept = channels + outputs["down"] + channels * (1 + 2 + 2)
    last = channels
    assert inputs["up"] == kept + outputs["up"] - last + 2 * channels


def test_the_examples_of_the_page_are_read_as_it_says(write):
    found = {name: models.load(write(text, name)) for name, text in examples().items()}
    assert {name: model.name for name, model in found.items()} == {"short.yaml": "my-llama", "blocks.yaml": "my-hybrid"}
    assert {block.name: block.repeat for block in found["blocks.yaml"].blocks} == {
        "embedding": 1,
        "decoder": 12,
        "convolutions": 2,
        "head": 1,
    }
    decoder = found["blocks.yaml"].blocks[1]
    gpt = Transformer(layers=12, hidden=1024, heads=16, vocabulary=32000, sequence=1024)
    renamed = dataclasses.replace(decoder.layers[6], name="activation")
    assert (*decoder.layers[:6], renamed, *decoder.layers[7:]) == gpt.model("gpt").blocks[1].layers


@pytest.mark.checkout
def test_the_tables_of_the_page_are_fresh():
    import models_page
    from page_tables import renewed

    assert PAGE.read_text(encoding="utf-8") == renewed(PAGE, models_page.TABLES), (
        "run python tools/models_page.py --write"
    )
