"""A traced graph as a function of tensors that can be differentiated, any number of times.

The forward graph and the graph of its gradients come from one trace, so that `detach`, `no_grad`
and custom gradients mean in compiled code what they mean in eager code. A minimum cut decides what
the forward plan saves for the backward plan. Under `create_graph` the backward pass is itself such
a function, of the inputs, the cotangents and what the forward saved, derived from the same trace.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import compress
from types import MappingProxyType
from typing import Any

from ..compiler.compile_graph import (
    compile_for_sizes,
    compile_graph,
    joined_gradients,
    maker,
    rolled_loops,
    without_zeros,
)
from ..compiler.ir import Builder, Graph, Node, TensorType, input_node
from ..compiler.ir import primitives as p
from ..compiler.ir.layouts import memory_order, node_strides
from ..compiler.plan.ready_plan import ReadyPlan
from ..core.compile_lock import COMPILE_LOCK, made_once, refuse_at_exit
from ..core.dispatch import edge_of, settled
from ..core.record import Record
from ..core.sparse_tensor import SparseTensor
from ..core.state import state
from ..core.tensor import Tensor, wrap
from ..core.trace_state import HandleState, TraceError
from ..core.traced_float import Specialize
from ..runtime import jit, locks, plan_native
from ..runtime.arrays import copy_elements, copy_of, with_strides
from ..runtime.records import NamedTuple
from ..tracing.trace_context import Trace
from ..tracing.traced_gradients import TracedGradients, parts_of, retaining, trace_gradients
from .compiled_record import Array, Asked, CompiledRecord, Place, array_of, dense
from .fed import Fed
from .partition import Partition, partition

_SMALL_ARENA = 1 << 20


class Forward(NamedTuple):
    """The forward plan with what it saves, and the parts of the backward plan."""

    executable: Any
    saved: tuple[tuple[str, int], ...]  # ("primal", input) or ("output", output of `executable`)
    nodes: tuple[tuple[Node, ...], ...]  # of the trace, whose values were saved: one, or its rows
    backward: Graph
    gradients: tuple[Place | None, ...]  # differentiable input -> outputs of `backward`
    has_token: bool  # whether its last output is that of the ordered host calls that it makes
    types: tuple[Any, ...]  # of the outputs of `backward`


class Outputs:
    """The outputs as a plan gives them, each node once, and as they are numbered outside.

    Of an output that is wanted twice, the second is a copy; memory that is to be overwritten is
    given by the plan itself where that is possible. Those whose numbers are in `laid_out` lie in
    memory in the order that eager code gives them: a plan writes rows, so it permutes their axes.
    """

    def __init__(
        self, nodes: Sequence[Node], donate: Mapping[int, int], laid_out: Collection[int] = ()
    ) -> None:
        self.nodes = tuple(dict.fromkeys(nodes))
        at = {node: index for index, node in enumerate(self.nodes)}
        self.indices = [at[node] for node in nodes]
        self.donate: dict[int, int] = {}
        self._into: dict[int, int] = {}  # output number -> input, written here
        self._own: dict[int, int] = {}  # index of a plan's output -> the output that gets it
        for number, source in donate.items():
            index = self.indices[number]
            if index in self.donate:
                self._into[number] = source
            else:
                self.donate[index], self._own[index] = source, number
        for number, index in enumerate(self.indices):
            self._own.setdefault(index, number)
        self.orders: dict[int, tuple[int, ...]] = {}
        """Index of a plan's output -> its axes, as memory has them."""
        for index in {self.indices[number] for number in laid_out} - self.donate.keys():
            node = self.nodes[index]
            order = memory_order(node.shape, node_strides(node))
            if order is not None:
                self.orders[index] = order
        self.simple = len(self.nodes) == len(nodes) and not self.orders

    def ordered(self, graph: Graph) -> Graph:
        """A graph with these outputs, and maybe more, as it is compiled."""
        outputs, build = list(graph.outputs), Builder()
        for index, order in self.orders.items():
            outputs[index] = build.apply(p.permute, [outputs[index]], {"axes": order})
        return Graph(graph.inputs, outputs) if self.orders else graph

    def laid(self, values: Sequence[Array]) -> Sequence[Array]:
        """The values of an `ordered` graph, with the axes that they have outside."""
        if not self.orders:
            return values
        values = list(values)
        for index in self.orders:
            values[index] = values[index].transpose(self._back(index))
        return values

    def _back(self, index: int) -> list[int]:
        order = self.orders[index]
        return sorted(range(len(order)), key=order.__getitem__)

    def in_order(self, index: int, make: Callable[[Array], Array], value: Array) -> Array:
        """What `make` gives of an output's value, with rows as memory has them."""
        if index not in self.orders:
            return make(value)
        return make(value.transpose(self.orders[index])).transpose(self._back(index))

    def number_of(self, index: int) -> int:
        """The output that has the very memory of the plan's output `index`."""
        return self._own[index]

    def expand(self, values: Sequence[Array], inputs: Sequence[Array]) -> list[Array]:
        """One array for each output from the plan's `values`, which are `laid`."""
        if len(self.nodes) == len(self.indices):
            return list(values[: len(self.nodes)])
        result = []
        for number, index in enumerate(self.indices):
            value = values[index]
            if number in self._into:
                copy_elements(inputs[self._into[number]], value)
                value = inputs[self._into[number]]
            elif self._own[index] != number:
                value = self.in_order(index, copy_of, value)
            result.append(value)
        return result


