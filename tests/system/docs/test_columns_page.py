"""docs/columns.md: its tables are those of the declared columns and terms, which cover what the model computes."""

import dataclasses

import pytest

import columns_page
from page_tables import renewed
from perfmodel.memory.per_device import Memory
from perfmodel.search.terms import MEMORY_TERMS, TERMS
from perfmodel.traffic.per_step import Communication

pytestmark = pytest.mark.checkout


def test_the_tables_of_the_page_are_fresh():
    assert columns_page.PAGE.read_text(encoding="utf-8") == renewed(columns_page.PAGE, columns_page.TABLES)


def test_every_term_that_the_model_computes_is_declared_in_the_same_order():
    assert [term.key for term in TERMS] == [field.name for field in dataclasses.fields(Communication)]
    assert list(MEMORY_TERMS) == [field.name for field in dataclasses.fields(Memory)]
