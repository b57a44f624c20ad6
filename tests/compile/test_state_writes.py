"""Eager and compiled code leave the same world behind: see `state_writes`."""

from __future__ import annotations

import gc
import re
import weakref
from types import CellType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
import pytest
from state_writes import ROWS, Bag, Row, World
from tgraph.compiler.ir import Node

import tgraph as tg
from tgraph.compiled.compiled_function import CompiledFunction
from tgraph.core.tensor import shared_storage
from tgraph.core.traced_number import TracedNumber

CALLS = 5


class Picture:
    """What a world looks like, all the way down, with the same object told by its number."""

    def __init__(self) -> None:
        self.numbers: dict[int, int] = {}
        self.alive: list[Any] = []

    def of(self, value: Any) -> Any:
        kind = type(value)
        assert kind is not TracedNumber, "a number of the trace was left behind"
        if isinstance(value, tg.Tensor):
            return self.of_tensor(value)
        if value is None or kind in (int, bool, str, bytes, complex):
            return kind.__name__, value
        if kind is float:
            return "float", repr(value)
        if isinstance(value, np.generic):
            return kind.__name__, repr(value)
        if id(value) in self.numbers:
            return "again", self.numbers[id(value)]
        if kind is not tuple:
            self.note(value)
        return kind.__name__, *self.inside(value)

    def note(self, value: Any) -> int:
        self.alive.append(value)
        return self.numbers.setdefault(id(value), len(self.numbers))

    def inside(self, value: Any) -> list[Any]:
        if isinstance(value, (FunctionType, MethodType)):
            return self.of_function(value)
        if isinstance(value, (CompiledFunction, ModuleType)):
            return []
        if isinstance(value, type):
            held = {k: v for k, v in vars(value).items() if k[:2] != "__"}
            return [self.of(held)] if _is_of_a_row(value) else []
        if isinstance(value, dict):
            found = [(self.of(k), self.of(v)) for k, v in value.items()]
        elif isinstance(value, (list, tuple)) or kind_name(value) == "deque":
            found = [self.of(each) for each in value] + [getattr(value, "maxlen", None)]
        elif isinstance(value, (set, frozenset)):
            found = [self.of(each) for each in sorted(value, key=_text)]
        elif isinstance(value, np.ndarray):
            found = [value.dtype.str, value.shape, value.tolist()]
        elif isinstance(value, bytearray):
            found = [bytes(value)]
        elif isinstance(value, CellType):
            found = [self.of(value.cell_contents)] if _is_full(value) else []
        else:
            found = []
        if kind_name(value) in ("defaultdict", "mappingproxy"):
            found.append(repr(getattr(value, "default_factory", None)))
        return found + self.attributes(value)

    def attributes(self, value: Any) -> list[Any]:
        own = getattr(value, "__dict__", None)
        found = []
        if isinstance(own, dict) and not isinstance(value, (FunctionType, MethodType)):
            # Keys of hooks are numbers that are counted for all objects.
            left_out = ("_compiled_methods", "_hooks")
            kept = {k: v for k, v in own.items() if not k.endswith(left_out)}
            found = [(k, self.of(v)) for k, v in kept.items()]
        for each in type(value).__mro__:
            for name in getattr(each, "__slots__", ()):
                if name[:2] != "__" and hasattr(value, name):
                    found.append((name, self.of(getattr(value, name))))
        return found

    def of_function(self, value: Any) -> list[Any]:
        if isinstance(value, MethodType):
            return [self.of(value.__self__)]
        if not _is_of_a_row(value):
            return [value.__qualname__]
        cells = [self.of(each) for each in value.__closure__ or ()]
        own = {k: v for k, v in vars(value).items() if k != "__wrapped__"}
        return [cells, self.of(own), self.of(value.__defaults__), self.of(value.__kwdefaults__)]

    def of_tensor(self, value: tg.Tensor) -> Any:
        assert type(value._value) is not Node, "a tensor of the trace was left behind"
        if id(value) in self.numbers:
            return "again", self.numbers[id(value)]
        number = self.note(value)
        memory = self.note(shared_storage(value))
        gradient = None if value.grad is None else self.of(value.grad)
        facts = (value.dtype, value.requires_grad, value.is_leaf)
        own = [(k, self.of(v)) for k, v in vars(value).items()]
        content = value.detach().numpy().copy()
        return type(value).__name__, number, memory, facts, content, gradient, own


def _text(value: Any) -> str:
    return str(value.tolist()) if isinstance(value, tg.Tensor) else repr(value)


def _is_of_a_row(value: Any) -> bool:
    return str(value.__module__).startswith("state_writes.")


def kind_name(value: Any) -> str:
    return type(value).__name__


def _is_full(cell: CellType) -> bool:
    try:
        _ = cell.cell_contents
    except ValueError:
        return False
    return True