class GraphFunction:
    """`graph` together with the trace that it came from, from which gradients are derived.

    `differentiable` gives the handles in the trace of the outputs that require grad, `asked` those
    of the inputs with respect to which gradients are wanted, both by number. Numbers below 0 are
    of leaves that the function itself makes, counted from the last one. `traced_gradients` has
    the gradients where they are known already. `fed` has the inputs that hold nodes of the trace.
    `token` is that of the last ordered host call, where it is not that of the trace.
    """

    def __init__(
        self,
        graph: Graph,
        trace: Trace,
        final: Sequence[HandleState],
        differentiable: Mapping[int, Tensor],
        asked: Mapping[int, Tensor],
        traced_gradients: TracedGradients | None = None,
        donate: Mapping[int, int] | None = None,
        name: str = "compiled",
        fed: Fed | None = None,
        token: Node | None = None,
        laid_out: Collection[int] = (),
    ) -> None:
        if differentiable and fed is not None and fed.open is not None:
            laid_out = ()
        self.outputs = Outputs(graph.outputs, donate or {}, laid_out)
        self.types = [node.type for node in graph.outputs]
        self.graph = Graph(graph.inputs, self.outputs.nodes)
        self.trace = trace
        self.final = final
        self.differentiable = dict(differentiable)
        self.retaining = retaining(differentiable)
        self.traced_gradients = traced_gradients
        self.asked = dict(asked)
        self.donate = self.outputs.donate
        self.overwritten = set((donate or {}).values())
        self.name = name
        self.fed = fed or Fed({})
        self.token = token or trace.last_token
        self.strides = odd_strides(graph)
        self.keeps_arenas = True  # between calls; a large one is given back where it does not
        self.eager = False  # a function of eager mode, called with arrays that were just made
        self.aligned = True  # arrays of devices that it is called with are
        self._backwards: dict[Asked, Any] = {}
        self._highers: dict[tuple[bool, ...], tuple[GraphFunction, list[bool]]] = {}

    @functools.cached_property
    def differentiable_types(self) -> tuple[TensorType, ...]:
        """Those of the outputs that require grad."""
        return tuple(self.types[number] for number in self.differentiable)

    # --- plans ---

    @made_once
    def plain(self) -> Any:
        """The plan without gradients."""
        return self._compile(self.graph)

    @property
    def executable(self) -> Any:
        """The plan that calls run."""
        return self.forward.executable if self.differentiable else self.plain

    def _compile(self, graph: Graph) -> Any:
        graph, sizes = self.outputs.ordered(graph), self.fed.open
        if sizes is not None:
            return compile_for_sizes(
                graph,
                sizes,
                donate=self.donate,
                strides=self.strides,
                overwritten=self.overwritten,
            )
        return self._settled(
            compile_graph(
                graph,
                donate=self.donate,
                strides=self.strides,
                overwritten=self.overwritten,
                varying=bool(self.fed.sizes),
                eager=self.eager,
                aligned=self.aligned,
            )
        )

    def _settled(self, executable: Any) -> Any:
        return executable if self.keeps_arenas else without_large_arena(executable)

    def trace_gradients(
        self, create_graph: bool, given: Sequence[bool] | None = None, sparse: bool = False
    ) -> TracedGradients:
        """Cotangents and gradients, recorded in the trace; those of the `given` results alone.

        With `sparse`, some may be sparse: see the function of this name.
        """
        refuse_at_exit()
        with COMPILE_LOCK, self.trace.resumed(self.final):
            known = len(self.trace.inputs)
            outputs = self.differentiable
            if given is not None:
                outputs = dict(compress(outputs.items(), given))
            found = self._traced_gradients(outputs, create_graph, sparse)
            if len(self.trace.inputs) > known:
                raise TraceError(
                    f"the gradient of '{self.name}' reads a tensor of the outside that neither the "
                    "function nor its first gradient reads; pass it to the function"
                )
            return found

    def _traced_gradients(
        self, outputs: Mapping[int, Tensor], create_graph: bool, sparse: bool
    ) -> TracedGradients:
        """What gradients ask of open sizes is answered by those that are known here."""
        with self.trace.sizes.asked_at(self.fed.sizes) as guards:
            try:
                found = trace_gradients(
                    self.trace, outputs, self.asked, create_graph, self.token, sparse
                )
            except Specialize:
                raise self._fixed_size(self.trace.sizes.refused) from None
            wrong = [each for each in guards.values() if not each.holds(self.fed.sizes)]
            if wrong:
                raise self._fixed_size(f"{wrong[0]} is assumed at {wrong[0].where}")
            return found

    def _fixed_size(self, why: str) -> TraceError:
        return TraceError(
            f"the gradient of '{self.name}' cannot be made for sizes that vary ({why}); compile "
            "it without `dynamic`"
        )

    @made_once
    def forward(self) -> Forward:
        """The plan that also saves what the backward plan reads."""
        traced = self.traced_gradients or self.trace_gradients(False, sparse=True)
        cotangents, found, token = traced
        results: list[Node] = []
        places: list[Place | None] = []
        for each in found:
            values = [] if each is None else parts_of(each)
            numbers = tuple(range(len(results), len(results) + len(values)))
            coalesced = isinstance(each, SparseTensor) and each._coalesced
            places.append(Place(numbers, coalesced) if values else None)
            results += values
        results += filter(None, [token or self.token])  # saved: second gradients may ask for it
        gradients = self.fed.apply(results)
        incoming = self.fed.apply([each._value for each in cotangents])
        parts, origins = self._divided(incoming, gradients)
        outputs, saved = self._own_saved(parts.forward.outputs, parts.sources)
        forward = Graph(self.graph.inputs, outputs)
        executable = self._compile(forward)
        nodes = tuple(tuple(self.fed.origins(each)) for each in origins)
        backward = self._of_saved_copies(parts.backward, saved)
        types = tuple(node.type for node in backward.outputs)
        return Forward(executable, saved, nodes, backward, tuple(places), token is not None, types)

    def _divided(
        self, incoming: Sequence[Node], gradients: Sequence[Node]
    ) -> tuple[Partition, list[list[Node]]]:
        """The two graphs, and the nodes of the joint one for whose values what is saved stands.

        They are one, or one for each row. Attention is joined with its gradients, and loops and
        turns of a loop with those of their gradients, while both are in sight.
        """
        inputs, outputs = [*self.graph.inputs, *incoming], [*self.graph.outputs, *gradients]
        new = joined_gradients(Graph(inputs, outputs))
        old = {after: before for before, after in new.items()}
        joint = Graph(inputs, [new.get(each, each) for each in outputs])
        rolled = rolled_loops(joint)
        if rolled is not None:
            parts, origins = self._parts(rolled.graph), rolled.origins()
            if all(each in origins for each in parts.saved):
                saved = [origins[each] for each in parts.saved]
                return parts, [[old.get(each, each) for each in rows] for rows in saved]
        parts = self._parts(joint)
        return parts, [[old.get(each, each)] for each in parts.saved]

    def _parts(self, joint: Graph) -> Partition:
        inputs, outputs = len(self.graph.inputs), len(self.graph.outputs)
        return partition(
            joint.inputs[:inputs], joint.inputs[inputs:],
            joint.outputs[:outputs], joint.outputs[outputs:],
        )  # fmt: skip

    @property
    def joint(self) -> Graph:
        """(inputs, cotangents) -> gradients, before anything is divided into plans."""
        return self.gradient_graph[0]

    @made_once
    def gradient_graph(self) -> tuple[Graph, list[bool]]:
        """`joint`, and which of the inputs asked for have a gradient."""
        traced = self.traced_gradients
        if traced is None or traced.are_sparse:
            traced = self.trace_gradients(False)
        cotangents, found, _ = traced
        inputs = [*self.graph.inputs, *self.fed.apply([each._value for each in cotangents])]
        outputs = self.fed.apply([each._value for each in found if each is not None])
        return Graph(inputs, outputs), [each is not None for each in found]

    def gradients_from(self, given: Sequence[bool]) -> tuple[Graph, list[bool]]:
        """The same, of those cotangents alone that are given."""
        joint, has_gradient = self.gradient_graph
        return from_given(joint, given), has_gradient

    def _own_saved(
        self, outputs: Sequence[Node], sources: Sequence[tuple[str, int]]
    ) -> tuple[list[Node], tuple[tuple[str, int], ...]]:
        """Save a copy of what lies in memory that the call overwrites."""
        result, saved, build = list(outputs), [], Builder()
        for kind, number in sources:
            if kind == "primal" and number in self.overwritten:
                node = build.apply(p.copy, [self.graph.inputs[number]])
            elif kind == "output" and number in self.donate:
                node = build.apply(p.copy, [outputs[number]])
            else:
                saved.append((kind, number))
                continue
            saved.append(("output", len(result)))
            result.append(node)
        return result, tuple(saved)

    def _of_saved_copies(self, backward: Graph, saved: Sequence[tuple[str, int]]) -> Graph:
        """`backward`, whose first inputs are `saved`, with these as they lie in memory.

        What was copied lies densely, unlike its source, and so does an argument with strides of
        its own that the call overwrites; a result may lie in another order than rows.
        """
        new, orders = {}, self.outputs.orders
        for node, (kind, number) in zip(backward.inputs, saved):
            strides = node_strides(self.outputs.nodes[number]) if number in orders else None
            if kind != "output" or (strides is None and "strides" not in node.attrs):
                continue
            new[node] = input_node(node.attrs["name"], node.type, node.where)
            if strides is not None:
                attrs = MappingProxyType({**new[node].attrs, "strides": strides})
                new[node] = Node(node.primitive, (), attrs, node.type, node.where)
        return _with_inputs(backward, new)

    @made_once
    def asks_all(self) -> Asked:
        """A backward pass from all results to all inputs."""
        return Asked((True,) * len(self.asked), (True,) * len(self.differentiable))

    def backward_plan(self, asked: Asked) -> tuple[Any, list[Place | None]]:
        """The backward plan for what is asked, and where the results for inputs are."""
        found = self._backwards.get(asked)
        if found is None:
            refuse_at_exit()
            with COMPILE_LOCK:
                found = self._backwards.get(asked) or self._make_backward(asked)
                self._backwards[asked] = found
        return found  # type: ignore[no-any-return]

    def _make_backward(self, asked: Asked) -> tuple[Any, list[Place | None]]:
        graph, places = self.backward_graph(asked)
        made = compile_graph(
            graph,
            strides=odd_strides(graph),
            varying=bool(self.fed.sizes),
            eager=self.eager,
            aligned=self.aligned,
        )
        return self._settled(made), places

    def backward_graph(self, asked: Asked) -> tuple[Graph, list[Place | None]]:
        """The graph of a backward plan, and where the results for inputs are."""
        forward = self.forward
        outputs: list[Node] = []
        places: list[Place | None] = []
        for known, is_wanted in zip(forward.gradients, asked.wanted, strict=True):
            if known is None or not is_wanted:
                places.append(None)
                continue
            numbers = range(len(outputs), len(outputs) + len(known.outputs))
            places.append(known._replace(outputs=tuple(numbers)))
            outputs += [forward.backward.outputs[at] for at in known.outputs]
        if forward.has_token:
            outputs.append(forward.backward.outputs[-1])
        return from_given(Graph(forward.backward.inputs, outputs), asked.given), places

    def higher(self, given: tuple[bool, ...]) -> tuple[GraphFunction, list[bool]]:
        """The gradients as a function of the inputs, the cotangents and what the forward saved.

        And which of the inputs asked for have one, from the given results. Computed anew from the
        inputs, decisions could come out otherwise than in the forward.
        """
        found = self._highers.get(given)
        if found is None:
            with COMPILE_LOCK:
                found = self._highers.get(given) or self._make_higher(given)
                self._highers[given] = found
        return found

    def _make_higher(self, given: tuple[bool, ...]) -> tuple[GraphFunction, list[bool]]:
        cotangents, found, token = self.trace_gradients(create_graph=True, given=given)
        handles = [each for each in found if each is not None]
        kept, values = [], dict[Node, Node]()
        for at in self.kept:
            nodes = self.forward.nodes[at]
            kept.append(_saved_input(f"saved{at}", [self.fed.type_of(each) for each in nodes]))
            values.update(_of_saved(kept[-1], nodes))
        incoming = self.fed.apply([each._value for each in cotangents])
        fed = self.fed.with_inputs(values)
        inputs = [*self.graph.inputs, *incoming, *kept]
        asked = self.asked | dict(enumerate(cotangents, len(self.graph.inputs)))
        outputs = fed.apply([*map(self.trace.value_of, handles), *filter(None, [token])])
        differentiable = {n: each for n, each in enumerate(handles) if each._requires_grad}
        made = GraphFunction(
            Graph(inputs, outputs),
            self.trace,
            self.final,
            differentiable,
            asked,
            name=self.name,
            fed=fed,
            token=token or self.token,
        )
        made.keeps_arenas = self.keeps_arenas
        made.eager, made.aligned = self.eager, self.aligned
        return made, [each is not None for each in found]

    @made_once
    def kept(self) -> list[int]:
        """Which of the saved values are no inputs, by their place in `forward.saved`."""
        return [at for at, (kind, _) in enumerate(self.forward.saved) if kind == "output"]

    @made_once
    def read_inputs(self) -> list[bool]:
        """Which inputs the graph reads, in their order."""
        read = {node for node, readers in self.graph.consumers.items() if readers}
        read.update(self.graph.outputs)
        return [node in read for node in self.graph.inputs]

    # --- running ---

    def run_recorded(
        self, inputs: Sequence[Any], arrays: Sequence[Array], leaves: Sequence[Any] = ()
    ) -> tuple[list[Array], CompiledRecord]:
        """Outputs as arrays, and the record through which gradients flow.

        `inputs` are the tensors (or arrays, where no tensor is behind them) of `arrays`. `leaves`
        are those that the function makes, where they are there already.
        """
        forward = self.forward
        values = self.outputs.laid(forward.executable.run(arrays))
        record = CompiledRecord(self, inputs, arrays, values)
        if leaves:
            record.end_at(leaves)
        return self.outputs.expand(values, arrays), record

    def run(self, arrays: Sequence[Array]) -> list[Array]:
        """Outputs as arrays, nothing recorded."""
        return self.outputs.expand(self.outputs.laid(self.plain.run(arrays)), arrays)

    def __call__(self, inputs: Sequence[Any], leaves: Sequence[Any] = ()) -> list[Tensor]:
        """The outputs as new tensors, recorded for gradients where inputs require them."""
        arrays = [
            with_strides(array_of(each), self.strides[number])
            if number in self.strides
            else dense(each)
            for number, each in enumerate(inputs)
        ]
        if not (state.grad_enabled and self._needs_grad([*inputs, *leaves])):
            outputs = self.run(arrays)
            return [wrap(*each) for each in zip(outputs, self.types)]
        outputs, record = self.run_recorded(inputs, arrays, leaves)
        results = [wrap(*each) for each in zip(outputs, self.types)]
        wanted = sum(1 << at for at, edge in enumerate(record.edges) if edge is not None)
        connected = {n: each for n, each in enumerate(results) if self.reaches.get(n, 0) & wanted}
        record.attach(connected)
        return results

    @made_once
    def reaches(self) -> dict[int, int]:
        """For each differentiable output, the asked inputs it depends on, as bits of a number."""
        with self.trace.resumed(self.final), self.trace.sizes.asked_at(self.fed.sizes):
            bits: dict[Any, int] = {}
            for at, handle in enumerate(self.asked.values()):
                bits[_edge_key(edge_of(handle) or (handle, 0))] = 1 << at
            ends = {n: edge_of(settled(each)) for n, each in self.differentiable.items()}
            for record in _records_of([edge for edge in ends.values() if edge is not None]):
                found = 0
                for edge in record.edges:
                    found |= 0 if edge is None else bits.get(_edge_key(edge), 0)
                for index in range(len(record.outputs)):
                    bits.setdefault((id(record), index), found)
        return {n: 0 if edge is None else bits[_edge_key(edge)] for n, edge in ends.items()}

    def _needs_grad(self, inputs: Sequence[Any]) -> bool:
        return bool(self.differentiable) and any(
            isinstance(inputs[number], Tensor) and inputs[number]._requires_grad
            for number in self.asked
        )


