"""`machines` and `models`: list, show, check and new, as tables and for machines."""

import json

import pytest

from perfmodel import models
from perfmodel.machines import profiles


def read(answer):
    assert (answer.code, answer.err) == (0, "")
    return json.loads(answer.out, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))


@pytest.fixture(scope="module")
def listed_machines(run):
    return read(run("machines", "list", "--format", "json"))["machines"]


@pytest.fixture(scope="module")
def listed_models(run):
    return read(run("models", "list", "--format", "json"))["models"]


def test_every_shipped_machine_is_listed(listed_machines):
    assert [row["name"] for row in listed_machines] == profiles.names()
    wanted = {
        "perlmutter", "perlmutter-80gb", "frontier", "alps", "polaris", "leonardo", "lumi-g", "juwels-booster",
        "jupiter", "marenostrum5", "vista", "delta", "summit", "dgx-a100", "dgx-h100", "dgx-h200", "dgx-b200",
        "gb200-nvl72", "mi300x-node", "aws-p4d", "aws-p5", "azure-ndv4", "azure-ndv5", "gcp-a3-mega", "rtx4090-8x",
        "localhost-cpu",
    }  # fmt: skip
    assert wanted <= {row["name"] for row in listed_machines}
    assert all(row["devices_per_node"] >= 1 and row["device"] for row in listed_machines)


@pytest.mark.parametrize(
    ("machine", "devices"),
    [
        ("perlmutter", 4),
        ("frontier", 8),
        ("summit", 6),
        ("aurora", 12),
        ("vista", 1),
        ("gb200-nvl72", 4),
        ("lumi-g", 8),
    ],
)
def test_the_list_has_the_devices_of_a_node(listed_machines, machine, devices):
    assert next(row["devices_per_node"] for row in listed_machines if row["name"] == machine) == devices


def test_the_list_tells_measured_bandwidths_from_derived_ones(listed_machines):
    kinds = {row["name"]: row["bandwidths"] for row in listed_machines}
    assert kinds["perlmutter"] == "measured"
    assert kinds["alps"] == "derived"


def test_every_model_is_listed_with_its_parameters(listed_models):
    assert [row["name"] for row in listed_models] == models.names()
    assert all(row["parameters"] == models.load(row["name"]).parameters for row in listed_models)


@pytest.mark.parametrize("kind", ["machines", "models"])
def test_lists_are_the_same_in_every_form(run, read_csv, kind):
    rows = read(run(kind, "list", "--format", "json"))[kind]
    table, text = run(kind, "list"), run(kind, "list", "--format", "csv").out
    assert (table.code, table.err) == (0, "")
    assert all(any(line.split()[:1] == [row["name"]] for line in table.out.splitlines()) for row in rows)
    assert read_csv(text) == [{key: "" if value is None else str(value) for key, value in row.items()} for row in rows]


@pytest.mark.parametrize("name", profiles.names())
def test_every_machine_can_be_shown_in_every_form(run, read_csv, name):
    record = read(run("machines", "show", name, "--format", "json"))
    assert record["name"] == name
    rows = read_csv(run("machines", "show", name, "--format", "csv").out)
    table = run("machines", "show", name)
    assert (table.code, table.err) == (0, "")
    assert record["title"] in table.out
    for row in rows:
        assert row["kind"] == record["sources"][row["source"]]["kind"]
        assert row["kind"] in ("vendor", "measured", "paper", "assumed")
        assert float(row["value"]) > 0
        assert row["figure"] in table.out
    assert {"device.memory", "node.devices"} <= {row["figure"] for row in rows}


def test_bare_numbers_of_a_machine_are_in_si(run, read_csv):
    rows = {row["figure"]: row for row in read_csv(run("machines", "show", "perlmutter", "--format", "csv").out)}
    assert (float(rows["device.memory"]["value"]), rows["device.memory"]["unit"]) == (39.5 * 2**30, "B")
    assert (float(rows["device.peak.bf16"]["value"]), rows["device.peak.bf16"]["unit"]) == (312e12, "flop/s")
    assert (float(rows["network.injection"]["value"]), rows["network.injection"]["unit"]) == (100e9, "B/s")


def test_derived_bandwidths_are_shown_as_derived(run):
    assert "derived" in run("machines", "show", "alps").out
    record = read(run("machines", "show", "alps", "--format", "json"))
    derived = {entry["bandwidth"]: entry["value_B_per_s"] for entry in record["derived_bandwidths"]}
    assert derived.keys() == {"inside (1,2)", "inside (1,4)", "inside (2,2)", "between"}
    assert derived["between"] == pytest.approx(
        record["network"]["efficiency"]["value"] * record["network"]["injection"]["value"]
    )


