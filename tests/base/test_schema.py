"""The reader of YAML files: the declared type decides, all problems are told at once, and no input gets through."""

import dataclasses
import os
from collections.abc import Mapping
from typing import Annotated, Literal

import pytest

from perfmodel import models, schema
from perfmodel.errors import FileProblems, PerfmodelError
from perfmodel.machines import profiles, template
from perfmodel.sources import Figure, Source


@dataclasses.dataclass(frozen=True, slots=True)
class Wheel:
    size: Annotated[Figure, "B"]
    spokes: int = 0
    colour: Literal["red", "blue"] = "red"


@dataclasses.dataclass(frozen=True, slots=True)
class Cart:
    name: str
    sources: Mapping[str, Source]
    wheels: tuple[Wheel, ...] = ()
    labels: tuple[str, ...] = ()
    spare: Annotated[Figure, "1"] | None = None
    loaded: bool = False
    weight: float = 0.0

    def __post_init__(self):
        if len(self.wheels) == 3:
            raise PerfmodelError("three wheels fall over")


HEAD = 'name: cart\nsources:\n  K: {kind: assumed, note: "for a test"}\n'


def read(text, kind=Cart):
    return schema.build(kind, schema.compose(text, "cart.yaml"), "cart.yaml")


def problems(text):
    with pytest.raises(FileProblems) as caught:
        read(text)
    return caught.value.problems


def test_a_good_file_becomes_a_record():
    cart = read(HEAD + "wheels:\n  - {size: '2 MiB [K]', colour: blue, spokes: 12}\nloaded: true\nweight: 1.5\n")
    assert cart.wheels[0].size.value == 2 * 2**20
    assert (cart.wheels[0].colour, cart.wheels[0].spokes, cart.loaded, cart.weight) == ("blue", 12, True, 1.5)


@pytest.mark.parametrize("text", ["on", "no", "12:30:00", "1_000", "0o17", "2026-08-22", "null", "~", "1e3"])
def test_yaml_guesses_nothing(text):
    assert read(HEAD.replace("name: cart", f"name: {text}")).name == text


@pytest.mark.parametrize("empty", ["", "~", "null"])
def test_an_optional_value_may_be_empty(empty):
    assert read(f"{HEAD}spare: {empty}\n").spare is None


@pytest.mark.parametrize("quoted", ['""', "'~'", '"null"'])
def test_a_quoted_nothing_is_text(quoted):
    assert "names no source" in problems(f"{HEAD}spare: {quoted}\n")[0]


def test_all_problems_are_told_at_once_in_the_order_of_their_lines():
    text = """\
name: cart
sources:
  K: {kind: assumed, note: for a test}
wheels:
  - {size: 2 MiB/s [K], spokes: twelve}
  - {size: 7 [K], colour: green}
  - {spokes: 3}
labels: {a: b}
lables: [x]
name: again
spare: [1]
""".replace("2 MiB/s [K]", "'2 MiB/s [K]'").replace("7 [K]", "'7 [K]'")
    assert problems(text) == (
        "cart.yaml:5: '2 MiB/s' is in B/s, wanted B (for example 40 GB or 40 GiB)",
        "cart.yaml:5: 'twelve' is not a number with a unit, for example 4",
        "cart.yaml:6: '7' is in no unit, wanted B (for example 40 GB or 40 GiB)",
        "cart.yaml:6: 'green' is none of red, blue",
        "cart.yaml:7: missing size",
        "cart.yaml:8: wanted a list, found keys and values",
        "cart.yaml:9: unknown key lables (did you mean labels?)",
        "cart.yaml:10: the key name is given twice",
        "cart.yaml:11: wanted one value, found a list",
    )


def test_a_rule_of_the_record_is_told_at_its_first_line():
    wheel = "  - {size: '2 MiB [K]'}\n"
    assert problems(f"# a comment\n{HEAD}wheels:\n{wheel * 3}") == ("cart.yaml:2: three wheels fall over",)


def test_a_rule_is_checked_only_when_the_parts_are_right():
    wheel = "  - {size: '2 MiB [K]'}\n"
    assert len(problems(f"{HEAD}wheels:\n{wheel * 2}  - {{size: x}}\n")) == 1


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("spokes: 1.5", "'1.5' is not a whole number"),
        ("spokes: 1e30", "'1e30' is not a whole number"),
        ("spokes: 1e999", "'1e999' is too large to be meant"),
        ("spokes: nan", "'nan' is not a number"),
        ("spokes: .inf", "'.inf' is not a number"),
        ("spokes: 0x10", "'0x10' is not a number"),
        ("spokes: ١٢", "'١٢' is not a number"),
        ("spokes: 1_000", "'1_000' is not a number"),
        ("colour: Red", "'Red' is none of red, blue"),
        ("colour: [red]", "wanted one value, found a list"),
        ("? [a]\n    : 1", "a key must be text, found a list"),
        ("<<: {spokes: 1}", "unknown key <<"),
    ],
)
def test_a_wrong_value_is_refused(text, told):
    assert told in problems(f"{HEAD}wheels:\n  - size: 2 MiB [K]\n    {text}\n")[0]


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("{kind: vendor}", "a source of kind vendor needs an address and the date"),
        ("{kind: vendor, address: here}", "a source of kind vendor needs an address and the date"),
        ("{kind: assumed}", "needs a note that says why"),
        ("{kind: hearsay, note: x}", "'hearsay' is none of vendor, measured, paper, assumed"),
        ("{note: x}", "missing kind"),
        ("a page", "wanted keys and values, found one value"),
    ],
)
def test_a_source_that_nobody_could_look_up_is_refused(source, told):
    assert any(told in problem for problem in problems(f"name: cart\nsources:\n  K: {source}\n"))


