"""Writes in branches, loops and helpers."""

from __future__ import annotations

import contextlib

import tgraph as tg
from tgraph import nn

from .table import Bag, World, row


@row
def try_and_finally():
    o = Bag(depth=0, log=[])

    def f(x):
        o.depth += 1
        try:
            o.log.append(x.sum())
            raise KeyError("inner")
        except KeyError:
            o.failed = x * 2
        finally:
            o.depth -= 1
        return x

    return World(f, o)


@row
def context_manager_of_the_user():
    o = Bag(depth=0, most=0)

    @contextlib.contextmanager
    def deeper():
        o.depth += 1
        try:
            yield o.depth
        finally:
            o.depth -= 1

    def f(x):
        with deeper() as depth:
            o.most = depth
            return x * 2

    return World(f, o)


@row
def comprehension_that_writes():
    d, items = {}, []

    def f(x):
        [items.append(x * k) for k in (1, 2)]
        return [d.setdefault(k, x * k) for k in (3, 4)]

    return World(f, [d, items])


@row
def loop_that_writes():
    o = Bag(total=tg.zeros(4), n=0)

    def f(x):
        for k in range(3):
            o.total = o.total + x * k
            o.n += 1
        return o.total

    return World(f, o)


@row
def generator_that_writes():
    items = []

    def parts(x):
        for k in range(2):
            items.append(x * k)
            yield x + k

    def f(x):
        return sum(parts(x))

    return World(f, items)


@row
def walrus_and_unpacking():
    o = Bag(a=0)

    def f(x):
        o.a, (o.b, *o.rest) = 1, (x, 2, 3)
        if (y := x * 2) is not None:
            o.y = y
        return x

    return World(f, o)


@row
def augmented_targets_run_once():
    o = Bag(n=0, items=[0, 0])

    def at():
        o.n += 1
        return 0

    def f(x):
        o.items[at()] += 2
        return x * 2

    return World(f, o)


@row
def raises_afterwards():
    o = Bag(n=0, items=[])

    def f(x):
        o.n += 1
        o.items.append(x * 2)
        raise ValueError("after writes")

    return World(f, o)


@row(plans=5)
def raises_now_and_then():
    o = Bag(n=0, items=[])

    def f(x):
        o.n += 1
        o.items.append(x * 2)
        if o.n == 2:
            raise ValueError("at the second call")
        return x

    return World(f, o)


@row
def raises_while_it_runs():
    o, table = Bag(n=0, items=[]), tg.arange(3.0)

    def f(x, at):
        o.n += 1
        o.items.append(x * 2)
        y = table[at]
        o.late = y
        return y

    def arguments(turn):
        return tg.ones(4) * turn, tg.tensor([0, 7 if turn == 3 else 1])

    return World(f, o, arguments)


@row
def division_by_zero():
    o = Bag(rate=1.0, n=0)

    def f(x):
        o.n += 1
        return x * (1 / o.rate), o.n

    def after(turn):
        o.rate = (2.0, 4.0, 0.0, 5.0, 0.0)[turn]

    return World(f, o, after=after)


@row
def integer_division_by_zero():
    o = Bag(rate=3, last=None)

    def f(x):
        o.last = 7 // o.rate, 7 % o.rate
        return x * 2

    def after(turn):
        o.rate = (2, 4, 0, 5, 0)[turn]

    return World(f, o, after=after)


@row
def division_by_zero_of_an_argument():
    log = []

    def f(x, rate):
        log.append(x)
        return x * (1 / rate)

    return World(f, log, lambda turn: (tg.ones(4), (1.0, 2.0, 0.0, 4.0, 0.0)[turn]))


@row
def overflow_of_a_power():
    o = Bag(rate=3.0)

    def f(x):
        o.rate = o.rate**9
        return x * 2

    return World(f, o)


@row
def large_integers():
    o = Bag(n=3)

    def f(x):
        o.n = o.n * o.n
        return x * 2

    return World(f, o)


@row
def under_no_grad():
    w, o = tg.ones(4, requires_grad=True), Bag(items=[])

    def f(x):
        with tg.no_grad():
            o.frozen = w * x
            o.items.append(o.frozen.sum())
        o.free = w * x
        return x

    return World(f, [w, o])


@row
def written_in_a_hook():
    w, o = tg.ones(4, requires_grad=True), Bag(items=[], n=0)

    def keep(grad):
        o.items.append(grad * 2)
        o.n += 1

    w.register_hook(keep)

    def f(x):
        w.grad = None
        (w * x).sum().backward()
        return x

    return World(f, [w, o])


@row
def written_in_a_hook_of_its_own():
    w, items = tg.ones(4, requires_grad=True), []

    def f(x):
        y = w * x
        y.register_hook(items.append)
        y.sum().backward()
        w.grad = None
        return x

    return World(f, [w, items])


class Seen(tg.autograd.Function):
    """Twice its argument; what `o` is given sees each gradient."""

    @staticmethod
    def forward(ctx, x, o):
        ctx.o, ctx.times = o, 0
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        ctx.times += 1
        ctx.o.items.append(grad * ctx.times)
        ctx.o.saved = grad
        return grad * 2, None


