"""Functions with rules of their own: custom_jvp, custom_vjp, autograd.Function, stop_gradient."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tgraph as tg

X = tg.tensor([[1.0, -2.0, 0.5], [3.0, 0.25, -1.0]], dtype=tg.float64)
V = tg.tensor([[0.5, 1.0, -1.0], [2.0, -3.0, 1.0]], dtype=tg.float64)


def near(found: Any, expected: Any) -> None:
    pairs = zip(tg.pytree.leaves(found), tg.pytree.leaves(expected), strict=True)
    for one, other in pairs:
        assert one.shape == other.shape
        np.testing.assert_allclose(one.detach().numpy(), other.detach().numpy(), atol=1e-10)


# All of them are squares with a gradient of 7 x, which no derivative of a square is.


@tg.custom_jvp
def by_jvp(x: tg.Tensor) -> tg.Tensor:
    return x * x


@by_jvp.defjvp
def _(primals: Any, tangents: Any) -> Any:
    (x,), (t,) = primals, tangents
    return by_jvp(x), t * 7 * x


@tg.custom_vjp
def by_vjp(x: tg.Tensor) -> tg.Tensor:
    return x * x


by_vjp.defvjp(lambda x: (by_vjp(x), {"x": x, "seven": 7}), lambda r, g: (g * r["seven"] * r["x"],))


class Plain(tg.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: tg.Tensor, seven: int) -> tg.Tensor:
        ctx.save_for_backward(x)
        ctx.seven, ctx.kept = seven, x * 0 + 1
        return x * x

    @staticmethod
    def backward(ctx: Any, g: tg.Tensor) -> Any:
        (x,) = ctx.saved_tensors
        return g * ctx.seven * x * ctx.kept, None


class Ruled(tg.autograd.Function):
    """Its rules count as one: batched by another function, as PyTorch has it."""

    @staticmethod
    def forward(x: tg.Tensor) -> tg.Tensor:
        return x * x

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: tg.Tensor) -> None:
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx: Any, g: tg.Tensor) -> tg.Tensor:
        return g * 7 * ctx.saved_tensors[0]

    @staticmethod
    def jvp(ctx: Any, t: tg.Tensor) -> tg.Tensor:
        return t * 7 * ctx.saved_tensors[0]

    @staticmethod
    def vmap(info: Any, in_dims: Any, x: tg.Tensor) -> Any:
        assert in_dims == (0,) and info.batch_size == x.shape[0] and info.randomness == "error"
        return Ruled.apply(x.t() if x.ndim == 2 else x), x.ndim - 1


SEVENS = {
    "custom_jvp": by_jvp, "custom_vjp": by_vjp, "Function": lambda x: Plain.apply(x, 7),
    "Function with rules": Ruled.apply,
}  # fmt: skip


def uses(f: Callable[..., Any]) -> dict[str, tuple[Any, Any]]:
    """What is computed of a function of rows, and what it has to be."""

    def total(x: tg.Tensor) -> tg.Tensor:
        return f(x).sum()

    def push(x: tg.Tensor, v: tg.Tensor) -> tg.Tensor:
        found: tg.Tensor = tg.jvp(f, (x,), (v,))[1]
        return found

    def captured(x: tg.Tensor) -> tg.Tensor:
        found: tg.Tensor = tg.cond(x.sum() < 99, lambda: total(x), lambda: x.sum() * 0)
        return found

    flat, sevens = 7 * X, tg.stack([tg.eye(3, dtype=tg.float64) * 7] * 2)
    both = (X, V)
    return {
        "vmap": (tg.vmap(f)(X), X * X),
        "grad": (tg.grad(total)(X), flat),
        "vmap(grad)": (tg.vmap(tg.grad(total))(X), flat),
        "grad(vmap)": (tg.grad(lambda x: tg.vmap(f)(x).sum())(X), flat),
        "grad(vmap(vmap))": (tg.grad(lambda x: tg.vmap(tg.vmap(f))(x).sum())(X), flat),
        "jvp": (push(*both), flat * V),
        "vmap(jvp)": (tg.vmap(push)(*both), flat * V),
        "jvp(vmap)": (tg.jvp(tg.vmap(f), (X,), (V,))[1], flat * V),
        "linearize": (tg.linearize(f, X)[1](V), flat * V),
        "grad(jvp)": (tg.grad(lambda x: push(x, V).sum())(X), 7 * V),
        "jvp(grad)": (tg.jvp(tg.grad(total), (X,), (V,))[1], 7 * V),
        "grad(grad)": (tg.grad(lambda x: (tg.grad(total)(x) * V).sum())(X), 7 * V),
        "vmap(hessian)": (tg.vmap(tg.hessian(total))(X), sevens),
        "vmap(jacrev(jacrev))": (tg.vmap(tg.jacrev(tg.jacrev(total)))(X), sevens),
        "vmap(jacfwd(jacfwd))": (tg.vmap(tg.jacfwd(tg.jacfwd(total)))(X), sevens),
        "grad(compile)": (tg.grad(tg.compile(total))(X), flat),
        "compile(grad)": (tg.compile(tg.grad(total))(X), flat),
        "compile(vmap(hessian))": (tg.compile(tg.vmap(tg.hessian(total)))(X), sevens),
        "compile(grad(vmap))": (tg.compile(tg.grad(lambda x: tg.vmap(f)(x).sum()))(X), flat),
        "scan": (
            tg.compile(tg.grad(lambda x: tg.scan(lambda c, r: (c + total(r), r), x[0, 0] * 0, x)[0])
            )(X), flat,
        ),
        "cond": (tg.compile(tg.grad(captured))(X), flat),
        "grad(grad(cond))": (
            tg.compile(tg.grad(lambda x: (tg.grad(captured)(x) * V).sum()))(X), 7 * V,
        ),
    }  # fmt: skip


@pytest.mark.parametrize("name", SEVENS)
def test_rules_hold_in_all_transforms(name):
    for use, (found, expected) in uses(SEVENS[name]).items():
        try:
            near(found, expected)
        except AssertionError as error:
            raise AssertionError(f"{name} in {use}: {error}") from None


@tg.custom_vjp
def pair(tree: Any, scale: Any, shift: float = 0.0) -> Any:
    return {"sum": tree["a"] * scale + tree["b"].sum() + shift, "count": tg.tensor(3)}


def pair_bwd(residuals: Any, cotangents: Any) -> Any:
    assert cotangents["sum"].shape == residuals["a"].shape and not cotangents["count"].any()
    return {"a": cotangents["sum"] * residuals["scale"] * 2, "b": None}, None, None


pair.defvjp(lambda tree, scale, shift: (pair(tree, scale, shift), {"a": tree["a"], "scale": scale}),
            pair_bwd)  # fmt: skip


@tg.custom_jvp
def triple(factor: Any, tree: Any, scale: Any) -> Any:
    return tree[0] * scale * factor, tree[1]


triple.nondiff_argnums = (0,)


@triple.defjvp
def _(factor: Any, primals: Any, tangents: Any) -> Any:
    (tree, scale), (d_tree, d_scale) = primals, tangents
    assert d_scale == 0.0 if isinstance(scale, float) else d_scale.shape == ()
    return triple(factor, tree, scale), (d_tree[0] * scale * 100, d_tree[1] * factor)


def as_triple(scale: Any) -> Any:
    def run(a: tg.Tensor, b: tg.Tensor) -> Any:
        return triple(5, (a, b), scale)

    def total(a: tg.Tensor) -> tg.Tensor:
        one, other = run(a, a)
        return (one + other).sum()

    return tg.jvp(run, (X, V), (V, X)), tg.grad(total)(X)


EXPECTED = ((X * 10, V), (V * 200, X * 5)), X * 0 + 205


def test_containers_and_numbers():
    tree = {"a": X, "b": V}
    (found, other), value = tg.func.grad_and_value(
        lambda tree, scale: pair(tree, scale)["sum"].sum(), (0, 1)
    )(tree, tg.tensor(3.0, dtype=tg.float64))
    near([found, other], [{"a": X * 0 + 6, "b": V * 0}, tg.zeros((), dtype=tg.float64)])
    near(value, (X * 3 + V.sum()).sum())
    alone = tg.grad(lambda a: pair({"a": a, "b": a}, 3.0, shift=1.0)["sum"].sum())
    near(tg.vmap(alone)(X), X * 0 + 6)
    near([as_triple(2.0), as_triple(tg.tensor(2.0, dtype=tg.float64))], [EXPECTED] * 2)

    def of_sum(x: tg.Tensor) -> tg.Tensor:
        return tg.grad(lambda a: triple(x.sum(), (a, a), 2.0)[1].sum())(x)

    near(tg.compile(of_sum)(X), X * 0 + X.sum())


def test_many_rules_one_for_each_argument():
    @tg.custom_jvp
    def f(x: Any, y: Any, z: Any) -> Any:
        return x * y * z

    f.defjvps(lambda t, out, x, y, z: t * out, None, lambda t, out, x, y, z: t * y)
    found = tg.grad(lambda *args: f(*args).sum(), (0, 1, 2))(X, V, X)
    near(found, (X * V * X, V * 0, V))


def test_residuals_are_watched():
    x = X.clone().requires_grad_()
    kept = tg.custom_vjp(lambda x: x.exp())
    kept.defvjp(lambda x: ((y := x.exp()), y), lambda y, g: (g * y,))
    made = kept(x)
    made.mul_(2)
    with pytest.raises(RuntimeError, match=r"modified by an inplace operation.*<lambda>Backward"):
        made.sum().backward()
    with tg.no_grad():
        assert not by_vjp(x).requires_grad
    result = by_vjp(x)
    assert result.grad_fn.name() == "by_vjpBackward"
    result.sum().backward()
    with pytest.raises(RuntimeError, match="second time"):
        result.sum().backward()


def no_rule(kind: Any) -> Any:
    return kind(lambda x: x * 2)


def with_bwd(bwd: Any, fwd: Any = lambda x: (x * 2, None)) -> Any:
    made = tg.custom_vjp(lambda x: x * 2)
    made.defvjp(fwd, bwd)
    return tg.grad(lambda x: made(x).sum())


def with_jvp(rule: Any) -> Any:
    made = tg.custom_jvp(lambda x: x * 2)
    made.defjvp(rule)
    return lambda x: tg.jvp(made, (x,), (x,))


WEIGHT = tg.ones(3, dtype=tg.float64, requires_grad=True)


@tg.custom_vjp
def captures(x: tg.Tensor) -> tg.Tensor:
    return x * WEIGHT


captures.defvjp(lambda x: (captures(x), None), lambda _, g: (g,))


class Silent(tg.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: tg.Tensor) -> tg.Tensor:
        return x * 2


class Writing(Plain):
    @staticmethod
    def forward(ctx: Any, x: tg.Tensor, seven: int) -> tg.Tensor:
        ctx.mark_dirty(x)
        return x.mul_(2)


def writes(row: tg.Tensor) -> tg.Tensor:
    found: tg.Tensor = Writing.apply(row * 1, 7)
    return found


HERE = r".*test_custom_rules\.py:\d+"


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (no_rule(tg.custom_jvp), AttributeError, f"No JVP defined for .* <lambda> .* at {HERE}"),
        (no_rule(tg.custom_vjp), AttributeError, f"No VJP defined for .* <lambda> .* at {HERE}"),
        (with_bwd(lambda r, g: g), TypeError, "bwd must give a tuple .* 1 arguments, got Tensor"),
        (with_bwd(lambda r, g: (g, g)), TypeError, f"for each of 1 arguments, got 2, at {HERE}"),
        (with_bwd(lambda r, g: (g[0],)), TypeError, r"gives float64\[3\] as the cotangent of arg"),
        (with_bwd(lambda r, g: (3,)), TypeError, "gives int as the cotangent"),
        (with_bwd(lambda r, g: (g,), lambda x: x), TypeError, "fwd must give a pair"),
        (with_bwd(lambda r, g: (g,), lambda x: (3, x)), TypeError, "in the output, got int"),
        (with_jvp(lambda p, t: p[0]), TypeError, "jvp rule must give a pair"),
        (with_jvp(lambda p, t: (p[0], {"a": t[0]})), TypeError, "not built as its outputs"),
        (with_jvp(lambda p, t: (p[0], t[0][0])), TypeError, "as the tangent of output, which is"),
        (captures, RuntimeError, "captures, at .* reads a tensor that requires grad and is none"),
        (tg.grad(lambda x: captures(x).sum()), RuntimeError, "none of its arguments"),
        (tg.grad(lambda x: tg.vmap(captures)(x).sum()), RuntimeError, "none of its arguments"),
        (tg.grad(lambda x: tg.vmap(Silent.apply)(x).sum()), NotImplementedError, "backward or vjp"),
        (tg.grad(lambda x: tg.vmap(writes)(x).sum()), NotImplementedError, "Writing.* marks an in"),
    ],
)  # fmt: skip
def test_errors(call, error, text):
    with pytest.raises(error, match=text):
        call(X)


def test_an_example_that_a_rule_does_not_know_is_an_error():
    def f(row: tg.Tensor) -> tg.Tensor:
        inner = tg.custom_vjp(lambda x: x * row)
        inner.defvjp(lambda x: (x * row, None), lambda _, g: (g,))
        return inner(row * 2)

    near(tg.vmap(f)(X), 2 * X * X)
    with pytest.raises(RuntimeError, match="vmap"):
        tg.grad(lambda x: tg.vmap(f)(x).sum())(X)
    with pytest.raises(RuntimeError, match="jvp"):
        tg.jvp(f, (X,), (V,))


def settle(g: Callable[[tg.Tensor], tg.Tensor], start: tg.Tensor) -> tg.Tensor:
    """The fixed point of `g`."""

    def turn(z: tg.Tensor, moved: tg.Tensor) -> Any:
        following = g(z)
        return following, (following - z).abs().max()

    first = tg.ones((), dtype=tg.float64)
    found: tg.Tensor = tg.while_loop(lambda z, moved: moved > 1e-12, turn, (start, first))[0]
    return found


def pulled(w: tg.Tensor, x: tg.Tensor, z: tg.Tensor) -> tg.Tensor:
    return tg.tanh(z @ w + x)


@tg.custom_vjp
def fixed_point(w: tg.Tensor, x: tg.Tensor) -> tg.Tensor:
    return settle(lambda z: pulled(w, x, z), x * 0)


def fixed_point_bwd(residuals: Any, g: tg.Tensor) -> Any:
    """By the implicit function theorem."""
    w, x, z = residuals
    along = tg.vjp(lambda z: pulled(w, x, z), z)[1]
    adjoint = settle(lambda u: g + along(u)[0], g)
    return tg.vjp(lambda w, x: pulled(w, x, z), w, x)[1](adjoint)


fixed_point.defvjp(lambda w, x: ((z := fixed_point(w, x)), (w, x, z)), fixed_point_bwd)


def test_implicit_differentiation():
    """Of a loop that has no gradient, each example of which ends by itself."""
    w = tg.tensor([[0.2, -0.1, 0.3], [0.1, 0.25, 0.0], [-0.3, 0.1, 0.1]], dtype=tg.float64)

    def total(w: tg.Tensor, x: tg.Tensor) -> tg.Tensor:
        return fixed_point(w, x).pow(2).sum()

    def unrolled(w: tg.Tensor, x: tg.Tensor) -> tg.Tensor:
        z = x * 0
        for _ in range(40):
            z = pulled(w, x, z)
        return z.pow(2).sum()

    expected = tg.vmap(tg.grad(unrolled, (0, 1)), (None, 0))(w, X)
    rows = tg.vmap(tg.grad(total, (0, 1)), (None, 0))
    near([rows(w, X), tg.compile(rows)(w, X)], [expected] * 2)
    whole = tg.grad(lambda w, x: tg.vmap(total, (None, 0))(w, x).sum())
    near([whole(w, X), tg.compile(whole)(w, X)], [expected[0].sum(0)] * 2)


def test_stop_gradient():
    def f(x: tg.Tensor) -> tg.Tensor:
        held = tg.stop_gradient({"x": x * 3, "n": 2})
        return held["x"] * x * held["n"]

    expected = 6 * X
    near(tg.grad(lambda x: f(x).sum())(X), expected)
    near(tg.vmap(tg.grad(lambda x: f(x).sum()))(X), expected)
    near(tg.grad(lambda x: tg.vmap(f)(x).sum())(X), expected)
    near(tg.jvp(f, (X,), (V,))[1], expected * V)
    near(tg.compile(tg.vmap(lambda x, v: tg.jvp(f, (x,), (v,))[1]))(X, V), expected * V)
    near(tg.jvp(tg.stop_gradient, (X,), (V,)), (X, V * 0))
