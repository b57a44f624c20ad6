"""Sizes that vary: one trace for all of them, and right results at every one.

What a size gives is held to eager code, and to a function compiled for that size alone: to the last
bit, but for sums along an open axis, which may be added up in another order.
"""

import random
import re

import numpy as np
import pytest
from opcases import CASES
from sampling import rotating
from test_ops import as_tuple, ids

import tgraph as tg
from tgraph import nn
from tgraph.core.trace_state import RecompileWarning

F = nn.functional
SIZES = (7, 0, 1, 2, 3, 8, 64, 1000)
FEW = (4, 0, 1, 2, 7, 33)
PLACES = tg.randint(0, 8, (9,))


def rows(n, *shape):
    made = np.random.default_rng(n).standard_normal((n, *(shape or (8,))))
    return tg.from_numpy(made.astype(np.float32))


def labels(n):
    return tg.from_numpy(np.random.default_rng(n + 1).integers(0, 8, n))


def weights():
    return tg.from_numpy(np.linspace(-1, 1, 24, dtype=np.float32).reshape(8, 3))


W = weights()
IMAGES = (lambda n: rows(n, 3, 6, 6),)

# A function, what makes its arguments of a size, and the sizes that one trace serves.
ONE_TRACE = {
    "elementwise": (lambda x: x * 2 + 1, (rows,), SIZES),
    "broadcast": (lambda x: x - tg.ones(1, 8) * tg.ones(8), (rows,), SIZES),
    "outer": (lambda x: x[:, None] - x[None, :], (rows,), FEW),
    "softmax": (lambda x: tg.softmax(x, dim=-1), (rows,), SIZES),
    "mean": (lambda x: x.mean(0), (rows,), SIZES),
    "mean by hand": (lambda x: x.sum(0) / len(x), (rows,), SIZES),
    "number of rows": (lambda x: x.sum() * int(x.size(0)) - x.shape[0] / 4, (rows,), SIZES),
    "normalised": (lambda x: x - x.mean(0, keepdim=True), (rows,), SIZES),
    "batch norm": (lambda x: F.batch_norm(x, None, None, training=True), IMAGES, FEW[:1] + FEW[2:]),
    "layer norm": (lambda x: F.layer_norm(x, (8,)), (rows,), SIZES),
    "product": (lambda x: x @ W, (rows,), SIZES),
    "product of batches": (lambda x: x @ W, (lambda n: rows(n, 5, 8),), FEW),
    "rows by rows": (lambda x: x @ x.t(), (rows,), FEW),
    "columns by columns": (lambda x: x.t() @ x, (rows,), SIZES),
    "attention": (
        lambda x: F.scaled_dot_product_attention(x, x, x), (lambda n: rows(n, 2, 5, 8),), FEW,
    ),
    "conv": (lambda x: F.conv2d(x, tg.ones(4, 3, 3, 3), padding=1), IMAGES, FEW),
    "max pool": (lambda x: F.max_pool2d(x, 2), IMAGES, FEW),
    "flatten": (lambda x: x.flatten(1) @ tg.ones(108, 2), IMAGES, FEW),
    "reshape": (lambda x: x.reshape(-1, 4) * 3, (rows,), SIZES),
    "reshape by size": (lambda x: x.view(x.shape[0] * 2, 4).sum(1), (rows,), SIZES),
    "first half": (lambda x: x[: x.shape[0] // 2], (rows,), SIZES),
    "views": (lambda x: (x.t(), x.unsqueeze(1).squeeze(1), x[..., ::2]), (rows,), SIZES),
    "cat": (lambda x: tg.cat([x, x * 2]), (rows,), SIZES),
    "stack": (lambda x: tg.stack([x, x * 2]), (rows,), SIZES),
    "arange": (lambda x: x[tg.arange(x.shape[0])] + tg.arange(len(x))[:, None], (rows,), SIZES),
    "made here": (lambda x: tg.ones(x.shape[0], 3) @ W.t() + tg.zeros_like(x), (rows,), SIZES),
    "embedding": (lambda i: W[i], (labels,), SIZES),
    "cross entropy": (lambda x, i: F.cross_entropy(x, i), (rows, labels), SIZES),
    "cumsum": (lambda x: x.cumsum(0), (rows,), SIZES),
    "sort": (lambda x: x.sort(0), (rows,), FEW),
    "topk": (lambda x: x.topk(3, 1), (rows,), FEW),
    "triangle": (lambda x: (x @ x.t()).tril(), (rows,), FEW),
    "diagonal": (lambda x: (x @ x.t()).diagonal() * 2, (rows,), (4, 1, 2, 7, 33)),
    "flip": (lambda x: x.flip(0), (rows,), SIZES),
    "in place": (lambda x: x.clone().add_(1).mul_(x), (rows,), SIZES),
    "dropout": (lambda x: F.dropout(x, 0.5), (rows,), SIZES),
    "random": (lambda x: tg.rand(x.shape[0]) + tg.randn(*x.shape)[:, 0], (rows,), SIZES),
    "shapes": (lambda x: (x.shape, x.shape[0] * 2, {"half": x.shape[0] / 2}), (rows,), SIZES),
}  # fmt: skip


def axes(makers):
    return dict.fromkeys(("x", "i") if len(makers) > 1 else ("x",), 0)


def outcome(function, arguments, seed=3):
    tg.manual_seed(seed)
    return tg.pytree.leaves(function(*arguments))


def assert_same(found, wanted, exact):
    assert len(found) == len(wanted)
    for have, want in zip(found, wanted, strict=True):
        if not isinstance(want, tg.Tensor):
            assert type(have) is type(want) and have == want
            continue
        assert have.shape == want.shape and have.dtype is want.dtype
        a, b = have.detach().numpy(), want.detach().numpy()
        if exact:
            np.testing.assert_array_equal(a, b)
        else:
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)


def assert_nearly_same(found, wanted):
    """But for the last bits of floats."""
    assert_same(found, wanted, exact=False)
    for have, want in zip(found, wanted, strict=True):
        is_float = isinstance(want, tg.Tensor) and want.dtype.is_floating_point
        if not is_float:
            assert_same([have], [want], exact=True)
        elif want.numel():
            a, b = have.detach().numpy(), want.detach().numpy()
            most = np.nanmax(np.where(np.isfinite(b), np.abs(b), 0))
            np.testing.assert_allclose(a, b, rtol=4e-6, atol=4e-6 * max(most, 1))


@pytest.mark.parametrize("name", ONE_TRACE)
def test_one_trace_serves_all_sizes(name):
    function, makers, sizes = ONE_TRACE[name]
    names = function.__code__.co_varnames[: len(makers)]
    compiled = tg.compile(function, dynamic=dict.fromkeys(names, 0))
    for n in (*sizes, sizes[0]):
        arguments = [make(n) for make in makers]
        found = outcome(compiled, arguments)
        assert_same(found, outcome(function, arguments), exact=False)
        assert_nearly_same(found, outcome(tg.compile(function), arguments))
    assert len(compiled.compiles) == 1, compiled.compiles


def test_any_axis_and_several():
    both = tg.compile(lambda x: tg.softmax(x, 1) @ x.t(), dynamic={"x": (0, -1)})
    for n, m in ((3, 4), (4, 3), (5, 5), (1, 6), (2, 1)):
        assert_same([both(rows(n, m))], [both.function(rows(n, m))], exact=False)
    assert [record.reason for record in both.compiles] == [
        "first call; `x.shape[0]` is any size n; `x.shape[1]` is any size m"
    ]


def test_sizes_that_are_equal_are_one_until_they_differ():
    outer = tg.compile(lambda x, y: x[:, None] * y, dynamic={"x": 0, "y": 0})
    for n, m in ((4, 4), (5, 5), (3, 7), (6, 6), (1, 4), (7, 3)):
        assert outer(tg.ones(n), tg.ones(m)).shape == (n, m)
    assert [record.reason.partition(";")[0] for record in outer.compiles] == [
        "first call", "sizes differ that were equal: x.shape[0] is 3, y.shape[0] 7",
    ]  # fmt: skip


# --- training ------------------------------------------------------------------------------------


def training(dynamic):
    tg.manual_seed(0)
    model = nn.Sequential(
        nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 8)
    )
    # Gradients that are nothing but rounding, as of a bias in front of a norm, make no step.
    optimizer = tg.optim.Adam(model.parameters(), lr=1e-2, eps=1e-3)

    def step(x, y):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss

    return model, tg.compile(step, dynamic=dynamic)


