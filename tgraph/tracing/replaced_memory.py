"""Assignment to `.data` of a tensor of the outside: each call gives it the memory of another one.

From then on the tensor is a view of the other one, and a call assigns what stands for that. What
showed its memory before shows that of before, and is made before the call assigns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..compiler.ir import primitives as p
from ..core.dispatch import apply
from ..core.tensor import Tensor, is_parted, part_from_views, root_of
from ..core.trace_state import TraceError
from ..core.views import data

if TYPE_CHECKING:
    from ..compiler.ir import Node
    from .trace_context import Trace


class ReplacedMemory:
    """The tensors of the outside that have other memory now, by their ids.

    `written` has what was written in place into the memory of before.
    """

    def __init__(self) -> None:
        self.tensors: dict[int, Tensor] = {}
        self.written: dict[int, Node] = {}

    def replace(self, trace: Trace, tensor: Tensor, new: Tensor) -> None:
        """`tensor` shows the memory of `new` from now on."""
        shown = data(new)
        view = shown._view
        assert view is not None
        if root_of(new) is root_of(tensor):
            if view.steps == (() if tensor._view is None else tensor._view.steps):
                return  # its own memory
            return self.replace(trace, tensor, apply(p.copy, shown))
        if trace.is_outside(tensor) and id(tensor) not in self.tensors:
            self._leave(trace, tensor)
        trace.touch(tensor)
        tensor._view = view
        part_from_views(tensor)
        trace.rebind(tensor, trace.value_of(shown))

    def _leave(self, trace: Trace, tensor: Tensor) -> None:
        """Note what is left in the memory of a tensor of the outside."""
        self.tensors[id(tensor)] = tensor
        entry = trace.by_handle.get(id(tensor))
        if entry is None or entry.shown or trace.value_of(tensor) is entry.node:
            return
        if "strides" in entry.node.attrs:
            raise TraceError(
                "a compiled function writes into a tensor that is not contiguous, and assigns to "
                "its .data; write copy_() in the place of .data ="
            )
        self.written[id(tensor)] = trace.value_of(tensor)

    def check(self, tensor: Tensor) -> None:
        """TraceError where a view of memory that its base has no more cannot be told apart."""
        view = tensor._view
        if view is not None and is_parted(view):
            raise TraceError(
                "a compiled function assigns to .data of a tensor, and makes use of another one "
                "that shows the memory of before, which was or is written. clone() it first, or "
                "write copy_() in the place of .data ="
            )
