"""The one path on which every operation is recorded.

`apply(primitive, *tensors, **attrs)` infers the type of the result once, asks the current context
for the value, and remembers the operation for the backward pass where a gradient is wanted. The
eager context computes at once; a tracing context (`tracing.py`) adds a node to its graph. All else
in `tgraph` is functions over `apply`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from operator import itemgetter
from typing import Any, cast

import numpy as np

from .autograd.record import OUTPUT, RULES, Edge, Operation, Record, Rule, Saved
from .compiler.ir import IRTypeError, Node, Primitive, TensorType, infer_type
from .compiler.ir import primitives as p
from .compiler.ir.layouts import result_strides, view_strides
from .out_of_memory import note
from .provenance import Site as Site
from .provenance import is_internal as is_internal
from .provenance import user_site as user_site
from .runtime.array_functions_movement import slices_of
from .runtime.arrays import (
    FUNCTIONS,
    array_module,
    contiguous,
    copy_elements,
    copy_of,
    current,
    module_of,
    place,
    share_memory,
    to_host,
)
from .runtime.cuda import backend
from .runtime.cuda.memory import when_full
from .runtime.device import CPU, Device
from .runtime.dtypes import DType, from_numpy_dtype, int64
from .state import state
from .tensor import (
    Step,
    Storage,
    Tensor,
    View,
    intern_type,
    root_of,
    storage_of,
    strides_of,
    wrap,
)

# --- contexts ----------------------------------------------------------------------------------


class Context:
    """What computes or records operations. The eager one is always at the bottom of the stack."""

    tracing = False

    def evaluate(
        self,
        primitive: Primitive,
        tensors: tuple[Tensor, ...],
        attrs: dict[str, Any],
        type_: TensorType,
    ) -> Any:
        """The value of applying `primitive`: what becomes `_value` of the result."""
        raise NotImplementedError

    def value_of(self, tensor: Tensor) -> Any:
        """The current value of any tensor, in this context's own terms (ndarray or Node)."""
        raise NotImplementedError

    def host_array(self, tensor: Tensor, operation: str) -> np.ndarray[Any, Any]:
        """The elements, for `operation` such as "item()"; an error where there are none yet."""
        raise NotImplementedError

    def allow_iteration(self) -> None:
        """An error where a Python loop over a tensor is not what a user can want."""

    def constant(self, value: Any, dtype: DType, device: Device = CPU) -> Tensor:
        """A 0-d tensor of a Python scalar. `value` arrives just as the user gave it."""
        raise NotImplementedError

    def array_constant(self, array: np.ndarray[Any, Any], device: Device = CPU) -> Tensor:
        """A tensor on `device` of an array that nobody else holds."""
        raise NotImplementedError

    def write(self, tensor: Tensor, new: Tensor) -> None:
        """Give `tensor` the value of `new`, of the same type, seen by all views of its memory.

        Values only: the caller keeps versions and history (see `inplace.assign`).
        """
        raise NotImplementedError

    def memory_of(self, tensor: Tensor) -> Any:
        """The array that shows what a write of `tensor` overwrites; None where there is none."""
        return None if type(tensor._value) is Node else tensor._value

    def aliases(
        self, primitive: Primitive, source: Tensor, attrs: dict[str, Any], value: Any
    ) -> bool:
        """Whether the result `value` of a view primitive shows the memory of `source`."""
        raise NotImplementedError

    def refresh(self, tensor: Tensor, derived: Tensor) -> None:
        """`derived` is the view `tensor` derived again from its base: take over its value."""
        raise NotImplementedError

    def reads_current_device(self, current: Callable[[], int]) -> None:
        """`current()` told which CUDA device is meant: a trace holds as long as it tells this."""

    def random_key(self, generator: Any, device: Device = CPU) -> tuple[Tensor, int]:
        """Key and offset for the next `random_bits` call; advances `generator` by one call.

        The key is where bits on `device` are made from it.
        """
        raise NotImplementedError

    def random_state(self, generator: Any) -> Tensor:
        """Seed and counter of `generator` as an int64 tensor of two elements."""
        raise NotImplementedError

    def seeded(self, generator: Any, seed: int) -> None:
        """Called before `generator` starts from `seed` (0 to 2**64 - 1), calls counted from 0."""

    def touch(self, tensor: Tensor) -> None:
        """Called before the metadata of a handle changes: history, version, hooks."""

    def backward_of(self, site: Site | None) -> None:
        """Operations from now on belong to the backward pass of those made at `site`."""

    def read_grad(self, tensor: Tensor) -> Tensor | None:
        """The accumulated gradient of `tensor`."""
        return tensor._grad

    def write_grad(self, tensor: Tensor, grad: Tensor | None) -> None:
        """Replace the accumulated gradient of `tensor`."""
        tensor._grad = grad


