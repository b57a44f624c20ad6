"""Transforms beside those of torch.func, on programs written once for both."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tgraph as tg

torch = pytest.importorskip("torch", reason="compares with PyTorch, which is not installed")
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")

RNG = np.random.default_rng(0)
X, V, W = (RNG.normal(size=shape) for shape in ((3, 4), (3, 4), (4, 2)))
A = RNG.normal(size=(3, 4, 4)) + 4 * np.eye(4)


def norms(m: Any, x: Any) -> Any:
    return (x * x).sum().sqrt()


def layer(m: Any, x: Any) -> Any:
    return m.softmax(m.tanh(x @ m.tensor(W)), -1)


def loss(m: Any, x: Any) -> Any:
    return layer(m, x).pow(2).sum() + m.logsumexp(x, -1).sum()


def kept(m: Any, x: Any) -> Any:
    made = m.zeros_like(x)
    made.copy_(x)
    return made.mul_(2).sin().cumsum(0)


# Each takes the library and its transforms.
PROGRAMS: dict[str, Any] = {
    "grad": lambda m, f, x, v, a: f.grad(lambda x: loss(m, x))(x),
    "grad_and_value, aux": lambda m, f, x, v, a: f.grad_and_value(
        lambda x: (loss(m, x), x.sum()), has_aux=True)(x),
    "grad of several": lambda m, f, x, v, a: f.grad(lambda x, v: (x * v).sin().sum(), (1, 0))(x, v),
    "grad(grad)": lambda m, f, x, v, a: f.vmap(f.grad(f.grad(lambda s: m.tanh(s) * s)))(x[0]),
    "vjp": lambda m, f, x, v, a: (lambda o, pull: (o, pull(o)))(*f.vjp(lambda x: layer(m, x), x)),
    "vjp, aux": lambda m, f, x, v, a: (lambda o, pull, aux: (o, pull(o), aux))(
        *f.vjp(lambda x: (layer(m, x), x.sum()), x, has_aux=True)),
    "jvp": lambda m, f, x, v, a: f.jvp(lambda x: layer(m, x), (x,), (v,)),
    "jvp, aux": lambda m, f, x, v, a: f.jvp(
        lambda x: (layer(m, x), x * 2), (x,), (v,), has_aux=True),
    "linearize": lambda m, f, x, v, a: f.linearize(lambda x: layer(m, x), x)[1](v),
    "jacrev": lambda m, f, x, v, a: f.jacrev(lambda x: layer(m, x))(x),
    "jacrev of several": lambda m, f, x, v, a: f.jacrev(
        lambda x, v: (x @ v.t(), (x * v).sum()), (0, 1))(x, v),
    "jacrev in chunks": lambda m, f, x, v, a: f.jacrev(lambda x: layer(m, x), chunk_size=4)(x),
    "jacfwd": lambda m, f, x, v, a: f.jacfwd(lambda x: layer(m, x))(x),
    "jacfwd, aux": lambda m, f, x, v, a: f.jacfwd(
        lambda x: (layer(m, x), x.sum()), has_aux=True)(x),
    "hessian": lambda m, f, x, v, a: f.hessian(lambda x: loss(m, x))(x),
    "hessian of two": lambda m, f, x, v, a: f.hessian(lambda p: (p["a"] * p["b"]).sin().sum())(
        {"a": x[0], "b": v[0]}),
    "vmap(hessian)": lambda m, f, x, v, a: f.vmap(f.hessian(lambda x: loss(m, x)))(x),
    "vmap(jvp(grad))": lambda m, f, x, v, a: f.vmap(
        lambda x, v: f.jvp(f.grad(lambda x: loss(m, x)), (x,), (v,)))(x, v),
    "vmap, axes": lambda m, f, x, v, a: f.vmap(
        lambda x, v: (x * v, x.sum()), in_dims=(1, None), out_dims=(1, 0))(x, v[:, 0]),
    "vmap, containers": lambda m, f, x, v, a: f.vmap(
        lambda d, s: {"y": d["a"] + d["b"] * s}, in_dims=({"a": 0, "b": None}, 0))(
            {"a": x, "b": v[0]}, x[:, 0]),
    "vmap in chunks": lambda m, f, x, v, a: f.vmap(lambda x: layer(m, x), chunk_size=2)(x),
    "vmap(vmap)": lambda m, f, x, v, a: f.vmap(
        f.vmap(lambda x, v: (x - v).abs().sum(), (None, 0)), (0, None))(x, v),
    "vmap(solve)": lambda m, f, x, v, a: f.vmap(m.linalg.solve)(a, x),
    "vmap(grad(solve))": lambda m, f, x, v, a: f.vmap(
        f.grad(lambda a, x: m.linalg.solve(a, x).sum()))(a, x),
    "vmap, in place": lambda m, f, x, v, a: f.vmap(lambda x: kept(m, x))(x),
    "grad of norms": lambda m, f, x, v, a: f.vmap(f.grad(lambda x: norms(m, x)))(x),
}  # fmt: skip


def leaves(value: Any) -> list[Any]:
    if isinstance(value, dict):
        value = [value[key] for key in sorted(value)]
    if isinstance(value, (tuple, list)):
        return [leaf for each in value for leaf in leaves(each)]
    return [value]


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name):
    made = []
    for m in (tg, torch):
        inputs = (m.tensor(each) for each in (X, V, A))
        made.append(leaves(PROGRAMS[name](m, m.func, *inputs)))
    ours, theirs = made
    assert [tuple(each.shape) for each in ours] == [tuple(each.shape) for each in theirs]
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(one.numpy(), other.detach().numpy(), atol=1e-9)


def test_names():
    missing = {name for name in dir(torch.func) if not name.startswith("_")} - set(dir(tg.func))
    # Traces make values of writes by themselves, and `einops` has the other one for any library.
    assert missing <= {"functionalize", "rearrange", "debug_unwrap"}


@pytest.mark.parametrize("how", ["different", "same", "error"])
def test_randomness(how):
    made = []
    for m in (tg, torch):
        m.manual_seed(0)
        x = m.zeros(5, 3)
        draw = m.func.vmap(lambda x, m=m: x + m.rand(3), randomness=how)
        try:
            rows = draw(x)
        except RuntimeError as error:
            made.append("randomness error mode" in str(error))
            continue
        made.append((rows == rows[:1]).all().item())
    assert made[0] == made[1]


def test_modules():
    found = []
    for m in (tg, torch):
        models = [m.nn.Sequential(m.nn.Linear(4, 3), m.nn.BatchNorm1d(3), m.nn.Tanh()).double()
                  for _ in range(2)]  # fmt: skip
        for at, model in enumerate(models):
            for number, each in enumerate(model.parameters()):
                with m.no_grad():
                    each.copy_(m.linspace(-1, 1 + at, each.numel(), dtype=m.float64)
                               .reshape(each.shape).sin() + number)  # fmt: skip
            model.eval()
        params, buffers = m.func.stack_module_state(models)

        def run(params: Any, buffers: Any, x: Any, m: Any = m, model: Any = models[0]) -> Any:
            return m.func.functional_call(model, (params, buffers), (x,))

        out = m.func.vmap(run, (0, 0, None))(params, buffers, m.tensor(X))
        found.append(out.detach().numpy())
    np.testing.assert_allclose(*found, atol=1e-9)
