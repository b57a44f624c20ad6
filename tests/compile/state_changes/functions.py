"""Changes of functions: their defaults, closures, attributes and code."""

from __future__ import annotations

import functools
import itertools
import operator

import tgraph as tg

from .table import Scaler, Thing, row


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
