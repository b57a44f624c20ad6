"""Changes of values of all kinds."""

from __future__ import annotations

import math

import tgraph as tg

from .table import Scaler, Thing, row


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
