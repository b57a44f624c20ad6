"""What a trace says where a value is asked for that only a call will have, and the ways out."""

from __future__ import annotations

from ..core.provenance import user_site
from ..core.trace_state import TraceError

WITH_CONTROL_FLOW = (
    "tg.compile(control_flow=True) makes branches and loops of Python's `if`, `while` and `for`."
)
_WAY_OUT = "Move it out of the compiled function."
_RETURN_IT = "return the tensor, and ask for its value outside of the compiled function."
_KNOWN_SHAPE = (
    "Results of a shape that depends on values cannot be compiled. Use tg.where, masked_fill or "
    "multiplication with the mask, which keep the shape, or move it out of the compiled function."
)
_WAYS_OUT = {
    "bool": "Use tg.where(condition, a, b) to choose between values, or move the decision out of "
    "the compiled function.",
    "item": f"Go on with the tensor of no dimensions instead, or {_RETURN_IT}",
    "float": f"Go on with the tensor of no dimensions instead, or {_RETURN_IT}",
    "int": f"Go on with the tensor of no dimensions instead, or {_RETURN_IT}",
    "numpy": f"Use tgraph's own functions here, or {_RETURN_IT}",
    "tolist": f"Go on with tensors instead, or {_RETURN_IT}",
    "nonzero": _KNOWN_SHAPE,
    "unique": _KNOWN_SHAPE,
    "unique_consecutive": _KNOWN_SHAPE,
}


def value_is_asked(operation: str, function: str, why: str) -> TraceError:
    """The error for an operation that needs the value of a tensor."""
    return TraceError(
        f"{operation} needs the value of a tensor at {user_site()}, but {function} is "
        f"being traced: values are known only when the compiled function runs. {why}"
        + _WAYS_OUT.get(operation.partition("(")[0], _WAY_OUT)
    )


def loop_is_written_out(function: str, why: str) -> TraceError:
    """The error for a loop over a tensor."""
    return TraceError(
        f"iterating over a tensor at {user_site()}, while {function} is being traced, "
        f"would write out the loop once per element of the first dimension. {why}Use "
        "operations over the whole tensor, or iterate over its unbind() to write the loop out."
    )


def leaked(what: str) -> TraceError:
    """The error for what was kept after its trace was over."""
    return TraceError(
        f"{what} is used outside of it, at {user_site()}. It was kept (in a library, a thread, "
        "...) after its trace was over, when it has no value: return it from the compiled function "
        "instead, or write it into a tensor of the outside with copy_()."
    )
