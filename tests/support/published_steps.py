"""Files of published steps, made up for tests: a few rows in the usual columns."""

import csv
from pathlib import Path

ROW = {
    "row": "made_up/1",
    "machine": "selene",
    "gpu": "A100-80GB",
    "gpus": "8",
    "model": "gpt",
    "layers": "4",
    "hidden_features": "1024",
    "heads": "16",
    "kv_heads": "16",
    "ffn_features": "4096",
    "vocabulary_tokens": "51200",
    "sequence_tokens": "1024",
    "precision": "bf16",
    "tp": "2",
    "pp": "1",
    "cp": "1",
    "ep": "1",
    "dp": "4",
    "fsdp": "",
    "sequence_parallel": "",
    "micro_batch_sequences": "2",
    "global_batch_sequences": "64",
    "recompute": "none",
    "zero_stage": "1",
    "status": "ok",
    "step_s": "0.5",
    "tokens_per_s_per_gpu": "",
    "memory_GiB": "",
    "source": "github Megatron-LM",
    "caveat": "",
}


def write(path: Path, *changes: dict[str, str], without: tuple[str, ...] = ()) -> Path:
    """A file with one row for each dict of changes."""
    rows = [ROW | {"row": f"{path.stem}/{line}"} | change for line, change in enumerate(changes, start=1)]
    names = [name for name in ROW if name not in without]
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, names, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)
    return path
