"""`tgraph.array_api` held to `array-api-strict`: names, signatures, types, values, errors."""

from __future__ import annotations

import builtins
import inspect
import warnings

import array_api_strict as strict
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.array_api import make_strategies_namespace

import tgraph as tg

xp = tg.array_api
strict.set_array_api_strict_flags(api_version="2024.12")

# What strict has beside the standard of 2024.12: functions of 2025.12, and its own.
BESIDE = {
    "isin", "broadcast_shapes", "set_array_api_strict_flags", "get_array_api_strict_flags",
    "reset_array_api_strict_flags", "ArrayAPIStrictFlags", "Device", "__version__",
}  # fmt: skip
INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
FLOATS = ["float32", "float64"]
COMPLEX = ["complex64", "complex128"]
REAL = [*INTEGERS, *FLOATS]
NUMERIC = [*REAL, *COMPLEX]
ALL = ["bool", *NUMERIC]
KINDS = {
    "bool": ["bool"], "integer": INTEGERS, "integer or boolean": ["bool", *INTEGERS],
    "floating-point": [*FLOATS, *COMPLEX], "real floating-point": FLOATS, "real numeric": REAL,
    "complex floating-point": COMPLEX, "numeric": NUMERIC, "all": ALL,
}  # fmt: skip
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 1.5, 3.7, np.inf, -np.inf, np.nan, 100.0, -7.0]


def namespaces():
    return ((strict, xp, ""), (strict.linalg, xp.linalg, "linalg"), (strict.fft, xp.fft, "fft"))


def test_names_and_signatures():
    """Defaults that strict does not tell are those of the standard, None."""

    def parameters(function):
        return [
            (each.name, each.kind, None if "Undef" in repr(each.default) else each.default)
            for each in inspect.signature(function).parameters.values()
        ]

    for theirs, ours, name in namespaces():
        assert set(theirs.__all__) - BESIDE == set(ours.__all__), name
        for each in set(ours.__all__):
            if inspect.isfunction(getattr(theirs, each)):
                expected = parameters(getattr(theirs, each))
                assert parameters(getattr(ours, each)) == expected, f"{name}.{each}"
    assert {each for each in dir(xp) if not each.startswith("__")} <= set(xp.__all__)
    assert xp.__array_api_version__ == "2024.12"


def numbers(dtype, shape=(2, 3), seed=0):
    """Small numbers, and the special ones of floats, where a row has room for them."""
    rng = np.random.default_rng([seed, len(dtype)])
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(dtype)
    if dtype in INTEGERS:
        return rng.integers(1 if dtype[0] == "u" else -4, 9, shape).astype(dtype)
    found = rng.uniform(-3, 3, shape)
    if dtype in COMPLEX:
        found = found + 1j * rng.uniform(-3, 3, shape)
    return found.astype(dtype)


def as_array(found):
    """The elements of what either library gives, in NumPy's array."""
    if isinstance(found, strict._array_object.Array):
        return np.asarray(found._array)
    return np.asarray(found) if isinstance(found, tg.Tensor) else found


def assert_same(ours, theirs, row):
    """Nested results have the same arrays: dtypes, shapes, values to some roundings."""
    if isinstance(theirs, (tuple, list)):
        assert len(ours) == len(theirs), row
        for mine, other in zip(ours, theirs):
            assert_same(mine, other, row)
        return
    if not isinstance(theirs, strict._array_object.Array):
        assert ours == theirs or repr(ours).split(".")[-1] == repr(theirs).split(".")[-1], row
        return
    assert isinstance(ours, tg.Tensor), row
    mine, other = as_array(ours), as_array(theirs)
    # The default float of tgraph is float32: what takes integers to floats gives that.
    assert (mine.dtype, mine.shape) == (other.dtype, other.shape), (row, mine, other)
    close = {"f": 2e-5, "c": 1e-4}.get(mine.dtype.kind, 0)
    np.testing.assert_allclose(mine, other, rtol=close, atol=close, err_msg=str(row))
    if mine.dtype.kind == "f":  # zeros have signs, too
        is_zero = other == 0
        assert (np.signbit(mine) == np.signbit(other))[is_zero & (mine == 0)].all(), (row, mine)


