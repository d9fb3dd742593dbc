"""Which groups of ranks stay inside a node, or inside a larger fabric: every module asks here."""

from perfmodel.units import Count


def contained(*, inner: Count, size: Count, domain: int, gpus: "Count | None" = None) -> Count:
    """Whether every group of `size` ranks with `inner` ranks between neighbours stays inside its domain.

    The blocks of inner * size neighbouring ranks have to divide the domain, or one of them would straddle a boundary.
    A job of `gpus` devices that all fit into one domain has no boundary to cross.

    >>> bool(contained(inner=1, size=4, domain=8)), bool(contained(inner=1, size=3, domain=8))
    (True, False)
    """
    aligned = domain % (inner * size) == 0
    return aligned if gpus is None else (gpus <= domain) | aligned
