"""docs/architecture.md: its map is that of the code, the rooms say what their contract allows, its paths exist."""

import re

import pytest

import architecture_page
import links
from page_tables import renewed

pytestmark = pytest.mark.checkout

ROOMS = [(container, room) for container in architecture_page._FOLDERS for room in architecture_page.rooms(container)]
PAGES = ["docs/architecture.md", "CONTRIBUTING.md", "tests/where.md"]


def text(page):
    return (architecture_page.ROOT / page).read_text(encoding="utf-8")


def test_the_map_of_the_page_is_fresh():
    assert text("docs/architecture.md") == renewed(architecture_page.PAGE, architecture_page.TABLES)


@pytest.mark.parametrize(("container", "room"), ROOMS)
def test_a_room_says_what_its_contract_lets_it_import(container, room):
    said = architecture_page.room_docstring(container, room)
    assert architecture_page.permission(container, room) in said.split("\n\n")


def test_every_package_is_in_the_map():
    folders = (architecture_page._FOLDERS[architecture_page.LIBRARY], architecture_page._FOLDERS["perfmodel_cli"])
    packages = {init.parent for folder in folders for init in folder.glob("*/**/__init__.py")}
    headings = set(re.findall(r"^#+ `([\w/]+)/`", text("docs/architecture.md"), re.MULTILINE))
    assert {str(package.relative_to(architecture_page.ROOT)) for package in packages} == headings


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "CHANGELOG.md", "tests/where.md"])
def test_links_of_the_pages_outside_docs_lead_somewhere(page):
    assert links.broken(architecture_page.ROOT / page) == []


@pytest.mark.parametrize("page", PAGES)
def test_every_path_that_a_page_names_exists(page):
    by_hand = re.sub(r"<!-- (\w+) -->.*?<!-- end -->", "", text(page), flags=re.DOTALL)
    assert len(architecture_page.paths(by_hand)) > 5
    assert architecture_page.missing(by_hand) == []


def test_every_line_of_what_to_touch_names_a_file():
    section = text("docs/architecture.md").split("## To add something")[1].split("\n## ")[0]
    _, _, *rows = re.findall(r"^\|.*\|$", section, re.MULTILINE)
    assert len(rows) >= 9
    assert [row for row in rows if not architecture_page.paths(row.split("|")[2])] == []
