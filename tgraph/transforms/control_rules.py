"""Branches and loops of a trace on many examples: the batching rules of `branch` and `loop`.

Their graphs are run on examples while they are recorded again (`Context.replayed`). Where examples
decide for themselves, all branches run and `where` takes one; a loop goes on until all are done,
and those that are done keep the state that they have.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..compiler.ir import Graph, Node, nested_graphs
from ..compiler.ir import primitives as p
from ..core.dispatch import apply, apply_several
from ..core.eager_context import current_context
from ..core.tensor import Tensor, intern_type
from ..runtime.dtypes import int64
from .batch_rules import spread
from .batched_call import lifted

if TYPE_CHECKING:
    from .batching import BatchContext

Found = tuple[Sequence[Tensor], Sequence[bool]]
"""Tensors below, and which of them have the examples along their first axis."""


def on_examples(
    context: BatchContext, primitive: Any, tensors: Sequence[Tensor], attrs: Any
) -> Found:
    """The results of a branch or loop for tensors of the context."""
    if primitive is p.loop:
        return _Loop(context, tensors, attrs).run()
    index, *operands = tensors
    if context.is_batched(index):
        return _selected(context, index, operands, attrs["branches"])
    return _branch(context, index, operands, attrs["branches"])


def _below(context: BatchContext, tensor: Tensor, is_batched: bool) -> Tensor:
    """What a tensor is below, with its examples in front if it `is_batched`."""
    found = context.lowered_tensor(tensor)
    if not is_batched or context.is_batched(tensor):
        return found
    with context.lowered():
        return spread(found, context.size)


def _recorded(
    context: BatchContext, function: Callable[..., Sequence[Tensor]], types: Sequence[Any],
    flags: Sequence[bool], wanted: Sequence[bool],
) -> Any:  # fmt: skip
    """A function of examples as a body of the trace, of which those results are batched that are
    `wanted`, as far as they can be otherwise."""
    inner = context.alike()
    own_types = [
        type_.with_shape((context.size, *type_.shape)) if flag else type_
        for type_, flag in zip(types, flags, strict=True)
    ]

    def run(*below: Tensor) -> list[Tensor]:
        with inner.entered():
            found = function(*map(lifted, [inner] * len(flags), below, flags))
            return [_below(inner, *pair) for pair in zip(found, wanted, strict=True)]

    with context.recording():
        return context.base.body(run, [intern_type(*each) for each in own_types], ())


class _Flags:
    """Which values of graphs are batched, from which of their inputs are.

    A graph inside of graphs is asked about often, and so once for the same inputs.
    """

    def __init__(self, draws_differ: bool) -> None:
        self.draws_differ = draws_differ
        self._known: dict[Any, list[bool]] = {}

    def of(self, graph: Graph, inputs: Sequence[bool]) -> list[bool]:
        key = graph, tuple(inputs)
        if key not in self._known:
            self._known[key] = self._of(graph, inputs)
        return self._known[key]

    def _of(self, graph: Graph, inputs: Sequence[bool]) -> list[bool]:
        found: dict[Node, Any] = dict(zip(graph.inputs, inputs, strict=True))
        for node in graph.nodes:
            if node not in found:
                found[node] = self._of_node(node, [found[each] for each in node.inputs])
        return [found[each] for each in graph.outputs]

    def _of_node(self, node: Node, flags: list[Any]) -> Any:
        if node.primitive is p.get:
            is_several = isinstance(flags[0], list)
            return flags[0][node.attrs["index"]] if is_several else flags[0]
        if node.primitive is p.loop and any(flags):
            state_, decides = self.of_loop(node.attrs, flags)
            return [True] * len(state_) if decides else state_
        if node.primitive is p.branch and any(flags):
            return self.of_branch(node.attrs["branches"], flags)
        return any(flags) or (node.primitive is p.random_bits and self.draws_differ)

    def of_branch(self, graphs: Sequence[Graph], flags: Sequence[bool]) -> list[bool]:
        found = [self.of(each, flags[1:]) for each in graphs]
        return [flags[0] or any(each) for each in zip(*found, strict=True)]

    def of_loop(self, attrs: Any, flags: Sequence[bool]) -> tuple[list[bool], bool]:
        """Of the state in a turn, and of the decision."""
        count, flags = attrs["carried"], list(flags)
        shared = self._counters(attrs["body"])
        while True:  # until no turn makes another part of the state one of each example
            after = self.of(attrs["body"], flags)
            decides = self.of(attrs["condition"], flags)[0]
            more = [
                one or other or (decides and node not in shared)
                for one, other, node in zip(flags, after, attrs["body"].inputs)
            ]
            if more == flags[:count]:
                return more, decides
            flags[:count] = more

    def _counters(self, graph: Graph) -> set[Node]:
        """The inputs by which random numbers are drawn that differ from example to example."""
        found: set[Node] = set()
        if not self.draws_differ:
            return found
        for node in reversed(graph.nodes):
            inside = [each.primitives for part in nested_graphs(node) for each in part.whole]
            is_draw = node.primitive is p.random_bits or any(p.random_bits in x for x in inside)
            if is_draw or node in found:
                found.update(node.inputs)
        return found


def _graphs(bodies: Sequence[Any]) -> tuple[list[Tensor], list[Any]]:
    """The graphs of bodies, all of which take what any of them captured, too."""
    captured = list({id(each): each for body in bodies for each in body.captured}.values())
    return captured, [body.graph(captured) for body in bodies]


def _flags_in(context: BatchContext) -> _Flags:
    return _Flags(context.randomness == "different")


def _replayed(context: BatchContext, graph: Graph, *tensors: Tensor) -> list[Tensor]:
    return context.base.replayed(graph, tensors)


# --- branches ------------------------------------------------------------------------------------


def _selected(
    context: BatchContext, index: Tensor, operands: Sequence[Tensor], graphs: Sequence[Any]
) -> Found:
    with context.resumed():
        number = apply(p.cast, index, dtype=int64)
        found, *others = [context.base.replayed(each, operands) for each in graphs]
        for at, other in enumerate(others, 1):
            is_later = apply(p.ge, number, context.constant(at, int64, index._type.device))
            found = [apply(p.where, is_later, *pair) for pair in zip(other, found, strict=True)]
        flags = list(map(context.is_batched, found))
    return list(map(context.lowered_tensor, found)), flags


def _branch(
    context: BatchContext, index: Tensor, operands: Sequence[Tensor], graphs: Sequence[Any]
) -> Found:
    types, flags = [each._type for each in operands], list(map(context.is_batched, operands))
    wanted = _flags_in(context).of_branch(graphs, [False, *flags])
    bodies = [
        _recorded(context, functools.partial(_replayed, context, each), types, flags, wanted)
        for each in graphs
    ]
    captured, branches = _graphs(bodies)
    given = [context.lowered_tensor(each) for each in (index, *operands)]
    return apply_several(p.branch, *given, *captured, branches=tuple(branches)), wanted


# --- loops ---------------------------------------------------------------------------------------


class _Loop:
    """A loop over tensors of `context`: a state, and what its graphs read beside it."""

    def __init__(self, context: BatchContext, tensors: Sequence[Tensor], attrs: Any) -> None:
        self.context, self.count = context, attrs["carried"]
        self.condition, self.body = attrs["condition"], attrs["body"]
        self.tensors = list(tensors)
        flags = list(map(context.is_batched, tensors))
        state_, self.decides = _flags_in(context).of_loop(attrs, flags)
        self.flags = [*state_, *flags[self.count :]]

    def run(self) -> Found:
        return self._by_examples() if self.decides else self._together()

    def _replayed(self, graph: Graph, own: Sequence[Tensor]) -> list[Tensor]:
        return _replayed(self.context, graph, *own)

    def _together(self) -> Found:
        """All examples go on as often."""
        flags, types = self.flags[: self.count], [each._type for each in self.tensors]

        def recorded(graph: Graph, wanted: Sequence[bool]) -> Any:
            run = functools.partial(_replayed, self.context, graph)
            return _recorded(self.context, run, types, self.flags, wanted)

        bodies = recorded(self.condition, [False]), recorded(self.body, flags)
        begin = [_below(self.context, *pair) for pair in zip(self.tensors, self.flags)]
        return self._loop(*bodies, begin, self.count), flags

    def _by_examples(self) -> Found:
        """Each example goes on until it is done, and those that are done wait for the others.

        Counters by which all examples draw at once go on meanwhile: of each example the last one
        of its own is kept beside them.
        """
        context, count = self.context, self.count
        free = [at for at in range(count) if not self.flags[at]]
        behind = count + len(free)
        written = self._written()
        read = self.tensors[count:]

        def whole(now: Sequence[Tensor], others: Sequence[Tensor]) -> list[Tensor]:
            return [*now, *others]

        def turn(*own: Tensor) -> list[Tensor]:
            now, last, alive, others = (
                own[:count], own[count:behind], own[behind], own[behind + 1 :]
            )  # fmt: skip
            after = self._turned(alive, now, others)
            kept = [apply(p.where, alive, after[at], each) for at, each in zip(free, last)]
            state_ = [
                each if at in free or at in written else apply(p.where, alive, each, now[at])
                for at, each in enumerate(after)
            ]
            (decision,) = self._replayed(self.condition, whole(state_, others))
            return [*state_, *kept, apply(p.logical_and, alive, decision)]

        def goes_on(*own: Tensor) -> list[Tensor]:
            inner = current_context()
            with inner.lowered():
                return [apply(p.any_, own[behind]._value.below, axes=(0,), keepdims=False)]

        with context.resumed():
            (alive,) = self._replayed(self.condition, self.tensors)
        given = [*self.tensors[:count], *(self.tensors[at] for at in free), alive, *read]
        own = self.flags[:count]
        flags = [*own, *[True] * len(free), True, *self.flags[count:]]
        types = [each._type for each in given]
        decides = _recorded(context, goes_on, types, flags, [False])
        made = _recorded(context, turn, types, flags, flags[: behind + 1])
        begin = [_below(context, *pair) for pair in zip(given, flags, strict=True)]
        found = self._loop(decides, made, begin, behind + 1)
        last = iter(found[count:])
        return [each if flag else next(last) for each, flag in zip(found, own)], [True] * count

    def _written(self) -> list[int]:
        """Parts of the state of which a turn does nothing but write a few elements."""
        return [
            at
            for at, node in enumerate(self.body.outputs)
            if self.flags[at]
            and node.primitive is p.index_put
            and node.inputs[0] is self.body.inputs[at]
            and not node.attrs["accumulate"]
        ]

    def _turned(
        self, alive: Tensor, now: Sequence[Tensor], others: Sequence[Tensor]
    ) -> list[Tensor]:
        """What a turn makes of the state; what is only written stays as it is, where none is
        `alive`, by the elements that are written."""
        written = [(at, self.body.outputs[at]) for at in self._written()]
        more = [each for _, node in written for each in node.inputs[1:]]
        puts = {at for at, _ in written}
        outputs = [
            self.body.inputs[at] if at in puts else each
            for at, each in enumerate(self.body.outputs)
        ]
        graph = self.body.with_outputs([*outputs, *more])
        found = self._replayed(graph, [*now, *others])
        after, rest = found[: self.count], iter(found[self.count :])
        for at, node in written:
            *places, value = (next(rest) for _ in node.inputs[1:])
            before = apply(p.index, now[at], *places, axis=node.attrs["axis"])
            value = apply(p.where, alive, value, before)
            after[at] = apply(p.index_put, now[at], *places, value, **node.attrs)
        return after

    def _loop(
        self, condition: Any, body: Any, begin: Sequence[Tensor], count: int
    ) -> tuple[Tensor, ...]:
        captured, (decision, turn) = _graphs([condition, body])
        return apply_several(
            p.loop, *begin, *captured, condition=decision, body=turn, carried=count
        )