def evaluate(row, arrays):
    """A row in both namespaces, with NumPy's complaints about NaN left out."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        theirs = {name: strict.asarray(array) for name, array in arrays.items()}
        ours = {name: tg.tensor(array) for name, array in arrays.items()}
        return eval(row, {"xp": xp, **ours}), eval(row, {"xp": strict, **theirs})


UNARY = {
    "numeric": "abs conj negative positive sign square",
    "floating-point": "acos acosh asin asinh atan atanh cos cosh exp expm1 log log10 log1p log2 "
    "reciprocal sin sinh sqrt tan tanh",
    "real numeric": "ceil floor trunc",
    "numeric ": "isfinite isinf isnan round",
    "real floating-point": "signbit",
    "complex floating-point": "imag real",
    "integer or boolean": "bitwise_invert",
    "bool": "logical_not",
}
BINARY = {
    "numeric": "add multiply subtract",
    "all": "equal not_equal",
    "real numeric": "greater greater_equal less less_equal maximum minimum",
    "floating-point": "divide",
    "real floating-point": "atan2 copysign hypot logaddexp nextafter floor_divide remainder",
    "integer or boolean": "bitwise_and bitwise_or bitwise_xor",
    "integer": "bitwise_left_shift bitwise_right_shift floor_divide remainder",
    "bool": "logical_and logical_or logical_xor",
    "numeric ": "pow",
}


@pytest.mark.parametrize("table, count", [(UNARY, 1), (BINARY, 2)], ids=["unary", "binary"])
def test_elementwise(table, count):
    """All dtypes that the standard wants, mixed ones, numbers, and special values."""
    for kind, names in table.items():
        dtypes = KINDS[kind.strip()]
        for name in names.split():
            for dtype in dtypes:
                check_elementwise(name, dtype, dtypes, count)


def check_elementwise(name, dtype, dtypes, count):
    a, b = numbers(dtype), numbers(dtype, (3,), seed=1)
    if "shift" in name or name == "pow":
        b = (np.abs(b) % 5).astype(dtype)
    if name in ("floor_divide", "remainder"):
        b = np.where(b == 0, np.ones_like(b), b)
    if count == 1:
        rows = [(f"xp.{name}(a)", {"a": a})]
        if dtype in FLOATS:
            rows += [(f"xp.{name}(a)", {"a": np.array(SPECIAL, dtype)})]
    else:
        rows = [(f"xp.{name}(a, b)", {"a": a, "b": b})]
        number = {"bool": "True"}.get(dtype, "2.0" if dtype in FLOATS else "2")
        rows += [(f"xp.{name}(a, {number})", {"a": a}), (f"xp.{name}({number}, b)", {"b": b})]
        for other in dtypes:
            if dtype[:3] == other[:3] or {dtype[:3], other[:3]} == {"int", "uin"}:
                if "uint64" in (dtype, other) and dtype[0] != other[0]:
                    continue  # no dtype holds both
                c = b.astype(other)
                rows += [(f"xp.{name}(a, c)", {"a": a, "c": c})]
                rows += [(f"xp.{name}(a, c)", {"a": a, "c": c[0]})]
        if dtype in FLOATS:
            grid = np.meshgrid(np.array(SPECIAL, dtype), np.array(SPECIAL, dtype))
            rows += [(f"xp.{name}(a, b)", dict(zip("ab", grid)))]
    for row, arrays in rows:
        ours, theirs = evaluate(row, arrays)
        assert_same(ours, theirs, (row, dtype, arrays))


EXPM1 = {
    "inf+0j": "inf+0j", "-inf+infj": "-1+0j", "inf+infj": "inf+nanj", "-inf+nanj": "-1+0j",
    "inf+nanj": "inf+nanj", "nan+0j": "nan+0j", "nan+1j": "nan+nanj", "1+infj": "nan+nanj",
    "-inf+1j": "-1+0j", "-inf-1j": "-1-0j", "-0-0j": "0-0j", "-0+0j": "0+0j", "inf-0j": "inf-0j",
}  # fmt: skip


@pytest.mark.parametrize("dtype", COMPLEX)
def test_expm1_of_complex_infinities(dtype):
    """The standard's table, which NumPy, and so strict, does not keep."""
    found = xp.expm1(tg.tensor(list(map(complex, EXPM1)), dtype=getattr(tg, dtype))).numpy()
    wanted = np.array(list(map(complex, EXPM1.values())))
    np.testing.assert_array_equal(found, wanted)
    for ours, theirs in ((found.real, wanted.real), (found.imag, wanted.imag)):
        known = ~np.isnan(theirs)
        np.testing.assert_array_equal(np.signbit(ours)[known], np.signbit(theirs)[known])


