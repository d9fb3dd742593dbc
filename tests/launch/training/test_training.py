"""Three steps of training on any grid end where plain torch on one process ends."""

from itertools import count, product

import pytest
import torch

from gloo.spawn import on_ranks
from gloo.trained import BATCH, deviations, sent, source, trainer
from perfmodel.errors import UsageError
from perfmodel.launch.training.groups import Grid
from perfmodel.launch.training.tokens import batches
from perfmodel.parallel.choices import OVERLAPS
from perfmodel.parallel.enumeration import placed
from perfmodel.parallel.layout import Layout

CHOICES = list(product(("gpt", "llama"), (1, 3), (None, 0.05), (OVERLAPS, (), ("data",), OVERLAPS[:3])))
TOLERANCES = {"float64": 1e-10, "float32": 1e-5}


def cases(ranks):
    """Every factorization in each format; models, placements, accumulation, clipping and overlap take turns."""
    turns = (CHOICES[13 * turn % len(CHOICES)] for turn in count())  # all in the end, and neighbours far apart
    found = []
    layouts = placed(ranks, (0, 1))
    for row in range(len(layouts.x)):
        one = layouts.take(row)
        for dtype in TOLERANCES:
            name, accumulation, clip, overlap = next(turns)
            name = "gpt" if one.x == 8 else name  # of the other, no axis can split 4 key-value heads into 8
            found.append(((one.x, one.y, one.z, one.data), one.placement, name, dtype, accumulation, clip, overlap))
    return found


@pytest.mark.parametrize("ranks", [2, 4, 8])
def test_losses_gradient_norms_and_weights_are_those_of_a_dense_model(ranks):
    chosen = cases(ranks)
    for case, *of_ranks in zip(chosen, *on_ranks(ranks, deviations, chosen), strict=True):
        for found in of_ranks:
            assert max(found.values()) < TOLERANCES[case[3]], (case, found)


def test_shards_leave_during_the_last_backward_pass_if_that_is_wanted_and_a_step_sends_each_thing_once():
    number = 4  # bytes
    overlapped, plain = on_ranks(8, sent, (2, 1, 2, 2), [OVERLAPS, ()])[0]
    for early, after, sections in (overlapped, plain):
        copied = sum(sections.values()) - sections["sharded"]
        assert early + after.pop(("all-reduce", "data")) == sections["sharded"] + copied
        assert after == {
            ("all-reduce", "z"): copied + number,  # a number for the norm
            ("all-reduce", "x"): sections["partial"],
            ("all-reduce", "xy"): number,
        }
    assert (overlapped[0], plain[0]) == (plain[2]["sharded"], 0)


def test_a_step_takes_a_batch_for_each_micro_step():
    grid = Grid.of(Layout(x=1, y=1, z=1, data=1))
    mine = trainer("gpt", grid, torch.float32, accumulation=3)
    with pytest.raises(UsageError, match="batches for a step: 1; wanted 3"):
        mine.step(0, batches(source("gpt"), grid, batch=BATCH, accumulation=1, step=0))
