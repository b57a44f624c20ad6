"""Branches and loops of a trace on many examples: the batching rules of `branch` and `loop`.

Their graphs are run on examples while they are recorded again (`Context.replayed`). Where examples
decide for themselves, all branches run and `where` takes one; a loop goes on until all are done,
and those that are done keep the state that they have.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

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


def on_examples(context: BatchContext, primitive: Any, tensors: Sequence[Tensor], attrs: Any) -> Found:
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


class _Recorded:
    """A function of examples as a body of the trace, and which of its results are batched."""

    def __init__(
        self, context: BatchContext, function: Callable[..., Sequence[Tensor]],
        types: Sequence[Any], flags: Sequence[bool], wanted: Sequence[bool] = (),
    ) -> None:  # fmt: skip
        self.flags: list[bool] = []
        inner = context.alike()
        own_types = [
            type_.with_shape((context.size, *type_.shape)) if flag else type_
            for type_, flag in zip(types, flags, strict=True)
        ]

        def run(*below: Tensor) -> list[Tensor]:
            with inner.entered():
                found = function(*map(lifted, [inner] * len(flags), below, flags))
                self.flags = list(map(inner.is_batched, found))
                all_of = wanted or self.flags
                return [_below(inner, *pair) for pair in zip(found, all_of, strict=True)]

        with context.recording():
            self.body = context.base.body(run, [intern_type(*each) for each in own_types], ())


def _graphs(bodies: Sequence[Any]) -> tuple[list[Tensor], list[Any]]:
    """The graphs of bodies, all of which take what any of them captured, too."""
    captured = list({id(each): each for body in bodies for each in body.captured}.values())
    return captured, [body.graph(captured) for body in bodies]


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

    def recorded(graph: Any, wanted: Sequence[bool] = ()) -> _Recorded:
        def run(*own: Tensor) -> list[Tensor]:
            return context.base.replayed(graph, own)

        return _Recorded(context, run, types, flags, wanted)

    first = [recorded(each).flags for each in graphs]
    wanted = [any(each) for each in zip(*first, strict=True)]
    bodies = [recorded(each, wanted).body for each in graphs]
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
        self.types = [each._type for each in tensors]
        self.flags = list(map(context.is_batched, tensors))

    def replayed(self, graph: Any, own: Sequence[Tensor]) -> list[Tensor]:
        return self.context.base.replayed(graph, own)  # type: ignore[no-any-return]

    def run(self) -> Found:
        while True:  # until no turn makes another part of the state one of each example
            decides = self._recorded(lambda *own: self.replayed(self.condition, own))
            after = self._recorded(lambda *own: self.replayed(self.body, own)).flags
            flags = [one or other for one, other in zip(self.flags, after)]
            if flags == self.flags[: self.count]:
                return self._by_examples() if decides.flags[0] else self._together(decides)
            self.flags[: self.count] = flags

    def _recorded(
        self, function: Callable[..., Sequence[Tensor]], wanted: Sequence[bool] = ()
    ) -> _Recorded:
        return _Recorded(self.context, function, self.types, self.flags, wanted)

    def _together(self, decides: _Recorded) -> Found:
        """All examples go on as often."""
        flags = self.flags[: self.count]
        turn = self._recorded(lambda *own: self.replayed(self.body, own), flags)
        begin = [_below(self.context, *pair) for pair in zip(self.tensors, self.flags)]
        return self._loop(decides.body, turn.body, begin, self.count), flags

    def _by_examples(self) -> Found:
        """Each example goes on until it is done, and those that are done wait for the others.

        The state that is one for all examples goes on meanwhile, as their turns are the same: of
        each example the last one of its own is kept beside it.
        """
        context, count = self.context, self.count
        free = [at for at in range(count) if not self.flags[at]]
        behind = count + len(free)
        read = self.tensors[count:]

        def whole(now: Sequence[Tensor], others: Sequence[Tensor]) -> list[Tensor]:
            return [*now, *others]

        def turn(*own: Tensor) -> list[Tensor]:
            now, last, alive, others = (
                own[:count], own[count:behind], own[behind], own[behind + 1 :]
            )  # fmt: skip
            after = self.replayed(self.body, whole(now, others))
            kept = [apply(p.where, alive, after[at], each) for at, each in zip(free, last)]
            state_ = [
                apply(p.where, alive, each, now[at]) if self.flags[at] else each
                for at, each in enumerate(after)
            ]
            (decision,) = self.replayed(self.condition, whole(state_, others))
            return [*state_, *kept, apply(p.logical_and, alive, decision)]

        def goes_on(*own: Tensor) -> list[Tensor]:
            inner = current_context()
            with inner.lowered():
                return [apply(p.any_, own[behind]._value.below, axes=(0,), keepdims=False)]

        with context.resumed():
            (alive,) = self.replayed(self.condition, self.tensors)
        given = [*self.tensors[:count], *(self.tensors[at] for at in free), alive, *read]
        own = self.flags[:count]
        flags = [*own, *[True] * len(free), True, *self.flags[count:]]
        types = [each._type for each in given]
        decides = _Recorded(context, goes_on, types, flags)
        made = _Recorded(context, turn, types, flags, flags[: behind + 1])
        begin = [_below(context, *pair) for pair in zip(given, flags, strict=True)]
        found = self._loop(decides.body, made.body, begin, behind + 1)
        last = iter(found[count:])
        return [each if flag else next(last) for each, flag in zip(found, own)], [True] * count

    def _loop(
        self, condition: Any, body: Any, begin: Sequence[Tensor], count: int
    ) -> tuple[Tensor, ...]:
        captured, (decision, turn) = _graphs([condition, body])
        return apply_several(
            p.loop, *begin, *captured, condition=decision, body=turn, carried=count
        )
