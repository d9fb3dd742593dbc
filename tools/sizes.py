"""How long functions and files are: a report for a review; tests/system/test_architecture.py sets limits to it.

Run as `python tools/sizes.py perfmodel cli`.
"""

import argparse
import ast
import io
import statistics
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
_SILENT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}


@dataclass(frozen=True, slots=True)
class Function:
    """A function and its lines of code: from `def` to its end without docstring, comments and blank lines."""

    name: str
    line: int
    code_lines: int


def sources(*folders: str | Path) -> list[Path]:
    """Python files below `folders`, in a fixed order."""
    return sorted(path for folder in folders for path in Path(folder).rglob("*.py"))


def functions(path: Path) -> list[Function]:
    """Every function of a file, methods and inner functions included."""
    text = path.read_text(encoding="utf-8")
    code = _code_lines(text)
    return [
        Function(name, node.lineno, len(code.intersection(_lines(node)) - _docstring_lines(node)))
        for name, node in definitions(ast.parse(text))
        if not isinstance(node, ast.ClassDef)
    ]


def definitions(node: ast.AST, prefix: str = "") -> Iterator[tuple[str, Definition]]:
    """Functions and classes below `node` with their dotted names."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, Definition):
            yield prefix + child.name, child
            yield from definitions(child, f"{prefix}{child.name}.")
        else:
            yield from definitions(child, prefix)


def _code_lines(text: str) -> set[int]:
    """Numbers of the lines that hold a token other than a comment or a line break."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in _SILENT:
            lines.update(range(token.start[0], token.end[0] + 1))
    return lines


def _lines(node: ast.stmt) -> range:
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)


def _docstring_lines(node: Definition) -> set[int]:
    return set(_lines(node.body[0])) if ast.get_docstring(node, clean=False) is not None else set()


def _row(name: str, lines: int, sizes: list[int], longest: str) -> str:
    ordered = sorted(sizes) or [0]
    ninth = ordered[min(len(ordered) - 1, 9 * len(ordered) // 10)]
    median = statistics.median(ordered)
    return f"{name:<34} {lines:>6} {len(sizes):>10} {median:>7g} {ninth:>5} {ordered[-1]:>8}  {longest}"


def report(paths: list[Path]) -> str:
    """A line a file and a sum: lines, functions, and the median, ninth decile and longest of their code lines."""
    rows = [f"{'file':<34} {'lines':>6} {'functions':>10} {'median':>7} {'p90':>5} {'longest':>8}"]
    total, all_sizes = 0, []
    for path in paths:
        found = functions(path)
        lines = len(path.read_text(encoding="utf-8").splitlines())
        longest = max(found, key=lambda function: function.code_lines, default=Function("-", 0, 0)).name
        rows.append(_row(str(path), lines, [function.code_lines for function in found], longest))
        total += lines
        all_sizes += [function.code_lines for function in found]
    return "\n".join([*rows, _row("together", total, all_sizes, "")])


def main() -> None:
    """Print the report of the folders named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+")
    print(report(sources(*parser.parse_args().folders)))


if __name__ == "__main__":
    main()
