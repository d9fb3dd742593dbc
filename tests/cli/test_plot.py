"""`--plot`: whether a picture can be drawn is found out before anything is computed or printed."""

import sys

import pytest

HEADS = "machine,model,sequence_length,tp,fsdp,dp,batch_sequences,micro_batch,recompute,step_time_s"
ROW = "perlmutter,gpt-5b,2048,1,8,2,64,4,full,3.5"


@pytest.fixture(params=["compare", "sweep"])
def asked(request, tmp_path):
    """A command that can draw, without its --plot."""
    if request.param == "sweep":
        return ("sweep", "--model", "gpt-5b", "--machine", "perlmutter", "--gpus", "16,64", "--batch", 64)
    path = tmp_path / "runs.csv"
    path.write_text(f"{HEADS}\n{ROW}\n", encoding="utf-8")
    return ("compare", "--measured", path)


@pytest.mark.parametrize("name", ["none/a.png", "file/a.png", "folder.svg", "a\0b.png", "circle.svg"])
def test_a_file_that_cannot_be_written_is_told_instead_of_the_answer(refused, asked, tmp_path, name):
    (tmp_path / "file").touch()
    (tmp_path / "folder.svg").mkdir()
    (tmp_path / "circle.svg").symlink_to("circle.svg")
    before = sorted(tmp_path.iterdir())
    assert "cannot be written" in refused(*asked, "--plot", f"{tmp_path}/{name}")
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("name", ["a.pdf", "a", ".png", "png"])
def test_a_picture_of_another_kind_is_told_instead_of_the_answer(refused, asked, name):
    assert "wanted a name that ends in .png or .svg" in refused(*asked, "--plot", name)


def test_without_matplotlib_the_answer_is_not_computed_first(refused, asked, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)  # as if it were not installed
    assert "pip install 'perfmodel[plot]'" in refused(*asked, "--plot", tmp_path / "a.png")


@pytest.mark.parametrize(("name", "start"), [("a.PNG", b"\x89PNG"), ("a.Svg", b"<?xml"), ("a.png", b"\x89PNG")])
def test_a_picture_is_drawn_whatever_the_case_of_its_ending(run, asked, tmp_path, name, start):
    pytest.importorskip("matplotlib")
    answer = run(*asked, "--plot", tmp_path / name)
    assert (answer.code, answer.err) == (0, "")
    assert (tmp_path / name).read_bytes().startswith(start)


def test_a_picture_that_exists_is_drawn_anew(run, asked, tmp_path):
    pytest.importorskip("matplotlib")
    pictures = []
    for text in ("old", "older still"):
        (tmp_path / "a.svg").write_text(text)
        assert run(*asked, "--plot", tmp_path / "a.svg").code == 0
        pictures.append((tmp_path / "a.svg").read_bytes())
    assert len(pictures[0]) > 1000
    assert len({picture[:100] for picture in pictures}) == 1
