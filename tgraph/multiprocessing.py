"""Python's `multiprocessing`. Tensors that are sent to another process are copied there, but for
those of `share_memory_()`, of which it gets the memory itself.

Batches of a `DataLoader` with workers travel in shared memory, see `tgraph.utils.data`.
"""

from __future__ import annotations

import multiprocessing as _multiprocessing
from multiprocessing import *  # noqa: F403
from multiprocessing import reduction as _reduction
from typing import Any

from .core.tensor import Tensor as _Tensor
from .nn.parameter import Buffer as _Buffer
from .nn.parameter import Parameter as _Parameter
from .ops import shared_memory as _shared_memory
from .ops.pickling import rebrand as _rebrand

_STRATEGY = "file_descriptor"


def get_all_sharing_strategies() -> set[str]:
    """The one there is."""
    return {_STRATEGY}


def get_sharing_strategy() -> str:
    """How the workers of a `DataLoader` share memory."""
    return _STRATEGY


def set_sharing_strategy(new_strategy: str) -> None:
    """ValueError for one that is not there."""
    if new_strategy != _STRATEGY:
        raise ValueError(f"set_sharing_strategy: expected {_STRATEGY!r}, got {new_strategy!r}")


def spawn(
    fn: Any, args: tuple[Any, ...] = (), nprocs: int = 1, join: bool = True, daemon: bool = False,
    start_method: str = "spawn",
) -> Any:  # fmt: skip
    """Run `fn(number, *args)` in so many processes; RuntimeError where one fails."""
    context = _multiprocessing.get_context(start_method)
    processes = [
        context.Process(target=fn, args=(number, *args), daemon=daemon)  # type: ignore[attr-defined]
        for number in range(nprocs)
    ]
    for each in processes:
        each.start()
    if not join:
        return processes
    for number, each in enumerate(processes):
        each.join()
        if each.exitcode:
            for other in processes:
                other.terminate()
            raise RuntimeError(f"process {number} exited with code {each.exitcode}")
    return None


def _reduced(tensor: Any) -> Any:
    """How a tensor is sent: with the handle of its memory, where it is shared."""
    if tensor._record is None and tensor._type.device.is_host:
        place = _shared_memory.place_of(tensor)
        if place is not None and place[0].file is not None:
            memory, *rest = place
            file = _reduction.DupFd(memory.file)
            return _received, (file, len(memory), *rest, type(tensor), tensor._requires_grad)
    return tensor.__reduce_ex__(2)


def _received(
    file: Any, nbytes: int, start: int, type_: Any, strides: Any, cls: Any, requires_grad: bool
) -> Any:
    tensor = _shared_memory.tensor_at(file.detach(), nbytes, start, type_, strides)
    return _rebrand(tensor, cls, requires_grad)


for _class in (_Tensor, _Parameter, _Buffer):
    _reduction.ForkingPickler.register(_class, _reduced)
