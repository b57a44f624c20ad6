"""Values that decisions depend on have the same bits wherever compiled code computes them.

A comparison with an extreme, a position, a floor or a sign jumps where its operand changes by one
rounding. Fused kernels and backward plans compute many values again; here such values stand behind
normalisations and chains that round at every step, and gradients are held to those of eager code.
"""

import zlib

import numpy as np
import pytest
from sampling import rotating

import tgraph as tg
from tgraph.autograd import grad as gradient
from tgraph.nn import functional as F

SOURCES = {
    "layer norm": lambda x, w, b: F.layer_norm(F.silu(x), x.shape[1:]) * w + b,
    "scaled layer norm": lambda x, w, b: F.layer_norm(x.tanh(), x.shape[1:], w, b),
    "rms norm": lambda x, w, b: F.rms_norm(F.silu(x) + b, x.shape[1:], w),
    "normalize": lambda x, w, b: F.normalize(x * w + b, dim=1),
    "column norm": lambda x, w, b: F.batch_norm(F.gelu(x), None, None, w, b, training=True),
    "softmax": lambda x, w, b: (x * w + b).softmax(1),
    "log softmax": lambda x, w, b: F.log_softmax(x * w + b, 1),
    "centred": lambda x, w, b: x * w - (x * b).mean(1, keepdim=True),
    "affine": lambda x, w, b: x * w + b,
    "polynomial": lambda x, w, b: ((x * w + b) * x - w) * x + b,
    "exponential": lambda x, w, b: (x * w + b).exp() * x - w,
    "standardised": lambda x, w, b: (x - x.mean(0)) / (x.std(0) + 0.1) * w + b,
    "product": lambda x, w, b: (x @ (w[:, None] * w[None] + b)) * 0.37 + b,
    "short sums": lambda x, w, b: x * w + (x[:, :3] * w[:3]).sum(1, keepdim=True) * b,
    "shared": lambda x, w, b: (x * w + b) * (x * w + b).square().mean(1, keepdim=True).rsqrt(),
}

TABLE = np.random.default_rng(5).normal(size=64).astype(np.float32)

CONSUMERS = {
    "amax": lambda y: y.amax(1),
    "amin": lambda y: y.amin(0),
    "max": lambda y: y.max(1).values * y.max(1).indices,
    "extreme of all": lambda y: y.amax() * y,
    "infinite norm": lambda y: y.norm(float("inf"), dim=1),
    "equal to the extreme": lambda y: y * y * (y == y.amax(1, keepdim=True)),
    "below the extreme": lambda y: tg.where(y < y.amax(1, keepdim=True), y * y, y * 3),
    "gather": lambda y: y.gather(1, y.argmax(1, keepdim=True)) * y,
    "above the mean": lambda y: tg.where(y > y.mean(1, keepdim=True), y, y * 0.1),
    "relu": lambda y: F.relu(y) * y,
    "clamp": lambda y: y.clamp(-0.3, 0.4) * y,
    "clamp to a row": lambda y: y.clamp(max=y[:, :1]) * y,
    "floor": lambda y: (y * 7).floor() * y,
    "round": lambda y: (y * 7).round() * y,
    "sign": lambda y: y.sign() * y * y,
    "absolute": lambda y: y.abs() * y,
    "remainder": lambda y: (y * 5).remainder(1.25) * y,
    "fmod": lambda y: (y * 5).fmod(1.25) * y,
    "integers": lambda y: (y * 9).to(tg.int64) * y,
    "lookup": lambda y: tg.tensor(TABLE)[(y * 9).abs().long().clamp(max=63)] * y,
    "top": lambda y: y.topk(2, dim=1).values * y[:, :2],
    "above the third": lambda y: y * y * (y >= y.topk(3, dim=1).values[:, -1:]),
    "sorted": lambda y: y.sort(1).values * y,
    "median": lambda y: y.median(1).values,
    "pooled": lambda y: F.max_pool1d(y[None], 2),
    "larger one": lambda y: tg.maximum(y, y.flip(1)) * y,
    "smooth loss": lambda y: F.smooth_l1_loss(y, y.roll(1, 1).detach(), beta=0.5),
    "shared extreme": lambda y: (y - y.amax(1, keepdim=True)).exp().sum(1).log() * y.amax(1),
}

SHAPES = {"short": (40, 8), "long": (12, 301), "tall": (400, 5)}


def inputs(shape, name):
    """Tensors that no two of which give the same value, so that only equal values are ties."""
    generator = np.random.default_rng(zlib.crc32(name.encode()))
    arrays = [generator.normal(size=shape), *generator.uniform(0.3, 1.7, (2, shape[1]))]
    return [tg.tensor(each.astype(np.float32)).requires_grad_() for each in arrays]


def weighted(value):
    """A sum in which each element counts differently."""
    if not value.ndim:
        return value
    count = value.numel()
    return (value * (tg.arange(count, dtype=tg.float32) / count + 0.5).reshape(value.shape)).sum()


def program(source, consumer):
    return lambda x, w, b: weighted(CONSUMERS[consumer](SOURCES[source](x, w, b)))


