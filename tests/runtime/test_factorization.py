"""Factorizations in generated code: both kinds of LAPACK, strides, batches, failures."""

from __future__ import annotations

import numpy as np
import pytest
from tgraph.runtime import factorization, lapack, lapack_native, parallel
from tgraph.runtime.factorization import factorize
from tgraph.runtime.linalg_error import LinAlgError
from tgraph.runtime.plan import BufferRef, Plan
from tgraph.runtime.plan_steps import ARENA_SLOT

ATTRS = {
    "cholesky": {"check": "linalg.cholesky"},
    "lu": {"check": ""},
    "triangular_solve": {"lower": True, "transpose": False, "unit": False},
    "qr": {"complete": True},
    "eigh": {"check": ""},
    "svd": {"full": False, "check": ""},
}


@pytest.fixture(params=["as found", "SciPy's"])
def library(request, monkeypatch):
    """SciPy's functions have integers of 32 bits."""
    if request.param == "SciPy's":
        monkeypatch.setattr(lapack, "_loaded", lapack.of_scipy())
    monkeypatch.setattr(lapack_native, "_loaded", {})
    monkeypatch.setattr(factorization, "_plans", factorization.Memo(256))


@pytest.fixture(params=["by LAPACK", "several at a time"])
def way(request, monkeypatch):
    take(request.param, monkeypatch)


def take(way, monkeypatch):
    """Let matrices up to 32 x 32, however many there are, be factorized in one way."""
    monkeypatch.setattr(factorization, "MATRICES", 0 if way == "by LAPACK" else 1 << 20)
    monkeypatch.setattr(factorization, "_plans", factorization.Memo(256))


