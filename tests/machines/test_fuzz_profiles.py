"""Whatever is done to a profile, reading it ends in a machine or in our own error, never in anything else."""

import random

import pytest

from machines import GOLDEN
from perfmodel.errors import FileProblems, PerfmodelError
from perfmodel.machines import profiles
from perfmodel.machines.machine import Machine

SHIPPED = [path.read_bytes() for path in sorted(profiles.folder().glob("*.yaml"))]
FILES = [*SHIPPED, *[(GOLDEN / "perlmutter-measured.yaml").read_bytes()] * 4]  # no shipped one has tables
NASTY = [
    *(
        b"~",
        b"null",
        b"",
        b"''",
        b'"',
        b"'",
        b"{",
        b"}",
        b"[",
        b"]",
        b"- ",
        b"? ",
        b": ",
        b"# ",
        b"| ",
        b"> ",
        b"%",
        b"@",
    ),
    *(b"&a x", b"*a", b"&a [*a]", b"&a {b: *a}", b"<<: *a", b"<<: {devices: 4}", b"!!python/object:os.system x"),
    *(b"!!python/object/apply:os.system [echo]", b"!!binary aGk=", b"!!int 3", b"!!set {a}", b"!x y", b"%YAML 9.9"),
    *(
        b"nan",
        b".nan",
        b"NaN",
        b"inf",
        b"-.inf",
        b"1e999",
        b"1e308",
        b"-1",
        b"0",
        b"1e-400",
        b"9" * 400,
        b"0x10",
        b"1_0",
    ),
    *(
        b"on",
        b"12:30:00",
        b"2026-08-22",
        "١٢".encode(),
        "\uff14 GB/s [OWN]".encode(),
        "\u2028".encode(),
        "\ufeff".encode(),
    ),
    *(
        b"\0",
        b"\x07",
        b"\x1b[31m",
        b"\t",
        b"\r",
        b"\xff",
        b"\xc3",
        b"\xed\xa0\x80",
        b'"\\ud800"',
        b'"\\x00"',
        b"---",
        b"...",
    ),
    *(
        b"1 GB/s [OWN]",
        b"1 flop/s [GKL]",
        b"4.5 [OWN]",
        b"0 [OWN]",
        b"1e9 s [OWN]",
        b"[OWN]",
        b"4 []",
        b"4 [OWN] [OWN]",
    ),
    *(
        b"base: perlmutter",
        b"base: nowhere",
        b"base: mutated",
        b"base: ../mutated",
        b"base: /",
        b"base: [a]",
        b"format: 2",
    ),
    *(b"base: " + b"x" * 5000, b"x" * 5000, b"a: " * 60, b"[" * 60, b"- " * 60),
]


def mutated(chance):
    """One of the shipped files after one to four mishaps."""
    text = chance.choice(FILES)
    for _ in range(chance.choice((1, 1, 1, 2, 3, 4))):
        text = chance.choice((_bytes, _lines, _token, _nest, _splice))(text, chance)
    return text


def _bytes(text, chance):
    """Change, drop, insert or repeat a few bytes, or cut the file off."""
    start = chance.randrange(len(text) + 1)
    end = min(len(text), start + chance.choice((0, 1, 1, 3, 40)))
    piece = chance.choice((b"", bytes([chance.randrange(256)]), text[start:end] * 2, chance.choice(NASTY)))
    return text[:start] if chance.random() < 0.05 else text[:start] + piece + text[end:]


def _lines(text, chance):
    """Drop, repeat or move a line."""
    lines = text.splitlines(keepends=True) or [b""]
    line = lines.pop(chance.randrange(len(lines)))
    for _ in range(chance.choice((0, 1, 2))):
        lines.insert(chance.randrange(len(lines) + 1), line)
    return b"".join(lines)


def _token(text, chance):
    """Put something nasty, or something from elsewhere, in the place of a value."""
    lines = text.splitlines(keepends=True) or [b""]
    at = chance.randrange(len(lines))
    key, colon, _ = lines[at].partition(b":")
    other = chance.choice(lines).partition(b":")[2].strip()
    lines[at] = key + colon + b" " + chance.choice((other, chance.choice(NASTY))) + b"\n"
    return b"".join(lines)


def _nest(text, chance):
    """Indent a line differently."""
    lines = text.splitlines(keepends=True) or [b""]
    at = chance.randrange(len(lines))
    lines[at] = chance.choice((b"", b" ", b"  ", b"\t", b"      ")) + lines[at].lstrip()
    return b"".join(lines)


def _splice(text, chance):
    """Begin as one file and go on as another."""
    other = chance.choice(FILES)
    return text[: chance.randrange(len(text) + 1)] + other[chance.randrange(len(other)) :]


def ending(file):
    """The machine, the error of ours, or None where reading ended in anything else."""
    try:
        return profiles.load_file(file)
    except PerfmodelError as error:
        return error
    except Exception:  # noqa: BLE001 - what must not happen, whatever it is
        return None


def outcomes(tmp_path, seed, count):
    """How many mutated files were read as machines, and how many were refused."""
    chance = random.Random(seed)  # noqa: S311 - repeatable mishaps, not secrets
    file = tmp_path / "mutated.yaml"
    machines = 0
    for number in range(count):
        text = mutated(chance)
        file.write_bytes(text)
        end = ending(file)
        assert isinstance(end, Machine | PerfmodelError), (number, text)
        machines += isinstance(end, Machine)
        told = end.problems if isinstance(end, FileProblems) else [str(end)]
        assert isinstance(end, Machine) or all(problem.isprintable() and 0 < len(problem) < 6000 for problem in told)
    return machines, count - machines


def test_two_thousand_mutated_profiles_end_in_a_machine_or_in_our_own_error(tmp_path):
    machines, refused = outcomes(tmp_path, seed=1, count=2_000)
    assert min(machines, refused) > 200  # neither harmless nor hopeless


@pytest.mark.slow
def test_twenty_thousand_mutated_profiles_end_in_a_machine_or_in_our_own_error(tmp_path):
    machines, refused = outcomes(tmp_path, seed=20_000, count=20_000)
    assert min(machines, refused) > 2_000
