"""What processes that share processors take together, and not each by its own clock."""

from gloo import late
from gloo.spawn import on_ranks


def test_a_rank_that_waits_for_its_turn_before_it_looks_at_the_clock_has_not_been_faster():
    (own, together), (same_own, same_together) = on_ranks(2, late.timed)
    assert (own, together) == (same_own, same_together)
    assert own >= late.WORK
    assert together >= late.WORK + 0.9 * late.LATE
