"""Graphs that are built up front: `with Graph() as g`, placeholders, operations, scopes."""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any

from ..compiler.ir import Graph as IRGraph
from ..compiler.ir import Node, input_node
from ..core.state import state
from ..core.tensor import Tensor
from ..nn.parameter import Parameter
from .build_errors import explain_error
from .fetches import fetches_of
from .graph_trace import GraphTrace
from .lookup import named
from .needed import Needed, needed
from .operation import Operation
from .placeholder import Placeholder


class Graph:
    """A graph that is built once and run in sessions, as in TensorFlow 1.

    Inside `with graph:` every operation of this thread is added to the graph instead of being
    computed, on placeholders, and on tensors and modules of the outside. Of those, Parameters, and
    tensors that the graph writes in place, are its *variables*: each session has values of its own
    for them, which begin as those of the tensors. Others are read anew by each run.

    What is written in place is seen by what is built after it, as in eager code, and a run makes
    the writes that its fetches were computed from. An *operation* (`operation`, `minimize`,
    `assign`) ends what it writes: whatever is built behind it reads variables as a run finds them,
    unless `control_dependencies` says otherwise. `minimize` takes in what was written before it.

    >>> import tgraph as tg
    >>> with tg.Graph() as g:
    ...     x = tg.placeholder(tg.float32, (None, 2), "x")
    ...     y = (x * 3).sum(dim=1)
    >>> session = tg.Session(g)
    >>> session.run(y, {x: [[1.0, 2.0], [3.0, 4.0]]})
    tensor([ 9., 21.])
    """

    def __init__(self) -> None:
        self.trace = GraphTrace(self)
        self.placeholders: dict[int, Placeholder] = {}  # by the id of the tensor
        self.plans: dict[Any, Any] = {}  # of sessions, by what is fetched
        self.lock = threading.RLock()
        self._held_inputs: dict[Node, Node] = {}
        self.results: Any = None  # of the function whose graph it is
        self._outer: list[Any] = []
        self._thread = 0
        self._variables: tuple[Any, dict[str, Tensor], set[int]] | None = None

    # --- construction ---

    def __enter__(self) -> Graph:
        previous, here = state.context, threading.get_ident()
        self.trace.check_outside()
        with self.lock:
            if self._outer and self._thread != here:
                raise RuntimeError("the graph is being built by another thread")
            if previous is not None and previous.tracing and not isinstance(previous, GraphTrace):
                raise RuntimeError("a graph cannot be built in a function that is being traced")
            self._outer.append(previous)
            self._thread = here
        if isinstance(previous, GraphTrace):
            previous.leave()
        self.trace.enter()
        state.context = self.trace
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.trace.leave()
        previous = state.context = self._outer.pop()
        if isinstance(previous, GraphTrace):
            previous.enter()
        if error is not None:
            explain_error(self.trace, error)

    def finalize(self) -> None:
        """Nothing can be added from now on; a RuntimeError says so where somebody tries."""
        self.trace.is_final = True

    def operation(self, name: str = "operation") -> AbstractContextManager[Operation]:
        """What is written in place in a `with` block, as one operation that runs can fetch.

        Behind the block, variables are what they were before it.
        """
        return self.trace.operation(name)

    # --- what there is ---

    def __repr__(self) -> str:
        count = self.trace.recorded_count
        names = ", ".join(each.name for each in self.placeholders.values())
        return f"<Graph of {count} operations, {len(self.variables)} variables, fed {names or '-'}>"

    def __getitem__(self, name: str) -> Any:
        """The placeholder, tensor, operation or variable of a name; KeyError where there is none.

        Names stand behind those of scopes, separated by `.` or `/`; `identity` gives tensors one.
        """
        return named(self.trace, name)

    @property
    def names(self) -> list[str]:
        """Of placeholders, operations and named tensors, in their order, then of variables."""
        return [*self.trace.labels, *self.variables]

    def is_variable(self, tensor: Tensor) -> bool:
        """Whether a tensor of the outside is a variable of the graph."""
        return id(tensor) in self._known_variables()[1]

    @property
    def variables(self) -> dict[str, Tensor]:
        """Parameters that the graph uses, and tensors that it writes, by their names in it."""
        return dict(self._known_variables()[0])

    def _known_variables(self) -> tuple[dict[str, Tensor], set[int]]:
        """By name, and their ids; looked up again when the graph has changed."""
        trace = self.trace
        version = trace.rebinds, len(trace.inputs)
        if self._variables is None or self._variables[0] != version:
            marks = list(trace.markers.values())
            written = {id(mark.variable) for mark in marks} | trace.declared.keys()
            found: dict[str, Tensor] = {}
            for entry in list(trace.inputs):
                tensor = entry.source.key
                if entry.source.kind != "captured" or entry.shown:
                    continue
                if isinstance(tensor, Parameter) or id(tensor) in written:
                    found[entry.node.attrs["name"]] = tensor
            self._variables = version, found, set(map(id, found.values()))
        return self._variables[1:]

    def held_input(self, node: Node) -> Node:
        """The input that stands for a node whose value is known from before."""
        with self.lock:
            found = self._held_inputs.get(node)
            if found is None:
                found = self._held_inputs[node] = input_node("held", node.type, node.where)
            return found

    def ir(self, fetches: Any = None) -> IRGraph:
        """What a run for `fetches` computes, as a graph that `print` and `tg.draw` take.

        Its outputs are the fetched tensors, then new values of variables. Without `fetches`, all
        that the graph has is in it.
        """
        return self.part(fetches).graph

    def part(self, fetches: Any = None) -> Needed:
        """The part of the graph that a run for `fetches` needs; all of it for None."""
        trace = self.trace
        if fetches is None:
            return needed(trace, trace.ends(), compete=True)
        asked = fetches_of(trace, fetches)
        return needed(trace, asked.nodes, asked.others)
