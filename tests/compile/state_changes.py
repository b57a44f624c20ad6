"""A table of changes of Python state, each between calls of a compiled function.

A row is a generator: it yields the function (or the function and arguments that follow the tensor),
and goes on to change something and yield again, as often as it likes; most change it back at the
end. After each step the compiled function must give what the function gives eagerly, or raise the
same. Rows marked as `refused` read what cannot be watched, and must be refused with their line.

What a row reads is the point of it, so that functions here are written in all the ways in which
Python can be asked for something.
"""

from __future__ import annotations

import abc
import argparse
import bisect
import builtins
import collections
import contextlib
import contextvars
import copy
import dataclasses
import enum
import functools
import itertools
import math
import operator
import os
import string
import sys
import threading
import types
import typing
import weakref

import numpy as np

import tgraph as tg

STATE_CHANGES = {}
"""Name -> row."""
REFUSED = {}
"""Name -> row whose function is refused at its first call."""


def row(factory):
    STATE_CHANGES[factory.__name__] = factory
    return factory


def refused(factory):
    REFUSED[factory.__name__] = factory
    return factory


class Thing:
    """An object with any attributes."""

    def __init__(self, **attributes):
        self.__dict__.update(attributes)


class Weight(tg.nn.Parameter):
    """A tensor that can have any attributes."""


class Color(enum.Enum):
    RED = 1
    BLUE = 2


# --- dictionaries ---------------------------------------------------------------------------------


@row
def dict_item_of_a_tuple():
    table = {(1, "a"): 2.0}
    yield lambda x: x * table[1, "a"]
    table[1, "a"] = 3.0
    yield
    table[1, "a"] = 2.0
    yield


@row
def dict_item_of_an_enum():
    table = {Color.RED: 2.0, Color.BLUE: 5.0}
    yield lambda x: x * table[Color.RED]
    table[Color.RED] = 3.0
    yield
    table[Color.RED] = 2.0
    yield


@row
def dict_item_of_none():
    table = {None: 2.0}
    yield lambda x: x * table[None]
    table[None] = 3.0
    yield


@row
def dict_item_of_a_float():
    table = {0.5: 2.0, -0.5: 7.0}
    yield lambda x: x * table[0.5]
    table[0.5] = 3.0
    yield
    del table[0.5]
    yield
    table[0.5] = 2.0
    yield


@row
def dict_item_of_an_object():
    key = Thing()
    table = {key: 2.0}
    yield lambda x: x * table[key]
    table[key] = 3.0
    yield
    key = Thing()
    yield
    table[key] = 4.0
    yield


@row
def dict_item_of_a_frozenset_and_bytes():
    table = {frozenset({1, 2}): 2.0, b"raw": 3.0}
    yield lambda x: x * table[frozenset({2, 1})] + table[b"raw"]
    table[frozenset({1, 2})] = 5.0
    yield
    table[b"raw"] = 7.0
    yield


@row
def dict_item_of_a_class():
    table = {int: 2.0, Thing: 3.0}
    yield lambda x: x * table[int] + table[Thing]
    table[Thing] = 4.0
    yield


@row
def dict_item_of_a_computed_key():
    table, name = {"rate": 2.0, "other": 9.0}, "ra"
    yield lambda x: x * table[name + "te"]
    table["rate"] = 3.0
    yield
    name = "ot"
    yield
    table["other"], table["otte"] = 1.0, 8.0
    yield


@row
def dict_order():
    table = {"a": 2.0, "b": 3.0}

    def function(x):
        for value in table.values():
            x = x * value + value
        return x

    yield function
    table["a"] = table.pop("a")
    yield
    table["b"] = table.pop("b")
    yield


@row
def dict_keys_added_and_removed():
    table = {"a": 2.0}
    yield lambda x: x * sum(table[key] for key in table)
    table["b"] = 3.0
    yield
    del table["a"]
    yield
    table.clear()
    yield


@row
def dict_get_with_a_default():
    table = {}
    yield lambda x: x * table.get("rate", 2.0)
    table["rate"] = 3.0
    yield
    table["rate"] = None
    yield
    del table["rate"]
    yield


@row
def dict_membership():
    table = {}
    yield lambda x: x * 2 if "on" in table else x
    table["on"] = False
    yield
    del table["on"]
    yield


@row
def dict_lacks():
    table = {}
    yield lambda x: x * 2 if (1, 2) not in table else x
    table[1, 2] = 0
    yield
    del table[1, 2]
    yield


@row
def dict_length():
    table = {1: 1}
    yield lambda x: x * len(table)
    table[2] = 1
    yield


@row
def dict_truth():
    table = {}
    yield lambda x: x * 2 if table else x
    table[2] = 1
    yield
    table.clear()
    yield


@row
def dict_items_as_keys_and_values():
    table = {"b": 1.0, "a": 2.0}
    yield lambda x: sum((x * value for key, value in sorted(table.items()) if key > "a"), x)
    table["c"] = 4.0
    yield
    table["b"] = 5.0
    yield


@row
def dict_keys_as_a_set():
    table, other = {"a": 1, "b": 2}, {"b", "c"}
    yield lambda x: x * len(table.keys() & other)
    table["c"] = 3
    yield
    other.clear()
    yield


@row
def dict_compared():
    table, other = {"a": 1.5}, {"a": 1.5}
    yield lambda x: x * 2 if table == other else x
    other["a"] = 2.0
    yield
    table["a"] = 2.0
    yield


@row
def dict_merged():
    table, other = {"a": 1.5}, {"b": 2.0}
    yield lambda x: x * sum((table | other).values())
    other["a"] = 4.0
    yield


@row
def dict_displayed():
    table = {"a": 1.5}
    yield lambda x: x * sum({**table, "z": 1.0}.values())
    table["b"] = 4.0
    yield


@row
def dict_nested():
    config = {"model": {"layers": [1.0, 2.0], "act": "relu"}}

    def function(x):
        inner = config["model"]
        y = x * inner["layers"][-1]
        return y.relu() if inner["act"] == "relu" else y

    yield function
    config["model"]["layers"][-1] = -3.0
    yield
    config["model"]["act"] = "none"
    yield
    config["model"] = {"layers": [5.0], "act": "none"}
    yield


@row
def dict_first_value():
    table = {"a": 2.0, "b": 3.0}
    yield lambda x: x * next(iter(table.values()))
    table["a"] = table.pop("a")
    yield
    table["b"] = 5.0
    yield


@row
def dict_reversed():
    table = {"a": 2.0, "b": 3.0}
    yield lambda x: x * table[next(reversed(table))]
    table["c"] = 5.0
    yield


@row
def dict_copied():
    table = {"a": 2.0}
    yield lambda x: x * table.copy()["a"]
    table["a"] = 3.0
    yield


@row
def dict_view_kept():
    table = {"a": 2.0}
    values = table.values()
    yield lambda x: x * sum(values)
    table["a"] = 3.0
    yield
    table["b"] = 3.0
    yield


@row
def dict_with_tensors():
    table = {"w": tg.ones(2)}
    yield lambda x: x * table["w"]
    table["w"] = tg.zeros(2)
    yield
    table["w"] = tg.full((2,), 3.0)
    yield


# --- lists, tuples, sets --------------------------------------------------------------------------


@row
def list_item():
    values = [1.0, 2.0]
    yield lambda x: x * values[1]
    values[1] = 3.0
    yield
    values[1] = True
    yield


@row
def list_item_of_a_variable():
    values, at = [1.0, 2.0, 3.0], 0
    yield lambda x: x * values[at]
    at = 2
    yield
    values[2] = 7.0
    yield
    at = 5
    yield


@row
def list_slice():
    values = [1.0, 2.0, 3.0]
    yield lambda x: x * sum(values[1:])
    values[2] = 5.0
    yield
    values.append(1.0)
    yield


@row
def list_slice_with_a_step():
    values, start = [1.0, 2.0, 3.0, 4.0], 0
    yield lambda x: x * sum(values[start::2])
    start = 1
    yield
    values[3] = 9.0
    yield


@row
def list_unpacked():
    values = [1.0, 2.0]

    def function(x):
        one, two = values
        return x * one + two

    yield function
    values[0] = 3.0
    yield
    values.append(1.0)
    yield
    values.pop()
    yield


@row
def list_unpacked_with_a_star():
    values = [1.0, 2.0, 3.0]

    def function(x):
        one, *rest = values
        return x * one + sum(rest)

    yield function
    values.append(5.0)
    yield
    values[1] = 0.0
    yield


@row
def list_as_arguments():
    values = [1.0, 2.0]

    def scaled(x, *factors):
        return x * sum(factors)

    yield lambda x: scaled(x, *values)
    values[1] = 5.0
    yield
    values.append(3.0)
    yield


@row
def list_displayed():
    values = [1.0, 2.0]
    yield lambda x: x * sum([0.5, *values])
    values[1] = 5.0
    yield


@row
def list_membership():
    values = [1.0, 2.0]
    yield lambda x: x * 2 if 3.0 in values else x
    values.append(3.0)
    yield
    values.pop()
    yield


@row
def list_index_and_count():
    values = ["a", "b"]
    yield lambda x: x * values.index("b") + values.count("b")
    values.insert(0, "z")
    yield
    values.append("b")
    yield


@row
def list_compared():
    values = [1, 2]
    yield lambda x: x * 2 if values > [1, 1] else x
    values[:] = [0]
    yield


@row
def list_enumerated_and_zipped():
    values, others = [1.0, 2.0], [3.0, 4.0]
    yield lambda x: sum(x * v * w + i for i, (v, w) in enumerate(zip(values, others)))
    others[1] = 0.0
    yield
    values.append(1.0)
    others.append(2.0)
    yield


@row
def list_mapped_and_filtered():
    values = [1.0, -2.0]
    yield lambda x: x * sum(map(abs, filter(lambda v: v < 0, values)))
    values.append(-3.0)
    yield
    values[1] = 2.0
    yield


@row
def list_any_all_min_max_sum():
    values = [1, 2, 0]
    yield lambda x: x * (any(values) + 2 * all(values)) + min(values) + max(values) + sum(values)
    values[2] = 4
    yield
    values[0] = -4
    yield


@row
def list_sorted_by_a_key():
    values, sign = [3.0, 1.0, 2.0], 1
    yield lambda x: x * sorted(values, key=lambda v: v * sign)[0]
    sign = -1
    yield
    values[1] = 9.0
    yield


@row
def list_reversed():
    values = [3.0, 1.0]
    yield lambda x: x * next(iter(reversed(values)))
    values.append(2.0)
    yield


@row
def list_comprehension():
    values, limit = [1.0, 2.0, 3.0], 2.0
    yield lambda x: x * sum([v for v in values if v < limit])
    limit = 9.0
    yield
    values[0] = 5.0
    yield


