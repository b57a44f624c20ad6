"""Errors in a graph under construction: they name the user's line and placeholders."""

from __future__ import annotations

import re
from types import TracebackType

from ..compiler.ir import Node, toposort
from ..compiler.ir import primitives as p
from ..core import pytree
from ..core.provenance import is_internal
from ..core.tensor import Tensor
from ..core.trace_state import TraceError
from ..core.traced_float import Specialize
from .graph_trace import GraphTrace

_KINDS = (RuntimeError, ValueError, TypeError, IndexError, NotImplementedError)


def explain_error(trace: GraphTrace, error: BaseException) -> None:
    """Add to an error that leaves `with graph:` which line and which placeholders it is about."""
    if isinstance(error, Specialize):
        raise TraceError(
            f"the value of a number is asked for at {_user_line(error.__traceback__)}, while a "
            "graph is built, which each run reads anew: one of tg.host(), or a hyperparameter of "
            "an optimizer. Compute with it as it is."
        ) from None
    if not isinstance(error, _KINDS) or isinstance(error, TraceError) or len(error.args) != 1:
        return
    if not isinstance(error.args[0], str) or not _is_ours(error.__traceback__):
        return
    notes = [f"at {_user_line(error.__traceback__)}", *_operands(trace, error.__traceback__)]
    told = error.args[0]
    for dim in trace.sizes.dims:
        if re.search(rf"(?<![\w.]){re.escape(dim.name)}(?![\w.])", " ".join([told, *notes])):
            notes.append(f"{dim.name} is {trace.sizes.axes_of[dim]}")
    error.args = (f"{told} ({'; '.join(notes)})",)


def _is_ours(traceback: TracebackType | None) -> bool:
    """Whether an error was raised in this package, called by the user."""
    last = traceback
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    return last is not None and is_internal(last.tb_frame.f_code.co_filename)


def _last_of_user(traceback: TracebackType | None) -> TracebackType | None:
    found = None
    while traceback is not None:
        if not is_internal(traceback.tb_frame.f_code.co_filename):
            found = traceback
        traceback = traceback.tb_next
    return found


def _user_line(traceback: TracebackType | None) -> str:
    found = _last_of_user(traceback)
    if found is None:
        return "an unknown line"
    return f"{found.tb_frame.f_code.co_filename}:{found.tb_lineno}"


def _operands(trace: GraphTrace, traceback: TracebackType | None) -> list[str]:
    """The tensors that the function of ours was called with, and where they come from."""
    found = _last_of_user(traceback)
    if found is None or found.tb_next is None:
        return []
    frame, told, seen = found.tb_next.tb_frame, [], set()
    code = frame.f_code
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount + 2]
    values = [frame.f_locals[name] for name in names if name in frame.f_locals]
    for tensor in pytree.flatten(values)[0]:
        if isinstance(tensor, Tensor) and id(tensor) not in seen:
            seen.add(id(tensor))
            told.append(_origin(trace, tensor))
    return told


def _origin(trace: GraphTrace, tensor: Tensor) -> str:
    node = tensor._value if type(tensor._value) is Node else trace.table.get(id(tensor))
    if node is None:
        return f"{tensor._type} is {trace.name_of(tensor)}"
    placeholders = {each.node: each for each in list(trace.graph.placeholders.values())}
    if node in placeholders:
        return f"{tensor._type} is placeholder '{placeholders[node].name}' ({node.where})"
    if node.primitive is p.input_:
        return f"{tensor._type} is {node.attrs['name']}"
    reached = toposort([node])
    names = [f"'{placeholders[each].name}'" for each in reached if each in placeholders]
    of = f" of placeholder {', '.join(names)}" if names else ""
    return f"{tensor._type} is made{of} at {node.where}"
