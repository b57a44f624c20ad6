"""The one path on which every operation is recorded.

`apply(primitive, *tensors, **attrs)` infers the type of the result once, asks the current context
for the value, and remembers the operation for the backward pass where a gradient is wanted. The
eager context (`eager_context.py`) computes at once; a tracing context (`trace_context.py`) adds a
node to its graph. All else in `tgraph` is functions over `apply`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Sequence
from typing import Any, cast

from ..compiler.ir import Family, IRKindError, IRTypeError, Primitive, TensorType, infer_type
from ..compiler.ir import primitives as p
from ..compiler.ir.shapes import are_plain_ints
from ..runtime.device import CPU, Device
from .classes import like, pass_on
from .context import ALIASING, Context
from .eager_context import EAGER, constant, current_context
from .layouts import sparse_coo
from .node_names import camel, node_name
from .provenance import Site, user_site
from .record import FREED, Edge, Record, Saved, take_keeping
from .saved_tensors import Hooks, Packed, pack_saved, packs
from .sparse_tensor import NotOnSparseError, SparseType, of_sparse
from .state import state
from .tensor import (
    CONSTANTS,
    PASSED_ON,
    Tensor,
    View,
    ViewStep,
    intern_type,
    storage_of,
    view_in,
    wrap,
)
from .vjp_rules import RULES, Operation, Saves

# --- apply -------------------------------------------------------------------------------------

_type_of = operator.attrgetter("_type")
_wants_grad = operator.attrgetter("_requires_grad")

_inferred: dict[Any, tuple[Any, tuple[TensorType, ...]]] = {}
_CACHED_INFERENCES = 1 << 16


def _infer(
    primitive: Primitive, tensors: tuple[Tensor, ...], attrs: dict[str, Any], key: Any
) -> Any:
    types = tuple(tensor._type for tensor in tensors)
    if SparseType in map(type, types):
        raise NotOnSparseError(primitive.name, sparse_coo)  # `apply` knows what to do
    if primitive.family is not Family.CONTROL:  # which the compiler puts on one
        check_devices(primitive.name, types)
    try:
        result = infer_type(primitive, types, attrs)
    except IRKindError as error:
        raise NotImplementedError(str(error)) from None
    except IRTypeError as error:
        pairs = next((each.dtype.name for each in types if each.dtype.is_complex), None)
        if pairs is None:
            raise RuntimeError(str(error)) from None
        raise NotImplementedError(f"{error} (not implemented for {pairs})") from None
    if isinstance(result, TensorType):
        result = intern_type(*result)
    if key is not None:
        if len(_inferred) >= _CACHED_INFERENCES:
            _inferred.clear()
        _inferred[key] = (result, types)  # holds the types, so that their ids stay theirs
    return result


def check_devices(operation: str, types: Sequence[TensorType]) -> None:
    """RuntimeError for tensors on several devices."""
    devices = sorted({type_.device for type_ in types}, key=lambda each: (each is CPU, str(each)))
    if len(devices) > 1:
        one, other = devices[:2]
        raise RuntimeError(
            "Expected all tensors to be on the same device, but found at least two devices, "
            f"{one} and {other}! (in {operation}; move one of them with .to('{one}') or "
            f".to('{other}'))"
        )


def result_type_of(primitive: Primitive, tensors: tuple[Tensor, ...], attrs: dict[str, Any]) -> Any:
    """The inferred type of a result, from a table where it was inferred before."""
    key = (primitive, *map(id, map(_type_of, tensors)), *attrs.items())
    try:
        return _inferred[key][0]
    except KeyError:
        return _infer(
            primitive, tensors, attrs, key if _may_keep(primitive, tensors, attrs) else None
        )
    except TypeError:  # an attribute that cannot be hashed
        return _infer(primitive, tensors, attrs, None)


def _may_keep(primitive: Primitive, tensors: tuple[Tensor, ...], attrs: dict[str, Any]) -> bool:
    """Whether the table keeps nothing of a trace alive: no functions, bodies or open sizes."""
    if primitive.family in (Family.OPAQUE, Family.CONTROL):
        return False
    sizes = [each if type(each) is tuple else (each,) for each in attrs.values()]
    return all(map(are_plain_ints, (*(each._type.shape for each in tensors), *sizes)))


def apply(primitive: Primitive, *tensors: Tensor, **attrs: Any) -> Tensor:
    """Apply `primitive` (for one with several results, see `apply_several`).

    The one door for every operation, eager and traced. `tensors` fit the primitive's own strict
    rule (one dtype, non-negative axes...): promotion and checks belong to the public functions.
    """
    try:
        type_ = result_type_of(primitive, tensors, attrs)
    except NotOnSparseError:
        type_ = None
    if type_ is None:  # outside of `except`, for errors of their own
        return of_sparse(primitive, tensors, attrs)  # type: ignore[no-any-return]
    recorded = False
    for tensor in tensors:
        view = tensor._view
        if view is not None and view.changes != view.memory.changes:
            refresh_view(tensor)
        if tensor._requires_grad:
            recorded = True
    context = state.context or EAGER
    value = context.evaluate(primitive, tensors, attrs, type_)
    if type(type_) is tuple:
        results = tuple(map(wrap, value, type_))
        if PASSED_ON:
            pass_on(tensors, results)
        if recorded and state.grad_enabled:
            attach(primitive, tensors, attrs, results)
        return results  # type: ignore[return-value]
    result = wrap(value, type_)
    if PASSED_ON:
        pass_on(tensors, (result,))
    if primitive in ALIASING:
        _link_view(context, primitive, tensors[0], attrs, result)
    if recorded and state.grad_enabled:
        attach(primitive, tensors, attrs, (result,))
    return result


def apply_several(primitive: Primitive, *tensors: Tensor, **attrs: Any) -> tuple[Tensor, ...]:
    """`apply` for a primitive with several results."""
    return cast(tuple[Tensor, ...], apply(primitive, *tensors, **attrs))


def make_source(primitive: Primitive, device: Device, **attrs: Any) -> Tensor:
    """`apply` for a primitive without operands, whose result is to lie on `device`."""
    if device is not CPU:
        attrs["device"] = device
    return apply(primitive, **attrs)


def zeros_of(type_: TensorType) -> Tensor:
    """Zeros of a type, which take no memory of their own."""
    shape, dtype, device = type_
    return apply(p.broadcast, constant(0, dtype, device), shape=shape)


# --- views -------------------------------------------------------------------------------------


def _link_view(
    context: Any, primitive: Primitive, source: Tensor, attrs: dict[str, Any], result: Tensor
) -> None:
    if context.aliases(primitive, source, attrs, result._value):
        link_view(source, (ViewStep(primitive, attrs),), result)


def link_view(source: Tensor, steps: tuple[ViewStep, ...], result: Tensor) -> None:
    """Let `result`, which shows the memory of `source` after `steps`, be a view of it."""
    view = view_in(source)
    result._storage = source._storage or storage_of(source)
    quiet = "" if state.grad_enabled else "inference" if state.inference else "no_grad"
    if view is None or not view.differentiable:  # what is detached has a history of its own
        result._view = View(source, steps, True, quiet)
    else:
        steps = (*view.steps, *steps)
        result._view = View(view.base, steps, view.differentiable, view.without_grad or quiet)


def refresh_view(tensor: Tensor) -> None:
    """Derive value and history of a view again, after its memory was written through another."""
    context = current_context()
    if context.lifts and not context.owns(tensor):
        with context.lowered():
            refresh_view(tensor)
        return
    with context.at_home(tensor):
        if (home := current_context()) is context:
            _refresh_view(context, tensor)
        else:  # it belongs to one over this trace
            assert home.lifts
            refresh_view(tensor)


def _refresh_view(context: Context, tensor: Tensor) -> None:
    view = tensor._view
    assert view is not None
    base = view.base
    if not context.tracing and not base._requires_grad:
        view.changes = view.memory.changes
        return
    context.check_view(tensor)
    context.touch(tensor)
    previous, state.grad_enabled = state.grad_enabled, view.differentiable
    try:
        derived = base
        for step in view.steps:
            derived = apply(step.primitive, derived, *step.operands, **step.attrs)
    finally:
        state.grad_enabled = previous
    context.refresh(tensor, derived)
    if (
        view.differentiable
        and not view.without_grad  # which stays without a history
        and derived is not base
        and base._requires_grad
    ):
        before = edge_of(tensor)
        tensor._record, tensor._index = derived._record, derived._index
        tensor._requires_grad = derived._requires_grad
        take_keeping(tensor, before)
    view.changes = view.memory.changes


def settled(tensor: Tensor) -> Tensor:
    """`tensor`, up to date with writes to its memory."""
    view = tensor._view
    if view is not None and view.changes != view.memory.changes:
        refresh_view(tensor)
    return tensor


def detached(input: Tensor) -> Tensor:
    """A tensor that shares the memory of `input` and has no history, nor any below it."""
    settled(input)
    result = _shared(input, current_context().detached_value_of(input))
    result._view.apart = True  # type: ignore[union-attr]
    return result


def without_record(input: Tensor) -> Tensor:
    """`detached`, but histories and tangents that contexts below know of stay."""
    settled(input)
    result = _shared(input, current_context().value_of(input))
    result._storage = storage_of(input)
    return result


def _shared(input: Tensor, value: Any) -> Tensor:
    view = view_in(input)
    result = like(input, wrap(value, input._type))
    base, steps = (input, ()) if view is None else (view.base, view.steps)
    result._view = View(base, steps, differentiable=False)
    return result


def twin_of(tensor: Tensor, value: Any) -> Tensor:
    """A handle of `value`, with the history of `tensor`."""
    twin = like(tensor, wrap(value, tensor._type))
    twin._record, twin._index = tensor._record, tensor._index
    twin._requires_grad = tensor._requires_grad
    if tensor._requires_grad and tensor._record is None:  # a leaf, where gradients end
        attach(p.copy, (tensor,), {}, (twin,))
    return twin


def rewritten(before: Tensor, new: Tensor, apart: bool) -> Tensor:
    """The value of `new` with the derivatives of `before`, over which it is written where nothing
    is recorded, or, `apart`, through what `detach()` gave."""
    return twin_of(before, current_context().rewritten_value(before, settled(new), apart))


# --- history -----------------------------------------------------------------------------------

_saved: dict[Any, Saves] = {}


def edge_of(tensor: Tensor) -> Edge:
    """Where the cotangent of `tensor` goes."""
    if not tensor._requires_grad:
        return None
    record = tensor._record
    return (tensor, 0) if record is None else (record, tensor._index)


def handle_of(edge: Edge) -> Tensor:
    """A tensor without a value, whose gradient is what arrives at an edge; a leaf is itself."""
    assert edge is not None
    target, index = edge
    if isinstance(target, Tensor):
        return target
    found = wrap(None, target.outputs[index])
    found._record, found._index, found._requires_grad = target, index, True
    return found


def edge_read(tensor: Tensor) -> Edge:
    """`edge_of` what the current context reads: a tensor from outside of it gets a history of its
    own there once it is read, not before."""
    if settled(tensor)._requires_grad:
        current_context().value_of(tensor)
    return edge_of(tensor)


def _saves(operation: Operation, needed: tuple[bool, ...]) -> Saves:
    """What the rule of `operation` reads for the inputs that need a cotangent."""
    found = _saved[operation, needed] = RULES[operation].saves(needed)
    return found


def attach(
    operation: Operation,
    tensors: tuple[Tensor, ...],
    attrs: dict[str, Any],
    results: tuple[Tensor, ...],
    read: Collection[int] = (),
) -> None:
    """Record that `operation` made `results` of `tensors`, where there is a gradient of it.

    Its rule is given the values of those results that it says it reads, and of those in `read`.
    """
    if operation not in RULES:
        return
    for each in results:
        if each._type.dtype.is_differentiable:
            break
    else:
        return
    needed = tuple(map(_wants_grad, tensors))
    saves = _saved.get((operation, needed)) or _saves(operation, needed)
    saved_inputs, saved_outputs = saves
    # One loop, as each comprehension would be a call.
    edges: list[Edge] = []
    inputs: list[Saved | TensorType] = []
    for each in tensors:
        inputs.append(Saved(each) if len(inputs) in saved_inputs else each._type)
        edges.append(edge_of(each) if each._requires_grad else None)
    types = tuple(map(_type_of, results))
    site = user_site(3)  # what calls this function is none that a node could be named after
    record = PrimitiveRecord(tuple(edges), operation, tuple(inputs), attrs, types, site)
    if saved_outputs or read:
        record.results = tuple(
            [
                Saved(without_history(each)) if at in saved_outputs or at in read else each._type
                for at, each in enumerate(results)
            ]
        )
    if state.saved_hooks is not None and (hooks := packs()) is not None:
        for saved in record.saved_values():
            pack_saved(saved, hooks)
    if len(results) > 1:
        for at, each in enumerate(results):
            each._index = at
    for each in results:
        if each._type.dtype.is_differentiable:
            each._record, each._requires_grad = record, True


_NAMES = {
    "abs": "Abs", "max": "Amax", "min": "Amin", "matmul": "Matmul", "reshape": "View",
    "broadcast": "Expand", "cast": "ToCopy", "copy": "Clone", "concatenate": "Cat",
    "pad": "ConstantPadNd", "convolution": "Convolution",
}  # fmt: skip


def without_history(output: Tensor) -> Tensor:
    """`output` as its own record keeps it, which must not refer to itself."""
    context = state.context
    if context is not None and context.tracing:  # where memory is not shared by itself
        twin = without_record(output)
    else:
        twin = wrap(output._value, output._type)
    twin._storage = storage_of(output)
    return twin


class PrimitiveRecord(Record):
    """The application of a primitive: inputs and results are Saved, or only their type."""

    __slots__ = ("attrs", "inputs", "primitive", "results")

    def __init__(
        self,
        edges: tuple[Edge, ...],
        primitive: Operation,
        inputs: tuple[Saved | TensorType, ...],
        attrs: dict[str, Any],
        types: tuple[TensorType, ...],
        site: Site,
    ) -> None:
        Record.__init__(self, edges, types, site)
        self.primitive = primitive
        self.inputs: tuple[Saved | TensorType, ...] | None = inputs
        self.results: tuple[Saved | TensorType, ...] = types
        self.attrs = attrs

    @property
    def keeps_handles(self) -> bool:
        return getattr(self.primitive, "keeps_handles", False)

    def name(self) -> str:
        found = node_name(self.site.calls, self)
        name = self.primitive.name
        return found or f"{_NAMES.get(name) or camel(name)}Backward0"

    def cotangents(
        self, incoming: list[Tensor | None], wanted: Sequence[bool]
    ) -> Sequence[Tensor | None]:
        inputs = self.given()
        outputs: Sequence[Any] = self.results
        if outputs is not self.outputs:
            outputs = [
                self._own_output(each, at) if type(each) is Saved else each
                for at, each in enumerate(outputs)
            ]
        return RULES[self.primitive](incoming, outputs, inputs, self.attrs, wanted)

    def given(self) -> list[Any]:
        """The operands, as far as they were saved; the types of others."""
        assert self.inputs is not None
        return [unpack(each, self) if type(each) is Saved else each for each in self.inputs]

    def __getattr__(self, name: str) -> Any:
        """`_saved_self`, `_saved_other`, `_saved_result`: what is kept, as PyTorch shows it."""
        raw, _, what = name.rpartition("_saved_")
        if raw in ("", "_raw") and name != what:
            if self.freed:
                raise RuntimeError(FREED.format(name=self.name(), site=self.site))
            kept = self._kept(what)
            if kept is not None:
                return SavedTensor(*kept) if raw else self._shown(*kept)
            if not raw and self.inputs is not None and what in self.attrs:
                return self.attrs[what]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name)

    def __dir__(self) -> list[str]:
        kept = [what for what in ("self", "other", "result") if self._kept(what) is not None]
        shown = [f"{prefix}_{what}" for what in kept for prefix in ("_saved", "_raw_saved")]
        return [*object.__dir__(self), *shown]

    def _kept(self, what: str) -> tuple[Record, Saved, int | None] | None:
        """What is kept of an operand, or of the result, by PyTorch's name for it."""
        at = {"self": 0, "other": 1}.get(what)
        among = self.results if what == "result" else self.inputs
        index = 0 if what == "result" else at
        if among is None or index is None or index >= len(among):
            return None
        found = among[index]
        return (self, found, at) if isinstance(found, Saved) else None

    def _shown(self, record: Record, saved: Saved, at: int | None) -> Tensor:
        return self._own_output(saved, 0) if at is None else unpack(saved, self)

    def _own_output(self, saved: Saved, index: int) -> Tensor:
        kept = settled(unpack(saved, self))
        twin = wrap(kept._value, kept._type)
        twin._storage, twin._view = kept._storage, kept._view
        twin._record, twin._index, twin._requires_grad = self, index, True
        return twin

    def saved_values(self) -> list[Saved]:
        kept = (*(self.inputs or ()), *self.results)
        return [each for each in kept if isinstance(each, Saved)]

    def free(self) -> None:
        for each in (*(self.inputs or ()), *self.results):
            if type(each) is Saved and each.tensor._storage is not CONSTANTS:
                self.freed = True
                self.inputs = None
                self.results = self.outputs
                return


