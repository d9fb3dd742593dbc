"""Counts as people write them: 2T tokens, a list of device counts."""

import re

from perfmodel.errors import UsageError

_THOUSANDS = {"": 0, "k": 1, "M": 2, "B": 3, "G": 3, "T": 4}
_COUNT = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,12})?)\s?([kMBGT]?)", re.ASCII)
_MOST = 10**18
_MOST_DEVICES = 2**31


def tokens(text: str, option: str) -> int:
    """Read a number of tokens with a decimal prefix: k, M, B (or G), T.

    >>> tokens("2T", "--tokens"), tokens("1.5M", "--tokens")
    (2000000000000, 1500000)
    """
    match = _COUNT.fullmatch(text.strip())
    value = round(float(match[1]) * 1000 ** _THOUSANDS[match[2]]) if match else 0
    if not 1 <= value <= _MOST:
        raise UsageError(f"{option} {text!r}: wanted a count of at least 1, such as 300B or 2T (k, M, B or T)")
    return value


def devices(text: str, option: str) -> list[int]:
    """Read counts of devices separated by commas, each once, in the order given.

    >>> devices("64, 128,256", "--gpus")
    [64, 128, 256]
    """
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() and 1 <= int(part[:12]) <= _MOST_DEVICES for part in parts):
        raise UsageError(f"{option} {text!r}: wanted counts of 1 to {_MOST_DEVICES} separated by commas, as in 64,128")
    return list(dict.fromkeys(int(part) for part in parts))
