"""Writing to tensors in place, with PyTorch's rules for gradients.

Every in-place operation computes its result as usual and hands it to `assign`. That writes the
memory (or, in a trace, rebinds the handle), counts the storage's version up, and gives the handle
the history of the result. A write through a view also changes the history of the base.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from ..compiler.ir import Node, can_cast
from ..compiler.ir import primitives as p
from ..compiler.ir.shapes import (
    are_same,
    broadcastable_to,
    contiguous_strides,
    diagonal_slice,
)
from ..runtime.arrays import copy_of, transfers_without_waiting
from ..runtime.device import META
from .autocast import no_autocast
from .classes import like
from .complex_parts import of_pairs
from .context import use_context
from .dispatch import apply, check_devices, edge_of, settled, without_history
from .eager_context import constant, current_context
from .node_names import node_name
from .operands import Scalar, cast, is_scalar, on_device, plain_scalar
from .overlap import refuse_overlap
from .provenance import user_site
from .record import Edge, Record, next_order, take_keeping
from .saved_tensors import packs
from .state import state
from .tensor import (
    InferenceStorage,
    Lifted,
    Storage,
    Tensor,
    View,
    ViewStep,
    overlaps_itself,
    part_from_views,
    refuse_inference,
    storage_of,
    stride_step,
    strides_of,
    wrap,
)
from .trace_state import is_leaf
from .views import detach


def overwrite(
    target: Tensor,
    compute: Callable[[Tensor], Tensor],
    operation: str,
    operands: Iterable[Any] = (),
) -> Tensor:
    """Make `target` hold what `compute` makes of it and of `operands`; returns `target`.

    What gradient rules read of `target` itself is its value before the write, of which they keep
    a copy. What they read of other operands is checked as ever, be they the same tensor.
    """
    if state.autocast is not None:  # which leaves the type of what is written alone
        with no_autocast():
            return overwrite(target, compute, operation, operands)
    if not (state.grad_enabled and _may_be_recorded(target, operands)):
        return assign(target, compute(target), operation)
    before, start = _as_it_is(target), next_order()
    if state.saved_hooks is not None and packs() is not None:  # what they keep must not be written
        before._value = copy_of(before._value)
    with use_context(current_context()):  # named, so not by plans: what is saved is changed below
        new = compute(before)
    if not current_context().tracing:  # where values never change
        _keep_copies(new, before, start)
    assign(target, new, operation)
    if new._record is not None and new._record.order > start and new._type == target._type:
        _save_in_place(target, new)
    return target


def applied(
    function: Callable[..., Tensor], input: Tensor, operation: str, inplace: bool, *args: Any
) -> Tensor:
    """`function(input, *args)`; with `inplace` written over `input`, which is returned."""
    if not inplace:
        return function(input, *args)
    return overwrite(input, lambda before: function(before, *args), operation, args)


def _may_be_recorded(target: Tensor, operands: Iterable[Any]) -> bool:
    """Whether what is made of them may have a history, or what the target shows has one."""
    if state.context is not None or _has_history(target):
        return True
    for each in operands:
        if isinstance(each, Tensor):
            if _has_history(each):
                return True
        elif type(each) not in _NUMBERS:
            return True  # which may hold tensors
    return False


_NUMBERS = frozenset({int, float, bool, complex, str, type(None)})


def _has_history(tensor: Tensor) -> bool:
    view = tensor._view
    return tensor._requires_grad or (view is not None and view.base._requires_grad)


def _as_it_is(target: Tensor) -> Tensor:
    """A handle to the value and history of `target` that later writes do not change."""
    settled(target)
    twin = like(target, wrap(current_context().value_of(target), target._type))
    twin._record, twin._index = target._record, target._index
    twin._requires_grad, twin._storage = target._requires_grad, Storage()
    return twin


def _keep_copies(new: Tensor, before: Tensor, start: int) -> None:
    """Save copies of the memory of `before` in the records made since `start`."""
    copies: dict[int, Tensor] = {}
    for record in _records_since(new._record, start):
        for saved in record.saved_values():
            shown = saved.tensor
            if shown._storage is not before._storage:
                continue
            if id(shown) not in copies:
                copies[id(shown)] = copy = wrap(copy_of(shown._value), shown._type)
                copy._record, copy._index = shown._record, shown._index
                copy._requires_grad = shown._requires_grad
            saved.tensor = copies[id(shown)]


def _save_in_place(target: Tensor, new: Tensor) -> None:
    """The result, if it was saved, is what `target` holds now: later writes to it count."""
    for saved in new._record.saved_values():
        if new._storage is not None and saved.tensor._storage is new._storage:
            saved.tensor, saved.version = without_history(target), target._version


def _records_since(record: Record | None, start: int) -> Iterator[Record]:
    """`record` and what leads to it, as far as it was made after `start`."""
    waiting, seen = [record], set()
    while waiting:
        found = waiting.pop()
        if not isinstance(found, Record) or found.order < start or found in seen:
            continue
        seen.add(found)
        yield found
        waiting += [edge[0] for edge in found.edges if edge is not None]


def assign(target: Tensor, new: Tensor, operation: str) -> Tensor:
    """Make `target` hold `new`, which broadcasts to its shape; returns `target`."""
    settled(target)
    settled(new)
    if new._type is not target._type:
        if new._type.device is not target._type.device:
            check_devices(operation, (target._type, new._type))
        _check_cast(target, new)
        _check_shape(target, new)
    check_memory(target)
    recording = is_recorded(target, new)
    if recording:
        check_leaf(target)
    if recording and new._requires_grad and new._record is None:
        new = apply(p.copy, new)  # a leaf stays itself
    if not target._type.dtype.is_differentiable and new._requires_grad:
        new = detach(new)
    new = cast(new, target._type.dtype)
    shown = recording or state.context is not None  # else arrays broadcast by themselves
    if shown and not are_same(new._type.shape, target._type.shape):
        new = apply(p.broadcast, new, shape=target._type.shape)
    write(target, new)
    if recording:
        take_history(target, new)
    return target


def write(target: Tensor, new: Tensor) -> None:
    """Write values and count the version up, leaving histories alone."""
    context = current_context()
    context.touch(target)
    context.write(target, new)
    count_writes(target, 1, follow=not context.tracing)


def write_directly(target: Tensor, new: Tensor) -> bool:
    """Whether values may be written straight into the memory of `target`; counts the write.

    True outside a trace, when no gradient is recorded. The caller then writes `target._value`.
    """
    recording = is_recorded(settled(target), settled(new))
    return not state.context and not recording and target._type.device is not META


def is_recorded(target: Tensor, new: Tensor) -> bool:
    """Whether histories change where `new` is written over `target`."""
    if not state.grad_enabled:
        return False
    if target._requires_grad or new._requires_grad:
        return True
    view = target._view
    return view is not None and view.differentiable and view.base._requires_grad


def prepare_direct_write(target: Tensor) -> None:
    """Count a write into the memory of `target`, after the checks that every write makes."""
    check_memory(target)
    count_writes(target, 1)


def count_writes(target: Tensor, times: int, follow: bool = True) -> None:
    """Count writes; with `follow`, a view without history of its own is up to date."""
    storage, view = storage_of(target), target._view
    storage.version += times
    storage.written = user_site(2)
    if view is None:
        storage.changes += 1
        return
    view.memory.changes += 1
    if follow and not view.base._requires_grad:
        view.changes = view.memory.changes


def _check_cast(target: Tensor, new: Tensor) -> None:
    if not can_cast(new._type.dtype, target._type.dtype):
        raise RuntimeError(
            f"result type {_type_name(new)} can't be cast to the desired output type "
            f"{_type_name(target)}"
        )


_TYPE_NAMES = {
    "float32": "Float", "float64": "Double", "float16": "Half", "bfloat16": "BFloat16",
    "int64": "Long", "int32": "Int", "int16": "Short", "int8": "Char", "uint8": "Byte",
    "bool": "Bool", "uint16": "UInt16", "uint32": "UInt32", "uint64": "UInt64",
    "complex64": "ComplexFloat", "complex128": "ComplexDouble",
}  # fmt: skip


def _type_name(tensor: Tensor) -> str:
    return _TYPE_NAMES[tensor._type.dtype.name]


def _check_shape(target: Tensor, new: Tensor) -> None:
    shape, wanted = new._type.shape, target._type.shape
    if not broadcastable_to(shape, wanted):
        raise RuntimeError(
            f"output with shape {list(wanted)} doesn't match the broadcast shape {list(shape)}"
        )


def check_memory(target: Tensor) -> None:
    """Raise RuntimeError where the memory of `target` cannot be written in place."""
    refuse_inference(target)
    view = target._view
    if _overlaps_itself(target):
        raise RuntimeError(
            "unsupported operation: more than one element of the written-to tensor refers to a "
            "single memory location. Please clone() the tensor before performing the operation."
        )
    if view is not None and _shows_overlapping(view) and target._type.numel:
        raise RuntimeError(
            "unsupported operation: the written-to tensor is a part of one of which several "
            "elements are one in memory (such as an expanded one). Please clone() that one first."
        )
    memory = current_context().memory_of(target if view is None else view.base)
    if isinstance(memory, np.ndarray) and not memory.flags.writeable and target._type.numel:
        raise RuntimeError(
            "the memory of this tensor is read-only: it shares an array that may not be written. "
            "Please clone() the tensor before performing the operation."
        )


def _overlaps_itself(tensor: Tensor) -> bool:
    value, shape = tensor._value, tensor._type.shape
    if not isinstance(value, (Node, Lifted)) and value.flags.c_contiguous:
        return False
    strides = strides_of(tensor)
    is_dense = are_same(strides, contiguous_strides(shape))
    return not is_dense and 0 not in shape and overlaps_itself(shape, strides)


def _shows_overlapping(view: View) -> bool:
    """Whether a view is a part of what has several elements at one place in memory."""
    if _overlaps_itself(view.base):
        return True
    if not any(step.primitive in _REPEATING for step in view.steps):
        return False
    shape, strides = view.base._type.shape, strides_of(view.base)
    for step in view.steps:
        shape, strides = stride_step(step, shape, strides)
        if step.primitive in _REPEATING and overlaps_itself(shape, strides):
            return True
    return False


_REPEATING = (p.broadcast, p.unfold)
"""Views that may show an element several times."""


def check_leaf(target: Tensor) -> None:
    """Raise RuntimeError where a recorded write would change a leaf that requires grad."""
    view = target._view
    if view is not None and view.differentiable:
        _check_view(target, view)
    if target._requires_grad and is_leaf(target):
        raise RuntimeError(
            "a leaf Variable that requires grad is being used in an in-place operation."
        )


def _check_view(target: Tensor, view: View) -> None:
    """The same, for a view: what it shows may have no history that takes in the write."""
    if view.without_grad:
        is_inference = view.without_grad == "inference"
        mode = "inference" if is_inference else "no_grad"
        now = "in normal mode" if is_inference else "with grad mode enabled"
        block = "inference_mode" if is_inference else "no_grad"
        raise RuntimeError(
            f"A view was created in {mode} mode and is being modified inplace {now}. Given that "
            "this use case is ambiguous and error-prone, it is forbidden. You can clarify your "
            f"code by moving both the view and the inplace either both inside the {block} block "
            "(if you don't want the inplace to be tracked) or both outside (if you want it to "
            "be tracked)."
        )
    # The base may require no grad, and be shown by a leaf that does.
    if (target._requires_grad or view.base._requires_grad) and is_leaf(view.base):
        raise RuntimeError(
            "a view of a leaf Variable that requires grad is being used in an in-place operation."
        )


def take_history(target: Tensor, new: Tensor) -> None:
    """Give `target`, just written, the history of `new`; a view changes that of its base."""
    view = target._view
    if view is None or not view.differentiable:
        before = edge_of(target)
        target._record, target._index = new._record, new._index
        if new._record is None:
            target._record = OverwriteRecord((before,), (target._type,), user_site())
        target._requires_grad = True
        take_keeping(target, before)
        if view is not None:
            view.changes = view.memory.changes
        return
    base = view.base
    current_context().touch(base)
    before = edge_of(base)
    base._record = ViewWriteRecord(before, edge_of(new), view, base._type)
    base._index = 0
    base._requires_grad = True
    take_keeping(base, before)
    view.changes = -1  # its own history follows from the base's
    if target._hooks is not None:
        settled(target)


class OverwriteRecord(Record):
    """A write over a tensor with a history, whose cotangent is 0; a second edge is what came."""

    __slots__ = ()

    def name(self) -> str:
        if len(self.edges) > 1:
            return "torch::autograd::CopyBackwards"
        return node_name(self.site.calls, self) or "FillBackward2"

    def cotangents(
        self, incoming: list[Tensor | None], wanted: Sequence[bool]
    ) -> list[Tensor | None]:
        zero = constant(0.0, self.outputs[0].dtype, self.outputs[0].device)
        return [apply(p.broadcast, zero, shape=self.outputs[0].shape), *incoming][: len(wanted)]


class ViewWriteRecord(Record):
    """A write through a view, seen from its base.

    Where the view looks, the cotangent of the base goes to what was written; elsewhere it goes to
    what the base was before.
    """

    __slots__ = ("steps",)

    def __init__(self, before: Edge, written: Edge, view: View, type_: Any) -> None:
        super().__init__((before, written), (type_,), user_site())
        self.steps = view.steps

    def name(self) -> str:
        return "torch::autograd::CopySlices"

    def cotangents(
        self, incoming: list[Tensor | None], wanted: Sequence[bool]
    ) -> list[Tensor | None]:
        (cotangent,) = incoming
        assert cotangent is not None
        through = along(cotangent, self.steps)
        kept = None
        if wanted[0]:
            zero = constant(0.0, through._type.dtype, through._type.device)
            zeros = apply(p.broadcast, zero, shape=through._type.shape)
            kept = written_through(cotangent, self.steps, zeros)
        return [kept, through if wanted[1] else None]


def along(base: Tensor, steps: Sequence[ViewStep]) -> Tensor:
    """What a view with `steps` shows of `base`."""
    for step in steps:
        base = apply(step.primitive, base, *step.operands, **step.attrs)
    return base


def written_through(base: Tensor, steps: Sequence[ViewStep], new: Tensor) -> Tensor:
    """A copy of `base` in which the view with `steps` shows `new`."""
    levels = [base]
    for step in steps[:-1]:
        levels.append(apply(step.primitive, levels[-1], *step.operands, **step.attrs))
    for level, step in zip(reversed(levels), reversed(steps), strict=True):
        new = _written_step(level, step, new)
    return new


def _written_step(parent: Tensor, step: ViewStep, new: Tensor) -> Tensor:
    attrs, shape = step.attrs, parent._type.shape
    match step.primitive.name:
        case "reshape" | "broadcast":  # a broadcast that may be written only adds axes of size 1
            return apply(p.reshape, new, shape=shape)
        case "permute":
            axes = attrs["axes"]
            inverse = tuple(sorted(range(len(axes)), key=axes.__getitem__))
            return apply(p.permute, new, axes=inverse)
        case "slice":
            return apply(p.slice_update, parent, new, **attrs)
        case "diagonal":
            flat, taken = diagonal_slice(shape, attrs["offset"])
            line = apply(p.reshape, parent, shape=flat)
            return apply(p.reshape, apply(p.slice_update, line, new, **taken), shape=shape)
        case "bitcast":
            return apply(p.bitcast, new, dtype=parent._type.dtype)
        case "repack":
            return apply(p.repack, new, source=attrs["dtype"], dtype=attrs["source"])
        case "index":
            (at,) = step.operands
            new = apply(p.broadcast, new, shape=along(parent, [step])._type.shape)
            return apply(p.index_put, parent, at, new, axis=attrs["axis"], accumulate=False)
        case "view_as_real":
            return of_pairs(new)
        case "view_as_complex":
            return apply(p.view_as_real, new)
        case "unfold":
            return _written_windows(parent, attrs, new)
    raise NotImplementedError(f"writing in place through a view made by {step.primitive.name}")


def _written_windows(parent: Tensor, attrs: dict[str, Any], new: Tensor) -> Tensor:
    """Windows that do not overlap: fold puts each element back where it came from."""
    places = {name: attrs[name] for name in ("axes", "strides", "dilations")}
    _, dtype, device = parent._type
    one = constant(1, dtype, device)
    ones = apply(p.broadcast, one, shape=new._type.shape)
    covered = apply(p.fold, ones, shape=parent._type.shape, **places)
    folded = apply(p.fold, new, shape=parent._type.shape, **places)
    zero = constant(0, dtype, device)
    return apply(p.where, apply(p.ne, covered, zero), folded, parent)


def copy_(self: Tensor, src: Tensor | Scalar, non_blocking: bool = False) -> Tensor:
    """Overwrite with the elements of `src`, which broadcasts and is cast; gradients go to it.

    `src` may lie on another device; with `non_blocking`, nobody waits until a pinned one was read.
    """
    if not isinstance(src, Tensor):
        return _filled(self, src, "copy_")
    refuse_overlap(self, (src,))
    return _copied(self, src, non_blocking)


def _copied(self: Tensor, src: Tensor, non_blocking: bool = False) -> Tensor:
    if non_blocking and self.is_cuda and not current_context().tracing:
        with transfers_without_waiting():
            moved = on_device(src, self._type.device)
    else:
        moved = on_device(src, self._type.device)
    new = cast(moved, self._type.dtype)
    if new is src and state.grad_enabled and src._requires_grad:
        new = apply(p.copy, src)
    return replace(self, new, "copy_")


def replace(target: Tensor, new: Tensor, operation: str) -> Tensor:
    """`assign` for what is not made of `target`, whose own history gets a cotangent of 0."""
    return assign(target, _over(target, new), operation)


def _over(target: Tensor, new: Tensor) -> Tensor:
    """`new` with a history that also tells that `target` had one, if it does."""
    if not (state.grad_enabled and new._requires_grad and settled(target)._requires_grad):
        return new
    if target._view is not None and target._view.differentiable:
        return new  # that of the base says so
    if not are_same(new._type.shape, target._type.shape):
        if not broadcastable_to(new._type.shape, target._type.shape):
            return new  # to be refused
        new = apply(p.broadcast, new, shape=target._type.shape)
    made = wrap(current_context().value_of(new), new._type)
    made._record = OverwriteRecord((edge_of(target), edge_of(new)), (new._type,), user_site())
    made._requires_grad = True
    return made


def fill_(self: Tensor, value: Any) -> Tensor:
    """Overwrite with one number, or with a 0-d tensor."""
    if isinstance(value, Tensor):
        if value._type.shape:
            raise RuntimeError(
                "fill_ only supports 0-dimension value tensor but got tensor with "
                f"{value.ndim} dimensions."
            )
        return _copied(self, value)  # whose one element may lie in `self`
    return _filled(self, value, "fill_")


def _filled(target: Tensor, value: Any, operation: str) -> Tensor:
    if not is_scalar(value):
        raise TypeError(f"{operation}(): expected a Tensor or a number, got {type(value).__name__}")
    plain, dtype = plain_scalar(value), target._type.dtype
    if isinstance(plain, float) and dtype.is_integral:
        plain = int(plain)
    return assign(target, constant(plain, dtype, target._type.device), operation)


def zero_(self: Tensor) -> Tensor:
    """Overwrite with zeros."""
    return fill_(self, 0)


def detach_(self: Tensor) -> Tensor:
    """Forget this tensor's history; it becomes a leaf that requires no grad.

    In inference mode, and of tensors made there, nothing happens: no history is kept or changed.
    """
    if state.inference or type(self._storage) is InferenceStorage:
        return self
    if self._view is not None and self._view.differentiable:
        raise RuntimeError("Can't detach views in-place. Use detach() instead.")
    current_context().touch(self)
    self._record, self._index, self._requires_grad = None, 0, False
    return self


def set_data(self: Tensor, new: Tensor) -> None:
    """Assignment to `.data`: this handle shows the memory of `new`; its gradient state stays."""
    if not isinstance(new, Tensor):
        raise TypeError(f"Variable data has to be a tensor, but got {type(new).__name__}")
    if self._requires_grad and not new._type.dtype.is_differentiable:
        raise RuntimeError(
            "data set to a tensor that requires gradients must be floating point or complex dtype"
        )
    context = current_context()
    if context.tracing:
        if new._type != self._type:
            raise RuntimeError(
                f"assigning to .data of a tensor of type {self._type} in a traced function: "
                f"expected the same type, got {new._type}"
            )
        if context.keeps_memory:
            context.touch(self)
            context.write(self, new)
            count_writes(self, 0, follow=False)
        else:
            context.replace_memory(self, settled(new))
        return
    self._value, self._type = context.value_of(new), new._type
    self._view = None
    part_from_views(self)
