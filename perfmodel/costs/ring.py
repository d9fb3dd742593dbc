"""Time of one ring collective at paper fidelity: bytes over bandwidth, no start-up cost.

Valid for large messages (arXiv 2502.08145, section V-B, assumption 3); costs after Thakur et al. and Rabenseifner.
`size` is the number of ranks in the group, `bandwidth` what one rank achieves in one direction.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from perfmodel.machines.collective_times import Operation
from perfmodel.units import Bytes, BytesPerSecond, Number, Seconds


def all_gather(gathered: Bytes, *, size: Number, bandwidth: BytesPerSecond) -> Seconds:
    """Every rank ends with `gathered` bytes, of which it had 1/size: (p-1)/p * gathered / beta  (Eq. 1).

    >>> all_gather(25165824, size=2, bandwidth=25e9) * 1e3
    0.50332
    """
    return (size - 1) / size * gathered / bandwidth


def reduce_scatter(buffer: Bytes, *, size: Number, bandwidth: BytesPerSecond) -> Seconds:
    """Every rank brings `buffer` bytes and ends with its 1/size of the sum: (p-1)/p * buffer / beta  (Eq. 2).

    >>> reduce_scatter(25165824, size=2, bandwidth=25e9) * 1e3
    0.50332
    """
    return (size - 1) / size * buffer / bandwidth


def all_reduce(buffer: Bytes, *, size: Number, bandwidth: BytesPerSecond) -> Seconds:
    """Every rank brings and ends with `buffer` bytes: 2 (p-1)/p * buffer / beta  (Eqs. 3 to 5).

    >>> all_reduce(1e9, size=4, bandwidth=25e9)
    0.06
    """
    return 2 * (size - 1) / size * buffer / bandwidth


TIMES: Mapping[Operation, Callable[..., Seconds]] = MappingProxyType(
    {"all-gather": all_gather, "reduce-scatter": reduce_scatter, "all-reduce": all_reduce}
)
