"""Errors: one family, exit codes by kind, messages that a terminal may show."""

import pytest

from perfmodel import errors
from perfmodel.errors import FileProblems, NoGridError, PartError, PerfmodelError, UsageError, nearest, printable


def test_every_error_of_the_project_is_of_one_family():
    kinds = [one for one in vars(errors).values() if isinstance(one, type)]
    assert len(kinds) >= 5
    assert all(issubclass(one, PerfmodelError) for one in kinds)
    assert not issubclass(NoGridError, UsageError)  # exit code 1, not 2


def test_problems_of_a_file_are_told_one_a_line():
    error = FileProblems("a.yaml", ["a.yaml:1: one", "a.yaml:2: two"])
    assert str(error) == "a.yaml:1: one\na.yaml:2: two"
    assert (error.path, error.problems) == ("a.yaml", ("a.yaml:1: one", "a.yaml:2: two"))


def test_a_part_keeps_the_way_to_it():
    assert PartError("too large", "rows", 3, "nodes").parts == ("rows", 3, "nodes")


@pytest.mark.parametrize(
    ("text", "shown"),
    [("plain\nlines", "plain\nlines"), ("\x1b[31mred", "\\x1b[31mred"), ("a\tb\r", "a\\tb\\r"), ("\u202e", "\\u202e")],
)
def test_nothing_that_a_terminal_would_obey_is_left(text, shown):
    assert printable(text) == shown


def test_near_names_are_offered_as_they_are_spelled():
    assert nearest("FRONTEIR", ["frontier", "alps"]) == "did you mean frontier?"
    assert nearest("?", ["b", "a"]) == "known: a, b"
