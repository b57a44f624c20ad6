"""The eager context: operations are computed at once, by the array module of their device."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from ..compiler.graph_interpreter import with_functions
from ..compiler.ir import Node, Primitive, TensorType
from ..compiler.ir import primitives as p
from ..compiler.ir.layouts import result_strides, step_start, view_strides
from ..runtime.array_functions_movement import strided
from ..runtime.arrays import (
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
from ..runtime.cuda import backend
from ..runtime.cuda.memory import when_full
from ..runtime.device import CPU, META, Device
from ..runtime.dtypes import DType, from_numpy_dtype, int64, uint8
from ..runtime.meta import MetaArray, NoElementsError
from .carried_number import CarriedNumber
from .classes import like
from .context import ALIASING, GRAPHS, Context
from .out_of_memory import note
from .state import state
from .tensor import Lifted, Tensor, intern_type, strides_of, unwritten, wrap


def _flipped(xp: Any, x: Any, axes: tuple[int, ...]) -> Any:
    return FUNCTIONS["flip"](xp, x, axes).copy()  # tensors have no negative strides


def _of_graphs(name: str) -> Callable[..., Any]:
    """Branches and loops, whose results own their memory, whatever the graphs inside return."""

    def run(xp: Any, *arrays: Any, **attrs: Any) -> tuple[Any, ...]:
        return tuple(map(copy_of, FUNCTIONS[name](xp, *arrays, **with_functions(attrs))))

    return run


ARRAY_FUNCTIONS = {
    **FUNCTIONS, "flip": _flipped, "branch": _of_graphs("branch"), "loop": _of_graphs("loop")
}  # fmt: skip


_ndarray = np.ndarray
_MANY = 1 << 14
"""Elements of an operand from which on an operation may be a plan."""


class EagerContext(Context):
    """Computes at once, with NumPy, or by a plan where an operand has many elements.

    `large` has what computes the results of primitives then, or gives None (`operation_plans.py`).
    """

    large: dict[Primitive, Callable[..., Any]]
    gives_sparse = True

    def __init__(self) -> None:
        self.large = {}

    def evaluate(
        self,
        primitive: Primitive,
        tensors: tuple[Tensor, ...],
        attrs: dict[str, Any],
        type_: TensorType,
    ) -> Any:
        values, dense, many = [], True, False
        for tensor in tensors:
            value = tensor._value
            if type(value) is not _ndarray:
                return _evaluate_on_device(primitive, tensors, attrs, type_)
            values.append(value)
            if not value.flags.c_contiguous:
                dense = False
            if value.size >= _MANY:
                many = True
        if attrs and "device" in attrs:
            return _evaluate_on_device(primitive, tensors, attrs, type_)
        if many and dense and state.context is None and primitive in self.large:
            result = self.large[primitive](primitive, tensors, attrs, values)
            if result is not None:
                return result
        result = ARRAY_FUNCTIONS[primitive.name](np, *values, **attrs)
        if type(result) is not _ndarray:
            result = _as_arrays(result)
        elif dense and result.flags.c_contiguous and not (primitive is p.copy and attrs):
            return result
        return result if primitive in ALIASING else _in_order(primitive, values, attrs, result)

    def value_of(self, tensor: Tensor) -> Any:
        value = tensor._value
        if type(value) is not _ndarray and isinstance(value, (Node, Lifted)):
            raise_leaked(tensor)
        return value

    def host_array(self, tensor: Tensor, operation: str) -> np.ndarray[Any, Any]:
        if tensor._type.device is META:
            raise NoElementsError(operation)
        return to_host(self.value_of(tensor))

    def positions(self, tensor: Tensor, operation: str) -> tuple[Tensor, ...]:
        value, device = self.value_of(tensor), tensor._type.device
        if not value.ndim:
            return ()
        if device is META:
            raise NoElementsError(operation)
        with current(device):
            found = value.nonzero() if device.is_host else when_full(value.nonzero)
            found = [contiguous(each) for each in found]
        made = [wrap(each, intern_type(each.shape, int64, device)) for each in found]
        return tuple(like(tensor, each) for each in made)

    def constant(self, value: Any, dtype: DType, device: Device = CPU) -> Tensor:
        constants = backend.kept() if device.type == "cuda" else _constants
        key = (told_apart(value), type(value), dtype, device)
        found: Tensor | None = constants.get(key)
        if found is None:
            found = _make_constant(value, dtype, device)
            if len(constants) < _CACHED_CONSTANTS:
                constants[key] = found
                if device.type == "cuda":  # other streams do not wait for this one
                    backend.cupy().cuda.get_current_stream().synchronize()
        return found

    def array_constant(self, array: np.ndarray[Any, Any], device: Device = CPU) -> Tensor:
        return wrap(place(array, device), array_type(array, device))

    def write(self, tensor: Tensor, new: Tensor) -> None:
        if tensor._type.device is META:
            return
        target, source = self.value_of(tensor), self.value_of(new)
        if type(source) is not np.ndarray and share_memory(target, source):
            source = copy_of(source)  # a device may read an element after it was overwritten
        copy_elements(target, source)

    def aliases(
        self, primitive: Primitive, source: Tensor, attrs: dict[str, Any], value: Any
    ) -> bool:
        if primitive is not p.reshape or not source._type.numel:
            return True
        if type(value) is np.ndarray:
            shown: np.ndarray[Any, Any] = source._value
            return shown.flags.c_contiguous or np.may_share_memory(shown, value)
        if type(value) is MetaArray:
            shape, strides = source._type.shape, strides_of(source)
            return view_strides(shape, strides, attrs["shape"]) is not None
        return share_memory(source._value, value)

    def refresh(self, tensor: Tensor, derived: Tensor) -> None:
        """Memory is shared: the value is up to date."""

    def draw_from(self, generator: Any, device: Device = CPU) -> tuple[Tensor, Tensor]:
        # On the CPU for every device: the array functions read them as numbers.
        key, counter = generator.seed_as_int64, generator.counter
        generator.counter += device is not META  # where nothing is drawn
        type_ = intern_type((), int64)
        return wrap(np.array(key, np.int64), type_), wrap(np.array(counter, np.int64), type_)

    def random_state(self, generator: Any) -> Tensor:
        state_ = np.array([generator.seed_as_int64, generator.counter], np.int64)
        return wrap(state_, intern_type((2,), int64))

    def restart(self, generator: Any, random_state: Tensor) -> None:
        generator.restart(*self.value_of(random_state).tolist())

    def token(self, device: Device) -> Tensor:
        return self.constant(0, uint8, device)

    def ordered(self, token: Tensor) -> None:
        """Calls run one after another as it is."""

    def serial(self) -> int:
        return 0


_constants: dict[Any, Tensor] = {}
_CACHED_CONSTANTS = 4096


def _make_constant(value: Any, dtype: DType, device: Device) -> Tensor:
    if device is META:
        array: Any = MetaArray((), dtype)
    else:
        with current(device):
            array = FUNCTIONS["full"](array_module(device), (), value, dtype)
    made = wrap(array, intern_type((), dtype, device))
    return unwritten(made)


def _without_elements(
    primitive: Primitive, tensors: tuple[Tensor, ...], attrs: dict[str, Any], type_: Any
) -> Any:
    """Results on `meta`: what the types and the order in memory tell."""
    if type(type_) is tuple:
        return tuple(MetaArray(each.shape, each.dtype) for each in type_)
    operands = [(each._type.shape, strides_of(each)) for each in tensors]
    strides = result_strides(primitive, attrs, type_.shape, operands)
    start = 0
    if primitive in ALIASING:
        start = tensors[0]._value.ptr // tensors[0]._type.dtype.itemsize
        if type_.numel:
            start = step_start(primitive, attrs, start, *operands[0])
    return MetaArray(type_.shape, type_.dtype, strides, start)


def _evaluate_on_device(
    primitive: Primitive, tensors: tuple[Tensor, ...], attrs: dict[str, Any], type_: Any
) -> Any:
    """Compute where the operands are, or where a result without operands is to be."""
    for tensor in tensors:
        if isinstance(tensor._value, (Node, Lifted)):
            raise_leaked(tensor)
    device = attrs["device"] if "device" in attrs else tensors[0]._type.device
    if device is META:
        return _without_elements(primitive, tensors, attrs, type_)
    if primitive is p.transfer and tensors[0]._type.device is META:
        raise NoElementsError("a move to another device")
    values = [tensor._value for tensor in tensors]
    function, xp = ARRAY_FUNCTIONS[primitive.name], array_module(device)
    with current(device):
        if device.is_host:
            result = function(xp, *values, **attrs)
        else:
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
    if primitive is p.copy and "strides" in attrs:
        strides = attrs["strides"]
    elif "strides" in attrs:  # of windows
        return contiguous(result)
    else:
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
    if type(result) is _ndarray:
        return strided(result, result.shape, wanted)
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
    """RuntimeError for a tensor whose trace, or transformed function, is over."""
    if isinstance(tensor._value, Lifted):
        raise RuntimeError(
            f"a tensor of type {tensor._type} has no value here: it was made inside a function "
            f"that {tensor._value.context.name} calls, at {tensor._value.where}, and kept after "
            "it. Return it from that function instead."
        )
    where = tensor._value.where if isinstance(tensor._value, Node) else "unknown"
    for graph in GRAPHS:
        if graph.owns(tensor._value):
            raise graph.outside(tensor._value, tensor._type)
    raise RuntimeError(
        f"a tensor of type {tensor._type} has no value: it was made inside a traced function, at "
        f"{where}, and kept after the trace. Return it from the traced function instead."
    )


def array_type(array: np.ndarray[Any, Any], device: Device = CPU) -> TensorType:
    """The type of a tensor that holds `array`."""
    return intern_type(array.shape, from_numpy_dtype(array.dtype), device)


EAGER = EagerContext()


def current_context() -> Context:
    """The context in which operations of this thread run now."""
    context: Context = state.context or EAGER
    return context


def told_apart(value: Any) -> Any:
    """A number as a key of tables, where 0.0 is not -0.0, nor in a complex number."""
    return value if value and type(value) is not complex else repr(value)


def fitting(value: Any, dtype: DType) -> Any:
    """A number as one that `dtype` can hold; RuntimeError for a complex one among real ones."""
    if not isinstance(value, complex) or dtype.is_complex:
        return value
    if value.imag:
        raise RuntimeError(f"value cannot be converted to type {dtype.name} without overflow")
    return value.real


def stored(value: Any, dtype: DType) -> Any:
    """A number as the elements of `dtype` hold it; RuntimeError where they do not.

    Unsigned types take -1 as their largest number.
    """
    value = fitting(value, dtype)
    if not dtype.is_integral or type(value) not in (int, float):
        return value
    if type(value) is int and not -(2**63) <= value < 2**64:
        return value  # `constant` says so
    info = np.iinfo(dtype.numpy)
    lowest = info.min if dtype.is_signed else -info.max
    if not lowest <= value <= info.max:
        raise RuntimeError(f"value cannot be converted to type {dtype.name} without overflow")
    return int(value)


def constant(value: Any, dtype: DType, device: Device = CPU) -> Tensor:
    """A 0-d tensor of a Python scalar.

    OverflowError for an int of more than 64 bits, RuntimeError for a complex number among real
    ones.
    """
    if type(value) is CarriedNumber:
        return value.to(dtype, device)
    value = fitting(value, dtype)
    if type(value) is int and not -(2**63) <= value < 2**64:
        raise OverflowError("int too big to convert")
    return current_context().constant(value, dtype, device)