# Rows of arrays: x (2, 3), y (2, 3), v (3,), i (2, 3) of small positive integers, b (2, 3) bools.
ROWS = {
    "all": """
        xp.all(x) | xp.all(x, axis=0) | xp.any(x, axis=(0, 1), keepdims=True) | xp.any(x, axis=())
        xp.count_nonzero(x) | xp.count_nonzero(x, axis=1, keepdims=True)
        xp.astype(b, x.dtype) | xp.astype(v, x.dtype, copy=False) | xp.asarray(x, copy=True)
        xp.broadcast_to(v, (2, 2, 3)) | tuple(xp.broadcast_arrays(x, v))
        xp.concat([x, y]) | xp.concat([x, y], axis=-1) | xp.concat((x, v), axis=None)
        xp.concat([x]) | xp.stack([x, y], axis=1) | xp.stack((x, y), axis=-1)
        xp.expand_dims(x, axis=0) | xp.expand_dims(x, axis=-1) | xp.flip(x) | xp.flip(x, axis=1)
        xp.flip(x, axis=(0, -1)) | xp.moveaxis(x, 0, 1) | xp.moveaxis(x, (0, 1), (1, 0))
        xp.permute_dims(x, (1, 0)) | xp.matrix_transpose(x) | x.T | x.mT
        xp.repeat(x, 2) | xp.repeat(x, 2, axis=1) | xp.repeat(v, xp.asarray([1, 0, 2]))
        xp.repeat(x, xp.asarray([2, 1]), axis=0) | xp.repeat(x, xp.asarray([2]), axis=0)
        xp.reshape(x, (3, 2)) | xp.reshape(x, (-1,)) | xp.reshape(x, (6,), copy=True)
        xp.reshape(v[:1], ()) | xp.reshape(x, (3, -1), copy=False)
        xp.roll(x, 1) | xp.roll(x, (1, -2), axis=(0, 1)) | xp.roll(x, -1, axis=1)
        xp.squeeze(x[:1, :], axis=0) | xp.squeeze(x[:1, :1], axis=(0, -1))
        xp.tile(x, (2,)) | xp.tile(x, (2, 1, 2)) | xp.unstack(x) | xp.unstack(x, axis=1)
        xp.take(v, xp.asarray([2, 0])) | xp.take(x, xp.asarray([1, 1]), axis=0)
        xp.take(x, xp.asarray([0, -1]), axis=1) | xp.tril(x) | xp.triu(x, k=1) | xp.tril(x, k=-1)
        xp.where(b, x, y) | xp.where(b, x, v) | xp.nonzero(x) | xp.nonzero(v)
        xp.zeros_like(x) | xp.ones_like(x) | xp.full_like(x, 1) | xp.empty_like(x).shape
        xp.zeros((2, 3), dtype=x.dtype) | xp.ones(3, dtype=x.dtype)
        xp.full((2,), 1, dtype=x.dtype)
        xp.empty((2, 3), dtype=x.dtype).shape | xp.eye(2, 3, k=1, dtype=x.dtype)
        xp.eye(2, k=2**70, dtype=x.dtype) | xp.eye(2, 3, k=-(2**70), dtype=x.dtype)
        xp.eye(3, k=-1, dtype=x.dtype) | tuple(xp.meshgrid(v, x[0, :]))
        tuple(xp.meshgrid(v, x[0, :], indexing="ij"))
        xp.result_type(x, y) | xp.isdtype(x.dtype, "numeric")
        xp.isdtype(x.dtype, ("integral", "real floating")) | xp.isdtype(x.dtype, x.dtype)
        xp.can_cast(x, x.dtype) | xp.linalg.diagonal(x) | xp.linalg.diagonal(x, offset=1)
        x[0, ...] | x[:, None, ::2] | x[1, -1] | x[b] | x[xp.asarray([1, 0]), xp.asarray([2, 0])]
        xp.from_dlpack(v)
    """,
    "numeric": """
        xp.sum(x) | xp.sum(x, axis=0) | xp.sum(x, axis=(0, 1), keepdims=True) | xp.sum(x, axis=())
        xp.sum(x, dtype=x.dtype) | xp.prod(x, axis=(0, 1)) | xp.prod(x, axis=1, keepdims=True)
        xp.prod(x) | xp.prod(x[:0, :], axis=0) | xp.prod(v, dtype=v.dtype)
        xp.cumulative_sum(v) | xp.cumulative_sum(x, axis=0, include_initial=True)
        xp.cumulative_sum(x, axis=1, dtype=x.dtype) | xp.cumulative_prod(v)
        xp.cumulative_prod(x, axis=1, include_initial=True) | xp.diff(x) | xp.diff(x, axis=0)
        xp.diff(x, n=2, prepend=x, append=x[:, :1]) | xp.diff(v, n=0)
        xp.matmul(x, v) | x @ y.mT | xp.vecdot(x, v) | xp.vecdot(x, y, axis=-2)
        xp.tensordot(x, y, axes=((0,), (0,))) | xp.tensordot(x, v, axes=1)
        xp.tensordot(x, v, axes=0)
        xp.linalg.outer(v, v) | xp.linalg.cross(x, v) | xp.linalg.trace(x) | xp.linalg.matmul(v, v)
        xp.linalg.trace(x, offset=1) | xp.linalg.vecdot(v, v) | xp.linalg.tensordot(v, v, axes=1)
        x + 1 | 2 - x | x * x | -x | +x | abs(x) | x == y | x != 1
        xp.full((2,), 3, dtype=x.dtype) | xp.positive(x)
    """,
    "real numeric": """
        xp.max(x) | xp.max(x, axis=1) | xp.min(x, axis=(0, 1), keepdims=True) | xp.min(x, axis=0)
        xp.argmax(x) | xp.argmax(x, axis=1, keepdims=True) | xp.argmin(x, keepdims=True)
        xp.argmin(x, axis=0) | xp.sort(x) | xp.sort(x, axis=0, descending=True) | xp.argsort(x)
        xp.argsort(x, axis=0, descending=True) | xp.argsort(i, descending=True, stable=True)
        xp.searchsorted(xp.sort(v), x) | xp.searchsorted(xp.sort(v), v, side="right")
        xp.searchsorted(v, v, sorter=xp.argsort(v)) | xp.take_along_axis(x, xp.argsort(x))
        xp.take_along_axis(x, xp.asarray([[0, 1, 1]]), axis=0)
        xp.clip(x, 1, 3) | xp.clip(x, max=2) | xp.clip(x, v)
        xp.clip(x) | xp.clip(x, min=y, max=y + 1)
        xp.unique_values(xp.reshape(i, (-1,))) | xp.unique_counts(i) | xp.unique_inverse(i)
        xp.unique_all(i) | x < y | x >= 2 | xp.maximum(x, 2) | x % (abs(y) + 1) | x // (abs(y) + 1)
    """,
    "real floating-point": """
        xp.linspace(0, 3, 5, dtype=x.dtype) | xp.linspace(3, 1, 4, dtype=x.dtype, endpoint=False)
        xp.linspace(0, 1, 1, dtype=x.dtype) | xp.linspace(0, 1, 0, dtype=x.dtype)
        xp.arange(0.5, 3, 0.5, dtype=x.dtype) | xp.std(x) | xp.std(x, axis=0, correction=1.0)
        xp.var(x, axis=(0, 1), keepdims=True) | xp.var(x, axis=1, correction=0.5)
        xp.var(x, axis=()) | xp.isdtype(xp.arange(0.0, 0, 1).dtype, "real floating")
        xp.isdtype(xp.arange(-1, 0.0, -1).dtype, "real floating")
        xp.signbit(xp.asarray([float("-nan"), float("nan")], dtype=x.dtype))
        xp.copysign(x, xp.asarray(float("-nan"), dtype=x.dtype))
        xp.finfo(x).bits | xp.finfo(x.dtype).max | xp.finfo(x).smallest_normal | xp.finfo(x).eps
        xp.fft.rfft(x) | xp.fft.ihfft(x, n=4)
        xp.fft.rfftn(x) | xp.fft.rfft(x, n=2, axis=0, norm="ortho")
        xp.fft.fftfreq(5, d=0.5, dtype=x.dtype) | xp.fft.rfftfreq(4, dtype=x.dtype)
        xp.fft.fftshift(x) | xp.fft.ifftshift(x, axes=1) | x / y | x ** 2
    """,
    "floating-point": """
        xp.mean(x) | xp.mean(x, axis=0) | xp.mean(x, axis=(0, 1), keepdims=True)
        xp.linalg.matrix_power(s, 3) | x / y | xp.linalg.vector_norm(x)
    """,
    "floating-point ": """
        xp.linalg.det(s) | xp.linalg.inv(s) | xp.linalg.solve(s, v) | xp.linalg.pinv(x)
        xp.linalg.solve(s, x.mT) | xp.linalg.solve(xp.stack([s, s]), v)
        xp.linalg.solve(s, xp.stack([x.mT, y.mT])) | xp.linalg.solve(xp.stack([s, s, s]), s[:, :])
        xp.linalg.slogdet(s) | xp.linalg.matrix_power(s, -1)
        xp.linalg.eigvalsh(s) | xp.abs(xp.linalg.eigh(s).eigenvectors) | xp.linalg.matrix_rank(x)
        xp.linalg.matrix_rank(x, rtol=0.9) | xp.linalg.matrix_norm(x) | xp.linalg.svdvals(x)
        xp.linalg.matrix_norm(x, ord="nuc", keepdims=True) | xp.linalg.matrix_norm(x, ord=-2)
        xp.linalg.matrix_norm(x, ord=float("inf")) | xp.linalg.vector_norm(x, axis=0, ord=3)
        xp.linalg.vector_norm(x) | xp.linalg.vector_norm(x, axis=(0, 1), keepdims=True)
        xp.linalg.vector_norm(x, axis=1, ord=0) | xp.linalg.vector_norm(v, ord=float("-inf"))
        xp.abs(xp.linalg.qr(x).Q) | xp.linalg.svd(x).U.shape | xp.linalg.svd(x).Vh.shape
        xp.abs(xp.linalg.qr(x, mode="complete").R)
        xp.linalg.cholesky(s) | xp.linalg.cholesky(s, upper=True) | xp.linalg.pinv(x, rtol=0.5)
    """,
    "complex floating-point": """
        xp.fft.fft(x) | xp.fft.ifft(x, n=4, axis=0, norm="forward") | xp.fft.fftn(x)
        xp.fft.ifftn(x, s=(2, 2), axes=(0, 1), norm="ortho") | xp.fft.irfft(x) | xp.fft.hfft(x)
        xp.fft.irfftn(x, axes=(0, 1)) | xp.conj(x) | xp.linspace(0, 1 + 2j, 3, dtype=x.dtype)
        xp.unique_counts(xp.asarray([1, 1])).values | xp.round(x * 2)
        xp.sign(xp.asarray([complex(float("nan"), 1), complex(2, float("nan")), 0j], dtype=x.dtype))
    """,
    "integer or boolean": """
        ~x | x & y | x ^ y | x.__or__(y)
    """,
    "integer": """
        xp.arange(5, dtype=x.dtype) | xp.arange(1, 7, 2, dtype=x.dtype)
        xp.arange(3, 0, dtype=x.dtype)
        xp.iinfo(x).bits | xp.iinfo(x.dtype).max | xp.iinfo(x).min | x << (i & 3) | x >> (i & 3)
    """,
}  # fmt: skip


