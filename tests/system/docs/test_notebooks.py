"""docs/examples: every notebook holds what its cells give now."""

import json
import subprocess
import sys

import pytest

import notebooks

pytestmark = pytest.mark.checkout


def test_the_notebooks_hold_what_their_cells_give():
    # In a process of its own: Jupyter leaves sockets to the end of the process to close.
    command = [sys.executable, notebooks.__file__]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, f"run python tools/notebooks.py --write\n{done.stdout}{done.stderr}"


@pytest.mark.parametrize("path", notebooks.notebooks(), ids=lambda path: path.name)
def test_no_cell_failed_and_answers_are_stored_as_html(path):
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    outputs = [output for cell in cells for output in cell.get("outputs", [])]
    assert {output["output_type"] for output in outputs} == {"execute_result", "stream"}
    answers = [each for each in outputs if "<perfmodel." in "".join(each.get("data", {}).get("text/plain", []))]
    assert answers
    assert all("<pre style=" in "".join(each["data"]["text/html"]) for each in answers)
