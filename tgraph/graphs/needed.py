"""What a run of a graph needs: the part of it that leads to what is fetched."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ..compiler.ir import Builder, Graph, Node, TensorType, effect_of, toposort
from ..compiler.ir import primitives as p
from ..core.tensor import Tensor
from ..core.trace_state import Source, TraceInput
from ..runtime.dtypes import int64
from ..runtime.records import NamedTuple
from ..tracing.selections import Counted, Selection
from .operation import Marker

if TYPE_CHECKING:
    from .graph_trace import GraphTrace


class Needed(NamedTuple):
    """A graph without marks, and what it means.

    Its outputs are the nodes that were asked for, what host calls give that are called for what
    they do, counters of generators, new values of variables, then what `selections` select by.
    `writes` are those variables, and the inputs of which they take the memory. `draws` tells how
    often each generator is drawn from, `counted` the output that tells it of those from which
    branches and loops draw. `readers` tells of each node of the graph with marks who wanted it.
    """

    graph: Graph
    inputs: list[TraceInput]
    selections: list[Selection]
    writes: list[tuple[Tensor, int]]
    draws: list[tuple[Any, int]]
    counted: list[tuple[Any, int]]
    readers: dict[Node, Node | None]

    @property
    def first_write(self) -> int:
        """The output that has the new value of the first variable."""
        return len(self.graph.outputs) - len(self.selections) - len(self.writes)

    def path_to(self, node: Node) -> str:
        """The way from what is fetched to a node that it needs."""
        steps: list[str] = []
        found: Node | None = node
        while found is not None:
            if found.primitive is not p.input_:
                steps.append(f"{found.primitive.name} at {found.where}")
            found = self.readers[found]
        shown = steps[::-1]
        if len(shown) > 8:
            shown = [*shown[:4], f"... {len(shown) - 8} more", *shown[-4:]]
        return " <- ".join(shown)


def needed(
    trace: GraphTrace,
    nodes: Sequence[Node],
    others: Sequence[Node] = (),
    compete: bool = False,
    waits: bool = True,
    held: Collection[Node] = (),
) -> Needed:
    """What computes `nodes`, and makes the writes that they, or `others`, were computed from.

    ValueError where two writes are for one variable and neither follows the other, unless they may
    `compete`, as in a graph that is only looked at. Control dependencies are met if it `waits`.
    Nodes whose values are `held` are inputs.
    """
    readers = reached(trace, [*nodes, *others], waits, held)
    selections = [
        each
        for each in list(trace.selections.values())
        if any(entry.node in readers for entry in each.inputs)
    ]
    marks = [(trace.markers[each], each) for each in readers if each in trace.markers]
    marks.sort(key=lambda pair: pair[0].serial)
    build = Builder()
    new: dict[Node, Node] = {each: trace.graph.held_input(each) for each in held}
    given = [TraceInput(Source("held", each), node) for each, node in new.items()]

    def plain(node: Node) -> Node:
        for each in toposort([node], known=new):
            if each not in new:
                is_input = each.primitive is p.input_
                operands = [new[operand] for operand in each.inputs]
                new[each] = each if is_input else build.rebuild(each, operands)
        return new[node]

    counters: dict[int, Node] = {}  # of generators, where they stand, with marks
    draws: dict[int, int] = {}
    looped: dict[int, None] = {}
    one = build.full((), 1, int64)
    for mark, node in marks:
        if mark.value is not None:
            new[node] = plain(mark.value)
            continue
        key = id(mark.generator)
        now = new[node] = plain(counters.get(key, trace.draws.generators[key].counter._value))
        if node in trace.counters_behind:
            counters[key], looped[key] = trace.counters_behind[node], None
        else:
            counters[key] = new_counter = build.apply(p.add, [now, one])
            new[new_counter] = new_counter
            draws[key] = draws.get(key, 0) + 1
    outputs = [plain(each) for each in nodes]
    last = _last_writes(trace, marks, compete)
    written = [plain(node) for _, node in last.values()]
    masks = [plain(each.mask) for each in selections]
    inner = set(toposort([*outputs, *written, *masks]))
    calls = [plain(each) for each in readers if effect_of(each) != "pure"]
    outputs += [_first_result(build, each) for each in calls if each not in inner]
    counted = [
        (trace.draws.generators[key].generator, len(outputs) + at) for at, key in enumerate(looped)
    ]
    outputs += [plain(counters[key]) for key in looped]
    outputs += [*written, *masks]
    inner.update(toposort(outputs))
    every = [*trace.inputs, *given]
    inputs = [entry for entry in every if entry.node in inner or _is_of(entry, last)]
    numbers = {id(entry.source.key): at for at, entry in enumerate(inputs)}
    return Needed(
        Graph([entry.node for entry in inputs], outputs),
        inputs,
        [each._replace(mask=mask) for each, mask in zip(selections, masks)],
        [(tensor, numbers[id(tensor)]) for tensor, _ in last.values()],
        [(trace.draws.generators[key].generator, draws[key]) for key in draws if key not in looped],
        counted,
        readers,
    )


def _first_result(build: Builder, node: Node) -> Node:
    if type(node.type) is TensorType:
        return node
    return build.apply(p.get, [node], {"index": 0})


def _is_of(entry: TraceInput, written: dict[int, Any]) -> bool:
    return entry.source.kind == "captured" and not entry.shown and id(entry.source.key) in written


def reached(
    trace: GraphTrace, nodes: Sequence[Node], waits: bool = True, held: Collection[Node] = ()
) -> dict[Node, Node | None]:
    """Every node that is needed, through marks, and who wants it; none that is `held`."""
    readers: dict[Node, Node | None] = {each: None for each in nodes if each not in held}
    waiting, counted = list(readers), Counted.of_trace(trace)
    while waiting:
        node = waiting.pop()
        for each in below(trace, node, counted, waits):
            if each not in readers and each not in held:
                readers[each] = node
                waiting.append(each)
    return readers


def below(trace: GraphTrace, node: Node, counted: Counted, waits: bool = True) -> Iterator[Node]:
    """What a node is computed from, or has to wait for; of what is as long as a selection is, its
    positions, too, and of those what they are found in."""
    mark = trace.markers.get(node)
    if mark is None:
        yield from node.inputs
        for each in counted.of(node):
            first = each.inputs[0].node
            yield each.mask if any(entry.node is node for entry in each.inputs) else first
    elif mark.value is not None:
        yield mark.value
        if waits:
            yield from mark.requires


def _last_writes(
    trace: GraphTrace, marks: Sequence[tuple[Marker, Node]], compete: bool
) -> dict[int, tuple[Tensor, Node]]:
    """The last value of each variable that is written; ValueError where two writes compete."""
    found: dict[int, tuple[Tensor, Node]] = {}
    for mark, node in marks:
        tensor = mark.variable
        if tensor is None:
            continue
        before = found.get(id(tensor))
        if before is not None and not compete and not _follows(trace, mark, before[1]):
            other = trace.markers[before[1]]
            raise ValueError(
                f"a run would write `{trace.name_of(tensor)}` twice, at {other.where} and at "
                f"{mark.where}, each time from the value that it has before. Run the operations "
                "one after another, or build the second under control_dependencies() of the first."
            )
        found[id(tensor)] = tensor, node
    return found


def _follows(trace: GraphTrace, mark: Marker | None, earlier: Node) -> bool:
    """Whether a variable was written by `earlier` before it was by `mark`."""
    while mark is not None and mark.previous is not None:
        if mark.previous is earlier:
            return True
        mark = trace.markers.get(mark.previous)
    return False
