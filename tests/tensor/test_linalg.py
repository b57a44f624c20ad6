"""`tgraph.linalg` beside `torch.linalg`: values, derivatives of two orders, errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import tgraph as tg

Case = tuple[str, Callable[..., Any], list[np.ndarray]]
BATCHES = ((), (2, 1))
SIZES = (1, 4)


def _rebuilt(u: Any, s: Any, vh: Any) -> Any:
    """What does not depend on the signs of singular vectors, of which there may be too many."""
    count = s.shape[-1]
    return (u[..., :count] * s.unsqueeze(-2) ** 2) @ vh[..., :count, :]


def _factorized(q: Any, r: Any) -> Any:
    return (q * 2) @ (r**2)


def _cases(batch: tuple[int, ...], n: int) -> Iterator[Case]:
    rng = np.random.default_rng([n, *batch])
    a = rng.normal(size=(*batch, n, n)) + 2 * np.eye(n)
    b = rng.normal(size=(*batch, n, 3))
    definite = a @ a.swapaxes(-1, -2) + n * np.eye(n)
    wide, tall = (rng.normal(size=(*batch, *shape)) for shape in ((n, n + 2), (n + 2, n)))
    for upper in (False, True):
        yield (
            f"cholesky {upper}",
            lambda m, x, u=upper: m.cholesky((x + x.mT) / 2, upper=u),
            [definite],
        )
        yield (
            f"triangular {upper}",
            lambda m, x, y, u=upper: m.solve_triangular(x, y, upper=u),
            [a, b],
        )
        yield (
            f"unit {upper}",
            lambda m, x, y, u=upper: m.solve_triangular(x, y, upper=u, unitriangular=True),
            [a, b],
        )
        yield (
            f"right {upper}",
            lambda m, x, y, u=upper: m.solve_triangular(x, y.mT, upper=u, left=False),
            [a, b],
        )
    yield "solve", lambda m, x, y: m.solve(x, y), [a, b]
    yield "solve right", lambda m, x, y: m.solve(x, y.mT, left=False), [a, b]
    yield "solve vectors", lambda m, x, y: m.solve(x, y[..., 0]), [a, b]
    yield "inv", lambda m, x: m.inv(x), [a]
    yield "det", lambda m, x: m.det(x) * 1, [a]
    yield "slogdet", lambda m, x: m.slogdet(x)[1], [a]
    for name, x in (("square", a), ("wide", wide), ("tall", tall)):
        yield f"qr {name}", lambda m, x: _factorized(*m.qr(x)), [x]
        yield f"svdvals {name}", lambda m, x: m.svdvals(x), [x]
        yield f"svd {name}", lambda m, x: _rebuilt(*m.svd(x, full_matrices=False)), [x]
    yield "qr complete", lambda m, x: _factorized(*m.qr(x, "complete")), [wide]
    yield "svd full", lambda m, x: _rebuilt(*m.svd(x)), [wide]
    for triangle in "LU":
        yield (
            f"eigh {triangle}",
            lambda m, x, t=triangle: (lambda w, v: (v * w.unsqueeze(-2) ** 3) @ v.mT)(
                *m.eigh((x + x.mT) / 2, UPLO=t)
            ),
            [definite],
        )
        yield f"eigvalsh {triangle}", lambda m, x, t=triangle: m.eigvalsh(x, UPLO=t), [definite]


ALL = [(f"{name} {batch} {n}", function, arrays) for batch in BATCHES for n in SIZES
       for name, function, arrays in _cases(batch, n)]  # fmt: skip


@pytest.mark.parametrize(("function", "arrays"), [each[1:] for each in ALL],
                         ids=[each[0] for each in ALL])  # fmt: skip
def test_as_torch(function: Callable[..., Any], arrays: list[np.ndarray]) -> None:
    torch = pytest.importorskip("torch", reason="compares with PyTorch, which is not installed")
    found = _derivatives(tg, tg.linalg, function, arrays)
    expected = _derivatives(torch, torch.linalg, function, arrays)
    for mine, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-6, atol=1e-6)


def _derivatives(
    library: Any, linalg: Any, function: Callable[..., Any], arrays: list[np.ndarray]
) -> list[np.ndarray]:
    """The value, the gradients of a weighted sum, and those of the squares of these gradients."""
    given = [library.tensor(each, requires_grad=True) for each in arrays]
    value = function(linalg, *given)
    weights = library.tensor(np.random.default_rng(7).normal(size=tuple(value.shape)))
    first = library.autograd.grad((value * weights).sum(), given, create_graph=True)
    squares = sum((each**2).sum() for each in first)
    second = [np.zeros_like(array) for array in arrays]
    if squares.requires_grad:
        found = library.autograd.grad(squares, given, allow_unused=True)
        second = [np.zeros_like(array) if each is None else each.numpy()
                  for each, array in zip(found, arrays, strict=True)]  # fmt: skip
    return [value.detach().numpy(), *(each.detach().numpy() for each in first), *second]


ERRORS: list[tuple[str, Callable[[Any, Any], Any]]] = [
    ("not definite", lambda m, t: m.cholesky(t([[1.0, 2.0], [2.0, 1.0]]))),
    ("not definite in a batch", lambda m, t: m.cholesky(t([[[1.0]], [[-1.0]]]))),
    ("singular", lambda m, t: m.solve(t(np.zeros((2, 2))), t(np.ones(2)))),
    ("no inverse", lambda m, t: m.inv(t(np.zeros((2, 2, 2))))),
    ("not finite", lambda m, t: m.svd(t(np.full((2, 2), np.nan)))),
    ("complex not definite", lambda m, t: m.cholesky(t([[[1.0]], [[-1j]]]))),
    ("complex not a number", lambda m, t: m.cholesky(t(np.full((2, 2), np.nan * 1j)))),
    ("complex singular", lambda m, t: m.solve(t(np.zeros((2, 2)) * 1j), t(np.ones(2) * 1j))),
    ("complex without inverse", lambda m, t: m.inv(t(np.zeros((2, 2, 2)) * 1j))),
    ("complex not finite", lambda m, t: m.svd(t(np.full((2, 2, 2), np.inf * 1j)))),
    ("not square", lambda m, t: m.det(t(np.zeros((2, 3))))),
    ("a vector", lambda m, t: m.cholesky(t(np.ones(3)))),
    ("other sizes", lambda m, t: m.solve(t(np.eye(2)), t(np.ones((3, 3))))),
    ("mode", lambda m, t: m.qr(t(np.eye(2)), "full")),
]


@pytest.mark.parametrize("call", [each[1] for each in ERRORS], ids=[each[0] for each in ERRORS])
def test_errors_as_torch(call: Callable[[Any, Any], Any]) -> None:
    torch = pytest.importorskip("torch", reason="compares with PyTorch, which is not installed")
    with pytest.raises(RuntimeError) as theirs:
        call(torch.linalg, torch.tensor)
    with pytest.raises(RuntimeError) as mine:
        call(tg.linalg, tg.tensor)
    assert str(mine.value) == str(theirs.value).removeprefix("torch.").split("\n")[0]
    assert (type(mine.value) is tg.linalg.LinAlgError) is (type(theirs.value) is not RuntimeError)


@pytest.mark.parametrize("name", ["cholesky", "inv"])
def test_compiled_code_raises_too(name: str) -> None:
    compiled = tg.compile(getattr(tg.linalg, name))
    assert compiled(tg.eye(2)).tolist() == [[1.0, 0.0], [0.0, 1.0]]
    with pytest.raises(tg.linalg.LinAlgError, match=f"linalg.{name}"):
        compiled(tg.zeros(2, 2))
    assert compiled(tg.eye(2)).tolist() == [[1.0, 0.0], [0.0, 1.0]]


@pytest.mark.parametrize(
    "shape", [(0, 0), (0, 3), (3, 0), (2, 0, 3), (2, 3, 0), (0, 2, 3)], ids=str
)
def test_norms_of_empty_matrices_are_those_of_pytorch(shape: tuple[int, ...]) -> None:
    torch = pytest.importorskip("torch", reason="compares with PyTorch, which is not installed")

    def outcome(library: Any, order: Any, keepdim: bool) -> Any:
        try:
            found = library.linalg.matrix_norm(library.zeros(shape), order, keepdim=keepdim)
        except Exception as error:
            return type(error)
        return tuple(found.shape), found.tolist()

    for order in (1, -1, 2, -2, float("inf"), -float("inf"), "fro", "nuc"):
        for keepdim in (False, True):
            found, expected = outcome(tg, order, keepdim), outcome(torch, order, keepdim)
            assert found == expected, (order, keepdim)


def test_an_empty_constant() -> None:
    assert tg.compile(lambda: tg.linalg.det(tg.zeros(0, 0)))().item() == 1.0


def test_complex_factors_and_what_is_solved_by_them() -> None:
    """Beside `test_complex.py`: values, and gradients beside PyTorch's."""
    torch, rng = (
        pytest.importorskip("torch", reason="compares with PyTorch, which is not installed"),
        np.random.default_rng(0),
    )
    A, B = (rng.normal(size=s) + 1j * rng.normal(size=s) for s in ((2, 3, 3), (2, 3, 3)))

    def every(lib: Any, a: Any, b: Any) -> list[Any]:
        factors, linalg = lib.linalg.lu_factor(a), lib.linalg
        definite = linalg.cholesky(a @ a.mH + lib.eye(3))
        return [
            *linalg.lu(a[..., :2])[1:], *linalg.lu(a[..., :2, :])[1:], factors[0],
            linalg.lu_solve(*factors, b), linalg.lu_solve(*factors, b, left=False),
            linalg.lu_solve(*factors, b, adjoint=True),
            linalg.lu_solve(*factors, b, left=False, adjoint=True),
            linalg.solve_triangular(a, b, upper=True, left=False),
            linalg.solve_triangular(a, b, upper=False, unitriangular=True),
            lib.cholesky_solve(b, definite), lib.cholesky_inverse(definite.mH, upper=True),
            lib.logdet(a), linalg.matrix_norm(a, 2), linalg.lstsq(a, b)[0],
        ]  # fmt: skip

    found = []
    for lib in (torch, tg):
        leaves = [lib.tensor(each, requires_grad=True) for each in (A, B)]
        results = every(lib, *leaves)
        sum((each * (1 + 2j)).sum().real for each in results).backward()
        found.append([each.detach().resolve_conj().numpy() for each in results])
        found[-1] += [each.grad.resolve_conj().numpy() for each in leaves]
    for theirs, ours in zip(*found, strict=True):
        assert ours.dtype == theirs.dtype
        np.testing.assert_allclose(ours, theirs, 1e-9, 1e-9)


