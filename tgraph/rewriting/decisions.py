"""What a tensor decides: whether its truth is known, and `and` and `or` of several."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..compiler.ir import Family, Node
from ..compiler.ir import primitives as p
from ..core.carried_number import CarriedNumber
from ..core.eager_context import current_context
from ..core.tensor import Tensor
from ..runtime.dtypes import bool_
from ..tracing.bodies import Body
from ..tracing.control_flow import inlined

_Thunk = Callable[[], Any]


def is_traced(value: Any) -> bool:
    """Whether a value is a tensor, or a number, that Python does not know."""
    if type(value) is CarriedNumber:
        value = value.tensor
    if not isinstance(value, Tensor):
        return False
    context = current_context()
    return context.takes_bodies or not context.has_value(value)


def decision(value: Any) -> Tensor:
    """The truth of a tensor of one element, or of a value of Python's, as a single bool.

    RuntimeError for more elements, as Python has it.
    """
    if type(value) is CarriedNumber:
        return value.converted(bool).tensor
    if not isinstance(value, Tensor):
        return current_context().constant(bool(value), bool_)
    if value._type.numel != 1:
        count = "no values" if value._type.numel == 0 else "more than one value"
        raise RuntimeError(f"Boolean value of Tensor with {count} is ambiguous")
    single: Tensor = value.reshape(()) if value._type.shape else value
    return single if single._type.dtype is bool_ else single != 0  # type: ignore[return-value]


def all_of(first: Any, others: _Thunk) -> Tensor:
    """`first and others()`: the second is evaluated where the first is true."""
    return _combined(decision(first), others, is_and=True)


def any_of(first: Any, others: _Thunk) -> Tensor:
    """`first or others()`: the second is evaluated where the first is false."""
    return _combined(decision(first), others, is_and=False)


def _combined(first: Tensor, others: _Thunk, is_and: bool) -> Tensor:
    context = current_context()
    if not context.takes_bodies:
        second = decision(others())
        return first & second if is_and else first | second
    second = context.body(lambda: [decision(others())], (), [others])
    if _is_cheap(second):
        (value,) = inlined(second)
        return first & value if is_and else first | value
    known = context.body(lambda: [decision(not is_and)], (), ())
    bodies = [known, second] if is_and else [second, known]
    (found,) = context.branch(first, bodies)
    return found


def _is_cheap(body: Body) -> bool:
    """Whether a body costs less than a branch, and cannot fail."""
    return not body.changed and all(map(_may_run, body.graph(body.captured).nodes))


def _may_run(node: Node) -> bool:
    if node.primitive.family in (Family.SOURCE, Family.VIEW):
        return True
    if type(node.type) is tuple or node.type.shape or node.primitive is p.require:
        return False
    if node.primitive in (p.floor_divide, p.remainder):  # by zero
        return node.type.dtype.is_floating_point
    return node.primitive is p.copy or node.primitive.family is Family.ELEMENTWISE
