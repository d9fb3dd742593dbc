"""Sets of steps that others measured, as rows of `perfmodel compare`: read in place, nothing of them is kept here.

Every set says what its runs were, as far as its source does: see docs/validation.md.
"""

import csv
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from perfmodel.units import parse
from perfmodel.validation.measured_steps import MeasuredStep, Reading, rows_of

# mosaicml/llm-foundry, scripts/train/yamls/pretrain: width, blocks, heads; vocabulary of GPT-NeoX, padded.
MPT = {
    "125m": (768, 12, 12),
    "350m": (1024, 24, 16),
    "760m": (1536, 24, 12),
    "1b": (2048, 24, 16),
    "3b": (2560, 32, 20),
    "7b": (4096, 32, 32),
    "13b": (5120, 40, 40),
    "30b": (7168, 48, 56),
    "70b": (8192, 80, 64),
}
_VOCABULARY = {"vtrain": 51200, "mpt": 50368}
_FEWEST, _MOST = 8, 128


def _read(folder: Path, name: str) -> Iterator[tuple[int, dict[str, str]]]:
    with (folder / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        lines = csv.DictReader(file)
        for line in lines:
            yield lines.line_num, line


def _reading(name: str, rows: Iterator[tuple[int, Mapping[str, object]]]) -> Reading:
    """Rows of columns by name as a reading; one that is refused is an error of this file."""
    found = list(rows)
    heads = list(found[0][1])
    reading = rows_of(name, heads, [(line, [str(row[head]) for head in heads]) for line, row in found])
    if reading.problems:
        raise ValueError(f"{name}: {reading.problems[0]}")
    return reading


def vtrain(folder: Path, name: str, machine: str = "dgx-a100") -> Reading:
    """VIA-Research/vTrain f8dda84, runs without pipeline: Megatron-DeepSpeed in fp16, nothing overlapped."""

    def rows() -> Iterator[tuple[int, Mapping[str, object]]]:
        for line, row in _read(folder, f"vtrain_{name}_node_a100"):
            if row["pipeline_parallel"] == "1":
                yield (
                    line,
                    {
                        "machine": machine,
                        "hidden": row["hidden_size"],
                        "layers": row["layers"],
                        "heads": row["attention_heads"],
                        "vocabulary": _VOCABULARY["vtrain"],
                        "sequence_length": row["seq_len_tokens"],
                        "tp": row["tensor_parallel"],
                        "dp": row["data_parallel"],
                        "batch_sequences": row["global_batch_sequences"],
                        "micro_batch": row["micro_batch_sequences"],
                        "recompute": "full",
                        "attention": "materialized",
                        "dropout": "yes",
                        "overlap": "none",
                        "optimizer": "adamw-bf16-gradients",
                        "step_time_s": float(row["iteration_time_ms"]) * parse("1 ms", "s"),
                    },
                )

    return _reading(f"vtrain_{name}", rows())


def foundry(folder: Path) -> Reading:
    """mosaicml/llm-foundry 8c8dd48: FSDP over all devices, Triton's or the first FlashAttention, 8 to 128 A100."""

    def rows() -> Iterator[tuple[int, Mapping[str, object]]]:
        for line, row in _read(folder, "llm_foundry_mpt_a100"):
            gpus = int(row["gpus"])
            if row["gpu_type"].startswith("a100") and _FEWEST <= gpus <= _MOST:
                hidden, layers, heads = MPT[row["model"]]
                yield (
                    line,
                    {
                        "machine": "azure-ndm-a100-v4" if "80gb" in row["gpu_type"] else "azure-ndv4",
                        "hidden": hidden,
                        "layers": layers,
                        "heads": heads,
                        "vocabulary": _VOCABULARY["mpt"],
                        "sequence_length": row["seq_len_tokens"],
                        "fsdp": gpus,
                        "batch_sequences": row["global_batch_size_sequences"],
                        "micro_batch": row["micro_batch_size_sequences"],
                        "recompute": row["activation_checkpointing"],
                        "attention": "flash-1",
                        "tokens_per_s_per_gpu": row["throughput_tokens_per_s_per_gpu"],
                    },
                )

    return _reading("llm_foundry", rows())


def only(reading: Reading, keep: Callable[[MeasuredStep], bool]) -> Reading:
    """The rows to keep."""
    return replace(reading, rows=tuple(row for row in reading.rows if keep(row)))


def set_the_host_time(row: MeasuredStep) -> bool:
    """Whether the host's time per kernel was read off this row of vTrain's (see settings)."""
    return row.gpus == 2 and row.micro_batch == 1 and isinstance(row.model, tuple) and row.model[0] == 1024