def agree(found, wanted, what, rtol=2e-3):
    """Within what rounding explains; a changed decision changes an element by about its size."""
    for number, (a, b) in enumerate(zip(found, wanted, strict=True)):
        a, b = a.detach().numpy().astype(np.float64), b.detach().numpy().astype(np.float64)
        error = np.abs(a - b).max(initial=0) / (np.abs(b).max(initial=0) + 1e-6)
        assert error < rtol, f"{what}: {error:.2g} off in gradient {number}"


def outside(function, arguments):
    loss = function(*arguments)
    loss.backward()
    return [loss, *(each.grad for each in arguments)]


def inside(function, arguments):
    loss, grads = tg.value_and_grad(function, argnums=(0, 1, 2))(*arguments)
    return [loss, *grads]


def twice(function, arguments):
    """Gradients of what the gradients add up to, each weighted."""
    loss = function(*arguments)
    first = gradient([loss], arguments, create_graph=True)
    total = sum((each * each).sum() for each in first)
    second = gradient([total], arguments, allow_unused=True)
    return [loss, *first, *(each for each in second if each is not None)]


def some(table, number, step):
    """Every `step`-th name of a table, others for another `number`."""
    return list(table)[number % step :: step]


def shapes_of(source, consumer):
    """One of the shapes, another for each pair."""
    name = list(SHAPES)[(list(SOURCES).index(source) + list(CONSUMERS).index(consumer)) % 3]
    return [(name, SHAPES[name])]


def check_outside(source, consumer, shapes):
    for name, shape in shapes:
        function, label = program(source, consumer), f"{source}, {consumer}, {name}"
        wanted = outside(function, inputs(shape, label))
        agree(outside(tg.compile(function), inputs(shape, label)), wanted, label)


@pytest.mark.parametrize("source", rotating(SOURCES, 6))
def test_backward_outside_of_the_compiled_function(source):
    for consumer in some(CONSUMERS, list(SOURCES).index(source), 8):
        check_outside(source, consumer, shapes_of(source, consumer))


@pytest.mark.slow
@pytest.mark.parametrize("source", rotating(SOURCES, 10))
def test_backward_outside_with_all_shapes(source):
    for consumer in some(CONSUMERS, list(SOURCES).index(source), 3):
        check_outside(source, consumer, SHAPES.items())


def test_a_short_layer_norm_in_front_of_an_extreme():
    """The normalised row is computed again, and its extreme must be found."""
    x = np.random.default_rng(0).normal(size=(320, 8)).astype(np.float32)
    grads = []
    for change in (lambda f: f, tg.compile):
        leaf = tg.tensor(x).requires_grad_()
        change(lambda x: F.layer_norm(F.silu(x), (8,)).amax(1).sum())(leaf).backward()
        grads.append(leaf.grad.numpy())
    np.testing.assert_allclose(grads[1], grads[0], atol=1e-5)


@pytest.mark.parametrize("source", rotating(SOURCES, 6))
def test_backward_inside_of_the_compiled_function(source):
    for consumer in some(CONSUMERS, list(SOURCES).index(source) + 1, 9):
        ((name, shape),) = shapes_of(source, consumer)
        function, label = program(source, consumer), f"{source}, {consumer}, {name}"
        given = [each.detach() for each in inputs(shape, label)]
        compiled = tg.compile(lambda *arguments: inside(function, arguments))  # noqa: B023
        agree(compiled(*given), inside(function, given), label)


@pytest.mark.parametrize("source", rotating(SOURCES, 6))
def test_second_gradients(source):
    for consumer in some(CONSUMERS, list(SOURCES).index(source), 14):
        ((name, shape),) = shapes_of(source, consumer)
        function, label = program(source, consumer), f"{source}, {consumer}, {name}"
        wanted = twice(function, inputs(shape, label))
        agree(twice(tg.compile(function), inputs(shape, label)), wanted, label, rtol=1e-2)


@pytest.mark.parametrize("source", SOURCES)
def test_results_agree_among_each_other(source):
    """What a call returns fits together, as it does in eager code."""
    (shape,) = some(SHAPES, list(SOURCES).index(source), 3)

    @tg.compile
    def call(x, w, b):
        y = SOURCES[source](x, w, b)
        return y, y.amax(1), y.amin(0), y.argmax(1), y > y.mean(1, keepdim=True), y * 3 + 1

    with tg.no_grad():
        y, largest, least, place, above, more = call(*inputs(SHAPES[shape], source))
        assert tg.equal(y.amax(1), largest)
        assert tg.equal(y.amin(0), least)
        assert tg.equal(y.gather(1, place[:, None])[:, 0], largest)
        assert tg.equal(y * 3 + 1, more)
        np.testing.assert_allclose(above.numpy().mean(), (y > y.mean(1)[:, None]).numpy().mean())


# --- decisions on nothing but rounding -----------------------------------------------------------

