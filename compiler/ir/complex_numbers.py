"""Primitives that make complex numbers of real ones, and show the parts that numbers are made of.

- `complex(re, im)`: of two floats each, which broadcast, a complex number;
- `conj(x)`: the conjugates;
- `view_as_real(x)`: a complex x of shape S as floats of shape [*S, 2], real parts first, in the
  same memory;
- `view_as_complex(x)`: the other way round;
- `repack(x; source, dtype)`: unsigned integers, which `source` names, as those of another size, of
  which the last axis has more or less, in the same memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...runtime.dtypes import complex64, complex128, float32, float64
from .primitive import Attrs, Family, Primitive, register
from .shapes import broadcast
from .types import IRTypeError, TensorType

if TYPE_CHECKING:
    from .graph import Graph
    from .node import Node

Types = Sequence[TensorType]

_COMPLEX = frozenset({complex64, complex128})


def real_type(type_: TensorType) -> TensorType:
    """The type of the floats that lie in the memory of complex numbers."""
    return TensorType((*type_.shape, 2), type_.dtype.to_real(), type_.device)


def has_complex(graph: Graph) -> bool:
    """Whether any value of a graph is complex; graphs among attributes are not looked at."""
    for node in graph.nodes:
        type_ = node.type
        if type(type_) is TensorType:
            if type_.dtype in _COMPLEX:
                return True
        elif is_complex(node):
            return True
    return False


def is_complex(node: Node) -> bool:
    """Whether a value is complex, or one of several results."""
    types: Any = node.type
    return any(each.dtype.is_complex for each in types) if type(types) is tuple else (
        types.dtype.is_complex
    )  # fmt: skip


def pair_strides(strides: tuple[int, ...]) -> tuple[int, ...]:
    """Strides, in elements, of complex numbers as those of their parts."""
    return (*(2 * stride for stride in strides), 1)


def _infer_complex(types: Types, attrs: Attrs) -> TensorType:
    re, im = types
    if re.dtype is not im.dtype or re.dtype not in (float32, float64) or re.device != im.device:
        raise IRTypeError(f"expected two values of float32 or of float64, got {re} and {im}")
    return TensorType(broadcast(re.shape, im.shape), re.dtype.to_complex(), re.device)


def _infer_conj(types: Types, attrs: Attrs) -> TensorType:
    (x,) = types
    if not x.dtype.is_complex:
        raise IRTypeError(f"expected complex numbers, got {x}")
    return x


def _infer_view_as_real(types: Types, attrs: Attrs) -> TensorType:
    return real_type(_infer_conj(types, attrs))


def _infer_view_as_complex(types: Types, attrs: Attrs) -> TensorType:
    (x,) = types
    if x.shape[-1:] != (2,) or x.dtype not in (float32, float64):
        raise IRTypeError(f"expected pairs of float32 or float64 along the last axis, got {x}")
    return TensorType(x.shape[:-1], x.dtype.to_complex(), x.device)


def _infer_repack(types: Types, attrs: Attrs) -> TensorType:
    (x,), dtype = types, attrs["dtype"]
    if x.dtype is not attrs["source"] or {x.dtype.kind, dtype.kind} != {"uint"} or not x.shape:
        raise IRTypeError(f"repack expected unsigned integers along an axis, got {x} and {dtype}")
    *outer, last = x.shape
    old, new = x.dtype.itemsize, dtype.itemsize
    if last * old % new:
        raise IRTypeError(f"repack expected a last axis of whole elements of {dtype}, got {x}")
    return TensorType((*outer, last * old // new), dtype, x.device)


def _primitive(name: str, infer: object, arity: int = 1) -> Primitive:
    made = Primitive(name, Family.COMPLEX, infer, arity=arity, exact=True)  # type: ignore[arg-type]
    return register(made)


complex_ = _primitive("complex", _infer_complex, arity=2)
conj = _primitive("conj", _infer_conj)
view_as_real = _primitive("view_as_real", _infer_view_as_real)
view_as_complex = _primitive("view_as_complex", _infer_view_as_complex)
repack = _primitive("repack", _infer_repack)