def current_context() -> Context:
    """The context in which operations of this thread run now."""
    context: Context = state.context or EAGER
    return context


class use_context:
    """Run operations of this thread in `context` for the length of a `with` block.

    No generator: one that Ctrl-C left half-way would put its context back whenever it is collected.
    """

    def __init__(self, context: Context) -> None:
        self.context = context

    def __enter__(self) -> Context:
        self.previous = state.context
        state.context = self.context
        return self.context

    def __exit__(self, *error: object) -> None:
        state.context = self.previous


def _flipped(xp: Any, x: Any, axes: tuple[int, ...]) -> Any:
    return FUNCTIONS["flip"](xp, x, axes).copy()  # tensors have no negative strides


_FUNCTIONS = {**FUNCTIONS, "flip": _flipped}


_MANY = 1 << 14
"""Elements of an operand from which on an operation may be a plan."""


class EagerContext(Context):
    """Computes at once, with NumPy, or by a plan where an operand has many elements.

    `large` has what computes the results of primitives then, or gives None (`operation_plans.py`).
    """

    large: dict[Primitive, Callable[..., Any]]

    def __init__(self) -> None:
        self.large = {}

    def evaluate(
        self,
        primitive: Primitive,
        tensors: tuple[Tensor, ...],
        attrs: dict[str, Any],
        type_: TensorType,
    ) -> Any:
        values, dense, most = [], True, 0
        for tensor in tensors:
            value = tensor._value
            if type(value) is not np.ndarray:
                return _evaluate_on_device(primitive, tensors, attrs)
            values.append(value)
            if dense and not value.flags.c_contiguous:
                dense = False
            if value.size > most:
                most = value.size
        if attrs and "device" in attrs:
            return _evaluate_on_device(primitive, tensors, attrs)
        if most >= _MANY and dense and state.context is None and primitive in self.large:
            result = self.large[primitive](primitive, tensors, attrs, values)
            if result is not None:
                return result
        result = _FUNCTIONS[primitive.name](np, *values, **attrs)
        if type(result) is not np.ndarray:
            result = _as_arrays(result)
        elif dense and result.flags.c_contiguous:
            return result
        return result if primitive in ALIASING else _in_order(primitive, values, attrs, result)

    def value_of(self, tensor: Tensor) -> Any:
        if type(tensor._value) is Node:
            raise_leaked(tensor)
        return tensor._value

    def host_array(self, tensor: Tensor, operation: str) -> np.ndarray[Any, Any]:
        return to_host(self.value_of(tensor))

    def constant(self, value: Any, dtype: DType, device: Device = CPU) -> Tensor:
        constants = _constants if device is CPU else backend.kept()
        key = (value, type(value), dtype, device)
        found: Tensor | None = constants.get(key)
        if found is None:
            found = _make_constant(value, dtype, device)
            if len(constants) < _CACHED_CONSTANTS and value != 0:  # keeps 0.0 and -0.0 apart
                constants[key] = found
                if device is not CPU:  # other streams do not wait for this one
                    backend.cupy().cuda.get_current_stream().synchronize()
        return found

    def array_constant(self, array: np.ndarray[Any, Any], device: Device = CPU) -> Tensor:
        return wrap(place(array, device), array_type(array, device))

    def write(self, tensor: Tensor, new: Tensor) -> None:
        target, source = self.value_of(tensor), self.value_of(new)
        if type(source) is not np.ndarray and share_memory(target, source):
            source = copy_of(source)  # a device may read an element after it was overwritten
        copy_elements(target, source)

    def aliases(
        self, primitive: Primitive, source: Tensor, attrs: dict[str, Any], value: Any
    ) -> bool:
        if primitive is not p.reshape:
            return True
        if type(value) is np.ndarray:
            return np.may_share_memory(source._value, value)
        return share_memory(source._value, value)

    def refresh(self, tensor: Tensor, derived: Tensor) -> None:
        """Memory is shared: the value is up to date."""

    def random_key(self, generator: Any, device: Device = CPU) -> tuple[Tensor, int]:
        # On the CPU for every device: the array functions read it as numbers.
        key = np.array([generator.seed_as_int64, generator.counter], np.int64)
        generator.counter += 1
        return wrap(key, intern_type((2,), int64)), 0

    def random_state(self, generator: Any) -> Tensor:
        state_ = np.array([generator.seed_as_int64, generator.counter], np.int64)
        return wrap(state_, intern_type((2,), int64))


