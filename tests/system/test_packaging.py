"""What the distributions hold: a user's site-packages gets the two packages, the profiles, and nothing else."""

import email
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path, PurePosixPath

import pytest

ROOT = Path(__file__).parents[2]
PROFILES = sorted(path.name for path in ROOT.glob("machine_profiles/*.yaml") if not path.name.startswith("local-"))

pytestmark = pytest.mark.checkout


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A folder with the sdist, and the wheel made from that sdist (which so proves to be complete)."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="module")
def wheel(built):
    """The wheel, open; there is one and it fits every platform."""
    (path,) = built.glob("*.whl")
    assert path.name.endswith("-py3-none-any.whl")
    with zipfile.ZipFile(path) as archive:
        yield archive


@pytest.fixture(scope="module")
def sdist_names(built):
    """Paths in the sdist below its one folder."""
    (path,) = built.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        return {str(PurePosixPath(*PurePosixPath(name).parts[1:])) for name in archive.getnames()}


@pytest.fixture(scope="module")
def information(wheel):
    """Folder of the wheel's metadata."""
    (name,) = {PurePosixPath(name).parts[0] for name in wheel.namelist() if ".dist-info/" in name}
    return name


@pytest.fixture(scope="module")
def metadata(wheel, information):
    """The wheel's metadata, parsed."""
    return email.message_from_bytes(wheel.read(f"{information}/METADATA"))


def test_only_our_two_packages_land_in_site_packages(wheel, information):
    top = {PurePosixPath(name).parts[0] for name in wheel.namelist()}
    assert top == {"perfmodel", "perfmodel_cli", information}


def test_every_module_is_in_the_wheel(wheel):
    library = {str(path.relative_to(ROOT)) for path in ROOT.glob("perfmodel/**/*.py")}
    commands = {str(path.relative_to(ROOT / "cli")) for path in ROOT.glob("cli/**/*.py")}
    assert {name for name in wheel.namelist() if name.endswith(".py")} == library | commands


def test_profiles_are_inside_the_package(wheel):
    data = (f"perfmodel/{path.relative_to(ROOT / 'perfmodel')}" for path in ROOT.glob("perfmodel/**/*.yaml"))
    assert sorted(name for name in wheel.namelist() if name.endswith(".yaml")) == sorted(
        [*data, *(f"perfmodel/machine_profiles/{name}" for name in PROFILES)]
    )
    assert PROFILES


def test_both_packages_say_that_they_are_typed(wheel):
    assert {"perfmodel/py.typed", "perfmodel_cli/py.typed"} <= set(wheel.namelist())


def test_the_style_and_the_script_of_a_report_are_in_the_wheel(wheel):
    assert {"perfmodel_cli/report/report.css", "perfmodel_cli/report/report.js"} <= set(wheel.namelist())


def test_the_licence_is_in_the_wheel(wheel, information, metadata):
    text = wheel.read(f"{information}/licenses/LICENSE").decode()
    assert "Apache License" in text
    assert metadata["License-Expression"] == "Apache-2.0"


def test_the_wheel_installs_one_command(wheel, information):
    entry_points = wheel.read(f"{information}/entry_points.txt").decode().split()
    assert entry_points == ["[console_scripts]", "perfmodel", "=", "perfmodel_cli.app:main"]


def test_a_user_installs_four_packages(metadata):
    needed = [text for text in metadata.get_all("Requires-Dist") if "extra ==" not in text]
    assert sorted(re.split(r"[<>=,]", text)[0] for text in needed) == ["numpy", "pyyaml", "rich", "typer"]


def test_the_sdist_can_be_tested(sdist_names):
    wanted = {"README.md", "LICENSE", "constraints.txt", "pyproject.toml", "tests/conftest.py", "tools/sizes.py"}
    wanted |= {"CONTRIBUTING.md", "CHANGELOG.md", "tests/where.md", ".github/ISSUE_TEMPLATE/new-machine.yml"}
    pages = {str(path.relative_to(ROOT)) for path in ROOT.glob("docs/**/*.md")}
    assert wanted | pages <= sdist_names
