"""Graphs over several devices: cut where values move, one executable for each piece.

A *segment* is what one device computes between two transfers. A transfer of an input of the graph
makes no cut: its segment gets the input as it is there when a call begins.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from functools import cached_property
from typing import Any

from ..runtime.arrays import copy_elements, transferred
from ..runtime.device import CPU, Device
from ..runtime.plan import ReadOnlyError
from ..runtime.records import record, replace
from .ir import Builder, Family, Graph, Node, TensorType, input_node, toposort, transform
from .ir import primitives as p
from .passes.on_one_device import on_one_device
from .plan.executable import Executable
from .plan.request import Request
from .plan.step_info import StepInfo

Array = Any
# A CUDA plan packs smaller arrays of the host into one transfer.
PACKED_BYTES = 64 << 10
# An array is moved as a whole for one of its elements, where it has few.
FEW_BYTES = 64


@record(eq=False, frozen=False)
class Segment:
    """What one device computes from `sources` (inputs, transfers, results of other segments).

    Nodes are those of the whole graph; `graph` has inputs in place of the sources.
    """

    device: Device
    own: list[Node] = field(default_factory=list)
    results: list[Node] = field(default_factory=list)
    sources: list[Node] = field(default_factory=list)
    graph: Graph = field(default_factory=lambda: Graph([], []))

    def take(self, node: Node) -> None:
        """Make an input of the whole graph a source, which nothing reads."""
        self.sources.append(node)
        self.graph = Graph([*self.graph.inputs, node], self.graph.outputs)


def is_on_cpu(graph: Graph) -> bool:
    """Whether every value of a graph is the CPU's."""
    nodes = (node for each in graph.whole for node in (*each.inputs, *each.nodes))
    return all(_device(node) is CPU for node in nodes)


def move_early(graph: Graph) -> Graph:
    """Single numbers are moved to a device before they are computed with; constants are made there.

    So the arithmetic of hyperparameters on the host, and the counters of generators, make no
    segment of their own. Branches and loops are on one device each.
    """
    graph = on_one_device(graph)
    numbers: set[Node] = set()
    moved: dict[Device, dict[Node, Node]] = {}

    def on_device(build: Builder, node: Node, device: Device) -> Node:
        if not (_is_free(node) or node in numbers):
            return build.apply(p.transfer, [node], {"device": device}, node.where)
        there = moved.setdefault(device, {})
        for each in toposort([node], known=there):
            if each not in there:
                there[each] = place(build, each, device)
        return there[node]

    def place(build: Builder, node: Node, device: Device) -> Node:
        if node.primitive is p.input_:
            return build.apply(p.transfer, [node], {"device": device}, node.where)
        attrs = dict(node.attrs)
        if _is_free(node):
            attrs.pop("device", None)
            attrs |= {} if device is CPU else {"device": device}
        operands = [moved[device][each] for each in node.inputs]
        return build.apply(node.primitive, operands, attrs, node.where)

    def rewrite(build: Builder, node: Node, operands: tuple[Node, ...]) -> Node:
        if node.primitive is p.transfer:
            return on_device(build, operands[0], node.type.device)
        new = build.rebuild(node, operands)
        family = node.primitive.family
        if family is Family.ELEMENTWISE and all(map(is_number, operands)):
            numbers.add(new)
        if family is Family.VIEW and is_one(node) and is_few(operands[0]):
            numbers.add(new)
        return new

    def is_number(node: Node) -> bool:
        return node in numbers or (_is_free(node) and is_one(node))

    def is_one(node: Node) -> bool:
        return node.type.numel == 1

    def is_few(node: Node) -> bool:
        return node in numbers or (_is_free(node) and node.type.nbytes <= FEW_BYTES)

    return transform(graph, rewrite, of=[p.transfer])


def split(graph: Graph) -> list[Segment]:
    """The segments of a graph, in an order in which they can run."""
    level = _levels(graph)
    made: dict[tuple[int, str], Segment] = {}
    segment_of: dict[Node, Segment] = {}
    for node in dict.fromkeys((*graph.nodes, *graph.outputs)):
        if node.primitive is p.transfer or (_is_free(node) and node not in graph.outputs):
            continue
        key = level[node], str(_device(node))
        segment_of[node] = made.setdefault(key, Segment(_device(node)))
        segment_of[node].own.append(node)
    segments = [made[key] for key in sorted(made)]
    needed = {node for node in graph.outputs if node in segment_of}
    for node in graph.nodes:
        for operand in node.inputs:
            if not _is_free(operand) and segment_of.get(operand) is not segment_of.get(node):
                needed.add(operand)
    for segment in segments:
        segment.results = [node for node in segment.own if node in needed]
        _build(segment)
    return [segment for segment in segments if segment.results]


