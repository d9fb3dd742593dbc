"""Ctrl-C and SIGTERM as an exception, so that a command ends what it has started and keeps what it has."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
BY_SIGNAL = 128  # plus the signal's number: the exit code of a command that a signal ended


class StoppedError(BaseException):
    """A signal has asked the program to end."""

    def __init__(self, number: int) -> None:
        """Keep its number."""
        self.number = number


@contextmanager
def stopped_by_signals() -> Iterator[None]:
    """Ctrl-C and SIGTERM end the ranks first, and what is done is kept."""

    def stop(number: int, _: object) -> None:
        for one in _SIGNALS:  # once is enough: a second would interrupt the clean-up of the first
            signal.signal(one, signal.SIG_IGN)
        raise StoppedError(number)

    before = {number: signal.signal(number, stop) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