@row
def list_nested_comprehension():
    rows = [[1.0], [2.0, 3.0]]
    yield lambda x: x * sum(v for row in rows for v in row)
    rows[1].append(4.0)
    yield
    rows[0][0] = 0.0
    yield
    rows.append([7.0])
    yield


@row
def list_multiplied_and_joined():
    values = [1.0]
    yield lambda x: x * sum(values * 2 + values)
    values.append(3.0)
    yield


@row
def list_of_many():
    values = list(range(200))
    yield lambda x: x * sum(values)
    values[150] = 0
    yield
    values[150] = 150
    yield


@row
def list_of_objects():
    things = [Thing(rate=1.0), Thing(rate=2.0)]
    yield lambda x: x * sum(thing.rate for thing in things)
    things[1].rate = 5.0
    yield
    things[0] = Thing(rate=9.0)
    yield


@row
def list_truth():
    values = []
    yield lambda x: x + 1 if not values else x
    values.append(0)
    yield


@row
def list_joined_text():
    values = ["a", "b"]
    yield lambda x: x * 2 if ",".join(values) == "a,b" else x
    values[1] = "c"
    yield


@row
def tuple_replaced():
    values = (1.0, 2.0)
    yield lambda x: x * values[0] + values[-1]
    values = (1.0, 3.0)
    yield
    values = (1.0, 2.0)
    yield


@row
def tuple_holding_a_list():
    values = (1.0, [2.0])
    yield lambda x: x * values[1][0]
    values[1][0] = 3.0
    yield


@row
def set_membership():
    names = {"a"}
    yield lambda x: x * 2 if "b" in names else x
    names.add("b")
    yield
    names.discard("b")
    yield


@row
def set_iterated():
    values = {1.0}
    yield lambda x: x * sum(values)
    values.add(2.0)
    yield
    values.remove(1.0)
    yield


@row
def set_operators():
    values, others = {1, 2}, {2, 3}
    yield lambda x: x * len(values & others) + len(values | others) + len(values - others)
    others.add(1)
    yield
    values.clear()
    yield


@row
def set_methods():
    values, others = {1, 2}, {2, 3}
    yield lambda x: x * 2 if values.isdisjoint(others) else x * len(values.union(others))
    others.discard(2)
    yield


@row
def set_compared():
    values = {1, 2}
    yield lambda x: x * 2 if values >= {1} else x
    values.discard(1)
    yield


@row
def frozenset_replaced():
    names = frozenset({"a"})
    yield lambda x: x * 2 if "b" in names else x
    names = frozenset({"a", "b"})
    yield
    names = frozenset({"c"})
    yield


@row
def deque_items():
    values = collections.deque([1.0, 2.0], maxlen=2)
    yield lambda x: x * values[0] + values[-1]
    values.append(3.0)
    yield
    values.rotate()
    yield


@row
def deque_iterated():
    values = collections.deque([1.0, 2.0])
    yield lambda x: x * sum(values) + len(values)
    values.appendleft(3.0)
    yield


@row
def defaultdict_item():
    table = collections.defaultdict(lambda: 2.0, {"a": 1.0})
    yield lambda x: x * table["a"]
    table["a"] = 4.0
    yield


@row
def ordered_dict_moved():
    table = collections.OrderedDict(a=1.0, b=2.0)
    yield lambda x: x * next(iter(table.values())) + len(next(reversed(table)))
    table.move_to_end("a")
    yield
    table["bb"] = 3.0
    table.move_to_end("bb", last=False)
    yield


@row
def counter_missing():
    count = collections.Counter("aab")
    yield lambda x: x * count["a"] + count["z"]
    count["a"] += 1
    yield
    count["z"] += 1
    yield
    del count["z"]
    yield


@row
def counter_most_common():
    count = collections.Counter("aab")
    yield lambda x: x * count.most_common(1)[0][1]
    count.update("bbbb")
    yield


@row
def chain_map_item():
    inner, outer = {}, {"a": 2.0}
    table = collections.ChainMap(inner, outer)
    yield lambda x: x * table["a"]
    outer["a"] = 3.0
    yield
    inner["a"] = 4.0
    yield
    del inner["a"]
    yield


@row
def user_dict_item():
    table = collections.UserDict(a=2.0)
    yield lambda x: x * table["a"] if "a" in table else x
    table["a"] = 3.0
    yield
    del table["a"]
    yield


@row
def user_list_item():
    values = collections.UserList([1.0, 2.0])
    yield lambda x: x * values[0] + len(values)
    values[0] = 3.0
    yield
    values.append(3.0)
    yield


@row
def mapping_proxy_item():
    table = {"a": 2.0}
    proxy = types.MappingProxyType(table)
    yield lambda x: x * proxy["a"]
    table["a"] = 3.0
    yield


@row
def mapping_proxy_iterated_and_asked():
    table = {"a": 2.0}
    proxy = types.MappingProxyType(table)
    yield lambda x: x * sum(proxy.values()) + len(proxy) if "z" not in proxy else x
    table["b"] = 3.0
    yield
    table["z"] = 0.0
    yield


@row
def array_of_bytes():
    data = bytearray(b"\x01\x02")
    yield lambda x: x * data[1] + len(data)
    data[1] = 5
    yield
    data.append(7)
    yield


@row
def named_tuple_field():
    point = Point(1.0, 2.0)
    yield lambda x: x * point.x + point[1]
    point = Point(1.0, 3.0)
    yield
    point = point._replace(x=0.0)
    yield


class Point(typing.NamedTuple):
    x: float
    y: float = 0.0


@row
def named_tuple_of_a_list():
    point = Point([1.0], 2.0)
    yield lambda x: x * point.x[0]
    point.x[0] = 4.0
    yield


# --- attributes of objects ------------------------------------------------------------------------


@row
def attribute():
    thing = Thing(rate=2.0)
    yield lambda x: x * thing.rate
    thing.rate = 3.0
    yield
    thing.rate = 2.0
    yield


@row
def attribute_of_a_nested_object():
    thing = Thing(inner=Thing(rate=2.0))
    yield lambda x: x * thing.inner.rate
    thing.inner.rate = 3.0
    yield
    thing.inner = Thing(rate=4.0)
    yield


@row
def attribute_in_slots():
    class Slotted:
        __slots__ = ("extra", "rate")

    thing = Slotted()
    thing.rate = 2.0
    yield lambda x: x * thing.rate
    thing.rate = 3.0
    yield
    del thing.rate
    yield
    thing.rate = 2.0
    yield


@row
def attribute_in_slots_is_absent():
    class Slotted:
        __slots__ = ("rate",)

    thing = Slotted()
    yield lambda x: x * getattr(thing, "rate", 2.0)
    thing.rate = 3.0
    yield
    del thing.rate
    yield


@row
def attribute_in_slots_of_a_base():
    class Base:
        __slots__ = ("rate",)

    class Derived(Base):
        pass

    thing = Derived()
    thing.rate, thing.more = 2.0, 1.0
    yield lambda x: x * thing.rate + thing.more
    thing.rate = 3.0
    yield
    thing.more = 4.0
    yield


@row
def namespace_attribute():
    space = types.SimpleNamespace(rate=2.0)
    yield lambda x: x * space.rate
    space.rate = 3.0
    yield
    del space.rate
    yield
    space.rate = 2.0
    yield


@row
def namespace_of_arguments():
    options = argparse.Namespace(rate=2.0, on=False)
    yield lambda x: x * options.rate if options.on else x
    options.on = True
    yield
    options.rate = 4.0
    yield


@row
def namespace_membership():
    options = argparse.Namespace(rate=2.0)
    yield lambda x: x * 2 if "more" in options else x
    options.more = 1
    yield


@row
def namespace_compared():
    one, two = types.SimpleNamespace(a=1.5), types.SimpleNamespace(a=1.5)
    yield lambda x: x * 2 if one == two else x
    two.a = 3.0
    yield


@row
def attribute_of_an_argument():
    thing = Thing(rate=2.0)
    yield (lambda x, thing: x * thing.rate), thing
    thing.rate = 3.0
    yield
    del thing.rate
    yield


@row
def attribute_of_an_object_in_an_argument():
    things = [Thing(rate=2.0)]
    yield (lambda x, things: x * things[0].rate), things
    things[0].rate = 3.0
    yield


@row
def attribute_of_an_argument_in_slots():
    class Slotted:
        __slots__ = ("rate",)

    thing = Slotted()
    thing.rate = 2.0
    yield (lambda x, thing: x * thing.rate), thing
    thing.rate = 3.0
    yield


@row
def attribute_of_a_tensor():
    weight = Weight(tg.ones(2))
    weight.rate = 2.0
    yield lambda x: x * weight * weight.rate
    weight.rate = 3.0
    yield
    weight.rate = 2.0
    yield


@row
def attribute_of_a_parameter_is_absent():
    weight = tg.nn.Parameter(tg.ones(2))
    yield lambda x: x * weight * getattr(weight, "_rate", 2.0)
    weight._rate = 3.0
    yield
    del weight._rate
    yield


@row
def attributes_of_a_tensor_that_is_copied():
    weight = tg.ones(2)
    yield lambda x: x * getattr(copy.deepcopy(weight), "rate", 2.0)
    weight.rate = 3.0
    yield


@row
def attribute_of_a_tensor_argument():
    weight = tg.ones(2)
    weight._rate = 2.0
    yield (lambda x, weight: x * weight * getattr(weight, "_rate", 5.0)), weight
    weight._rate = 3.0
    yield
    del weight._rate
    yield


@row
def attribute_of_a_subclass_of_tensors():
    class Weight(tg.nn.Parameter):
        rate = 2.0

    weight = Weight(tg.ones(2))
    yield lambda x: x * weight * weight.rate
    Weight.rate = 3.0
    yield
    weight.rate = 4.0
    yield


@row
def attribute_that_is_absent():
    thing = Thing()
    yield lambda x: x * thing.rate if hasattr(thing, "rate") else x
    thing.rate = 3.0
    yield
    del thing.rate
    yield


@row
def attribute_by_a_constant_name():
    thing = Thing(rate=2.0)
    yield lambda x: x * getattr(thing, "rate")  # noqa: B009
    thing.rate = 3.0
    yield


@row
def attribute_by_a_computed_name():
    thing, name = Thing(rate=2.0, slow=5.0), "rate"
    yield lambda x: x * getattr(thing, name.lower())
    thing.rate = 3.0
    yield
    name = "SLOW"
    yield
    thing.slow = 7.0
    yield


@row
def attribute_by_attrgetter():
    thing = Thing(inner=Thing(rate=2.0))
    read = operator.attrgetter("inner.rate")
    yield lambda x: x * read(thing)
    thing.inner.rate = 3.0
    yield


