"""Writes into dictionaries."""

from __future__ import annotations

import collections

import tgraph as tg

from .table import World, row


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
