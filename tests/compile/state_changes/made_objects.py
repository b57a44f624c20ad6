"""Changes of what makes objects: calls that return them, data classes."""

from __future__ import annotations

import bisect
import copy
import dataclasses
import functools
import itertools

from .table import Thing, row

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