# All of these are zero but for rounding, so any other rounding decides otherwise.
NOISE = {
    "products": lambda x, w, b: (x * w) * b - x * (w * b),
    "sums": lambda x, w, b: (x + w) + b - (x + (w + b)),
    "distributed": lambda x, w, b: x * (w + b) - (x * w + x * b),
    "square": lambda x, w, b: (x + w) * (x + w) - (x * x + 2 * x * w + w * w),
    "exponential": lambda x, w, b: (x + w).exp() - x.exp() * w.exp(),
    "quotient": lambda x, w, b: x / w - x * (1 / w),
    "short sum": lambda x, w, b: (
        (x[:, :4] * w[:4]).sum(1, keepdim=True) * b
        - (x[:, :4] * w[:4] * b[0]).sum(1, keepdim=True) * (b / b[0])
    ),
    "row mean": lambda x, w, b: (
        (x * w).mean(1, keepdim=True) * b
        - (x * (w / 2)).sum(1, keepdim=True) * (b * (2 / x.shape[1]))
    ),
    "column mean": lambda x, w, b: x.mean(0) * w - (x * w).mean(0) + 0 * x,
    "norm": lambda x, w, b: F.normalize(x * w, dim=1).square().sum(1, keepdim=True) - 1 + 0 * x,
}

DECISIONS = {
    "sign": lambda t: t.sign(),
    "above zero": lambda t: (t > 0).to(tg.float32),
    "equal to zero": lambda t: (t == 0).to(tg.float32),
    "floor": lambda t: (t * 1e7).floor(),
    "round": lambda t: (t * 3e7).round(),
    "integers": lambda t: (t * 1e8).to(tg.int64).to(tg.float32),
    "extreme": lambda t: (t == t.amax(1, keepdim=True)).to(tg.float32),
    "position": lambda t: t.argmax(1, keepdim=True) + tg.zeros_like(t),
    "order": lambda t: t.argsort(1).to(tg.float32),
    "above the third": lambda t: (t >= t.topk(3, dim=1).values[:, -1:]).to(tg.float32),
    "quotient": lambda t: (t * 1e7) // 0.7,
    "choice": lambda t: tg.where(t > t.flip(1), 2.0, tg.where(t == t.flip(1), 1.0, 0.5)),
}


def deciding(noise, decision):
    """A function whose gradient with respect to s is the decision that it returns."""

    def function(x, w, b, s):
        t = NOISE[noise](x, w, b)
        d = DECISIONS[decision](t)
        return (d * s).sum() + (t * x).sum(), d

    return function


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("noise", NOISE)
def test_forward_and_backward_decide_alike(noise, shape):
    for decision in some(DECISIONS, list(SHAPES).index(shape) + list(NOISE).index(noise), 9):
        function = deciding(noise, decision)
        x, w, b = inputs(SHAPES[shape], noise)
        s = tg.ones_like(x).requires_grad_()
        compiled = tg.compile(function)

        loss, d = compiled(x, w, b, s)
        loss.backward()
        assert tg.equal(s.grad, d.detach()), (noise, decision, "backward")

        loss, d = compiled(x, w, b, s)
        (grad,) = gradient([loss], [s], create_graph=True)
        assert tg.equal(grad.detach(), d.detach()), (noise, decision, "create_graph")

        both = tg.compile(tg.grad(function, argnums=3, has_aux=True))
        grad, d = both(x.detach(), w.detach(), b.detach(), s.detach())
        assert tg.equal(grad, d), (noise, decision, "inside")


# --- 16-bit floats -------------------------------------------------------------------------------

SHIFTED = {
    "amax": (lambda y: y.amax(1), lambda rows, columns: rows),
    "amin": (lambda y: y.amin(0), lambda rows, columns: columns),
    "extreme of all": (lambda y: y.amax(), lambda rows, columns: 1),
}


@pytest.mark.parametrize("dtype", [tg.float16, tg.bfloat16], ids=str)
@pytest.mark.parametrize("source", rotating(SOURCES, 8))
def test_extremes_of_16_bit_floats_are_found(source, dtype):
    """A shift of all elements moves every extreme by as much, whatever elements those are."""
    for at, (pick, expected) in enumerate(SHIFTED.values()):
        shape = list(SHAPES.values())[(at + list(SOURCES).index(source)) % 3]
        x, w, b = (each.detach().to(dtype) for each in inputs(shape, source))

        def function(x, w, b, shift):
            y = SOURCES[source](x, w, b) + shift.to(dtype)
            return pick(y).to(tg.float32).sum(), (y == y.amax(1, keepdim=True)).any(1)  # noqa: B023

        shift = tg.zeros(1).requires_grad_()
        loss, found = tg.compile(function)(x.requires_grad_(), w, b, shift)
        loss.backward()
        np.testing.assert_allclose(shift.grad.item(), expected(*shape), rtol=0.01)
        assert found.numpy().all()
        grad, found = tg.compile(tg.grad(function, argnums=3, has_aux=True))(
            x.detach(), w, b, shift.detach()
        )
        np.testing.assert_allclose(grad.item(), expected(*shape), rtol=0.01)
        assert found.numpy().all()
