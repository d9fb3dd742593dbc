"""Files written whole: what was there keeps its kind and its mode."""

import os
import stat
import threading
from pathlib import Path

import pytest

from perfmodel.errors import PerfmodelError
from perfmodel.files import check_writable, exclusive, write_whole


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_a_new_file_has_the_mode_of_any_new_file(tmp_path):
    (tmp_path / "plain").touch()
    write_whole(tmp_path / "new", "text")
    assert mode(tmp_path / "new") == mode(tmp_path / "plain")


def test_a_file_keeps_its_mode(tmp_path):
    path = tmp_path / "old"
    path.touch()
    path.chmod(0o640)
    write_whole(path, "text")
    assert (path.read_text(), mode(path)) == ("text", 0o640)


def test_bytes_are_written_as_they_are(tmp_path):
    write_whole(tmp_path / "new", b"\x89\r\n")
    assert (tmp_path / "new").read_bytes() == b"\x89\r\n"


def test_a_file_that_can_be_written_is_not_touched_by_the_question(tmp_path):
    path = tmp_path / "old"
    path.write_text("text")
    check_writable(path)
    check_writable(tmp_path / "new")
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("old", "text")]


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "link").symlink_to("target")
    for text in ("first", "second"):
        write_whole(tmp_path / "link", text)
        assert (tmp_path / "link").is_symlink()
        assert (tmp_path / "target").read_text() == text


def test_a_pipe_is_written_in_place(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    heard: list[str] = []
    reader = threading.Thread(target=lambda: heard.append(path.read_text()), daemon=True)
    reader.start()
    write_whole(path, "text")
    reader.join(timeout=10)
    assert heard == ["text"]
    assert stat.S_ISFIFO(path.stat().st_mode)


@pytest.mark.parametrize("act", [lambda path: write_whole(path, "text"), check_writable], ids=["write", "ask"])
@pytest.mark.parametrize("name", ["", "none/x", "a\0b", "circle"])
def test_what_cannot_be_written_is_told_and_leaves_nothing_behind(tmp_path, name, act):
    (tmp_path / "circle").symlink_to("circle")
    with pytest.raises(PerfmodelError, match="cannot be written"):
        act(Path(f"{tmp_path}/{name}"))
    assert [path.name for path in tmp_path.iterdir()] == ["circle"]


def test_two_do_not_write_to_one_file_at_once(tmp_path):
    path = tmp_path / "results"
    refusal = pytest.raises(PerfmodelError, match=r"another measurement writes to .*results now")
    with exclusive(path, "measurement"), refusal, exclusive(path, "measurement"):
        pass
    with exclusive(path, "measurement"):
        assert path.exists()
