"""A traced graph as a function of tensors that can be differentiated, any number of times.

The forward graph and the graph of its gradients come from one trace, so that `detach`, `no_grad`
and custom gradients mean in compiled code what they mean in eager code. A minimum cut decides what
the forward plan saves for the backward plan. Under `create_graph` the backward pass is itself such
a function, of the inputs, the cotangents and what the forward saved, derived from the same trace.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..compiler.compile_graph import (
    compile_for_sizes,
    compile_graph,
    joined_gradients,
    maker,
    rolled_loops,
)
from ..compiler.ir import Builder, Graph, Node, TensorType, input_node
from ..compiler.ir import primitives as p
from ..compiler.plan.ready_plan import ReadyPlan
from ..core.compile_lock import COMPILE_LOCK, made_once, refuse_at_exit
from ..core.dispatch import apply, edge_of, settled, unpack, without_history
from ..core.eager_context import array_type
from ..core.provenance import user_site
from ..core.record import Edge, Record, Saved
from ..core.saved_tensors import Hooks, pack_saved, packs
from ..core.state import state
from ..core.tensor import Tensor, intern_type, wrap
from ..core.trace_state import HandleState, TraceError
from ..core.traced_float import Specialize
from ..runtime import jit, locks, plan_native
from ..runtime.arrays import contiguous, copy_elements, copy_of, place
from ..runtime.device import CPU
from ..runtime.records import NamedTuple
from ..tracing.trace_context import Trace
from ..tracing.traced_gradients import TracedGradients, trace_gradients
from .fed import Fed
from .partition import Partition, partition

Array = np.ndarray[Any, Any]


_SMALL_ARENA = 1 << 20


class Forward(NamedTuple):
    """The forward plan with what it saves, and the parts of the backward plan."""

    executable: Any
    saved: tuple[tuple[str, int], ...]  # ("primal", input) or ("output", output of `executable`)
    nodes: tuple[tuple[Node, ...], ...]  # of the trace, whose values were saved: one, or its rows
    backward: Graph
    gradients: tuple[int | None, ...]  # differentiable input -> output of `backward`
    has_token: bool  # whether its last output is that of the ordered host calls that it makes
    types: tuple[Any, ...]  # of the outputs of `backward`


class Outputs:
    """The outputs as a plan gives them, each node once, and as they are numbered outside.

    Of an output that is wanted twice, the second is a copy; memory that is to be overwritten is
    given by the plan itself where that is possible.
    """

    def __init__(self, nodes: Sequence[Node], donate: Mapping[int, int]) -> None:
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
        self.simple = len(self.nodes) == len(nodes)

    def number_of(self, index: int) -> int:
        """The output that has the very memory of the plan's output `index`."""
        return self._own[index]

    def expand(self, values: list[Array], inputs: Sequence[Array]) -> list[Array]:
        """One array for each output from the plan's `values`."""
        if self.simple:
            return values[: len(self.nodes)]
        result = []
        for number, index in enumerate(self.indices):
            value = values[index]
            if number in self._into:
                copy_elements(inputs[self._into[number]], value)
                value = inputs[self._into[number]]
            elif self._own[index] != number:
                value = copy_of(value)
            result.append(value)
        return result


