"""NumPy's functions over tensors: tensors with NumPy's values, and tgraph's gradients."""

import numpy as np
import pytest

import tgraph as tg

A = np.array([[0.5, -1.0, 2.0], [3.0, 0.25, -2.0]])
B = np.array([[1.0, 2.0, -0.5], [0.5, 4.0, 2.5]])

# Of tensors t, and u beside an array b; t and u are A and B as float64.
TENSORS = """
    np.sin(t) | np.add(t, b) | b - t | b * t | b @ t.T | b ** (t * t) | b // t | b % t | b < t
    np.float64(2) * t | np.maximum(t, u) | np.absolute(t) | np.arctan2(t, 2.0) | np.power(2.0, t)
    np.rint(t) | np.sign(t) | np.logical_and(t, u) | np.concatenate([t, b]) | np.vstack((t, u))
    np.stack([t, u], axis=1) | np.where(t > 0, t, b) | np.where(b > 1, t, 0.0) | np.mean(t)
    np.mean(t, axis=1, keepdims=True) | np.sum(t, axis=(0, 1)) | np.prod(t, 0) | np.std(t, ddof=1)
    np.var(t, axis=0) | np.max(t) | np.amin(t, axis=-1) | np.argmax(t, axis=1) | np.all(t > 0)
    np.count_nonzero(t, axis=0) | np.cumsum(t) | np.cumprod(t, axis=1) | np.sort(t) | np.argsort(t)
    np.sort(t, axis=None) | np.dot(t, u.T) | np.dot(t, 2 * t[0]) | np.tensordot(t, u)
    np.outer(t[0], u[1])
    np.einsum("ij,kj->ik", t, b) | np.trace(t, offset=1) | np.reshape(t, (3, 2)) | np.transpose(t)
    np.swapaxes(t, 0, 1) | np.moveaxis(t, 0, 1) | np.expand_dims(t, 1)
    np.squeeze(t[:1]) | np.ravel(t)
    np.flip(t) | np.roll(t, 1) | np.tile(t, 2) | np.repeat(t, 2, axis=1) | np.clip(t, -1, 1)
    np.take(t, [0, 2], axis=1) | np.diff(t) | np.round(t, decimals=1) | np.zeros_like(t)
    np.full_like(t, 2) | np.broadcast_to(t, (2, 2, 3)) | np.isclose(t, u) | np.copy(t)
    np.linalg.norm(t) | np.linalg.norm(t, axis=1) | np.linalg.inv(t @ t.T) | np.linalg.det(t @ t.T)
    np.linalg.solve(t @ t.T, b) | np.add(t, u, dtype=np.float32) | np.nonzero(t > 1)[0]
    np.add.reduce(t) | np.multiply.outer(t[0], t[1]) | np.modf(t)[0]
    np.divmod(b, t)[1] | np.hypot(t, 3) | np.nextafter(0.5, t) | np.logical_and(1, t)
"""
# What NumPy itself computes, or is told of a tensor.
OTHERS = """
    np.median(t) | np.unique(t) | np.allclose(t, u) | np.array_equal(t, t)
    np.interp(t, [0, 1], [0, 1])
    np.shape(t) | np.ndim(t) | np.size(t) | np.max(t, initial=9.0) | np.asarray(t)
"""


def rows_of(text):
    return [row.strip() for line in text.strip().splitlines() for row in line.split(" | ")]


@pytest.mark.parametrize("text, own", [(TENSORS, True), (OTHERS, False)], ids=["own", "numpy"])
def test_values(text, own):
    for row in rows_of(text):
        found = eval(row, {"np": np, "t": tg.tensor(A), "u": tg.tensor(B), "b": B})
        expected = eval(row, {"np": np, "t": A, "u": B, "b": B})
        assert isinstance(found, tg.Tensor) is own, row
        assert np.shape(found) == np.shape(expected), row
        assert np.asarray(found).dtype == np.asarray(expected).dtype, row
        np.testing.assert_allclose(np.asarray(found), expected, err_msg=row)


def test_gradients_are_recorded_and_traced():
    def program(t):
        return np.sum(np.sin(t) * B + np.where(t > 1, np.concatenate([t[:1], B[1:]]), np.exp(t)))

    t = tg.tensor(A, requires_grad=True)
    inner = np.where([[True] * 3, [False] * 3], 1.0, 0.0)
    expected = np.cos(A) * B + np.where(A > 1, inner, np.exp(A))
    for function in (program, tg.compile(program)):
        np.testing.assert_allclose(tg.grad(function)(t).numpy(force=True), expected)
    with pytest.raises(RuntimeError, match="detach"):
        np.median(t)  # NumPy would lose the history


def test_results_are_written_where_they_are_asked_for():
    """Into arrays by NumPy, into tensors as any write in place."""
    array, t = A.copy(), tg.tensor(B)
    array += t
    np.multiply(array, t, out=array)
    np.testing.assert_array_equal(array, (A + B) * B)
    view, version = t[0], t._version
    assert np.add(t, 1.0, out=t) is t
    assert t._version > version and view.tolist() == (B[0] + 1).tolist()
