"""Matrix products in the mode that is fastest for their shape (arXiv 2502.08145, section V-C).

A BLAS computes A B with each operand read as it is stored (N) or transposed (T). For some shapes one mode is several
times slower than another: 6 % against 55 % of the peak on MI250X (the paper). A product can be computed in any mode by
first copying an operand into the other storage order, or as (B^T A^T)^T. With `tune`, each shape is tried once in all
modes, and the fastest is kept.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import torch

_WARM_UP, _RUNS = 2, 5
Product = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def _as_it_is(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return a @ b


def _left_copied(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return _other_order(a) @ b


def _right_copied(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return a @ _other_order(b)


def _transposed(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return (b.t() @ a.t()).t().contiguous()


def _other_order(matrix: torch.Tensor) -> torch.Tensor:
    """The same matrix in the other storage order of rows and columns."""
    return matrix.contiguous() if not matrix.is_contiguous() else matrix.t().contiguous().t()


MODES: dict[str, Product] = {
    "as it is": _as_it_is,
    "left operand copied": _left_copied,
    "right operand copied": _right_copied,
    "product transposed": _transposed,
}


@dataclass(slots=True)
class Products:
    """The three products of a layer, each in its usual mode, or with `tune` in the fastest mode for its shape."""

    tune: bool = False
    chosen: dict[tuple[object, ...], str] = field(default_factory=dict)
    seconds: dict[tuple[object, ...], dict[str, float]] = field(default_factory=dict)

    def nt(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        """A B^T: the forward pass, outputs from inputs (m x k) and weight (n x k)."""
        return self._product("nt", a, b.t())

    def nn(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        """A B: the gradient of the inputs from that of the outputs (m x n) and the weight (n x k)."""
        return self._product("nn", a, b)

    def tn(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        """A^T B: the gradient of the weight from that of the outputs (m x n) and the inputs (m x k)."""
        return self._product("tn", a.t(), b)

    def _product(self, kind: str, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        if not self.tune:
            return a @ b
        shape = (kind, a.shape[0], a.shape[1], b.shape[1], a.dtype)
        if shape not in self.chosen:
            self.seconds[shape] = {name: _time(product, a, b) for name, product in MODES.items()}
            self.chosen[shape] = min(self.seconds[shape], key=self.seconds[shape].__getitem__)
        return MODES[self.chosen[shape]](a, b)


def _time(product: Product, a: torch.Tensor, b: torch.Tensor) -> float:
    """The shortest time of a product in seconds."""
    least = float("inf")
    for run in range(_WARM_UP + _RUNS):
        _finish(a.device)
        start = time.perf_counter()
        product(a, b)
        _finish(a.device)
        if run >= _WARM_UP:
            least = min(least, time.perf_counter() - start)
    return least


def _finish(device: torch.device) -> None:
    """Wait for the device; only timing does this."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