@row
def attribute_absent_by_try():
    thing = Thing()

    def function(x):
        try:
            return x * thing.rate
        except AttributeError:
            return x

    yield function
    thing.rate = 3.0
    yield
    del thing.rate
    yield


@row
def attributes_by_vars():
    thing = Thing(a=1.0, b=2.0)
    yield lambda x: x * sum(vars(thing).values())
    thing.c = 3.0
    yield
    thing.a = 0.0
    yield


@row
def attributes_by_dict():
    thing = Thing(a=1.0)
    yield lambda x: x * thing.__dict__["a"] + len(thing.__dict__)
    thing.a = 2.0
    yield
    thing.b = 2.0
    yield


@row
def attributes_by_dict_are_absent():
    thing = Thing(a=1.0)
    yield lambda x: x * thing.__dict__.get("b", 2.0) if "c" not in vars(thing) else x
    thing.b = 4.0
    yield
    thing.c = 0
    yield


@row
def attributes_by_dir():
    thing = Thing(rate_a=1.0)
    yield lambda x: x * sum(getattr(thing, name) for name in dir(thing) if name[:4] == "rate")
    thing.rate_b = 2.0
    yield
    thing.rate_a = 0.5
    yield


@row
def attributes_by_inspection_of_the_class():
    class Config:
        rate_a = 1.0

    yield lambda x: x * sum(v for k, v in vars(Config).items() if k.startswith("rate"))
    Config.rate_b = 2.0
    yield
    Config.rate_a = 0.5
    yield


@row
def attribute_by_a_getattribute_of_its_own():
    class Renamed:
        names: typing.ClassVar = {"speed": "rate"}

        def __init__(self):
            self.rate = 2.0

        def __getattribute__(self, key):
            names = super().__getattribute__("names")
            return super().__getattribute__(names.get(key, key))

    thing = Renamed()
    yield lambda x: x * thing.speed
    thing.rate = 3.0
    yield


@row
def attribute_by_object_getattribute():
    thing = Thing(rate=2.0)
    yield lambda x: x * object.__getattribute__(thing, "rate")
    thing.rate = 3.0
    yield


@row
def object_replaced():
    thing = Thing(rate=2.0)
    yield lambda x: x * thing.rate
    thing = Thing(rate=3.0)
    yield
    thing.rate = 4.0
    yield


@row
def identity_of_objects():
    one = two = Thing()
    yield lambda x: x * 2 if one is two else x
    two = Thing()
    yield
    one = two
    yield


@row
def identity_with_none():
    thing = Thing(cache=None)
    yield lambda x: x * 2 if thing.cache is None else x
    thing.cache = 0
    yield
    thing.cache = None
    yield


@row
def class_of_an_object():
    class Slow(Thing):
        pass

    thing = Thing()
    yield lambda x: x * 2 if isinstance(thing, Slow) else x
    thing.__class__ = Slow
    yield
    thing.__class__ = Thing
    yield


@row
def class_by_type():
    class Slow(Thing):
        pass

    thing = Thing()
    yield lambda x: x * 2 if type(thing) is Slow else x
    thing.__class__ = Slow
    yield


@row
def class_by_class_attribute():
    class Slow(Thing):
        pass

    thing = Thing()
    yield lambda x: x * len(thing.__class__.__name__)
    thing.__class__ = Slow
    yield


@row
def class_name():
    class Slow(Thing):
        pass

    yield lambda x: x * len(Slow.__name__)
    Slow.__name__ = "Slower"
    yield


@row
def class_bases():
    class Base:
        rate = 2.0

    class Other:
        rate = 3.0

    class Derived(Base):
        pass

    thing = Derived()
    yield lambda x: x * thing.rate
    Derived.__bases__ = (Other,)
    yield
    Derived.__bases__ = (Base,)
    yield


@row
def class_bases_by_issubclass():
    class Base:
        pass

    class Other(Base):
        pass

    class Derived(Base):
        pass

    yield lambda x: x * 2 if issubclass(Derived, Other) else x
    Derived.__bases__ = (Other,)
    yield


@row
def class_registered_as_abstract():
    class Drawable(abc.ABC):  # noqa: B024
        pass

    class Shape:
        pass

    shape = Shape()
    yield lambda x: x * 2 if isinstance(shape, Drawable) else x
    Drawable.register(Shape)
    yield


@row
def class_by_match():
    class Slow(Thing):
        pass

    thing = Thing(rate=2.0)

    def function(x):
        match thing:
            case Slow():
                return x * 5
            case Thing(rate=2.0):
                return x * 2
            case _:
                return x

    yield function
    thing.rate = 3.0
    yield
    thing.__class__ = Slow
    yield


@row
def object_methods_of_match():
    point = Point(1.0, 2.0)

    def function(x):
        match point:
            case Point(x=1.0, y=y):
                return x * y
            case (_, y):
                return x + y

    yield function
    point = Point(1.0, 4.0)
    yield
    point = Point(0.0, 4.0)
    yield


@row
def mapping_by_match():
    table = {"kind": "scale", "by": 2.0}

    def function(x):
        match table:
            case {"kind": "scale", "by": by}:
                return x * by
            case {"kind": "shift", **rest}:
                return x + len(rest)
            case _:
                return x

    yield function
    table["by"] = 3.0
    yield
    table["kind"] = "shift"
    yield
    table["more"] = 0
    yield
    table.clear()
    yield


@row
def sequence_by_match():
    values = [1.0, 2.0]

    def function(x):
        match values:
            case [one]:
                return x * one
            case [one, *rest]:
                return x * one + sum(rest)

    yield function
    values[1] = 5.0
    yield
    values.pop()
    yield


@row
def value_by_match():
    mode = "scale"

    def function(x):
        match mode:
            case "scale" | "zoom":
                return x * 2
            case Color.RED:
                return x * 3
            case _:
                return x

    yield function
    mode = Color.RED
    yield
    mode = "none"
    yield


# --- attributes of classes ------------------------------------------------------------------------


@row
def class_attribute():
    class Config:
        rate = 2.0

    yield lambda x: x * Config.rate
    Config.rate = 3.0
    yield
    Config.rate = 2.0
    yield


@row
def class_attribute_of_an_instance():
    class Config:
        rate = 2.0

    config = Config()
    yield lambda x: x * config.rate
    Config.rate = 3.0
    yield
    config.rate = 4.0
    yield
    del config.rate
    yield


@row
def class_attribute_of_a_subclass():
    class Base:
        rate = 2.0

    class Derived(Base):
        pass

    yield lambda x: x * Derived.rate
    Base.rate = 3.0
    yield
    Derived.rate = 4.0
    yield
    del Derived.rate
    yield


@row
def class_attribute_shadowed_in_the_middle():
    class Base:
        rate = 2.0

    class Middle(Base):
        pass

    class Derived(Middle):
        pass

    thing = Derived()
    yield lambda x: x * thing.rate
    Middle.rate = 3.0
    yield
    thing.rate = 4.0
    yield
    del thing.rate
    yield
    del Middle.rate
    yield


@row
def class_attribute_of_a_new_object():
    class Config:
        rate = 2.0

    yield lambda x: x * Config().rate
    Config.rate = 3.0
    yield


@row
def class_attribute_is_absent():
    class Config:
        pass

    yield lambda x: x * getattr(Config, "rate", 2.0)
    Config.rate = 3.0
    yield
    del Config.rate
    yield


@row
def class_attribute_of_a_metaclass():
    class Meta(type):
        rate = 2.0

    class Config(metaclass=Meta):
        pass

    yield lambda x: x * Config.rate
    Meta.rate = 3.0
    yield
    Config.rate = 4.0
    yield


@row
def class_property_of_a_metaclass():
    class Meta(type):
        @property
        def rate(cls):
            return cls._rate * 2

    class Config(metaclass=Meta):
        _rate = 1.0

    yield lambda x: x * Config.rate
    Config._rate = 2.0
    yield


@row
def class_item_of_a_metaclass():
    class Meta(type):
        def __getitem__(cls, name):
            return cls.table[name]

        def __len__(cls):
            return len(cls.table)

    class Registry(metaclass=Meta):
        table = {"a": 2.0}  # noqa: RUF012

    yield lambda x: x * Registry["a"] + len(Registry)
    Registry.table["a"] = 3.0
    yield
    Registry.table["b"] = 3.0
    yield


@row
def class_item():
    class Registry:
        rate = 2.0

        def __class_getitem__(cls, name):
            return getattr(cls, name)

    yield lambda x: x * Registry["rate"]
    Registry.rate = 3.0
    yield


@row
def class_list_shared_by_instances():
    class Config:
        values = [1.0]  # noqa: RUF012

    config = Config()
    yield lambda x: x * sum(config.values)
    Config.values.append(2.0)
    yield
    config.values = [9.0]
    yield


@row
def class_annotations():
    class Config:
        rate: float

    yield lambda x: x * len(Config.__annotations__)
    Config.__annotations__["more"] = int
    yield


@row
def enum_member_value():
    class Mode(enum.Enum):
        FAST = 2.0
        SLOW = 3.0

    mode = Mode.FAST
    yield lambda x: x * mode.value + len(mode.name)
    mode = Mode.SLOW
    yield
    mode = Mode.FAST
    yield


@row
def enum_member_with_attributes():
    Color.RED.rate = 2.0
    yield lambda x: x * Color.RED.rate
    Color.RED.rate = 3.0
    yield
    del Color.RED.rate


@row
def enum_flags():
    class Flags(enum.Flag):
        A = enum.auto()
        B = enum.auto()

    flags = Flags.A
    yield lambda x: x * 2 if Flags.B in flags else x
    flags = Flags.A | Flags.B
    yield


# --- methods --------------------------------------------------------------------------------------


class Scaler:
    def __init__(self, rate=2.0):
        self.rate = rate

    def scaled(self, x):
        return x * self.rate


@row
def method_reads_an_attribute():
    scaler = Scaler()
    yield lambda x: scaler.scaled(x)
    scaler.rate = 3.0
    yield


@row
def method_replaced_on_the_class():
    class Local(Scaler):
        def scaled(self, x):
            return x + 1

    scaler = Local()
    yield lambda x: scaler.scaled(x)
    Local.scaled = lambda self, x: x - self.rate
    yield
    scaler.rate = 7.0
    yield
    del Local.scaled
    yield


@row
def method_replaced_on_the_instance():
    scaler = Scaler()
    yield lambda x: scaler.scaled(x)
    scaler.scaled = lambda x: x - 1
    yield
    del scaler.scaled
    yield


@row
def method_replaced_by_one_bound_to_another():
    scaler, other = Scaler(), Scaler(5.0)
    yield lambda x: scaler.scaled(x)
    scaler.scaled = other.scaled
    yield
    other.rate = 6.0
    yield


