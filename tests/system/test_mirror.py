"""Tests mirror rooms: every module has a test file of its name, or a line in tests/where.md that says where it is.

A line names the module, a test file, and what that file takes to get there: the module itself, another module that
imports it, or a command. So a line is wrong as soon as its test no longer reaches the module.
"""

import ast
import re
from functools import cache
from pathlib import Path

import grimp
import pytest

import cli_reference
from sizes import sources

ROOT = Path(__file__).parents[2]
WHERE = ROOT / "tests" / "where.md"
ITSELF = "itself"
SILENT = ("__init__.py", "__main__.py")  # a room's docstring; `python -m perfmodel_cli`
MODULES = [path for path in sources(ROOT / "perfmodel", ROOT / "cli") if path.name not in SILENT]
COMMANDS = {" ".join(("perfmodel", *words)) for words in cli_reference.commands() if words}

pytestmark = pytest.mark.checkout


def named(path):
    return str(path.relative_to(ROOT))


def lines():
    """Module, test file and way of each line."""
    rows = re.findall(r"^\| `(\S+)` \| `(\S+)` \| `?([^|`]+)`? \|$", WHERE.read_text(encoding="utf-8"), re.MULTILINE)
    return [(ROOT / module, ROOT / test, way.strip()) for module, test, way in rows]


def own_test(module):
    """The test file that carries the name of a module."""
    program = ROOT / "cli" / "perfmodel_cli"
    if module.is_relative_to(program):
        room = module.relative_to(program).parent
        folder = Path() if room.name == "commands" else room  # commands stand beside the folders of the other rooms
        return ROOT / "tests" / "cli" / folder / f"test_{module.stem}.py"
    room = module.relative_to(ROOT / "perfmodel").parent
    return ROOT / "tests" / (room if room.parts else "base") / f"test_{module.stem}.py"


def dotted(module):
    parts = module.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[1:] if parts[0] == "cli" else parts)


@cache
def imported(test):
    """Modules that a test file imports, and those that the helpers in tests/support do which it imports."""
    found = set()
    for node in ast.walk(ast.parse(test.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    helpers = [ROOT / "tests" / "support" / f"{name.replace('.', '/')}.py" for name in found]
    return found.union(*(imported(helper) for helper in helpers if helper.exists()))


@cache
def imports():
    return grimp.build_graph("perfmodel", "perfmodel_cli")


def reaches(test, way, module):
    """Whether a test file names a command, or imports a module that is, or leads to, another one."""
    if way in COMMANDS:
        return re.search(rf"\b{way.split()[-1]}\b", test.read_text(encoding="utf-8")) is not None
    way = dotted(module) if way == ITSELF else way
    leads = way == dotted(module) or imports().chain_exists(importer=way, imported=dotted(module))
    return way in imported(test) and leads


@pytest.mark.parametrize("module", MODULES, ids=named)
def test_a_module_has_a_test_file_of_its_name_or_a_line_that_says_where(module):
    told = {line[0] for line in lines()}
    assert own_test(module).exists() != (module in told), f"{named(own_test(module))} or a line of tests/where.md"


@pytest.mark.parametrize(("module", "test", "way"), lines(), ids=lambda one: one.name if isinstance(one, Path) else one)
def test_a_line_names_a_test_that_reaches_its_module(module, test, way):
    assert module.exists()
    assert test.exists()
    assert test.name.startswith("test_")
    assert reaches(test, way, module)


def test_every_line_of_the_table_is_read_and_no_module_has_two():
    rows = [line for line in WHERE.read_text(encoding="utf-8").splitlines() if line.startswith("| `")]
    assert len(rows) == len(lines()) == len({module for module, _, _ in lines()})


def test_a_test_that_does_not_reach_a_module_is_seen():
    test, module = ROOT / "tests/costs/test_ring.py", ROOT / "perfmodel/search/search.py"
    assert not reaches(test, ITSELF, module)
    assert not reaches(test, "perfmodel.costs.ring", module)
    assert not reaches(test, "perfmodel sweep", module)
    assert reaches(test, ITSELF, ROOT / "perfmodel/costs/ring.py")
