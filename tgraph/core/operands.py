"""What public functions do with their operands before a primitive sees them.

Primitives are strict: their inputs share one dtype. Here Python scalars become tensors, and
PyTorch's type promotion becomes explicit casts.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from ..compiler.ir import primitives as p
from ..compiler.ir import promotion
from ..compiler.ir.dim import SymInt
from ..compiler.ir.promotion import CATEGORY
from ..runtime.device import CPU, Device
from ..runtime.dtypes import DType, bool_, int64
from .devices import as_device
from .dispatch import apply
from .eager_context import constant
from .tensor import Tensor
from .traced_number import TracedNumber

Scalar = bool | int | float | complex
Operand = Tensor | Scalar
SCALARS = (bool, int, float, complex, np.generic)


def is_scalar(value: Any) -> bool:
    """Whether `value` is a Python or NumPy number."""
    return isinstance(value, SCALARS)


def plain_scalar(value: Any) -> Any:
    """A NumPy scalar as a Python one; anything else unchanged."""
    return value.item() if isinstance(value, np.generic) else value


def cast(x: Tensor, dtype: DType) -> Tensor:
    """`x` as `dtype`; `x` itself where it has it already.

    Warns where imaginary parts are lost, as PyTorch does.
    """
    if x._type.dtype is dtype:
        return x
    if x._type.dtype.is_complex and not (dtype.is_complex or dtype is bool_):
        warnings.warn(
            "Casting complex values to real discards the imaginary part", UserWarning, stacklevel=3
        )
    return apply(p.cast, x, dtype=dtype)


def require_tensor(value: Any, operation: str, name: str = "input") -> Tensor:
    """`value`, if it is a tensor; TypeError names the operation and what came instead."""
    if not isinstance(value, Tensor):
        raise TypeError(
            f"{operation}(): argument '{name}' must be Tensor, not {type(value).__name__}"
        )
    return value


def require_float(x: Any, operation: str) -> Tensor:
    """`x`, if it is a tensor of real numbers of a floating type; else NotImplementedError."""
    dtype = require_tensor(x, operation)._type.dtype
    if not dtype.is_floating_point:
        raise NotImplementedError(
            f'"{operation}" not implemented for {dtype.name}; convert it to a floating point dtype'
        )
    return x  # type: ignore[no-any-return]


def with_a_tensor(operation: str, *operands: Any) -> tuple[Any, ...]:
    """The operands; TypeError where none of them is a tensor."""
    if not any(isinstance(each, Tensor) for each in operands):
        names = ", ".join(type(each).__name__ for each in operands)
        raise TypeError(f"{operation}(): at least one argument must be Tensor, not ({names})")
    return operands


def refuse_complex(operation: str, *operands: Any) -> None:
    """NotImplementedError for tensors of complex numbers, of which `operation` would be wrong."""
    for each in operands:
        if isinstance(each, Tensor) and each._type.dtype.is_complex:
            raise NotImplementedError(
                f"{operation} is not implemented for complex numbers ({each._type.dtype.name})"
            )


def _bad_operand(value: Any, operation: str) -> TypeError:
    return TypeError(
        f"{operation}(): expected a Tensor or a number, got {type(value).__name__}; make a tensor "
        "of it with tgraph.tensor() or tgraph.from_numpy()"
    )


def result_type(*operands: Any) -> DType:
    """The dtype to which tensors and Python scalars promote together.

    >>> import tgraph as tg
    >>> tg.result_type(tg.ones(2, dtype=tg.int32), 1.5)
    tgraph.float32
    """
    ranks: tuple[list[DType], list[DType], list[DType]] = ([], [], [])
    for operand in operands:
        if isinstance(operand, Tensor):
            ranks[0 if operand._type.shape else 1].append(operand._type.dtype)
        elif is_scalar(operand):
            ranks[2].append(promotion.scalar_dtype(plain_scalar(operand)))
        elif isinstance(operand, DType):
            ranks[0].append(operand)
        else:
            raise _bad_operand(operand, "result_type")
    return promotion.result_type(*ranks)


def as_operand(value: Any, dtype: DType, operation: str, device: Device = CPU) -> Tensor:
    """A tensor of `dtype` for a tensor or number; on `device`, where it has no dimensions."""
    if isinstance(value, Tensor):
        if value._type.device is CPU and device is not CPU and not value._type.shape:
            value = on_device(value, device)
        return cast(value, dtype)
    if not isinstance(value, SCALARS):
        raise _bad_operand(value, operation)
    return constant(plain_scalar(value), dtype, device)


def on_device(x: Tensor, device: Device) -> Tensor:
    """`x` on `device`; `x` itself where it is there."""
    return x if x._type.device == device else apply(p.transfer, x, device=device)


def common_device(*operands: Any) -> Device:
    """The device of the operands that are tensors; of numbers alone that of new tensors.

    A tensor of the CPU without dimensions goes with those of other devices, as numbers do.
    """
    found = None
    for operand in operands:
        if isinstance(operand, Tensor):
            device = operand._type.device
            if operand._type.shape:
                return device
            if found is None or device is not CPU:
                found = device
    return as_device(None) if found is None else found


def together(*tensors: Tensor) -> list[Tensor]:
    """The tensors, those of the CPU without dimensions on the device of the others."""
    device = common_device(*tensors)
    return [
        on_device(each, device) if each._type.device is CPU and not each._type.shape else each
        for each in tensors
    ]


def promote(operation: str, *operands: Any) -> tuple[Tensor, ...]:
    """The operands as tensors of their promoted dtype."""
    for operand in operands:
        if not isinstance(operand, (Tensor, *SCALARS)):
            raise _bad_operand(operand, operation)
    dtype, device = result_type(*operands), common_device(*operands)
    return tuple(as_operand(operand, dtype, operation, device) for operand in operands)


def promote_pair(operation: str, a: Any, b: Any) -> tuple[Tensor, Tensor]:
    """`promote` for two operands, short for the common cases."""
    if isinstance(a, Tensor):
        dtype = a._type.dtype
        if isinstance(b, Tensor):
            if b._type.dtype is dtype and b._type.device is a._type.device:
                return a, b
        elif _rank(b) <= CATEGORY[dtype.kind]:
            return a, constant(b, dtype, a._type.device)
    elif isinstance(b, Tensor) and _rank(a) <= CATEGORY[b._type.dtype.kind]:
        return constant(a, b._type.dtype, b._type.device), b
    return promote(operation, a, b)  # type: ignore[return-value]


def _rank(value: Any) -> int:
    """The category of a number; above all of them for what else comes."""
    kind = type(value)
    return _RANKS.get(value.kind if issubclass(kind, TracedNumber) else kind, 4)


_RANKS = {bool: 0, int: 1, SymInt: 1, float: 2, complex: 3}


def promote_float(operation: str, *operands: Any) -> tuple[Tensor, ...]:
    """`promote`, with integers and booleans going on to the default float type."""
    if len(operands) == 2:
        for each in operands:
            if isinstance(each, Tensor) and each._type.dtype.is_differentiable:
                return promote_pair(operation, *operands)
    dtype = result_type(*operands)
    if not dtype.is_differentiable:
        dtype = promotion.default_dtype
    device = common_device(*operands)
    return tuple(as_operand(operand, dtype, operation, device) for operand in operands)


def as_float(x: Any, operation: str) -> Tensor:
    """`x` itself if it holds floats or complex numbers, else as the default float type."""
    tensor = x if isinstance(x, Tensor) else require_tensor(x, operation)
    if tensor._type.dtype.is_differentiable:
        return tensor
    return cast(tensor, promotion.default_dtype)


def as_real_float(x: Any, operation: str) -> Tensor:
    """`as_float` for a function of real numbers alone: NotImplementedError for complex ones."""
    tensor = as_float(x, operation)
    refuse_complex(operation, tensor)
    return tensor


def promote_real_float(operation: str, *operands: Any) -> tuple[Tensor, ...]:
    """`promote_float` for a function of real numbers alone."""
    promoted = promote_float(operation, *operands)
    refuse_complex(operation, *promoted)
    return promoted


def widened(x: Tensor) -> Tensor:
    """16-bit floats as float32: what takes several steps is computed so, and rounded once."""
    return cast(x, x._type.dtype.compute)


def as_number(x: Tensor) -> Tensor:
    """Booleans as int64, which is how they are summed and counted."""
    return cast(x, int64) if x._type.dtype is bool_ else x
