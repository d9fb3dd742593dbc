"""docs/report.png: the top of the report that docs/report.md asks for, as Chromium shows it.

Run as `python tools/report_picture.py` to draw it anew; wants one of the browsers of tests/support/browser.py.
"""

import io
import shlex
import subprocess
import sys
import tempfile
from importlib import import_module
from pathlib import Path

from PIL import Image

import examples

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "report.md"
WIDTH, HEIGHT = 1280, 1950
COLOURS = 200


def main() -> None:
    """Write the picture."""
    sys.path.append(str(ROOT / "tests"))
    browser = import_module("browser")  # of the tests, which are no package
    (command, *_) = [one.command for one in examples.examples(PAGE)]
    words = shlex.split(command.replace("\\\n", " "))[1:]
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "perfmodel_cli", *words], cwd=folder, check=True)
        with browser.chromium() as page:
            page.open(Path(folder) / words[words.index("--out") + 1], WIDTH)
            picture = Image.open(io.BytesIO(page.picture(HEIGHT))).quantize(COLOURS)
    picture.save(ROOT / "docs" / "report.png", optimize=True)


if __name__ == "__main__":
    main()
