"""docs/profiles.md: its tables are those of the code, and its example of a profile is one."""

import dataclasses
import re
import textwrap

import pytest

import machines_page
from page_tables import renewed
from perfmodel import profiles

pytestmark = pytest.mark.checkout


def test_help_has_exactly_the_fields_of_the_records():
    assert sorted(profiles.HELP) == sorted(
        f"{kind.__name__}.{field.name}" for kind in machines_page.records() for field in dataclasses.fields(kind)
    )


def test_the_tables_of_the_page_are_fresh():
    assert machines_page.PAGE.read_text(encoding="utf-8") == renewed(machines_page.PAGE, machines_page.TABLES)


def test_the_example_of_a_variant_is_a_valid_profile(tmp_path):
    page = machines_page.PAGE.read_text(encoding="utf-8")
    example = re.search(r"```yaml\n( *format: 1\n.*?)```", page, re.DOTALL)[1]
    file = tmp_path / "mine.yaml"
    file.write_text(textwrap.dedent(example), encoding="utf-8")
    found = profiles.load(str(file))
    assert (found.name, found.network.injection.value, found.network.nics.value) == ("ours", 200e9, 4)
    assert found.device == profiles.load("dgx-h100").device
