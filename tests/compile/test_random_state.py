"""Random programs that read and write Python state, which changes between calls too.

A program keeps numbers, flags, tensors and containers of them in an object, a class and a variable
of an enclosing function. Eager and compiled leave the same world behind each of its calls.
"""

from __future__ import annotations

import collections
import random
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from test_state_writes import Picture, difference, same

import tgraph as tg
from tgraph.core.trace_state import RecompileWarning

CALLS = 6
KEYS = ("a", "b", (1, "c"), 4)


class State:
    """What a program keeps. Tensors are of one shape, so that all may be put together."""

    count = 0

    def __init__(self, pick: random.Random) -> None:
        self.n, self.r, self.flag, self.text = pick.randrange(4), pick.random(), False, ""
        self.h, self.c = tensor(pick), None
        self.w = tensor(pick).requires_grad_()
        self.items = [tensor(pick) for _ in range(pick.randrange(3))]
        self.d = {key: tensor(pick) for key in KEYS[: pick.randrange(4)]}
        self.ordered = collections.OrderedDict(a=1, b=2)
        self.s = {1, 2}
        self.q = collections.deque([0, 1], maxlen=3)
        self.table = {"a": {"b": [0]}}
        self.alias = self.items


def tensor(pick: random.Random) -> tg.Tensor:
    return tg.tensor([pick.uniform(-1, 1) for _ in range(3)])


def value_of(pick: random.Random, o: State, x: tg.Tensor) -> Any:
    """Something to keep."""
    return pick.choice([
        lambda: x,
        lambda: x * 2,
        lambda: x * o.r,
        lambda: o.h,
        lambda: o.h + x,
        lambda: o.h[:2],
        lambda: (x * o.n)[1:],
        lambda: x * o.w,
        lambda: (x * o.w).detach(),
        lambda: o.n,
        lambda: o.r + 1,
        lambda: 0,
        lambda: None,
        lambda: "text",
        lambda: [x, 1],
        lambda: (x + 1, [o.n]),
        lambda: {"k": x, "again": o.items},
        lambda: tg.ones(3),
        lambda: o.table["a"],
    ])()  # fmt: skip


def number_in(value: Any, x: tg.Tensor) -> tg.Tensor:
    """A tensor of whatever was kept."""
    if isinstance(value, tg.Tensor):
        return value.detach().sum()
    if isinstance(value, (int, float)):
        return x.sum() * value
    return x.sum() * (1 if value is None else len(value))


