"""Plans with sizes as parameters: what a new size costs, and that its numbers are right."""

import random

import numpy as np
import pytest
from sampling import rotating
from tgraph.compiler.ir import Node, TensorType, input_node
from tgraph.compiler.ir import primitives as p
from tgraph.compiler.ir.dim import SizeScope, size_at
from tgraph.compiler.ir.size_number import RELATIONS, computed, decided
from tgraph.compiler.kernel.lower import Lowering
from tgraph.compiler.plan.arena import Space
from tgraph.compiler.plan.plan_sizes import NotSizedError, PlanSizes, SizedSpace
from tgraph.compiler.plan.size_code import SizeCode, in_words
from tgraph.runtime import jit
from tgraph.runtime.dtypes import float32

import tgraph as tg
from tgraph import nn
from tgraph.compiled import call_writer, graph_function, open_call
from tgraph.compiled.fed import Fed, SizeError

F = nn.functional
FIRST, OTHERS = (160, 70, 250, 97, 201, 129, 180), (100, 67, 203, 131, 182, 243)
"""Sizes about as large: after some of them, what is decided by others is known."""
LAYER = nn.Sequential(nn.Linear(24, 16), nn.ReLU(), nn.LayerNorm(16), nn.Linear(16, 4))


def rows(n, width=24):
    made = np.random.default_rng(n).standard_normal((n, width))
    return tg.from_numpy(made.astype(np.float32))


KEYS = rows(40, 24).view(1, 3, 40, 8)


def training():
    tg.manual_seed(0)
    model = nn.Sequential(nn.Linear(24, 16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 4))
    optimizer = tg.optim.AdamW(model.parameters(), lr=1e-2)

    def step(x):
        optimizer.zero_grad()
        loss = (model(x) ** 2).mean() + x.mean()
        loss.backward()
        optimizer.step()
        return loss, [each.clone() for each in model.parameters()]

    return step


def attention(x):
    heads = x.view(1, x.shape[0], 3, 8).transpose(1, 2)
    seen = tg.arange(40) < 30 + tg.arange(x.shape[0])[:, None] % 9
    masked = F.scaled_dot_product_attention(heads, KEYS, KEYS, attn_mask=seen)
    return F.scaled_dot_product_attention(heads, heads, heads, is_causal=True) + masked


