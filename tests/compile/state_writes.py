"""What functions write into Python objects: a table of small worlds.

Each row makes a world anew: a function, and what it writes into. `test_state_writes` calls the
function, eager and compiled, and compares what it leaves behind.
"""

from __future__ import annotations

import bisect
import collections
import contextlib
import dataclasses
import functools
import heapq
import itertools
import operator
import queue
import random
import types
import typing
from collections.abc import Callable
from typing import Any

import numpy as np

import tgraph as tg
from tgraph import nn


@dataclasses.dataclass
class World:
    """A function and what it writes into (besides what it closes over).

    `arguments(turn)` gives what it is called with; `after(turn)` is done behind each call.
    """

    function: Callable[..., Any]
    held: Any = None
    arguments: Callable[[int], tuple[Any, ...]] | None = None
    after: Callable[[int], Any] = lambda turn: None
    keywords: Callable[[int], dict[str, Any]] = lambda turn: {}


@dataclasses.dataclass(frozen=True)
class Row:
    """`plans`: how many five calls may make. `refused`: what the TraceError says.

    `backward`: what an error says of backward() outside, "" where that does what eager code does,
    None where there is none.
    """

    make: Callable[[], World]
    plans: int
    refused: str
    backward: str | None

    @property
    def name(self) -> str:
        return self.make.__name__


ROWS: list[Row] = []


def row(make=None, *, plans=3, refused="", backward=None):
    if make is None:
        return functools.partial(row, plans=plans, refused=refused, backward=backward)
    ROWS.append(Row(make, plans, refused, backward))
    return make


class Bag:
    """An object with attributes."""

    def __init__(self, **attributes):
        self.__dict__.update(attributes)


# --- dictionaries --------------------------------------------------------------------------------


@row
def dict_entry():
    d = {}

    def f(x):
        d["y"] = x * 2
        return x + 1

    return World(f, d)


@row
def dict_entry_replaced_by_a_number():
    d = {"y": 1, "z": 2}

    def f(x):
        d["y"] = 7.5
        return x * d["z"]

    return World(f, d)


@row
def dict_update():
    d = {"a": 1}

    def f(x):
        d.update(b=x + 1, c=3)
        d.update({"d": x})
        return x

    return World(f, d)


@row
def dict_update_operator():
    d = {"a": 1}

    def f(x):
        nonlocal d
        d |= {"b": x * 2}
        return x

    return World(f, d)


@row
def dict_setdefault():
    d = {}

    def f(x):
        return d.setdefault("w", tg.ones(4)) * x

    return World(f, d)


@row
def dict_setdefault_list():
    d = {}

    def f(x):
        d.setdefault("losses", []).append(x.sum())
        return x

    return World(f, d)


@row
def dict_pop():
    d = {"y": 1, "a": 2}

    def f(x):
        was = d.pop("y", 0)
        d["y"] = x * 2
        return x * 3 if isinstance(was, tg.Tensor) else x

    return World(f, d)


@row
def dict_popitem():
    d = {"a": 1}

    def f(x):
        d["y"] = x * 2
        key, value = d.popitem()
        return value, key

    return World(f, d)


@row
def dict_clear_and_fill():
    d = {"a": 1, "b": 2}

    def f(x):
        d.clear()
        d["b"] = x + 1
        d["a"] = x
        return x

    return World(f, d)


@row
def dict_delete():
    d = {"a": 1, "b": 2}

    def f(x):
        if "a" in d:
            del d["a"]  # noqa: RUF051
        return x * 2

    return World(f, d)


@row
def dict_entry_moves_to_the_end():
    d = {"a": 1, "b": 2, "c": 3}

    def f(x):
        del d["a"]
        d["a"] = x * 2
        return x

    return World(f, d)


@row
def dict_same_value_moves_to_the_end():
    d = {"a": 1, "b": 2, "c": 3}

    def f(x):
        d["a"] = d.pop("a")
        return x + 1

    return World(f, d)


@row
def dict_of_tuple_keys():
    d = {}

    def f(x):
        d[x.shape, "key"] = x + 2
        return x

    return World(f, d)


@row(plans=4)
def memo_by_shape():
    memo = {}

    def f(x):
        if x.shape not in memo:
            memo[x.shape] = tg.arange(x.numel()) * 2.0
        return x * memo[x.shape]

    return World(f, memo, lambda turn: (tg.ones(3 + turn % 2) * turn,))


@row
def memo_of_numbers_by_shape():
    memo = {}

    def f(x):
        memo[tuple(x.shape)] = memo.get(tuple(x.shape), 0) + 1
        return x * 2

    return World(f, memo)


@row
def defaultdict_of_lists():
    d = collections.defaultdict(list)

    def f(x):
        d["losses"].append(x.mean())
        return x

    return World(f, d)


@row
def defaultdict_of_numbers():
    d = collections.defaultdict(int)

    def f(x):
        d["calls"] += 1
        return x * 2

    return World(f, d)