def _is_free(node: Node) -> bool:
    """Whether a node costs nothing to have in any segment: inputs, numbers, constants."""
    return node.primitive.family is Family.SOURCE


def _levels(graph: Graph) -> dict[Node, int]:
    """How many transfers of computed values lie behind each node."""
    level: dict[Node, int] = {}
    for node in (*graph.inputs, *graph.nodes):
        level[node] = max((level[each] for each in node.inputs), default=0)
        if node.primitive is p.transfer and not _is_free(node.inputs[0]):
            level[node] += 1
    return level


def _device(node: Node) -> Device:
    type_: Any = node.type
    return type_.device if isinstance(type_, TensorType) else type_[0].device


def _build(segment: Segment) -> None:
    """The graph of a segment."""
    build, own = Builder(), set(segment.own)
    made: dict[Node, Node] = {}

    def enter(node: Node) -> Node:
        if node.primitive is p.input_:
            segment.sources.append(node)
            return node
        if node in own or _is_free(node):
            return build.rebuild(node, [made[each] for each in node.inputs])
        segment.sources.append(node)
        return input_node(f"moved{len(segment.sources)}", node.type, node.where)

    for node in _needed(segment.results, own):
        made[node] = enter(node)
    inputs = [made[node] for node in segment.sources]
    segment.graph = Graph(inputs, [made[node] for node in segment.results])


def _needed(results: Sequence[Node], own: set[Node]) -> list[Node]:
    """What the results are made of, operands first, as far back as the sources."""
    found: dict[Node, None] = {}
    pending = [(node, False) for node in reversed(results)]
    while pending:
        node, operands_done = pending.pop()
        if node in found:
            continue
        if operands_done or node not in own:
            found[node] = None
            continue
        pending.append((node, True))
        pending += [(each, False) for each in reversed(node.inputs)]
    return list(found)