_constants: dict[Any, Tensor] = {}
_CACHED_CONSTANTS = 4096


def _make_constant(value: Any, dtype: DType, device: Device) -> Tensor:
    with current(device):
        array = FUNCTIONS["full"](array_module(device), (), value, dtype)
    return wrap(array, intern_type((), dtype, device))


def _evaluate_on_device(
    primitive: Primitive, tensors: tuple[Tensor, ...], attrs: dict[str, Any]
) -> Any:
    """Compute where the operands are, or where a result without operands is to be."""
    for tensor in tensors:
        if type(tensor._value) is Node:
            raise_leaked(tensor)
    device = attrs["device"] if "device" in attrs else tensors[0]._type.device
    values = [tensor._value for tensor in tensors]
    function, xp = _FUNCTIONS[primitive.name], array_module(device)
    with current(device):
        result = when_full(lambda: function(xp, *values, **attrs))
        if primitive not in ALIASING:
            result = _in_order(primitive, values, attrs, result)
    for array in result if isinstance(result, tuple) else (result,):
        if type(array) is not np.ndarray:
            note(array)
    return result


def _in_order(primitive: Primitive, values: list[Any], attrs: dict[str, Any], result: Any) -> Any:
    """A result laid out in memory as `layouts` says: array modules go by other rules."""
    if isinstance(result, tuple):
        return tuple(map(contiguous, result))
    if result.ndim < 2 or not result.size:
        return contiguous(result)
    if "strides" in attrs:
        return contiguous(result)
    operands = [(each.shape, each.strides, each.itemsize) for each in values]
    strides = _wanted_strides(primitive, result.shape, *operands)
    wanted = tuple(stride * result.itemsize for stride in strides)
    if result.strides == wanted:
        return result
    if any(map(_is_misplaced, result.shape, result.strides, wanted)):
        axes = sorted(range(result.ndim), key=lambda axis: -strides[axis])
        places = sorted(range(result.ndim), key=axes.__getitem__)
        result = contiguous(result.transpose(axes)).transpose(places)
    # Where axes have one element, strides tell nothing, but users see them.
    return module_of(result).lib.stride_tricks.as_strided(result, strides=wanted)


def _is_misplaced(size: int, found: int, wanted: int) -> bool:
    return size > 1 and found != wanted