@row
def method_that_was_bound_before():
    scaler = Scaler()
    scaled = scaler.scaled
    yield lambda x: scaled(x)
    scaler.rate = 3.0
    yield
    scaled = Scaler(5.0).scaled
    yield


@row
def method_compiled_itself():
    scaler = Scaler()
    yield scaler.scaled
    scaler.rate = 3.0
    yield


@row
def method_inherited_and_overridden():
    class Local(Scaler):
        pass

    scaler = Local()
    yield lambda x: scaler.scaled(x)
    Local.scaled = lambda self, x: x
    yield
    del Local.scaled
    yield


@row
def method_by_super():
    class Base:
        def scaled(self, x):
            return x * self.rate

    class Local(Base):
        rate = 2.0

        def scaled(self, x):
            return super().scaled(x) + 1

    local = Local()
    yield lambda x: local.scaled(x)
    Local.rate = 3.0
    yield
    Base.scaled = lambda self, x: x
    yield


@row
def static_and_class_methods():
    class Local:
        rate = 2.0

        @staticmethod
        def plain(x):
            return x * 3

        @classmethod
        def scaled(cls, x):
            return cls.plain(x) * cls.rate

    local = Local()
    yield lambda x: local.scaled(x)
    Local.rate = 4.0
    yield
    Local.plain = staticmethod(lambda x: x)
    yield
    Local.scaled = classmethod(lambda cls, x: x + cls.rate)
    yield


@row
def constructor_replaced():
    class Local:
        def __init__(self):
            self.rate = 2.0

    def slower(self):
        self.rate = 3.0

    yield lambda x: x * Local().rate
    Local.__init__ = slower
    yield


@row
def call_method_replaced():
    class Local:
        def __call__(self, x):
            return x * 2

    local = Local()
    yield lambda x: local(x)
    Local.__call__ = lambda self, x: x * 3
    yield


@row
def call_method_reads_an_attribute():
    class Local:
        rate = 2.0

        def __call__(self, x):
            return x * self.rate

    local = Local()
    yield local
    Local.rate = 3.0
    yield
    local.rate = 4.0
    yield


@row
def item_method():
    class Table:
        def __init__(self):
            self.values = {"a": 2.0}

        def __getitem__(self, name):
            return self.values[name]

    table = Table()
    yield lambda x: x * table["a"]
    table.values["a"] = 3.0
    yield
    Table.__getitem__ = lambda self, name: 7.0
    yield


@row
def length_method():
    class Table:
        size = 2

        def __len__(self):
            return self.size

    table = Table()
    yield lambda x: x * len(table)
    table.size = 3
    yield
    Table.__len__ = lambda self: 9
    yield


@row
def truth_method():
    class Switch:
        on = True

        def __bool__(self):
            return self.on

    switch = Switch()
    yield lambda x: x * 2 if switch else x
    switch.on = False
    yield
    Switch.__bool__ = lambda self: True
    yield


@row
def truth_by_length():
    class Table:
        size = 0

        def __len__(self):
            return self.size

    table = Table()
    yield lambda x: x * 2 if not table else x
    table.size = 3
    yield
    Table.__bool__ = lambda self: False
    yield


@row
def truth_without_a_method():
    class Plain:
        pass

    plain = Plain()
    yield lambda x: x * 2 if plain else x
    Plain.__bool__ = lambda self: False
    yield
    del Plain.__bool__
    yield


@row
def truth_by_bool_and_not():
    class Switch:
        on = True

        def __bool__(self):
            return self.on

    switch = Switch()
    yield lambda x: x * bool(switch) + (not switch)
    switch.on = False
    yield


@row
def membership_method():
    class Table:
        limit = 2

        def __contains__(self, item):
            return item < self.limit

    table = Table()
    yield lambda x: x * 2 if 3 in table else x
    table.limit = 5
    yield
    Table.__contains__ = lambda self, item: False
    yield


@row
def iteration_method():
    class Table:
        def __init__(self):
            self.values = [1.0]

        def __iter__(self):
            yield from self.values

    table = Table()

    def function(x):
        for value in table:
            x = x * value + value
        return x

    yield function
    table.values.append(3.0)
    yield
    Table.__iter__ = lambda self: iter([5.0])
    yield


@row
def iteration_by_a_comprehension_of_a_method():
    class Table:
        rate = 1.0

        def __iter__(self):
            return iter((self.rate, 2.0))

    table = Table()
    yield lambda x: x * sum(value for value in table) + max(table) + len(list(table))
    table.rate = 3.0
    yield


@row
def iteration_by_items():
    class Table:
        size = 2

        def __getitem__(self, at):
            if at >= self.size:
                raise IndexError(at)
            return at + 1.0

    table = Table()
    yield lambda x: sum((x * value for value in table), x)
    table.size = 3
    yield


@row
def equality_method():
    class Version:
        number = 2

        def __eq__(self, other):
            return self.number == other

        __hash__ = object.__hash__

    version = Version()
    yield lambda x: x * 2 if version == 2 else x
    version.number = 3
    yield
    Version.__eq__ = lambda self, other: True
    yield


@row
def order_method():
    class Version:
        def __init__(self, number):
            self.number = number

        def __lt__(self, other):
            return self.number < other.number

    one, two = Version(1), Version(2)
    yield lambda x: x * 2 if one < two else x
    two.number = 0
    yield


@row
def operator_methods():
    class Vector:
        def __init__(self, value):
            self.value = value

        def __add__(self, other):
            return self.value + other

        def __rmul__(self, other):
            return other * self.value

        def __neg__(self):
            return -self.value

    vector = Vector(2.0)
    yield lambda x: x + (vector + 1.0) + 2.0 * vector + -vector
    vector.value = 3.0
    yield
    Vector.__add__ = lambda self, other: 0.0
    yield


@row
def operator_method_added_later():
    class Base:
        pass

    base = Base()

    def function(x):
        try:
            return x * (base + 1)
        except TypeError:
            return x

    yield function
    Base.__add__ = lambda self, other: 5.0
    yield
    del Base.__add__
    yield


@row
def context_manager_methods():
    class Scaled:
        rate = 2.0

        def __enter__(self):
            return self.rate

        def __exit__(self, *error):
            return False

    scaled = Scaled()

    def function(x):
        with scaled as rate:
            return x * rate

    yield function
    scaled.rate = 3.0
    yield
    Scaled.__enter__ = lambda self: 7.0
    yield


@row
def context_manager_of_a_generator():
    table = {"rate": 2.0}

    @contextlib.contextmanager
    def scaled():
        yield table["rate"]

    def function(x):
        with scaled() as rate:
            return x * rate

    yield function
    table["rate"] = 3.0
    yield


@row
def context_manager_that_swallows():
    class Quiet:
        quiet = True

        def __enter__(self):
            return self

        def __exit__(self, *error):
            return self.quiet

    quiet = Quiet()

    def function(x):
        with quiet:
            raise KeyError("inside")
        return x * 2

    yield function
    quiet.quiet = False
    yield


@row
def format_method():
    class Version:
        number = 2

        def __format__(self, spec):
            return f"{self.number}{spec}"

        def __str__(self):
            return f"v{self.number}"

    version = Version()
    yield lambda x: x * len(f"{version:abc}") if f"{version!s}" == "v2" else x
    version.number = 33
    yield
    Version.__str__ = lambda self: "v2"
    yield


@row
def text_of_a_list():
    values = [1, 2]
    yield lambda x: x * len(f"{values}") + len(str(values)) + len(repr(values))
    values.append(300)
    yield


@row
def text_by_percent_and_format():
    values = {"a": 1}
    yield lambda x: x * len("%(a)s" % values) + len("{a}".format(**values))  # noqa: UP031
    values["a"] = 1000
    yield


@row
def text_by_a_template():
    values = {"a": 1}
    template = string.Template("$a")
    yield lambda x: x * len(template.substitute(values))
    values["a"] = 1000
    yield


@row
def index_and_number_methods():
    class Number:
        value = 1

        def __index__(self):
            return self.value

        def __float__(self):
            return self.value + 0.5

    number, values = Number(), [1.0, 2.0, 3.0]
    yield lambda x: x * values[number] + float(number) + int(number)
    number.value = 2
    yield


@row
def hash_method():
    class Key:
        value = 1

        def __hash__(self):
            return hash(self.value)

        def __eq__(self, other):
            return isinstance(other, Key) and self.value == other.value

    key, table = Key(), {}
    table[Key()] = 2.0
    yield lambda x: x * table.get(key, 5.0)
    key.value = 2
    yield
    key.value = 1
    yield


@row
def missing_method_of_a_dict():
    class Table(dict):
        rate = 2.0

        def __missing__(self, key):
            return self.rate

    table = Table()
    yield lambda x: x * table["a"]
    table.rate = 3.0
    yield
    table["a"] = 7.0
    yield


@row
def item_method_of_a_dict():
    class Table(dict):
        rate = 2.0

        def __getitem__(self, key):
            return super().__getitem__(key) * self.rate

    table = Table(a=1.0)
    yield lambda x: x * table["a"]
    table.rate = 3.0
    yield
    table["a"] = 7.0
    yield


@row
def item_method_of_a_list():
    class Values(list):
        offset = 0

        def __getitem__(self, at):
            return super().__getitem__(at + self.offset)

    values = Values([1.0, 2.0])
    yield lambda x: x * values[0]
    values.offset = 1
    yield
    values[1] = 7.0
    yield


@row
def attributes_of_a_list_and_a_dict():
    class Values(list):
        pass

    class Table(dict):
        pass

    values, table = Values([1.0]), Table()
    values.rate = table.rate = 2.0
    yield lambda x: x * values.rate + table.rate
    values.rate = 3.0
    yield
    table.rate = 3.0
    yield


@row
def attribute_of_a_number():
    class Meters(float):
        unit = 1.0

    length = Meters(2.0)
    length.more = 1.0
    yield lambda x: x * length.unit + length.more
    Meters.unit = 3.0
    yield
    length.more = 5.0
    yield


@row
def attribute_of_a_text():
    class Name(str):
        __slots__ = ("size",)

    name = Name("abc")
    name.size = 2.0
    yield lambda x: x * name.size
    name.size = 5.0
    yield


# --- descriptors, properties, dynamic attributes --------------------------------------------------


@row
def property_reads_an_attribute():
    class Config:
        def __init__(self):
            self._rate = 2.0

        @property
        def rate(self):
            return self._rate * 2

    config = Config()
    yield lambda x: x * config.rate
    config._rate = 3.0
    yield
    Config.rate = property(lambda self: 1.0)
    yield


