"""One family of errors, so that an edge can turn any of them into a sentence and an exit code."""


class PerfmodelError(Exception):
    """A question that has no answer; the message is one sentence with the offending numbers and what would be right."""


class UsageError(PerfmodelError):
    """The question itself is not well formed (exit code 2 at the command line)."""


class FileProblems(PerfmodelError):
    """Everything that is wrong with one file, each problem with its line."""

    def __init__(self, path: str, problems: list[str]) -> None:
        """Keep the file's name and the list; the text joins them, one problem a line."""
        self.path = path
        self.problems = tuple(problems)
        super().__init__("\n".join(problems))


class NoGridError(PerfmodelError):
    """No grid fits; the message says which rule empties the set and what would work."""


def nearest(word: str, choices: list[str], *, most: int = 3) -> str:
    """Text that offers the nearest of `choices`, or all of them when none is near.

    >>> nearest("perlmuter", ["alps", "perlmutter"])
    'did you mean perlmutter?'
    >>> nearest("zzz", ["b", "a"])
    'known: a, b'
    """
    from difflib import get_close_matches  # 1 ms, only when something is already wrong

    near = get_close_matches(word.lower(), choices, n=most, cutoff=0.6)
    return f"did you mean {', '.join(near)}?" if near else f"known: {', '.join(sorted(choices))}"