def test_what_was_measured_is_not_derived_as_well(run):
    record = read(run("machines", "show", "perlmutter", "--format", "json"))
    assert [(entry["inner"], entry["size"]) for entry in record["bandwidth"]["inside"]] == [(1, 2), (1, 4), (2, 2)]
    assert record["derived_bandwidths"] == []


@pytest.mark.parametrize("name", models.names())
def test_every_model_can_be_shown_in_every_form(run, read_csv, name):
    record = read(run("models", "show", name, "--format", "json"))
    layers = record["layers"]
    assert sum(layer["repeat"] * layer["parameters"] for layer in layers) == record["parameters"]
    assert record["forward_flop_per_sequence"] > 0
    rows = read_csv(run("models", "show", name, "--format", "csv").out)
    assert [row["name"] for row in rows] == [layer["name"] for layer in layers]
    table = run("models", "show", name)
    assert (table.code, table.err) == (0, "")
    assert f"{record['parameters']:,}" in table.out
    assert all(layer["kind"] in table.out for layer in layers)


def test_a_name_of_a_model_is_known_in_capitals(run):
    assert run("models", "show", "GPT-20B").out == run("models", "show", "gpt-20b").out


@pytest.mark.parametrize("name", ["perlmutter", "frontier", "summit", "vista", "gb200-nvl72", "localhost-cpu"])
def test_a_new_profile_is_valid_and_gives_the_same_answer(run, tmp_path, name):
    path = tmp_path / "mine.yaml"
    made = run("machines", "new", "--from", name, path)
    assert (made.code, made.err) == (0, "")
    assert f"perfmodel machines check {path}" in made.out
    checked = run("machines", "check", path)
    assert (checked.code, checked.err) == (0, "")
    assert str(path) in checked.out
    asked = ("--model", "gpt-tiny", "--batch", 96, "--nodes", 1, "--format", "json")
    one, other = (read(run("recommend", "--machine", machine, *asked)) for machine in (name, path))
    assert (one.pop("machine"), other.pop("machine")) == (name, "mine")
    assert one == other


def test_a_new_profile_explains_itself(run, tmp_path):
    path = tmp_path / "mine.yml"
    assert run("machines", "new", "--from", "perlmutter", path).code == 0
    lines = path.read_text().splitlines()
    assert "name: mine" in lines
    assert sum(line.lstrip().startswith("#") for line in lines) > 30


def test_a_new_profile_can_be_edited_and_the_edit_counts(run, tmp_path):
    path = tmp_path / "mine.yaml"
    run("machines", "new", "--from", "perlmutter", path)
    text = path.read_text()
    assert "memory: 39.5 GiB" in text
    path.write_text(text.replace("memory: 39.5 GiB", "memory: 80 GiB"))
    assert read(run("machines", "show", path, "--format", "json"))["device"]["memory"]["value"] == 80 * 2**30


def test_a_file_that_is_there_is_never_overwritten(refused, tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text("precious")
    assert f"{path} already exists" in refused("machines", "new", "--from", "perlmutter", path)
    assert path.read_text() == "precious"
    link = tmp_path / "link.yaml"
    link.symlink_to(tmp_path / "nowhere.yaml")
    assert refused("machines", "new", "--from", "perlmutter", link)
    assert not (tmp_path / "nowhere.yaml").exists()


@pytest.mark.parametrize(
    "name", ["bad name.yaml", "", "folder/none.yaml", "mine.json", "mine", ".yaml", "\0.yaml", "a" * 300 + ".yaml"]
)
def test_a_new_profile_needs_a_name_that_can_be_used(refused, tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    assert refused("machines", "new", "--from", "vista", name)
    assert list(tmp_path.iterdir()) == []


def test_a_new_profile_needs_a_machine_that_is_known(refused, tmp_path):
    assert "did you mean frontier" in refused("machines", "new", "--from", "frontie", tmp_path / "mine.yaml")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", profiles.names())
def test_shipped_profiles_are_valid(run, name):
    answer = run("machines", "check", profiles.folder() / f"{name}.yaml")
    assert (answer.code, answer.err) == (0, "")
    assert "is a valid profile" in answer.out


def test_a_check_names_the_file_and_the_line(run, profile):
    path = profile("base: perlmutter\ndevice:\n  memory: 40 GB/s [TORCH]\n")
    answer = run("machines", "check", path)
    assert (answer.code, answer.out) == (1, "")
    assert answer.err.startswith(f"perfmodel: {path}:5: ")
