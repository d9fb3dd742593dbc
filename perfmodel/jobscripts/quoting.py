"""Text from a user, quoted in a script so that it stays text."""

import re
import shlex
from collections.abc import Iterable

from perfmodel.errors import UsageError, printable

_DIRECTIVE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.@%+:/=-]*")
_PLAIN_WORD = re.compile(r"[A-Za-z0-9_./-]+")
# A shell reads these as keywords at the start of a command, and only there.
_KEYWORDS = frozenset(
    "if then else elif fi case esac for select while until do done in function time coproc".split()  # noqa: SIM905
)
# What the shell may expand in a value of a profile: variables, and arithmetic on them.
_FILLED_IN = re.compile(r"\$[A-Za-z_]\w*|\$\{[A-Za-z_]\w*\}|\$\(\([\w\s+*/%${}:-]*\)\)", re.ASCII)
_WIDTH = 110


def one_line(text: str, what: str) -> str:
    r"""`text`; raises if it has more than one line or is not printable.

    >>> one_line("a\nb", "--program")
    Traceback (most recent call last):
    perfmodel.errors.UsageError: --program 'a\nb': wanted a single line that can be printed
    """
    if not text or not text.isprintable():
        raise UsageError(f"{what} {text!r}: wanted a single line that can be printed")
    return text


def directive(text: str, what: str) -> str:
    """A value for a scheduler's directive: schedulers differ on quotes, so only values that need none are allowed.

    >>> directive("m1234_g", "--account")
    'm1234_g'
    """
    if not _DIRECTIVE.fullmatch(text):
        raise UsageError(
            f"{what} {text!r}: wanted letters, digits and _ . @ % + : / = -, of which the first is neither"
        )
    return text


def words(text: str, what: str) -> tuple[str, ...]:
    """A command, or arguments, split as a shell would, with nothing expanded.

    >>> words("module load 'a b'", "--setup")
    ('module', 'load', 'a b')
    """
    try:
        found = tuple(shlex.split(one_line(text, what)))
    except ValueError as error:
        raise UsageError(f"{what} {text!r}: {str(error).lower()}") from None
    if not found:
        raise UsageError(f"{what} {text!r} holds no word")
    return found


def argument(word: str) -> str:
    """One word of a command, quoted.

    >>> argument("$(date)")
    "'$(date)'"
    """
    return shlex.quote(word)


def name(word: str) -> str:
    """The first word of a command: the name of a program, never an assignment or a keyword of the shell.

    >>> name("if"), name("a=b"), name("module")
    ("'if'", "'a=b'", 'module')
    """
    if not word or word.startswith("%"):  # a shell reads %1 as one of its jobs, quoted or not
        raise UsageError(f"{word!r} is not the name of a program")
    if _PLAIN_WORD.fullmatch(word) and word not in _KEYWORDS:
        return word
    return "'" + word.replace("'", "'\"'\"'") + "'"


def command(given: Iterable[str]) -> tuple[str, ...]:
    """The words of a command for a script."""
    first, *others = given
    return (name(first), *map(argument, others))


def filled(text: str) -> str:
    r"""A value of a profile, in which the shell expands variables and arithmetic, and nothing else.

    >>> filled("$HOME/lib:`x`"), filled("AWS Libfabric"), filled("$((3 - RANK % 4))")
    ('"$HOME/lib:\\`x\\`"', "'AWS Libfabric'", '"$((3 - RANK % 4))"')
    """
    if not _FILLED_IN.search(text):
        return shlex.quote(text)
    parts, end = [], 0
    for found in _FILLED_IN.finditer(text):
        parts += [_escaped(text[end : found.start()]), found[0]]
        end = found.end()
    return f'"{"".join((*parts, _escaped(text[end:])))}"'


def comment(text: str) -> str:
    r"""A comment of one line.

    >>> comment("a\nrm b")
    '# a rm b'
    """
    return f"# {' '.join(printable(text).split())}"


def lines(given: Iterable[str], indent: str = "") -> str:
    """Quoted words, wrapped over as many lines as they need."""
    rows, row = [], ""
    for word in given:
        if row and len(indent) + len(row) + len(word) > _WIDTH:
            rows.append(row)
            row = f"    {word}"
        else:
            row = f"{row} {word}" if row else word
    return " \\\n".join(f"{indent}{one}" for one in (*rows, row))


def _escaped(text: str) -> str:
    return re.sub(r'([\\"$`])', r"\\\1", text)
