"""Loops on traced tensors: one turn is recorded, and the plan repeats it.

A variable keeps its type from turn to turn. What it is before the loop is tried first: numbers that
a turn changes become tensors, of the type that the turn gives; then the turn is recorded again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..compiler.ir import TensorType
from ..core import pytree
from ..core.carried_number import CarriedNumber, is_natural
from ..core.eager_context import current_context
from ..core.tensor import Tensor, intern_type
from ..core.trace_state import TraceError
from ..ops.loops import repeated
from ..runtime.dtypes import int64
from .aliases import ended, forks_here, may_be, may_be_one, shares_memory, tensors_of
from .cells import UNDEFINED, Variables
from .decisions import all_of, decision, is_traced
from .exits import RETURNED, is_flag
from .growing import Growing
from .iterables import Turns, row
from .statements import Loop
from .values import (
    as_tensor,
    common_type,
    empty,
    error,
    have_one_type,
    is_number,
    is_same,
    shown,
    takes,
)
from .values import type_of as type_of_leaf

_Thunk = Callable[[], Any]
_TRIALS = 8


def run(
    variables: Variables, spec: Loop, body: _Thunk, test: _Thunk | None = None,
    turns: Turns | None = None, assign: Callable[[Any], None] | None = None,
) -> None:  # fmt: skip
    """The rest of a loop, from what the variables hold now."""
    if turns is not None and _is_counted(turns) and turns.count == 0:
        return
    try:
        _Loop(variables, spec, body, test, turns, assign).record()
    except _Unstable as changed:
        if turns is None or not _is_counted(turns) or is_traced(_flag(variables, spec)):
            raise changed.error from None
        # The first turn runs for sure: it is written out, and the types are those that it leaves.
        first = current_context().constant(0, int64)
        assert assign is not None
        assign(turns.value(first, [each[0] for each in turns.rows]))
        body()
        if turns.count > 1:
            behind = Turns(
                turns.count - 1,
                lambda at, rows: turns.value(at + 1, rows),
                [each[1:] for each in turns.rows],
            )
            try:
                _Loop(variables, spec, body, test, behind, assign).record()
            except _Unstable as again:
                raise again.error from None


def _is_counted(turns: Turns | None) -> bool:
    """Whether Python knows how many turns there are."""
    return turns is not None and type(turns.count) is int


def _flag(variables: Variables, spec: Loop) -> Any:
    return variables.get(spec.breaks) if spec.breaks else False


class _Unstable(Exception):
    """A turn leaves a variable as something that it cannot begin with."""

    def __init__(self, error: TraceError) -> None:
        super().__init__(error)
        self.error = error


class _Slot:
    """What a variable holds when a turn begins: for each leaf a type in the graph, or None where it
    is a value of Python's that stays."""

    def __init__(self, name: str, value: Any, varies: bool) -> None:
        self.name = name
        self.is_new = value is UNDEFINED
        self.left: list[Any] = []  # the leaves behind a turn
        self.shared: list[Tensor] = []  # those among them that are tensors of the outside
        self.given: list[Any] = []  # the leaves that a turn began with
        self.was_constant = False
        self.leaves, self.spec = pytree.flatten(value)
        self.types: list[TensorType | None] = [
            type_of_leaf(each) if isinstance(each, Tensor) or varies else None
            for each in self.leaves
        ]
        # Which of them are numbers when a turn begins, and which of these are known to be natural.
        self.numbers = [is_number(each) for each in self.leaves]
        self.naturals = [is_natural(each) for each in self.leaves]

    def initial(self) -> list[Tensor]:
        return [
            empty(type_) if leaf is UNDEFINED else as_tensor(leaf, type_)
            for leaf, type_ in zip(self.leaves, self.types, strict=True)
            if type_ is not None
        ]

    def filled(self, tensors: Any) -> Any:
        """The variable, with the next of `tensors` where it has them."""
        leaves = [
            leaf if type_ is None else next(tensors)
            for leaf, type_ in zip(self.leaves, self.types, strict=True)
        ]
        for at, leaf in enumerate(leaves):
            if self.numbers[at] and isinstance(leaf, Tensor):
                leaves[at] = CarriedNumber(leaf, self.naturals[at])
        self.given = leaves
        return self.spec.unflatten(leaves)

    def tells(self, at: int, leaf: Any) -> bool:
        """Whether what a turn leaves changes what is known of the leaf that turns begin with."""
        before = self.numbers[at], self.naturals[at]
        if isinstance(leaf, Tensor):
            self.numbers[at] = False
        elif self.leaves[at] is UNDEFINED:
            self.numbers[at] = is_number(leaf)
        self.naturals[at] = self.naturals[at] and is_natural(leaf)
        return before != (self.numbers[at], self.naturals[at])

    def is_constant(self, at: int, leaf: Any) -> bool:
        """Whether a turn leaves a number as it is; found out once."""
        if self.was_constant or self.types[at] is None or not is_number(self.leaves[at]):
            return False
        self.was_constant = leaf is self.given[at] or is_same(self.leaves[at], leaf)
        return self.was_constant