@row
def cached_property_is_there():
    class Config:
        base = 2.0

        @functools.cached_property
        def rate(self):
            return self.base * 2

    config = Config()
    config.rate  # noqa: B018
    yield lambda x: x * config.rate
    config.rate = 3.0
    yield
    del config.rate
    config.base = 7.0
    config.rate  # noqa: B018
    yield


@row
def descriptor_reads_the_instance():
    class Field:
        def __init__(self, name):
            self.name, self.scale = name, 1.0

        def __get__(self, instance, owner=None):
            return instance.held[self.name] * self.scale

        def __set__(self, instance, value):
            instance.held[self.name] = value

    class Config:
        rate = Field("rate")

        def __init__(self):
            self.held = {"rate": 2.0}

    config = Config()
    yield lambda x: x * config.rate
    config.rate = 3.0
    yield
    vars(Config)["rate"].scale = 2.0
    yield
    vars(Config)["rate"].name = "other"
    config.held["other"] = 9.0
    yield


@row
def descriptor_without_set():
    class Field:
        scale = 2.0

        def __get__(self, instance, owner=None):
            return self.scale

    class Config:
        rate = Field()

    config = Config()
    yield lambda x: x * config.rate
    vars(Config)["rate"].scale = 3.0
    yield
    config.__dict__["rate"] = 5.0
    yield


@row
def descriptor_of_the_class():
    class Field:
        scale = 2.0

        def __get__(self, instance, owner=None):
            return self.scale if instance is None else 0.0

    class Config:
        rate = Field()

    yield lambda x: x * Config.rate
    Field.scale = 3.0
    yield
    Field.__get__ = lambda self, instance, owner=None: 9.0
    yield


@row
def getattr_method():
    class Config:
        def __init__(self):
            self.held = {"rate": 2.0}

        def __getattr__(self, name):
            try:
                return self.held[name]
            except KeyError:
                raise AttributeError(name) from None

    config = Config()
    yield lambda x: x * config.rate
    config.held["rate"] = 3.0
    yield
    config.rate = 4.0
    yield
    del config.rate
    yield
    del config.held["rate"]
    yield


@row
def getattr_method_that_raises_other_errors():
    class Config:
        rate = 2.0

        def __getattr__(self, name):
            raise RuntimeError(f"no {name} here")

    config = Config()
    yield lambda x: x * config.rate
    config.rate = 3.0
    yield
    Config.rate = 4.0
    del config.rate
    yield


@row
def getattr_method_of_an_argument_that_raises():
    class Config:
        def __init__(self):
            self.held = [2.0]

        def __getattr__(self, name):
            raise KeyError(name)

    config = Config()
    yield (lambda x, config: x * config.held[0] if config else x), config
    config.held[0] = 3.0
    yield


@row
def getattribute_method():
    class Config:
        def __init__(self):
            object.__setattr__(self, "held", {"rate": 2.0})

        def __getattribute__(self, name):
            return object.__getattribute__(self, "held")[name]

    config = Config()
    yield lambda x: x * config.rate
    object.__getattribute__(config, "held")["rate"] = 3.0
    yield


@row
def getattr_method_added_later():
    class Config:
        pass

    config = Config()
    yield lambda x: x * getattr(config, "rate", 2.0)
    Config.__getattr__ = lambda self, name: 5.0
    yield
    del Config.__getattr__
    yield


@row
def getattr_of_a_module():
    module = types.ModuleType("lazy")
    module.held = {"rate": 2.0}
    exec("def __getattr__(name):\n    return held[name]", module.__dict__)
    yield lambda x: x * module.rate
    module.held["rate"] = 3.0
    yield
    module.rate = 4.0
    yield


# --- functions ------------------------------------------------------------------------------------


@row
def function_defaults():
    def scaled(x, rate=2.0):
        return x * rate

    yield lambda x: scaled(x)
    scaled.__defaults__ = (3.0,)
    yield
    scaled.__defaults__ = None
    yield
    scaled.__defaults__ = (2.0,)
    yield


@row
def function_keyword_defaults():
    def scaled(x, *, rate=2.0):
        return x * rate

    yield lambda x: scaled(x)
    scaled.__kwdefaults__["rate"] = 3.0
    yield
    scaled.__kwdefaults__ = {"rate": 4.0}
    yield


@row
def function_mutable_default():
    def scaled(x, rates=[2.0]):  # noqa: B006
        return x * rates[0]

    yield lambda x: scaled(x)
    scaled.__defaults__[0][0] = 3.0
    yield


@row
def function_mutable_keyword_default():
    def scaled(x, *, rates={"a": 2.0}):  # noqa: B006
        return x * rates["a"]

    yield lambda x: scaled(x)
    scaled.__kwdefaults__["rates"]["a"] = 3.0
    yield


@row
def function_compiled_with_a_mutable_default():
    def scaled(x, rates=[2.0], *, more={"a": 1.0}):  # noqa: B006
        return x * rates[0] + more["a"]

    yield scaled
    scaled.__defaults__[0][0] = 3.0
    yield
    scaled.__kwdefaults__["more"]["a"] = 3.0
    yield
    scaled.__defaults__ = ([5.0],)
    yield


@row
def function_code():
    def scaled(x):
        return x * 2

    def other(x):
        return x * 3

    yield lambda x: scaled(x)
    scaled.__code__ = other.__code__
    yield


@row
def function_code_of_the_compiled_one():
    def scaled(x):
        return x * 2

    def other(x):
        return x * 3

    yield scaled
    scaled.__code__ = other.__code__
    yield


@row
def function_attribute():
    def scaled(x):
        return x * scaled.rate

    scaled.rate = 2.0
    yield scaled
    scaled.rate = 3.0
    yield
    del scaled.rate
    yield


@row
def function_attribute_is_absent():
    def scaled(x):
        return x * getattr(scaled, "rate", 2.0)

    yield scaled
    scaled.rate = 3.0
    yield


@row
def function_name_and_text():
    def scaled(x):
        """Scale."""
        return x

    yield lambda x: x * len(scaled.__name__) + len(scaled.__doc__)
    scaled.__name__ = "other_name"
    yield
    scaled.__doc__ = "Another."
    yield


@row
def function_replaced_in_a_table():
    table = {"act": lambda x: x * 2}
    yield lambda x: table["act"](x)
    table["act"] = lambda x: x * 3
    yield


@row
def function_that_a_function_returns():
    def make(rate):
        return lambda x: x * rate

    scaled = make(2.0)
    yield lambda x: scaled(x)
    scaled = make(3.0)
    yield


@row
def closure_variable():
    rate = 2.0
    yield lambda x: x * rate
    rate = 3.0
    yield
    rate = 2
    yield


@row
def closure_variable_deleted():
    rate = 2.0

    def function(x):
        try:
            return x * rate
        except NameError:
            return x

    yield function
    del rate
    yield
    rate = 3.0
    yield


@row
def closure_of_a_nested_function():
    rate, more = 2.0, 1.0

    def outer(x):
        def inner(y):
            return y * rate

        return inner(x) + more

    yield outer
    rate = 3.0
    yield
    more = 5.0
    yield


@row
def closure_shared_with_a_setter():
    def make():
        rate = 2.0

        def put(value):
            nonlocal rate
            rate = value

        return put, lambda x: x * rate

    put, function = make()
    yield function
    put(3.0)
    yield
    put(2.0)
    yield


@row
def closure_cell_written():
    rate = 2.0

    def function(x):
        return x * rate

    yield function
    function.__closure__[0].cell_contents = 3.0
    yield


@row
def closure_read_by_a_lambda_in_a_comprehension():
    rates = [1.0, 2.0]
    offset = 1.0
    yield lambda x: sum(f(x) for f in [lambda y, r=r: y * r + offset for r in rates])
    offset = 2.0
    yield
    rates.append(4.0)
    yield


@row
def function_by_partial():
    def scaled(x, rate, shift=0.0):
        return x * rate + shift

    bound = functools.partial(scaled, rate=2.0)
    yield lambda x: bound(x)
    bound.keywords["rate"] = 3.0
    yield
    bound = functools.partial(scaled, rate=4.0, shift=1.0)
    yield


@row
def function_by_partial_of_an_object():
    table = {"rate": 2.0}
    bound = functools.partial(lambda table, x: x * table["rate"], table)
    yield bound
    table["rate"] = 3.0
    yield


@row
def function_by_partialmethod():
    class Local:
        rate = 2.0

        def power(self, x, by):
            return x * self.rate + by

        once = functools.partialmethod(power, by=1.0)

    local = Local()
    yield lambda x: local.once(x)
    local.rate = 3.0
    yield


@row
def function_that_is_wrapped():
    table = {"rate": 2.0}

    def doubling(function):
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            return function(*args, **kwargs) * table["rate"]

        return wrapper

    @doubling
    def shifted(x):
        return x + table.get("shift", 0.0)

    yield shifted
    table["rate"] = 3.0
    yield
    table["shift"] = 3.0
    yield


@row
def function_that_is_cached():
    table = {"rate": 2.0}

    @functools.lru_cache
    def rate(name):
        return table[name]

    rate("rate")
    yield lambda x: x * rate("rate")
    table["rate"] = 3.0
    yield
    rate.cache_clear()
    yield


@row
def method_that_is_cached():
    class Config:
        def __init__(self):
            self.held = {"rate": 2.0}

        @functools.lru_cache  # noqa: B019
        def rate(self, name, *, times=1):
            return self.held[name] * times

    config = Config()
    config.rate("rate", times=2)
    yield lambda x: x * config.rate("rate", times=2)
    config.held["rate"] = 3.0
    yield
    Config.rate.cache_clear()
    yield


@row
def function_that_is_cached_given_what_is_made_inside():
    table = {"rate": 2.0}

    @functools.lru_cache
    def scaled(x):
        return x * table["rate"]

    yield lambda x: scaled(x + 1)
    table["rate"] = 3.0
    yield


@row
def function_by_single_dispatch():
    @functools.singledispatch
    def rate(value):
        return 2.0

    yield lambda x: x * rate(1) + rate("a")
    rate.register(int, lambda value: 3.0)
    yield
    rate.register(str, lambda value: 4.0)
    yield


@row
def function_called_back_by_the_library():
    rate = 2.0
    yield lambda x: tg.grad(lambda y: (y * y * rate).sum())(x)
    rate = 3.0
    yield


@row
def function_called_back_by_reduce():
    rate, values = 2.0, [1.0, 2.0]
    yield lambda x: x * functools.reduce(lambda a, b: a + b * rate, values)
    rate = 3.0
    yield
    values.append(1.0)
    yield


@row
def function_called_back_by_sort():
    table = {"a": 1, "b": 2}
    yield lambda x: x * len(sorted(["aaa", "b"], key=lambda name: table[name[0]])[0])
    table["a"] = 3
    yield


