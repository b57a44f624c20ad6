"""Factorizations in compiled functions: native steps, their errors, and what eager code gives."""

from __future__ import annotations

import numpy as np
import pytest

import tgraph as tg

LINALG = tg.linalg


def definite(*shape):
    x = np.random.default_rng(3).normal(size=shape)
    return tg.tensor(x @ x.swapaxes(-1, -2) + shape[-1] * np.eye(shape[-1]))


def kinds(function, *tensors):
    return {(each.name, each.kind) for each in function.explain(*tensors).kernels}


def log_likelihood(covariance, x):
    factor = LINALG.cholesky(covariance)
    white = LINALG.solve_triangular(factor, x, upper=False)
    return -0.5 * (white * white).sum() - x.shape[-1] * tg.log(tg.diagonal(factor)).sum()


def value_and_gradient(covariance, x):
    value = log_likelihood(covariance, x)
    return value, *tg.autograd.grad(value, [covariance, x])


def assert_same(expected, found):
    for one, other in zip(expected, found, strict=True):
        assert one.dtype is other.dtype and one.shape == other.shape
        np.testing.assert_allclose(one.detach().numpy(), other.detach().numpy(), rtol=1e-9)


def test_value_and_gradient_of_a_likelihood_run_natively():
    covariance, x = definite(12, 12).requires_grad_(), tg.randn(12, 30, dtype=tg.float64)
    x = x.requires_grad_()
    compiled = tg.compile(value_and_gradient)
    assert_same(value_and_gradient(covariance, x), compiled(covariance, x))
    found = kinds(compiled, covariance, x)
    assert {("cholesky", "library"), ("triangular_solve", "library")} <= found
    assert "python" not in {kind for _, kind in found}
    forward = tg.compile(log_likelihood)
    forward(covariance, x).backward()
    assert_same(value_and_gradient(covariance, x)[1:], [covariance.grad, x.grad])
    assert "python" not in {kind for _, kind in kinds(forward, covariance, x)}


CALLS = {
    "cholesky": lambda a: (LINALG.cholesky(a @ a.mT + 9 * tg.eye(a.shape[-2], dtype=a.dtype)),),
    "solve": lambda a: (LINALG.solve(a @ a.mT + tg.eye(a.shape[-2], dtype=a.dtype), a),),
    "inv": lambda a: (LINALG.inv(a[..., :3, :3]),),
    "slogdet": lambda a: tuple(LINALG.slogdet(a[..., :3, :3])),
    "qr": lambda a: tuple(LINALG.qr(a)),
    "qr of views": lambda a: tuple(LINALG.qr(a.mT[..., ::2, 1:], "complete")),
    "eigh": lambda a: tuple(LINALG.eigh(a[..., :3, :3])),
    "eigvalsh": lambda a: (LINALG.eigvalsh(a[..., :3, :3], "U"),),
    "svd": lambda a: tuple(LINALG.svd(a)),
    "svdvals": lambda a: (LINALG.svdvals(a.flip(-1)),),
    "triangular": lambda a: (
        LINALG.solve_triangular(a[..., :3, :3].mT + 3, a[..., :3, 1:], upper=True),
    ),
}


@pytest.mark.parametrize("dtype", [tg.float32, tg.float64], ids=str)
@pytest.mark.parametrize("shape", [(3, 5), (5, 3), (2, 1, 4, 4), (90, 4, 3), (0, 3, 4)])
@pytest.mark.parametrize("name", CALLS)
def test_compiled_code_gives_the_numbers_and_signs_of_eager_code(name, shape, dtype):
    a, function = tg.randn(*shape, dtype=dtype), CALLS[name]
    compiled = tg.compile(function)
    for one, other in zip(function(a), compiled(a), strict=True):
        assert one.shape == other.shape and one.dtype is other.dtype
        scale = 1e-3 if dtype is tg.float32 else 1e-9
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=scale, atol=scale)
    assert "python" not in {kind for _, kind in kinds(compiled, a)}


def test_a_failure_tells_the_matrix_and_the_line():
    batch = tg.eye(3).expand(5, 3, 3).clone()
    batch[3, 1, 1] = batch[4, 0, 0] = -1.0
    compiled = tg.compile(lambda a: LINALG.cholesky(a) * 2)
    with pytest.raises(LINALG.LinAlgError, match=r"\(Batch element 3\).*order 2 .*\(called at "
                       r".*test_factorizations\.py:\d+\)$"):  # fmt: skip
        compiled(batch)
    assert compiled(tg.eye(3).expand(5, 3, 3).clone())[4].tolist() == (2 * tg.eye(3)).tolist()


def test_a_call_that_fails_writes_nothing():
    state = tg.ones(2, 2)

    @tg.compile
    def step(a):
        state.add_(LINALG.inv(a))

    step(tg.eye(2))
    with pytest.raises(LINALG.LinAlgError, match=r"linalg\.inv: The diagonal element 2 is zero"):
        step(tg.diag(tg.tensor([1.0, 0.0])))
    assert state.tolist() == [[2.0, 1.0], [1.0, 2.0]]


def test_numbers_that_are_not_finite_go_where_torch_lets_them_go():
    torch = pytest.importorskip("torch", reason="compares with PyTorch, which is not installed")
    nan, inf = float("nan"), float("inf")
    for value in (nan, inf):
        rows = [[2.0, value], [0.0, 1.0]]
        b = [[1.0], [1.0]]
        for name in ("solve_triangular", "solve"):
            attrs = {"upper": True} if name == "solve_triangular" else {}
            expected = getattr(torch.linalg, name)(torch.tensor(rows), torch.tensor(b), **attrs)
            function = tg.compile(getattr(LINALG, name))
            found = function(tg.tensor(rows), tg.tensor(b), **attrs)
            np.testing.assert_array_equal(found.numpy(), expected.numpy())
