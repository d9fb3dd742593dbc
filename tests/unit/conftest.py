"""Make tests/machines.py importable, from a checkout as from a folder that holds the tests only."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))
