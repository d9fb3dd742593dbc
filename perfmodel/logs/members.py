"""The group of a run from its list of ranks: nodes, ranks on each, and the stride where groups run side by side."""

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from perfmodel.errors import PerfmodelError
from perfmodel.logs.nccl_runs import Member
from perfmodel.logs.samples import Group


def group_of(members: Sequence[Member]) -> Group:
    """The shape of the groups of a run; all must have the same, and one number of ranks on each host.

    >>> ranks = [Member(rank, rank % 2, f"host{rank // 4}", "") for rank in range(8)]  # NCCL_TESTS_SPLIT="MOD 2"
    >>> group_of(ranks)
    Group(nodes=2, ranks=2, inner=2, idle=False)
    """
    ranks = sorted(member.rank for member in members)
    if ranks != list(range(len(ranks))):
        doubled = [rank for rank, times in Counter(ranks).items() if times > 1]
        told = f"rank {doubled[0]} is listed twice" if doubled else f"its {len(ranks)} ranks are not 0 to {ranks[-1]}"
        raise PerfmodelError(f"{told}: lines are lost, or two runs wrote at once")
    parts: dict[int, list[Member]] = {}
    for member in sorted(members, key=lambda member: member.rank):
        parts.setdefault(member.group, []).append(member)
    shapes = {_shape(part) for part in parts.values()}
    if len(shapes) > 1:
        raise PerfmodelError("its groups differ in shape")
    nodes, each, stride = shapes.pop()
    hosts = Counter(member.host for member in members)
    spread = each == 1 and len(parts) > 1
    inner = stride if len(parts) > 1 else 1
    if inner * each > max(hosts.values()) and not spread:
        raise PerfmodelError(f"its groups of {each} ranks a node are no regular choice of the node's ranks")
    return Group(nodes, each, inner, idle=len(parts) == 1)


def _shape(members: Sequence[Member]) -> tuple[int, int, int]:
    hosts = Counter(member.host for member in members)
    if len(set(hosts.values())) > 1:
        shares = ", ".join(str(count) for count in sorted(set(hosts.values())))
        raise PerfmodelError(f"its hosts have different numbers of ranks: {shares}")
    strides = {after.rank - before.rank for before, after in pairwise(members)}
    if len(strides) > 1:
        raise PerfmodelError("the ranks of a group do not follow each other at one distance")
    return len(hosts), next(iter(hosts.values())), next(iter(strides), 1)
