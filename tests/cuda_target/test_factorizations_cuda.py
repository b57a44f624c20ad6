"""Factorizations on a device: numbers, failures with their lines, plans around them."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cuda_tools import nvrtc
from cuda_tools.fake_cupy import solvers
from tgraph.runtime.cuda import factorization_text

import tgraph as tg

pytest_plugins = ["cuda_tools.device"]

L = tg.linalg
SHAPES = [(3, 3), (5, 3), (3, 5), (40, 40), (4, 2, 4, 3), (6, 3, 4), (2, 34, 33), (2, 33, 34),
          (0, 3, 3), (0, 0), (2, 3, 0)]  # fmt: skip


def square(a: tg.Tensor) -> tg.Tensor:
    size = min(a.shape[-2:])
    return a[..., :size, :size]


def definite(a: tg.Tensor) -> tg.Tensor:
    a = square(a)
    return a @ a.mT + 2 * tg.eye(a.shape[-1], dtype=a.dtype, device=a.device)


def together(u: tg.Tensor, s: tg.Tensor, vh: tg.Tensor) -> tg.Tensor:
    count = s.shape[-1]
    return (u[..., :count] * s.unsqueeze(-2)) @ vh[..., :count, :]


def everything(a: tg.Tensor) -> list[tg.Tensor]:
    """What does not depend on signs of vectors."""
    spd, upper = definite(a), definite(a).triu()
    b = a[..., : spd.shape[-1], :]
    u, s, vh = L.svd(a)
    values, vectors = L.eigh(spd.tril())
    q, r = L.qr(a, "complete")
    return [
        L.cholesky(spd.tril()), L.solve(spd.mT, b), L.inv(spd), *L.slogdet(spd), L.det(square(a)),
        together(vectors, values, vectors.mT), values, vectors.mT @ vectors,
        together(u, s, vh), s, u @ u.mT, vh @ vh.mT, together(*L.svd(a.mT, full_matrices=False)),
        q @ r, q.mT @ q, r.tril(-1), L.qr(a.mT).R.abs(),
        *(L.solve_triangular(spd, b, upper=each) for each in (False, True)),
        L.solve_triangular(upper.mT, b.mT, upper=False, left=False, unitriangular=True)
        if b.shape[-1] == b.shape[-2] else spd,
    ]  # fmt: skip


# The routines of the types differ by a letter, and those of the shapes by batches and sides.
SHORT = {((5, 3), tg.float32), ((4, 2, 4, 3), tg.float64), ((2, 33, 34), tg.float64),
         ((0, 3, 3), tg.float64), ((2, 3, 0), tg.float32)}  # fmt: skip
ROWS = [
    pytest.param(shape, dtype, marks=() if (shape, dtype) in SHORT else pytest.mark.slow)
    for dtype in (tg.float32, tg.float64)
    for shape in SHAPES
]


@pytest.mark.parametrize(("shape", "dtype"), ROWS, ids=str)
def test_results_are_what_they_are_called(cuda: Any, dtype: Any, shape: tuple[int, ...]) -> None:
    tg.manual_seed(1)
    a = tg.randn(*shape, dtype=tg.float64).to(dtype)
    expected, compiled = everything(a), tg.compile(everything)
    scale = 2e-2 if dtype is tg.float32 else 1e-8
    for found in (everything(a.to(cuda)), *(compiled(a.to(cuda)) for _ in range(3))):
        for at, (one, other) in enumerate(zip(expected, found, strict=True)):
            assert other.device == cuda and one.dtype is other.dtype
            np.testing.assert_allclose(
                other.cpu().numpy(), one.numpy(), rtol=scale, atol=scale, err_msg=str(at)
            )


def test_gradients_and_launches_around_them(cuda: Any) -> None:
    """What stands before and behind the routines is one graph each, and all of it runs often."""

    def value(covariance: tg.Tensor, x: tg.Tensor) -> Any:
        factor = L.cholesky(covariance)
        white = L.solve_triangular(factor, x, upper=False)
        value = -0.5 * (white * white).sum() - tg.log(tg.diagonal(factor)).sum()
        return value, *tg.autograd.grad(value, [covariance, x])

    a, x = tg.randn(7, 7, dtype=tg.float64), tg.randn(7, 5, dtype=tg.float64)
    pair = [definite(a).requires_grad_(), x.requires_grad_()]
    on_device = [each.detach().to(cuda).requires_grad_() for each in pair]
    compiled, expected = tg.compile(value), value(*pair)
    kinds = {step.kind for step in compiled.explain(*on_device).kernels}
    assert "library" in kinds and "python" not in kinds
    for _ in range(4):
        for one, other in zip(expected, compiled(*on_device), strict=True):
            np.testing.assert_allclose(
                other.detach().cpu().numpy(), one.detach().numpy(), rtol=1e-7
            )
    ((plan,),) = compiled._plans.values()
    (executable,) = plan.function.executable.executables
    (frame,) = executable.plan._frames.values()
    graphs = [*frame.graphs.values()][-1]
    assert graphs and graphs.whole is None


def test_singular_matrices_have_a_determinant(cuda: Any) -> None:
    nan = float("nan")
    rows = [[[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [0.0, 1.0, 1.0]], [[0.0] * 3] * 3,
            [[1.0, 0.0, nan], [0.0, 0.0, 1.0], [0.0, 0.0, 2.0]]]  # fmt: skip
    for matrices in (rows[:1], rows, [np.zeros((300, 300)).tolist()]):
        a = tg.tensor(matrices)
        for function in (L.det, L.slogdet, tg.compile(L.det), tg.compile(L.slogdet)):
            expected, found = function(a), function(a.to(cuda))
            for one, other in zip(
                expected if isinstance(expected, tuple) else [expected],
                found if isinstance(found, tuple) else [found],
                strict=True,
            ):
                np.testing.assert_array_equal(other.cpu().numpy(), one.numpy())


BAD = {
    "cholesky": (L.cholesky, -1.0, r"order 2 is not positive-definite"),
    "inv": (L.inv, 0.0, r"diagonal element 2 is zero"),
    "solve": (lambda a: L.solve(a, a), 0.0, r"The solver failed because"),
    "eigh": (lambda a: L.eigh(a)[0], float("nan"), r"contained non-finite values"),
    "svd": (lambda a: L.svd(a)[1], float("inf"), r"contained non-finite values"),
    "cholesky of nan": (L.cholesky, float("nan"), r"order 2 is not positive-definite"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_failure_tells_the_matrix_and_the_line(cuda: Any, name: str) -> None:
    function, value, words = BAD[name]
    several = tg.eye(3).expand(5, 3, 3).clone()
    several[3, 1, 1] = several[4, 1, 1] = value
    compiled = tg.compile(lambda a: function(a) * 2)
    for batch, element in ((several, r"\(Batch element 3\): "), (several[3], "")):
        with pytest.raises(L.LinAlgError, match=rf"linalg\.\w+: {element}.*{words}"):
            function(batch.to(cuda))
        with pytest.raises(L.LinAlgError, match=rf"{element}.*{words}.*\(called at .*\.py:\d+\)$"):
            compiled(batch.to(cuda)).cpu()
        good = tg.eye(3).expand(*batch.shape).clone()
        np.testing.assert_array_equal(compiled(good.to(cuda)).cpu().numpy(), compiled(good).numpy())


def test_a_call_that_fails_writes_nothing(cuda: Any) -> None:
    state = tg.ones(2, 2, device=cuda)

    @tg.compile
    def step(a: tg.Tensor) -> None:
        state.add_(L.inv(a))

    for _ in range(3):
        step(tg.eye(2, device=cuda))
    step(tg.diag(tg.tensor([1.0, 0.0])).to(cuda))
    with pytest.raises(L.LinAlgError, match=r"linalg\.inv: The diagonal element 2 is zero"):
        state.cpu()
    assert state.tolist() == [[4.0, 1.0], [1.0, 4.0]]


# -- without a device --------------------------------------------------------------------------


def docstrings(module: str) -> dict[str, list[str]]:
    """The parameters of functions of CuPy's bindings, by what their file tells of them."""
    cupy_backends = pytest.importorskip("cupy_backends", reason="CuPy is not installed")
    folder = Path(cupy_backends.__file__).parent / "cuda" / "libs"
    (path,) = folder.glob(f"{module}.cpython-*.so")
    found = re.findall(rb"\b(\w+)\(([^()\0]*)\)(?: -> \w+)?\0", path.read_bytes())
    return {
        name.decode(): [each.split()[-1] for each in text.decode().split(", ") if each]
        for name, text in found
    }


@pytest.mark.parametrize("module", ["cublas", "cusolver"])
def test_the_stand_in_has_the_functions_of_cupy(module: str) -> None:
    theirs = docstrings(module)
    ours_of = solvers.CUBLAS if module == "cublas" else solvers.CUSOLVER
    functions = {name: each for name, each in ours_of.items() if isinstance(each, partial)}
    assert functions
    for name, function in functions.items():
        code = function.func.__code__
        ours = list(code.co_varnames[1 : code.co_argcount])
        assert theirs[name] == ours, name


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_kernels_compile(dtype: str) -> None:
    if reason := nvrtc.available():
        pytest.skip(reason)
    for arch in ("sm_75", "sm_90"):
        cubin = nvrtc.compile_cubin(factorization_text.factorization_text(dtype), arch)
        assert set(cubin.kernels) == set(factorization_text.KERNELS)
        assert not any(each.spill_bytes for each in cubin.kernels.values())
