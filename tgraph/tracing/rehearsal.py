"""What a body would give, for loops of no turns: it is traced, and nothing runs or is changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..compiler.ir import TensorType
from ..core.compile_lock import COMPILE_LOCK
from ..core.state import state
from ..core.tensor import Tensor
from .trace_context import Trace


def rehearse(
    function: Callable[..., Sequence[Tensor]],
    types: Sequence[TensorType],
    watched: Sequence[Callable[..., Any]],
) -> None:
    """Call `function` on tensors of `types` that have no values."""
    with COMPILE_LOCK:
        trace, previous = Trace({}), state.context
        state.context = trace
        try:
            trace.body(function, types, watched)
        finally:
            state.context = previous
            trace.roll_back()
