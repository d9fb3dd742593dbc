"""Commands are listed without their modules, and what the list says of them is what they say themselves."""

import subprocess
import sys

import pytest
import typer
from typer.testing import CliRunner

from perfmodel_cli import command_list, on_demand
from perfmodel_cli.on_demand import Listed

GROUPS = {"": command_list.PROGRAM, "machines": command_list.MACHINES, "models": command_list.MODELS}
LISTED = [
    pytest.param(name, listed, id=f"{group} {name}".strip())
    for group, commands in GROUPS.items()
    for name, listed in commands.items()
]


@pytest.mark.parametrize(("name", "listed"), LISTED)
def test_the_list_says_what_the_command_says_of_itself(name, listed):
    command = on_demand.OnDemand(name, listed).loaded()
    assert command.name == name
    assert " ".join(command.help.split("\n\n")[0].split()) == listed.purpose


def test_a_list_loads_no_command_and_a_call_loads_its_own():
    asked = """
import sys
from perfmodel_cli.app import main
sys.argv = ["perfmodel", *sys.argv[1:]]
try:
    main()
except SystemExit:
    print(*sorted(name for name in sys.modules if name.startswith("perfmodel_cli.commands.")))
"""

    def loaded(*words):
        done = subprocess.run([sys.executable, "-c", asked, *words], capture_output=True, text=True, check=True)
        return done.stdout.splitlines()[-1].split()

    assert loaded("--help") == []
    assert loaded("models", "--help") == []
    assert loaded("models", "list", "--help") == ["perfmodel_cli.commands.models"]


def test_groups_that_are_added_stand_after_the_commands():
    outer = on_demand.group("Outer.", {"one": Listed("models:models_list", "First.")})
    outer.add_typer(on_demand.group("Inner.", {"two": Listed("models:models_show", "Second.")}), name="more")
    said = CliRunner().invoke(outer, ["--help"]).output
    assert [line.split() for line in said.splitlines()[-2:]] == [["one", "First."], ["more", "Inner."]]
    assert list(typer.main.get_command(outer).commands["more"].commands) == ["two"]
