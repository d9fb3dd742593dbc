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

import numpy as np

from perfmodel.search.likely import Evidence, chip, likely
from perfmodel.validation import step_scores
from perfmodel.validation.step_scores import Scored

_FILE = Path(__file__).parents[1] / "perfmodel" / "search" / "data" / "evidence.csv"
_HEAD = ("set", "framework", "device", "rows", "mean_log", "sd_log")


def evidence(rows: Sequence[Scored]) -> list[Evidence]:
    """One entry for each set with measured steps."""
    timed = [one for one in rows if one.case.step]
    keys = list(dict.fromkeys(_key(one) for one in timed))
    return [_of_set(key[0], [one for one in timed if _key(one) == key]) for key in keys]


def _key(one: Scored) -> tuple[str, str, str]:
    job = one.case.job
    return one.case.set, job.settings.framework.name, chip(job.machine.device.name)


def _of_set(name: str, rows: Sequence[Scored]) -> Evidence:
    logs = np.log([(one.case.step or 1.0) / one.predicted for one in rows])
    job = rows[0].case.job
    return Evidence(
        set=name,
        framework=job.settings.framework.name,
        device=chip(job.machine.device.name),
        rows=len(logs),
        mean=round(float(logs.mean()), 4),
        spread=round(float(logs.std(ddof=1)), 4) if len(logs) > 1 else 0.0,
    )


def text(sets: Sequence[Evidence]) -> str:
    """The file."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(_HEAD)
    writer.writerows((one.set, one.framework, one.device, one.rows, one.mean, one.spread) for one in sets)
    return out.getvalue()


def coverage(rows: Sequence[Scored], sets: Sequence[Evidence]) -> tuple[float, float]:
    """(mean over sets of the share of runs inside the range that the other sets give, median width high / low)."""
    shares, widths = [], []
    for one in sets:
        found = likely(one.framework, one.device, [other for other in sets if other.set != one.set])
        mine = [row for row in rows if row.case.step and _key(row) == (one.set, one.framework, one.device)]
        inside = [found.low <= (row.case.step or 0.0) / row.predicted <= found.high for row in mine]
        shares.append(sum(inside) / len(inside))
        widths.append(found.high / found.low)
    return float(np.mean(shares)), float(np.median(widths))


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
