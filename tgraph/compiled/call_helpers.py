"""What the generated hot path of a compiled plan calls."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from heapq import heappop, heappush
from itertools import chain
from typing import Any

import numpy as np
from numpy.lib.array_utils import byte_bounds

from ..compiler.ir import TensorType, promotion
from ..core.dispatch import edge_of, settled
from ..core.inplace import detach_, set_data, take_history
from ..core.overlap import origin_of
from ..core.provenance import user_site
from ..core.record import Edge, Record
from ..core.state import state
from ..core.tensor import Tensor, ViewStep, shared_storage, storage_of, wrap
from ..core.views import ArrayViews, data, detach, shown
from ..runtime.array_functions_sources import ordered_calls_begun
from ..runtime.arrays import copy_elements, share_memory
from ..runtime.cuda.arrays import FOREIGN, buffer_owner, owner_of
from ..runtime.cuda.arrays import bounds as cuda_bounds
from ..runtime.device import defaults
from ..runtime.interrupts import hold, release
from ..runtime.plan import NotDenseError, ReadOnlyError
from ..tracing.recording.guards import same_content, same_elements, same_static
from ..tracing.recording.snapshots import ABSENT
from .compiled_record import CompiledRecord, dense

Array = np.ndarray[Any, Any]


class _Miss:
    def __repr__(self) -> str:
        return "MISS"


# What the hot path returns where the plan does not fit a call; nothing has happened then.
MISS: Any = _Miss()


class FreedRecord(Record):
    """The history of a result that cannot be differentiated, as the trace found.

    Most often because the compiled function called backward() itself, which frees what it saved.
    """

    __slots__ = ("message",)

    def __init__(self, type_: TensorType, message: str, edges: tuple[Edge, ...]) -> None:
        super().__init__(edges or ((_NOWHERE, 0),), (type_,), user_site())
        self.message = message

    def name(self) -> str:
        return "CompiledFunctionBackward"

    def cotangents(self, incoming: Any, wanted: Sequence[bool]) -> list[Tensor | None]:
        raise RuntimeError(self.message)


_NOWHERE = wrap(np.zeros(()), TensorType((), promotion.default_dtype))


def root_of(array: Array) -> Any:
    """The object that owns the memory of an array; FOREIGN where it may have other owners too.

    Buffers, capsules and objects with `__array_interface__` tell nothing of whose memory they show.
    """
    if not isinstance(array, np.ndarray):
        return owner_of(array)
    base: Any = array
    while isinstance(base, np.ndarray) and base.base is not None:
        base = base.base
    # Large arrays are unpickled over bytes. Others over the same have them as base, or a buffer.
    return base if isinstance(base, np.ndarray) or type(base) is bytes else buffer_owner(base)


def _owner(array: Array) -> Any:
    """`root_of` for an array of NumPy, at once where it owns its memory or its base does."""
    base = array.base
    if base is None:
        return array
    return base if type(base) is np.ndarray and base.base is None else root_of(array)


def clash(arrays: Sequence[Array], fixed: dict[int, Any]) -> bool:
    """Whether arrays may share memory with each other or with captured tensors."""
    seen = set()
    for array in arrays:
        key = id(_owner(array) if type(array) is np.ndarray else root_of(array))
        if key in fixed or key in seen or key == id(FOREIGN):
            return True
        seen.add(key)
    return id(FOREIGN) in fixed


def overlap(written: Sequence[Array], others: Sequence[Array]) -> bool:
    """Whether memory that a plan writes is also read or written as something else.

    Arrays are only compared where the ranges of their addresses overlap, as few do.
    """
    every = [*written, *others]
    spans = sorted((*_bounds(array), at) for at, array in enumerate(every) if array.size)
    # What begins before the present span and may end behind it: heaps of ends and numbers.
    writing: list[tuple[int, int]] = []
    reading: list[tuple[int, int]] = []
    for first, end, at in spans:
        is_written = at < len(written)
        _drop_ended(writing, first)
        if is_written:
            _drop_ended(reading, first)
        beside = chain(writing, reading) if is_written else writing
        if any(share_memory(every[at], every[other]) for _, other in beside):
            return True
        heappush(writing if is_written else reading, (end, at))
    return False


def _drop_ended(spans: list[tuple[int, int]], first: int) -> None:
    while spans and spans[0][0] <= first:
        heappop(spans)


def _bounds(array: Array) -> tuple[int, int]:
    """The addresses between which the elements of an array lie, on whatever device."""
    if not isinstance(array, np.ndarray):
        return cuda_bounds(array)
    if not array.flags.c_contiguous:
        return byte_bounds(array)
    first = array.ctypes.data
    return first, first + array.nbytes


def apart(given: Sequence[Any], met: dict[int, Any]) -> bool:
    """Whether containers are each an object of its own, and none of those that are known."""
    ids = {id(each) for each in given}
    return len(ids) == len(given) and ids.isdisjoint(met)


def count_write(tensor: Tensor, times: int, written: Any) -> None:
    """Count writes into the memory of `tensor`, as its own in-place operations would."""
    storage = storage_of(tensor)
    storage.version += times
    storage.written = written
    view, memory = tensor._view, shared_storage(tensor)
    memory.changes += 1
    if view is not None and not view.base._requires_grad:
        view.changes = memory.changes


def view_of(
    base: Tensor, steps: tuple[ViewStep, ...], views: ArrayViews, differentiable: bool, apart: bool
) -> Tensor:
    """The view of `base` that a recorded call returned; see `shown`."""
    view = shown(base, steps, views)
    if differentiable:
        return view
    return data(view) if apart else detach(view)


def freed(
    tensor: Tensor, message: str, leaves: tuple[Edge, ...], inputs: Sequence[Tensor]
) -> Tensor:
    """Give a new tensor a history, from `leaves` and `inputs`, that cannot be differentiated."""
    edges = (*leaves, *map(edge_of, inputs))
    tensor._record, tensor._index = FreedRecord(tensor._type, message, edges), 0
    tensor._requires_grad = True
    return tensor


def captured_arrays(
    rows: Sequence[tuple[Tensor, str, bool]], namespace: dict[str, Any]
) -> list[Array] | None:
    """The arrays of captured tensors; None where one has other memory, or another history.

    A row is a tensor, the name of its memory in `namespace`, and whether it requires gradients.
    """
    arrays = []
    for tensor, name, requires_grad in rows:
        array = tensor._value
        if array is not namespace[name] or tensor._requires_grad is not requires_grad:
            return None
        if requires_grad and (tensor._record is not None or tensor._hooks):
            return None
        arrays.append(array)
    return arrays


def gradient_arrays(rows: Sequence[tuple[Tensor, TensorType]]) -> list[Array] | None:
    """The arrays of the tensors' gradients; None where one is not there, or another than it was."""
    arrays = []
    for tensor, type_ in rows:
        grad = tensor._grad
        if grad is None or (grad._type is not type_ and grad._type != type_):
            return None
        array = grad._value
        if type(array) is not np.ndarray or not array.flags.c_contiguous:
            return None
        arrays.append(array)
    return arrays


