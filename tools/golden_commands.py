"""Answers of the program before a change, and whether they are the same after it.

Each case of tools/golden_cases.py is run in a folder of its own, with copies of docs/examples and of
tests/golden/inputs, and what it prints and writes is held against tests/golden/commands/. In JSON and CSV, numbers may
differ by rounding, and keys as RENAMED_KEYS says; all other text has to be the same to the letter.

Run as `python tools/golden_commands.py` to compare, as `python tools/golden_commands.py --write` to record anew; names
of cases after it mean these alone.
"""

import argparse
import csv
import difflib
import io
import json
import math
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing.pool import ThreadPool
from pathlib import Path
from typing import Any

from golden_cases import CASES, Case
from perfmodel import __version__

ROOT = Path(__file__).parents[1]
GOLDEN = ROOT / "tests" / "golden" / "commands"
COPIED = {ROOT / "docs" / "examples": "docs/examples", ROOT / "tests" / "golden" / "inputs": "inputs"}
# JSON keys and CSV headings that were recorded under one name and are now another: old -> new.
RENAMED_KEYS: dict[str, str] = {}
PLAIN = {"COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb", "LINES": "40"}
UNWANTED = ("FORCE_COLOR", "CLICOLOR_FORCE", "PY_COLORS")

_PROCESSES = 2
_LONGEST = 60  # seconds, where a case should take five
_DAY = 1_767_312_000.0  # 2026-01-02, the day of all copied files: profiles say when their figures were measured
_ROUNDING = 1e-9
_NOTHING = 1e-15
_HEADING = "##### "
# Of this program, and of the one that has written an input.
_ANY_VERSION = re.compile(r"(perfmodel(?:_version\": \"| | calibrate ))\d+\.\d+\.\d+\w*")
_NO_NEWLINE = "\\ no newline at the end"

Part = tuple[str, str]  # heading, text


@dataclass(frozen=True, slots=True)
class Answer:
    """How a command ended, and what it printed."""

    code: int
    out: str
    err: str


def record(case: Case, folder: Path, run: Callable[[list[str], Path], Answer]) -> str:
    """What the golden file of a case should hold: run its commands in `folder`, which is made for it."""
    for source, place in COPIED.items():
        shutil.copytree(source, folder / place)
    for path in folder.rglob("*"):
        os.utime(path, (_DAY, _DAY))
    parts: list[Part] = []
    for command in case.commands:
        answer = run(shlex.split(command), folder)
        kind = _kind(answer.out, command) if answer.code == 0 else ""
        parts += [("command", f"perfmodel {command}\n"), ("exit code", f"{answer.code}\n")]
        parts += [(f"stdout{kind}", answer.out), ("stderr", answer.err)]
    for name in case.files:
        text = (folder / name).read_text(encoding="utf-8") if (folder / name).exists() else "(not there)\n"
        shown = _readable_page(text) if name.endswith(".html") else text
        parts.append((f"file {name}{_kind(shown)}", shown))
    return _normalised("".join(map(_part_text, parts)), folder)


def _kind(text: str, command: str = "") -> str:
    """What a text is held against another as, for its heading."""
    try:
        return ", json" if isinstance(json.loads(text), dict | list) else ""
    except ValueError:
        return ", csv" if "--format csv" in command else ""


def _part_text(part: Part) -> str:
    heading, text = part
    end = f"\n{_NO_NEWLINE}\n" if text and not text.endswith("\n") else ""
    return f"{_HEADING}{heading}\n{text}{end}"


def _readable_page(text: str) -> str:
    """A page's elements, one a line, without its style and its script, which answer nothing."""
    return re.sub(r"<(style|script)>.*?</\1>", "", text, flags=re.DOTALL).replace("><", ">\n<")


def _normalised(text: str, folder: Path) -> str:
    for path, word in ((folder.resolve(), "FOLDER"), (folder, "FOLDER"), (ROOT, "CHECKOUT")):
        text = text.replace(str(path), word)
    text = re.sub(rf"(?<![\w.]){re.escape(__version__)}(?!\.?\w)", "VERSION", text)
    return _ANY_VERSION.sub(r"\1VERSION", text)


