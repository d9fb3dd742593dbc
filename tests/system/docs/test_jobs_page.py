"""docs/jobs.md: its table is that of the code, and it shows the whole scripts that the program writes."""

import re

import pytest

import jobs_page
from perfmodel.jobscripts.frameworks import FRAMEWORKS

pytestmark = pytest.mark.checkout


def test_the_table_of_the_page_is_fresh():
    assert jobs_page.PAGE.read_text(encoding="utf-8") == jobs_page.page(), "run python tools/jobs_page.py --write"
    assert list(jobs_page.GRIDS) == list(FRAMEWORKS)


@pytest.mark.parametrize("machine", ["perlmutter", "frontier", "alps"])
def test_the_page_shows_a_whole_script_with_a_reason_for_each_line(machine):
    page = jobs_page.PAGE.read_text(encoding="utf-8")
    blocks = re.findall(r"^```console\n\$ perfmodel job (.*?)^```", page, re.MULTILINE | re.DOTALL)
    script = next(block for block in blocks if f"--machine {machine} " in block).split("#!/bin/bash\n")[1]
    lines = script.splitlines()
    assert lines[-1] == 'exit "$failed"'
    assert "..." not in lines
    for number, line in enumerate(lines):
        if line.startswith("#SBATCH "):
            assert lines[number - 1].startswith("# ")
        if re.match(r"(export|MASTER_ADDR=)", line) and line != "export MASTER_ADDR":
            assert "  # " in line
