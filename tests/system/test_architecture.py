"""The house rules that a program can check, over the source tree."""

import ast
import subprocess
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from sizes import Definition, functions, sources

ROOT = Path(__file__).parents[2]
LIBRARY = sources(ROOT / "perfmodel")
PROGRAM = sources(ROOT / "perfmodel", ROOT / "cli")

LONGEST_FUNCTION = 40
LONGEST_FILE = 350
MOST_POSITIONAL = 3  # fields of a dataclass: more are named, since a position says nothing and shifts with a new one

# Powers of 1000 and 1024, which are prefixes in disguise, and the decimal fractions that are.
PREFIXES = {1000.0**n for n in range(1, 9)} | {1024.0**n for n in range(1, 9)} | {1000.0**-n for n in range(1, 5)}
# Where such a number counts something that has no unit.
COUNTS = {
    ("machine.py", 1024): "the most devices that a node may have",
    ("choices.py", 2.0**40): "the most that a batch or another count may be",
    ("option_values.py", 10.0**18): "the most tokens that a training may have",
    ("option_values.py", 1000.0): "from one prefix of a count of tokens to the next",
    ("search.py", 1e-12): "a relative difference that is rounding",
}
# Calls and names that belong to the command line: the library returns values and raises errors.
EDGE_CALLS = {"print", "input", "exit", "quit", "breakpoint"}
EDGE_NAMES = {"sys.exit", "sys.stdout", "sys.stderr", "sys.argv", "os.environ", "os.getenv", "os._exit"}

pytestmark = pytest.mark.checkout


def named(path: Path) -> str:
    """What a failure shows: the path in the tree."""
    return str(path.relative_to(ROOT))


def tree(path: Path) -> ast.Module:
    """The syntax tree of a file."""
    return ast.parse(path.read_text(encoding="utf-8"))


def number(node: ast.AST) -> float | None:
    """The number that a literal, or a power of two literals (2**30), stands for."""
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        return float(node.value)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = number(node.operand)
        return None if value is None else -value
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
        base, exponent = number(node.left), number(node.right)
        return None if base is None or exponent is None else base**exponent
    return None


def prefixes(path: Path) -> list[tuple[int, float]]:
    """Line and value of each number that should have been written with its unit."""
    found = [(node.lineno, number(node)) for node in ast.walk(tree(path)) if isinstance(node, ast.expr)]
    return [(line, value) for line, value in found if value in PREFIXES and (path.name, value) not in COUNTS]


def edge_names(path: Path) -> list[str]:
    """Uses of what belongs to the command line."""
    names = [ast.unparse(node) for node in ast.walk(tree(path)) if isinstance(node, ast.Attribute)]
    calls = [
        node.func.id for node in ast.walk(tree(path)) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    ]
    return [name for name in names if name in EDGE_NAMES] + [call for call in calls if call in EDGE_CALLS]


def positional(paths: Sequence[Path]) -> list[str]:
    """Dataclasses with more fields than MOST_POSITIONAL, inherited ones among them, that take them by position."""
    classes = [node for path in paths for node in ast.walk(tree(path)) if isinstance(node, ast.ClassDef)]
    known = {node.name: node for node in classes if decorator(node) is not None}
    return [
        node.name
        for node in classes
        if (made_by := decorator(node)) is not None
        and len(fields(node, known)) > MOST_POSITIONAL
        and "kw_only=True" not in ast.unparse(made_by)
    ]


def decorator(node: ast.ClassDef) -> ast.expr | None:
    """What makes a class a dataclass."""
    named_so = ("dataclass", "dataclasses.dataclass")
    return next((each for each in node.decorator_list if ast.unparse(each).split("(")[0] in named_so), None)


def fields(node: ast.ClassDef, known: Mapping[str, ast.ClassDef]) -> set[str]:
    """Names of a dataclass's fields, its own and those of the bases among `known`."""
    bases = [known[name] for base in node.bases if (name := ast.unparse(base).rpartition(".")[2]) in known]
    own = [
        each for each in node.body if isinstance(each, ast.AnnAssign) and "ClassVar" not in ast.unparse(each.annotation)
    ]
    return {ast.unparse(each.target) for each in own}.union(*(fields(base, known) for base in bases))


def undocumented(path: Path) -> list[str]:
    """Public functions, classes and methods without a docstring, and the module itself."""
    module = tree(path)
    nodes = [("module", module), *public(module)]
    return [name for name, node in nodes if ast.get_docstring(node) is None]


def public(node: ast.Module | ast.ClassDef) -> list[tuple[str, ast.AST]]:
    """Public definitions in a module or class; what is inside a function is that function's own affair."""
    here = [child for child in node.body if isinstance(child, Definition) and not child.name.startswith("_")]
    inside = [member for child in here if isinstance(child, ast.ClassDef) for member in public(child)]
    return [(child.name, child) for child in here] + inside


def run(*command: str) -> subprocess.CompletedProcess[str]:
    """Run a command in the tree and keep what it says."""
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)