def test_training_step_with_a_last_smaller_batch():
    model, step = training({"x": 0, "y": 0})
    twin, alone = training(None)
    for at, n in enumerate((32, 32, 5, 32, 2, 100, 5)):
        tg.manual_seed(at)
        found = step(rows(n), labels(n))
        tg.manual_seed(at)
        # Sums along the batch may have another order where its size is known.
        assert_same([found], [alone(rows(n), labels(n))], exact=False)
        state = [*model.parameters(), *model.buffers()]
        assert_same(state, [*twin.parameters(), *twin.buffers()], exact=False)
    assert len(step.compiles) == 1 and len(alone.compiles) == 4


@pytest.mark.parametrize("n", [3, 0, 1, 9])
def test_gradients_outside_of_the_call(n):
    model = nn.Sequential(nn.Linear(8, 4), nn.Tanh(), nn.LayerNorm(4))
    compiled = tg.compile(lambda x: model(x) * x.shape[0], dynamic={"x": 0})
    compiled(rows(5).requires_grad_())
    found = []
    for function in (compiled, tg.compile(compiled)):
        x = rows(n).requires_grad_()
        model.zero_grad()
        (function(x) ** 2).sum().backward()
        found.append([x.grad, *(each.grad.clone() for each in model.parameters())])
    assert_nearly_same(*found)
    assert len(compiled.compiles) == 1