class SavedTensor:
    """A tensor kept by a node, as `node._raw_saved_self` gives it."""

    __slots__ = ("_saved",)

    def __init__(self, record: Record, saved: Saved, at: int | None) -> None:
        self._saved = saved

    def register_hooks(
        self, pack_hook: Callable[..., Any], unpack_hook: Callable[..., Any]
    ) -> None:
        """Keep what `pack_hook` makes of the tensor, from which `unpack_hook` makes it again."""
        if type(self._saved.tensor) is Packed:
            raise RuntimeError(
                "Calling register_hooks on a saved tensor whose hooks have already been set. Hint: "
                "only one pair of hooks is allowed at a time."
            )
        pack_saved(self._saved, Hooks(pack_hook, unpack_hook))


def unpack(saved: Saved, record: Record) -> Tensor:
    """The saved tensor; RuntimeError names both lines if its memory was written since."""
    storage = saved.tensor._storage
    if storage is not None and storage.version != saved.version:
        raise RuntimeError(
            "one of the variables needed for gradient computation has been modified by an inplace "
            f"operation: [{saved.tensor._type}], saved by {record.name()} at {record.site}, is at "
            f"version {storage.version}; expected version {saved.version} instead. It was "
            f"overwritten at {storage.written}. Hint: use an operation that does not work in "
            "place there, or clone() the tensor first."
        )
    if record.region is not None and not record.keeps_handles:
        again: Tensor = record.region.recomputed(settled(saved.tensor))
        return again
    found: Tensor = saved.tensor
    return found.unpacked() if type(found) is Packed else found
