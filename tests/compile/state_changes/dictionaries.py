"""Changes of dictionaries."""

from __future__ import annotations

import tgraph as tg

from .table import Color, Thing, row


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
