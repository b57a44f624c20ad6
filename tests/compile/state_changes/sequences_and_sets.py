"""Changes of lists, tuples and sets."""

from __future__ import annotations

import collections
import types

from .table import Point, Thing, row


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


@row
def named_tuple_of_a_list():
    point = Point([1.0], 2.0)
    yield lambda x: x * point.x[0]
    point.x[0] = 4.0
    yield


@row
def frozenset_of_equal_elements_of_another_type():
    kinds = frozenset({1})
    yield lambda x: x * (2.0 if isinstance(next(iter(kinds)), bool) else 3.0)
    kinds = frozenset({True})
    yield
