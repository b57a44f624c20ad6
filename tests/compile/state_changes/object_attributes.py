"""Changes of attributes of objects."""

from __future__ import annotations

import abc
import argparse
import copy
import operator
import types
import typing

import tgraph as tg

from .table import Color, Point, Thing, Weight, row


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