def _with_inputs(backward: Graph, new: dict[Node, Node]) -> Graph:
    """`backward` with `new` inputs in the place of others."""
    if not new:
        return backward
    build = Builder()
    for node in backward.nodes:
        if node not in new:
            new[node] = build.rebuild(node, [new[each] for each in node.inputs])
    return Graph([new[each] for each in backward.inputs], [new[each] for each in backward.outputs])


def from_given(graph: Graph, given: Sequence[bool]) -> Graph:
    """`graph`, whose last inputs are cotangents, with those alone that are given."""
    if all(given):
        return graph
    cotangents = graph.inputs[len(graph.inputs) - len(given) :]
    zeros = [node for node, is_given in zip(cotangents, given, strict=True) if not is_given]
    return without_zeros(graph, zeros)


def _saved_input(name: str, types: Sequence[TensorType]) -> Node:
    """The input for what was saved of one node, or of several as its rows."""
    first = types[0]
    return input_node(
        name, first if len(types) == 1 else first.with_shape((len(types), *first.shape))
    )


def _of_saved(saved: Node, nodes: Sequence[Node]) -> dict[Node, Node]:
    """The values of `nodes`, which are one, or the rows of what was saved."""
    if len(nodes) == 1:
        return {nodes[0]: saved}
    build, (_, *sizes) = Builder(), saved.shape
    rest = (0,) * len(sizes), (1,) * len(sizes), tuple(sizes)
    rows = {}
    for at, node in enumerate(nodes):
        attrs = {
            "starts": (at, *rest[0]), "steps": (1, *rest[1]), "stops": (at + 1, *rest[2]),
        }  # fmt: skip
        row = build.apply(p.slice_, [saved], attrs)
        rows[node] = build.apply(p.reshape, [row], {"shape": rest[2]})
    return rows