def test_complex_matrices_without_elements_or_without_any() -> None:
    for batch, rows, columns in ((0, 2, 3), (2, 0, 0), (1, 3, 0)):
        a = tg.zeros(batch, rows, columns, dtype=tg.complex64)
        u, s, vh = tg.linalg.svd(a)
        assert s.shape == (batch, min(rows, columns)) and s.dtype is tg.float32
        assert (u.shape[-1], vh.shape[-2]) == (rows, columns)
        assert tg.linalg.pinv(a).shape == (batch, columns, rows)
        square = a @ a.mT
        assert tg.linalg.eigvalsh(square).shape == square.shape[:-1]
        assert tg.linalg.inv(square + tg.eye(rows)).shape == square.shape
        assert tg.linalg.det(square + tg.eye(rows)).tolist() == [1.0] * batch


def test_dtypes_are_named() -> None:
    with pytest.raises(RuntimeError, match="got int64; convert it with"):
        tg.linalg.inv(tg.ones(2, 2, dtype=tg.int64))
    with pytest.raises(RuntimeError, match="A of type float32 and B of type float64"):
        tg.linalg.solve(tg.eye(2), tg.ones(2, dtype=tg.float64))


@pytest.mark.parametrize("compiled, dtype", [(False, tg.complex128), (True, tg.float64)])
def test_factors_of_low_rank(compiled, dtype):
    """They draw numbers to begin with, on which what they span does not depend."""

    def product(x, of, rank):
        u, s, v = of(x, rank)
        return (u * s) @ v.mH

    call = tg.compile(product) if compiled else product
    x = tg.randn(5, 3, dtype=dtype) @ tg.randn(3, 4, dtype=dtype)
    x.requires_grad_()
    found = call(x, tg.svd_lowrank, 3)
    tg.testing.assert_close(found, x)
    (found * found.conj()).real.sum().backward()
    tg.testing.assert_close(x.grad, 2 * x.detach())
    tg.testing.assert_close(call(x, tg.pca_lowrank, 3), x - x.mean(0))


