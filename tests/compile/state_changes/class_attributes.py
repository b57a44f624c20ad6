"""Changes of attributes of classes, and of what computes attributes."""

from __future__ import annotations

import enum
import functools
import types

from .table import Color, row

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