def read(pick: random.Random, o: State, x: tg.Tensor) -> Any:
    """A result that depends on what was kept."""
    key, at = pick.choice(KEYS), pick.randrange(-2, 2)
    return pick.choice([
        lambda: x * o.n,
        lambda: x / (o.n - 2),
        lambda: x * (1 / o.r),
        lambda: x * (o.n // 2) + o.n % 3,
        lambda: x * 2 if o.flag else x,
        lambda: o.h * x,
        lambda: o.n,
        lambda: o.r * 2,
        lambda: (o.w * x).sum(),
        lambda: x * len(o.items),
        lambda: number_in(o.items[at], x) if len(o.items) > 1 else x,
        lambda: number_in(o.d.get(key), x),
        lambda: number_in(o.d[key], x) if key in o.d else x,
        lambda: sum(number_in(each, x) for each in o.d.values()),
        lambda: [*o.d],
        lambda: [*o.ordered.items()],
        lambda: sum(number_in(each, x) for each in o.items),
        lambda: number_in(o.q[0], x) if o.q else x,
        lambda: x * len(o.s),
        lambda: 1 in o.s,
        lambda: o.items,
        lambda: [o.h, o.items, {"d": o.d}],
        lambda: number_in(o.table["a"]["b"][-1], x),
        lambda: State.count,
        lambda: o.text,
        lambda: number_in(o.alias, x),
    ])()  # fmt: skip


def write(pick: random.Random, o: State, x: tg.Tensor) -> None:
    """Change what was kept."""
    key, value = pick.choice(KEYS), value_of(pick, o, x)

    def put(name: str, value: Any) -> None:
        setattr(o, name, value)

    def create() -> None:
        if o.c is None:
            o.c = tg.zeros(3)
        o.c.add_(x)

    def choose() -> None:
        o.h = o.h + x if o.flag else x * 2

    def count() -> None:
        State.count += 1

    def delete() -> None:
        if key in o.d:
            del o.d[key]

    def move() -> None:
        o.d[key] = o.d.pop(key, value)

    def replace() -> None:
        if o.items:
            o.items[-1] = value

    def pop() -> None:
        if len(o.items) > 2:
            o.items.pop(0)

    def slot() -> None:
        o.h = tg.tanh(o.h + x)
        o.before = o.h

    def attempt() -> None:
        try:
            o.d["tried"] = x
            o.missing  # noqa: B018
        except AttributeError:
            o.d["tried"] = o.n

    pick.choice([
        lambda: put("n", o.n + 1),
        lambda: put("n", 3),
        lambda: put("r", 0.5 * o.r + 0.25),
        lambda: put("flag", not o.flag),
        lambda: put("flag", True),
        lambda: put("text", "done"),
        lambda: put("h", x + o.n),
        lambda: put("new", value),
        lambda: put("d", {key: value}),
        lambda: put("alias", o.items[:]),
        lambda: o.items.append(value),
        lambda: o.items.extend([value, x]),
        lambda: o.items.insert(0, value),
        lambda: o.items.reverse(),
        lambda: o.items.clear(),
        lambda: o.items.__setitem__(slice(0, 1), [x]),
        lambda: o.d.update({key: value}),
        lambda: o.d.update(a=value),
        lambda: o.d.setdefault(key, tg.ones(3)),
        lambda: o.d.clear(),
        lambda: o.d.__setitem__(key, value),
        lambda: o.ordered.move_to_end("a"),
        lambda: o.ordered.update(c=value),
        lambda: o.s.add(pick.randrange(4)),
        lambda: o.s.discard(pick.randrange(4)),
        lambda: o.s.update([5]),
        lambda: o.q.append(value),
        lambda: o.q.append(0),
        lambda: o.q.appendleft(value),
        lambda: o.q.extend([1, value]),
        lambda: o.q.rotate(1),
        lambda: o.table["a"]["b"].append(value),
        lambda: o.table["a"].update(n=o.n),
        lambda: o.h.add_(1),
        create, choose, count, delete, move, replace, pop, slot, attempt,
    ])()  # fmt: skip


def program(seed: int, o: State) -> Callable[[tg.Tensor], Any]:
    last = 0

    def run(x: tg.Tensor) -> Any:
        nonlocal last
        pick = random.Random(seed)
        results = []
        for _ in range(pick.randrange(2, 8)):
            if pick.random() < 0.4:
                results.append(read(pick, o, x))
            else:
                write(pick, o, x)
        if pick.random() < 0.3:
            results.append(last)
            last = o.n
        return results

    return run


def change(pick: random.Random, o: State) -> None:
    """Something that others do between two calls."""
    key = pick.choice(KEYS)
    pick.choice([
        lambda: None,
        lambda: setattr(o, "n", pick.randrange(5)),
        lambda: setattr(o, "r", float(pick.randrange(3))),
        lambda: setattr(o, "flag", pick.random() < 0.5),
        lambda: setattr(o, "h", tensor(pick)),
        lambda: setattr(o, "c", None),
        lambda: setattr(o, "d", dict(reversed(o.d.items()))),
        lambda: setattr(o, "alias", o.items),
        lambda: setattr(o, "text", "other"),
        lambda: setattr(State, "count", 7),
        lambda: o.items.append(tensor(pick)),
        lambda: o.items.clear(),
        lambda: o.items.reverse(),
        lambda: o.d.__setitem__(key, tensor(pick)),
        lambda: o.d.__setitem__(key, 3),
        lambda: o.d.pop(key, None),
        lambda: o.d.clear(),
        lambda: o.s.symmetric_difference_update([1, 5]),
        lambda: o.q.clear(),
        lambda: o.q.append(2),
        lambda: o.ordered.move_to_end("b"),
        lambda: o.table["a"].__setitem__("b", [1.5]),
        lambda: o.h.mul_(2),
    ])()  # fmt: skip


def outcome(seed: int, is_compiled: bool) -> list[Any]:
    """A picture of the world behind each call."""
    pick = random.Random(seed)
    State.count = 0
    o = State(pick)
    run = program(seed, o)
    call = tg.compile(run) if is_compiled else run
    found = []
    for _ in range(CALLS):
        x = tensor(pick)
        try:
            results = call(x)
        except tg.TraceError:
            raise
        except Exception as error:
            results = type(error).__name__
        found.append(Picture().of([results, x, o, State.count, run.__closure__]))
        change(pick, o)
    return found


def check(seed: int) -> None:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", RecompileWarning)
        eager, compiled = outcome(seed, False), outcome(seed, True)
    for turn, (a, b) in enumerate(zip(eager, compiled, strict=True)):
        assert same(a, b), f"program {seed}, call {turn}: {difference(a, b)}"


@pytest.mark.parametrize("first", range(0, 200, 25))
def test_state_changes_and_is_written(first: int, request: pytest.FixtureRequest) -> None:
    start = request.config.getoption("--seed") + first
    for seed in range(start, start + 25):
        check(seed)
