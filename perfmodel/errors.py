"""One family of errors, so that a caller can turn any of them into a message and an exit code."""


class PerfmodelError(Exception):
    """A question that has no answer; the message is one sentence with the offending numbers and what would be right."""


class PartError(PerfmodelError):
    """An error in one part of a record; `parts` is the path to it: field names and list indices, outermost first."""

    def __init__(self, text: str, *parts: str | int) -> None:
        """Keep the path to the part, so that a reader can name its line."""
        self.parts = parts
        super().__init__(text)


class UsageError(PerfmodelError):
    """The question itself is not well formed (exit code 2 at the command line)."""


class FileProblems(PerfmodelError):
    """Everything that is wrong with one file, each problem with its line."""

    def __init__(self, path: str, problems: list[str]) -> None:
        """Keep the file's name and the list; the text joins them, one problem per line."""
        self.path = path
        self.problems = tuple(problems)
        super().__init__("\n".join(problems))


class NoGridError(PerfmodelError):
    """No grid fits; the message says which rule rejects the last grids and what would work."""


MOST_PROBLEMS = 20
"""Problems of a file that are told one by one."""


def nothing_left(problems: tuple[str, ...], file: str, purpose: str) -> PerfmodelError:
    """The error of a file without a good row."""
    return PerfmodelError("\n".join([*problems[:MOST_PROBLEMS], f"{file}: no row to {purpose}"]))


def printable(text: str) -> str:
    r"""`text` with control and unprintable characters escaped, except line ends.

    >>> printable("\x1b[31mred")
    '\\x1b[31mred'
    """
    return "".join(letter if letter.isprintable() or letter == "\n" else repr(letter)[1:-1] for letter in text)


def nearest(word: str, choices: list[str], *, most: int = 3) -> str:
    """Text that suggests the closest of `choices`, or lists all of them if none is close.

    >>> nearest("perlmuter", ["alps", "perlmutter"])
    'did you mean perlmutter?'
    >>> nearest("zzz", ["b", "a"])
    'known: a, b'
    >>> nearest("glk", ["GKL"])
    'did you mean GKL?'
    """
    from difflib import get_close_matches  # 1 ms, only when something is already wrong

    spelled = {choice.lower(): choice for choice in choices}
    near = [spelled[match] for match in get_close_matches(word.lower(), list(spelled), n=most, cutoff=0.6)]
    return f"did you mean {', '.join(near)}?" if near else f"known: {', '.join(sorted(choices))}"