@pytest.mark.parametrize("kind", ROWS)
def test_rows(kind):
    for dtype in KINDS[kind.strip()]:
        arrays = arrays_of(dtype)
        for row in rows_of(ROWS[kind]):
            assert_same(*evaluate(row, arrays), (row, dtype))


def rows_of(text):
    return [row.strip() for line in text.strip().splitlines() for row in line.split(" | ")]


def arrays_of(dtype):
    """`s` is symmetric and positive definite."""
    found = {"x": numbers(dtype), "y": numbers(dtype, seed=1), "v": numbers(dtype, (3,), seed=2)}
    root = numbers(dtype, (3, 3), seed=3)
    found["s"] = (root @ root.conj().T + 9 * np.eye(3)).astype(dtype)
    found["i"] = (np.arange(6).reshape(2, 3) * 5 % 4).astype(dtype)
    found["b"] = numbers("bool", seed=4)
    return found


# What the standard forbids, or leaves to libraries and tgraph refuses.
REFUSED = {
    "ValueError": """
        xp.concat([x, xp.sum(v)]) | xp.squeeze(x, axis=0) | xp.nonzero(xp.sum(x))
        xp.cumulative_sum(x) | xp.isdtype(x.dtype, "number") | xp.asarray([1.0], copy=False)
        xp.asarray(x, dtype=xp.int8, copy=False) | xp.reshape(x.mT, (6,), copy=False)
        xp.matrix_transpose(v) | xp.vecdot(x, v[:2]) | xp.result_type(1, 2.0)
        x.__array_namespace__(api_version="2020.01") | xp.meshgrid(v, v, indexing="xx")
    """,
    "TypeError": """
        xp.add(1, 2) | xp.astype(xp.asarray([1j]), xp.float32) | xp.sin(1.0)
        xp.isdtype(x.dtype, 1)
        xp.sum([1, 2]) | xp.add(v, "a") | xp.add(v, [1.0, 2.0, 3.0]) | xp.finfo(xp.int8)
        xp.iinfo(xp.float32) | x.__index__()
    """,
    "IndexError": "xp.expand_dims(x, axis=4) | xp.flip(x, axis=2) | xp.moveaxis(xp.sum(v), 0, 0)",
    "Exception": """
        xp.add(x, v[:2]) | xp.matmul(x, x) | xp.matmul(x, xp.sum(v)) | xp.permute_dims(x, (0, 0))
        xp.broadcast_to(x, (2, 2)) | xp.reshape(x, (4,)) | xp.concat([x, v], axis=0)
        xp.max(x[:0, :]) | xp.argmax(x[:0, :]) | xp.linalg.inv(x)
        xp.linalg.cross(x[:, :2], x[:, :2])
        xp.stack([x, v]) | xp.tril(v) | xp.linalg.qr(x, mode="raw") | xp.linalg.cholesky(-1 * s)
        xp.sort(xp.asarray([1j])) | xp.less(xp.asarray([1j]), 1.0) | xp.take(x, xp.asarray([0]))
    """,
}  # fmt: skip


