"""Writes of attributes of objects."""

from __future__ import annotations

import dataclasses
import functools
import types
from typing import Any

import tgraph as tg
from tgraph import nn

from .table import Bag, World, row


@row
def attribute_cache():
    o = Bag()

    def f(x):
        o.cache = x * 2
        return x

    return World(f, o)


@row
def attribute_counter():
    o = Bag(n=0)

    def f(x):
        o.n += 1
        return x * 2

    return World(f, o)


@row
def attribute_counter_that_is_used():
    o = Bag(n=0)

    def f(x):
        o.n += 1
        return x * o.n, o.n

    return World(f, o)


@row(plans=5)
def attribute_counter_that_decides():
    o = Bag(n=0)

    def f(x):
        o.n += 1
        return x * 2 if o.n % 2 else x

    return World(f, o)


@row
def attribute_flag():
    o = Bag(on=False)

    def f(x):
        o.on = not o.on
        return x * 2 if o.on else x

    return World(f, o)


@row
def attribute_average():
    o = Bag(mean=0.5)

    def f(x):
        o.mean = 0.9 * o.mean + 0.1
        return x * o.mean

    return World(f, o)


@row
def attribute_average_that_is_kept():
    o = Bag(mean=0.5, before=[])

    def f(x):
        o.mean = 0.9 * o.mean + 0.1
        o.before.append(o.mean)
        return x

    return World(f, o)


@row(plans=5)
def attribute_text():
    o = Bag(log="")

    def f(x):
        o.log += "a"
        return x * 2

    return World(f, o)


@row
def attribute_text_by_shape():
    o = Bag()

    def f(x):
        o.log = f"{tuple(x.shape)}"
        return x * 2

    return World(f, o)


@row
def attribute_created_on_first_use():
    o = Bag(c=None)

    def f(x):
        if o.c is None:
            o.c = tg.ones(4)
        return o.c * x

    return World(f, o)


@row
def attribute_created_on_first_use_and_written():
    o = Bag(c=None)

    def f(x):
        if o.c is None:
            o.c = tg.zeros(4)
        o.c.add_(x)
        return o.c * 2

    return World(f, o)


@row
def attribute_created_where_absent():
    o = Bag()

    def f(x):
        if not hasattr(o, "c"):
            o.c = x * 0 + 1
        return o.c * x

    return World(f, o)


@row
def attribute_created_by_except():
    o = Bag()

    def f(x):
        try:
            c = o.c
        except AttributeError:
            c = o.c = tg.full((4,), 2.0)
        return c * x

    return World(f, o)


@row
def parameter_created_on_first_use():
    o = Bag(w=None)

    def f(x):
        if o.w is None:
            o.w = tg.ones(4).requires_grad_()
        return (o.w * x).square().sum()

    def after(turn):
        o.w.grad = None
        f(tg.ones(4)).backward()

    return World(f, o, after=after)


@row
def recurrent_state():
    w = tg.tensor([[0.5, 0.25], [-0.5, 1.0]])
    o = Bag(h=tg.zeros(3, 2))

    def f(x):
        o.h = tg.tanh(x @ w + o.h)
        return o.h

    return World(f, o, lambda turn: (tg.ones(3, 2) * turn,))


@row
def recurrent_state_detached():
    w, o = tg.ones(4, requires_grad=True), Bag(h=tg.zeros(4))

    def f(x):
        h = tg.tanh(x * w + o.h)
        o.h = h.detach()
        return h.sum()

    return World(f, [w, o])


@row
def recurrent_state_with_history():
    w, o = tg.ones(4, requires_grad=True), Bag(h=tg.zeros(4))

    def f(x):
        o.h = tg.tanh(x * w + o.h)
        return o.h.sum()

    def after(turn):
        if turn == 4:
            o.h.sum().backward()

    return World(f, [w, o], after=after)


@row
def training_step_that_logs():
    w, o = tg.ones(4, requires_grad=True), Bag(losses=[], step=0, best=None)

    def f(x):
        w.grad = None
        loss = (w * x - 1).square().mean()
        loss.backward()
        with tg.no_grad():
            w.sub_(w.grad * 0.1)
        o.losses.append(loss.detach())
        o.step += 1
        o.last = w.grad
        return loss.detach()

    return World(f, [w, o])


@row
def attribute_set_by_name():
    o = Bag(b=1)

    def f(x):
        setattr(o, "a", x * 2)  # noqa: B010
        if hasattr(o, "b"):
            delattr(o, "b")
        return x

    return World(f, o)


@row
def attribute_deleted_and_made():
    o = Bag(a=1, b=2)

    def f(x):
        del o.a
        o.a = x
        return x * 2

    return World(f, o)


@row
def attribute_dictionary():
    o = Bag(a=1)

    def f(x):
        o.__dict__["a"] = x * 2
        vars(o)["b"] = x
        o.__dict__.update(c=3)
        return x

    return World(f, o)


@row
def attribute_of_slots():
    class Slotted:
        __slots__ = ("a", "b", "c")

    o = Slotted()
    o.a, o.b = 0, 1

    def f(x):
        o.a += 1
        o.c = x * 2
        if hasattr(o, "b"):
            del o.b
        return x

    return World(f, o)


