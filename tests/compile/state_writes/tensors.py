"""Writes of tensors, which are kept, and of their attributes."""

from __future__ import annotations

import tgraph as tg

from .table import Bag, World, row

# --- attributes of tensors ------------------------------------------------------------------------


@row
def attributes_of_tensors():
    weight = tg.ones(4)

    def f(x):
        weight._count = getattr(weight, "_count", 0) + 1
        weight.sample = x * 2
        x.tags = [1]
        x.tags.append(x)
        y = x * weight._count
        y.half, y.me = x * 0.5, y
        z = y[:2]
        z._start = 0
        return y, z

    return World(f, weight)


@row
def attributes_of_an_argument_written_over():
    def f(x):
        x.rate = x.rate + 1.0
        setattr(x, "seen", True)  # noqa: B010
        del x.old
        return x * x.rate

    def arguments(turn):
        x = tg.ones(4) * turn
        x.rate, x.old, x.seen = 2.0, None, True
        if turn == 3:
            del x.seen
        return (x,)

    return World(f, None, arguments)


@row
def attribute_of_an_argument_that_is_known_already():
    weight = tg.ones(4)

    def f(x):
        x.rate = 3.0
        return x * getattr(weight, "rate", 2.0)

    def arguments(turn):
        vars(weight).clear()
        return (weight if turn % 2 else tg.ones(4),)

    return World(f, weight, arguments)


@row(refused="looks at all attributes of its argument `x`")
def all_attributes_of_an_argument():
    def f(x):
        return x * len(vars(x))

    return World(f)


# --- tensors written and kept ---------------------------------------------------------------------


@row
def kept_then_mutated():
    o = Bag()

    def f(x):
        y = x * 2
        o.y = y
        y.add_(1)
        return y.sum()

    return World(f, o)


@row
def kept_view():
    o = Bag()

    def f(x):
        y = x * 2
        o.y, o.part = y, y[:2]
        return y.sum()

    def after(turn):
        o.part.add_(100)

    return World(f, o, after=after)


@row
def kept_view_of_the_outside():
    w, o = tg.arange(4.0), Bag()

    def f(x):
        o.part = w[1:3]
        o.part.add_(1)
        return w * x

    def after(turn):
        o.part.mul_(2)

    return World(f, [w, o], after=after)


@row
def kept_view_of_an_argument():
    o = Bag()

    def f(x):
        o.part = x[:2]
        o.whole = x
        return x * 2

    def after(turn):
        o.part.mul_(2)

    return World(f, o, after=after)


@row
def kept_detached():
    w, o = tg.ones(4, requires_grad=True), Bag()

    def f(x):
        y = w * x
        o.y, o.detached = y, y.detach()
        return y.sum()

    return World(f, [w, o])


@row
def kept_tensor_is_replaced_by_another():
    o = Bag(a=tg.ones(4), b=tg.zeros(4))

    def f(x):
        o.a, o.b = o.b, o.a
        o.a.add_(x)
        return o.a + o.b

    return World(f, o)


@row
def outside_tensor_kept_elsewhere():
    w, o = tg.ones(4), Bag(items=[])

    def f(x):
        o.items.append(w)
        o.w = w
        return x * w

    return World(f, [w, o])


@row
def old_value_kept():
    o = Bag(now=tg.zeros(4), before=None)

    def f(x):
        o.before = o.now
        o.now = x * 2
        return o.now - o.before

    return World(f, o)


@row
def constants_made_once_are_not_shared():
    o = Bag(items=[])

    def f(x):
        o.items.append(tg.zeros(2))
        return x

    def after(turn):
        o.items[-1].add_(turn + 1)

    return World(f, o, after=after)


@row
def random_state_and_writes():
    o = Bag(items=[])

    def f(x):
        noise = tg.rand(4)
        o.items.append(noise)
        return x + noise

    return World(f, o)
