"""Progress of a measurement of this machine: a bar in a terminal, one line per round elsewhere."""

import json
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from perfmodel.launch.measuring.assignment import MeasurementRequest

_POLL = 0.25  # seconds between checks of the file of results


class Progress:
    """Follows the file of results while it grows."""

    def __init__(self, asked: "MeasurementRequest", results: Path, tell: Callable[[str], None]) -> None:
        """Start after what the file already holds; `tell` says something beside the answer."""
        from rich import progress
        from rich.console import Console

        self._asked, self._results, self._tell = asked, results, tell
        self._read = results.stat().st_size if results.exists() else 0
        self._round = -1
        self._end = threading.Event()
        self._began = time.monotonic()
        self._window = sys.stderr.isatty()
        self._bar = progress.Progress(
            progress.TextColumn("{task.description}"),
            progress.BarColumn(),
            progress.TextColumn("{task.completed:.0f} of at most {task.total:.0f} s"),
            console=Console(stderr=True),
            disable=not self._window,
        )
        self._task = self._bar.add_task("starting ranks", total=asked.budget)
        self._thread = threading.Thread(target=self._follow, daemon=True)

    def __enter__(self) -> None:
        """Begin to follow the file."""
        if self._results.stat().st_size:
            self._tell(f"{self._results} holds measurements already, which are kept")
        asked = self._asked
        self._tell(f"measuring with {asked.ranks} ranks, {asked.rounds} rounds, for {asked.budget:g} s at most")
        self._bar.start()
        self._thread.start()

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Show the last lines, and end."""
        self._end.set()
        self._thread.join()
        self._bar.stop()

    def _follow(self) -> None:
        while not self._end.wait(_POLL):
            self._bar.update(self._task, completed=min(time.monotonic() - self._began, self._asked.budget))
            for record in self._new():
                self._announce(record)

    def _new(self) -> list[dict[str, Any]]:
        """Complete lines that were added since the last check."""
        try:
            with self._results.open("rb") as file:
                file.seek(self._read)
                arrived = file.read()
        except OSError:
            return []
        whole = arrived[: arrived.rfind(b"\n") + 1]
        self._read += len(whole)
        try:
            return [json.loads(line) for line in whole.splitlines() if line.strip()]
        except ValueError:
            return []

    def _announce(self, record: dict[str, Any]) -> None:
        from perfmodel.launch.measuring.points import point_of

        point, number = point_of(record), record.get("round")
        if point is None or number is None:
            return
        where = f"round {number + 1} of {self._asked.rounds}"
        if number != self._round and not self._window:
            self._tell(where)
        self._round = number
        self._bar.update(self._task, description=f"{where}: {point.words}")