def test_a_file_without_sources_says_so():
    assert "cart.yaml:1: missing sources" in problems("name: cart\n")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "cart.yaml: the file is empty"),
        ("# only a comment\n", "cart.yaml: the file is empty"),
        ("---\n...\n", "wanted keys and values, found one value"),
        ("just words", "cart.yaml:1: wanted keys and values, found one value"),
        ("[a, b]", "cart.yaml:1: wanted keys and values, found a list"),
        ("a: b: c", "cart.yaml:1: not YAML: mapping values are not allowed"),
        ("a:\n\t- b", "cart.yaml:2: not YAML: found character that cannot start any token"),
        ("a: 'b", "not YAML"),
        ("a: \x00", "not YAML"),
        ("a: \x07", "not YAML"),
        ("a: 1\n---\nb: 2\n", "not YAML"),
        ("%YAML 9.9\n---\na: 1\n", "not YAML"),
        ("a: *nowhere", "not YAML"),
        ("a: &x 1\nb: *x", "cart.yaml:1: used again by an alias"),
        ("&a [*a]", "cart.yaml:1: used again by an alias"),
        ("a: &a {b: *a}", "cart.yaml:1: used again by an alias"),
        ("x: &x {a: 1}\ny:\n  <<: *x", "cart.yaml:1: used again by an alias"),
        pytest.param("[" * 50 + "]" * 50, "nested deeper than 40 levels", id="50 deep"),
        pytest.param("[" * 5000 + "]" * 5000, "not YAML", id="5000 deep"),
        pytest.param("[" * 200_000, "not YAML", id="brackets"),
        pytest.param("- " * 100_000, "not YAML", id="dashes"),
    ],
)
def test_text_that_is_no_record_is_refused(text, told):
    assert told in "\n".join(problems(text))


def test_python_tags_build_nothing():
    text = HEAD + "labels: [!!python/object/apply:os.system [echo], !!binary aGk=, !!set x]\n"
    assert problems(text) == ("cart.yaml:4: wanted one value, found a list",)


def test_a_page_of_nonsense_is_cut_short():
    found = problems("".join(f"key{number}: 1\n" for number in range(5000)))
    assert len(found) == 201
    assert found[-1] == "cart.yaml: and more, which is not shown"


def test_a_long_word_is_cut_in_the_message():
    assert len(problems(f"{HEAD}{'x' * 1_000_000}: 1\n")[0]) < 600


def test_what_a_file_holds_cannot_write_on_the_terminal():
    assert problems(HEAD + '"\\e[31m\\n": 1\n')[0].startswith("cart.yaml:4: unknown key \\x1b[31m\\n (")


def test_long_runs_of_blanks_take_no_time():
    assert problems(f"{HEAD}spare: '1{' ' * 1_000_000}x'\n")[0].startswith("cart.yaml:4: '1  ")


def test_a_byte_order_mark_and_windows_line_ends_are_read(tmp_path):
    file = tmp_path / "cart.yaml"
    file.write_bytes(b"\xef\xbb\xbf" + HEAD.replace("\n", "\r\n").encode())
    assert read(schema.read_text(file)).name == "cart"


def test_a_missing_file_is_told(tmp_path):
    with pytest.raises(PerfmodelError, match=r"nowhere.yaml cannot be read: No such file or directory"):
        schema.read_text(tmp_path / "nowhere.yaml")


def test_a_folder_is_told(tmp_path):
    with pytest.raises(PerfmodelError, match="is a directory, wanted a file"):
        schema.read_text(tmp_path)


def test_a_binary_file_is_told(tmp_path):
    file = tmp_path / "photo.yaml"
    file.write_bytes(bytes(range(256)))
    with pytest.raises(PerfmodelError, match=r"photo.yaml is not UTF-8 text \(byte 128\)"):
        schema.read_text(file)


def test_a_huge_file_is_told(tmp_path):
    file = tmp_path / "huge.yaml"
    file.touch()
    os.truncate(file, 1 << 40)
    with pytest.raises(PerfmodelError, match="has more than the 4000000 bytes expected at most"):
        schema.read_text(file)


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="needs a device file")  # noqa: PTH110 - as a condition
def test_an_endless_file_is_not_opened():
    with pytest.raises(PerfmodelError, match="/dev/zero is a pipe or a device, wanted a file"):
        schema.read_text(schema.Path("/dev/zero"))


def test_nobody_waits_for_what_a_pipe_may_bring(tmp_path):
    pipe = tmp_path / "pipe.yaml"
    os.mkfifo(pipe)
    for read_it in (schema.read_text, profiles.load_file, lambda path: models.load(str(path))):
        with pytest.raises(PerfmodelError, match=r"pipe.yaml is a pipe or a device, wanted a file"):
            read_it(pipe)
    with pytest.raises(PerfmodelError, match=r"pipe.yaml is a pipe or a device, wanted a file"):
        template.template(str(pipe), "mine")


def test_the_parser_without_the_c_library_reads_the_same(monkeypatch):
    text = HEAD + "wheels:\n  - {size: '2 MiB [K]', colour: blue}\nspare: ~\n"
    with_library = read(text)
    monkeypatch.setattr(schema, "_Loader", schema.yaml.SafeLoader)
    assert read(text) == with_library
    with pytest.raises(FileProblems, match=r"not YAML"):
        read("[" * 100_000)
