"""A recorded call in stages, where it selects by data.

A call whose sizes depend on data, as those of `x[mask]` do, is cut where positions are counted.
What they are found in is computed first; then it is known how many there are, and what comes of
them is computed by a plan for that many: one of an OpenCall, for which the number is a size like
others. A value that an earlier stage has computed and a later one reads is handed on, never
computed again, as it could come out otherwise; views are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ..compiler.graph_interpreter import interpret
from ..compiler.ir import Family, Graph, Node, effect_of, toposort
from ..compiler.ir import primitives as p
from ..core import pytree
from ..core.trace_state import Source, TraceError, TraceInput
from ..runtime.arrays import array_module, current
from ..runtime.records import NamedTuple, replace
from ..tracing.recorded_call import Call, Effects, Ref
from ..tracing.selections import Counted, Selection
from ..tracing.trace_context import Trace
from ..tracing.traced_gradients import parts_of
from .call_inputs import input_value
from .fed import Fed


def positions_now(values: Sequence[Any], trace: Trace, mask: Node) -> tuple[Any, ...]:
    """Where a node of the trace is not zero in the traced call, whose arguments are `values`."""
    needed = set(toposort([mask]))
    for node in needed:
        if effect_of(node) != "pure":
            raise TraceError(
                f"what is selected by data depends on a host_call with an effect, at {node.where}, "
                "which would have to run while the function is traced; move it out of the "
                "compiled function"
            )
    entries = [entry for entry in trace.inputs if entry.node in needed]
    arrays = [_array(trace, entry, values) for entry in entries]
    *inputs, output = Fed({}, trace.sizes.hints).apply([*(e.node for e in entries), mask])
    device = mask.type.device
    with current(device):
        (found,) = interpret(Graph(inputs, [output]), arrays, array_module(device))
        return tuple(found.nonzero())


def _array(trace: Trace, entry: TraceInput, values: Sequence[Any]) -> Any:
    source = entry.source
    if source.kind == "selected":
        mask, axis = source.key
        return trace.selections[mask].now[axis]
    given = trace.arguments.get(id(entry.handle)) if source.kind == "grad" else None
    return given._value if given is not None else input_value(source, values)


class StageCut(NamedTuple):
    """What a stage computes: the nodes `makes`; none for the last one, which computes the ends.

    `reads` are nodes that it is given: positions, and what earlier stages have made; `inputs` are
    those of the graph that it reads. `selects` tells in which of its results positions are looked
    for then.
    """

    reads: tuple[Node, ...]
    inputs: set[Node]
    makes: tuple[Node, ...]
    selects: tuple[Selection, ...]


def cut_at(
    selections: Sequence[Selection], counted: Counted, ends: Sequence[Node]
) -> list[StageCut]:
    """The stages in which `ends` are computed; `selections` are in the order of the program."""
    order = _rounds(selections, counted)
    last = max(order.values()) + 1
    cut = _Cut(selections, order, ends, last)
    found = []
    for number in range(last + 1):
        known = [each for each in selections if order[each.mask] < number]
        positions = [entry.node for each in known for entry in each.inputs]
        chosen = tuple(each for each in selections if order[each.mask] == number)
        makes = dict.fromkeys([*(each.mask for each in chosen), *cut.made_by(number)])
        reads = (*positions, *cut.read_by(number))
        found.append(StageCut(reads, cut.inputs_of(number), tuple(makes), chosen))
    return found


class Stage(NamedTuple):
    """A part of a call: a call of its own, whose results are those of `makes`, as in StageCut.

    What it reads it is given behind the arguments.
    """

    call: Call
    reads: tuple[Node, ...]
    makes: tuple[Node, ...]
    selects: tuple[Selection, ...]


def staged(call: Call, given: int) -> list[Stage]:
    """The stages of a call; `given` is the number of its arguments and places."""
    ends = list(call.graph.outputs)
    if call.traced_gradients is not None:
        found = call.traced_gradients.gradients
        ends += [value for each in found if each is not None for value in parts_of(each)]
    found = []
    for each in cut_at(list(call.trace.selections.values()), Counted.of_trace(call.trace), ends):
        sources = {node: Source("argument", given + at) for at, node in enumerate(each.reads)}
        part = _part(call, each.makes, each.inputs) if each.makes else call
        found.append(Stage(_with_sources(part, sources), each.reads, each.makes, each.selects))
    return found


def _rounds(selections: Sequence[Selection], counted: Counted) -> dict[Node, int]:
    """By which stage each mask is computed: behind all whose positions it depends on."""
    found: dict[Node, int] = {}
    for each in selections:
        before = [other for node in toposort([each.mask]) for other in counted.of(node)]
        found[each.mask] = max((found[other.mask] + 1 for other in before), default=0)
    return found


class _Cut:
    """Which stage computes each node, and what it hands on."""

    def __init__(
        self,
        selections: Sequence[Selection],
        order: dict[Node, int],
        ends: Sequence[Node],
        last: int,
    ) -> None:
        self._stage: dict[Node, int] = {}
        for number in range(last):
            masks = [each.mask for each in selections if order[each.mask] == number]
            for node in toposort(masks):
                self._stage.setdefault(node, number)
        self._ends = [
            [each.mask for each in selections if order[each.mask] == number]
            for number in range(last)
        ] + [list(ends)]
        self._read: list[dict[Node, None]] = [{} for _ in range(last + 1)]
        self._inputs: list[set[Node]] = [set() for _ in range(last + 1)]
        made: list[dict[Node, None]] = [{} for _ in range(last + 1)]
        for number in range(last, -1, -1):  # what later ones read is made by earlier ones
            self._walk(number, [*self._ends[number], *made[number]])
            for node in self._read[number]:
                made[self._of(node)][node] = None
        self._made = made

    def _walk(self, number: int, ends: Iterable[Node]) -> None:
        waiting, seen = list(ends), set()
        while waiting:
            node = waiting.pop()
            if node in seen:
                continue
            seen.add(node)
            if node.primitive is p.input_:
                self._inputs[number].add(node)
            elif self._of(node) < number and not _is_free(node):
                self._read[number][node] = None
            else:
                waiting += node.inputs

    def _of(self, node: Node) -> int:
        if node.primitive is p.get:  # one of several results belongs to what makes them
            node = node.inputs[0]
        return self._stage.get(node, len(self._ends) - 1)

    def read_by(self, number: int) -> list[Node]:
        return list(self._read[number])

    def made_by(self, number: int) -> list[Node]:
        return list(self._made[number])

    def inputs_of(self, number: int) -> set[Node]:
        return self._inputs[number]


def _is_free(node: Node) -> bool:
    """Whether it is computed where it is read, always to the same elements."""
    return node.primitive.family in (Family.SOURCE, Family.VIEW)


def _part(call: Call, outputs: Sequence[Node], needed: set[Node]) -> Call:
    """A call that only computes some nodes."""
    inputs = [entry for entry in call.inputs if entry.node in needed]
    return replace(
        call,
        graph=Graph([entry.node for entry in inputs], list(outputs)),
        inputs=inputs,
        result=pytree.flatten(list(range(len(outputs))))[1],
        refs=[Ref("output", number) for number in range(len(outputs))],
        effects=Effects(),
        asked={},
        leaves=[],
        differentiable={},
        traced_gradients=None,
        freed={},
    )


def _with_sources(call: Call, sources: dict[Node, Source]) -> Call:
    """A call that is given nodes of the trace as arguments."""
    own = {entry.node for entry in call.inputs}
    inputs = [
        replace(entry, source=sources[entry.node]) if entry.node in sources else entry
        for entry in call.inputs
    ]
    inputs += [TraceInput(source, node) for node, source in sources.items() if node not in own]
    cut = tuple(node for node in sources if node.primitive is not p.input_)
    graph = Graph([entry.node for entry in inputs], call.graph.outputs)
    return replace(call, graph=graph, inputs=inputs, cut=cut)
