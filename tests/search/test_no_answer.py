"""When there is no answer: the counts and batches that are offered work, and none that is nearer does."""

import re

import pytest

from machines import gpt, job, machine
from perfmodel.errors import NoGridError
from perfmodel.parallel.layout import Layout
from perfmodel.search.no_answer import distance, nearest_grid, recommend, refuse_count
from perfmodel.search.search import Space, rank


def refusal(question, space):
    with pytest.raises(NoGridError) as error:
        recommend(question, space)
    return str(error.value)


def offered(text, what):
    """The numbers behind `nearest WHAT that work:`."""
    return [
        int(number) for number in re.search(rf"nearest {what} that work: (\d+(?: and \d+)*)", text)[1].split(" and ")
    ]


def works(question, gpus):
    return gpus % 4 == 0 and len(rank(question, Space(gpus=gpus, top=1))) > 0


def test_the_counts_offered_work_and_none_between_does():
    question = job(batch=24)
    below, above = offered(refusal(question, Space(gpus=40)), "counts")
    assert below < 40 < above
    assert works(question, below)
    assert works(question, above)
    assert not any(works(question, count) for count in range(below + 1, above))


def test_the_batches_offered_work_and_none_between_does():
    heads = {"heads": 2, "hidden": 128, "vocabulary": 1024}
    question = job(gpt(**heads), batch=50)
    below, above = offered(refusal(question, Space(gpus=64)), "batches")
    assert below < 50 < above
    tried = {
        batch: len(rank(job(gpt(**heads), batch=batch), Space(gpus=64, top=1))) for batch in range(below, above + 1)
    }
    assert [batch for batch, found in tried.items() if found] == [below, above]


def test_a_lack_of_memory_is_told_by_the_grid_that_comes_nearest():
    question = job(gpt(layers=48, hidden=4096, heads=32), where=machine(memory=10e9))
    text = refusal(question, Space(gpus=4))
    assert "memory leaves none" in text
    nearest = re.search(r"nearest: (\S+) needs", text)[1]
    assert [int(size) for size in nearest.split("x")][-1] == 1  # replicas save nothing


def test_part_of_a_node_is_refused_before_anything_is_searched():
    with pytest.raises(NoGridError, match="6 devices are not whole nodes of 4"):
        refuse_count(job(), Space(gpus=6))
    assert refuse_count(job(), Space(gpus=8)) is None


def test_what_was_fixed_and_does_not_divide_is_named():
    text = refusal(job(fixed={"x": 3}), Space(gpus=16))
    assert "16 is no multiple of x 3" in text


def test_the_nearest_grid_is_the_one_that_fits_and_differs_least():
    question, space = job(), Space(gpus=32)
    wanted = Layout(x=32, y=1, z=1, data=1)
    found = nearest_grid(question, space, wanted)
    fitting = rank(question, Space(gpus=32, top=10**6)).layouts
    assert distance(found, wanted) == min(distance(fitting, wanted))
    assert distance(found, wanted) > 0


def test_a_distance_counts_doublings_and_halvings():
    one, other = Layout(x=1, y=2, z=32, data=4), Layout(x=4, y=2, z=16, data=2)
    assert distance(one, one) == 0
    assert distance(one, other) == distance(other, one) == 2 + 1 + 1
