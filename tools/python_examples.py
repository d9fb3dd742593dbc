"""Python in README.md and docs/: run it, and put what it prints in place.

A fenced block `python run` is an example; what it prints stands in a `text` block right behind it, if it prints
anything. The blocks of a page run in order, as one program would, in the folder of the page's other examples.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

_BLOCK = re.compile(
    r"^```python run\n(?P<code>.*?)^```$(?P<rest>\n\n```text\n(?P<shown>.*?)^```$)?", re.MULTILINE | re.DOTALL
)
# Reads a list of sources, gives the list of what each printed; a window as wide as that of the other examples.
_DRIVER = """
import contextlib, io, json, sys
names, printed = {"__name__": "__main__"}, []
for source in json.load(sys.stdin):
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(compile(source, "example", "exec"), names)
    printed.append(out.getvalue())
json.dump(printed, sys.stdout)
"""


def renew(
    text: str, folder: Path, width: int, renewed: Callable[[tuple[str, ...], tuple[str, ...]], tuple[str, ...]]
) -> str:
    """The page with what its Python blocks print now; `renewed` decides where a cut output stays cut."""
    blocks = list(_BLOCK.finditer(text))
    if not blocks:
        return text
    printed = iter(_run([block["code"] for block in blocks], folder, width))
    return _BLOCK.sub(lambda block: _with_output(block, printed, renewed), text)


def _with_output(
    block: re.Match[str],
    printed: Iterator[str],
    renewed: Callable[[tuple[str, ...], tuple[str, ...]], tuple[str, ...]],
) -> str:
    real = tuple(line.rstrip() for line in next(printed).rstrip("\n").splitlines())
    code = f"```python run\n{block['code']}```"
    if not real:
        return code
    lines = renewed(tuple((block["shown"] or "").splitlines()), real)
    return "\n".join([code, "", "```text", *lines, "```"])


def _run(sources: list[str], folder: Path, width: int) -> list[str]:
    plain = {"COLUMNS": str(width), "NO_COLOR": "1", "TERM": "dumb"}
    done = subprocess.run(
        [sys.executable, "-c", _DRIVER],
        cwd=folder,
        env={**os.environ, **plain},
        input=json.dumps(sources),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    if done.returncode != 0:
        raise ValueError(f"the Python of a page ended with {done.returncode}:\n{done.stderr}")
    printed: list[str] = json.loads(done.stdout)
    return printed