@row
def function_called_back_by_accumulate():
    table, values = {"rate": 2.0}, [1.0, 2.0]
    yield lambda x: x * list(itertools.accumulate(values, lambda a, b: a * table["rate"] + b))[-1]
    table["rate"] = 3.0
    yield
    values[0] = 5.0
    yield


@row
def function_called_back_by_value_and_grad():
    table = {"rate": 2.0}
    yield lambda x: tg.value_and_grad(lambda y: (y * y * table["rate"]).sum())(x)
    table["rate"] = 3.0
    yield


@row
def function_keywords():
    options = {"rate": 2.0}

    def scaled(x, **kwargs):
        return x * sum(kwargs.values()) + len(kwargs)

    yield lambda x: scaled(x, **options)
    options["rate"] = 3.0
    yield
    options["more"] = 1.0
    yield


@row
def function_generator():
    table = {"rate": 2.0, "n": 2}

    def rates():
        for at in range(table["n"]):
            yield at * table["rate"]

    yield lambda x: x * sum(rates())
    table["rate"] = 3.0
    yield
    table["n"] = 4
    yield


@row
def function_generator_delegating():
    values = [1.0, 2.0]

    def inner():
        yield from values

    def outer():
        yield from inner()
        yield len(values)

    yield lambda x: x * sum(outer())
    values.append(3.0)
    yield


@row
def function_by_its_class():
    scaled = Scaler()
    yield lambda x: Scaler.scaled(scaled, x)
    scaled.rate = 3.0
    yield


@row
def function_by_methodcaller():
    scaler = Scaler()
    call = operator.methodcaller("scaled", tg.ones(2))
    yield lambda x: x + call(scaler)
    scaler.rate = 3.0
    yield


@row
def function_by_itemgetter():
    table = {"a": 2.0, "b": 3.0}
    read = operator.itemgetter("a", "b")
    yield lambda x: x * sum(read(table))
    table["b"] = 4.0
    yield


@row
def function_found_in_globals_by_name():
    registry = Thing(first=lambda x: x * 2, second=lambda x: x * 3)
    name = "first"
    yield lambda x: getattr(registry, name)(x)
    name = "second"
    yield


# --- globals, builtins, modules -------------------------------------------------------------------

RATE = 2.0
LIST = [1.0, 2.0]


@row
def global_variable():
    global RATE
    yield lambda x: x * RATE
    RATE = 3.0
    yield
    RATE = 2.0
    yield


@row
def global_list():
    yield lambda x: x * sum(LIST)
    LIST.append(3.0)
    yield
    LIST.pop()
    yield


@row
def global_in_a_helper():
    global RATE
    yield lambda x: _helper(x)
    RATE = 3.0
    yield
    RATE = 2.0
    yield


def _helper(x):
    return _inner(x) + 1


def _inner(x):
    return x * RATE


@row
def global_helper_replaced():
    global _inner
    before = _inner
    yield lambda x: _helper(x)
    _inner = lambda x: x * 7  # noqa: E731
    yield
    _inner = before
    yield


@row
def global_that_is_absent():
    def function(x):
        try:
            return x * NOT_THERE_YET
        except NameError:
            return x

    yield function
    globals()["NOT_THERE_YET"] = 3.0
    yield
    del globals()["NOT_THERE_YET"]
    yield


@row
def global_that_is_absent_in_a_nested_function():
    def function(x):
        def inner():
            return x * NOT_THERE_YET  # noqa: F821

        try:
            return inner()
        except NameError:
            return x

    yield function
    globals()["NOT_THERE_YET"] = 3.0
    yield
    del globals()["NOT_THERE_YET"]
    yield


@row
def global_by_name():
    global RATE
    yield lambda x: x * globals()["RATE"]
    RATE = 3.0
    yield
    RATE = 2.0
    yield


@row
def global_membership():
    yield lambda x: x * 2 if "NOT_THERE_YET" in globals() else x
    globals()["NOT_THERE_YET"] = 3.0
    yield
    del globals()["NOT_THERE_YET"]
    yield


@row
def global_shadows_a_builtin():
    yield lambda x: x * len([1, 2])
    globals()["len"] = lambda values: 7
    yield
    del globals()["len"]
    yield


@row
def builtin_replaced():
    before = builtins.abs
    yield lambda x: x * abs(-2)
    builtins.abs = lambda value: 7
    yield
    builtins.abs = before
    yield


@row
def builtin_added():
    def function(x):
        try:
            return x * NOT_BUILT_IN
        except NameError:
            return x

    yield function
    builtins.NOT_BUILT_IN = 3.0
    yield
    del builtins.NOT_BUILT_IN
    yield


def _module(name, **attributes):
    module = types.ModuleType(name)
    vars(module).update(attributes)
    return module


@row
def module_attribute():
    settings = _module("settings", rate=2.0)
    yield lambda x: x * settings.rate
    settings.rate = 3.0
    yield
    del settings.rate
    yield
    settings.rate = 2.0
    yield


@row
def module_attribute_of_a_package():
    package = _module("package", inner=_module("package.inner", rate=2.0))
    yield lambda x: x * package.inner.rate
    package.inner.rate = 3.0
    yield
    package.inner = _module("package.other", rate=4.0)
    yield


@row
def module_function():
    settings = _module("settings")
    exec("rate = 2.0\ndef scaled(x):\n    return x * rate", vars(settings))
    yield lambda x: settings.scaled(x)
    settings.rate = 3.0
    yield
    settings.scaled = lambda x: x
    yield


@row
def module_attributes_by_vars():
    settings = _module("settings", rate=2.0)
    yield lambda x: x * vars(settings)["rate"]
    settings.rate = 3.0
    yield


@row
def module_imported_inside():
    settings = _module("_settings_of_rows", rate=2.0)
    sys.modules["_settings_of_rows"] = settings

    def function(x):
        from _settings_of_rows import rate

        return x * rate

    yield function
    settings.rate = 3.0
    yield
    del sys.modules["_settings_of_rows"]


@row
def module_imported_whole_inside():
    settings = _module("_settings_of_rows", rate=2.0)
    sys.modules["_settings_of_rows"] = settings

    def function(x):
        import _settings_of_rows as s

        return x * s.rate

    yield function
    settings.rate = 3.0
    yield
    sys.modules["_settings_of_rows"] = _module("_settings_of_rows", rate=5.0)
    yield
    del sys.modules["_settings_of_rows"]


@row
def module_membership_of_sys_modules():
    yield lambda x: x * 2 if "_settings_of_rows" in sys.modules else x
    sys.modules["_settings_of_rows"] = _module("_settings_of_rows")
    yield
    del sys.modules["_settings_of_rows"]
    yield


@row
def environment_variable():
    os.environ["TGRAPH_ROW"] = "2"
    yield lambda x: x * float(os.environ["TGRAPH_ROW"])
    os.environ["TGRAPH_ROW"] = "3"
    yield
    del os.environ["TGRAPH_ROW"]
    yield


@row
def environment_variable_by_getenv():
    yield lambda x: x * float(os.getenv("TGRAPH_ROW", "2"))
    os.environ["TGRAPH_ROW"] = "3"
    yield
    del os.environ["TGRAPH_ROW"]
    yield


@row
def environment_variable_by_get_and_in():
    yield (
        lambda x: x * float(os.environ.get("TGRAPH_ROW", 2)) if "TGRAPH_B" not in os.environ else x
    )
    os.environ["TGRAPH_ROW"] = "3"
    yield
    os.environ["TGRAPH_B"] = ""
    yield
    del os.environ["TGRAPH_ROW"], os.environ["TGRAPH_B"]
    yield


@row
def environment_iterated():
    yield lambda x: x * len([name for name in os.environ if name.startswith("TGRAPH_ROW")])
    os.environ["TGRAPH_ROW"] = "3"
    yield
    del os.environ["TGRAPH_ROW"]
    yield


@row
def context_variable():
    rate = contextvars.ContextVar("rate", default=2.0)
    yield lambda x: x * rate.get()
    token = rate.set(3.0)
    yield
    rate.reset(token)
    yield


@row
def context_variable_without_a_default():
    rate = contextvars.ContextVar("rate")
    yield lambda x: x * rate.get(2.0)
    rate.set(3.0)
    yield


@row
def thread_local_attribute():
    local = threading.local()
    local.rate = 2.0
    yield lambda x: x * local.rate
    local.rate = 3.0
    yield
    del local.rate
    yield


@row
def weak_reference():
    thing = Thing(rate=2.0)
    reference = weakref.ref(thing)
    yield lambda x: x * reference().rate
    thing.rate = 3.0
    yield
    thing = Thing(rate=4.0)
    reference = weakref.ref(thing)
    yield


@row
def weak_dictionary():
    thing = Thing()
    table = weakref.WeakKeyDictionary({thing: 2.0})
    yield lambda x: x * table[thing]
    table[thing] = 3.0
    yield


@row
def recursion_limit():
    limit = sys.getrecursionlimit()
    yield lambda x: x * sys.getrecursionlimit()
    sys.setrecursionlimit(limit + 10)
    yield
    sys.setrecursionlimit(limit)
    yield


# --- objects that calls return --------------------------------------------------------------------

_CONFIG = Thing(rate=2.0)


def get_config():
    return _CONFIG


@row
def object_of_a_getter():
    global _CONFIG
    yield lambda x: x * get_config().rate
    _CONFIG.rate = 3.0
    yield
    before, _CONFIG = _CONFIG, Thing(rate=5.0)
    yield
    _CONFIG = before
    _CONFIG.rate = 2.0
    yield


@row
def object_of_a_registry():
    registry = {"a": Thing(rate=2.0)}
    yield lambda x: x * next(iter(registry.values())).rate
    registry["a"].rate = 3.0
    yield
    registry["a"] = Thing(rate=4.0)
    yield


@row
def object_of_a_cached_function():
    @functools.cache
    def config():
        return Thing(rate=2.0)

    config()
    yield lambda x: x * config().rate
    config().rate = 3.0
    yield


@row
def object_of_min_and_sorted():
    things = [Thing(order=1, rate=2.0), Thing(order=2, rate=5.0)]
    yield lambda x: x * min(things, key=lambda t: t.order).rate
    things[0].rate = 3.0
    yield
    things[0].order = 4
    yield
    things[1].rate = 7.0
    yield


@row
def object_of_an_item_method():
    class Table:
        def __init__(self):
            self.inner = [Thing(rate=2.0)]

        def __getitem__(self, at):
            return self.inner[at]

    table = Table()
    yield lambda x: x * table[0].rate
    table[0].rate = 3.0
    yield


@row
def object_of_a_copy():
    thing = Thing(rate=2.0)
    yield lambda x: x * copy.copy(thing).rate
    thing.rate = 3.0
    yield


