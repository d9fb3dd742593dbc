"""How wide an answer is: as its window, or wider where a table would lose numbers."""

import os
import sys
from typing import Any

from rich.console import Console, Group
from rich.measure import Measurement
from rich.table import Table

PAGE_WIDTH = 132  # of output to a file, a pipe or a page, where there is no window to fit
_WIDEST = 10**6  # of what is measured


def window() -> int:
    """Columns of the window that standard output goes to, or of a page."""
    fits_a_window = sys.stdout.isatty() or "COLUMNS" in os.environ
    return Console().width if fits_a_window else PAGE_WIDTH


def put(console: Console, picture: Any, width: int) -> None:
    """Print text as wide as the window; a table too, unless that would cut its numbers: then its lines wrap."""
    for part in picture.renderables if isinstance(picture, Group) else [picture]:
        console.width = _WIDEST
        needed = Measurement.get(console, console.options, part).minimum if isinstance(part, Table) else 0
        console.width = max(width, needed)
        console.print(part)
