"""How far published steps lie from predictions, by set: `perfmodel/search/data/evidence.csv`, and its coverage.

python tools/evidence.py FOLDER          compare with the file that is there
python tools/evidence.py FOLDER --write  write it

FOLDER holds sets in the columns of docs/validation.md. The file has one line per set and no row of any set.
"""

import argparse
import csv
import io
import sys
from collections.abc import Sequence
from pathlib import Path

from perfmodel.search.likely import Evidence
from perfmodel.validation.steps import scores as step_scores
from perfmodel.validation.steps.evidence import coverage, evidence

_FILE = Path(__file__).parents[1] / "perfmodel" / "search" / "data" / "evidence.csv"
_HEAD = ("set", "framework", "device", "rows", "mean_log", "sd_log")


def text(sets: Sequence[Evidence]) -> str:
    """The file."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(_HEAD)
    writer.writerows((one.set, one.framework, one.device, one.rows, one.mean, one.spread) for one in sets)
    return out.getvalue()


def main() -> int:
    """Print coverage; compare or write the file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    files = [path for path in sorted(asked.folder.glob("*.csv")) if "status" in path.read_text(encoding="utf-8")[:2000]]
    rows, _ = step_scores.scored(files)
    sets = evidence(rows)
    inside, width = coverage(rows, sets)
    print(f"coverage of sets left out {inside:.1%}, median width {width:.2f}, {len(sets)} sets")
    if asked.write:
        _FILE.write_text(text(sets), encoding="utf-8")
        return 0
    return int(_FILE.read_text(encoding="utf-8") != text(sets))


if __name__ == "__main__":
    sys.exit(main())