@row
def counter():
    counts = collections.Counter()

    def f(x):
        counts["calls"] += 1
        counts["elements"] += x.numel()
        return x * 2

    return World(f, counts)


@row(plans=5)
def counter_update():
    counts = collections.Counter("ab")

    def f(x):
        counts.update(["a", "c"])
        return x * 2

    return World(f, counts)


@row
def ordered_dict_move_to_end():
    d = collections.OrderedDict(a=1, b=2, c=3)

    def f(x):
        d.move_to_end("a")
        d["z"] = x * 2
        d.move_to_end("z", last=False)
        return x

    return World(f, d)


@row
def ordered_dict_entry():
    d = collections.OrderedDict(a=1)

    def f(x):
        d["b"] = x * 2
        return x

    return World(f, d)


@row
def ordered_dict_as_a_cache():
    cache = collections.OrderedDict()

    def f(x):
        key = x.shape[0]
        if key in cache:
            cache.move_to_end(key)
        else:
            cache[key] = tg.ones(key)
            if len(cache) > 2:
                cache.popitem(last=False)
        return x * cache[key]

    return World(f, cache, lambda turn: (tg.ones(3 + turn // 4) * turn,))


@row
def dict_subclass_with_setitem():
    class Logged(dict):
        count = 0

        def __setitem__(self, key, value):
            self.count += 1
            super().__setitem__(key, value)

    d = Logged()

    def f(x):
        d["y"] = x * 2
        return x

    return World(f, [d, d.__dict__])


@row
def user_dict():
    d = collections.UserDict()

    def f(x):
        d["y"] = x * 2
        return x

    return World(f, d)


@row
def chain_map():
    first, second = {}, {"y": 1}
    d = collections.ChainMap(first, second)

    def f(x):
        d["y"] = x * 2
        return x * second["y"]

    return World(f, [first, second])


@row
def nested_containers():
    d = {"a": [{"b": {}}], "n": (1, [2])}

    def f(x):
        d["a"][0]["b"]["c"] = x * 2
        d["n"][1][0] = x.sum()
        d["new"] = {"list": [x, (x + 1, 2)], "number": 3}
        return x

    return World(f, d)


# --- lists ---------------------------------------------------------------------------------------


@row
def list_append():
    items = []

    def f(x):
        items.append(x)
        items.append(x * 2)
        return x + 1

    return World(f, items)


@row
def list_append_same_as_returned():
    items = []

    def f(x):
        y = x * 2
        items.append(y)
        return y

    return World(f, items)


@row
def list_of_losses():
    w, history = tg.ones(4, requires_grad=True), []

    def f(x):
        loss = (w * x).square().sum()
        history.append(loss)
        return loss.detach()

    def after(turn):
        history[-1].backward()

    return World(f, [w, history], after=after)


@row
def list_of_losses_all_at_the_end():
    w, history = tg.ones(4, requires_grad=True), []

    def f(x):
        loss = (w * x).sin().sum()
        history.append(loss)
        return loss

    def after(turn):
        if turn == 3:
            sum(history).backward()

    return World(f, [w, history], after=after)


@row
def list_extend_and_add():
    items = [1]

    def f(x):
        nonlocal items
        items.extend([x, x * 2])
        items += [x + 1]
        return x

    return World(f, items)


@row
def list_item():
    items = [0, 1, 2]

    def f(x):
        items[0] = x * 2
        items[-1] = 5
        return x * items[1]

    return World(f, items)


@row
def list_item_counts():
    items = [0, 10]

    def f(x):
        items[0] += 1
        items[1] *= 2
        return x * items[1]

    return World(f, items)


@row
def list_slice():
    items = [0, 1, 2, 3]

    def f(x):
        items[1:3] = [x, x * 2]
        return x

    return World(f, items)


@row(plans=5)
def list_slice_grows():
    items = [0, 1, 2, 3]

    def f(x):
        items[1:1] = [x]
        return x

    return World(f, items)


@row(plans=5)
def list_insert_and_pop():
    items = [1, 2, 3]

    def f(x):
        items.insert(0, x * 2)
        items.pop()
        return x

    return World(f, items)


@row(plans=5)
def list_pop_until_empty():
    items = [1, 2, 3, 4, 5]

    def f(x):
        return x * items.pop()

    return World(f, items)


@row(plans=5)
def list_insert_grows():
    items = []

    def f(x):
        items.insert(0, x * 2)
        return x

    return World(f, items)


@row
def list_remove_and_append():
    items = ["a", "b"]

    def f(x):
        items.remove("b")
        items.append("b")
        return x

    return World(f, items)


@row
def list_sort_and_reverse():
    items = [3, 1, 2]

    def f(x):
        items.sort()
        items.reverse()
        return x * items[0]

    return World(f, items)


@row
def list_reverse_of_tensors():
    items = [tg.ones(4), tg.zeros(4)]

    def f(x):
        items.reverse()
        return x + items[0]

    return World(f, items)


@row
def list_clear_and_fill():
    items = [1, 2]

    def f(x):
        items.clear()
        items.append(x * 2)
        return x

    return World(f, items)


@row(plans=5)
def list_delete():
    items = [1, 2, 3]

    def f(x):
        items.append(x)
        del items[0]
        return x

    return World(f, items)


@row
def list_times():
    items = [1]

    def f(x):
        nonlocal items
        items *= 1
        items.append(x)
        del items[:-1]
        return x

    return World(f, items)


@row
def list_subclass():
    class Items(list):
        pass

    items = Items([1])
    items.note = 0

    def f(x):
        items.append(x * 2)
        items.note += 1
        return x

    return World(f, [items, items.__dict__])


@row
def list_read_after_append():
    items = []

    def f(x):
        items.append(x * 2)
        return items[-1] + 1

    return World(f, items)


@row(plans=5)
def list_mean_of_history():
    items = []

    def f(x):
        items.append(x.mean())
        return sum(items) / len(items)

    return World(f, items)


@row(plans=5)
def list_window_of_history():
    items = [tg.zeros(4), tg.zeros(4)]

    def f(x):
        items.append(x * 2)
        del items[0]
        return items[0] + items[1]

    return World(f, items)


@row
def list_swap():
    items = [tg.ones(4), tg.zeros(4)]

    def f(x):
        items[0], items[1] = items[1], items[0] + x
        return items[0] * 2

    return World(f, items)


@row(plans=5)
def ring_buffer_by_turns():
    ring = Bag(items=[None] * 3, at=0)

    def f(x):
        ring.items[ring.at] = x * 2
        ring.at = (ring.at + 1) % 3
        return x

    return World(f, ring)


@row
def ring_buffer_in_a_tensor():
    ring = Bag(data=tg.zeros(3, 4), at=tg.zeros((), dtype=tg.int64))

    def f(x):
        ring.data.index_copy_(0, ring.at.reshape(1), x.reshape(1, -1))
        ring.at.add_(1).remainder_(3)
        return ring.data.sum()

    return World(f, ring)


# --- sets, deques --------------------------------------------------------------------------------


@row
def set_add_discard_update():
    s = {"a", "b"}

    def f(x):
        s.add("c")
        s.discard("a")
        s.update(["d", "b"])
        return x * 2

    return World(f, s)


@row
def set_remove_and_add():
    s = {1, 2, 3}

    def f(x):
        s.remove(1)
        s.add(1)
        return x * 2

    return World(f, s)


@row
def set_operators():
    s = {1, 2, 3}

    def f(x):
        nonlocal s
        s |= {4}
        s -= {1}
        s &= {2, 3, 4}
        s ^= {9} if 9 not in s else set()
        return x * 2

    return World(f, s)


@row
def set_of_shapes_seen():
    seen = set()

    def f(x):
        is_new = tuple(x.shape) not in seen
        seen.add(tuple(x.shape))
        return x * 2 if is_new else x

    return World(f, seen)


@row
def set_of_tensors():
    seen, w = set(), tg.ones(4)

    def f(x):
        seen.add(w)
        return x * 2

    return World(f, [w])


@row
def deque_append():
    d = collections.deque(maxlen=2)

    def f(x):
        d.append(x * 2)
        return x

    return World(f, d)


@row
def deque_append_left():
    d = collections.deque(maxlen=3)

    def f(x):
        d.appendleft(x * 2)
        return x

    return World(f, d)


@row(plans=5)
def deque_pop_left():
    d = collections.deque([1, 2])

    def f(x):
        d.append(x)
        d.popleft()
        return x

    return World(f, d)


@row
def deque_rotate():
    d = collections.deque([1, 2, 3])

    def f(x):
        d.rotate(1)
        return x * 2

    return World(f, d)


@row
def deque_extend_over_its_length():
    d = collections.deque([0], maxlen=3)

    def f(x):
        d.extend([x, 1, 2, x + 1])
        return x

    return World(f, d)


@row
def deque_full_of_tensors_is_read():
    d = collections.deque([tg.zeros(4), tg.zeros(4)], maxlen=2)

    def f(x):
        d.append(x * 2)
        return d[0] + d[1]

    return World(f, d)


# --- attributes ----------------------------------------------------------------------------------


@row
def attribute_cache():
    o = Bag()

    def f(x):
        o.cache = x * 2
        return x

    return World(f, o)


@row
def attribute_counter():
    o = Bag(n=0)

    def f(x):
        o.n += 1
        return x * 2

    return World(f, o)


@row
def attribute_counter_that_is_used():
    o = Bag(n=0)

    def f(x):
        o.n += 1
        return x * o.n, o.n

    return World(f, o)


@row(plans=5)
def attribute_counter_that_decides():
    o = Bag(n=0)

    def f(x):
        o.n += 1
        return x * 2 if o.n % 2 else x

    return World(f, o)


@row
def attribute_flag():
    o = Bag(on=False)

    def f(x):
        o.on = not o.on
        return x * 2 if o.on else x

    return World(f, o)


@row
def attribute_average():
    o = Bag(mean=0.5)

    def f(x):
        o.mean = 0.9 * o.mean + 0.1
        return x * o.mean

    return World(f, o)


@row
def attribute_average_that_is_kept():
    o = Bag(mean=0.5, before=[])

    def f(x):
        o.mean = 0.9 * o.mean + 0.1
        o.before.append(o.mean)
        return x

    return World(f, o)


@row(plans=5)
def attribute_text():
    o = Bag(log="")

    def f(x):
        o.log += "a"
        return x * 2

    return World(f, o)


@row
def attribute_text_by_shape():
    o = Bag()

    def f(x):
        o.log = f"{tuple(x.shape)}"
        return x * 2

    return World(f, o)


@row
def attribute_created_on_first_use():
    o = Bag(c=None)

    def f(x):
        if o.c is None:
            o.c = tg.ones(4)
        return o.c * x

    return World(f, o)


@row
def attribute_created_on_first_use_and_written():
    o = Bag(c=None)

    def f(x):
        if o.c is None:
            o.c = tg.zeros(4)
        o.c.add_(x)
        return o.c * 2

    return World(f, o)


@row
def attribute_created_where_absent():
    o = Bag()

    def f(x):
        if not hasattr(o, "c"):
            o.c = x * 0 + 1
        return o.c * x

    return World(f, o)


@row
def attribute_created_by_except():
    o = Bag()

    def f(x):
        try:
            c = o.c
        except AttributeError:
            c = o.c = tg.full((4,), 2.0)
        return c * x

    return World(f, o)


@row
def parameter_created_on_first_use():
    o = Bag(w=None)

    def f(x):
        if o.w is None:
            o.w = tg.ones(4).requires_grad_()
        return (o.w * x).square().sum()

    def after(turn):
        o.w.grad = None
        f(tg.ones(4)).backward()

    return World(f, o, after=after)


@row
def recurrent_state():
    w = tg.tensor([[0.5, 0.25], [-0.5, 1.0]])
    o = Bag(h=tg.zeros(3, 2))

    def f(x):
        o.h = tg.tanh(x @ w + o.h)
        return o.h

    return World(f, o, lambda turn: (tg.ones(3, 2) * turn,))


@row
def recurrent_state_detached():
    w, o = tg.ones(4, requires_grad=True), Bag(h=tg.zeros(4))

    def f(x):
        h = tg.tanh(x * w + o.h)
        o.h = h.detach()
        return h.sum()

    return World(f, [w, o])


@row
def recurrent_state_with_history():
    w, o = tg.ones(4, requires_grad=True), Bag(h=tg.zeros(4))

    def f(x):
        o.h = tg.tanh(x * w + o.h)
        return o.h.sum()

    def after(turn):
        if turn == 4:
            o.h.sum().backward()

    return World(f, [w, o], after=after)


@row
def training_step_that_logs():
    w, o = tg.ones(4, requires_grad=True), Bag(losses=[], step=0, best=None)

    def f(x):
        w.grad = None
        loss = (w * x - 1).square().mean()
        loss.backward()
        with tg.no_grad():
            w.sub_(w.grad * 0.1)
        o.losses.append(loss.detach())
        o.step += 1
        o.last = w.grad
        return loss.detach()

    return World(f, [w, o])


@row
def attribute_set_by_name():
    o = Bag(b=1)

    def f(x):
        setattr(o, "a", x * 2)  # noqa: B010
        if hasattr(o, "b"):
            delattr(o, "b")
        return x

    return World(f, o)


@row
def attribute_deleted_and_made():
    o = Bag(a=1, b=2)

    def f(x):
        del o.a
        o.a = x
        return x * 2

    return World(f, o)


@row
def attribute_dictionary():
    o = Bag(a=1)

    def f(x):
        o.__dict__["a"] = x * 2
        vars(o)["b"] = x
        o.__dict__.update(c=3)
        return x

    return World(f, o)


@row
def attribute_of_slots():
    class Slotted:
        __slots__ = ("a", "b", "c")

    o = Slotted()
    o.a, o.b = 0, 1

    def f(x):
        o.a += 1
        o.c = x * 2
        if hasattr(o, "b"):
            del o.b
        return x

    return World(f, o)


@row
def attribute_of_slots_and_dictionary():
    class Slotted:
        __slots__ = ("__dict__", "a")

    o = Slotted()

    def f(x):
        o.a = x * 2
        o.b = x + 1
        return x

    return World(f, o)


@row
def property_with_setter():
    class Scaled:
        def __init__(self):
            self._scale = 1.0

        @property
        def scale(self):
            return self._scale

        @scale.setter
        def scale(self, value):
            self._scale = value * 2

    o = Scaled()

    def f(x):
        o.scale = 3.0
        return x * o.scale

    return World(f, o)


@row
def cached_property():
    class Cached:
        def __init__(self):
            self.base = tg.ones(4)

        @functools.cached_property
        def doubled(self):
            return self.base * 2

    o = Cached()

    def f(x):
        return x * o.doubled

    return World(f, o)


@row
def user_setattr():
    class Logged:
        def __init__(self):
            object.__setattr__(self, "count", 0)

        def __setattr__(self, name, value):
            object.__setattr__(self, name, value)
            object.__setattr__(self, "count", self.count + 1)

    o = Logged()

    def f(x):
        o.a = x * 2
        return x

    return World(f, o)


@row
def user_setitem():
    class Table:
        def __init__(self):
            self.rows, self.count = {}, 0

        def __setitem__(self, key, value):
            self.rows[key] = value
            self.count += 1

        def __delitem__(self, key):
            del self.rows[key]

    o = Table()

    def f(x):
        o["a"] = x
        o["b"] = x * 2
        del o["a"]
        return x

    return World(f, o)


@row
def user_operator_in_place():
    class Total:
        def __init__(self):
            self.value = tg.zeros(4)

        def __iadd__(self, other):
            self.value = self.value + other
            return self

    o = Bag(total=Total())

    def f(x):
        o.total += x
        return o.total.value

    return World(f, o)


@row
def descriptor_of_the_user():
    class Doubled:
        def __set_name__(self, owner, name):
            self.name = "_" + name

        def __get__(self, obj, owner=None):
            return getattr(obj, self.name, 1)

        def __set__(self, obj, value):
            setattr(obj, self.name, value * 2)

    class Holder:
        value = Doubled()

    o = Holder()

    def f(x):
        o.value = x
        return o.value + 1

    return World(f, o)


@row
def dataclass_attribute():
    @dataclasses.dataclass
    class Record:
        x: Any = None
        n: int = 0

    o = Record()

    def f(x):
        o.x = x * 2
        o.n += 1
        return x

    return World(f, o)


@row
def class_attribute():
    class Shared:
        n = 0
        last = None

    def f(x):
        Shared.n += 1
        Shared.last = x * 2
        return x * Shared.n

    return World(f, Shared)


@row
def class_attribute_by_self():
    class Shared:
        n = 0

        def step(self, x):
            type(self).n += 1
            self.__class__.last = x
            return x * 2

    return World(Shared().step, Shared)


@row
def function_attribute():
    def f(x):
        f.calls += 1
        f.last = x * 2
        return x

    f.calls = 0
    return World(f)


@row
def module_attribute():
    module = types.ModuleType("written")
    module.n = 0

    def f(x):
        module.n += 1
        module.last = x * 2
        return x * module.n

    return World(f, module.__dict__)


@row
def namespace_attribute():
    o = types.SimpleNamespace(n=0)

    def f(x):
        o.n += 1
        o.last = x * 2
        return x

    return World(f, o.__dict__)


@row
def method_of_an_object():
    class Model:
        def __init__(self):
            self.n, self.history = 0, []

        def note(self, value):
            self.history.append(value)
            self.n += 1

        def step(self, x):
            y = x * 2
            self.note(y)
            return y

    o = Model()
    return World(o.step, o)


@row
def module_with_state():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(4, 2)
            with tg.no_grad():
                self.linear.weight.fill_(0.5)
                self.linear.bias.zero_()
            self.register_buffer("seen", tg.zeros(4))
            self.calls, self.h = 0, None

        def forward(self, x):
            self.calls += 1
            self.seen = self.seen + x
            self.h = self.linear(x) if self.h is None else self.linear(x) + self.h.detach()
            return self.h

    model = Model()
    return World(model, model)


@row
def module_with_a_lazy_parameter():
    class Lazy(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = None

        def forward(self, x):
            if self.weight is None:
                self.weight = nn.Parameter(tg.ones(x.shape[-1]))
            return x * self.weight

    model = Lazy()
    return World(model, model)


@row
def batch_norm():
    model = nn.BatchNorm1d(4)
    return World(model, model, lambda turn: (tg.arange(12.0).reshape(3, 4) * (turn + 1),))


@row
def tensor_attribute():
    w = tg.ones(4)

    def f(x):
        w.note = x * 2
        w.count = getattr(w, "count", 0) + 1
        return x * w

    return World(f, w)


@row
def gradient_attribute():
    w = tg.ones(4, requires_grad=True)

    def f(x):
        w.grad = x * 2
        return x

    return World(f, w)


# --- variables -----------------------------------------------------------------------------------


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


# --- arguments -----------------------------------------------------------------------------------


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


# --- results -------------------------------------------------------------------------------------


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


# --- the same object twice -----------------------------------------------------------------------


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


# --- attributes of tensors -----------------------------------------------------------------------


@row
def attributes_of_tensors():
    weight = tg.ones(4)

    def f(x):
        weight._count = getattr(weight, "_count", 0) + 1
        weight.sample = x * 2
        x.tags = [1]
        x.tags.append(x)
        y = x * weight._count
        y.half, y.me = x * 0.5, y
        z = y[:2]
        z._start = 0
        return y, z

    return World(f, weight)


@row
def attributes_of_an_argument_written_over():
    def f(x):
        x.rate = x.rate + 1.0
        setattr(x, "seen", True)  # noqa: B010
        del x.old
        return x * x.rate

    def arguments(turn):
        x = tg.ones(4) * turn
        x.rate, x.old, x.seen = 2.0, None, True
        if turn == 3:
            del x.seen
        return (x,)

    return World(f, None, arguments)


@row
def attribute_of_an_argument_that_is_known_already():
    weight = tg.ones(4)

    def f(x):
        x.rate = 3.0
        return x * getattr(weight, "rate", 2.0)

    def arguments(turn):
        vars(weight).clear()
        return (weight if turn % 2 else tg.ones(4),)

    return World(f, weight, arguments)


@row(refused="looks at all attributes of its argument `x`")
def all_attributes_of_an_argument():
    def f(x):
        return x * len(vars(x))

    return World(f)


# --- tensors written and kept --------------------------------------------------------------------


@row
def kept_then_mutated():
    o = Bag()

    def f(x):
        y = x * 2
        o.y = y
        y.add_(1)
        return y.sum()

    return World(f, o)


@row
def kept_view():
    o = Bag()

    def f(x):
        y = x * 2
        o.y, o.part = y, y[:2]
        return y.sum()

    def after(turn):
        o.part.add_(100)

    return World(f, o, after=after)


@row
def kept_view_of_the_outside():
    w, o = tg.arange(4.0), Bag()

    def f(x):
        o.part = w[1:3]
        o.part.add_(1)
        return w * x

    def after(turn):
        o.part.mul_(2)

    return World(f, [w, o], after=after)


@row
def kept_view_of_an_argument():
    o = Bag()

    def f(x):
        o.part = x[:2]
        o.whole = x
        return x * 2

    def after(turn):
        o.part.mul_(2)

    return World(f, o, after=after)


@row
def kept_detached():
    w, o = tg.ones(4, requires_grad=True), Bag()

    def f(x):
        y = w * x
        o.y, o.detached = y, y.detach()
        return y.sum()

    return World(f, [w, o])


@row
def kept_tensor_is_replaced_by_another():
    o = Bag(a=tg.ones(4), b=tg.zeros(4))

    def f(x):
        o.a, o.b = o.b, o.a
        o.a.add_(x)
        return o.a + o.b

    return World(f, o)


@row
def outside_tensor_kept_elsewhere():
    w, o = tg.ones(4), Bag(items=[])

    def f(x):
        o.items.append(w)
        o.w = w
        return x * w

    return World(f, [w, o])


@row
def old_value_kept():
    o = Bag(now=tg.zeros(4), before=None)

    def f(x):
        o.before = o.now
        o.now = x * 2
        return o.now - o.before

    return World(f, o)


@row
def constants_made_once_are_not_shared():
    o = Bag(items=[])

    def f(x):
        o.items.append(tg.zeros(2))
        return x

    def after(turn):
        o.items[-1].add_(turn + 1)

    return World(f, o, after=after)


@row
def random_state_and_writes():
    o = Bag(items=[])

    def f(x):
        noise = tg.rand(4)
        o.items.append(noise)
        return x + noise

    return World(f, o)


# --- what lies there already, written again -------------------------------------------------------


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


# --- arrays of NumPy -----------------------------------------------------------------------------


@row
def array_item():
    a = np.zeros(3)

    def f(x):
        a[0] = 5
        return x * 2

    return World(f, a)


@row(plans=5)
def array_counts():
    a = np.zeros(3)

    def f(x):
        nonlocal a
        a += 1
        return x * 2

    return World(f, a)


@row
def array_fill():
    a = np.zeros(3)

    def f(x):
        a.fill(x.ndim)
        return x * 2

    return World(f, a)


@row
def array_view_written():
    a = np.zeros((2, 3))

    def f(x):
        part = a[0]
        part[1:] = 7
        return x * 2

    return World(f, a)


@row
def array_written_by_numpy():
    a = np.array([3.0, 1.0, 2.0])

    def f(x):
        np.copyto(a, 4.0)
        return x * 2

    return World(f, a)


@row
def array_sorted():
    a = np.array([3.0, 1.0, 2.0])

    def f(x):
        a.sort()
        return x * float(a[0])

    return World(f, a)


# --- control flow, helpers -----------------------------------------------------------------------


@row
def try_and_finally():
    o = Bag(depth=0, log=[])

    def f(x):
        o.depth += 1
        try:
            o.log.append(x.sum())
            raise KeyError("inner")
        except KeyError:
            o.failed = x * 2
        finally:
            o.depth -= 1
        return x

    return World(f, o)


@row
def context_manager_of_the_user():
    o = Bag(depth=0, most=0)

    @contextlib.contextmanager
    def deeper():
        o.depth += 1
        try:
            yield o.depth
        finally:
            o.depth -= 1

    def f(x):
        with deeper() as depth:
            o.most = depth
            return x * 2

    return World(f, o)


@row
def comprehension_that_writes():
    d, items = {}, []

    def f(x):
        [items.append(x * k) for k in (1, 2)]
        return [d.setdefault(k, x * k) for k in (3, 4)]

    return World(f, [d, items])


@row
def loop_that_writes():
    o = Bag(total=tg.zeros(4), n=0)

    def f(x):
        for k in range(3):
            o.total = o.total + x * k
            o.n += 1
        return o.total

    return World(f, o)


@row
def generator_that_writes():
    items = []

    def parts(x):
        for k in range(2):
            items.append(x * k)
            yield x + k

    def f(x):
        return sum(parts(x))

    return World(f, items)


@row
def walrus_and_unpacking():
    o = Bag(a=0)

    def f(x):
        o.a, (o.b, *o.rest) = 1, (x, 2, 3)
        if (y := x * 2) is not None:
            o.y = y
        return x

    return World(f, o)


@row
def augmented_targets_run_once():
    o = Bag(n=0, items=[0, 0])

    def at():
        o.n += 1
        return 0

    def f(x):
        o.items[at()] += 2
        return x * 2

    return World(f, o)


@row
def raises_afterwards():
    o = Bag(n=0, items=[])

    def f(x):
        o.n += 1
        o.items.append(x * 2)
        raise ValueError("after writes")

    return World(f, o)


@row(plans=5)
def raises_now_and_then():
    o = Bag(n=0, items=[])

    def f(x):
        o.n += 1
        o.items.append(x * 2)
        if o.n == 2:
            raise ValueError("at the second call")
        return x

    return World(f, o)


@row
def raises_while_it_runs():
    o, table = Bag(n=0, items=[]), tg.arange(3.0)

    def f(x, at):
        o.n += 1
        o.items.append(x * 2)
        y = table[at]
        o.late = y
        return y

    def arguments(turn):
        return tg.ones(4) * turn, tg.tensor([0, 7 if turn == 3 else 1])

    return World(f, o, arguments)


@row
def division_by_zero():
    o = Bag(rate=1.0, n=0)

    def f(x):
        o.n += 1
        return x * (1 / o.rate), o.n

    def after(turn):
        o.rate = (2.0, 4.0, 0.0, 5.0, 0.0)[turn]

    return World(f, o, after=after)


@row
def integer_division_by_zero():
    o = Bag(rate=3, last=None)

    def f(x):
        o.last = 7 // o.rate, 7 % o.rate
        return x * 2

    def after(turn):
        o.rate = (2, 4, 0, 5, 0)[turn]

    return World(f, o, after=after)


@row
def division_by_zero_of_an_argument():
    log = []

    def f(x, rate):
        log.append(x)
        return x * (1 / rate)

    return World(f, log, lambda turn: (tg.ones(4), (1.0, 2.0, 0.0, 4.0, 0.0)[turn]))


@row
def overflow_of_a_power():
    o = Bag(rate=3.0)

    def f(x):
        o.rate = o.rate**9
        return x * 2

    return World(f, o)


@row
def large_integers():
    o = Bag(n=3)

    def f(x):
        o.n = o.n * o.n
        return x * 2

    return World(f, o)


@row
def under_no_grad():
    w, o = tg.ones(4, requires_grad=True), Bag(items=[])

    def f(x):
        with tg.no_grad():
            o.frozen = w * x
            o.items.append(o.frozen.sum())
        o.free = w * x
        return x

    return World(f, [w, o])


@row
def written_in_a_hook():
    w, o = tg.ones(4, requires_grad=True), Bag(items=[], n=0)

    def keep(grad):
        o.items.append(grad * 2)
        o.n += 1

    w.register_hook(keep)

    def f(x):
        w.grad = None
        (w * x).sum().backward()
        return x

    return World(f, [w, o])


@row
def written_in_a_hook_of_its_own():
    w, items = tg.ones(4, requires_grad=True), []

    def f(x):
        y = w * x
        y.register_hook(items.append)
        y.sum().backward()
        w.grad = None
        return x

    return World(f, [w, items])


class Seen(tg.autograd.Function):
    """Twice its argument; what `o` is given sees each gradient."""

    @staticmethod
    def forward(ctx, x, o):
        ctx.o, ctx.times = o, 0
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        ctx.times += 1
        ctx.o.items.append(grad * ctx.times)
        ctx.o.saved = grad
        return grad * 2, None


def counted(module, got, gave):
    module.count += 1
    module.saved = gave[0]


@row
def written_in_backward():
    w, o, layer = tg.ones(4, requires_grad=True), Bag(items=[], saved=None), nn.Tanh()
    layer.count, layer.saved = 0, None
    layer.register_full_backward_hook(counted)
    layer.register_full_backward_pre_hook(lambda module, grads: o.items.append(module.count))

    def f(x):
        layer(Seen.apply(w, o) * x).sum().backward()
        return x

    return World(f, lambda: [w, o, layer.count, layer.saved])


@row(refused="leaves a hook, of .*at `w`")
def hook_left_at_a_parameter():
    w = tg.ones(4, requires_grad=True)

    def f(x):
        w.register_hook(lambda grad: grad * 2)
        return w * x

    return World(f, w)


@row(refused="gradient of the body of a branch or loop writes `o.saved`")
def written_in_the_gradient_of_a_branch():
    w, o = tg.ones(4, requires_grad=True), Bag(items=[], saved=None)

    def f(x):
        tg.cond(x.sum() > 0, lambda: Seen.apply(w, o), lambda: w * x).sum().backward()
        return x

    return World(f, [w, o])


@row(backward=r"writes `o.saved`, at .*state_writes.py:\d+")
def written_in_a_custom_backward_outside():
    w, o = tg.ones(4, requires_grad=True), Bag(items=[], saved=None)
    return World(lambda x: (Seen.apply(w, o) * x).sum(), [w, o])


@row(backward=r"writes `layer.count`, at .*state_writes.py:\d+")
def written_in_a_hook_of_a_module_outside():
    w, layer = tg.ones(4, requires_grad=True), nn.Tanh()
    layer.count, layer.saved = 0, None
    layer.register_full_backward_hook(counted)
    return World(lambda x: layer(w * x).sum(), lambda: [w, layer.count, layer.saved])


@row(backward=r"writes `items`, at .*state_writes.py:\d+")
def kept_by_a_hook_outside():
    w, items = tg.ones(4, requires_grad=True), []

    def f(x):
        y = w * x
        y.register_hook(items.append)
        return y.sum()

    return World(f, [w, items])


@row(backward=r"writes `n`, at .*state_writes.py:\d+")
def variable_written_in_a_hook_outside():
    w, n = tg.ones(4, requires_grad=True), 0

    def count(grad):
        nonlocal n
        n += 1

    def f(x):
        y = w * x
        y.register_hook(count)
        return y.sum()

    return World(f, lambda: [w, n])


@row(backward="writes a tensor, `total`, in place")
def tensor_written_in_a_hook_outside():
    w, total = tg.ones(4, requires_grad=True), tg.zeros(4)

    def add(grad):
        total.add_(grad)

    def f(x):
        total.mul_(0.5)
        y = w * x
        y.register_hook(add)
        return y.sum()

    return World(f, [w, total])


@row(backward="of random numbers")
def drawn_in_a_hook_outside():
    w = tg.ones(4, requires_grad=True)

    def f(x):
        y = w * x * tg.rand(4)
        y.register_hook(lambda grad: grad * tg.rand(4))
        return y.sum()

    return World(f, w)


@row(backward="retain_grad")
def gradient_of_a_result_retained():
    w, o = tg.ones(4, requires_grad=True), Bag(y=None)

    def f(x):
        o.y = w * x
        o.y.retain_grad()
        return (o.y * x).sum()

    return World(f, [w, o])


@row(backward="")
def read_in_a_hook_outside():
    w, o = tg.ones(4, requires_grad=True), Bag(scale=1.0, items=[], last=None, all=[])

    def f(x):
        o.items.append(x)
        o.last = x * 2
        y = w * x
        y.register_hook(lambda grad: grad * o.scale * o.last * o.items[-1])
        return y.sum()

    def after(turn):
        o.scale = turn + 2.0

    return World(f, [w, o], after=after)


@row
def hook_of_a_graph_that_is_used_up():
    w, items = tg.ones(4, requires_grad=True), []

    def f(x):
        loss = (w * x).sum()
        loss.register_hook(items.append)
        loss.backward()
        return loss

    return World(f, [w, items])


@row(backward="")
def written_in_the_gradient_of_another_result():
    w, items = tg.ones(4, requires_grad=True), []

    def f(x):
        y = w * x
        y.register_hook(items.append)
        items.append(y.sum())
        return (w + x).sum()

    return World(f, [w, items])


@row
def nested_compiled_function():
    o = Bag(items=[], n=0)

    @tg.compile
    def inner(x):
        o.n += 1
        o.items.append(x * 2)
        return x + 1

    def f(x):
        return inner(inner(x))

    return World(f, o)


@row
def written_in_grad():
    items = []

    def loss(w, x):
        value = (w * x).square().sum()
        items.append(x.sum())
        return value

    def f(x):
        return tg.grad(loss)(tg.ones(4), x)

    return World(f, items)


# --- library code --------------------------------------------------------------------------------


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
