"""Tensors of the outside that bodies of branches and loops write: what they carry.

Such a body takes the tensor and gives it, like a counter of random numbers: it becomes a part of
the state of a loop, or a result of a branch, and is written back behind it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..compiler.ir import primitives as p
from ..core.dispatch import apply, settled
from ..core.inplace import count_writes, take_history
from ..core.state import state
from ..core.tensor import Tensor, wrap
from ..runtime.records import record

if TYPE_CHECKING:
    from .bodies import Body
    from .trace_context import Trace


@record()
class Carried:
    """A tensor that some body writes; `requires_grad` where it does so after a turn at least."""

    tensor: Tensor
    requires_grad: bool


@record()
class Written:
    """What a body did to a tensor: how often it counts as written, and whether as an operation
    that gradients know of."""

    times: int
    has_history: bool


def written_operand(trace: Trace, tensor: Tensor) -> Tensor:
    """The value and history of a tensor that is to be written, which later writes do not change."""
    if tensor._requires_grad and state.grad_enabled:
        return apply(p.copy, tensor)
    return wrap(trace.value_of(settled(tensor)), tensor._type)


def write_back(trace: Trace, tensor: Tensor, result: Tensor, bodies: Sequence[Body]) -> None:
    """Let `tensor` be what a branch or loop over `bodies` made of it."""
    done = [each.written[id(tensor)] for each in bodies if id(tensor) in each.written]
    trace.touch(tensor)
    trace.write(tensor, result)
    count_writes(tensor, max(each.times for each in done), follow=False)
    if result._requires_grad and any(each.has_history for each in done):
        take_history(tensor, result)
