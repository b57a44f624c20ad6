"""Writes of variables, and into arguments."""

from __future__ import annotations

import collections
import dataclasses
from typing import Any

import tgraph as tg

from .table import Bag, World, row

# --- variables ------------------------------------------------------------------------------------


@row
def nonlocal_variable():
    count, last = 0, None

    def f(x):
        nonlocal count, last
        count += 1
        last = x * 2
        return x

    return World(f, lambda: (count, last))


GLOBAL_COUNT, GLOBAL_LAST = 0, None


@row
def global_variable():
    global GLOBAL_COUNT, GLOBAL_LAST
    GLOBAL_COUNT, GLOBAL_LAST = 0, None

    def f(x):
        global GLOBAL_COUNT, GLOBAL_LAST
        GLOBAL_COUNT += 1
        GLOBAL_LAST = x * GLOBAL_COUNT
        return x

    return World(f, lambda: (GLOBAL_COUNT, GLOBAL_LAST))


@row
def global_variable_made_and_deleted():
    globals().pop("GLOBAL_NEW", None)
    globals()["GLOBAL_OLD"] = 1

    def f(x):
        global GLOBAL_NEW, GLOBAL_OLD
        GLOBAL_NEW = x * 2
        if "GLOBAL_OLD" in globals():
            del GLOBAL_OLD
        return x

    return World(f, lambda: (globals().get("GLOBAL_NEW"), "GLOBAL_OLD" in globals()))


@row
def globals_as_a_dictionary():
    globals().pop("GLOBAL_ENTRY", None)

    def f(x):
        globals()["GLOBAL_ENTRY"] = x * 2
        return x

    return World(f, lambda: globals().get("GLOBAL_ENTRY"))


@row
def nonlocal_tensor_of_two_functions():
    h = tg.zeros(4)

    def update(value):
        nonlocal h
        h = h * 0.5 + value

    def f(x):
        update(x)
        update(x * 2)
        return h + 1

    return World(f, lambda: h)


@row
def nonlocal_variable_deleted_and_made():
    a = 1

    def f(x):
        nonlocal a
        del a
        a = x * 2  # noqa: F841
        return x

    return World(f, lambda: a)


@row
def mutable_default():
    def f(x, seen=[]):  # noqa: B006
        seen.append(x * 2)
        return x

    f.__defaults__ = ([],)
    return World(f, f.__defaults__)


@row
def mutable_keyword_default():
    def f(x, *, cache={}):  # noqa: B006
        cache["last"] = x * 2
        return x

    f.__kwdefaults__ = {"cache": {}}
    return World(f, f.__kwdefaults__)


# --- arguments ------------------------------------------------------------------------------------


@row
def argument_dict():
    d = {"a": tg.ones(4)}

    def f(x, d):
        d["y"] = x * 2
        d["a"] = d["a"] + x
        return x

    return World(f, d, lambda turn: (tg.ones(4) * turn, d))


@row
def argument_list_made_anew():
    def f(x, items):
        items.append(x * 2)
        items[0] = x
        return items

    return World(f, None, lambda turn: (tg.ones(4) * turn, [tg.zeros(2), 1]))


@row
def argument_list_sorted():
    def f(x, items):
        items.sort()
        items.insert(0, x)
        return x * items[1]

    return World(f, None, lambda turn: (tg.ones(4) * turn, [3, 1, 2]))


@row
def argument_dict_cleared():
    def f(x, d):
        d.clear()
        d["z"] = x
        d["a"] = 1
        return d

    return World(f, None, lambda turn: (tg.ones(4) * turn, {"a": tg.ones(2), "z": 2}))


@row
def argument_dict_reordered():
    def f(x, d):
        d["a"] = d.pop("a")
        return d["a"] * x

    return World(f, None, lambda turn: (tg.ones(4) * turn, {"a": tg.ones(4), "z": 2}))


@row
def argument_nested():
    def f(batch):
        batch["new"] = {"sum": batch["x"][0] + batch["x"][1]}
        batch["x"].append(batch["x"][0] * 2)
        return batch

    return World(f, None, lambda turn: ({"x": [tg.ones(4) * turn, tg.ones(4)]},))


