"""docs/profiles.md: its tables are those of the code, and its example of a profile is one."""

import dataclasses
import re
import textwrap

import pytest

import machines_page
from page_tables import renewed
from perfmodel.machines import profiles, template

pytestmark = pytest.mark.checkout


def test_help_has_exactly_the_fields_of_the_records():
    assert sorted(template.HELP) == sorted(
        f"{kind.__name__}.{field.name}" for kind in machines_page.records() for field in dataclasses.fields(kind)
    )


def test_the_tables_of_the_page_are_fresh():
    assert machines_page.PAGE.read_text(encoding="utf-8") == renewed(machines_page.PAGE, machines_page.TABLES)


def example(name, folder):
    """The profile of that name that the page shows."""
    page = machines_page.PAGE.read_text(encoding="utf-8")
    shown = re.findall(r"```yaml\n( *format: 1\n.*?)```", page, re.DOTALL)
    file = folder / "mine.yaml"
    file.write_text(next(textwrap.dedent(text) for text in shown if f"name: {name}\n" in text), encoding="utf-8")
    return profiles.load(str(file))


def test_the_example_of_a_table_of_collectives_is_a_valid_profile(tmp_path):
    (found,) = example("perlmutter-measured", tmp_path).collectives
    assert (found.operation, found.ranks, [row.nodes for row in found.rows]) == ("all-gather", 4, [4, 16])


def test_the_example_of_a_variant_is_a_valid_profile(tmp_path):
    found = example("ours", tmp_path)
    assert (found.name, found.network.injection.value, found.network.nics.value) == ("ours", 200e9, 4)
    assert found.device == profiles.load("dgx-h100").device
