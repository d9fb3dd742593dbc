"""docs/parallelism.md shows the code that runs, and the picture what the ranks hold."""

import re

import pytest

import parallelism_page

pytestmark = pytest.mark.checkout


def test_the_code_on_the_page_is_that_of_the_sources():
    assert parallelism_page.PAGE.read_text(encoding="utf-8") == parallelism_page.page()


def test_the_picture_is_fresh_and_names_every_rank_in_each_matrix():
    assert parallelism_page.PICTURE.read_text(encoding="utf-8") == parallelism_page.picture()
    blocks = re.findall(r'text-anchor="middle">([0-9, ]+)</text>', parallelism_page.picture())
    held = [int(rank) for block in blocks for rank in block.split(", ")]
    assert sorted(held) == sorted(list(range(8)) * 3)
