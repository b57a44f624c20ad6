"""What a loop carries whole, and its body knows by parts, is carried in parts.

Caches of keys and values that lie in one tensor are an example: each layer writes some elements of
its own part. With the whole as state each turn would copy the part, write it, and put it back; a
part that is state itself is written where it lies. (Scalar replacement of aggregates, as in
Muchnick, "Advanced Compiler Design and Implementation", 12.2.)
"""

from __future__ import annotations

from collections.abc import Sequence

from ...runtime.records import NamedTuple
from ..ir import Builder, Graph, Node, input_node
from ..ir import primitives as p
from ..ir.shapes import are_plain_ints
from .matching import reshape
from .simplify_control import Results, get, replace_results

MOST_PARTS = 64
"""Of one value that is carried: each part costs a turn an exchange of two places."""


class _Box(NamedTuple):
    """Elements from `starts` up to `stops`."""

    starts: tuple[int, ...]
    stops: tuple[int, ...]

    def meets(self, other: _Box) -> bool:
        sides = zip(self.starts, self.stops, other.starts, other.stops, strict=True)
        return all(max(a, c) < min(b, d) for a, b, c, d in sides)

    def is_inside(self, other: _Box) -> bool:
        below = zip(other.starts, self.starts, strict=True)
        above = zip(self.stops, other.stops, strict=True)
        return all(a <= b for pairs in (below, above) for a, b in pairs)

    def within(self, other: _Box) -> _Box:
        """The same elements, as the other box counts them."""
        starts, stops = (
            tuple(at - begin for at, begin in zip(each, other.starts, strict=True))
            for each in (self.starts, self.stops)
        )
        return _Box(starts, stops)

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(stop - start for start, stop in zip(self.starts, self.stops, strict=True))

    @property
    def shape(self) -> tuple[int, ...]:
        """That of what is carried: as bodies take and write parts, without the axes of an index."""
        return tuple(size for size in self.sizes if size != 1)

    @property
    def attrs(self) -> dict[str, tuple[int, ...]]:
        return {"starts": self.starts, "stops": self.stops, "steps": (1,) * len(self.starts)}


Parts = dict[int, list[_Box]]
"""Of the values that are carried in parts, by their numbers."""


def split_state(graph: Graph) -> Graph:
    return replace_results(graph, (p.loop,), _split)


def _split(
    build: Builder, node: Node, inputs: tuple[Node, ...], read: Sequence[int]
) -> Results | None:
    condition, body, carried = (node.attrs[name] for name in ("condition", "body", "carried"))
    body = split_state(body)  # what loops inside know by parts is read and written so here
    parts = _parts(condition, body, carried) if p.slice_update in body.primitives else {}
    if not parts:
        return None
    operands: list[Node] = []
    begins: list[int] = []  # of what stands for each operand
    for at, operand in enumerate(inputs):
        begins.append(len(operands))
        boxes = parts.get(at)
        if boxes is None:
            operands.append(operand)
        else:
            slices = [_slice(build, operand, box) for box in boxes]
            operands += [reshape(build, each, box.shape) for each, box in zip(slices, boxes)]
    attrs = {
        "condition": _Split(condition, parts).graph(),
        "body": _Split(body, parts).graph(),
        "carried": carried + sum(len(boxes) - 1 for boxes in parts.values()),
    }
    new = build.apply(p.loop, operands, attrs, node.where)
    results: Results = {}
    for at in read:
        results[at] = inputs[at] if at in parts else get(build, new, begins[at])
        for number, box in enumerate(parts.get(at, ())):
            part = reshape(build, get(build, new, begins[at] + number), box.sizes)
            results[at] = build.apply(p.slice_update, [results[at], part], box.attrs, node.where)
    return results


def _parts(condition: Graph, body: Graph, carried: int) -> Parts:
    """The values of the state that a loop knows by parts alone, of which none meets another."""
    found: Parts = {}
    for at in range(carried):
        if not condition.reads.get(condition.inputs[at], 0):
            versions = _versions(body, at)
            boxes = None if versions is None else _boxes(body, versions)
            if boxes:
                found[at] = boxes
    return found


def _versions(body: Graph, at: int) -> list[Node] | None:
    """A value of the state, and what it is after each write of a part; None if it is made anew."""
    versions = [body.inputs[at]]
    for version in versions:
        if any(each is version and number != at for number, each in enumerate(body.outputs)):
            return None
        for user in body.consumers[version]:
            if user.primitive is p.slice_update and user.inputs[1] is not version:
                versions.append(user)
            elif user.primitive is not p.slice_:
                return None
    return versions if len(versions) > 1 and body.outputs[at] in versions else None


def _boxes(body: Graph, versions: Sequence[Node]) -> list[_Box] | None:
    """The parts that are read and written, and in which others lie; None if any other two meet."""
    found: dict[_Box, None] = {}
    for version in versions:
        for user in body.consumers[version]:
            box, steps = _box_of(user), user.attrs["steps"]
            if not are_plain_ints(box.starts + box.stops) or any(step != 1 for step in steps):
                return None
            if not any(map(box.is_inside, found)):
                found = {each: None for each in found if not each.is_inside(box)}
                if len(found) == MOST_PARTS or any(map(box.meets, found)):
                    return None
                found[box] = None
    return list(found)


def _box_of(node: Node) -> _Box:
    return _Box(node.attrs["starts"], node.attrs["stops"])


class _Split:
    """A graph inside of a loop that is given some values in parts."""

    def __init__(self, before: Graph, parts: Parts) -> None:
        self.before, self.parts = before, parts
        self.build = Builder()
        self.inputs: list[Node] = []
        self.new: dict[Node, Node] = {}
        self.given: dict[Node, dict[_Box, Node]] = {}  # the parts of each value that has some
        for at, node in enumerate(before.inputs):
            if at in parts:
                self.given[node] = {box: _part(node, box) for box in parts[at]}
                self.inputs += self.given[node].values()
            else:
                self.inputs.append(node)
                self.new[node] = node

    def graph(self) -> Graph:
        outputs: list[Node] = []
        for node in self.before.nodes:
            if node not in self.new and node not in self.given:
                self._rewrite(node)
        for node in self.before.outputs:
            outputs += self.given[node].values() if node in self.given else [self.new[node]]
        return Graph(self.inputs, outputs)

    def _rewrite(self, node: Node) -> None:
        whole = self.given.get(node.inputs[0]) if node.inputs else None
        if whole is None:
            operands = [self.new[each] for each in node.inputs]
            self.new[node] = self.build.rebuild(node, operands)
            return
        own, build = _box_of(node), self.build
        box = next(each for each in whole if own.is_inside(each))
        part = reshape(build, whole[box], box.sizes)
        if node.primitive is p.slice_:
            self.new[node] = part if own == box else _slice(build, part, own.within(box))
            return
        written = self.new[node.inputs[1]]
        if own != box:
            attrs = own.within(box).attrs
            written = build.apply(p.slice_update, [part, written], attrs, node.where)
        self.given[node] = {**whole, box: reshape(build, written, box.shape)}


def _part(node: Node, box: _Box) -> Node:
    return input_node(node.attrs["name"], node.type.with_shape(box.shape), node.where)


def _slice(build: Builder, node: Node, box: _Box) -> Node:
    return build.apply(p.slice_, [node], box.attrs, node.where)