class _Loop:
    def __init__(
        self, variables: Variables, spec: Loop, body: _Thunk, test: _Thunk | None,
        turns: Turns | None, assign: Callable[[Any], None] | None,
    ) -> None:  # fmt: skip
        self.variables, self.spec, self.turns = variables, spec, turns
        self.body, self.test, self.assign = body, test, assign
        self.before = variables.take()
        self.slots = [
            _Slot(name, self.before[name], name in spec.varying)
            for name in spec.carried
            if name in self.before and not self._is_in_place(name)
        ]
        self.is_known = turns is not None and turns.is_known
        self.runs = _is_counted(turns) and not is_traced(_flag(variables, spec))
        self.scans = self.is_known and not spec.breaks  # rather than to ask a condition
        self.is_changed = False
        self.forks: dict[int, list[Tensor]] = {}
        self.growing = Growing([body], spec.header)

    def _is_in_place(self, name: str) -> bool:
        """Whether a variable keeps the tensor that it holds, which turns write into."""
        return isinstance(self.before[name], Tensor) and name in self.spec.updated

    # --- recording ---

    def record(self) -> None:
        left = iter(self._results() if current_context().takes_bodies else self._repeated())
        held = {name for name in self.before if self._is_in_place(name)}
        made: dict[str, Any] = {n: UNDEFINED for n in self.before if n not in held}
        for slot in self.slots:
            value = slot.filled(left)
            if slot.name in self.spec.live:
                made[slot.name] = value
            for at, result in enumerate(slot.given):
                if slot.types[at] is not None:
                    may_be(result, [*tensors_of([slot.leaves[at]]), *slot.shared], slot.name)
        self._note_aliases()
        self.variables.put(made)

    def _note_aliases(self) -> None:
        """Variables that a turn leaves with one tensor, or that begin with one if there is none."""
        live = [each for each in self.slots if each.name in self.spec.live]
        for leaves in ("left",) if self.runs else ("left", "leaves"):
            may_be_one(
                (
                    (slot.name, result, leaf)
                    for slot in live
                    for result, leaf in zip(slot.given, getattr(slot, leaves), strict=True)
                ),
                self.forks,
            )

    def _results(self) -> list[Tensor]:
        body = self._body()
        return self._scanned(body) if self.scans else self._looped(body)

    def _repeated(self) -> list[Tensor]:
        """The loop in a context over that of the trace, as where examples decide by themselves."""
        self.scans = False

        def tried() -> list[Tensor]:
            begin = self._initial()
            if self.turns is not None:
                begin.insert(0, current_context().constant(0, int64))
            self._turn(*begin)
            return begin

        begin = self._settled(tried)
        found = repeated(lambda *state_: self._condition(*state_)[0], self._turn, begin, None)
        return found if self.turns is None else found[1:]

    def _initial(self) -> list[Tensor]:
        return [each for slot in self.slots for each in slot.initial()]

    def _types(self, rows: bool) -> list[TensorType]:
        types = [each for slot in self.slots for each in slot.types if each is not None]
        if self.turns is None:
            return types
        found = [each._type for each in self.turns.rows] if rows else []
        of_rows = [each.with_shape(each.shape[1:]) for each in found]
        return [intern_type((), int64), *types, *of_rows]

    def _body(self) -> Any:
        """One turn, recorded for types that it leaves as they are."""
        watched = [each for each in (self.assign, self.body) if each is not None]
        body = self._settled(
            lambda: current_context().body(self._turn, self._types(self.scans), watched)
        )
        self._check_aliases(body)
        return body

    def _settled(self, tried: Callable[[], Any]) -> Any:
        """What `tried` gives of a turn that leaves all types as they are.

        A turn may tell a type that the next one hands on, as where variables are a queue.
        """
        for _ in range(_TRIALS + sum(len(slot.leaves) for slot in self.slots)):
            self.is_changed = False
            found = tried()
            if not self.is_changed:
                return found
        raise error(
            f"the types of the variables of the loop `{self.spec.header}` change from turn to turn"
        )

    def _check_aliases(self, body: Any) -> None:
        """What a turn writes must not be there by another name, which the next turn may read."""
        written = [each for each in body.changed if isinstance(each, Tensor)]
        if self.turns is not None and any(shares_memory(x, written) for x in self.turns.rows):
            raise error(
                f"a turn of the loop `{self.spec.header}` writes into the tensor that it goes over",
                "for row in rows.clone(): ...  # or: for i in range(len(rows)): row = rows[i]",
            )
        for slot in self.slots:
            left = tensors_of(slot.left)
            slot.shared = [x for x in left if shares_memory(x, [*body.reads, *written])]
            slot.shared += [x for leaf in left for x in self.forks.get(id(leaf), ())]
            is_again = slot.name != RETURNED  # which ends the loop
            if is_again and any(shares_memory(x, written) for x in slot.shared):
                raise error(
                    f"a turn of the loop `{self.spec.header}` leaves in `{slot.name}` a tensor "
                    "that it also writes in place by another name",
                    f"{slot.name} = ....clone()",
                )

    def _turn(self, *tensors: Tensor) -> list[Tensor]:
        """What one turn makes of the state, behind the number of the next turn."""
        state_ = list(tensors)
        at = state_.pop(0) if self.turns is not None else None
        count = sum(type_ is not None for slot in self.slots for type_ in slot.types)
        rows = state_[count:]
        if self.turns is not None and at is not None and not self.scans:
            rows = [row(each, at) for each in self.turns.rows]
        self._begin(state_[:count])
        own, forks = [*tensors, *rows], forks_here()
        nodes = [each._value for each in own]
        try:
            if self.turns is not None and self.assign is not None:
                self.assign(self.turns.value(at, rows))  # type: ignore[arg-type]
            self.body()
            appended = self.growing.taken(self.scans and _is_counted(self.turns))
            after = {slot.name: self.variables.get(slot.name) for slot in self.slots}
        finally:
            self.variables.put(self.before)
        if any(each._value is not node for each, node in zip(own, nodes, strict=True)):
            raise error(
                f"a turn of the loop `{self.spec.header}` on tensors writes in place what the turn "
                "before left in a variable, or a row",
                "x = x + 1  # instead of x += 1",
            )
        made = [each for slot in self.slots for each in self._left(slot, after[slot.name])]
        self.forks = ended([leaf for slot in self.slots for leaf in slot.left], forks)
        if self.is_changed:
            return []
        return made if at is None else [at + 1, *made, *appended]

    def _begin(self, state_: Sequence[Tensor]) -> None:
        left = iter(state_)
        values = dict(self.before)
        values.update((slot.name, slot.filled(left)) for slot in self.slots)
        self.variables.put(values)

    def _condition(self, *tensors: Tensor) -> list[Tensor]:
        """Whether another turn runs."""
        state_ = list(tensors)
        at = state_.pop(0) if self.turns is not None else None
        self._begin(state_)
        with current_context().pure("the condition of a loop"):
            try:
                return [decision(self._goes_on(at))]
            finally:
                self.variables.put(self.before)

    def _goes_on(self, at: Tensor | None) -> Any:
        asked: list[_Thunk] = []
        if self.turns is not None:
            asked.append(lambda: at < self.turns.count)  # type: ignore[operator, union-attr]
        if self.spec.breaks:
            asked.append(lambda: ~decision(self.variables.get(self.spec.breaks)))
        if self.test is not None:
            asked.append(self.test)

        def all_behind(number: int) -> Any:
            value = asked[number]()
            if number + 1 == len(asked):
                return value
            if is_traced(value):
                return all_of(value, lambda: all_behind(number + 1))
            return all_behind(number + 1) if value else value

        return all_behind(0)

    # --- the graph ---

    def _looped(self, body: Any) -> list[Tensor]:
        context = current_context()
        watched = [self.test] if self.test is not None else []
        condition = context.body(self._condition, self._types(rows=False), watched)
        initial = self._initial()
        if self.turns is None:
            return context.loop(condition, body, initial)
        first, bound = context.constant(0, int64), self.turns.count if self.is_known else None
        return context.loop(condition, body, [first, *initial], bound)[1:]

    def _scanned(self, body: Any) -> list[Tensor]:
        assert self.turns is not None
        context = current_context()
        initial = [context.constant(0, int64), *self._initial()]
        found = context.scan(body, initial, self.turns.rows, self.turns.count, False)
        if len(found) > len(initial):
            self.growing.extend(found[len(initial) :], self.turns.count)
        return found[1 : len(initial)]

    # --- types ---

    def _left(self, slot: _Slot, value: Any) -> list[Tensor]:
        """What a turn leaves in a variable, as tensors of its types; they may change."""
        leaves, spec = pytree.flatten(value)
        slot.left = leaves
        if slot.is_new and spec != slot.spec:
            slot.leaves, slot.spec = [UNDEFINED] * len(leaves), spec
            slot.types = [None] * len(leaves)
            slot.numbers, slot.naturals = [False] * len(leaves), [False] * len(leaves)
            self.is_changed = True
        if spec != slot.spec:
            raise self._differs(slot.name, "a container", "one built in another way")
        made = []
        for at, (leaf, path) in enumerate(zip(leaves, spec.paths(slot.name), strict=True)):
            type_ = self._type(slot, at, leaf, path)
            if slot.tells(at, leaf) or type_ is not slot.types[at]:
                slot.types[at] = type_
                self.is_changed = True
            if type_ is not None and not self.is_changed:
                made.append(as_tensor(leaf, type_))
        return made

    def _type(self, slot: _Slot, at: int, leaf: Any, path: str) -> TensorType | None:
        """The type with which a leaf can begin a turn and end it."""
        first, type_ = slot.leaves[at], slot.types[at]
        found = type_of_leaf(leaf)
        if slot.is_new:
            return self._new_type(slot, at, leaf)
        if slot.is_constant(at, leaf) or (type_ is None and is_same(first, leaf)):
            return None
        if found is None or type_of_leaf(first) is None:
            raise self._differs(path, shown(first), shown(leaf))
        if type_ is not None and isinstance(leaf, Tensor) and have_one_type(type_, found):
            return type_
        if is_number(first) and isinstance(leaf, Tensor):
            return self._of_number(first, leaf, path)
        if is_number(first) and type_ is not None and not slot.numbers[at]:
            if not takes(slot.given[at], leaf):
                raise self._differs(path, f"a tensor of type {type_}", shown(leaf))
            return type_
        common = common_type(first, leaf)
        if common is None:
            raise self._differs(path, shown(first), shown(leaf))
        return common

    def _of_number(self, first: Any, leaf: Tensor, path: str) -> TensorType:
        """A number before the loop that is a tensor behind a turn."""
        if not takes(leaf, first) or (leaf._type.shape and not self.runs):
            raise self._differs(path, shown(first), shown(leaf))
        return leaf._type

    def _new_type(self, slot: _Slot, at: int, leaf: Any) -> TensorType | None:
        """Of a variable that is first assigned to in the loop."""
        name, found = slot.name, type_of_leaf(leaf)
        if leaf is UNDEFINED:
            return None
        if not self.runs and name in self.spec.live and name != RETURNED and not is_flag(name):
            raise error(
                f"`{name}` is read behind the loop `{self.spec.header}` on tensors, in which it is "
                "first assigned to: it is not defined if there is no turn",
                f"{name} = ...  # before the loop, of the type that it gets inside",
            )
        if slot.types[at] is None and found is not None:
            slot.leaves[at] = UNDEFINED
        elif found is None:
            slot.leaves[at] = leaf
        before = slot.types[at]
        is_kept = before is not None and found is not None and have_one_type(before, found)
        return before if is_kept else found

    def _differs(self, path: str, before: str, after: str) -> _Unstable:
        name = path.partition("[")[0].partition(".")[0]
        word = f"tg.while_loop(lambda {name}: ..., lambda {name}: ..., {name})"
        if self.test is None:
            word = f"tg.fori_loop(0, n, lambda i, {name}: ..., {name})  # or tg.scan, over rows"
        return _Unstable(
            error(
                f"`{path}` is {before} before the loop `{self.spec.header}` on tensors and {after} "
                "behind a turn of it; its type must not change",
                f"{path} = ...  # before the loop, of the type that it gets inside",
                f"{name} = {word}",
            )
        )
