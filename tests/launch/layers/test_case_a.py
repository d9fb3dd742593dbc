"""The published numbers of AxoNN's own layer on four ranks (case A): a GELU MLP of 1024 -> 4096 -> 1024, 512 rows."""

import pytest

from gloo.case_a import case_a
from gloo.spawn import on_ranks

# Of the serial model, in fp32: facts that AxoNN 0.2.0's Linear reproduces on the same ranks.
NORMS = {"y": 358.94305, "dX": 3.7176828, "dW1": 185.81404, "dW2": 178.09679}
GRIDS = [(2, 2, 1), (1, 2, 2), (2, 1, 2), (4, 1, 1), (1, 4, 1), (1, 1, 4)]


def test_every_grid_of_four_ranks_gives_the_norms_of_the_serial_model():
    found = on_ranks(4, case_a, GRIDS)[0]
    for grid, norms in zip(GRIDS, found, strict=True):
        # Sums in fp32 depend on the grid and the processor's BLAS in the eighth digit, one element in the seventh
        # (AxoNN: 1.4e-6).
        assert norms.pop("first") == pytest.approx(0.5074624, abs=5e-7), grid
        assert norms == pytest.approx(NORMS, rel=2e-7), grid
