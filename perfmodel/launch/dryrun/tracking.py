"""What runs, observed operation by operation: FLOPs of products, and the memory of every live tensor.

A dispatch mode sees each operation that torch is about to run. Tensors that share memory share a storage. A storage is
counted from its first operation until nothing refers to it.
"""

import weakref
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry, sdpa_backward_flop_count, sdpa_flop_count

_PRODUCTS = (torch.ops.aten.mm, torch.ops.aten.addmm)
# The attention kernel of fake CPU tensors, which torch's own counter omits; it has no public name.
_KERNEL = getattr(torch.ops.aten, "_scaled_dot_product_flash_attention_for_cpu").default  # noqa: B009
_KERNEL_BACK = getattr(torch.ops.aten, "_scaled_dot_product_flash_attention_for_cpu_backward").default  # noqa: B009
_GATHER = torch.ops.c10d._allgather_base_.default
_SCATTER = torch.ops.c10d._reduce_scatter_base_.default


class Tracker(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts FLOPs of products of two matrices apart from all others (attention's), and bytes alive by kind.

    `kind` names what a tensor is when it is made. A collective in progress holds what it sends: the input of a
    reduce-scatter is counted until its output is gone, although fake collectives end at once.
    """

    def __init__(self, kind: Callable[[], str]) -> None:
        """Start with nothing counted."""
        super().__init__()  # type: ignore[no-untyped-call]
        self._kind = kind
        self._alive: dict[int, tuple[str, int]] = {}
        self._bytes = 0
        self.begin()

    def begin(self) -> None:
        """Restart the peak from the bytes that are alive."""
        self.products = self.attention = 0
        self.peak, self.at_peak = self._bytes, Counter[str]()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run one operation and count its FLOPs and results."""
        made = func(*args, **(kwargs or {}))
        for tensor in _tensors(made):
            self.see(tensor)
        packet = func.overloadpacket
        if packet in flop_registry:
            flops = flop_registry[packet](*args, **(kwargs or {}), out_val=made)
            if packet in _PRODUCTS:
                self.products += flops
            else:
                self.attention += flops
        elif func in (_KERNEL, _KERNEL_BACK):
            count = sdpa_flop_count if func is _KERNEL else sdpa_backward_flop_count
            self.attention += count(*(tensor.shape for tensor in args[: 3 if func is _KERNEL else 4]))
        elif func is _GATHER:
            self.name(args[0], "gathered")
        elif func is _SCATTER:
            part, whole = args[0], args[1]
            weakref.finalize(part.untyped_storage(), _nothing, whole.untyped_storage())
        return made

    def name(self, tensor: torch.Tensor, kind: str) -> None:
        """Change the kind of a tensor."""
        key = _identity(tensor.untyped_storage())
        self._alive[key] = kind, self._alive[key][1]

    def see(self, tensor: torch.Tensor) -> None:
        """Count a tensor's storage, once."""
        storage = tensor.untyped_storage()
        key = _identity(storage)
        if key in self._alive:
            return
        size = storage.nbytes()
        self._alive[key] = self._kind(), size
        self._bytes += size
        weakref.finalize(storage, self._gone, key)
        if self._bytes > self.peak:
            self.peak = self._bytes
            self.at_peak.clear()

    def _gone(self, key: int) -> None:
        if not self.at_peak and self._bytes == self.peak:
            self._write_down()
        _, size = self._alive.pop(key)
        self._bytes -= size

    def _write_down(self) -> None:
        for kind, size in self._alive.values():
            self.at_peak[kind] += size


def _identity(storage: torch.UntypedStorage) -> int:
    """An identity shared by all tensors of one storage; there is no public one."""
    return int(storage._cdata)  # noqa: SLF001


def _nothing(_: object) -> None:
    """Do nothing; `weakref.finalize` holds the argument until it calls this."""


def _tensors(made: Any) -> Iterator[torch.Tensor]:
    if isinstance(made, torch.Tensor):
        yield made
    elif isinstance(made, (tuple, list)):
        for one in made:
            yield from _tensors(one)
