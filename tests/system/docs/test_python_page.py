"""docs/python.md: its tables are those of the code, and every public name is used on it."""

import re

import pytest

import perfmodel
import python_page
from page_tables import renewed

pytestmark = pytest.mark.checkout


def test_the_tables_of_the_page_are_fresh():
    assert python_page.PAGE.read_text(encoding="utf-8") == renewed(python_page.PAGE, python_page.TABLES)


def test_every_name_is_documented():
    page = python_page.PAGE.read_text(encoding="utf-8")
    for name in perfmodel.__all__:
        assert name.startswith("_") or f"| `{name}` | " in page
    used = set(re.findall(r"perfmodel\.(\w+)\(", page))
    assert {"recommend", "explain", "sweep", "compare", "calibrate", "predict", "load_model", "load_machine"} <= used