def random_state(generator: Any) -> Array:
    return np.array([generator.seed_as_int64, generator.counter], np.int64)


def number(value: float) -> Array:
    return np.array(value, np.float64)


def integer(value: int) -> Array:
    return np.array(value, np.int64)


def give_history(tensor: Tensor, record: CompiledRecord, output: int) -> None:
    """The history of a written tensor becomes that of an output."""
    new = wrap(tensor._value, tensor._type)
    new._record, new._requires_grad = record, True
    new._index = list(record.function.differentiable).index(output)
    take_history(tensor, new)


def give_freed(tensor: Tensor, *how: Any) -> None:
    """Give a written tensor a history that cannot be differentiated; see `freed`."""
    take_history(tensor, freed(wrap(tensor._value, tensor._type), *how))


def after_failure(
    error: Exception, eager: Any, leaves: Sequence[Any], given: Any, begun: int | None = None
) -> Any:
    """Leave behind what eager code leaves when it fails, and raise its error.

    What an ordered host call did, it must not do again: then nothing is left behind but that.
    `begun` is how many had begun before the call, where it makes any.
    """
    if isinstance(error, MemoryError) or begun not in (None, ordered_calls_begun()):
        raise error
    return eager(leaves, given)


HELPERS: dict[str, Any] = {
    "ABSENT": ABSENT,
    "MISS": MISS,
    "OrderedDict": OrderedDict,
    "NotDenseError": NotDenseError,
    "ReadOnlyError": ReadOnlyError,
    "ndarray": np.ndarray,
    "defaults": defaults,
    "state": state,
    "promotion": promotion,
    "wrap": wrap,
    "set_data": set_data,
    "settled": settled,
    "origin_of": origin_of,
    "same_static": same_static,
    "same_elements": same_elements,
    "same_content": same_content,
    "storage_of": storage_of,
    "count_write": count_write,
    "detach_": detach_,
    "apart": apart,
    "clash": clash,
    "overlap": overlap,
    "view_of": view_of,
    "freed": freed,
    "captured_arrays": captured_arrays,
    "gradient_arrays": gradient_arrays,
    "random_state": random_state,
    "ordered_calls_begun": ordered_calls_begun,
    "number": number,
    "integer": integer,
    "hold": hold,
    "release": release,
    "dense": dense,
    "copyto": copy_elements,
    "after_failure": after_failure,
    "give_history": give_history,
    "give_freed": give_freed,
}
