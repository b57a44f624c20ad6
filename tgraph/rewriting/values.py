"""What a variable holds behind a branch, or from turn to turn of a loop, in the graph.

Tensors are values of the graph, and numbers become such where they differ. All else that a variable
may hold (None, text, modules) has to be the same whatever happens.
"""

from __future__ import annotations

from typing import Any

from ..compiler.ir import TensorType, promotion
from ..compiler.ir.dim import SymInt
from ..compiler.ir.shapes import are_same
from ..core.carried_number import TYPES, CarriedNumber, is_natural, number_kind
from ..core.eager_context import current_context
from ..core.operands import is_scalar, result_type
from ..core.provenance import user_site
from ..core.tensor import Tensor, intern_type
from ..core.trace_state import TraceError
from ..core.traced_number import TracedNumber
from ..ops import creation
from ..ops.movement import expand
from .cells import UNDEFINED


def is_number(value: Any) -> bool:
    """Whether a value is a number of Python's or NumPy's, or stands for one."""
    return is_scalar(value) or isinstance(value, TracedNumber | SymInt)


def type_of(leaf: Any) -> TensorType | None:
    """The type that a tensor has or that a number would be of; None of other values."""
    if isinstance(leaf, Tensor):
        return leaf._type
    return _of_numbers(leaf) if is_number(leaf) else None


def _of_numbers(*numbers: Any) -> TensorType:
    """The type of the graph that keeps all digits of numbers: Python's have 64 bits."""
    kinds = [number_kind(each) for each in numbers]
    types = [TYPES[kind] if kind else result_type(n) for kind, n in zip(kinds, numbers)]
    return intern_type((), promotion.result_type(types))


def is_same(one: Any, other: Any) -> bool:
    """Whether two values of Python's are the same for whoever reads them."""
    if one is other:
        return True
    if type(one) is not type(other) or isinstance(one, Tensor | TracedNumber | SymInt):
        return False
    if is_number(one):
        return repr(one) == repr(other)  # tells 0.0 from -0.0, and finds NaN
    return isinstance(one, str | bytes | type(Ellipsis)) and one == other


def have_one_type(one: TensorType, other: TensorType) -> bool:
    same = one.dtype is other.dtype and one.device is other.device
    return same and are_same(one.shape, other.shape)


def common_type(one: Any, other: Any) -> TensorType | None:
    """The type in which both of two leaves can be told; None where there is none."""
    if is_number(one) and is_number(other):
        return _of_numbers(one, other)
    tensor, number = (other, one) if is_number(one) else (one, other)
    if not isinstance(tensor, Tensor):
        return None
    if is_number(number):
        is_kept = not tensor._type.shape and takes(tensor, number)
        return tensor._type if is_kept else None
    is_one = isinstance(number, Tensor) and have_one_type(tensor._type, number._type)
    return tensor._type if is_one else None


def takes(tensor: Tensor, number: Any) -> bool:
    """Whether a tensor keeps its dtype where it meets a number."""
    return result_type(tensor, number) is tensor._type.dtype


def as_tensor(leaf: Any, type_: TensorType) -> Tensor:
    """A leaf as a tensor of `type_`."""
    if isinstance(leaf, Tensor):
        made = leaf if leaf._type.dtype is type_.dtype else leaf.to(type_.dtype)
        return made if are_same(made._type.shape, type_.shape) else expand(made, type_.shape)
    made = current_context().constant(leaf, type_.dtype, type_.device)
    return expand(made, type_.shape) if type_.shape else made


def empty(type_: TensorType) -> Tensor:
    """What stands where a value is never read."""
    value = False if type_.dtype.kind == "bool" else 0
    return creation.full(type_.shape, value, dtype=type_.dtype, device=type_.device)


def shown(leaf: Any) -> str:
    """A leaf as an error names it."""
    if leaf is UNDEFINED:
        return "not defined"
    if isinstance(leaf, Tensor):
        return f"a tensor of type {leaf._type}"
    if leaf is None or isinstance(leaf, str | bool | int | float):
        return f"the {type(leaf).__name__} {leaf!r}" if leaf is not None else "None"
    if isinstance(leaf, TracedNumber | SymInt):
        return "a number"
    return f"of type {type(leaf).__name__}"


def error(text: str, *ways_out: str) -> TraceError:
    """Names the user's line, and what to write instead."""
    lines = "".join(f"\n    {each}" for each in ways_out)
    return TraceError(f"{text}, at {user_site()}." + (f" Write instead:{lines}" if lines else ""))


def standing(tensor: Tensor, *leaves: Any) -> Any:
    """`tensor`, which is what one of the `leaves` was: a number, if all of them are."""
    if not all(map(is_number, leaves)):
        return tensor
    return CarriedNumber(tensor, all(map(is_natural, leaves)))