@row
def object_of_a_deep_copy():
    thing = Thing(inner=Thing(rates=[2.0]))
    yield lambda x: x * copy.deepcopy(thing).inner.rates[0]
    thing.inner.rates[0] = 3.0
    yield


@row
def object_of_zip_and_reversed():
    things = [Thing(rate=2.0), Thing(rate=3.0)]
    yield lambda x: sum(x * a.rate - b.rate for a, b in zip(things, reversed(things)))
    things[1].rate = 5.0
    yield


@row
def object_of_get_and_setdefault():
    table = {"a": Thing(rate=2.0)}
    yield lambda x: x * table.get("a").rate
    table["a"].rate = 3.0
    yield


@row
def object_of_a_pop_of_a_copy():
    things = [Thing(rate=2.0)]
    yield lambda x: x * list(things).pop().rate
    things[0].rate = 3.0
    yield


@row
def object_of_a_chain():
    things, others = [Thing(rate=2.0)], [Thing(rate=3.0)]
    yield lambda x: x * sum(t.rate for t in itertools.chain(things, others))
    others[0].rate = 5.0
    yield
    others.append(Thing(rate=1.0))
    yield


@row
def object_of_bisect():
    limits = [1, 5, 10]
    yield lambda x: x * bisect.bisect(limits, 4)
    limits.insert(0, 0)
    yield


# --- data classes ---------------------------------------------------------------------------------


@dataclasses.dataclass
class Options:
    rate: float = 2.0
    names: list = dataclasses.field(default_factory=lambda: ["a"])


@dataclasses.dataclass(frozen=True)
class FrozenOptions:
    rate: float = 2.0
    inner: object = None


@dataclasses.dataclass(slots=True)
class SlottedOptions:
    rate: float = 2.0


@row
def dataclass_field():
    options = Options()
    yield lambda x: x * options.rate + len(options.names)
    options.rate = 3.0
    yield
    options.names.append("b")
    yield


@row
def dataclass_as_an_argument():
    options = Options()
    yield (lambda x, options: x * options.rate + len(options.names)), options
    options.rate = 3.0
    yield
    options.names.append("b")
    yield


@row
def dataclass_frozen():
    options = FrozenOptions()
    yield lambda x: x * options.rate
    object.__setattr__(options, "rate", 3.0)
    yield
    options = FrozenOptions(4.0)
    yield


@row
def dataclass_frozen_as_an_argument_with_a_list():
    options = FrozenOptions(2.0, [1.0])
    yield (lambda x, options: x * options.rate + options.inner[0]), options
    options.inner[0] = 5.0
    yield
    object.__setattr__(options, "rate", 3.0)
    yield


@row
def dataclass_with_slots():
    options = SlottedOptions()
    yield lambda x: x * options.rate
    options.rate = 3.0
    yield


@row
def dataclass_with_more_attributes():
    options = Options()
    options.more = 2.0
    yield (lambda x, options: x * options.rate * options.more), options
    options.more = 3.0
    yield


@row
def dataclass_class_attribute():
    class Local(Options):
        scale = 2.0

    options = Local()
    yield (lambda x, options: x * options.scale), options
    Local.scale = 3.0
    yield


@row
def dataclass_method():
    @dataclasses.dataclass
    class Local:
        rate: float = 2.0

        def scaled(self, x):
            return x * self.rate

    options = Local()
    yield (lambda x, options: options.scaled(x)), options
    Local.scaled = lambda self, x: x
    yield


@row
def dataclass_fields_and_asdict():
    options = Options()
    yield (
        lambda x: x * dataclasses.asdict(options)["rate"] + len(dataclasses.replace(options).names)
    )
    options.rate = 3.0
    yield
    options.names.append("b")
    yield


@row
def dataclass_compared():
    one, two = Options(), Options()
    yield lambda x: x * 2 if one == two else x
    two.rate = 3.0
    yield
    one.rate = 3.0
    yield
    one.names.append("b")
    yield


@row
def dataclass_default():
    @dataclasses.dataclass
    class Local:
        rate: float = 2.0

    yield lambda x: x * Local().rate
    Local.__init__.__defaults__ = (3.0,)
    yield


# --- NumPy ----------------------------------------------------------------------------------------

ARRAY = np.array([1.0, 2.0])


@row
def array_global():
    yield lambda x: x * tg.tensor(ARRAY)
    ARRAY[0] = 5.0
    yield
    ARRAY[0] = 1.0
    yield


@row
def array_attribute():
    thing = Thing(array=np.array([1.0, 2.0]))
    yield lambda x: x * float(thing.array.sum())
    thing.array[0] = 5.0
    yield
    thing.array = np.array([7.0])
    yield


@row
def array_without_dimensions():
    rate = np.array(2.0)
    yield lambda x: x * float(rate)
    rate[...] = 3.0
    yield
    rate[()] = 4.0
    yield


@row
def array_item():
    rates = np.array([2.0, 3.0])
    yield lambda x: x * float(rates[0])
    rates[0] = 5.0
    yield


@row
def array_of_objects():
    rates = np.array([Thing(rate=2.0), None], dtype=object)
    yield lambda x: x * rates[0].rate
    rates[0] = Thing(rate=3.0)
    yield
    rates[0].rate = 4.0
    yield


@row
def array_view():
    base = np.arange(4.0)
    view = base[1:3]
    yield lambda x: x * tg.tensor(view.copy())
    base[1] = 9.0
    yield


@row
def array_shape_and_dtype():
    array = np.zeros((2, 3))
    yield lambda x: x * array.shape[0] + array.ndim + array.size
    array = np.zeros((3, 2, 1))
    yield


@row
def array_shape_in_place():
    array = np.zeros((2, 3))
    yield lambda x: x * array.shape[0]
    array.shape = (3, 2)
    yield


@row
def array_truth_and_comparison():
    array = np.array([1.0])
    yield lambda x: x * 2 if array and array[0] < 2 else x
    array[0] = 5.0
    yield
    array[0] = 0.0
    yield


@row
def array_iterated():
    array = np.array([1.0, 2.0])
    yield lambda x: sum(x * float(each) for each in array) + len(array)
    array[1] = 7.0
    yield


@row
def array_in_arithmetic():
    array = np.array([1.0, 2.0])
    yield lambda x: x * float((array * 2 + 1).max())
    array[1] = 7.0
    yield


@row
def array_by_a_function():
    array = np.array([1.0, 2.0])
    yield lambda x: x * float(np.dot(array, array)) + float(np.mean(array))
    array[1] = 7.0
    yield


@row
def array_in_a_list():
    arrays = [np.array([1.0, 2.0])]
    yield lambda x: x * tg.tensor(arrays[0])
    arrays[0][1] = 7.0
    yield


@row
def array_in_a_dict_handed_over():
    arrays = {"a": np.array([1.0, 2.0])}
    yield lambda x: x * float(sum(map(np.sum, arrays.values())))
    arrays["a"][1] = 7.0
    yield


@row
def array_scalar():
    rate = np.float32(2.0)
    yield lambda x: x * float(rate)
    rate = np.float32(3.0)
    yield
    rate = np.float64(3.0)
    yield


# --- modules of tgraph.nn, tensors, modes ---------------------------------------------------------