def run_in_process_of_its_own(arguments: list[str], folder: Path) -> Answer:
    """Run the program of this checkout in a new process."""
    here = os.pathsep.join([str(ROOT), str(ROOT / "cli")])
    inherited = {name: value for name, value in os.environ.items() if name not in UNWANTED}
    done = subprocess.run(
        [sys.executable, "-m", "perfmodel_cli", *arguments],
        cwd=folder,
        env={**inherited, **PLAIN, "PYTHONPATH": here, "PYTHONUTF8": "1", "OMP_NUM_THREADS": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=_LONGEST,
    )
    return Answer(done.returncode, done.stdout, done.stderr)


def parts_of(text: str) -> list[Part]:
    r"""Headings of a golden file, each with the text below it.

    >>> parts_of("##### exit code\n0\n##### stdout\na\nb\n##### stderr\n")
    [('exit code', '0\n'), ('stdout', 'a\nb\n'), ('stderr', '')]
    """
    _, *pieces = re.split(rf"^{_HEADING}(.*)\n", text, flags=re.MULTILINE)
    return list(zip(pieces[::2], pieces[1::2], strict=True))


def differences(name: str, real: str, used: set[str]) -> list[str]:
    """The unified diff of a case's golden file and what it is now; old keys that were met go into `used`."""
    path = GOLDEN / f"{name}.txt"
    golden = path.read_text(encoding="utf-8") if path.exists() else ""
    if golden == real:
        return []
    olds, news = parts_of(golden), parts_of(real)
    if [heading for heading, _ in olds] == [heading for heading, _ in news]:
        pairs = [_comparable(heading, old, new, used) for (heading, old), (_, new) in zip(olds, news, strict=True)]
        golden, real = ("".join(map(_part_text, parts)) for parts in zip(*pairs, strict=True))
    names = (f"golden/{name}", f"now/{name}")
    return list(difflib.unified_diff(golden.splitlines(), real.splitlines(), *names, lineterm=""))


def _comparable(heading: str, old: str, new: str, used: set[str]) -> tuple[Part, Part]:
    """Both texts, the same where they differ in nothing that counts."""
    if heading.endswith(", json"):
        real = json.loads(new)
        old, new = _pretty(aligned(_renamed(json.loads(old), used), real)), _pretty(real)
    elif heading.endswith(", csv"):
        rows, real = _rows(old), _rows(new)
        head = [_new_name(name, used) for name in rows[0]]
        old, new = _lines(aligned([head, *rows[1:]], real)), _lines(real)
    return (heading, old), (heading, new)


def _pretty(value: Any) -> str:
    return json.dumps(value, indent=2, sort_keys=True) + "\n"


def _rows(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text))) or [[]]


def _lines(rows: list[list[str]]) -> str:
    written = io.StringIO()
    csv.writer(written, lineterminator="\n").writerows(rows)
    return written.getvalue()


def _new_name(name: str, used: set[str]) -> str:
    if name in RENAMED_KEYS:
        used.add(name)
    return RENAMED_KEYS.get(name, name)


def _renamed(value: Any, used: set[str]) -> Any:
    if isinstance(value, dict):
        return {_new_name(key, used): _renamed(one, used) for key, one in value.items()}
    return [_renamed(one, used) for one in value] if isinstance(value, list) else value


def aligned(golden: Any, real: Any) -> Any:
    """The golden value, with the real numbers where they are equal but for rounding.

    >>> aligned({"a": [0.1, 2, "x"], "b": "0.5"}, {"a": [0.1000000000001, 3, "y"], "b": "0.5000000000001"})
    {'a': [0.1000000000001, 2, 'x'], 'b': '0.5000000000001'}
    """
    if isinstance(golden, dict) and isinstance(real, dict):
        return {key: aligned(value, real.get(key)) for key, value in golden.items()}
    if isinstance(golden, list) and isinstance(real, list):
        return [aligned(one, other) for one, other in zip(golden, real, strict=False)] + golden[len(real) :]
    both = isinstance(golden, str) == isinstance(real, str)
    return real if both and _close(_number(golden), _number(real)) else golden


def _close(golden: float | None, real: float | None) -> bool:
    """Whether two numbers are equal but for rounding; whole numbers are counts, and not rounded."""
    if golden is None or real is None or (isinstance(golden, int) and isinstance(real, int)):
        return False
    return math.isclose(golden, real, rel_tol=_ROUNDING, abs_tol=_NOTHING)


def _number(value: Any) -> float | None:
    """A number, or the text of one as CSV has it; else None."""
    if isinstance(value, str):
        for read in (int, float):
            try:
                return read(value)
            except ValueError:
                continue
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _run_all(cases: list[Case]) -> Iterator[tuple[Case, str]]:
    """Each case with what it prints now, in order."""

    def one(case: Case) -> tuple[Case, str]:
        with tempfile.TemporaryDirectory() as scratch:
            return case, record(case, Path(scratch) / "folder", run_in_process_of_its_own)

    with ThreadPool(_PROCESSES) as pool:
        yield from pool.imap(one, cases)


def strays() -> list[Path]:
    """Golden files of no case."""
    return sorted(set(GOLDEN.glob("*")) - {GOLDEN / f"{case.name}.txt" for case in CASES})


def _write(cases: list[Case]) -> None:
    GOLDEN.mkdir(exist_ok=True)
    for case, text in _run_all(cases):
        (GOLDEN / f"{case.name}.txt").write_text(text, encoding="utf-8")
    for path in strays():
        path.unlink()


def _compare(cases: list[Case]) -> int:
    """Print what differs; the number of cases that do."""
    used: set[str] = set()
    differ = 0
    for case, text in _run_all(cases):
        if lines := differences(case.name, text, used):
            differ += 1
            print("\n".join(lines))
    for name in sorted(used):
        print(f"renamed: {name} -> {RENAMED_KEYS[name]}")
    print(f"{differ} of {len(cases)} cases differ")
    return differ


def main() -> None:
    """Compare or, with --write, record the cases."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="record the answers anew")
    parser.add_argument("names", nargs="*", help="cases [default: all]")
    given = parser.parse_args()
    if unknown := sorted(set(given.names) - {case.name for case in CASES}):
        parser.error(f"no such case: {', '.join(unknown)}")
    cases = [case for case in CASES if not given.names or case.name in given.names]
    if given.write:
        _write(cases)
        return
    sys.exit(bool(_compare(cases)))


if __name__ == "__main__":
    main()
