"""One measured step sets the level of predictions."""

from dataclasses import replace

import numpy as np
import pytest

from perfmodel import models
from perfmodel.errors import PerfmodelError
from perfmodel.machines import profiles
from perfmodel.parallel.job import Job
from perfmodel.parallel.layout import Layout
from perfmodel.search.likely import likely_of
from perfmodel.step.predict import predict, step_time
from perfmodel.validation import level, step_files

HEAD = "machine,model,sequence_length,x,y,z,data,batch_sequences,micro_batch,recompute,weight_cache,step_time_s\n"


@pytest.fixture
def job():
    return Job.of(models.load("gpt-5b"), profiles.load("perlmutter"), batch=64)


@pytest.fixture
def measured(tmp_path, job):
    """A file of one step that takes 1.3 times as long as predicted."""
    layout = Layout(x=1, y=1, z=8, data=1, micro_batch=4, recompute=2, weight_cache=1)
    seconds = 1.3 * float(step_time(job, layout))
    path = tmp_path / "mine.csv"
    path.write_text(f"{HEAD}perlmutter,gpt-5b,2048,1,1,8,1,64,4,full,forward,{seconds!r}\n", encoding="utf-8")
    return path


def test_the_level_is_measured_over_predicted(job, measured):
    found = level.measured_level(step_files.read(measured), job)
    assert (found.rows, found.factor) == (1, pytest.approx(1.3, rel=1e-6))


def test_every_step_is_at_that_level_and_its_range_is_narrower(job, measured):
    leveled = level.at_level(job, step_files.read(measured))
    grid = Layout(x=2, y=1, z=4, data=2, micro_batch=1)
    assert float(step_time(leveled, grid)) == pytest.approx(1.3 * float(step_time(job, grid)), rel=1e-6)
    assert float(np.asarray(predict(leveled, grid).step)) == pytest.approx(float(step_time(leveled, grid)))
    own, published = likely_of(leveled), likely_of(job)
    assert own.high / own.low < published.high / published.low


def test_a_level_is_found_from_the_plain_prediction(job, measured):
    again = level.at_level(level.at_level(job, step_files.read(measured)), step_files.read(measured))
    assert again.settings.level == pytest.approx(1.3, rel=1e-6)


def test_steps_of_another_machine_are_no_evidence(job, measured):
    other = replace(job, machine=replace(job.machine, name="elsewhere"))
    with pytest.raises(PerfmodelError, match=r"no measured step is of elsewhere; .*mine.csv has perlmutter"):
        level.measured_level(step_files.read(measured), other)