def _edge_key(edge: tuple[Any, int]) -> Any:
    target, index = edge
    return id(target) if isinstance(target, Tensor) else (id(target), index)


def _records_of(edges: Sequence[tuple[Any, int]]) -> list[Record]:
    """Every record behind `edges`, each after those that it leads to."""
    found: dict[int, Record] = {}
    waiting = [edge[0] for edge in edges if not isinstance(edge[0], Tensor)]
    while waiting:
        record = waiting.pop()
        if id(record) not in found:
            found[id(record)] = record
            waiting += [
                edge[0]
                for edge in record.edges
                if edge is not None and not isinstance(edge[0], Tensor)
            ]
    return sorted(found.values(), key=lambda record: record.order)


_begun = False
_waited_for = False


def prepare(waited_for: bool = False) -> None:
    """Begin, in another thread, with what the first compilation needs: LLVM, passes, generators.

    Where the compilation itself has begun (`waited_for`), its own thread imports them, as two would
    only take Python from each other.
    """
    global _begun, _waited_for
    _waited_for = _waited_for or waited_for
    if not _begun:
        _begun = True
        jit.compile_early(_load)


def _load() -> None:
    plan_native.prepare()
    plan_native.load()
    if not _waited_for:
        with locks.RUNTIME:  # a fork waits: what its child finds half imported stays locked there
            maker()


def without_large_arena(executable: Any) -> Any:
    """`executable`, which gives a large arena of the CPU back after each call."""
    if isinstance(executable, ReadyPlan) and executable.plan.arena_bytes > _SMALL_ARENA:
        executable.plan.keeps_arena = False
    return executable


def odd_strides(graph: Graph) -> dict[int, tuple[int, ...]]:
    """Input number -> strides in elements, of inputs that are not contiguous."""
    return {
        number: node.attrs["strides"]
        for number, node in enumerate(graph.inputs)
        if "strides" in node.attrs
    }