def matrices(shape, dtype, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


def definite(shape, dtype):
    x = matrices(shape, np.float64)
    return (x @ x.swapaxes(-1, -2) + shape[-1] * np.eye(shape[-1])).astype(dtype)


def upper(x):
    return np.triu(x)


def assert_close(found, expected, dtype):
    scale = 2e-4 if dtype == "float32" else 1e-10
    np.testing.assert_allclose(found, expected, rtol=scale, atol=scale)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("batch", [(), (3,), (2, 70), (0,)])
@pytest.mark.parametrize("n", [0, 1, 5, 12, 33])
def test_results_are_what_they_are_called(library, dtype, batch, n):
    if n == 33 and batch == (2, 70):
        batch = (2, 2)
    a, x = definite((*batch, n, n), dtype), matrices((*batch, n, n), dtype)
    factor, info = factorize("cholesky", [np.triu(np.full(n, 99), 1) + np.tril(a)],
                             ATTRS["cholesky"])  # fmt: skip
    assert_close(factor @ factor.swapaxes(-1, -2), a, dtype)
    assert not np.triu(factor, 1).any() and not info.any()
    both, rows, sign, _ = factorize("lu", [x], ATTRS["lu"])
    lower = np.tril(both, -1) + np.eye(n)
    assert_close(lower @ np.triu(both), np.take_along_axis(x, rows[..., None], -2), dtype)
    assert_close(sign * np.prod(np.diagonal(both, 0, -2, -1), -1), np.linalg.det(x), dtype)
    values, vectors, _ = factorize("eigh", [np.tril(a)], ATTRS["eigh"])
    assert_close((vectors * values[..., None, :]) @ vectors.swapaxes(-1, -2), a, dtype)
    assert (np.diff(values) >= 0).all()
    (solved,) = factorize("triangular_solve", [a, x], ATTRS["triangular_solve"])
    assert_close(np.tril(a) @ solved, x, dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("sizes", [(4, 4), (5, 3), (3, 5), (1, 4), (3, 0), (0, 3)])
@pytest.mark.parametrize("whole", [False, True])
def test_matrices_that_are_not_square(library, dtype, sizes, whole):
    a = matrices((2, *sizes), dtype)
    (m, n), k = sizes, min(sizes)
    q, r = factorize("qr", [a], {"complete": whole})
    wide = m if whole else k
    assert q.shape == (2, m, wide) and r.shape == (2, wide, n)
    assert_close(q @ r, a, dtype)
    assert_close(q.swapaxes(-1, -2) @ q, np.broadcast_to(np.eye(wide), (2, wide, wide)), dtype)
    assert not np.tril(r, -1).any()
    if not k:
        return
    u, s, vh, info = factorize("svd", [a], {"full": whole, "check": ""})
    assert u.shape == (2, m, m if whole else k) and vh.shape == (2, n if whole else k, n)
    assert_close((u[..., :k] * s[:, None]) @ vh[:, :k], a, dtype)
    assert (np.diff(s) <= 0).all() and not info.any()


@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.parametrize("unit", [False, True])
def test_triangles_are_read_where_they_lie(way, lower, transpose, unit):
    whole, b = definite((2, 12, 12), np.float64), matrices((2, 6, 3), np.float64)
    attrs = {"lower": lower, "transpose": transpose, "unit": unit}
    views = [whole[:, :6, :6], whole[:, :6, :6].swapaxes(1, 2), whole[:, ::2, ::2],
             whole[:, 5::-1, 5::-1], np.broadcast_to(whole[0, :6, :6], (2, 6, 6))]  # fmt: skip
    for a in views:
        (expected,) = factorize("triangular_solve", [a, b], attrs)
        np.testing.assert_allclose(_of_view("triangular_solve", a, b, attrs, 0), expected)
        triangle = np.tril(a) if lower else np.triu(a)
        if unit:
            triangle = triangle - triangle * np.eye(6) + np.eye(6)
        triangle = triangle.swapaxes(1, 2) if transpose else triangle
        np.testing.assert_allclose(triangle @ expected, b, atol=1e-10)


def _of_view(primitive, a, b, attrs, index):
    """One result for operands as they lie, by a plan that is told their strides."""
    given = [each for each in (a, b) if each is not None]
    of = factorization.factorization(
        primitive, "float64", [x.shape for x in given], [x.strides for x in given], attrs
    )
    out = np.empty(b.shape if b is not None else a.shape)
    results = [BufferRef(3) if at == index else None for at in range(len(of.call.results))]
    operands = [BufferRef(1), BufferRef(2)][: len(given)]
    step = of.step(operands, results, BufferRef(ARENA_SLOT))
    plan = Plan([step], of.scratch_bytes(results), 4)
    assert plan.run((a, b if b is not None else out, out)) == 0
    return out


@pytest.mark.parametrize("primitive", ["cholesky", "lu"])
def test_views_and_results_that_nobody_reads(way, primitive):
    whole = definite((3, 12, 12), np.float64)
    for a in (whole, whole[::2, ::3, ::3], whole.swapaxes(1, 2)[:, 2:7, 2:7], whole[::-1]):
        expected, *_ = factorize(primitive, [a], {"check": ""})
        assert (_of_view(primitive, a, None, {"check": ""}, 0) == expected).all()


FAILURES = {
    "cholesky": (31, -1, "leading minor of order 31 is not positive"),
    "lu": (31, 0, "solver failed because the input matrix is singular"),
}


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("primitive", FAILURES)
def test_the_first_failure_is_told_whichever_thread_met_it(way, primitive, threads):
    n, bad, told = FAILURES[primitive]
    a = np.broadcast_to(np.eye(n), (2, 150, n, n)).copy()
    a[1, 60, 7, 7] = a[1, 20, 30, 30] = a[1, 149, 0, 0] = bad
    before = parallel.get_num_threads()
    try:
        parallel.set_num_threads(threads)
        with pytest.raises(LinAlgError, match=rf"Batch element 170.*{told}"):
            factorize(primitive, [a], {"check": "linalg.x"})
        *_, info = factorize(primitive, [a], {"check": None})
    finally:
        parallel.set_num_threads(before)
    assert np.flatnonzero(info).tolist() == [170, 210, 299] and info.max() == 31


SPECIAL = {
    # Small integers: equal pivots, the first of which is taken, zeros, and ranks that are not full.
    "integers": lambda shape, random: random.integers(-1, 2, shape),
    "a column of zeros": lambda shape, random: (
        random.normal(size=shape) * (np.arange(shape[-1]) != shape[-1] // 2)
    ),
    "rows that are proportional": lambda shape, random: (
        random.normal(size=(*shape[:2], 1)) * random.normal(size=(shape[0], 1, shape[1]))
    ),
    "large": lambda shape, random: random.normal(size=shape) * 1e37,
    "nothing special": lambda shape, random: random.normal(size=shape),
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("what", SPECIAL)
def test_several_at_a_time_give_what_lapack_gives(monkeypatch, what, dtype):
    random = np.random.default_rng(2)
    for n in (2, 3) if what in ("integers", "rows that are proportional") else (1, 4, 17):
        a = SPECIAL[what]((100, n, n), random).astype(dtype)
        found = []
        for way in ("by LAPACK", "several at a time"):
            take(way, monkeypatch)
            found.append(factorize("lu", [a], ATTRS["lu"]))
        same = found[0][3] == found[1][3]
        # Whether rounding leaves a zero depends on the order of sums, which are one product at 2.
        assert same.all() or (n == 3 and what.startswith("rows") and same.mean() > 0.5)
        for expected, result in zip(*found, strict=True):
            scale = (abs(a).max() or 1) if expected.ndim == 3 else 1
            assert_close(result[same] / scale, expected[same] / scale, dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [1, 3, 8])
def test_what_is_not_a_number_is_not_lost(monkeypatch, n, dtype):
    take("several at a time", monkeypatch)
    a, b = definite((120, n, n), dtype), matrices((120, n, 1), dtype)
    expected, _ = factorize("cholesky", [a], {"check": ""})
    row, column = np.random.default_rng(2).integers(0, n, (2, 120))
    a[np.arange(120), row, column] = np.nan
    factor, failed = factorize("cholesky", [a], {"check": ""})
    is_read = row >= column
    assert ((failed != 0) | np.isnan(factor).any((1, 2)))[is_read].all()
    np.testing.assert_array_equal(factor[~is_read], expected[~is_read])
    both, rows, _, info = factorize("lu", [a], ATTRS["lu"])
    x = np.take_along_axis(b, rows[..., None], -2)
    for lower in (True, False):
        attrs = {"lower": lower, "transpose": False, "unit": lower}
        (x,) = factorize("triangular_solve", [both, x], attrs)
    assert np.isnan(x[info == 0]).any((1, 2)).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_smallest_numbers_are_pivots_like_others(monkeypatch, dtype):
    """The reciprocal of one is infinite."""
    take("several at a time", monkeypatch)
    smallest = np.finfo(dtype).smallest_subnormal
    a = np.random.default_rng(2).integers(-5, 6, (40, 4, 4)).astype(dtype)
    a[:, :, 0] *= smallest
    both, rows, *_ = factorize("lu", [a], ATTRS["lu"])
    found = (np.tril(both, -1) + np.eye(4)) @ np.triu(both)
    expected = np.take_along_axis(a, rows[..., None], -2)
    assert_close(found, expected, dtype)
    assert_close(found[..., 0] / smallest, expected[..., 0] / smallest, dtype)


@pytest.mark.parametrize("primitive", ["eigh", "svd"])
def test_what_does_not_converge_is_told(primitive):
    a = np.stack([np.eye(4), np.full((4, 4), np.nan), np.eye(4)])
    attrs = ATTRS[primitive] | {"check": "linalg.x"}
    with pytest.raises(LinAlgError, match=r"x: \(Batch element 1\).*contained non-finite values"):
        factorize(primitive, [a], attrs)
    *_, info = factorize(primitive, [a], ATTRS[primitive])
    assert info.tolist() == [0, 1, 0]


def test_a_call_allocates_nothing_for_workspace():
    a = definite((200, 8, 8), np.float64)
    factorize("eigh", [a], ATTRS["eigh"])
    ((of, plan),) = [each for key, each in factorization._plans._found.items()
                     if key[0] == "eigh" and key[2] == ((200, 8, 8),)]  # fmt: skip
    assert of.units == factorization.UNITS
    assert plan.arena_bytes >= of.units * of.numbers["lwork"] * 8