class GraphFunction:
    """`graph` together with the trace that it came from, from which gradients are derived.

    `differentiable` gives the handles in the trace of the outputs that require grad, `asked` those
    of the inputs with respect to which gradients are wanted, both by number. `traced_gradients` has
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
    ) -> None:
        self.outputs = Outputs(graph.outputs, donate or {})
        self.types = [node.type for node in graph.outputs]
        self.graph = Graph(graph.inputs, self.outputs.nodes)
        self.trace = trace
        self.final = final
        self.differentiable = dict(differentiable)
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
        self._backwards: dict[tuple[bool, ...], Any] = {}

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
        sizes = self.fed.open
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

    def trace_gradients(self, create_graph: bool) -> TracedGradients:
        """Cotangents and gradients, recorded in the trace."""
        refuse_at_exit()
        with COMPILE_LOCK, self.trace.resumed(self.final):
            known = len(self.trace.inputs)
            found = self._traced_gradients(create_graph)
            if len(self.trace.inputs) > known:
                raise TraceError(
                    f"the gradient of '{self.name}' reads a tensor of the outside that neither the "
                    "function nor its first gradient reads; pass it to the function"
                )
            return found

    def _traced_gradients(self, create_graph: bool) -> TracedGradients:
        """What gradients ask of open sizes is answered by those that are known here."""
        with self.trace.sizes.asked_at(self.fed.sizes) as guards:
            try:
                found = trace_gradients(
                    self.trace, self.differentiable, self.asked, create_graph, self.token
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
        cotangents, found, token = self.traced_gradients or self.trace_gradients(False)
        values = [each._value if each is not None else None for each in found]
        results = [value for value in values if value is not None]
        results += filter(None, [token or self.token])  # saved: second gradients may ask for it
        gradients = self.fed.apply(results)
        incoming = self.fed.apply([each._value for each in cotangents])
        parts, origins = self._divided(incoming, gradients)
        outputs, saved = self._own_saved(parts.forward.outputs, parts.sources)
        forward = Graph(self.graph.inputs, outputs)
        executable = self._compile(forward)
        numbers = iter(range(len(gradients)))
        places = tuple(None if value is None else next(numbers) for value in values)
        nodes = tuple(tuple(self.fed.origins(each)) for each in origins)
        types = tuple(node.type for node in parts.backward.outputs)
        return Forward(executable, saved, nodes, parts.backward, places, token is not None, types)

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
        cotangents, found, _ = self.traced_gradients or self.trace_gradients(False)
        inputs = [*self.graph.inputs, *self.fed.apply([each._value for each in cotangents])]
        outputs = self.fed.apply([each._value for each in found if each is not None])
        return Graph(inputs, outputs), [each is not None for each in found]

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

    def backward_plan(self, wanted: tuple[bool, ...]) -> tuple[Any, list[int | None]]:
        """The backward plan for the wanted differentiable inputs, and where their results are."""
        found = self._backwards.get(wanted)
        if found is None:
            refuse_at_exit()
            with COMPILE_LOCK:
                found = self._backwards.get(wanted) or self._make_backward(wanted)
                self._backwards[wanted] = found
        return found  # type: ignore[no-any-return]

    def _make_backward(self, wanted: tuple[bool, ...]) -> tuple[Any, list[int | None]]:
        graph, places = self.backward_graph(wanted)
        made = compile_graph(
            graph,
            strides=odd_strides(graph),
            varying=bool(self.fed.sizes),
            eager=self.eager,
            aligned=self.aligned,
        )
        return self._settled(made), places

    def backward_graph(self, wanted: tuple[bool, ...]) -> tuple[Graph, list[int | None]]:
        """The graph of the backward plan for some inputs, and where their results are."""
        forward = self.forward
        outputs: list[Node] = []
        places: list[int | None] = []
        for at, is_wanted in zip(forward.gradients, wanted, strict=True):
            if at is None or not is_wanted:
                places.append(None)
                continue
            places.append(len(outputs))
            outputs.append(forward.backward.outputs[at])
        if forward.has_token:
            outputs.append(forward.backward.outputs[-1])
        return Graph(forward.backward.inputs, outputs), places

    @made_once
    def higher(self) -> GraphFunction:
        """The gradients as a function of the inputs, the cotangents and what the forward saved.

        Computed anew from the inputs, decisions could come out otherwise than in the forward.
        """
        cotangents, found, token = self.trace_gradients(create_graph=True)
        handles = [each for each in found if each is not None]
        kept, values = [], dict[Node, Node]()
        for at in self.kept:
            nodes = self.forward.nodes[at]
            kept.append(_saved_input(f"saved{at}", [self.fed.type_of(each) for each in nodes]))
            values.update(_of_saved(kept[-1], nodes))
        given = self.fed.apply([each._value for each in cotangents])
        fed = self.fed.with_inputs(values)
        inputs = [*self.graph.inputs, *given, *kept]
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
        return made

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
        self, inputs: Sequence[Any], arrays: Sequence[Array]
    ) -> tuple[list[Array], CompiledRecord]:
        """Outputs as arrays, and the record through which gradients flow.

        `inputs` are the tensors (or arrays, where no tensor is behind them) of `arrays`.
        """
        forward = self.forward
        values = forward.executable.run(arrays)
        record = CompiledRecord(self, inputs, arrays, values)
        return self.outputs.expand(values, arrays), record

    def run(self, arrays: Sequence[Array]) -> list[Array]:
        """Outputs as arrays, nothing recorded."""
        return self.outputs.expand(self.plain.run(arrays), arrays)

    def __call__(self, inputs: Sequence[Any]) -> list[Tensor]:
        """The outputs as new tensors, recorded for gradients where inputs require them."""
        arrays = [
            dense(each) if number not in self.strides else _array_of(each)
            for number, each in enumerate(inputs)
        ]
        if not (state.grad_enabled and self._needs_grad(inputs)):
            outputs = self.run(arrays)
            return [wrap(*each) for each in zip(outputs, self.types)]
        outputs, record = self.run_recorded(inputs, arrays)
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


class CompiledRecord(Record):
    """A call of a compiled function, as its backward pass sees it."""

    __slots__ = ("function", "primals", "saved")

    is_plan = True

    def __init__(
        self,
        function: GraphFunction,
        inputs: Sequence[Any],
        arrays: Sequence[Array],
        values: Sequence[Array],
    ) -> None:
        edges = tuple(_edge(inputs[number]) for number in function.asked)
        types = tuple(function.types[number] for number in function.differentiable)
        super().__init__(edges, types, user_site())
        self.function = function
        self.primals: list[Any] | None = [
            Saved(given) if isinstance(given, Tensor) else array
            for given, array in zip(inputs, arrays)
        ]
        self.saved: list[Any] | None = [
            self.primals[number] if kind == "primal" else values[number]
            for kind, number in function.forward.saved
        ]

    def name(self) -> str:
        return "CompiledFunctionBackward"

    def attach(self, results: Mapping[int, Tensor]) -> None:
        """Give the results of the call, by number, their history."""
        for index, number in enumerate(self.function.differentiable):
            result = results.get(number)
            if result is not None:
                result._record, result._index, result._requires_grad = self, index, True
        if self.saved is None:
            return
        # A result that was saved must not be written in place before the backward pass.
        outputs = self.function.outputs
        for at, (kind, index) in enumerate(self.function.forward.saved):
            if kind == "output" and index < len(outputs.nodes):
                shown = results.get(outputs.number_of(index))
                if shown is not None:
                    self.saved[at] = Saved(without_history(shown))
        if state.saved_hooks is not None and (hooks := packs()) is not None:
            self._pack(hooks)

    def _pack(self, hooks: Hooks) -> None:
        """Hand all that is kept through the hooks of users."""
        assert self.saved is not None
        for at, each in enumerate(self.saved):
            if not isinstance(each, Saved):
                on_host = isinstance(each, np.ndarray)
                device = CPU if on_host else self.outputs[0].device
                self.saved[at] = Saved(wrap(each, array_type(each, device)))
        for saved in self.saved_values():
            pack_saved(saved, hooks)

    def saved_values(self) -> list[Saved]:
        kept = [*(self.primals or ()), *(self.saved or ())]
        return list({id(each): each for each in kept if isinstance(each, Saved)}.values())

    def is_unchanged(self, number: int) -> None:
        """The call counted a write of an input, which has the value that it had."""
        saved = None if self.primals is None else self.primals[number]
        if isinstance(saved, Saved):
            saved.version = saved.tensor._version

    def cotangents(
        self, incoming: list[Tensor | None], wanted: Sequence[bool]
    ) -> list[Tensor | None]:
        if None in incoming:
            wanted = self._reached(incoming, wanted)
        if not any(wanted):
            return [None] * len(wanted)
        given = [
            place(np.zeros(type_.shape, type_.dtype.numpy), type_.device) if each is None else each
            for each, type_ in zip(incoming, self.outputs, strict=True)
        ]
        if state.context is not None and state.context.lifts:
            return self._replayed(given, wanted)
        if state.grad_enabled:
            return self._again(given, wanted)
        assert self.saved is not None
        plan, places = self.function.backward_plan(tuple(wanted))
        arrays = [self._array(at) for at in range(len(self.saved))]
        arrays += [dense(each) for each in given]
        results = plan.run(arrays)
        forward = self.function.forward
        return [
            None if at is None else wrap(results[at], forward.types[known])
            for at, known in zip(places, forward.gradients)
        ]

    def _array(self, at: int) -> Array:
        """What was saved, laid out in memory as it was for the forward plan."""
        assert self.saved is not None
        saved = self.saved[at]
        array: Array = unpack(saved, self)._value if isinstance(saved, Saved) else saved
        kind, number = self.function.forward.saved[at]
        if kind == "primal" and number in self.function.strides:
            return array
        return contiguous(array)  # the forward read a dense copy, too

    def _reached(self, incoming: list[Tensor | None], wanted: Sequence[bool]) -> list[bool]:
        """The wanted inputs on which outputs with a cotangent depend."""
        reaches = self.function.reaches
        bits = 0
        for number, cotangent in zip(self.function.differentiable, incoming):
            bits |= 0 if cotangent is None else reaches[number]
        return [bool(is_wanted and bits >> at & 1) for at, is_wanted in enumerate(wanted)]

    def _again(self, given: list[Any], wanted: Sequence[bool]) -> list[Tensor | None]:
        """The backward pass as a differentiable function of inputs and cotangents."""
        assert self.primals is not None and self.saved is not None
        higher = self.function.higher
        primals = [
            unpack(each, self) if is_read and isinstance(each, Saved) else _held(each)
            for each, is_read in zip(self.primals, higher.read_inputs)
        ]
        kept = [self._array(at) for at in self.function.kept]
        results = iter(higher([*primals, *given, *kept]))
        gradients = self.function.forward.gradients
        found = [None if place is None else next(results) for place in gradients]
        return [each if is_wanted else None for each, is_wanted in zip(found, wanted)]

    def _replayed(self, given: list[Any], wanted: Sequence[bool]) -> list[Tensor | None]:
        """The backward pass operation by operation, of tensors that no plan takes."""
        assert self.primals is not None
        if self.function.fed.open is not None:
            raise NotImplementedError(
                f"the gradient of '{self.function.name}', compiled for sizes that vary, does not "
                f"run in {state.context.name}; compile it without `dynamic`"
            )
        graph, has_gradient = self.function.gradient_graph
        primals = [unpack(each, self) if type(each) is Saved else each for each in self.primals]
        results = iter(replayed(graph, [*primals, *given]))
        found = [next(results) if each else None for each in has_gradient]
        return [each if is_wanted else None for each, is_wanted in zip(found, wanted)]

    def free(self) -> None:
        self.freed = True
        self.primals = self.saved = None


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


def replayed(graph: Graph, inputs: Sequence[Any]) -> list[Tensor]:
    """What `graph` gives for tensors (or arrays), applied in the current context."""
    values: dict[Node, Any] = {
        node: each if isinstance(each, Tensor) else wrap(each, intern_type(*node.type))
        for node, each in zip(graph.inputs, inputs, strict=True)
    }
    for node in graph.nodes:
        if node in values:
            continue
        operands = [values[each] for each in node.inputs]
        if node.primitive is p.get:
            values[node] = operands[0][node.attrs["index"]]
        else:
            values[node] = apply(node.primitive, *operands, **node.attrs)
    return [values[each] for each in graph.outputs]


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


def _held(primal: Any) -> Any:
    return primal.tensor if isinstance(primal, Saved) else primal


def _edge(given: Any) -> Edge:
    return edge_of(given) if isinstance(given, Tensor) else None


def _array_of(given: Any) -> Array:
    return given._value if isinstance(given, Tensor) else given  # type: ignore[no-any-return]


def dense(given: Any) -> Array:
    """The array of a tensor or an array, copied where it is not contiguous."""
    return contiguous(_array_of(given))


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
