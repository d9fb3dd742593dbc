"""Arrays that follow each other use the same memory."""

import platform
import subprocess
import sys

import pytest

FAULTS = """
import resource
import numpy as np
from perfmodel_cli.options.question import keep_freed_memory

if {kept}:
    keep_freed_memory()
def block():
    columns = [np.ones(1 << 17) for _ in range(20)]
    return sum(columns)


for _ in range(3):  # the heap grows to what is needed
    block()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(20):
    block()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults(*, kept):
    done = subprocess.run([sys.executable, "-c", FAULTS.format(kept=kept)], capture_output=True, text=True, check=True)
    return int(done.stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library does as it likes")
def test_a_block_of_arrays_finds_its_pages_in_place():
    assert faults(kept=True) < 100 < faults(kept=False)
