"""The runner of the pages' examples sees a stale output, a wrong exit code and a cut."""

import pytest

import examples


def page(folder, text):
    path = folder / "page.md"
    path.write_text(text)
    return path


def renewed(folder, text):
    return examples.renew(page(folder, text))


def test_a_stale_output_is_replaced_and_the_rest_kept(tmp_path):
    text = "before\n\n```console\n$ perfmodel --help | cut -d' ' -f1,2 | head -1\nstale\n```\n\nafter\n"
    fresh = renewed(tmp_path, text)
    assert (
        fresh
        == "before\n\n```console\n$ perfmodel --help | cut -d' ' -f1,2 | head -1\nUsage: perfmodel\n```\n\nafter\n"
    )
    assert renewed(tmp_path, fresh) == fresh


def test_commands_of_a_page_share_a_folder(tmp_path):
    text = "```bash\n$ perfmodel --help > one\n```\n\n```bash\n$ perfmodel --help | cmp one && echo same\nsame\n```\n"
    assert renewed(tmp_path, text) == text


def test_an_unexpected_exit_code_is_an_error(tmp_path):
    with pytest.raises(ValueError, match="ended with 2, wanted 0"):
        renewed(tmp_path, "```console\n$ perfmodel nonsense\n```\n")
    assert "No such command" in renewed(tmp_path, "```console exit-2\n$ perfmodel nonsense\n```\n")


def test_a_cut_stays_where_it_was(tmp_path):
    text = "```console\n$ perfmodel --help\nUsage: something else\n...\n```\n"
    assert (
        renewed(tmp_path, text)
        == "```console\n$ perfmodel --help\nUsage: perfmodel [OPTIONS] COMMAND [ARGS]...\n...\n```\n"
    )


def test_other_blocks_are_left_alone(tmp_path):
    text = "```bash\npip install perfmodel\n```\n\n```text\n$ perfmodel nonsense\n```\n"
    assert renewed(tmp_path, text) == text
    assert examples.examples(page(tmp_path, text)) == []


CODE = "```python run\nprint(6 * 7)\n```"


def test_python_is_run_and_what_it_prints_stands_behind_it(tmp_path):
    assert renewed(tmp_path, f"{CODE}\n\nafter\n") == f"{CODE}\n\n```text\n42\n```\n\nafter\n"
    fresh = f"{CODE}\n\n```text\n42\n```\n"
    assert renewed(tmp_path, fresh.replace("42", "41")) == fresh == renewed(tmp_path, fresh)


def test_python_blocks_of_a_page_are_one_program_and_others_are_not_run(tmp_path):
    text = "```python run\na = 1\n```\n\n```python\nnonsense\n```\n\n```python run\nprint(a)\n```\n\n```text\n1\n```\n"
    assert renewed(tmp_path, text) == text


def test_python_that_fails_is_an_error(tmp_path):
    with pytest.raises(ValueError, match="ZeroDivisionError"):
        renewed(tmp_path, "```python run\n1 / 0\n```\n")
