"""What an import made, as plain records."""

from typing import Any

from perfmodel.logs.combined import Combined, Part
from perfmodel.logs.samples import traffic


def import_record(found: Combined, file: str) -> dict[str, Any]:
    """Everything of an import: a row for each operation and group, the outliers, and what was dropped."""
    return {
        "file": file,
        "parts": [part_record(part) for part in found.parts],
        "outliers": [
            {"file": sample.file, "line": sample.line, "operation": sample.operation, "size_B": sample.size,
             "time_s": sample.time, "line_s": line_time(part, sample.size)}
            for part in found.parts
            for sample in part.outliers
        ],
        "used": found.used,
        "dropped": sum(problem.rows for problem in found.problems),
        "problems": [{"file": each.file, "line": each.line, "text": each.text} for each in found.problems],
    }  # fmt: skip


def line_time(part: Part, size: float) -> float | None:
    """What the fitted line has for a size."""
    line = part.line
    if line is None:
        return None
    return float(line.alpha + traffic(part.operation, size, part.group.size) / line.beta)


def part_record(part: Part) -> dict[str, Any]:
    """One operation in one group: how much is known, and the line through it."""
    sizes, line = list(part.medians), part.line
    alphas, betas = (line.alpha_interval, line.beta_interval) if line else (None, None)
    return {
        "operation": part.operation,
        "nodes": part.group.nodes,
        "ranks_per_node": part.group.ranks,
        "inner": part.group.inner,
        "sizes": len(sizes),
        "least_B": sizes[0],
        "most_B": sizes[-1],
        "samples": len(part.samples),
        "spread": part.spread,
        "alpha_s": line.alpha if line else None,
        "alpha_low_s": alphas[0] if alphas else None,
        "alpha_high_s": alphas[1] if alphas else None,
        "beta_B_per_s": line.beta if line else None,
        "beta_low_B_per_s": betas[0] if betas else None,
        "beta_high_B_per_s": betas[1] if betas and betas[1] != float("inf") else None,
        "error": line.error if line else None,
        "outliers": len(part.outliers),
    }
