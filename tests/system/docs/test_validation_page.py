"""docs/validation.md: what can be made without the measured sets is as it would be made now."""

import pytest

import validation_page

pytestmark = pytest.mark.checkout


def test_the_published_part_of_the_page_is_fresh():
    assert validation_page.PAGE.read_text(encoding="utf-8") == validation_page.page()


def test_the_measured_part_says_when_it_was_recorded():
    text = validation_page.PAGE.read_text(encoding="utf-8")
    assert "<!-- measured -->\nRecorded on 20" in text
    assert "| vTrain, one node" in text
