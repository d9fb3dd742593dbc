"""Files of nccl-tests and rccl-tests in any of their formats, recognized by how they begin."""

import re

from perfmodel.logs import nccl_json, nccl_tests, rccl_files
from perfmodel.logs.samples import Log, Told

_ROWS = re.compile(r'\s*(?:\[\s*\{|\{\s*"(?:numCycle|name)"|(?:numCycle\s*,\s*)?collective\s*,)')
_RUN = re.compile(r'\s*\{\s*"')


def read(text: str, file: str, told: Told) -> Log:
    """Every sample of a file: rows of rccl-tests (-x), a run's JSON (-J), or else what the tests print."""
    if _ROWS.match(text):
        return rccl_files.read(text, file, told)
    if _RUN.match(text):
        return nccl_json.read(text, file, told)
    return nccl_tests.read(text, file, told)
