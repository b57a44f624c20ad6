"""What lies there already, written again."""

from __future__ import annotations

import collections
import operator
import queue

import numpy as np

import tgraph as tg
from tgraph import nn

from .table import Bag, World, row


@row
def same_attribute_again():
    o = Bag(on=True, n=1)

    def f(x):
        o.on = True
        setattr(o, "n", 1)  # noqa: B010
        return x * 2

    def after(turn):
        o.on, o.n = False, 5

    return World(f, o, after=after)


@row
def same_item_again():
    d, items = {"on": True, "off": None}, [1, 2]

    def f(x):
        d["on"] = True
        d.update(off=None)
        items[1] = 2
        return x * 2

    def after(turn):
        d["on"], d["off"] = False, 3
        items[:] = [7, 8]

    return World(f, [d, items], after=after)


@row
def same_update_again():
    d, other = {"on": True}, collections.OrderedDict(on=True)

    def f(x):
        d.update({"on": True})
        dict.__setitem__(d, "on", True)
        other["on"] = True
        operator.setitem(other, "on", True)
        return x * 2

    def after(turn):
        d["on"] = False
        other["on"] = False

    return World(f, [d, other], after=after)


@row
def same_element_again():
    s, shown = {1, 2}, set()

    def f(x):
        s.add(1)
        s.discard(7)
        s.update([2])
        shown.add("a")
        return x * 2

    def after(turn):
        s.clear()
        s.add(7)
        shown.clear()

    return World(f, [s, shown], after=after)


GLOBAL_FLAG = True


@row
def same_global_again():
    global GLOBAL_FLAG
    GLOBAL_FLAG = True

    def f(x):
        global GLOBAL_FLAG
        GLOBAL_FLAG = True
        return x * 2

    def after(turn):
        global GLOBAL_FLAG
        GLOBAL_FLAG = False

    return World(f, lambda: GLOBAL_FLAG, after=after)


@row
def same_nonlocal_again():
    flag = True

    def f(x):
        nonlocal flag
        flag = True
        return x * 2

    def after(turn):
        nonlocal flag
        flag = turn

    return World(f, lambda: flag, after=after)


@row
def same_slot_and_class_attribute_again():
    class Slotted:
        __slots__ = ("on",)
        count = 0

    o = Slotted()
    o.on = True

    def f(x):
        o.on = True
        Slotted.count = 0
        return x * 2

    def after(turn):
        o.on, Slotted.count = False, 3

    return World(f, o, after=after)


@row
def same_pushed_again():
    d = collections.deque([0, 0, 0], maxlen=3)

    def f(x):
        d.append(0)
        return x * 2

    def after(turn):
        d[0] = turn + 1

    return World(f, d, after=after)


@row(plans=5)
def same_array_again():
    a = np.zeros(3)

    def f(x):
        a[0] = 0
        return x * 2

    def after(turn):
        a[:] = turn

    return World(f, a, after=after)


@row
def item_of_a_list_that_others_write():
    items = [0, 1, 2]

    def f(x):
        items[1] = x * 2
        return x

    def after(turn):
        items[0], items[2] = turn, "b" * turn

    return World(f, items, after=after)


@row(plans=5)
def operators_on_what_others_write():
    s, items = {1, 2}, [1]

    def f(x):
        nonlocal s, items
        s &= {1, 3}
        items *= 2
        return x * 2

    def after(turn):
        s.update([3, 4])
        items[:] = [turn]

    return World(f, [s, items], after=after)


@row
def order_that_others_change():
    d = {"a": 1, "b": 2, "c": 3}

    def f(x):
        del d["a"]
        d["a"] = x * 2
        return x

    def after(turn):
        d["c"] = d.pop("c")
        d["b"] = d.pop("b")

    return World(f, d, after=after)


@row(plans=4)
def length_after_an_element_that_was_there():
    s, d = {1}, {"a": 1}

    def f(x):
        s.add(2)
        d["b"] = x
        return x * len(s) + len(d) if s else x

    def after(turn):
        s.clear()
        s.update([5, 2] if turn % 2 else [5, 6])
        d.clear()
        d.update(dict.fromkeys("bc" if turn % 2 else "cd", 0))

    return World(f, [s, d], after=after)


@row
def keys_in_the_order_of_writes():
    d = {}

    def f(x):
        d["b"] = x
        d["a"] = x * 2
        d.update(c={"b": 1})
        return x

    def after(turn):
        d.clear()
        if turn % 2:
            d.update(a=1, b=2)

    return World(f, d, after=after)


@row(plans=5)
def pushed_at_both_ends():
    d = collections.deque([0, 0], maxlen=3)

    def f(x):
        d.appendleft(0)
        d.append(0)
        return x * 2

    def after(turn):
        d.pop()
        d[0] = turn

    return World(f, d, after=after)


@row
def same_new_list_within_a_tuple():
    o = Bag()

    def f(x):
        made = (x * 2, [1])
        o.a, o.b = made, [made]
        return x

    return World(f, o)


@row
def deleted_after_it_was_made():
    o, d = Bag(), {}

    def f(x):
        o.scratch = x
        d["scratch"] = x
        y = o.scratch * d["scratch"]
        del o.scratch, d["scratch"]
        return y

    def after(turn):
        if turn == 2:
            o.scratch, d["scratch"] = 1, 2

    return World(f, [o, d], after=after)


@row(plans=5)
def byte_array_counts():
    data = bytearray(b"abc")

    def f(x):
        data[0] += 1
        return x * 2

    return World(f, data)


@row
def two_views_kept():
    o = Bag()

    def f(x):
        y = x * 2
        o.a, o.b = y[:3], y[1:]
        return y.sum()

    def after(turn):
        o.a.add_(10)

    return World(f, o, after=after)


@row
def new_parameter_kept():
    o = Bag()

    def f(x):
        o.w = nn.Parameter(x * 2)
        return x

    return World(f, o)


@row
def new_object_in_two_places():
    o, p = Bag(), Bag()

    def f(x):
        o.made = p.made = Bag(n=1)
        return x * 2

    return World(f, [o, p])


@row(refused="repeat")
def exception_with_a_tensor_kept():
    o = Bag()

    def f(x):
        o.error = ValueError(x * 2)
        return x

    return World(f, o)


@row(refused="repeat")
def number_of_the_trace_in_an_object():
    o = Bag(last=None)

    def f(x, rate):
        o.last = Bag(value=x * rate)
        return x

    return World(f, o, lambda turn: (tg.ones(4), 0.5))


@row(plans=5)
def user_list():
    items = collections.UserList()

    def f(x):
        items.append(x * 2)
        items[0] = x
        return x

    return World(f, items)


@row
def queue_of_the_library():
    waiting = queue.Queue()

    def f(x):
        waiting.put(x * 2)
        return x

    return World(f, waiting.queue)


@row(plans=5)
def ordered_dict_popped():
    d = collections.OrderedDict(a=1, b=2)

    def f(x):
        d["c"] = x
        d.popitem(last=False)
        d["a"] = x * 2
        return x

    def after(turn):
        d["b"] = 2

    return World(f, d, after=after, arguments=lambda turn: (tg.ones(4) * turn,))