class Net(tg.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = tg.nn.Linear(2, 2)
        self.rate = 2.0

    def forward(self, x):
        return self.first(x) * self.rate


def _linear():
    layer = tg.nn.Linear(2, 2)
    with tg.no_grad():
        layer.weight.copy_(tg.tensor([[1.0, 2.0], [3.0, 4.0]]))
        layer.bias.copy_(tg.tensor([1.0, -1.0]))
    return layer


def _net():
    net = Net()
    net.first = _linear()
    return net


@row
def module_number():
    net = _net()
    yield net
    net.rate = 3.0
    yield
    net.rate = 2.0
    yield


@row
def module_training_flag():
    class Local(Net):
        def forward(self, x):
            return x * 2 if self.training else x

    net = Local()
    yield lambda x: net(x)
    net.eval()
    yield
    net.train()
    yield


@row
def module_training_flag_of_a_part():
    net = tg.nn.Sequential(_linear(), tg.nn.BatchNorm1d(2))
    net.eval()
    yield lambda x: net(x.reshape(1, 2).expand(2, 2))
    net[1].running_mean = tg.tensor([1.0, 2.0])
    yield
    net[1].eps = 0.5
    yield


@row
def module_forward_replaced_on_the_class():
    class Local(Net):
        def forward(self, x):
            return x * 5

    net = Local()
    yield net
    Local.forward = lambda self, x: x * 7
    yield
    del Local.forward
    net.first = _linear()
    yield


@row
def module_forward_replaced_on_the_instance():
    net = _net()
    yield net
    net.forward = lambda x: x * 7
    yield
    del net.forward
    yield


@row
def module_forward_of_the_library_replaced():
    before = tg.nn.Linear.forward
    layer = _linear()
    yield lambda x: layer(x)
    tg.nn.Linear.forward = lambda self, x: x * 7
    yield
    tg.nn.Linear.forward = before
    yield


@row
def module_forward_of_the_library_replaced_inside_others():
    before = tg.nn.Linear.forward
    net = tg.nn.Sequential(_linear(), tg.nn.ReLU())
    yield net
    tg.nn.Linear.forward = lambda self, x: x * 7
    yield
    tg.nn.Linear.forward = before
    yield


@row
def module_parameter_replaced():
    net = _net()
    yield net
    net.first.weight = tg.nn.Parameter(tg.ones(2, 2))
    yield
    net.first.bias = None
    yield


@row
def module_parameter_written():
    net = _net()
    yield net
    with tg.no_grad():
        net.first.weight.mul_(2)
    yield


@row
def module_buffer_replaced():
    class Local(tg.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("offset", tg.ones(2))

        def forward(self, x):
            return x + self.offset

    net = Local()
    yield net
    net.offset = tg.zeros(2)
    yield
    net.offset = tg.full((2,), 5.0)
    yield


@row
def module_part_replaced():
    net = _net()
    yield net
    net.first = tg.nn.Identity()
    yield


@row
def module_list():
    layers = tg.nn.ModuleList([_linear(), _linear()])

    def function(x):
        for layer in layers:
            x = layer(x)
        return x * len(layers)

    yield function
    layers.append(tg.nn.ReLU())
    yield
    layers[0] = tg.nn.Identity()
    yield


@row
def module_dict():
    layers = tg.nn.ModuleDict({"a": _linear()})
    yield lambda x: layers["b"](x) if "b" in layers else layers["a"](x)
    layers["b"] = tg.nn.Identity()
    yield
    layers["b"] = tg.nn.ReLU()
    yield


@row
def module_sequential():
    layers = tg.nn.Sequential(_linear(), tg.nn.ReLU())
    yield layers
    layers[1] = tg.nn.Identity()
    yield
    layers.append(tg.nn.ReLU())
    yield


@row
def module_sequential_by_index_and_slice():
    layers = tg.nn.Sequential(_linear(), tg.nn.ReLU())
    yield lambda x: layers[-1](layers[0](x))
    layers[1] = tg.nn.Identity()
    yield


@row
def module_parameters_iterated():
    net = _net()
    yield lambda x: x * sum(p.sum() for p in net.parameters())
    net.second = _linear()
    yield
    net.first.bias = None
    yield


@row
def module_named_parts():
    net = _net()
    yield lambda x: x * len(list(net.modules())) + len([n for n, _ in net.named_parameters()])
    net.second = tg.nn.ReLU()
    yield
    net.second = _linear()
    yield


@row
def module_requires_grad():
    net = _net()
    yield lambda x: x * 2 if all(p.requires_grad for p in net.parameters()) else x
    net.first.bias.requires_grad_(False)
    yield


@row
def module_state_dict():
    net = _net()
    yield lambda x: x * sum(v.sum() for v in net.state_dict().values()).detach()
    net.second = _linear()
    yield


@row
def module_function_of_the_library_replaced():
    before = tg.nn.functional.relu
    yield lambda x: tg.nn.functional.relu(x - 1.5)
    tg.nn.functional.relu = lambda x: x * 7
    yield
    tg.nn.functional.relu = before
    yield


@row
def function_of_math_replaced():
    before = math.sqrt
    yield lambda x: x * math.sqrt(4.0)
    math.sqrt = lambda value: 7.0
    yield
    math.sqrt = before
    yield


@row
def optimizer_group():
    weight = tg.nn.Parameter(tg.ones(2))
    optimizer = tg.optim.SGD([weight], lr=2.0)
    yield lambda x: x * optimizer.param_groups[0]["lr"]
    optimizer.param_groups[0]["lr"] = 3.0
    yield
    optimizer.param_groups[0]["lr"] = 4.0
    yield


@row
def optimizer_groups_added():
    optimizer = tg.optim.SGD([tg.nn.Parameter(tg.ones(2))], lr=2.0)
    yield lambda x: x * sum(g["lr"] * len(g["params"]) for g in optimizer.param_groups)
    optimizer.add_param_group({"params": [tg.nn.Parameter(tg.ones(1))], "lr": 5.0})
    yield


@row
def tensor_replaced():
    weight = tg.ones(2)
    yield lambda x: x * weight
    weight = tg.zeros(2)
    yield
    weight = tg.ones(2, dtype=tg.float64)
    yield
    weight = tg.ones(3, 1)
    yield


@row
def tensor_written():
    weight = tg.ones(2)
    yield lambda x: x * weight
    weight.fill_(4.0)
    yield
    weight.data = tg.zeros(2)
    yield


@row
def tensor_facts():
    weight = tg.ones(2)
    yield lambda x: x * weight.shape[0] + weight.requires_grad + weight.is_leaf + weight.dim()
    weight = tg.ones(3, 2)
    yield
    weight.requires_grad_()
    yield


@row
def tensor_gradient_is_there():
    weight = tg.ones(2, requires_grad=True)
    yield lambda x: x * 2 if weight.grad is None else x
    weight.grad = tg.ones(2)
    yield
    weight.grad = None
    yield


@row
def tensor_facts_of_a_tensor_that_is_not_computed_with():
    weight = tg.ones(2)
    thing = Thing(weight=weight)
    yield lambda x: x * 2 if thing.weight.dtype is tg.float32 else x
    thing.weight = tg.ones(2, dtype=tg.float64)
    yield


@row
def tensor_is_one_of_a_list():
    weights = [tg.ones(2), tg.zeros(2)]
    chosen = weights[0]
    yield lambda x: x * 2 if any(w is chosen for w in weights[1:]) else x
    weights[1] = chosen
    yield


@row
def identity_of_a_tensor_and_an_argument():
    weight = tg.ones(2)
    thing = Thing(weight=weight)
    yield (lambda x, weight: x * 2 if weight is thing.weight else x), weight
    thing.weight = tg.ones(2)
    yield
    thing.weight = weight
    yield


@row
def identity_of_tensors_in_objects():
    one = two = tg.ones(2)
    things = Thing(one=one, two=one)
    yield lambda x: x * 2 if things.one is not things.two else x
    things.two = tg.zeros(2)
    yield
    things.two = two
    yield
    things.one = things.two = tg.zeros(2)
    yield


@row
def mode_of_gradients():
    yield lambda x: x * 2 if tg.is_grad_enabled() else x
    tg.set_grad_enabled(False)
    yield
    tg.set_grad_enabled(True)
    yield


@row
def mode_of_the_default_dtype():
    yield lambda x: tg.ones(2) * 0.5 if tg.get_default_dtype() is tg.float32 else x
    tg.set_default_dtype(tg.float64)
    yield
    tg.set_default_dtype(tg.float32)
    yield


@row
def dtype_of_an_object():
    thing = Thing(dtype=tg.float32)
    yield lambda x: x.to(thing.dtype) * 0.5
    thing.dtype = tg.float64
    yield
    thing.dtype = tg.float32
    yield


# --- kinds of values ------------------------------------------------------------------------------


@row
def value_of_another_type():
    rate = 2
    yield lambda x: x.to(tg.int64) * rate
    rate = 2.0
    yield
    rate = True
    yield


@row
def value_that_is_negative_zero():
    rate = 0.0
    yield lambda x: x * math.copysign(1.0, rate)
    rate = -0.0
    yield
    rate = 0.0
    yield


@row
def value_that_is_nan():
    rate = 1.0
    yield lambda x: x * 2 if rate != rate else x
    rate = math.nan
    yield


@row
def value_of_a_text():
    mode = "relu"
    yield lambda x: getattr(x - 1.5, mode)()
    mode = "abs"
    yield


@row
def value_of_a_slice_and_a_range():
    part, steps = slice(0, 1), range(2)
    yield lambda x: x[part] * len(steps) + sum(steps)
    part = slice(1, 2)
    yield
    steps = range(5)
    yield


@row
def value_of_a_large_number():
    rate = 2**70
    yield lambda x: x * (rate % 7)
    rate = 2**71
    yield


@row
def value_of_a_number_that_indexes():
    at = 0
    yield lambda x: x[at]
    at = 1
    yield
    at = -2
    yield


@row
def value_of_a_number_that_loops():
    count = 1

    def function(x):
        for _ in range(count):
            x = x * 2
        return x

    yield function
    count = 3
    yield


@row
def value_that_is_returned():
    thing = Thing(rate=2.0, name="a")
    yield lambda x: (x, thing.rate, thing.name)
    thing.rate = 3.0
    yield
    thing.name = "b"
    yield


@row
def list_that_is_returned():
    values = [1, "a"]
    yield lambda x: {"x": x, "values": values}
    values.append("b")
    yield
    values[0] = 5
    yield


@row
def walrus_and_conditional():
    table = {"rate": 2.0}
    yield lambda x: x * rate if (rate := table.get("rate")) else x
    table["rate"] = 0.0
    yield
    del table["rate"]
    yield


@row
def chained_comparison():
    limits = Thing(low=0, high=5)
    yield lambda x: x * 2 if limits.low < 3 <= limits.high else x
    limits.high = 2
    yield
    limits.low, limits.high = 3, 5
    yield


@row
def short_circuit():
    thing = Thing(a=None, b=2.0)
    yield lambda x: x * (thing.a or thing.b)
    thing.b = 3.0
    yield
    thing.a = 4.0
    yield
    thing.b = 9.0
    yield


@row
def while_loop():
    thing = Thing(limit=3)

    def function(x):
        n = 0
        while n < thing.limit:
            x, n = x * 2, n + 1
        return x

    yield function
    thing.limit = 1
    yield


@row
def assertion():
    thing = Thing(ok=True)

    def function(x):
        assert thing.ok, "not ok"
        return x * 2

    yield function
    thing.ok = False
    yield
    thing.ok = True
    yield


@row
def exception_that_is_raised():
    thing = Thing(fail=False)

    def function(x):
        if thing.fail:
            raise ValueError(f"failed with {thing.fail}")
        return x * 2

    yield function
    thing.fail = True
    yield
    thing.fail = False
    yield


@row
def exception_type_that_is_caught():
    caught = KeyError

    def function(x):
        try:
            raise ValueError("inside")
        except caught:
            return x * 2

    yield function
    caught = ValueError
    yield
    caught = (KeyError, ValueError)
    yield


@row
def class_made_inside():
    rate, base = 2.0, Scaler

    def function(x):
        class Local(base):
            factor = rate

        return x * Local().factor + Local().rate

    yield function
    rate = 3.0
    yield
    base = type("Other", (), {"rate": 9.0})
    yield


@row
def decorator_used_inside():
    table = {"rate": 2.0}

    def doubled(function):
        return lambda x: function(x) * table["rate"]

    def function(x):
        @doubled
        def inner(y):
            return y + 1

        return inner(x)

    yield function
    table["rate"] = 3.0
    yield


@row
def slice_of_variables():
    values, low, high = [1.0, 2.0, 3.0], 0, 1
    yield lambda x: x * sum(values[low:high])
    high = 3
    yield
    low = 2
    yield


@row
def tuple_of_objects_that_change():
    things = (Thing(rate=2.0), Thing(rate=3.0))
    yield lambda x: x * sum(t.rate for t in things)
    things[1].rate = 5.0
    yield
    things = (*things[::-1], Thing(rate=1.0))
    yield


@row
def set_of_objects_that_change():
    thing = Thing(rate=2.0)
    things = {thing}
    yield lambda x: x * sum(t.rate for t in things)
    thing.rate = 3.0
    yield
    things.add(Thing(rate=1.0))
    yield


@row
def keys_that_are_objects():
    thing = Thing(rate=2.0)
    table = {thing: 1.0}
    yield lambda x: sum(x * key.rate * value for key, value in table.items())
    thing.rate = 3.0
    yield


# --- what is refused ------------------------------------------------------------------------------


@refused
def iterator_of_the_outside():
    values = iter([1.0, 2.0])
    yield lambda x: x * next(values)


@refused
def generator_of_the_outside():
    values = (v for v in [1.0, 2.0])
    yield lambda x: x * sum(values)


@refused
def counter_of_itertools():
    count = itertools.count()
    yield lambda x: x * next(count)


@refused
def code_of_a_string():
    rate = 2.0
    yield lambda x: x * eval("rate", {"rate": rate})


@refused
def large_array():
    array = np.zeros(1 << 20)
    yield lambda x: x * float(array[0])