@lru_cache(maxsize=1 << 12)
def _wanted_strides(primitive: Primitive, shape: Any, *operands: Any) -> tuple[int, ...]:
    """In elements, for operands of shapes, strides in bytes, and bytes per element."""
    counted = [(own, tuple(step // size for step in steps)) for own, steps, size in operands]
    return result_strides(primitive, {}, shape, counted)


def _as_arrays(result: Any) -> Any:
    """NumPy gives scalars for 0-d results; several results come as a tuple."""
    return tuple(map(np.asarray, result)) if isinstance(result, tuple) else np.asarray(result)


def raise_leaked(tensor: Tensor) -> None:
    """RuntimeError for a tensor whose trace is over."""
    where = tensor._value.where if isinstance(tensor._value, Node) else "unknown"
    raise RuntimeError(
        f"a tensor of type {tensor._type} has no value: it was made inside a traced function, at "
        f"{where}, and kept after the trace. Return it from the traced function instead."
    )


def array_type(array: np.ndarray[Any, Any], device: Device = CPU) -> TensorType:
    """The type of a tensor that holds `array`."""
    return intern_type(array.shape, from_numpy_dtype(array.dtype), device)


EAGER = EagerContext()


# --- apply -------------------------------------------------------------------------------------

# The primitives whose results show the memory of their input, as in PyTorch (where flip copies).
ALIASING = frozenset({p.reshape, p.permute, p.broadcast, p.slice_, p.unfold})
_inferred: dict[Any, tuple[Any, tuple[TensorType, ...]]] = {}
_CACHED_INFERENCES = 1 << 16


def _infer(
    primitive: Primitive, tensors: tuple[Tensor, ...], attrs: dict[str, Any], key: Any
) -> Any:
    types = tuple(tensor._type for tensor in tensors)
    check_devices(primitive.name, types)
    try:
        result = infer_type(primitive, types, attrs)
    except IRTypeError as error:
        raise RuntimeError(str(error)) from None
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
    key = (primitive, *[id(tensor._type) for tensor in tensors])
    if attrs:
        key = (key, *attrs.items())
    try:
        return _inferred[key][0]
    except KeyError:
        return _infer(primitive, tensors, attrs, key)
    except TypeError:  # an attribute that cannot be hashed
        return _infer(primitive, tensors, attrs, None)


def apply(primitive: Primitive, *tensors: Tensor, **attrs: Any) -> Tensor:
    """Apply `primitive` (for one with several results, see `apply_several`).

    The one door for every operation, eager and traced. `tensors` fit the primitive's own strict
    rule (one dtype, non-negative axes...): promotion and checks belong to the public functions.
    """
    type_ = result_type_of(primitive, tensors, attrs)
    for tensor in tensors:
        view = tensor._view
        if view is not None and view.changes != view.memory.changes:
            refresh_view(tensor)
    context = state.context or EAGER
    value = context.evaluate(primitive, tensors, attrs, type_)
    if type(type_) is tuple:
        return tuple(map(wrap, value, type_))  # type: ignore[return-value]
    result = wrap(value, type_)
    if primitive in ALIASING:
        _link_view(context, primitive, tensors[0], attrs, result)
    if state.grad_enabled:
        for tensor in tensors:
            if tensor._requires_grad:
                attach(primitive, tensors, attrs, result)
                break
    return result


def apply_several(primitive: Primitive, *tensors: Tensor, **attrs: Any) -> tuple[Tensor, ...]:
    """`apply` for a primitive with several results."""
    return cast(tuple[Tensor, ...], apply(primitive, *tensors, **attrs))


def make_source(primitive: Primitive, device: Device, **attrs: Any) -> Tensor:
    """`apply` for a primitive without operands, whose result is to lie on `device`."""
    if device is not CPU:
        attrs["device"] = device
    return apply(primitive, **attrs)


def constant(value: Any, dtype: DType, device: Device = CPU) -> Tensor:
    """A 0-d tensor of a Python scalar; OverflowError for an int of more than 64 bits."""
    if type(value) is int and not -(2**63) <= value < 2**64:
        raise OverflowError("int too big to convert")
    return current_context().constant(value, dtype, device)


# --- views -------------------------------------------------------------------------------------


def _link_view(
    context: Any, primitive: Primitive, source: Tensor, attrs: dict[str, Any], result: Tensor
) -> None:
    if context.aliases(primitive, source, attrs, result._value):
        link_view(source, (Step(primitive, attrs),), result)


def link_view(source: Tensor, steps: tuple[Step, ...], result: Tensor) -> None:
    """Let `result`, which shows the memory of `source` after `steps`, be a view of it."""
    view = source._view
    result._storage = source._storage or storage_of(source)
    quiet = not state.grad_enabled
    if view is None or not view.differentiable:  # what is detached has a history of its own
        result._view = View(source, steps, True, quiet)
    else:
        steps = (*view.steps, *steps)
        result._view = View(view.base, steps, view.differentiable, view.without_grad or quiet)


ArrayViews = tuple[Callable[[Any], Any], ...]


def array_views(steps: tuple[Step, ...]) -> ArrayViews:
    """What `steps` do to an array of NumPy, made ready for many calls."""
    return tuple(
        itemgetter(slices_of(**step.attrs))
        if step.primitive is p.slice_
        else partial(_FUNCTIONS[step.primitive.name], np, **step.attrs)
        for step in steps
    )


def shown(base: Tensor, steps: tuple[Step, ...], views: ArrayViews) -> Tensor:
    """The view of `base` after `steps`, of which none copies; as if they were applied one by one.

    Where nothing is recorded, it is made at once, by `views`, the `array_views` of the steps.
    """
    value = settled(base)._value
    is_recorded = state.grad_enabled and base._requires_grad
    if not steps or is_recorded or state.context is not None or type(value) is not np.ndarray:
        for step in steps:
            base = apply(step.primitive, base, **step.attrs)
        return base
    for view in views:
        value = view(value)
    result = wrap(value, intern_type(value.shape, base._type.dtype))
    link_view(base, steps, result)
    return result


def would_alias(source: Tensor, shape: tuple[int, ...]) -> bool:
    """Whether `source` can be shown as `shape` without a copy, going by its strides."""
    return view_strides(source._type.shape, strides_of(source), shape) is not None


def refresh_view(tensor: Tensor) -> None:
    """Derive value and history of a view again, after its memory was written through another."""
    view = tensor._view
    assert view is not None
    context = current_context()
    base = view.base
    if not context.tracing and not base._requires_grad:
        view.changes = view.memory.changes
        return
    context.touch(tensor)
    previous, state.grad_enabled = state.grad_enabled, view.differentiable
    try:
        derived = base
        for step in view.steps:
            derived = apply(step.primitive, derived, **step.attrs)
    finally:
        state.grad_enabled = previous
    context.refresh(tensor, derived)
    if view.differentiable and derived is not base and base._requires_grad:
        tensor._record, tensor._index = derived._record, derived._index
        tensor._requires_grad = derived._requires_grad
    view.changes = view.memory.changes


def settled(tensor: Tensor) -> Tensor:
    """`tensor`, up to date with writes to its memory."""
    view = tensor._view
    if view is not None and view.changes != view.memory.changes:
        refresh_view(tensor)
    return tensor


def detach(input: Tensor) -> Tensor:
    """A tensor that shares the memory of `input`, without its history.

    >>> import tgraph as tg
    >>> x = tg.ones(2, requires_grad=True)
    >>> x.detach().requires_grad
    False
    """
    result = _detached(input)
    result._storage = storage_of(input)
    return result


def data(input: Tensor) -> Tensor:
    """What `.data` gives: as `detach()`, but writes to it are not counted as writes to `input`.

    The backward pass does not notice them, and works with what is in memory then.
    """
    result = _detached(input)
    result._storage = Storage()
    return result


def base_to_view(view: Tensor) -> Tensor | None:
    """The tensor that `view` shows a part of, such that its views have the history of `view`'s.

    None where there is no such tensor: gradients are asked of the view itself.
    """
    how = settled(view)._view
    if how is None:
        return view
    base = how.base
    if not how.differentiable or base._view is not None:  # detached somewhere
        return None if view._requires_grad else _unlinked(root_of(base), view)
    return base if view._requires_grad is base._requires_grad and not how.without_grad else None


def _unlinked(base: Tensor, view: Tensor) -> Tensor:
    result = wrap(current_context().value_of(base), base._type)
    # A gradient through a view of this twin would not reach `view`: it is refused.
    result._view = View(base, (), differentiable=False, without_grad=True)
    result._storage = view._storage
    return result


def _detached(input: Tensor) -> Tensor:
    view = settled(input)._view
    result = wrap(current_context().value_of(input), input._type)
    base, steps = (input, ()) if view is None else (view.base, view.steps)
    result._view = View(base, steps, differentiable=False)
    return result


# --- history -----------------------------------------------------------------------------------

_plans: dict[Any, tuple[frozenset[int], bool]] = {}


def edge_of(tensor: Tensor) -> Edge:
    """Where the cotangent of `tensor` goes."""
    if not tensor._requires_grad:
        return None
    record = tensor._record
    return (tensor, 0) if record is None else (record, tensor._index)


def rule_for(primitive: Operation, position: int) -> Rule:
    """The gradient rule of one input; NotImplementedError names a primitive without one."""
    rules = RULES[primitive]
    rule = rules if isinstance(rules, Rule) else rules.get(position)
    if rule is None:
        raise NotImplementedError(
            f"the gradient of {primitive.name} with respect to input {position} is not implemented"
        )
    return rule


def _saves(primitive: Operation, needed: tuple[bool, ...]) -> tuple[frozenset[int], bool]:
    """Which inputs the rules of the needed inputs read, and whether they read the output."""
    key = (primitive, needed)
    found = _plans.get(key)
    if found is None:
        rules = [rule_for(primitive, at) for at, wanted in enumerate(needed) if wanted]
        names = frozenset().union(*(rule.saves for rule in rules))
        found = _plans[key] = (frozenset(names - {OUTPUT}), OUTPUT in names)  # type: ignore[arg-type]
    return found


def attach(
    primitive: Operation, tensors: tuple[Tensor, ...], attrs: dict[str, Any], result: Tensor
) -> None:
    if primitive not in RULES or not result._type.dtype.is_floating_point:
        return
    edges = tuple(map(edge_of, tensors))
    inputs, output = _saves(primitive, tuple(edge is not None for edge in edges))
    kept = tuple(
        Saved(tensor) if at in inputs else tensor._type for at, tensor in enumerate(tensors)
    )
    record = PrimitiveRecord(edges, primitive, kept, attrs, result._type)
    if output:
        record.output = Saved(without_history(result))
    result._record = record
    result._requires_grad = True


_NAMES = {
    "abs": "Abs", "max": "Amax", "min": "Amin", "matmul": "Matmul", "reshape": "View",
    "broadcast": "Expand", "cast": "ToCopy", "copy": "Clone", "concatenate": "Cat",
    "pad": "ConstantPadNd", "convolution": "Convolution",
}  # fmt: skip


def without_history(output: Tensor) -> Tensor:
    """`output` as its own record keeps it, which must not refer to itself."""
    context = state.context
    if context is not None and context.tracing:  # where memory is not shared by itself
        twin = _detached(output)
    else:
        twin = wrap(output._value, output._type)
    twin._storage = storage_of(output)
    return twin


class PrimitiveRecord(Record):
    """The application of a primitive: inputs and output are Saved, or only their type."""

    __slots__ = ("attrs", "inputs", "output", "primitive")

    def __init__(
        self,
        edges: tuple[Edge, ...],
        primitive: Operation,
        inputs: tuple[Saved | TensorType, ...],
        attrs: dict[str, Any],
        type_: TensorType,
    ) -> None:
        super().__init__(edges, (type_,), user_site())
        self.primitive = primitive
        self.inputs: tuple[Saved | TensorType, ...] | None = inputs
        self.output: Saved | TensorType = type_
        self.attrs = attrs

    def name(self) -> str:
        name = self.primitive.name
        camel = "".join(word.capitalize() for word in name.split("_"))
        return f"{_NAMES.get(name, camel)}Backward0"

    def cotangents(
        self, incoming: list[Tensor | None], wanted: Sequence[bool]
    ) -> list[Tensor | None]:
        (cotangent,) = incoming
        assert self.inputs is not None
        inputs = [unpack(each, self) if isinstance(each, Saved) else each for each in self.inputs]
        output: Any = self.output
        if isinstance(output, Saved):
            output = self._own_output(output)
        result: list[Tensor | None] = []
        for position, is_wanted in enumerate(wanted):
            if not is_wanted:
                result.append(None)
                continue
            rule = rule_for(self.primitive, position)
            extra = {"position": position} if rule.variadic else {}
            result.append(rule.function(cotangent, output, *inputs, **self.attrs, **extra))
        return result

    def _own_output(self, saved: Saved) -> Tensor:
        kept = settled(unpack(saved, self))
        twin = wrap(kept._value, kept._type)
        twin._storage, twin._view = kept._storage, kept._view
        twin._record, twin._requires_grad = self, True
        return twin

    def saved_values(self) -> list[Saved]:
        kept = (*(self.inputs or ()), self.output)
        return [each for each in kept if isinstance(each, Saved)]

    def free(self) -> None:
        if self.saved_values():
            self.freed = True
            self.inputs = None
            self.output = self.outputs[0]


def unpack(saved: Saved, record: Record) -> Tensor:
    """The saved tensor; RuntimeError names both lines if its memory was written since."""
    storage = saved.changed()
    if storage is not None:
        raise RuntimeError(
            "one of the variables needed for gradient computation has been modified by an inplace "
            f"operation: [{saved.tensor._type}], saved by {record.name()} at {record.site}, is at "
            f"version {storage.version}; expected version {saved.version} instead. It was "
            f"overwritten at {storage.written}. Hint: use an operation that does not work in "
            "place there, or clone() the tensor first."
        )
    return saved.tensor