def test_gradients_of_gradients():
    compiled = tg.compile(lambda x: (x**3).sum(0) * x.shape[0], dynamic={"x": 0})

    def second(function, x):
        (first,) = tg.autograd.grad(function(x).sum(), x, create_graph=True)
        return tg.autograd.grad((first**2).sum(), x)

    for n in (4, 1, 0, 6):
        x = rows(n).requires_grad_()
        assert_same(second(compiled, x), second(compiled.function, x), exact=False)
    assert len(compiled.compiles) == 1


def test_the_gradient_of_an_argument_is_read_and_left():
    def accumulated(x):
        (x * x).sum().backward()
        return x.grad * 1

    compiled = tg.compile(accumulated, dynamic={"x": 0})
    for n in (4, 1, 2, 9):
        x = rows(n).requires_grad_()
        for times in (2, 4):  # without a gradient, and with one
            assert_same([compiled(x), x.grad], [x.detach() * times] * 2, exact=False)
    # One row lies in memory as its gradient, which one number fills, may lie: a trace of its own.
    assert len(compiled.compiles) == 3


# --- effects -------------------------------------------------------------------------------------


def test_arguments_are_written_and_views_of_them_returned():
    def change(x):
        x[:, 0].add_(1)
        return x[1:], x.t()

    compiled = tg.compile(change, dynamic={"x": 0})
    for n in (4, 1, 2, 9):
        mine, other = rows(n), rows(n)
        found, wanted = compiled(mine), change(other)
        assert_same([mine, *found], [other, *wanted], exact=False)
        found[1].mul_(2)
        assert_same([mine], [other * 2], exact=False)
    assert len(compiled.compiles) == 2  # one row cannot overlap itself


def test_numbers_that_change_beside_sizes():
    compiled = tg.compile(
        lambda x, k: (x * (k * x.shape[0]) + k / x.shape[0], x.shape[0] + k), dynamic={"x": 0}
    )
    for n, k in ((3, 1.0), (3, 2.0), (4, 2.0), (4, 3.0), (1, 4.0), (9, 5.0)):
        found, wanted = compiled(rows(n), k), compiled.function(rows(n), k)
        assert_same(found, wanted, exact=False)
    assert len(compiled.compiles) == 2  # once `k` is an input
    with pytest.raises(ZeroDivisionError):
        compiled(rows(0), 1.0)


class Holder:
    pass


def test_sizes_written_into_python_objects():
    holder = Holder()

    def note(x):
        holder.size, holder.shape = x.shape[0], x.shape
        holder.found = [x.shape[0] + 1, {"half": x.shape[0] / 2}]
        return x + 1

    compiled = tg.compile(note, dynamic={"x": 0})
    for n in (4, 1, 2):
        compiled(rows(n))
        assert (holder.size, holder.shape, holder.found) == (n, (n, 8), [n + 1, {"half": n / 2}])
        assert type(holder.size) is int and type(holder.shape) is tg.Size
    assert len(compiled.compiles) == 1


