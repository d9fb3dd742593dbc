"""What the process does with memory that arrays have given back."""

import ctypes
from contextlib import suppress

# Of glibc's mallopt: free memory at the heap's end above which it is given back, and the size from which memory is
# mapped anew for each array.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_LARGEST = 2**30 - 1


def keep_freed_memory() -> None:
    """Keep it, so that the next array finds its pages in place.

    A column of a search's block is as large as what glibc maps anew for each array, or larger. The kernel then clears
    every page of it again: 15,800 page faults a block of 2^14 rows, which took more than half of a search's time. A C
    library without `mallopt` does as it likes.
    """
    with suppress(AttributeError, OSError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_TRIM_THRESHOLD, _LARGEST)
        mallopt(_MMAP_THRESHOLD, _LARGEST)
