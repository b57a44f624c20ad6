"""Batching, forward mode and Jacobians: what composes with what, mutation, randomness, errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tgraph as tg

RNG = np.random.default_rng(0)
X = tg.tensor(RNG.normal(size=(3, 4)))
V = tg.tensor(RNG.normal(size=(3, 4)))
W = tg.tensor(RNG.normal(size=(4, 2)))
STEP = 1e-5


def near(found: Any, expected: Any, tolerance: float = 1e-9) -> None:
    pairs = zip(tg.pytree.leaves(found), tg.pytree.leaves(expected), strict=True)
    for one, other in pairs:
        assert one.shape == other.shape and not one.requires_grad
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=tolerance, atol=tolerance)


def scalar(row: tg.Tensor) -> tg.Tensor:
    """Of the norm, the softmax and a sum that its parts follow, each with a rule of its own."""
    parts = tg.softmax(row @ W, -1).cumsum(0)
    return (parts * row.norm()).pow(2).sum() + tg.where(row > 0, row.exp(), row**2).prod()


def gradient_by_differences(function: Callable[..., Any], x: tg.Tensor) -> tg.Tensor:
    steps = tg.eye(x.numel(), dtype=tg.float64).reshape(x.numel(), *x.shape) * STEP
    return tg.stack([(function(x + s) - function(x - s)) / (2 * STEP) for s in steps.unbind(0)])


def hessian_by_differences(x: tg.Tensor) -> tg.Tensor:
    return gradient_by_differences(tg.grad(scalar), x)


ROWS = tg.stack([tg.grad(scalar)(row) for row in X.unbind(0)])
HESSIANS = tg.stack([tg.hessian(scalar)(row) for row in X.unbind(0)])
PUSHED = tg.stack([(a * b).sum() for a, b in zip(ROWS.unbind(0), V.unbind(0))])
CURVED = tg.stack([a @ b for a, b in zip(HESSIANS.unbind(0), V.unbind(0))])


def test_hessians_are_differences_of_gradients():
    for row, found in zip(X.unbind(0), HESSIANS.unbind(0), strict=True):
        near(found, hessian_by_differences(row), 1e-6)


def push(row: tg.Tensor, tangent: tg.Tensor) -> tg.Tensor:
    found: tg.Tensor = tg.jvp(scalar, (row,), (tangent,))[1]
    return found


def total(x: tg.Tensor) -> tg.Tensor:
    return tg.vmap(scalar)(x).sum()


def curvature(row: tg.Tensor, tangent: tg.Tensor) -> tg.Tensor:
    return tg.hvp(scalar, (row,), (tangent,))[1][0]


COMPOSED: dict[str, tuple[Callable[..., Any], tuple[tg.Tensor, ...], tg.Tensor]] = {
    "vmap(grad)": (tg.vmap(tg.grad(scalar)), (X,), ROWS),
    "grad(vmap)": (tg.grad(total), (X,), ROWS),
    "vmap(jvp)": (tg.vmap(push), (X, V), PUSHED),
    "jvp(vmap)": (lambda x, v: tg.jvp(tg.vmap(scalar), (x,), (v,))[1], (X, V), PUSHED),
    "vmap(jvp(grad))": (tg.vmap(curvature), (X, V), CURVED),
    "vmap(grad(jvp))": (tg.vmap(tg.grad(push)), (X, V), CURVED),
    "grad(vmap(jvp))": (tg.grad(lambda x, v: tg.vmap(push)(x, v).sum()), (X, V), CURVED),
    "grad(grad)": (tg.vmap(tg.grad(lambda x, v: (tg.grad(scalar)(x) * v).sum())), (X, V), CURVED),
    "jvp(grad(vmap))": (lambda x, v: tg.jvp(tg.grad(total), (x,), (v,))[1], (X, V), CURVED),
    "jvp(jvp)": (
        tg.vmap(lambda x, v: tg.jvp(lambda a: push(a, v), (x,), (v,))[1]), (X, V),
        tg.stack([(a * b).sum() for a, b in zip(CURVED.unbind(0), V.unbind(0))]),
    ),
    "vmap(hessian)": (tg.vmap(tg.hessian(scalar)), (X,), HESSIANS),
    "vmap(jacrev(jacfwd))": (tg.vmap(tg.jacrev(tg.jacfwd(scalar))), (X,), HESSIANS),
    "vmap(jacrev(jacrev))": (tg.vmap(tg.jacrev(tg.jacrev(scalar))), (X,), HESSIANS),
    "vmap(vmap)": (
        lambda x: tg.vmap(tg.vmap(lambda a, b: a @ b, (None, 0)), (0, None))(x, x), (X,), X @ X.t(),
    ),
    "vmap(linearize)": (tg.vmap(lambda x, v: tg.linearize(scalar, x)[1](v)), (X, V), PUSHED),
}  # fmt: skip


@pytest.mark.parametrize("name", COMPOSED)
def test_compositions(name):
    function, args, expected = COMPOSED[name]
    near(function(*args), expected)


@pytest.mark.parametrize("name", ["vmap(grad)", "vmap(jvp(grad))", "vmap(hessian)"])
def test_compiled_compositions(name):
    function, args, expected = COMPOSED[name]
    compiled = tg.compile(function)
    near([compiled(*args), compiled(*args)], [expected, expected])


def test_compiled_functions_in_transforms():
    compiled = tg.compile(scalar)
    near(tg.vmap(compiled)(X), tg.vmap(scalar)(X))
    near(tg.vmap(tg.grad(compiled))(X), ROWS)
    near(tg.grad(compiled)(X[0]), ROWS[0])
    near(tg.hvp(compiled, (X[0],), (V[0],))[1][0], CURVED[0])
    twice = tg.compile(lambda x: tg.softmax(x @ W, -1) * x.sum())  # whose record is replayed
    near(tg.jacrev(twice)(X[0]), tg.jacfwd(twice)(X[0]))
    near(tg.linearize(twice, X[0])[1](V[0]), tg.jvp(twice, (X[0],), (V[0],))[1])


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x, lambda x: x + 1, lambda x: (x, x * 2), lambda x: (x, x), lambda x: x.detach(),
        lambda x: (x.detach(), x), lambda x: x[0],
    ],
)  # fmt: skip
def test_functions_that_pass_an_argument_on_are_linear_in_it(function):
    near(tg.linearize(function, X[0])[1](V[0]), tg.jvp(function, (X[0],), (V[0],))[1])


def test_structures_of_jacobians():
    def function(a: tg.Tensor, b: dict[str, tg.Tensor]) -> dict[str, tg.Tensor]:
        return {"y": a.sin() * b["k"], "z": (a[:2] ** 2).sum() * b["k"] ** 3}

    a, b = X[0, :3], {"k": tg.tensor(1.5, dtype=tg.float64)}
    expected = {
        "y": (tg.diag(a.cos() * 1.5), {"k": a.sin()}),
        "z": (tg.cat([2 * a[:2], tg.zeros(1, dtype=tg.float64)]) * 1.5**3,
              {"k": (a[:2] ** 2).sum() * 3 * 1.5**2}),
    }  # fmt: skip
    for jacobian in (tg.jacrev, tg.jacfwd):
        found = jacobian(function, (0, 1))(a, b)
        assert tg.pytree.flatten(found)[1] == tg.pytree.flatten(expected)[1]
        near(found, expected)
        near(jacobian(function, 1, chunk_size=2)(a, b), {k: v[1] for k, v in expected.items()})
        near(jacobian(lambda x: (x * x, x.sum()), has_aux=True)(a), (tg.diag(2 * a), a.sum()))


def test_axes():
    x = tg.arange(24.0).reshape(2, 3, 4)
    near(tg.vmap(lambda a: a.sum(0), in_dims=1, out_dims=1)(x), x.sum(0).t())
    near(tg.vmap(lambda a: a * 2, in_dims=-1, out_dims=-1)(x), x * 2)
    both = tg.vmap(lambda p, k: (p["a"] + p["b"], k), in_axes=({"a": 0, "b": None}, None),
                   out_axes=(1, None))  # fmt: skip
    near(both({"a": x[0], "b": x[0, 0]}, x), ((x[0] + x[0, 0]).t(), x))
    near(tg.vmap(lambda a: a.exp(), chunk_size=2, in_dims=1, out_dims=1)(x), x.exp())
    near(tg.vmap(lambda a: tg.ones(2))(x), tg.ones(2, 2))
    near(tg.vmap(lambda a, *, by: a * by)(x, by=x), x * x)


def test_writes_in_place():
    def write(row: tg.Tensor) -> tg.Tensor:
        made = tg.zeros(2, 4, dtype=tg.float64)
        made[0] = row
        made[1].copy_(row * 2)
        made[:, 1:].mul_(row[:3])
        made.view(-1)[2] = row[0]
        return made

    near(tg.vmap(write)(X), tg.stack([write(row) for row in X.unbind(0)]))
    near(tg.jvp(write, (X[0],), (V[0],))[1], tg.linearize(write, X[0])[1](V[0]))
    gradients = [tg.grad(lambda row: (write(row) ** 2).sum())(row) for row in X.unbind(0)]
    near(tg.grad(lambda x: (tg.vmap(write)(x) ** 2).sum())(X), tg.stack(gradients))
    given = X.clone()
    tg.vmap(lambda row: row.mul_(2), in_dims=1)(given)
    near(given, X * 2)
    kept = tg.zeros(4, dtype=tg.float64)

    def outside(row: tg.Tensor) -> tg.Tensor:
        kept[1:].copy_(row[1:] * 3)
        return kept * row

    found = tg.jvp(outside, (X[0],), (V[0],))[1]
    near(found, tg.cat([V[0, :1] * 0, 6 * X[0, 1:] * V[0, 1:]]))
    near(kept[1:], X[0, 1:] * 3)
    with pytest.raises(RuntimeError, match=r"vmap: a tensor .* outside .*test_compositions"):
        tg.vmap(outside)(X)


def test_random_numbers():
    def draw(x: tg.Tensor) -> tg.Tensor:
        return x + tg.rand(3, dtype=tg.float64)

    with pytest.raises(RuntimeError, match=r"randomness error mode.*test_compositions.py"):
        tg.vmap(draw)(X[:, 0])
    zeros = tg.zeros(4, dtype=tg.float64)
    same, other = (tg.vmap(draw, randomness=how)(zeros) for how in ("same", "different"))
    assert same.unique(dim=0).shape[0] == 1 and other.unique().numel() == 12
    tg.manual_seed(3)
    expected = tg.rand(3, dtype=tg.float64)
    tg.manual_seed(3)
    near(tg.jvp(draw, (X[0, :3],), (V[0, :3],)), (X[0, :3] + expected, V[0, :3]))


def test_python_goes_by_primals():
    def function(x: tg.Tensor) -> tg.Tensor:
        return x * 2 if x.sum() > 0 else x**2

    found = [tg.jvp(function, (x,), (tg.ones(1),))[1] for x in (tg.ones(1), -tg.ones(1))]
    near(found, [tg.full((1,), 2.0), tg.full((1,), -2.0)])
    with pytest.raises(RuntimeError, match=r"bool\(\).*test_compositions.*not one value to"):
        tg.vmap(function)(X)
    assert tg.vmap(lambda x: x * int(tg.tensor(3)))(tg.ones(2)).tolist() == [3.0, 3.0]


def test_captured_parameters_get_gradients():
    weight = W.clone().requires_grad_()
    tg.vmap(lambda row: tg.softmax(row @ weight, -1)[0])(X).sum().backward()
    found, weight.grad = weight.grad, None
    tg.softmax(X @ weight, -1)[:, 0].sum().backward()
    near(found, weight.grad)
    near(tg.vmap(lambda row: tg.grad(lambda w: (row @ w).sum())(weight))(X).detach(),
         tg.vmap(lambda row: row[:, None].expand(4, 2) * 1)(X))  # fmt: skip


def test_detached_values_are_constants_outside_too():
    near(tg.grad(lambda x: tg.vmap(lambda a: a.detach() * a)(x).sum())(X), X)
    near(tg.jvp(lambda x: x.detach() * x, (X,), (V,))[1], X * V)


def _unrecorded(how: str) -> Callable[[tg.Tensor], tg.Tensor]:
    def f(x: tg.Tensor) -> tg.Tensor:
        made = x * x
        part, apart = made[1:], made.detach()
        if how == "no_grad":
            with tg.no_grad():
                made.mul_(2)
                part[:1] = x[:1]
        elif how == "data":
            made.data.mul_(2)
            apart[1:].add_(3)
        elif how == "detached before":
            made.mul_(x)
        else:
            apart[1:].mul_(x[0])
        return (made * x).sum() + (part * part).sum() + (apart * x).sum()

    return f


@pytest.mark.parametrize("how", ["no_grad", "data", "detached before", "with a history"])
def test_what_is_not_recorded_leaves_derivatives(how):
    def gradient(x: tg.Tensor) -> tg.Tensor:
        x = x.clone().requires_grad_()
        return tg.autograd.grad(f(x), x)[0]

    f, rows = _unrecorded(how), X.abs() + 0.5
    expected = tg.stack([gradient(row) for row in rows.unbind(0)])
    total = tg.grad(lambda x: tg.vmap(f)(x).sum())
    near(total(rows), expected)
    near(tg.compile(total)(rows), expected)
    near(tg.grad(lambda x: tg.vmap(tg.vmap(f))(x).sum())(rows[None]), expected[None])
    if how != "no_grad":  # which forward mode does not know, as in PyTorch
        near(tg.vmap(lambda x: tg.jacfwd(f)(x))(rows), expected)


def test_functions_of_the_host():
    host = tg.vmap(lambda x: tg.tracing.host_call(np.cumsum, x, results=((4,), x.dtype)))
    near(host(X), X.cumsum(1))


def test_complex_numbers():
    z = tg.complex(X, V)
    t = tg.complex(V, X * 2)
    for function in (tg.exp, tg.abs, tg.angle, lambda x: x * x.conj(), lambda x: x.sgn() / x):
        near(tg.jvp(function, (z,), (t,))[1],
             (function(z + STEP * t) - function(z - STEP * t)) / (2 * STEP), 1e-6)  # fmt: skip


def test_modules():
    models = [tg.nn.Sequential(tg.nn.Linear(4, 3), tg.nn.Tanh()).double() for _ in range(3)]
    stacked, buffers = tg.func.stack_module_state(models)
    assert not buffers and stacked["0.weight"].requires_grad and stacked["0.weight"].is_leaf

    def one(given: dict[str, tg.Tensor], x: tg.Tensor) -> Any:
        return tg.functional_call(models[0], given, (x,))

    def loss(given: dict[str, tg.Tensor], x: tg.Tensor) -> tg.Tensor:
        return one(given, x).pow(2).sum()

    found = tg.vmap(one, in_dims=(0, None))(stacked, X)
    near(found.detach(), tg.stack([model(X) for model in models]).detach())
    own = {name: each.detach() for name, each in models[0].named_parameters()}
    per_sample = tg.compile(tg.vmap(tg.grad(loss), in_dims=(None, 0)))
    for _ in range(2):
        found = per_sample(own, X)
        near(found["0.weight"].sum(0), tg.grad(loss)(own, X)["0.weight"])
    assert models[0][0].weight.requires_grad
    with pytest.raises(RuntimeError, match=r"Unexpected key\(s\): 1.weight"):
        tg.functional_call(models[0], {"1.weight": X}, (X,))
    with pytest.raises(RuntimeError, match=r"Missing key\(s\): 0.bias"):
        tg.functional_call(models[0], {"0.weight": X}, (X,), strict=True)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: tg.vmap(tg.sin)(tg.tensor(1.0)), ValueError, "in_dim=0 for a tensor of dimensio"),
        (lambda: tg.vmap(tg.add)(X, X.t()), ValueError, "same size in the mapped dimension"),
        (lambda: tg.vmap(tg.add, (0,))(X, X), ValueError, "in_dims has 1 entries"),
        (lambda: tg.vmap(tg.sin, None)(X), ValueError, "at least one argument"),
        (lambda: tg.vmap(lambda x: 3)(X), ValueError, "only tensors, got int"),
        (lambda: tg.vmap(tg.sin, out_dims=None)(X), ValueError, "out_dims is None"),
        (lambda: tg.vmap(tg.sin, out_dims=3)(X), IndexError, "out_dim 3"),
        (lambda: tg.vmap(tg.add)(X, 2), ValueError, "input of type int"),
        (lambda: tg.vmap(tg.sin, randomness="none"), RuntimeError, "'different', or 'same'"),
        (lambda: tg.jvp(tg.sin, (X,), (V[0],)), RuntimeError, "a tangent of the type of its"),
        (lambda: tg.jvp(tg.sin, (X,), (V, V)), RuntimeError, "same structure"),
        (lambda: tg.jvp(tg.sin, X, V), RuntimeError, "tuples of arguments"),
        (lambda: tg.jvp(tg.sin, (tg.arange(3),), (tg.arange(3),)), RuntimeError, "floating point"),
        (lambda: tg.jacfwd(tg.sin, 1)(X), RuntimeError, "argnums=1 does not fit"),
        (lambda: tg.vmap(lambda x: (x.requires_grad_() ** 2).sum().backward() or x)(
            X.clone().requires_grad_() * 1), RuntimeError, "backward"),
    ],
)  # fmt: skip
def test_errors(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_values_that_are_kept_have_none_outside():
    kept = []
    tg.vmap(lambda x: kept.append(x) or x)(X)
    for use in (lambda: kept[0] + 1, lambda: kept[0].tolist(), tg.compile(lambda: kept[0] * 2)):
        with pytest.raises(RuntimeError, match=r"no value here.*vmap calls"):
            use()
    assert "in vmap, from" in repr(kept[0])


def product(row: tg.Tensor) -> tg.Tensor:
    return tg.scan(lambda c, x: (c * x, c * x.sin()), tg.ones((), dtype=tg.float64), row)[1]


def chosen(row: tg.Tensor) -> tg.Tensor:
    """By each example where there are several."""
    return tg.switch((row > 0).sum() - 1, [tg.sin, tg.exp, lambda x: x**2], row)


def doubled(row: tg.Tensor) -> tg.Tensor:
    def twice(_: Any, x: tg.Tensor) -> tg.Tensor:
        return tg.cond(W.sum() < 100, lambda: x * 2, lambda: x)

    return tg.fori_loop(0, 3, twice, row)


@pytest.mark.parametrize("function", [product, chosen, doubled])
@pytest.mark.parametrize("around", [lambda f: f, tg.compile])
def test_branches_and_loops_inside(function, around):
    alone = tg.stack([function(row) for row in X])
    near(around(tg.vmap(function))(X), alone)
    near(tg.vmap(around(function))(X), alone)
    jacobians = tg.stack([tg.jacrev(function)(row) for row in X])
    near(around(tg.vmap(tg.jacfwd(function)))(X), jacobians)
    near(around(tg.vmap(tg.jacrev(function)))(X), jacobians)


def newton(a: tg.Tensor) -> Any:
    def goes_on(x: tg.Tensor, turns: tg.Tensor) -> tg.Tensor:
        return (x * x - a).abs() > 1e-12 * a

    return tg.while_loop(goes_on, lambda x, turns: ((x + a / x) / 2, turns + 1), (a, 0))


def bounded(a: tg.Tensor) -> tg.Tensor:
    def goes_on(x: tg.Tensor) -> tg.Tensor:
        return (x * x - a).abs() > 1e-12 * a

    found: tg.Tensor = tg.while_loop(goes_on, lambda x: (x + a / x) / 2, a, max_iterations=40)
    return found


SQUARES = tg.tensor([[2.0, 100.0, 1.0], [5e4, 0.25, 7.0]], dtype=tg.float64)


def test_examples_of_a_loop_end_each_by_itself():
    """Until all are done; who is done keeps its state, as the count of turns tells."""
    row, ones = SQUARES[0], tg.ones(3, dtype=tg.float64)
    alone = [newton(a) for a in row]
    roots, turns = (tg.stack(each) for each in zip(*alone))
    assert len(set(turns.tolist())) == 3
    slopes = tg.stack([tg.grad(lambda a: newton(a)[0])(a) for a in row])
    batched, compiled = tg.vmap(newton), tg.compile(tg.vmap(newton))
    near([batched(row), compiled(row), compiled(row)], [(roots, turns)] * 3)
    assert str(compiled.explain(row)).count("[loop]") == 1  # with no Python, and not written out

    def push(a: tg.Tensor, t: tg.Tensor) -> tg.Tensor:
        found: tg.Tensor = tg.jvp(lambda a: newton(a)[0], (a,), (t,))[1]
        return found

    def outside(a: tg.Tensor, t: tg.Tensor) -> tg.Tensor:
        found: tg.Tensor = tg.jvp(lambda a: batched(a)[0], (a,), (t,))[1]
        return found

    for pushed in (tg.vmap(push), tg.compile(tg.vmap(push)), outside, tg.compile(outside)):
        near(pushed(row, ones), slopes)
    for gradient in (tg.grad(lambda a: tg.vmap(bounded)(a).sum()), tg.vmap(tg.grad(bounded))):
        near([gradient(row), tg.compile(gradient)(row)], [slopes] * 2)
    both = tg.vmap(tg.vmap(lambda a: newton(a)[0]))
    near([both(SQUARES), tg.compile(both)(SQUARES)], [SQUARES.sqrt()] * 2, 1e-6)
    near(tg.compile(tg.grad(lambda a: batched(a)[0].sum()))(row), slopes)
    near(tg.compile(tg.vmap(tg.grad(lambda a: newton(a)[0])))(row), slopes)


def test_loops_of_counted_turns():
    def power(n: tg.Tensor, x: tg.Tensor) -> tg.Tensor:
        return tg.fori_loop(0, n, lambda i, state: state * 2 + i, x)

    def twice(x: tg.Tensor) -> Any:  # whose count is one for all examples
        return tg.while_loop(lambda i, x: i < 2, lambda i, x: (i + 1, x * 2), (0, x))

    counts, row = tg.tensor([2, 0, 3]), SQUARES[0]
    alone = tg.stack([power(*each) for each in zip(counts, row)])
    near([tg.vmap(power)(counts, row), tg.compile(tg.vmap(power))(counts, row)], [alone] * 2)
    expected = (tg.full((3,), 2, dtype=tg.int64), row * 4)
    near([tg.vmap(twice)(row), tg.compile(tg.vmap(twice))(row)], [expected] * 2)
