"""Numbers as a profile writes them."""

from perfmodel.units import show

DIGITS = 4


def figure(value: float, unit: str, key: str) -> str:
    """A number with its unit and the key of its source.

    >>> figure(25e9, "B/s", "MEASURED"), figure(3.0, "1", "SYSTEM")
    ('25 GB/s [MEASURED]', '3 [SYSTEM]')
    """
    text = f"{value:.{DIGITS}g}" if unit == "1" else show(value, unit, digits=DIGITS)
    return f"{text} [{key}]"
