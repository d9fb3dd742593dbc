"""Shipped frameworks and files of a user's own."""

import pytest

from perfmodel.errors import FileProblems, UsageError
from perfmodel.frameworks import loading

OWN = (loading._folder() / "megatron-lm.yaml").read_text(encoding="utf-8")


def test_the_projects_own_launcher_comes_first_and_is_the_default():
    assert loading.names()[0] == loading.DEFAULT == loading.load().name


@pytest.mark.parametrize("name", loading.names())
def test_a_file_is_named_as_its_framework(name):
    assert loading.load(name).name == name


def test_an_unknown_name_is_told_with_the_nearest():
    with pytest.raises(UsageError, match=r"no framework is called 'megatron' \(did you mean megatron-lm"):
        loading.load("megatron")


def test_a_file_of_ones_own_is_read(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(OWN.replace("name: megatron-lm", "name: mine"), encoding="utf-8")
    assert loading.load(str(path)).name == "mine"


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("format: 1", "format: 9", "format 9: this program reads format 1"),
        ("source: GUIDE\n  hidden", "source: NOBODY\n  hidden", "overlapping names the source NOBODY"),
        ("built: fused", "built: magic", "'magic' is none of eager, fused, compiled"),
        ("gaps: 0.05 [GAPS]", "gaps: 0.05", "names no source"),
    ],
)
def test_a_broken_file_is_refused_with_its_line(tmp_path, old, new, told):
    assert old in OWN
    path = tmp_path / "broken.yaml"
    path.write_text(OWN.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(FileProblems, match=r"broken\.yaml") as caught:
        loading.load(str(path))
    assert told in str(caught.value)