def test_refused():
    arrays = arrays_of("float32")
    for error, rows in REFUSED.items():
        for row in rows_of(rows):
            values = {name: tg.tensor(array) for name, array in arrays.items()}
            with pytest.raises(getattr(builtins, error)):
                print(row, eval(row, {"xp": xp, **values}))


def test_info():
    """Capabilities and dtypes, which tell what programs may ask for."""
    ours, theirs = xp.__array_namespace_info__(), strict.__array_namespace_info__()
    assert ours.capabilities().keys() == theirs.capabilities().keys()
    for kind in (None, "bool", "signed integer", "real floating", ("integral", "complex floating")):
        assert ours.dtypes(kind=kind).keys() == theirs.dtypes(kind=kind).keys(), kind
    assert {name: each.name for name, each in ours.default_dtypes().items()} == {
        "real floating": "float32", "complex floating": "complex64", "integral": "int64",
        "indexing": "int64",
    }  # fmt: skip
    assert ours.default_device() in ours.devices() and ours.devices()[0] == tg.device("cpu")
    x = xp.ones(2)
    assert x.to_device("cpu") is x and x.device == ours.default_device()


def test_creation_of_other_objects():
    """Memory is shared where it can be; integers that no dtype holds are refused."""
    array = np.arange(3.0)
    shared = xp.asarray(array, copy=False)
    shared[0] = 5.0
    assert array[0] == 5.0 and xp.asarray(shared) is shared
    assert xp.asarray(shared, copy=True) is not shared
    assert xp.asarray([[1, 2], [3, 4]]).dtype is xp.int64 and xp.asarray(True).dtype is xp.bool
    assert xp.asarray([1j]).dtype is xp.complex64 and xp.asarray(2.5).dtype is xp.float32
    assert xp.asarray(2**64 - 1, dtype=xp.uint64) == 2**64 - 1
    with pytest.raises(OverflowError):
        xp.asarray(2**70)
    assert [xp.full(1, each).dtype for each in (True, 1, 1.0, 1j)] == [
        xp.bool, xp.int64, xp.float32, xp.complex64
    ]  # fmt: skip


