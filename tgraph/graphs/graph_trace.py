"""The context that records operations into a graph which is built up front.

It is a trace that is left and entered again. Four things differ from that of a compiled function:

- what is written into a tensor of the outside is *marked*: later reads see an `input` node that
  stands for the value, so that a run can tell which writes it needs;
- operations end: what they wrote is undone behind them, so that whatever is built later reads
  variables as a run finds them;
- draws of random numbers are marked, too (`draw_marks.py`): a run counts only those that it makes;
- first values are made at once (`first_values.py`).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

import numpy as np

from ..compiler.ir import Node, Primitive, TensorType, input_node
from ..compiler.ir.layouts import node_strides
from ..compiler.ir.shapes import are_same, contiguous_strides
from ..core.context import GRAPHS
from ..core.eager_context import EAGER
from ..core.provenance import user_site
from ..core.state import state
from ..core.tensor import Tensor, storage_of, wrap
from ..core.trace_state import HandleState, TraceError
from ..runtime.records import NamedTuple
from ..tracing.selections import of_no_call
from .draw_marks import DrawMarks
from .first_values import FirstValues
from .graph_sizes import GraphSizes
from .lookup import scoped
from .names import name_of
from .operation import Marker, Operation


class _Before(NamedTuple):
    """A variable as it was before something was written into it."""

    tensor: Tensor
    state: HandleState
    node: Node


class GraphTrace(DrawMarks, FirstValues):
    """Records into `graph`, a `graphs.graph.Graph`, while its construction goes on."""

    builds_graph = True

    def __init__(self, graph: Any) -> None:
        super().__init__({}, frozenset(), "a graph", count=of_no_call)
        self.graph = graph
        self.sizes: GraphSizes = GraphSizes(self)
        self.is_final = False
        self.rebinds = 0  # how often a tensor got another value
        self.markers = {}
        self.counters_behind = {}
        self._recorded: list[Node] = []
        self._known: set[Node] = set()  # all of them
        self.required: tuple[Node, ...] = ()  # by all that is recorded now
        self._names: set[str] = set()  # that are taken
        self.labels: dict[str, Any] = {}  # tensors and operations by their names
        self._serials_of_marks = itertools.count()
        self._gradients: dict[int, tuple[Tensor, Tensor | None]] = {}
        self._first: dict[int, _Before] = {}  # variables as a run finds them
        self._loose: dict[int, Tensor] = {}  # written, but in no operation
        self._under_way: list[dict[int, _Before]] = []  # what the operations under way have written
        self._left: list[HandleState] = []
        self.of_first_values = set()
        self.declared: dict[int, Tensor] = {}
        self.scopes_of_state = {}
        GRAPHS.add(self)

    def no_longer_used(self, tensor: Tensor) -> None:
        if id(tensor) in self.by_handle:
            raise TraceError(
                f"at {user_site()}, an optimizer steps some of the parameters that another "
                "operation of this graph steps together. Each operation needs an optimizer of its "
                "own, with the parameters that it steps."
            )

    # --- leaving and entering again ---

    def enter(self) -> None:
        """Put tensors of the outside into the state in which the construction left them."""
        for each in self._left:
            self.journal[id(each.tensor)] = HandleState.of(each.tensor)
            each.restore(grad=False)

    def leave(self) -> None:
        """Put them back as they were."""
        self._left = self.roll_back()

    @contextmanager
    def entered(self) -> Iterator[None]:
        """As if inside of `with graph:`, for a moment."""
        previous, state.context = state.context, self
        if isinstance(previous, GraphTrace):
            previous.leave()
        self.enter()
        try:
            yield
        finally:
            self.leave()
            if isinstance(previous, GraphTrace):
                previous.enter()
            state.context = previous

    def unique(self, name: str) -> str:
        """What the next input of this name will be called."""
        if name not in self._names:
            return name
        count = 2
        while f"{name}_{count}" in self._names:
            count += 1
        return f"{name}_{count}"

    def refuse_if_final(self) -> None:
        if self.is_final:
            raise RuntimeError(
                f"the graph is final: it was finalized, and nothing can be added to it, as "
                f"{user_site()} tries to"
            )

    def owns(self, node: Node) -> bool:
        """Whether a node was made in this graph."""
        return node in self.root.own

    # --- values ---

    def new_input(self, source: Any, name: str, type_: TensorType, strides: Any = None) -> Any:
        self.refuse_if_final()
        return super().new_input(source, self.take_name(name), type_, strides)

    def record(self, *what: Any, **more: Any) -> Node:
        node = super().record(*what, **more)
        if node not in self._known and not self.is_in_body:
            self._known.add(node)
            self._recorded.append(node)
        return node

    @property
    def recorded_count(self) -> int:
        return len(self._recorded)

    def recorded_at(self, start: int, where: Any) -> Iterator[Node]:
        """What was recorded from number `start` on, as long as that was at the line `where`."""
        for at in range(start, len(self._recorded)):
            if self._recorded[at].where != where:
                return
            yield self._recorded[at]

    def ends(self) -> list[Node]:
        """All that nothing else in the graph reads."""
        every = [*self._recorded, *self.markers]
        read = {each for node in every for each in node.inputs}
        read.update(mark.value for mark in self.markers.values() if mark.value is not None)
        read.update(self.of_first_values, self.selections)
        read.update(
            each._value for use in self.draws.generators.values() for each in (use.key, use.counter)
        )
        ends = [node for node in every if node not in read]
        return [node for node in ends if type(node.type) is TensorType and self._is_whole(node)]

    def _is_whole(self, node: Node) -> bool:
        mark = self.markers.get(node)
        return mark is None or mark.value is not None

    def evaluate(
        self, primitive: Primitive, tensors: tuple[Tensor, ...], attrs: dict[str, Any], type_: Any
    ) -> Any:
        self.refuse_if_final()
        value = super().evaluate(primitive, tensors, attrs, type_)
        if not self.required or self.is_in_body:  # which as a whole waits for what is required
            return value
        if type(value) is tuple:
            return tuple(map(self._behind, value))
        return self._behind(value)

    def positions(self, tensor: Tensor, operation: str) -> tuple[Tensor, ...]:
        found = super().positions(tensor, operation)
        if not self.required:
            return found
        return tuple(wrap(self._behind(each._value), each._type) for each in found)

    def _behind(self, node: Node) -> Node:
        """`node`, once what is required now has been done."""
        return self.mark(node.type, "after", node, requires=self.required)

    def mark(self, type_: TensorType, name: str, value: Node | None, **what: Any) -> Node:
        """A node that stands for `value`, but is no other one's; see `Marker`."""
        where = self.site()
        node = input_node(name, type_, where)
        if value is not None:
            strides = node_strides(value)
            if not are_same(strides, contiguous_strides(type_.shape)):
                attrs = MappingProxyType({**node.attrs, "strides": strides})
                node = Node(node.primitive, (), attrs, type_, where)
        self._own.add(node)
        serial = next(self._serials_of_marks)
        self.markers[node] = Marker(serial, value, where=str(where), **what)
        return node

    def _capture(self, tensor: Tensor) -> Node:
        storage_of(tensor)  # there is one from now on, as views of it look there for changes
        if id(tensor) not in self.names:
            self.names[id(tensor)] = name_of(tensor, self._known_name, self.scope_of_state)
        node = super()._capture(tensor)
        if tensor._view is None:
            self._first[id(tensor)] = _Before(tensor, HandleState.of(tensor), node)
        return node

    def _known_name(self, tensor: Tensor) -> str | None:
        found = self.by_handle.get(id(tensor))
        return None if found is None else str(found.node.attrs["name"])

    def scope_of_state(self, made: Any) -> str:
        """How names of a Parameter or module begin that was made in a name_scope."""
        found = self.scopes_of_state.get(id(made))
        return "" if found is None else f"{found[1]}."

    def leaked(self, node: Node) -> TraceError:
        return TraceError(
            f"a tensor that was made at {node.where} in another graph, or in a traced function, is "
            f"used in this graph at {user_site()}. Graphs share no tensors: build both parts in "
            "one graph, or fetch the one and feed it to a placeholder of the other."
        )

    def outside(self, node: Node, type_: TensorType) -> TraceError:
        """The error for a tensor of the graph that is used where the graph is not built."""
        return TraceError(
            f"a tensor of type {type_} of a graph, made at {node.where}, has no value at "
            f"{user_site()}: it gets one whenever a session runs the graph. Fetch it, by "
            "session.run(tensor), or go on building inside `with graph:`."
        )

    def declare(self, tensor: Tensor, name: str) -> None:
        """Let a tensor of the outside be a variable of this name."""
        self.declared[id(tensor)] = tensor
        self.names[id(tensor)] = scoped(name)
        self.value_of(tensor)

    def label(self, tensor: Tensor, name: str) -> None:
        self._refuse_in_body("names a tensor")
        self.refuse_if_final()
        self.value_of(tensor)
        self.labels[self.take_name(scoped(name))] = tensor

    def take_name(self, name: str) -> str:
        """A name that nothing in the graph has, which is taken from now on."""
        name = self.unique(name)
        self._names.add(name)
        return name

    def host_array(self, tensor: Tensor, operation: str) -> np.ndarray[Any, Any]:
        if type(tensor._value) is Node:
            where = f"was made at {tensor._value.where}"
        elif self.graph.is_variable(tensor):
            where = f"is the variable `{self.name_of(tensor)}`"
        else:
            return EAGER.host_array(tensor, operation)
        raise TraceError(
            f"{operation} needs the value of a tensor at {user_site()}, which {where} and has a "
            "value only in a session that runs the graph: fetch it, by session.run(tensor). To "
            "choose between values in the graph, use tg.where or tg.cond."
        )

    # --- gradients: those of the graph, which no run writes into tensors of the outside ---

    def read_grad(self, tensor: Tensor) -> Tensor | None:
        if self.is_in_body or not self.is_outside(tensor):
            return super().read_grad(tensor)
        found = self._gradients.get(id(tensor))
        return None if found is None else found[1]

    def write_grad(self, tensor: Tensor, grad: Tensor | None) -> None:
        if self.is_in_body:
            super().write_grad(tensor, grad)
        elif self.is_outside(tensor):
            self._gradients[id(tensor)] = tensor, grad
        else:
            tensor._grad = grad

    # --- variables ---

    def update(self, function: Any, args: Sequence[Any]) -> None:
        function(*args)  # marks are not repeated by stamps

    def rebind(self, tensor: Tensor, node: Node) -> None:
        self.refuse_if_final()
        self.rebinds += 1
        if self.is_in_body or type(tensor._value) is Node or tensor._view is not None:
            super().rebind(tensor, node)
            return
        key, previous = id(tensor), self.table[id(tensor)]
        if not self._under_way:
            self._loose[key] = tensor
        elif key not in self._under_way[-1]:
            self._under_way[-1][key] = _Before(tensor, HandleState.of(tensor), previous)
        name = f"{self.name_of(tensor)}'"
        self.table[key] = self.mark(
            node.type, name, node, requires=self.required, variable=tensor, previous=previous
        )

    def new_operation(self, name: str) -> Operation:
        label = self.take_name(scoped(name))
        made = self.labels[label] = Operation(self.graph, label)
        return made

    @contextmanager
    def operation(self, name: str, closing: bool = False) -> Iterator[Operation]:
        self.refuse_if_final()
        made = self.new_operation(name)
        self._under_way.append({})
        token = self.last_token
        try:
            yield made
        except BaseException:
            self._undo(self._under_way.pop().values())
            self.last_token = token
            del self.labels[made.name]
            raise
        own = self._under_way.pop()
        ends = {key: (before.tensor, self.table[key]) for key, before in own.items()}
        closing = closing and not self._under_way
        if closing or self.last_token is not token:
            made.token = self.last_token
        self.last_token = None if closing else token
        if closing:
            ends |= {key: (each, self.table[key]) for key, each in self._loose.items()}
            own |= {key: self._first[key] for key in self._loose}
            self._loose.clear()
        made.written = ends
        called = () if made.token is None else (made.token,)
        made.nodes = (*self.required, *called, *(node for _, node in ends.values()))
        self._undo(own.values())

    def _undo(self, written: Any) -> None:
        """Let variables have the value, the version and the history of before."""
        for tensor, before, node in written:
            self._show(tensor, node, before)

    def _show(self, tensor: Tensor, node: Node, as_in: HandleState | None = None) -> None:
        """Let the value of a variable be `node` from now on; views look again."""
        changes = storage_of(tensor).changes
        if as_in is not None:
            as_in.restore(grad=False)
        storage_of(tensor).changes = changes + 1
        self.table[id(tensor)] = node

    @contextmanager
    def after(self, operations: Sequence[Operation], nodes: Sequence[Node]) -> Iterator[None]:
        """All that is recorded meanwhile needs `nodes`, and sees what operations have written."""
        shown: dict[int, _Before] = {}
        for each in operations:
            for key, (tensor, node) in each.written.items():
                if key in shown:
                    raise ValueError(
                        f"two operations that were given to control_dependencies() both write "
                        f"`{self.name_of(tensor)}`: wait for one inside of the other instead"
                    )
                shown[key] = _Before(tensor, HandleState.of(tensor), self.table[key])
                self._show(tensor, node)
        outer = self.required
        self.required = tuple(
            dict.fromkeys([*outer, *nodes, *(node for each in operations for node in each.nodes)])
        )
        seen = {key: self.table[key] for key in shown}
        token = self.last_token
        called = [each.token for each in operations if each.token is not None]
        first = self.last_token = called[-1] if called else token
        try:
            yield
        finally:
            self.required = outer
            if self.last_token is first:
                self.last_token = token
            self._undo(shown[key] for key in shown if self.table[key] is seen[key])