class PlacedExecutable:
    """A graph over several devices, ready to run: it has an `Executable` for each part.

    `compile_part(device, request)` makes that of a segment.
    """

    refuses_gaps = False

    def __init__(
        self, request: Request, compile_part: Callable[[Device, Request], Executable]
    ) -> None:
        donate, strides = request.donate, request.strides
        graph = move_early(request.graph)
        self.inputs, self.outputs = graph.inputs, graph.outputs
        self.donate = dict(donate or {})
        self._written_on_host = [
            number
            for number in sorted({*request.overwritten, *self.donate.values()})
            if _device(graph.inputs[number]) is CPU and graph.inputs[number].type.numel
        ]
        self.seconds = (0.0, 0.0)
        self.segments = split(graph)
        self._number = {node: number for number, node in enumerate(graph.inputs)}
        self._direct: set[int] = set()
        self.executables: list[Executable] = []
        for segment in self.segments:
            given = self._donated(segment)
            odd = {
                position: strides[self._number[node]]
                for position, node in enumerate(segment.sources)
                if strides and self._number.get(node) in strides
            }
            host = [position for position, node in enumerate(segment.sources) if _is_packed(node)]
            part = replace(
                request, graph=segment.graph, donate=given, strides=odd, overwritten=(),
                from_host=host,
            )  # fmt: skip
            self.executables.append(compile_part(segment.device, part))
            self._direct.update(
                number
                for number, node in enumerate(graph.outputs)
                if node in segment.results and segment.results.index(node) in given
            )

        self._order = self._straight()

    @property
    def graph(self) -> Graph:
        """The optimised graphs of the segments as one, with the transfers between them."""
        return self._joined[0]

    @property
    def kernels(self) -> list[StepInfo]:
        """What is told of the steps of all segments, in order, by nodes of `graph`."""
        return self._joined[1]

    @cached_property
    def _joined(self) -> tuple[Graph, list[StepInfo]]:
        build = Builder()
        values: dict[Node, Node] = {node: node for node in self.inputs}
        infos: list[StepInfo] = []

        def value_of(node: Node) -> Node:
            if node not in values:
                values[node] = build.rebuild(node, [value_of(each) for each in node.inputs])
            return values[node]

        for segment, executable in zip(self.segments, self.executables):
            inner: Graph = executable.graph
            given = [_in_parts(build, value_of(node)) for node in segment.sources]
            new = dict(zip(inner.inputs, given, strict=True))
            for node in inner.nodes:
                if node not in new:
                    new[node] = build.rebuild(node, [new[each] for each in node.inputs])
            for node, made in zip(segment.results, inner.outputs):
                is_pair = node.type.dtype.is_complex
                values[node] = build.apply(p.view_as_complex, [new[made]]) if is_pair else new[made]
            infos += [
                replace(
                    info,
                    nodes=tuple(new.get(node, node) for node in info.nodes),
                    outputs=tuple(new.get(node, node) for node in info.outputs),
                )
                for info in executable.kernels
            ]
        return Graph(self.inputs, [value_of(node) for node in self.outputs]), infos

    @property
    def refused(self) -> list[Any]:
        """The fusions that were not made."""
        return [refusal for each in self.executables for refusal in each.refused]

    def _donated(self, segment: Segment) -> dict[int, int]:
        """Results of a single segment that may be written into inputs at once.

        Where there are several, a check of another one may still fail, and inputs may still be
        read: results are copied when all is done.
        """
        moved = {_origin(node) for node in self.outputs if node.primitive is p.transfer}
        if len(self.segments) > 1:
            return {}
        given = {}
        for output, source in self.donate.items():
            node, replaced = self.outputs[output], self.inputs[source]
            if node not in segment.results or replaced in moved:
                continue
            if replaced not in segment.sources and _device(replaced) is segment.device:
                segment.take(replaced)  # it is only written
            if replaced in segment.sources:
                given[segment.results.index(node)] = segment.sources.index(replaced)
        return given

    @property
    def is_straight(self) -> bool:
        """Whether all is computed on one device, and Python moves nothing there or back."""
        return self._order is not None

    def _straight(self) -> tuple[list[int], list[int]] | None:
        """For one segment that moves nothing by Python: its inputs and results by number."""
        if len(self.segments) != 1 or len(self._direct) < len(self.donate):
            return None
        (segment,) = self.segments
        given = [
            self._number.get(node.inputs[0] if _is_packed(node) else node)
            for node in segment.sources
        ]
        if None in given or not all(node in segment.results for node in self.outputs):
            return None
        return given, list(map(segment.results.index, self.outputs))  # type: ignore[return-value]

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """One array for each output, on its own device."""
        for number in self._written_on_host:
            if not inputs[number].flags.writeable:
                raise ReadOnlyError(f"the array for input {number} must not be written")
        if self._order is not None:
            given, results = self._order
            found = self.executables[0].run([inputs[at] for at in given])
            return [found[at] for at in results]
        values: dict[Node, Array] = dict(zip(self.inputs, inputs))
        for segment, executable in zip(self.segments, self.executables):
            given = [
                values[node.inputs[0]] if _is_packed(node) else self._fetched(node, values)
                for node in segment.sources
            ]
            values.update(zip(segment.results, executable.run(given)))
        outputs = [self._fetched(node, values) for node in self.outputs]
        # Only now, since an output may be what another's target was.
        for number, source in self.donate.items():
            if number not in self._direct:
                self._wait_for_checks()
                copy_elements(inputs[source], outputs[number])
                outputs[number] = inputs[source]
        return outputs

    def _wait_for_checks(self) -> None:
        """What lives on is overwritten only when no check can fail any more."""
        for executable in self.executables:
            executable.wait_for_checks()

    def _fetched(self, node: Node, values: dict[Node, Array]) -> Array:
        """The value of a node, moved to its device where it is a transfer."""
        if node not in values:
            (operand,) = node.inputs
            values[node] = transferred(self._fetched(operand, values), _device(node))
        return values[node]


def _in_parts(build: Builder, node: Node) -> Node:
    """Complex numbers as the plans of segments have them."""
    return build.apply(p.view_as_real, [node]) if node.type.dtype.is_complex else node


def _origin(node: Node) -> Node:
    """What a transfer, or several in a row, moves."""
    while node.primitive is p.transfer:
        (node,) = node.inputs
    return node


def _is_packed(node: Node) -> bool:
    """Whether a source is a small value of the host, which the plan itself moves."""
    if node.primitive is not p.transfer or node.inputs[0].primitive is p.transfer:
        return False
    (operand,) = node.inputs
    small = node.type.nbytes <= PACKED_BYTES
    return small and _device(operand) is CPU and _device(node) is not CPU