def same(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return one.shape == other.shape and np.allclose(one, other, 1e-5, 1e-6, equal_nan=True)
    if isinstance(one, (list, tuple)):
        return type(one) is type(other) and len(one) == len(other) and all(map(same, one, other))
    return type(one) is type(other) and one == other


def difference(one: Any, other: Any, at: str = "") -> str:
    """Where two pictures differ first."""
    if isinstance(one, (list, tuple)) and type(one) is type(other) and len(one) == len(other):
        for number, (a, b) in enumerate(zip(one, other, strict=True)):
            if not same(a, b):
                return difference(a, b, f"{at}[{number}]")
    return f"{at}: eager {one!r}, compiled {other!r}"


def arguments_of(world: World, turn: int) -> tuple[Any, ...]:
    if world.arguments is not None:
        return world.arguments(turn)
    return (tg.tensor([1.0, -2.0, 3.0, 0.5]) * (turn + 1),)


def picture_of(world: World, *more: Any) -> Any:
    held = world.held
    if isinstance(held, FunctionType) and held.__name__ == "<lambda>":
        held = held()
    return Picture().of([*more, held, world.function])


def turn_of(world: World, function: Any, turn: int) -> Any:
    """A picture of what one call leaves behind."""
    given, keywords = arguments_of(world, turn), world.keywords(turn)
    try:
        result = function(*given, **keywords)
    except tg.TraceError:
        raise
    except Exception as error:
        result = f"{type(error).__name__}: {str(error)[:30]}"
    left = picture_of(world, result, given, keywords)
    world.after(turn)
    return left


def seeded(row: Row) -> World:
    tg.manual_seed(3)
    return row.make()


def named(row: Row) -> str:
    return row.name


PLAIN = [each for each in ROWS if not each.refused and each.backward is None]


@pytest.mark.parametrize("row", PLAIN, ids=named)
def test_compiled_leaves_the_world_of_eager(row: Row) -> None:
    world = seeded(row)
    wanted = [turn_of(world, world.function, turn) for turn in range(CALLS)]
    world = seeded(row)
    compiled = tg.compile(world.function)
    for turn in range(CALLS):
        found = turn_of(world, compiled, turn)
        assert same(wanted[turn], found), f"call {turn}: {difference(wanted[turn], found)}"
    reasons = [each.reason for each in compiled.compiles]
    assert len(reasons) <= row.plans, reasons


@pytest.mark.parametrize("row", [each for each in ROWS if each.refused], ids=named)
def test_what_cannot_be_repeated_is_refused_at_once(row: Row) -> None:
    world = seeded(row)
    before = picture_of(world)
    with pytest.raises(tg.TraceError, match=row.refused) as caught:
        tg.compile(world.function)(*arguments_of(world, 0))
    assert re.search(r"state_writes/\w+\.py:\d+", str(caught.value))
    after = picture_of(world)
    assert same(before, after), difference(before, after)


def with_backward(function: Any) -> Any:
    def call(*given: Any) -> Any:
        loss = function(*given)
        loss.backward()
        return loss

    return call


@pytest.mark.parametrize("row", [each for each in ROWS if each.backward is not None], ids=named)
def test_backward_outside_writes_as_eager_code_does_or_is_refused(row: Row) -> None:
    world, turns = seeded(row), range(3)
    function = with_backward(world.function)
    wanted = [turn_of(world, function, turn) for turn in turns]
    world = seeded(row)
    compiled = tg.compile(world.function)
    if not row.backward:
        found = [turn_of(world, with_backward(compiled), turn) for turn in turns]
        assert same(wanted, found), difference(wanted, found)
        return
    for turn in turns:
        loss = compiled(*arguments_of(world, turn))
        with pytest.raises(RuntimeError, match=row.backward):
            loss.backward()
    forward = seeded(row)
    for turn in turns:
        forward.function(*arguments_of(forward, turn))
    seen, left = picture_of(forward), picture_of(world)
    assert same(seen, left), difference(seen, left)


def test_the_table_is_large() -> None:
    assert len(ROWS) >= 150
    assert len({row.name for row in ROWS}) == len(ROWS)


def test_plans_keep_nothing_of_a_call_alive() -> None:
    o = Bag(items=[], h=tg.zeros(4))

    def f(x: tg.Tensor, d: dict[str, Any]) -> tg.Tensor:
        y = x * 2
        o.items.append(y)
        o.h = tg.tanh(o.h + x)
        o.made = [Bag(n=1), y]
        d["y"] = y
        return y

    compiled = tg.compile(f)
    for turn in range(4):
        x, d = tg.ones(4) * turn, {"k": tg.ones(2)}
        y = compiled(x, d)
        seen = [weakref.ref(each) for each in (x, y, d["k"], d["y"], o.made[0])]
        o.items.clear()
        d.clear()
        o.made, o.h = None, tg.zeros(4)
        del x, y
        gc.collect()
        assert [each() for each in seen] == [None] * len(seen), turn
    assert len(compiled.compiles) <= 2
    holders = [weakref.ref(o), weakref.ref(f), weakref.ref(compiled)]
    o = f = compiled = None
    gc.collect()
    assert [each() for each in holders] == [None] * len(holders)


def test_a_refused_trace_leaves_the_order_of_a_dictionary() -> None:
    held = {"a": 1, "b": 2}

    def f(x: tg.Tensor) -> tg.Tensor:
        held["a"] = held.pop("a")
        return x * x.sum().item()

    with pytest.raises(tg.TraceError, match=r"item\(\) needs the value"):
        tg.compile(f)(tg.ones(2))
    assert [*held] == ["a", "b"]