strategies = make_strategies_namespace(xp, api_version="2024.12")


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_hypothesis_makes_tensors_and_keys(data):
    """As the official suite does: elements of every dtype, written, read and chosen by masks."""
    dtype = data.draw(strategies.scalar_dtypes())
    shape = data.draw(strategies.array_shapes(min_dims=0, max_dims=3, max_side=3))
    x = data.draw(strategies.arrays(dtype, shape))
    value = data.draw(strategies.from_dtype(dtype) | strategies.arrays(dtype, ()))
    mask = data.draw(strategies.arrays(xp.bool, shape))
    key = data.draw(strategies.indices(shape))
    keys = key if isinstance(key, tuple) else (key,)
    if any(isinstance(each, slice) and (each.step or 1) < 0 for each in keys):
        key = ...  # PyTorch has no negative steps, nor have tensors here
    for place, there in ((key, key), (mask, mask.numpy())):
        np.testing.assert_array_equal(x[place].numpy(), x.numpy()[there])
        written, expected = xp.asarray(x, copy=True), x.numpy().copy()
        written[place] = value
        expected[there] = np.asarray(value)
        assert written.dtype is dtype
        np.testing.assert_array_equal(written.numpy(), expected)


def test_namespace_is_traced_and_differentiated():
    """In one compiled function, whose results and gradients are those of eager code."""

    def program(x, indices):
        p = x.__array_namespace__()
        scaled = (x - p.mean(x, axis=0)) / (p.std(x, axis=0, correction=1) + 1)
        taken = p.take_along_axis(scaled, p.argsort(scaled, axis=1, descending=True), axis=1)
        running = p.cumulative_sum(p.concat([taken, scaled], axis=1), axis=1, include_initial=True)
        unsigned = p.sum(p.astype(indices, p.uint16) * p.asarray(3, dtype=p.uint16), dtype=p.uint64)
        return p.vecdot(running, running), p.take(running, indices, axis=1), unsigned

    x = tg.tensor(numbers("float32", (4, 3)), requires_grad=True)
    indices = tg.tensor([0, 2, 5])
    eager, compiled = program(x, indices), tg.compile(program)(x, indices)
    for a, b in zip(eager, compiled):
        assert a.dtype is b.dtype
        np.testing.assert_allclose(*(each.numpy(force=True) for each in (a, b)), rtol=1e-5)
    grads = [tg.autograd.grad(each[0].sum(), x)[0].numpy() for each in (eager, compiled)]
    np.testing.assert_allclose(*grads, rtol=1e-4, atol=1e-5)
