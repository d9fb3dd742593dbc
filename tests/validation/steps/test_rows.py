"""Rows of published steps as jobs on grids, or the reason why not."""

import pytest

from perfmodel.errors import PerfmodelError
from perfmodel.validation.steps import rows as step_rows
from perfmodel.validation.steps.rows import Case
from published_steps import write


def one(tmp_path, **change):
    (found,) = step_rows.read(write(tmp_path / "made_up.csv", change))
    return found


def test_a_row_is_a_job_on_its_grid(tmp_path):
    found = one(tmp_path)
    assert isinstance(found, Case)
    assert (found.grid.text(), found.micro_batch, found.recompute, found.step) == ("2x1x1x4", 2, "none", 0.5)
    assert (found.job.machine.name, found.job.batch, found.job.sequence) == ("dgx-a100", 64, 1024)
    settings = found.job.settings
    assert (settings.framework.name, settings.shards, settings.sequence_parallel) == ("megatron-lm", "optimizer", True)
    assert found.job.model.transformer.is_gpt


def test_a_step_follows_from_tokens_per_second(tmp_path):
    found = one(tmp_path, step_s="", tokens_per_s_per_gpu="4096")
    assert found.step == pytest.approx(64 * 1024 / (4096 * 8))


def test_a_narrow_mlp_has_a_gate(tmp_path):
    shape = one(tmp_path, ffn_features="2816").job.model.transformer
    assert shape.gated
    assert shape.rms_norm


def test_fsdp_is_z_and_zero_3_takes_all_of_data(tmp_path):
    assert one(tmp_path, tp="1", fsdp="8", dp="1", zero_stage="3 (FSDP2)").grid.text() == "1x1x8x1"
    assert one(tmp_path, tp="1", dp="8", zero_stage="3", source="DeepSpeed").grid.text() == "1x1x8x1"


@pytest.mark.parametrize(
    ("stage", "shards", "ranks"),
    [("0", "nothing", 0), ("1, sharded over 2", "optimizer", 2), ("2", "gradients", 0)],
)
def test_the_stage_of_zero_says_what_is_sharded(tmp_path, stage, shards, ranks):
    settings = one(tmp_path, zero_stage=stage).job.settings
    assert (settings.shards, settings.shard_ranks) == (shards, ranks)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"pp": "2"}, "pipeline parallelism is not modelled"),
        ({"precision": "fp8"}, "products in fp8 are not modelled"),
        ({"status": "suspicious"}, "its status is suspicious"),
        ({"gpu": "abacus", "machine": ""}, "no profile for , abacus"),
        ({"dp": "3"}, "its degrees make 6 devices, not 8"),
        ({"global_batch_sequences": ""}, "its batch is not published"),
        ({"step_s": "fast"}, "step_s is 'fast', wanted a number"),
        ({"layers": "2.5"}, "layers is 2.5, wanted a whole number"),
        ({"sequence_tokens": ""}, "sequence_tokens is not published"),
    ],
)
def test_what_cannot_be_predicted_is_told(tmp_path, change, reason):
    assert one(tmp_path, **change) == ("made_up/1", reason)


def test_a_missing_column_is_told(tmp_path):
    path = write(tmp_path / "made_up.csv", {}, without=("tp", "gpus"))
    assert not step_rows.has_columns(path)
    with pytest.raises(PerfmodelError, match="has no column gpus, tp"):
        list(step_rows.read(path))