def imported_by(statements: str, names: str) -> str:
    """Which of `names` a fresh interpreter imports, or would if they were installed, while it runs `statements`."""
    watch = f"""
import importlib.util, sys
names, asked = set({names.split()!r}), set()
class Watch:
    def find_spec(self, name, path=None, target=None):
        if name in names:
            asked.add(name)
sys.meta_path.insert(0, Watch())
{statements}
sys.meta_path.pop(0)
print("imported:", *sorted(name for name in asked if name in sys.modules or importlib.util.find_spec(name) is None))
"""
    done = run(sys.executable, "-c", watch)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1]


@pytest.mark.parametrize("path", [path for path in LIBRARY if path.name != "units.py"], ids=named)
def test_prefixes_are_written_in_units_only(path):
    assert prefixes(path) == []


def test_a_prefix_is_seen_in_each_spelling(tmp_path):
    source = tmp_path / "sample.py"
    source.write_text('"""1e9"""\na = 1e9\nb = 2**30\nc = 10**-6\nd = 1024\ne = 1 << 15\nf = 2**53\n')
    assert [line for line, _ in prefixes(source)] == [2, 3, 4, 5]


@pytest.mark.parametrize("path", LIBRARY, ids=named)
def test_the_library_leaves_the_terminal_and_the_environment_alone(path):
    assert edge_names(path) == []


@pytest.mark.parametrize("path", PROGRAM, ids=named)
def test_functions_are_short(path):
    assert [function for function in functions(path) if function.code_lines > LONGEST_FUNCTION] == []


@pytest.mark.parametrize("path", PROGRAM, ids=named)
def test_files_are_short(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= LONGEST_FILE


def test_no_two_modules_of_the_command_line_have_one_name():
    names = [path.name for path in sources(ROOT / "cli") if path.name != "__init__.py"]
    assert sorted(names) == sorted(set(names))


@pytest.mark.parametrize("path", PROGRAM, ids=named)
def test_every_public_name_has_a_docstring(path):
    assert undocumented(path) == []


def test_dataclasses_of_many_fields_take_them_by_name():
    assert positional(PROGRAM) == []


def test_a_dataclass_of_many_fields_is_seen_however_it_comes_by_them(tmp_path):
    source = tmp_path / "sample.py"
    source.write_text("""
@dataclass
class Own:
    a: int
    b: int
    c: int
    d: int = 0

@dataclasses.dataclass(frozen=True)
class Inherited(Few):
    d: int

@dataclass(frozen=True)
class Few:
    known: ClassVar[int] = 0
    a: int
    b: int
    c: int

@dataclass(frozen=True, kw_only=True)
class Named(Inherited):
    e: int

class Plain(Few):
    d: int
""")
    assert positional([source]) == ["Own", "Inherited"]


def test_a_function_is_measured_without_docstring_comments_and_blank_lines(tmp_path):
    source = tmp_path / "sample.py"
    source.write_text('def f():\n    """Two\n    lines."""\n\n    # why\n    a = """x\n\n    y"""\n    return a\n')
    assert [function.code_lines for function in functions(source)] == [5]


def test_imports_point_down():
    done = run(str(Path(sysconfig.get_path("scripts"), "lint-imports")), "--no-cache")
    assert done.returncode == 0, done.stdout + done.stderr


def test_no_module_of_the_library_but_the_launcher_imports_torch_pandas_or_scipy():
    walk = """
import importlib, pkgutil, perfmodel
for module in pkgutil.walk_packages(perfmodel.__path__, "perfmodel."):
    if not module.name.startswith("perfmodel.launch."):
        importlib.import_module(module.name)
"""
    assert imported_by(walk, "torch pandas scipy") == "imported:"


def test_what_starts_the_ranks_is_there_without_torch():
    asked = "from perfmodel.launch.processes import environment, experiment, selection, results, runner"
    assert imported_by(asked, "torch pandas scipy") == "imported:"


def test_importing_the_library_loads_nothing():
    slow = "numpy pandas scipy torch yaml rich typer"
    assert imported_by("import perfmodel; dir(perfmodel)", slow) == "imported:"
    assert imported_by("import perfmodel; perfmodel.UsageError", slow) == "imported:"


def test_an_answer_that_is_not_shown_loads_neither_rich_nor_pandas():
    asked = """
import perfmodel
perfmodel.recommend("gpt-5b", "perlmutter", gpus=16, batch=64).to_dict()
perfmodel.compare("docs/examples/measured.csv").to_dict()
"""
    assert imported_by(asked, "pandas scipy torch rich typer perfmodel_cli") == "imported:"


@pytest.mark.parametrize("words", [(), ("run",)], ids=lambda words: " ".join(words) or "perfmodel")
def test_help_loads_nothing_slow(words):
    ask = f"""
from perfmodel_cli.app import main
sys.argv = {["perfmodel", *words, "--help"]}
try:
    main()
except SystemExit as stop:
    assert not stop.code, stop.code
"""
    assert imported_by(ask, "numpy pandas scipy torch yaml rich") == "imported:"