@row
def argument_dataclass():
    @dataclasses.dataclass
    class Batch:
        x: Any
        y: Any = None
        n: int = 0

    def f(batch):
        batch.y = batch.x * 2
        batch.n = 3
        batch.more = batch.x
        return batch

    return World(f, None, lambda turn: (Batch(tg.ones(4) * turn),))


@row
def argument_dataclass_with_slots():
    @dataclasses.dataclass(slots=True)
    class Batch:
        x: Any
        y: Any = None

    def f(batch):
        batch.y = batch.x * 2
        return batch

    return World(f, None, lambda turn: (Batch(tg.ones(4) * turn),))


@row
def argument_dataclass_of_lists():
    @dataclasses.dataclass
    class Batch:
        x: Any
        items: list

    def f(batch):
        batch.items.append(batch.x * 2)
        batch.items[0] += 1
        return batch.x

    return World(f, None, lambda turn: (Batch(tg.ones(4) * turn, [1]),))


@row
def argument_named_tuple_of_lists():
    Pair = collections.namedtuple("Pair", "a b")

    def f(x, pair):
        pair.a.append(x * 2)
        pair.b["k"] = x
        return pair.a

    return World(f, None, lambda turn: (tg.ones(4) * turn, Pair([], {})))


@row
def argument_tuple_of_lists():
    lists = ([], [1])

    def f(x, lists):
        lists[0].append(x * 2)
        lists[1][0] = x
        return x

    return World(f, lists, lambda turn: (tg.ones(4) * turn, ([], lists[1][:])))


@row
def argument_is_one_object_twice():
    def f(x, a, b):
        a.append(x)
        b.append(x * 2)
        return a

    def arguments(turn):
        items = []
        return tg.ones(4) * turn, items, (items if turn % 2 else [])

    return World(f, None, arguments)


@row
def argument_is_the_captured_one():
    items = []

    def f(x, given):
        given.append(x)
        items.append(x * 2)
        return x

    def arguments(turn):
        items.clear()
        return tg.ones(4) * turn, (items if turn % 2 else [])

    return World(f, items, arguments)


@row
def argument_kept():
    o = Bag(kept=None)

    def f(x, items):
        o.kept = items
        o.first = items[0]
        return x

    return World(f, o, lambda turn: (tg.ones(4) * turn, [tg.zeros(4) + turn]))


@row
def argument_object():
    def f(x, o):
        o.y = x * 2
        o.n += 1
        return x

    o = Bag(n=0)
    return World(f, o, lambda turn: (tg.ones(4) * turn, o))


@row
def argument_default_dict():
    d = collections.defaultdict(list)

    def f(x, d):
        d["a"].append(x)
        return x

    return World(f, d, lambda turn: (tg.ones(4) * turn, collections.defaultdict(list)))


@row
def argument_ordered_dict():
    def f(x, d):
        d.move_to_end("a")
        d["c"] = x
        return d

    def arguments(turn):
        return tg.ones(4) * turn, collections.OrderedDict(a=tg.ones(4), b=2)

    return World(f, None, arguments)


@row
def argument_deque():
    d = collections.deque(maxlen=2)

    def f(x, d):
        d.append(x * 2)
        return x

    return World(f, d, lambda turn: (tg.ones(4) * turn, d))


@row
def argument_set():
    s = set()

    def f(x, s):
        s.add("a")
        return x * 2

    return World(f, s, lambda turn: (tg.ones(4) * turn, s))


@row
def argument_number_counts():
    d = {"n": 0}

    def f(x, d):
        d["n"] += 1
        return x * d["n"]

    return World(f, d, lambda turn: (tg.ones(4) * turn, d))


@row
def argument_written_by_a_helper():
    def note(log, **values):
        log.update(values)

    def f(x, log):
        note(log, loss=x.sum(), step=1)
        return x

    return World(f, None, lambda turn: (tg.ones(4) * turn, {}))


@row
def keywords_keep_their_order():
    log = {}

    def f(x, **kwargs):
        log.clear()
        log.update(kwargs)
        return {name: x * value for name, value in kwargs.items()}

    def keywords(turn):
        return {"b": 2.0, "a": 1.0} if turn % 2 else {"a": 1.0, "b": 2.0}

    return World(f, log, keywords=keywords)


@row
def keywords_written_into():
    def f(x, **kwargs):
        kwargs["new"] = x * 2
        return kwargs

    return World(f, keywords=lambda turn: {"b": 2, "a": tg.ones(2)})
