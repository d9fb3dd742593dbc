"""The one writer of profiles: what it writes reads as what was meant, and no line parts a number from its unit."""

import pytest
import yaml

from perfmodel.machines import profile_text

AWKWARD = ["plain", "", "null", "~", "a: b # c", 'says "so"', "- x", "[1", "é", "a\nb", " blank ", "{x}", "12 GB/s [A]"]


def read(text):
    """All values as the text that they are, which is how a profile is read."""
    return yaml.load(text, Loader=yaml.BaseLoader)  # noqa: S506 - it makes nothing but text


@pytest.mark.parametrize("words", AWKWARD)
def test_any_text_comes_back_wherever_it_stands(words):
    content = {"name": words, "sources": {"A": {"note": words}}, "device": {"kind": words}, "notes": ["One.", words]}
    assert read(profile_text.text(content)) == content


def test_long_rows_are_wrapped_between_figures_only():
    times = [f"{number}.25 us" for number in range(1, 60)]
    content = {"collectives": [{"ranks": "4", "sizes": times, "rows": [{"nodes": "2", "times": times}]}]}
    text = profile_text.text(content)
    assert read(text) == content
    assert max(map(len, text.splitlines())) <= profile_text.WIDTH
    assert not any(line.lstrip().startswith("us") for line in text.splitlines())
