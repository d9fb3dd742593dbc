"""The notebooks of docs/examples: execute them, compare what their cells give, and store it anew when told to.

Run as `python tools/notebooks.py` to compare, as `python tools/notebooks.py --write` to store what they give now.
A notebook runs in a copy of its folder, so that nothing that it writes is left there.
"""

import argparse
import difflib
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any
from unittest import mock

import nbformat
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "examples"
_LONGEST = 120  # seconds of one cell


def notebooks() -> list[Path]:
    """Every notebook of docs/examples."""
    return sorted(FOLDER.glob("*.ipynb"))


def executed(path: Path) -> str:
    """The notebook's text with what its cells give now."""
    notebook = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch) / "examples"
        shutil.copytree(path.parent, place)
        resources = {"metadata": {"path": str(place)}}
        file = str(Path(scratch) / "kernel.json")  # its sockets lie beside it: no port is opened
        kernel = AsyncKernelManager(kernel_name="python3", transport="ipc", connection_file=file)
        with mock.patch.dict(os.environ, {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}):
            NotebookClient(notebook, kernel, timeout=_LONGEST, resources=resources).execute()
    return _text(notebook)


def _text(notebook: Any) -> str:
    """Without what differs from one machine to the next: times, and the version of Python."""
    notebook.metadata = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    for cell in notebook.cells:
        cell.metadata = {}
    text: str = nbformat.writes(notebook)  # type: ignore[no-untyped-call]
    return text + "\n"


def main() -> None:
    """Compare or, with --write, store; exit code 1 where a notebook is stale."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="store what the notebooks give now")
    write = parser.parse_args().write
    stale = False
    for path in notebooks():
        stored, text = path.read_text(encoding="utf-8"), executed(path)
        if text != stored:
            stale = True
            print(f"{'renewed' if write else 'stale'}: {path.relative_to(ROOT)}")
            print(*difflib.unified_diff(stored.splitlines(), text.splitlines(), lineterm=""), sep="\n")
            if write:
                path.write_text(text, encoding="utf-8")
    sys.exit(stale and not write)


if __name__ == "__main__":
    main()
