"""Changes of methods."""

from __future__ import annotations

import contextlib
import string

from .table import Scaler, row


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
