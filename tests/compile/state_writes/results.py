"""What is written and returned, and the same object in several places."""

from __future__ import annotations

import collections
import dataclasses
import functools
import operator
from typing import Any

import numpy as np

import tgraph as tg

from .table import Bag, World, row

# --- results --------------------------------------------------------------------------------------


@row
def result_is_a_container_of_the_outside():
    items = [1]

    def f(x):
        items.append(x)
        return items

    return World(f, items)


@row
def result_holds_a_container_of_the_outside():
    d = {}

    def f(x):
        d["y"] = x * 2
        return {"d": d, "again": [d], "y": d["y"]}

    return World(f, d)


@row
def result_is_made_anew():
    kept = []

    def f(x):
        return x, [1, 2], {"a": [3]}, {4}, bytearray(b"ab"), np.arange(3)

    def after(turn):
        result = f(tg.ones(1))
        result[1].append(turn)
        kept.append(result[1])

    return World(f, kept, after=after)


@row
def result_of_numbers():
    o = Bag(n=1, r=0.5)

    def f(x):
        o.n = o.n * 2
        o.r = o.r / 2
        return o.n, o.r, -o.n, abs(o.r), o.n // 3, o.n % 3, x

    return World(f, o)


@row
def result_object_made_inside():
    class Made:
        def __init__(self, n):
            self.n, self.items = n, [n]

    o = Bag(last=None)

    def f(x):
        o.last = Made(3)
        return x * 2

    return World(f, o)


@row
def result_object_with_a_tensor_made_inside():
    @dataclasses.dataclass
    class Made:
        value: Any
        n: int

    o = Bag(last=None)

    def f(x):
        o.last = Made(x * 2, 3)
        return o.last

    return World(f, o)


@row(refused="return tensors|not found")
def object_with_a_tensor_made_inside():
    class Made:
        def __init__(self, value):
            self.value = value

    o = Bag(last=None)

    def f(x):
        o.last = Made(x * 2)
        return x

    return World(f, o)


@row
def set_of_new_tensors():
    s = set()

    def f(x):
        s.add(x * 2)
        return x

    return World(f, lambda: sorted(each.sum().item() for each in s))


@row(refused="repeat")
def generator_kept():
    o = Bag(made=None)

    def f(x):
        o.made = (each for each in [x, x * 2])
        return x

    return World(f, o)


@row(refused="repeat")
def closure_over_a_tensor_kept():
    o = Bag(made=None)

    def f(x):
        y = x * 2
        o.made = lambda: y
        return x

    return World(f, o)


@row(refused="repeat")
def partial_of_a_tensor_kept():
    o = Bag(made=None)

    def f(x):
        o.made = functools.partial(operator.add, x * 2)
        return x

    return World(f, o)


@row(refused="repeat")
def array_of_tensors_kept():
    o = Bag(made=None)

    def f(x):
        made = np.empty(1, dtype=object)
        made[0] = x * 2
        o.made = made
        return x

    return World(f, o)


@row(refused="repeat")
def deep_object_with_a_tensor_kept():
    o = Bag(made=None)

    def f(x):
        o.made = Bag(inner=Bag(items=[x * 2]))
        return x

    return World(f, o)


@row(refused="repeat")
def deque_of_tensors_kept():
    o = Bag(made=None)

    def f(x):
        o.made = collections.deque([x * 2, 1], maxlen=3)
        return x

    return World(f, o)


@row
def counter_kept():
    o = Bag(made=None)

    def f(x):
        o.made = collections.Counter("aab")
        return x * 2

    return World(f, o)


@row
def function_made_inside_kept():
    o = Bag(made=None)

    def f(x):
        o.made = lambda: 3
        return x * 2

    return World(f, o)


# --- the same object twice ------------------------------------------------------------------------


@row
def same_list_by_two_paths():
    items = []
    o = Bag(a=items, b=items)

    def f(x):
        o.a.append(x)
        o.b.append(x * 2)
        return x

    return World(f, o)


@row
def same_new_list_in_two_places():
    o, p = Bag(a=None), Bag(a=None)

    def f(x):
        made = [x * 2, 1]
        o.a = made
        p.a = made
        return made

    return World(f, [o, p])


@row
def same_new_list_twice_in_one_place():
    d = {}

    def f(x):
        made = [x * 2]
        d["pair"] = (made, made)
        return x

    return World(f, d)


@row(refused="contains itself")
def list_in_itself():
    o = Bag(loop=None)

    def f(x):
        made = [1]
        made.append(made)
        o.loop = made
        return x * 2

    return World(f, o)


@row
def same_tensor_in_two_places():
    o = Bag(a=None, items=[])

    def f(x):
        y = x * 2
        o.a = y
        o.items.append(y)
        o.b = (y, x)
        return y

    return World(f, o)


@row
def outside_objects_linked():
    a, b = Bag(), Bag()

    def f(x):
        a.other, b.other = b, a
        b.value = x * 2
        return a.other.value + 1

    return World(f, [a, b])


@row
def new_objects_hold_the_outside():
    o, shared = Bag(items=[]), {"n": 1}

    def f(x):
        o.items.append((shared, [shared], x))
        return x * 2

    return World(f, [o, shared])


@row
def new_dict_written_after_it_was_kept():
    o = Bag(made=None)

    def f(x):
        o.made = {}
        o.made["a"] = x
        o.made["b"] = x * 2
        return x

    return World(f, o)