@row
def attribute_of_slots_and_dictionary():
    class Slotted:
        __slots__ = ("__dict__", "a")

    o = Slotted()

    def f(x):
        o.a = x * 2
        o.b = x + 1
        return x

    return World(f, o)


@row
def property_with_setter():
    class Scaled:
        def __init__(self):
            self._scale = 1.0

        @property
        def scale(self):
            return self._scale

        @scale.setter
        def scale(self, value):
            self._scale = value * 2

    o = Scaled()

    def f(x):
        o.scale = 3.0
        return x * o.scale

    return World(f, o)


@row
def cached_property():
    class Cached:
        def __init__(self):
            self.base = tg.ones(4)

        @functools.cached_property
        def doubled(self):
            return self.base * 2

    o = Cached()

    def f(x):
        return x * o.doubled

    return World(f, o)


@row
def user_setattr():
    class Logged:
        def __init__(self):
            object.__setattr__(self, "count", 0)

        def __setattr__(self, name, value):
            object.__setattr__(self, name, value)
            object.__setattr__(self, "count", self.count + 1)

    o = Logged()

    def f(x):
        o.a = x * 2
        return x

    return World(f, o)


@row
def user_setitem():
    class Table:
        def __init__(self):
            self.rows, self.count = {}, 0

        def __setitem__(self, key, value):
            self.rows[key] = value
            self.count += 1

        def __delitem__(self, key):
            del self.rows[key]

    o = Table()

    def f(x):
        o["a"] = x
        o["b"] = x * 2
        del o["a"]
        return x

    return World(f, o)


@row
def user_operator_in_place():
    class Total:
        def __init__(self):
            self.value = tg.zeros(4)

        def __iadd__(self, other):
            self.value = self.value + other
            return self

    o = Bag(total=Total())

    def f(x):
        o.total += x
        return o.total.value

    return World(f, o)


@row
def descriptor_of_the_user():
    class Doubled:
        def __set_name__(self, owner, name):
            self.name = "_" + name

        def __get__(self, obj, owner=None):
            return getattr(obj, self.name, 1)

        def __set__(self, obj, value):
            setattr(obj, self.name, value * 2)

    class Holder:
        value = Doubled()

    o = Holder()

    def f(x):
        o.value = x
        return o.value + 1

    return World(f, o)


@row
def dataclass_attribute():
    @dataclasses.dataclass
    class Record:
        x: Any = None
        n: int = 0

    o = Record()

    def f(x):
        o.x = x * 2
        o.n += 1
        return x

    return World(f, o)


@row
def class_attribute():
    class Shared:
        n = 0
        last = None

    def f(x):
        Shared.n += 1
        Shared.last = x * 2
        return x * Shared.n

    return World(f, Shared)


@row
def class_attribute_by_self():
    class Shared:
        n = 0

        def step(self, x):
            type(self).n += 1
            self.__class__.last = x
            return x * 2

    return World(Shared().step, Shared)


@row
def function_attribute():
    def f(x):
        f.calls += 1
        f.last = x * 2
        return x

    f.calls = 0
    return World(f)


@row
def module_attribute():
    module = types.ModuleType("written")
    module.n = 0

    def f(x):
        module.n += 1
        module.last = x * 2
        return x * module.n

    return World(f, module.__dict__)


@row
def namespace_attribute():
    o = types.SimpleNamespace(n=0)

    def f(x):
        o.n += 1
        o.last = x * 2
        return x

    return World(f, o.__dict__)


@row
def method_of_an_object():
    class Model:
        def __init__(self):
            self.n, self.history = 0, []

        def note(self, value):
            self.history.append(value)
            self.n += 1

        def step(self, x):
            y = x * 2
            self.note(y)
            return y

    o = Model()
    return World(o.step, o)


@row
def module_with_state():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(4, 2)
            with tg.no_grad():
                self.linear.weight.fill_(0.5)
                self.linear.bias.zero_()
            self.register_buffer("seen", tg.zeros(4))
            self.calls, self.h = 0, None

        def forward(self, x):
            self.calls += 1
            self.seen = self.seen + x
            self.h = self.linear(x) if self.h is None else self.linear(x) + self.h.detach()
            return self.h

    model = Model()
    return World(model, model)


@row
def module_with_a_lazy_parameter():
    class Lazy(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = None

        def forward(self, x):
            if self.weight is None:
                self.weight = nn.Parameter(tg.ones(x.shape[-1]))
            return x * self.weight

    model = Lazy()
    return World(model, model)


@row
def batch_norm():
    model = nn.BatchNorm1d(4)
    return World(model, model, lambda turn: (tg.arange(12.0).reshape(3, 4) * (turn + 1),))


@row
def tensor_attribute():
    w = tg.ones(4)

    def f(x):
        w.note = x * 2
        w.count = getattr(w, "count", 0) + 1
        return x * w

    return World(f, w)


@row
def gradient_attribute():
    w = tg.ones(4, requires_grad=True)

    def f(x):
        w.grad = x * 2
        return x

    return World(f, w)