def counted(module, got, gave):
    module.count += 1
    module.saved = gave[0]


@row
def written_in_backward():
    w, o, layer = tg.ones(4, requires_grad=True), Bag(items=[], saved=None), nn.Tanh()
    layer.count, layer.saved = 0, None
    layer.register_full_backward_hook(counted)
    layer.register_full_backward_pre_hook(lambda module, grads: o.items.append(module.count))

    def f(x):
        layer(Seen.apply(w, o) * x).sum().backward()
        return x

    return World(f, lambda: [w, o, layer.count, layer.saved])


@row(refused="leaves a hook, of .*at `w`")
def hook_left_at_a_parameter():
    w = tg.ones(4, requires_grad=True)

    def f(x):
        w.register_hook(lambda grad: grad * 2)
        return w * x

    return World(f, w)


@row(refused="gradient of the body of a branch or loop writes `o.saved`")
def written_in_the_gradient_of_a_branch():
    w, o = tg.ones(4, requires_grad=True), Bag(items=[], saved=None)

    def f(x):
        tg.cond(x.sum() > 0, lambda: Seen.apply(w, o), lambda: w * x).sum().backward()
        return x

    return World(f, [w, o])


@row(backward=r"writes `o.saved`, at .*state_writes/control_flow.py:\d+")
def written_in_a_custom_backward_outside():
    w, o = tg.ones(4, requires_grad=True), Bag(items=[], saved=None)
    return World(lambda x: (Seen.apply(w, o) * x).sum(), [w, o])


@row(backward=r"writes `layer.count`, at .*state_writes/control_flow.py:\d+")
def written_in_a_hook_of_a_module_outside():
    w, layer = tg.ones(4, requires_grad=True), nn.Tanh()
    layer.count, layer.saved = 0, None
    layer.register_full_backward_hook(counted)
    return World(lambda x: layer(w * x).sum(), lambda: [w, layer.count, layer.saved])


@row(backward=r"writes `items`, at .*state_writes/control_flow.py:\d+")
def kept_by_a_hook_outside():
    w, items = tg.ones(4, requires_grad=True), []

    def f(x):
        y = w * x
        y.register_hook(items.append)
        return y.sum()

    return World(f, [w, items])


@row(backward=r"writes `n`, at .*state_writes/control_flow.py:\d+")
def variable_written_in_a_hook_outside():
    w, n = tg.ones(4, requires_grad=True), 0

    def count(grad):
        nonlocal n
        n += 1

    def f(x):
        y = w * x
        y.register_hook(count)
        return y.sum()

    return World(f, lambda: [w, n])


@row(backward="writes a tensor, `total`, in place")
def tensor_written_in_a_hook_outside():
    w, total = tg.ones(4, requires_grad=True), tg.zeros(4)

    def add(grad):
        total.add_(grad)

    def f(x):
        total.mul_(0.5)
        y = w * x
        y.register_hook(add)
        return y.sum()

    return World(f, [w, total])


@row(backward="of random numbers")
def drawn_in_a_hook_outside():
    w = tg.ones(4, requires_grad=True)

    def f(x):
        y = w * x * tg.rand(4)
        y.register_hook(lambda grad: grad * tg.rand(4))
        return y.sum()

    return World(f, w)


@row(backward="retain_grad")
def gradient_of_a_result_retained():
    w, o = tg.ones(4, requires_grad=True), Bag(y=None)

    def f(x):
        o.y = w * x
        o.y.retain_grad()
        return (o.y * x).sum()

    return World(f, [w, o])


@row(backward="")
def read_in_a_hook_outside():
    w, o = tg.ones(4, requires_grad=True), Bag(scale=1.0, items=[], last=None, all=[])

    def f(x):
        o.items.append(x)
        o.last = x * 2
        y = w * x
        y.register_hook(lambda grad: grad * o.scale * o.last * o.items[-1])
        return y.sum()

    def after(turn):
        o.scale = turn + 2.0

    return World(f, [w, o], after=after)


@row
def hook_of_a_graph_that_is_used_up():
    w, items = tg.ones(4, requires_grad=True), []

    def f(x):
        loss = (w * x).sum()
        loss.register_hook(items.append)
        loss.backward()
        return loss

    return World(f, [w, items])


@row(backward="")
def written_in_the_gradient_of_another_result():
    w, items = tg.ones(4, requires_grad=True), []

    def f(x):
        y = w * x
        y.register_hook(items.append)
        items.append(y.sum())
        return (w + x).sum()

    return World(f, [w, items])


@row
def nested_compiled_function():
    o = Bag(items=[], n=0)

    @tg.compile
    def inner(x):
        o.n += 1
        o.items.append(x * 2)
        return x + 1

    def f(x):
        return inner(inner(x))

    return World(f, o)


@row
def written_in_grad():
    items = []

    def loss(w, x):
        value = (w * x).square().sum()
        items.append(x.sum())
        return value

    def f(x):
        return tg.grad(loss)(tg.ones(4), x)

    return World(f, items)
