"""Templates of profiles: they read back, explain every field, and never overwrite a file."""

import dataclasses
import re
from typing import get_args

import pytest

from perfmodel import files, schema
from perfmodel.errors import PerfmodelError
from perfmodel.machines import profiles, template
from perfmodel.machines.machine import Machine
from perfmodel.sources import Kind

SHIPPED = {name: profiles.load(name) for name in profiles.names()}


@pytest.mark.parametrize("name", SHIPPED)
def test_a_template_reads_back_as_the_same_machine(name):
    text = template.template(name, "ours")
    copy = schema.build(Machine, schema.compose(text, "ours.yaml"), "ours.yaml")
    assert copy == dataclasses.replace(SHIPPED[name], name="ours", base="")


def test_a_template_explains_every_field_once():
    text = template.template("perlmutter", "ours")
    explained = re.sub(r"\n *# ", " ", text)
    for help_text in template.HELP.values():
        if help_text != template.HELP["Machine.base"]:
            assert help_text in explained
    assert text.count(template.HELP["Qos.max_time"]) == 1


def test_a_template_needs_a_name_that_can_be_a_file_name():
    with pytest.raises(PerfmodelError, match=r"the name .* is not made of letters"):
        template.template("perlmutter", "../ours")


def test_a_template_can_be_made_from_a_file(tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text(template.template("vista", "mine"), encoding="utf-8")
    assert template.template(str(file), "vista") == template.template("vista", "vista").replace(
        "from vista", "from mine"
    )


def test_a_new_profile_overwrites_nothing(tmp_path):
    file = tmp_path / "mine.yaml"
    files.write_new(file, "first")
    with pytest.raises(PerfmodelError, match=r"mine.yaml already exists"):
        files.write_new(file, "second")
    assert file.read_text(encoding="utf-8") == "first"


@pytest.mark.parametrize("name", ["nowhere/mine.yaml", "a\0b.yaml", "x" * 5000])
def test_a_new_profile_that_cannot_be_written_is_told(tmp_path, name):
    with pytest.raises(PerfmodelError, match="cannot be written"):
        files.write_new(tmp_path / name, "text")


def test_kinds_of_source_are_told_in_the_help():
    assert all(kind in template.HELP["Source.kind"] for kind in get_args(Kind))
