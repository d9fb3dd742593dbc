"""Groups whose blocks of ranks straddle domains: how many share a domain's links, and their fewest members in one."""

import numpy as np

from perfmodel.units import Array, Count

_FEW = 9  # up to this many domains, blocks are examined one by one


def sharing(*, inner: Count, size: Count, domain: int, gpus: "Count | None" = None) -> Count:
    """Groups that share the links out of a domain: min(domain, P), or twice P if blocks are not aligned with domains.

    In a job of few domains fewer may share them; there they are counted exactly.

    >>> int(sharing(inner=2, size=4, domain=4)), int(sharing(inner=1, size=4, domain=6))
    (2, 2)
    """
    common = np.gcd(inner * size, domain)
    aligned = (common == domain) | (common == inner * size)
    rule = np.minimum(domain, np.where(aligned, inner, 2 * inner))
    return rule if gpus is None else _where_few(0, rule, inner, size, domain, gpus)


def fewest_members(*, inner: Count, size: Count, domain: int, gpus: "Count | None" = None) -> Count:
    """Ranks of a crossing group in the domain where it has fewest: a block's shortest piece is gcd(block, domain).

    In a job of few domains not every piece occurs; the shortest that occurs counts.

    >>> int(fewest_members(inner=1, size=64, domain=72)), int(fewest_members(inner=2, size=8, domain=4))
    (8, 2)
    >>> int(fewest_members(inner=1, size=19, domain=72, gpus=76))
    4
    """
    rule = np.maximum(1, np.gcd(inner * size, domain) // inner)
    return rule if gpus is None else _where_few(1, rule, inner, size, domain, gpus)


def _where_few(which: int, rule: Count, inner: Count, size: Count, domain: int, gpus: Count) -> Count:
    """`rule`, or one of `_cuts` for jobs of few domains, row by row."""
    few = gpus <= _FEW * domain
    return np.where(few, _cuts(inner, size, domain, np.where(few, gpus, 0))[which], rule) if np.any(few) else rule


def _cuts(inner: Count, size: Count, domain: int, gpus: Count) -> tuple[Array, Array]:
    """(most groups that leave one domain, members in the shortest piece of a split block), domain by domain.

    A domain holds the end of a block that starts before it (`head`) and the start of one that continues after it
    (`tail`), or the middle of one block.
    """
    block = np.asarray(inner * size)
    most, fewest = np.zeros_like(block), np.maximum(1, block // inner)
    for start in range(0, int(np.max(gpus, initial=0)), domain):
        before, goes_on = start % block, start + domain < gpus
        head = np.where((before > 0) & (start < gpus), block - before, 0)
        tail = np.where(goes_on, (start + domain) % block, 0)
        middle = (head > domain) | ((before == 0) & (block > domain) & goes_on)
        ends = np.minimum(inner, np.minimum(head, before)) + np.minimum(inner, np.minimum(tail, block - tail))
        most = np.maximum(most, np.where(middle, np.minimum(inner, np.minimum(domain, block - domain)), ends))
        for piece in (np.where(middle, domain, head), np.where(middle, domain, tail)):
            fewest = np.where(piece > 0, np.minimum(fewest, np.maximum(1, piece // inner)), fewest)
    return np.maximum(most, 1), fewest
