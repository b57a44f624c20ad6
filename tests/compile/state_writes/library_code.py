"""Writes that library code makes."""

from __future__ import annotations

import bisect
import dataclasses
import functools
import heapq
import itertools
import operator
import random
import typing
from typing import Any

from .table import Bag, World, row


@row(plans=5)
def heap_push():
    heap = [5, 9]

    def f(x):
        heapq.heappush(heap, x.ndim)
        return x * 2

    return World(f, heap)


@row
def heap_replaced():
    heap = [(1, "a"), (2, "b")]

    def f(x):
        heapq.heappushpop(heap, (3, "c"))
        return x * 2

    return World(f, heap)


@row(plans=5)
def insort():
    items = [1, 5]

    def f(x):
        bisect.insort(items, 3)
        return x * 2

    return World(f, items)


@row
def shuffled():
    items = [1, 2, 3, 4]

    def f(x):
        items.sort()
        random.Random(7).shuffle(items)
        return x * items[0]

    return World(f, items)


@row
def operator_setitem():
    d, items = {}, [1, 2]

    def f(x):
        operator.setitem(d, "a", x * 2)
        operator.setitem(items, 0, x)
        operator.iadd(items, [])
        return x

    return World(f, [d, items])


@row
def operator_delitem():
    d = {"a": 1}

    def f(x):
        d["a"] = x
        operator.delitem(d, "a")
        return x * 2

    return World(f, d)


@row
def unbound_methods():
    d, items, s, o = {}, [], set(), Bag()

    def f(x):
        dict.__setitem__(d, "a", x)
        list.append(items, x * 2)
        set.add(s, 3)
        object.__setattr__(o, "a", x)
        dict.update(d, b=2)
        return x

    return World(f, [d, items, s, o])


@row
def mapped_writes():
    items = []

    def f(x):
        list(map(items.append, [x, x * 2]))
        return x

    return World(f, items)


@row
def bound_method_kept_before():
    items = []
    append = items.append

    def f(x):
        append(x * 2)
        return x

    return World(f, items)


@row
def partial_that_writes():
    items, d = [], {}
    put = functools.partial(operator.setitem, d, "k")
    append = functools.partial(list.append, items)

    def f(x):
        append(x * 2)
        put(x)
        return x

    return World(f, [items, d])


@row(plans=5)
def library_dataclass_replace():
    @dataclasses.dataclass
    class Config:
        rate: float = 1.0
        x: Any = None

    o = Bag(config=Config())

    def f(x):
        o.config = dataclasses.replace(o.config, x=x * 2)
        return x * o.config.rate

    return World(f, o)


@row(refused="iterator")
def counted_by_an_iterator():
    numbers = itertools.count()

    def f(x):
        return x * next(numbers)

    return World(f)


@row
def cache_of_the_library():
    @functools.lru_cache
    def table(n):
        return n * 2

    def f(x):
        return x * table(x.shape[0])

    return World(f)


@row
def typed_dict():
    class Log(typing.TypedDict):
        n: int

    log = Log(n=0)

    def f(x):
        log["n"] += 1
        return x * log["n"]

    return World(f, log)


@row
def byte_array():
    data = bytearray(b"abc")

    def f(x):
        data[0] = 65
        return x * 2

    return World(f, data)