def loops(x):
    """Loops whose turns a size decides, and the values and places of a size as tensors."""
    n = x.shape[0]
    written = tg.zeros(5, 5000)
    written[:, :n] = x[:, 0]
    total = tg.fori_loop(0, n, lambda at, total: total + x[at], tg.zeros(24))
    last = tg.while_loop(
        lambda at, row: at < n, lambda at, row: (at + 5, x[at]), (tg.tensor(n // 2), tg.zeros(24))
    )
    turned = tg.fori_loop(n, tg.tensor(n + 3), lambda at, x: x.flip(0) / at, x)
    return written, total, *last, tg.as_tensor(n, dtype=tg.float64), turned


def recurrence(x, inner, outer):
    """An LSTM over x of (length, batch, features)."""

    def turn(state, now):
        hidden, cell = state
        forget, new, shown = (now @ inner + hidden @ outer).chunk(3, -1)
        cell = tg.sigmoid(forget) * cell + tg.tanh(new)
        hidden = tg.sigmoid(shown) * tg.tanh(cell)
        return (hidden, cell), hidden

    start = tg.zeros(x.shape[1], outer.shape[0])
    (hidden, cell), all_hidden = tg.scan(turn, (start, start), x)
    return (all_hidden**2).mean() + (hidden * cell).sum()


def self_attention(x, inner, outer):
    """Of x of (batch, length, features), in two heads."""
    batch, length, _ = x.shape
    query, key, value = (
        each.reshape(batch, length, 2, -1).transpose(1, 2) for each in (x @ inner).chunk(3, -1)
    )
    seen = F.scaled_dot_product_attention(query, key, value, is_causal=True)
    return ((seen.transpose(1, 2).reshape(batch, length, -1) @ outer) ** 2).mean()


def step_of(loss_of, width, shaped):
    """A training step, with what `shaped` makes of rows."""
    tg.manual_seed(0)
    weights = [nn.Parameter(tg.randn(width, 24) / 4), nn.Parameter(tg.randn(8, 24) / 4)]
    optimizer = tg.optim.Adam(weights, lr=1e-2)

    def step(x):
        optimizer.zero_grad()
        loss = loss_of(shaped(x), *weights)
        loss.backward()
        optimizer.step()
        return loss, [each.clone() for each in weights]

    return step


def gradients(function):
    def call(x):
        x = x.clone().requires_grad_()
        result = function(x)
        (result * result).sum().backward()
        return result.detach(), x.grad

    return call


# A function, and what is called in its place.
FUNCTIONS = {
    "elementwise": lambda: lambda x: (x * 2 + 1).tanh(),
    "softmax": lambda: lambda x: tg.softmax(x, -1) / x.shape[0],
    "rows": lambda: lambda x: (x.sum(1), x.amax(1), x.argmax(1)),
    "columns": lambda: lambda x: (x.sum(0), x.mean(0), x.cumsum(0)),
    "all": lambda: lambda x: (x.sum(), (x * x).mean(), x.var()),
    "products": lambda: lambda x: (x @ x.t(), x.t() @ x),
    "pieces": lambda: lambda x: tg.cat([x[1:] * 2, x[: x.shape[0] // 2], x[::2]]),
    "random": lambda: lambda x: F.dropout(x, 0.5) + tg.rand(x.shape[0], 1),
    "positions": lambda: lambda x: x[tg.arange(x.shape[0]).flip(0)] + x.sort(0)[0],
    "views": lambda: lambda x: (x[1:], x.t(), x.view(-1), x.shape, x.shape[0] * 2),
    "attention": lambda: attention,
    "loops": lambda: loops,
    "layers": lambda: LAYER,
    "training": training,
    "training: a long scan": lambda: step_of(recurrence, 6, lambda x: x.view(x.shape[0], 4, 6)),
    "training: a wide scan": lambda: step_of(
        recurrence, 6, lambda x: x.view(x.shape[0], 4, 6).transpose(0, 1)
    ),
    "training: attention": lambda: step_of(
        self_attention, 8, lambda x: x.view(x.shape[0], 3, 8).transpose(0, 1)
    ),
}
OUTSIDE = ("softmax", "elementwise", "layers")
"""Of these also gradients are asked for outside of the call."""
NAMES = [*FUNCTIONS, *(f"gradients of {name}" for name in OUTSIDE)]
COMPILED = (
    (Lowering, "run"),
    (jit, "make_objects"),
    (graph_function, "compile_graph"),
    (open_call, "call_at"),
    (call_writer.CallWriter, "write"),
)
"""What compiles, and what a plan of its own for a size would need."""


def made(name):
    """The function called `name`, compiled for all numbers of rows, and how it is called."""
    of_gradients = name.startswith("gradients of ")
    function = FUNCTIONS[name.removeprefix("gradients of ")]()
    argument = "input" if isinstance(function, nn.Module) else "x"
    compiled = tg.compile(function, dynamic={argument: 0})
    return compiled, gradients(compiled) if of_gradients else compiled


def found(call, n):
    tg.manual_seed(n)
    leaves = tg.pytree.leaves(call(rows(n)))
    return [
        each.detach().numpy().copy() if isinstance(each, tg.Tensor) else each for each in leaves
    ]


@pytest.mark.parametrize("name", rotating(NAMES, 5))
def test_nothing_is_compiled_for_another_size(name, monkeypatch):
    compiled, call = made(name)
    for n in FIRST:
        found(call, n)
    seen = []
    for place, function in COMPILED:
        monkeypatch.setattr(place, function, _counted(getattr(place, function), seen, function))
    for n in OTHERS:
        found(call, n)
    assert not seen
    monkeypatch.undo()
    assert any(each.startswith("one plan where n is ") for each in compiled.explain(rows(9)).sizes)


@pytest.mark.parametrize("loss_of", [recurrence, self_attention])
def test_two_sizes_at_once(loss_of):
    """Those of a sum of everything among them, whose pieces depend on both."""
    weights = tg.randn(8, 24), tg.randn(8, 24)

    def value_and_gradient(x):
        loss = loss_of(x, *weights)
        return loss, tg.autograd.grad(loss, [x])[0]

    compiled = tg.compile(value_and_gradient, dynamic={"x": (0, 1)})
    for n, m in ((20, 177), (37, 195), (64, 188), (3, 2)):
        x = tg.randn(n, m, 8, requires_grad=True)
        for have, want in zip(compiled(x), value_and_gradient(x), strict=True):
            np.testing.assert_allclose(have.detach(), want.detach(), rtol=2e-5, atol=2e-5)
    told = compiled.explain(x).sizes
    assert len(compiled.compiles) == 1 and not any("each size" in each for each in told), told


def _counted(plain, seen, name):
    def counted(*args, **kwargs):
        seen.append(name)
        return plain(*args, **kwargs)

    return counted


@pytest.mark.parametrize("name", rotating(NAMES, 5))
def test_a_size_has_its_numbers_whatever_came_before(name):
    """A function that comes to a size by others has the bits of one that begins with it."""
    if name.startswith("training"):
        pytest.skip("training continues from the step before, so a fresh start differs")
    _, call = made(name)
    sizes = [*random.Random(name).sample(range(2, 1100), 2), 5000, 1, 0, 16, 65]
    for n in sizes:
        if n < 2 and "all" in name:  # no variance
            continue
        _, fresh = made(name)
        for have, want in zip(found(call, n), found(fresh, n), strict=True):
            np.testing.assert_array_equal(have, want, strict=isinstance(have, np.ndarray))


@pytest.mark.parametrize("name", ["rows", "columns", "all", "softmax", "layers"])
def test_few_compilations_serve_small_sizes(name):
    """Of short axes nothing is written out, where they are open."""
    compiled, call = made(name)
    for n in range(2, 34):
        found(call, n)
    told = [each for each in compiled.explain(rows(9)).sizes if each.startswith("one plan")]
    assert len(told) <= 8, told


ALONE = ("elementwise", "softmax", "rows", "products", "pieces", "random", "positions", "layers")


@pytest.mark.parametrize("name", ALONE)
def test_numbers_are_those_of_a_function_for_that_size_alone(name):
    compiled, call = made(name)
    for n in (37, *random.Random(name).sample(range(2, 600), 5)):
        alone = tg.compile(compiled.function)
        for have, want in zip(found(call, n), found(alone, n), strict=True):
            np.testing.assert_array_equal(have, want)


def test_what_cannot_have_sizes_is_told_with_its_line():
    def inverse(x):
        return tg.linalg.inv(x.t() @ x + tg.eye(24))

    compiled = tg.compile(inverse, dynamic={"x": 0})
    for n in (20, 30):
        np.testing.assert_array_equal(compiled(rows(n)).numpy(), inverse(rows(n)).numpy())
    line = inverse.__code__.co_firstlineno + 1
    (told,) = [each for each in compiled.explain(rows(20)).sizes if "each size" in each]
    assert told.startswith("a plan for each size: LAPACK is called (") and f"py:{line}" in told


def test_memory_of_captured_tensors_may_be_new_when_a_size_is():
    bias = tg.zeros(24)
    compiled = tg.compile(lambda x: x + bias, dynamic={"x": 0})
    for value, n in enumerate(OTHERS):
        bias.data = tg.full((24,), float(value))
        np.testing.assert_array_equal(compiled(rows(n)).numpy(), rows(n).numpy() + value)
    assert len(compiled.compiles) == 1


def test_a_plan_that_was_dropped_runs_no_more(monkeypatch):
    """Where there are too many, and the last call ran the one that goes."""
    monkeypatch.setattr(open_call, "MAX_SIZES", 1)
    compiled = tg.compile(lambda x: x * 2 + 1, dynamic={"x": 0})
    for _ in range(2):
        compiled(rows(160))
    (plans,) = compiled._flat[1]
    for n in (160, 129):  # whoever asks, and without a call
        plans.at((rows(n),))
        assert plans.sizes == [(n,)]
    np.testing.assert_array_equal(compiled(rows(160)).numpy(), rows(160).numpy() * 2 + 1)
    assert plans.sizes == [(160,)]


def test_a_result_that_has_another_shape_at_some_size_is_refused():
    scope = SizeScope()
    x = input_node("x", TensorType((scope.new("n", 8),), float32))
    (dim,) = scope.dims
    traced = Node(p.add, (x, x), {}, TensorType((8,), float32), x.where)
    (found,) = Fed({}, {dim: 8}).apply([traced])
    assert found.type.shape == (8,)
    with pytest.raises(SizeError, match="add at "):
        Fed({}, {dim: 9}).apply([traced])


# --- sizes ---------------------------------------------------------------------------------------


def test_numbers_are_computed_as_python_computes_them():
    """Random expressions, whose answers at other sizes are those that their questions allow."""
    pick = random.Random(0)
    for _ in range(30):
        n, seed = pick.randrange(2, 64), pick.random()
        sizes = PlanSizes()
        results = _walk(random.Random(seed), sizes.new("n", n))
        code = SizeCode(sizes.dims)
        code.ask(sizes)
        at = code.giving(tuple(results))
        held = [each for each in range(64) if _tried(at, each) is not None]
        assert n in held
        for each in held:
            assert at(each) == tuple(_walk(random.Random(seed), each)), (seed, n, each)


def _tried(at, size):
    try:
        return at(size)
    except ArithmeticError:
        return None


OPERATIONS = (
    lambda a, b, _: a + b,
    lambda a, b, _: a - b,
    lambda a, b, _: a * 3 - b,
    lambda a, b, _: (a * a) // 7,
    lambda a, b, _: a % 5,
    lambda a, b, _: max(a, b),
    lambda a, b, _: 600 // max(1, abs(b)),
    lambda a, b, _: computed(divmod_sum, a, 8),
    lambda a, b, holds: a if holds(a, b) else -b,
    lambda a, b, _: divmod(a, 4)[1] + (1 if b else 2),
)


def _walk(pick, n):
    """Numbers made of n, by ways that depend on it."""
    values = [n, 3, n * 2 - 5]
    for _ in range(12):
        relation = RELATIONS[pick.choice(sorted(RELATIONS))]
        operation = pick.choice(OPERATIONS)
        values.append(operation(pick.choice(values), pick.choice(values), relation))
    return values


def divmod_sum(a, b):
    return sum(divmod(a, b))


def test_prices_are_judged_alike_for_sizes_about_as_large():
    answers = set()
    for hint in (17, 33, 64):
        sizes = PlanSizes()
        n = sizes.new("n", hint)
        answers.add(0.5 * n > 16.5)
        assert not sizes.questions
        assert in_words(sizes) == "n is 0 to 64"
    assert answers == {False}
    sizes = PlanSizes()
    assert 0.5 * sizes.new("n", 65) > 16.5
    assert in_words(sizes) == "n is 65 to 4096 and larger"


def test_what_is_decided_holds_where_the_decision_is_the_same():
    """Whatever is compared on the way to it."""
    sizes = PlanSizes()
    assert decided(_nearest, sizes.new("n", 100)) == 90
    assert in_words(sizes) == "n is 65 to 1024"  # by 128 and 512; 32 is nearer to 10
    assert not sizes.questions


def _nearest(n):
    return min((10, 90, 1000), key=lambda each: abs(each - n))


def test_an_arena_is_laid_out_as_where_sizes_are_known():
    sizes = PlanSizes()
    n = sizes.new("n", 30)
    space = SizedSpace(sizes, 64, 0)
    plan = [("take", n * 4), ("take", 100), ("give", 0), ("take", n), ("give", 1), ("take", n * 9)]
    taken = []
    for what, given in plan:
        if what == "take":
            taken.append(space.take(given))
        else:
            space.give_back(*taken[given])
    (dim,) = n.dims
    for size in (20, 31, 64):
        known, places = Space(64, 0), []
        for what, given in plan:
            if what == "take":
                places.append(known.take(size_at(given, {dim: size})))
            else:
                known.give_back(*places[given])
        nbytes = [size_at(each, {dim: size}) for each in space.taken]
        assert space.laid_out(nbytes) == [known.size, *(start for start, _ in places)]
    with pytest.raises(NotSizedError, match="where values lie in the arena"):
        bool(taken[0][0] == taken[1][0])


def test_large_arenas_are_handed_on():
    """From a call to the next one at whatever size, so that memory is not taken anew each time."""
    weights = rows(512, 512)
    compiled = tg.compile(lambda x: F.relu(tg.softmax(x @ weights, -1)) @ weights, dynamic={"x": 0})
    spares = {}
    for n in (600, 700, 650, 700, 600):
        x = rows(n, 512)
        np.testing.assert_allclose(compiled(x), compiled.function(x), rtol=1e-4, atol=1e-4)
        (plan,) = compiled._flat[1]
        native = plan.at((x,)).function.executable.plan
        assert native.arena_bytes > 1 << 20
        (arena,) = native.spare
        spares.setdefault(id(native.spare), []).append(arena.ctypes.data)
    assert len(spares) == 1  # one plan serves them all
    (addresses,) = spares.values()
    assert len(set(addresses[1:])) == 1  # the second one needed more
