"""Where nodes are recorded: the traced function itself, or the body of a branch or loop.

A tensor that was made outside of a body stands there for an input of its own. What the body then
changes about it, values and histories, is known inside alone: a scope keeps the values in a table,
and puts the handles back when it is left.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ..compiler.ir import Builder, Node, TensorType, input_node
from ..compiler.ir import primitives as p
from ..compiler.ir.size_number import is_expression
from ..core.context import use_context
from ..core.dispatch import settled, twin_of
from ..core.provenance import user_site
from ..core.tensor import Lifted, Tensor, root_of, shared_storage, wrap
from ..core.trace_state import Boundary, GeneratorUse, HandleState, TraceError, is_leaf
from ..runtime.records import record

if TYPE_CHECKING:
    from .trace_context import Trace


@record(eq=False)
class Captured:
    """A tensor of the outside of a body, and what stands for it inside.

    `operand` is its value and history out there when the body was recorded, whatever is written to
    it afterwards. `twin` is what the body begins with, which gradients are asked of.
    """

    tensor: Tensor
    operand: Tensor
    node: Node
    twin: Tensor


class Scope:
    """Where nodes are recorded: the traced function itself, or a body inside of it."""

    def __init__(self, outer: Scope | None = None, over: Any = None) -> None:
        self.outer = outer
        self.over = over  # the lifted context that the body was recorded for, of one over the trace
        self.builder = Builder()
        self.own: set[Node] = set()
        self.constants: dict[Any, Node] = {}
        # id of a tensor of the outside -> its current value, and how it was when first touched
        self.table: dict[int, Node] = {}
        self.journal: dict[int, HandleState] = {}
        self._left: list[HandleState] = []  # how it was inside, while the scope is not entered
        self.captured: dict[int, Captured] = {}  # by the id of the tensor outside
        self.operands: dict[int, Captured] = {}  # by that of the operand
        # id of a tensor -> how it was when it last became an operand, and that
        self._as_read: dict[int, tuple[tuple[Any, ...], Tensor]] = {}
        self.written: dict[int, Tensor] = {}  # tensors of the outside that are written here
        self.assumed: dict[int, Tensor] = {}  # what must not be written for the graph to hold
        self.moved: list[Tensor] = []  # captured ones with a history inside alone, for tangents
        self.is_wrong = False  # it was: the body has to be traced again
        self.draws: dict[int, GeneratorUse] = {}
        self.draws_from: dict[int, Tensor] = {}  # id of a generator -> its counter, as given
        self.pure = ""  # why nothing may be drawn or written here

    def parameter(self, type_: TensorType, name: str, requires_grad: bool) -> Tensor:
        handle = wrap(self.input(type_, name), type_)
        if requires_grad and type_.dtype.is_differentiable:
            handle._record, handle._requires_grad = Boundary(type_, name), True
        return handle

    def input(self, type_: TensorType, name: str) -> Node:
        node = input_node(name, type_)
        self.own.add(node)
        return node

    def owns(self, tensor: Tensor) -> bool:
        """Whether a tensor was made here."""
        return type(tensor._value) is Node and tensor._value in self.own

    # --- tensors of the outside ---

    def capture(self, trace: Trace, tensor: Tensor) -> Node:
        """What stands for a tensor that was made outside."""
        assert self.outer is not None
        if self.is_above(tensor):
            found = self._captured(trace, tensor, "captured")
            self.table[id(tensor)] = found.node
            return found.node
        root = root_of(tensor)
        is_written = id(root) in trace.carried
        if is_written and tensor is not root:  # it shows what may be written here
            trace.touch(tensor)
            return trace.capture_view(tensor)
        with trace.around(tensor):
            settled(tensor)
            node = trace.value_of(tensor)
        is_number = _is_number(node) and not is_written and not tensor._requires_grad
        if is_number or tensor is not root:
            self.assumed[id(root)] = root
        if is_number:
            made = self.builder.apply(node.primitive, (), node.attrs, node.where, node.type)
            self.own.add(made)
            return made
        found = self._captured(trace, tensor, node.attrs.get("name", "captured"))
        self.table[id(tensor)] = found.node
        return found.node

    def capture_history(self, trace: Trace, tensor: Tensor) -> None:
        """Let gradients be asked of a view itself, whose value comes from its base."""
        self._captured(trace, tensor, "captured")

    def _captured(self, trace: Trace, tensor: Tensor, name: str) -> Captured:
        assert self.outer is not None
        with trace.around(tensor):
            if self.is_above(tensor):
                with use_context(self.over):
                    operand = twin_of(settled(tensor), tensor._value)
            else:
                operand = self.outer.operand_of(trace, tensor)
        trace.touch(tensor)
        carried = trace.carried.get(id(tensor))
        leaf = tensor._requires_grad and is_leaf(tensor)
        twin = wrap(self.input(tensor._type, name), tensor._type)
        is_moved = not tensor._requires_grad and self._is_moved(tensor)
        if is_moved:
            self.moved.append(tensor)
        if tensor._requires_grad or is_moved or (carried is not None and carried.requires_grad):
            twin._record = Boundary(tensor._type, name, is_leaf=leaf)
            twin._requires_grad = True
        tensor._record, tensor._index = twin._record, 0
        tensor._requires_grad = twin._requires_grad
        found = self.captured[id(tensor)] = Captured(tensor, operand, twin._value, twin)
        self.operands[id(operand)] = found
        return found

    def is_above(self, tensor: Tensor) -> bool:
        """Whether a tensor belongs to the contexts over the trace that this body is recorded for.
        What is recorded here knows it for one of the trace."""
        value, context = tensor._value, self.over
        if not isinstance(value, Lifted):
            return False
        while context is not None and context.lifts:
            if value.context is context:
                return True
            context = context.below
        return False

    def _is_moved(self, tensor: Tensor) -> bool:
        """Whether a tensor of the outside may have a tangent."""
        if self.over is None or not (self.over.pushes and tensor._type.dtype.is_differentiable):
            return False
        return self.is_above(tensor) or self.over.was_moved(tensor)

    def operand_of(self, trace: Trace, tensor: Tensor) -> Tensor:
        """A handle of the value that a tensor has now, and of its history."""
        node = trace.value_of(settled(tensor))
        now = node, tensor._record, tensor._index, tensor._requires_grad
        before, found = self._as_read.get(id(tensor), (None, None))
        if found is None or before != now:
            found = twin_of(tensor, node)
            self._as_read[id(tensor)] = now, found
        return found

    def expect_gradients(
        self, trace: Trace, written: Sequence[Tensor], moved: Sequence[Tensor]
    ) -> None:
        """Begin with the histories that tensors of the outside have, as an earlier trace found,
        after a turn at the latest: what reads them first asks their handles whether they have one.
        """
        for tensor in moved:
            trace.value_of(tensor)
        for tensor in written:
            if trace.carried[id(tensor)].requires_grad:
                trace.value_of(tensor)
                self.written[id(tensor)] = tensor
                shared_storage(tensor).changes += 1  # so that views ask again, too

    def touch(self, trace: Trace, tensor: Tensor) -> None:
        """Note how a tensor of the outside was, before anything about it changes."""
        if id(tensor) not in self.journal and not self.owns(tensor):
            assert self.outer is not None
            if not self.is_above(tensor):
                with trace.within(self.outer):
                    trace.touch(tensor)
            self.journal[id(tensor)] = HandleState.of(tensor)

    def note_write(self, trace: Trace, tensor: Tensor) -> None:
        """A tensor of the outside that is written becomes a part of what the body carries."""
        root = root_of(tensor)
        if self.owns(root):
            return
        self._check_over(root)
        if self.pure:
            raise TraceError(
                f"a tensor of the outside is written in {self.pure}, at {user_site()}, which "
                "cannot be compiled; write it before or behind"
            )
        self.written[id(root)] = root
        trace.carry(root)
        if id(root) in self.assumed:
            self.is_wrong = True

    def _check_over(self, root: Tensor) -> None:
        """NotImplementedError for a write where it is to be selected by what examples decide."""
        scope: Scope | None = self
        while scope is not None and not scope.owns(root):
            if scope.over is not None:
                raise NotImplementedError(
                    f"{scope.over.name}: a branch or loop writes a tensor of type {root._type}, "
                    f"which it has not made, in place, at {user_site()}. Here examples go "
                    "different ways, of which all are computed: let the branch or loop return the "
                    "new value instead."
                )
            scope = scope.outer

    def check_recording(self) -> None:
        """NotImplementedError where forward mode would go through what gradients do not."""
        scope: Scope | None = self
        while scope is not None:
            if scope.over is not None and scope.over.pushes:
                raise NotImplementedError(
                    f"jvp: the body of a compiled loop that a tensor ends has no_grad() in it, at "
                    f"{user_site()}, through which tangents go all the same. Use stop_gradient() "
                    "or detach(), at which both end, or pass max_iterations."
                )
            scope = scope.outer

    def check_touched(self) -> None:
        """TraceError where other things than values of the outside were changed."""
        for key, before in self.journal.items():
            tensor, captured = before.tensor, self.captured.get(key)
            flag = before.requires_grad if captured is None else captured.twin._requires_grad
            changed = tensor._requires_grad is not flag
            hooks = tensor._hooks
            if hooks is not before.hooks or (hooks or {}) != (before.hooks_held or {}):
                changed = True
            elif id(root_of(tensor)) in self.written:
                changed = False
            if changed:
                raise TraceError(
                    "the body of a branch or loop changes requires_grad or hooks of a tensor of "
                    f"the outside, at {user_site()}, which cannot be compiled; do it outside"
                )

    @contextmanager
    def entered(self, trace: Trace) -> Iterator[None]:
        """Record into this scope, with tensors of the outside as it left them."""
        self.journal = {id(each.tensor): HandleState.of(each.tensor) for each in self._left}
        for each in self._left:
            each.restore(grad=False)
        try:
            with trace.within(self):
                yield
        finally:
            self._left = [HandleState.of(each.tensor) for each in self.journal.values()]
            for before in reversed(self.journal.values()):
                before.restore(grad=False)

    # --- random numbers ---

    def use(self, outer: GeneratorUse) -> GeneratorUse:
        """A generator inside of this body, whose counter is given to the body and comes back."""
        counter = self.parameter(outer.counter._type, "counter", False)
        self.draws_from[id(outer.generator)] = counter
        return GeneratorUse(outer.generator, outer.key, counter)


def _is_number(node: Node) -> bool:
    """Whether it is cheaper to make again; an expression of sizes belongs to the graph around."""
    return node.primitive is p.full and not is_expression(node.attrs["value"]) and not node.shape