def test_captured_tensors_may_get_new_memory():
    bias = tg.zeros(8)
    compiled = tg.compile(lambda x: x + bias, dynamic={"x": 0})
    for n, value in ((3, 0.0), (4, 0.0), (3, 1.0), (4, 1.0)):
        bias.data = tg.full((8,), value)
        assert_same([compiled(rows(n))], [rows(n) + value], exact=False)


# --- what sizes a trace holds for ----------------------------------------------------------------


def test_a_branch_makes_a_trace_for_each_side():
    compiled = tg.compile(lambda x: x + 1 if x.shape[0] > 5 else x - 1, dynamic={"x": 0})
    for n in (7, 3, 64, 0, 5, 6):
        assert_same([compiled(rows(n))], [compiled.function(rows(n))], exact=True)
    assert len(compiled.compiles) == 2
    assert re.fullmatch(
        r"where n > 5 \(.*test_dynamic.py:\d+\)", compiled.explain(rows(9)).sizes[1]
    )


def test_a_size_that_is_equal_to_a_number_by_accident_is_no_rule():
    """The square is not taken for one of sizes that are always equal; nor is 1 for a broadcast."""
    compiled = tg.compile(lambda x: x * tg.ones(8, 8) if x.shape[0] == 8 else x, dynamic={"x": 0})
    for n in (8, 7, 1, 8, 9):
        assert_same([compiled(rows(n))], [rows(n)], exact=True)
    assert len(compiled.compiles) == 2