def test_complex_factors_are_pytorchs():
    """Reflections with their gradients, and factors of symmetric and of Hermitian matrices."""
    torch = pytest.importorskip("torch", reason="compares with PyTorch, which is not installed")
    rng = np.random.default_rng(0)
    x, y = (rng.normal(size=shape) + 1j * rng.normal(size=shape) for shape in ((3, 2), (3, 3)))
    found = {}
    for lib in (torch, tg):
        a, b = (lib.tensor(each, requires_grad=True) for each in (x, y))
        results = [*lib.geqrf(a.detach()), *lib.geqrf(b.detach().mT[:2])]
        turned = [lib.ormqr(a, b[0, :2], b), lib.ormqr(a, b[0, :2], b, False, True)]
        (turned[0] * turned[1]).abs().sum().backward()
        for hermitian, whole in ((False, b + b.mT), (True, b + b.mH)):
            for matrix in (whole.detach(), whole.detach() - whole.diagonal().diag().detach()):
                factors = lib.linalg.ldl_factor(matrix, hermitian=hermitian)
                results += [factors[0].tril(), factors[1]]
                results.append(lib.linalg.ldl_solve(*factors, a.detach(), hermitian=hermitian))
        found[lib] = [each.detach().numpy() for each in (*results, *turned, a.grad, b.grad)]
    for one, other in zip(found[tg], found[torch], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_matrix_exponentials_are_as_exact_as_their_type(compiled: bool) -> None:
    """Errors grow with squarings; those of the smallest matrices are of the last place."""
    rng = np.random.default_rng(0)
    one = rng.standard_normal((4, 10, 10))
    one[3] -= one[3].T.copy()
    norms = np.abs(one).sum(-2).max(-1)[:, None, None]
    for norm, limit in ((0.01, 2e-7), (1.0, 3e-7), (3.0, 5e-7), (10.0, 1e-6)):
        found = []
        for dtype in (tg.float32, tg.float64):
            x = tg.tensor((one / norms * norm).astype(np.float32)).to(dtype).requires_grad_()
            exponential = tg.linalg.matrix_exp
            result = (tg.compile(exponential) if compiled else exponential)(x)
            (gradient,) = tg.autograd.grad(result, x, tg.eye(10, dtype=dtype).expand(4, 10, 10))
            found.append([each.detach().double() for each in (result, gradient)])
        for single, double in zip(*found, strict=True):
            error = (single - double).abs().amax((1, 2)) / double.abs().amax((1, 2))
            assert error.max() < limit, (norm, error.tolist())
        # The gradient of a trace of the exponential is its transpose.
        assert tg.allclose(found[1][1], found[1][0].mT, rtol=1e-12, atol=1e-12)
    sizes = tg.tensor([0.0, -80.0, 3e4 / 2**10, 1e-30]).double()
    diagonal = tg.linalg.matrix_exp(sizes[:, None, None] * tg.eye(2, dtype=tg.float64))
    assert tg.allclose(diagonal[:, 0, 0], sizes.exp(), rtol=1e-12)


@pytest.mark.parametrize("dtype", [tg.float64, tg.complex128])
def test_solve_ex_tells_of_each_matrix_once(dtype: tg.dtype) -> None:
    one, many = tg.eye(2, dtype=dtype), tg.ones(3, 2, 1, dtype=dtype)
    for call in (tg.linalg.solve_ex, tg.compile(tg.linalg.solve_ex)):
        for A in (one, one[None], one.expand(3, 2, 2)):
            found = call(A, many)
            assert found.result.shape == (3, 2, 1)
            assert found.info.shape == A.shape[:-2]


def test_the_coefficient_of_triangular_solve_has_the_batch_of_the_solution() -> None:
    found = tg.triangular_solve(tg.ones(3, 2, 1), tg.eye(2))
    assert found.cloned_coefficient.shape == (3, 2, 2)


@pytest.mark.parametrize("columns", [0, 2])
def test_factors_and_right_sides_of_other_types_are_refused(columns):
    factors = tg.linalg.lu_factor(tg.eye(3, dtype=tg.complex128))
    with pytest.raises(RuntimeError, match="Expected LU and B to have the same dtype"):
        tg.linalg.lu_solve(*factors, tg.ones(3, columns, dtype=tg.float64))