def test_only_divisible_sizes():
    compiled = tg.compile(lambda x: x.reshape(-1, 4).sum(1), dynamic={"x": 0})
    for n in (8, 4, 12, 0):
        assert_same([compiled(tg.ones(n))], [tg.full((n // 4,), 4.0)], exact=True)
    assert len(compiled.compiles) == 1
    for function in (compiled, compiled.function):
        with pytest.raises(RuntimeError, match=r"shape '\[-1, 4\]' is invalid for input of size 7"):
            function(tg.ones(7))
    assert_same([compiled(tg.ones(16))], [tg.full((4,), 4.0)], exact=True)
    assert len(compiled.compiles) == 1


def test_other_changes_of_the_arguments_are_told_as_before():
    compiled = tg.compile(lambda x: x * 2, dynamic={"x": 0})
    compiled(rows(3))
    compiled(rows(3, 9))
    compiled(rows(5, 9).to(tg.float64))
    assert [record.reason.partition(";")[0] for record in compiled.compiles[1:]] == [
        "new shape of argument `x`: float32[n, 8] -> float32[n, 9]",
        "new dtype of argument `x`: float32[n, 9] -> float64[n, 9]",
    ]


def test_one_tensor_as_two_arguments():
    """That two are one now is no difference where nothing is written, whatever the plan is for."""
    compiled = tg.compile(lambda x, y: x[:2].sum(0) - y, dynamic={"x": (0, 1), "y": (0, 1)})
    first = [rows(8, 5), rows(3, 5)[:1].expand(8, 5).clone()]
    for width in (5, 1, 3):
        x, y = (each[:, :width].clone() for each in first)
        for second in (y, x) if width == 5 else (x, y):
            assert_same([compiled(x, second)], [x[:2].sum(0) - second], exact=False)
    compiled.assert_compiles(1)


def test_strided_arguments():
    compiled = tg.compile(lambda x: x.cumsum(0) * 2, dynamic={"x": 0})
    for n in (5, 1, 0, 6):
        for x in (rows(n, 16)[:, ::2], rows(8, n).t(), rows(2 * n)[::2]):
            assert_same([compiled(x)], [compiled.function(x)], exact=False)


# --- what cannot be left open --------------------------------------------------------------------

TABLE = {3: 1.0, 4: 2.0}
FIXED = {
    "range": (lambda x: sum(x[i].sum() for i in range(x.shape[0])), "__index__"),
    "float": (lambda x: x * float(x.shape[0]), "__float__"),
    "text": (lambda x: (x, f"{x.shape[0]}"), "__format__"),
    "the text of a shape": (lambda x: (x, f"{x.shape}"), "__repr__"),
    "a table": (lambda x: x * TABLE.get(x.shape[0], 0.0), "a look-up"),
    "NumPy": (lambda x: x + tg.from_numpy(np.ones(x.shape, np.float32)), "__index__"),
}


@pytest.mark.parametrize("name", FIXED)
@pytest.mark.filterwarnings("ignore::tgraph.core.trace_state.RecompileWarning")
def test_what_fixes_a_size_is_told_with_its_line(name):
    function, asked = FIXED[name]
    compiled = tg.compile(function, dynamic={"x": 0})
    for n in (3, 4, 3):
        assert_same(outcome(compiled, [rows(n)]), outcome(function, [rows(n)]), exact=False)
    assert len(compiled.compiles) == 2
    told = compiled.explain(rows(3))
    line = function.__code__.co_firstlineno
    assert told.sizes[0].startswith(f"x.shape[0] is fixed to 3: {asked} asks for the value of n at")
    assert f"test_dynamic.py:{line}" in told.sizes[0] or name == "NumPy"
    assert told.sizes[0] in str(told)


def test_sizes_that_must_be_the_same_as_others():
    compiled = tg.compile(lambda x: x * tg.ones(7, 1), dynamic={"x": 0})
    for n in (7, 1, 7):
        assert compiled(rows(n)).shape == (7, 8)
    assert "x.shape[0] is fixed to 7: n == 7 has to hold at" in compiled.explain(rows(7)).sizes[0]
    with pytest.raises(RuntimeError, match=r"tensor a \(5\) must match"):
        compiled(rows(5))


def test_a_warning_of_many_traces_names_the_way_out():
    compiled = tg.compile(lambda x: x + 1)
    with pytest.warns(RecompileWarning, match=r"dynamic=\{\.\.\.\}"):
        for n in range(2, 12):
            compiled(rows(n))


def test_a_size_kept_by_the_function_is_the_number_of_the_call():
    kept = []

    def keep(x):
        kept.append(x.shape[0])
        return x

    tg.compile(keep, dynamic={"x": 0})(rows(3))
    assert kept == [3] and type(kept[0]) is int


# --- the arguments of compile --------------------------------------------------------------------


def test_names_and_axes_are_checked():
    def f(x, y):
        return x + y

    with pytest.raises(
        ValueError, match="dynamic names `z`, which is no argument of f; it has `x`"
    ):
        tg.compile(f, dynamic={"z": 0})
    with pytest.raises(TypeError, match=r"dynamic\['x'\] must be an axis or several"):
        tg.compile(f, dynamic={"x": "0"})
    message = (
        r"dynamic names axis 2 of argument `x`, which has the shape \[2, 3\]; name one from -2"
    )
    with pytest.raises(IndexError, match=message):
        tg.compile(f, dynamic={"x": 2})(tg.ones(2, 3), 1.0)
    with pytest.raises(IndexError, match="it has no axes: leave it out"):
        tg.compile(f, dynamic={"x": 0})(tg.ones(()), 1.0)


def test_tensors_in_containers_methods_modules_and_decorators():
    @tg.compile(dynamic={"batch['image']": 0, "scale": 0})
    def inner(batch, scale=None):
        return batch["image"] * 2 if scale is None else batch["image"] * scale

    class Model(nn.Module):
        @tg.compile(dynamic={"x": 0})
        def forward(self, x):
            return x @ W

    model, module = Model(), tg.compile(nn.Linear(8, 2), dynamic={"input": 0})
    for n in (3, 1, 5):
        assert_same([inner({"image": rows(n)})], [rows(n) * 2], exact=True)
        assert_same([model(rows(n))], [rows(n) @ W], exact=False)
        assert module(rows(n)).shape == (n, 2)
    assert (
        len(inner.compiles)
        == len(module.compiles)
        == len(Model.forward.__get__(model).compiles)
        == 1
    )


def test_checked_calls():
    compiled = tg.compile(lambda x: tg.softmax(x, 0).sum(1), check=True, dynamic={"x": 0})
    for n in (3, 5, 2):
        compiled(rows(n))
    assert len(compiled.compiles) == 1


def test_only_so_many_sizes_are_kept():
    compiled = tg.compile(lambda x: x + 1, dynamic={"x": 0})
    for n in range(70):
        compiled(tg.ones(n))
    (plans,) = compiled._plans.values()
    assert len(plans) == 1 and plans[0].sizes == [(n,) for n in range(6, 70)]
    assert_same([compiled(tg.ones(2))], [tg.full((2,), 2.0)], exact=True)


# --- random programs -----------------------------------------------------------------------------


def batched(pick, tensors, n):
    """A random tensor of n rows from others."""
    x, y = pick.choice(tensors), pick.choice(tensors)
    return pick.choice(
        [
            lambda: x * 0.5 + y.mean(0),
            lambda: tg.softmax(x, pick.randrange(2)) - y,
            lambda: (x @ W) @ W.t(),
            lambda: tg.where(x > y, x, y * 0.1),
            lambda: x - x.amax(1, keepdim=True),
            lambda: x.cumsum(0).tanh() + x.sum() / max(n, 1),
            lambda: tg.cat([x, y], 1)[:, 4:12],
            lambda: tg.cat([x, y])[n:] if n else x,
            lambda: x.reshape(-1, 4).sum(1).reshape(n, 2).repeat_interleave(4, 1),
            lambda: x.flip(0) * tg.arange(n).unsqueeze(1),
            lambda: x[tg.arange(n)] + F.layer_norm(y, (8,)),
            lambda: x.clone().mul_(y.sigmoid()).add_(tg.rand(n, 1)),
            lambda: x.t().reshape(8, n).t().contiguous(),
            lambda: (x @ y.t() / (n + 1)) @ y,
            lambda: F.pad(x[: n // 2], (0, 0, 0, n - n // 2)),
        ]
    )()


def random_program(seed):
    def run(x, y):
        pick, tensors = random.Random(seed), [x, y]
        for _ in range(pick.randrange(3, 9)):
            tensors.append(batched(pick, tensors, x.shape[0]))
        return sum((each * each).sum() for each in tensors[2:]), tensors[-1]

    return run


def with_gradients(function, n):
    tg.manual_seed(n)
    x, y = rows(n).requires_grad_(), rows(n + 1)[:n].requires_grad_()
    loss, last = function(x, y)
    loss.backward()
    return [loss, last, x.grad, y.grad]


@pytest.mark.parametrize("seed", range(4))
def test_random_programs(seed):
    check_program(seed)


@pytest.mark.slow
@pytest.mark.parametrize("chunk", rotating(range(10), 5))
def test_many_random_programs(chunk):
    for seed in range(100 + chunk, 120, 10):
        check_program(seed)


def check_program(seed):
    function = random_program(seed)
    compiled = tg.compile(function, dynamic={"x": 0, "y": 0})
    for n in (5, 1, 0, 6):
        found = with_gradients(compiled, n)
        wanted = with_gradients(tg.compile(function), n)
        for have, want in zip(found, wanted, strict=True):
            assert (have is None) is (want is None)
            if want is not None:
                assert_same([have], [want], exact=False)


# --- every operation, with every axis open -------------------------------------------------------


def other_shapes(case, everything):
    """The row's shapes with one of the sizes, wherever it stands, made another."""
    shapes = [each.shape for each in case.arguments]
    for size in sorted({n for shape in shapes for n in shape}):
        for other in (size + 1, 1, 0) if everything else (size + 1,):
            yield [tuple(other if n == size else n for n in shape) for shape in shapes]
    yield shapes


def tried(function, arrays):
    """The results; or the class of error."""
    tg.manual_seed(0)
    try:
        return as_tuple(function(*(tg.from_numpy(each.copy()) for each in arrays)))
    except (RuntimeError, IndexError, ValueError, TypeError, AssertionError) as error:
        return type(error)


def check_operation(case, everything):
    def call(*args):
        return case.function(*args)

    named = {f"args[{at}]": range(len(each.shape)) for at, each in enumerate(case.arguments)}
    compiled = tg.compile(call, dynamic={name: tuple(axes) for name, axes in named.items()})
    tried(compiled, case.arrays(case.dtypes[0]))
    for shapes in other_shapes(case, everything):
        try:
            arrays = case.with_shapes(shapes).arrays(case.dtypes[0])
        except ValueError:  # no such input can be made
            continue
        found, wanted = tried(compiled, arrays), tried(tg.compile(call), arrays)
        if isinstance(wanted, type):
            assert found is wanted, shapes
        else:
            assert not isinstance(found, type), (shapes, found)
            assert_nearly_same(found, wanted)


COMPILED = [case for case in CASES if case.compiles]


@pytest.mark.filterwarnings("ignore::tgraph.core.trace_state.RecompileWarning")
@pytest.mark.parametrize("case", rotating(COMPILED, 10), ids=ids)
def test_operations(case):
    check_operation(case, everything=False)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", rotating(COMPILED[1:], 10), ids=ids)
def test_every_operation(case):
    check_operation(case, everything=True)
