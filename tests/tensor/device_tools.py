"""What tests of tensors on devices share."""

from __future__ import annotations

from typing import Any

import numpy as np

import tgraph as tg
from tgraph.nn import functional as F

CPU = tg.device("cpu")
ON_SEVERAL = "Expected all tensors to be on the same device, but found at least two devices, "

MADE = {
    "zeros": lambda **on: tg.zeros(2, 3, **on),
    "ones": lambda **on: tg.ones((2, 3), dtype=tg.bfloat16, **on),
    "empty": lambda **on: tg.empty(2, 0, **on),
    "full": lambda **on: tg.full((2,), 7, **on),
    "full of a tensor": lambda **on: tg.full((2,), tg.tensor(2.5), **on),
    "scalar_tensor": lambda **on: tg.scalar_tensor(3, **on),
    "tensor": lambda **on: tg.tensor([[1, 2], [3, 4]], **on),
    "tensor of an array": lambda **on: tg.tensor(np.arange(6.0).reshape(2, 3).T, **on),
    "tensor of a number": lambda **on: tg.tensor(1.5, dtype=tg.float16, **on),
    "tensor of tensors": lambda **on: tg.tensor([tg.tensor(1), 2], **on),
    "as_tensor": lambda **on: tg.as_tensor([True, False], **on),
    "arange": lambda **on: tg.arange(5, **on),
    "arange of floats": lambda **on: tg.arange(0, 1, 0.25, **on),
    "arange by two": lambda **on: tg.arange(7, 0, -2, **on),
    "arange of halves": lambda **on: tg.arange(300, dtype=tg.float16, **on),
    "linspace": lambda **on: tg.linspace(0, 1, 5, **on),
    "logspace": lambda **on: tg.logspace(0, 2, 3, **on),
    "eye": lambda **on: tg.eye(2, 3, **on),
    "randperm": lambda **on: tg.randperm(9, **on),
    "randint": lambda **on: tg.randint(-3, 9, (4,), **on),
    "large randint": lambda **on: tg.randint(-(2**62), 2**62, (4,), **on),
    "rand": lambda **on: tg.rand(5, **on),
    "rand of doubles": lambda **on: tg.rand(5, dtype=tg.float64, **on),
    "rand of halves": lambda **on: tg.rand(5, dtype=tg.bfloat16, **on),
}

X, Y = tg.ones(2), tg.ones(2, 2)
MIXED = {
    "add": lambda d: X.to(d) + X,
    "sub": lambda d: X - X.to(d),
    "lt": lambda d: X.to(d) < X,
    "iadd": lambda d: X.to(d).add_(X),
    "where": lambda d: tg.where(X.to(d) > 1, X.to(d), X),
    "matmul": lambda d: Y.to(d) @ Y,
    "linear": lambda d: F.linear(X.to(d), Y),
    "cat": lambda d: tg.cat([X, X.to(d)]),
    "stack": lambda d: tg.stack([X, X.to(d)]),
    "gather": lambda d: tg.gather(X.to(d), 0, tg.zeros(2, dtype=tg.int64)),
    "index_select": lambda d: tg.index_select(X, 0, tg.zeros(2, dtype=tg.int64, device=d)),
    "scatter_add": lambda d: tg.scatter_add(X.to(d), 0, tg.zeros(2, dtype=tg.int64), X),
    "index_add": lambda d: tg.index_add(X.to(d), 0, tg.zeros(2, dtype=tg.int64), X),
    "embedding": lambda d: F.embedding(tg.zeros(2, dtype=tg.int64), Y.to(d)),
    "conv2d": lambda d: F.conv2d(tg.ones(1, 1, 3, 3, device=d), tg.ones(1, 1, 2, 2)),
    "cross_entropy": lambda d: F.cross_entropy(Y.to(d), tg.zeros(2, dtype=tg.int64)),
    "mse_loss": lambda d: F.mse_loss(X.to(d), X),
    "searchsorted": lambda d: tg.searchsorted(X.to(d), X),
    "masked_fill": lambda d: tg.masked_fill(X.to(d), X > 1, 0.0),
    "setitem": lambda d: X.to(d).__setitem__(tg.tensor([0, 1]), X),
    "setitem of the cpu": lambda d: X.clone().__setitem__(tg.tensor([0, 1]), X.to(d)),
    "out": lambda d: tg.add(X.to(d), 1, out=X.clone()),
    "iadd of a number": lambda d: tg.tensor(1.0).add_(tg.tensor(1.0, device=d)),
    "einsum": lambda d: tg.einsum("i,i->", X, X.to(d)),
    "maximum": lambda d: tg.maximum(X, X.to(d)),
}


def same(found: Any, expected: Any, device: Any) -> None:
    """Equal elements and dtypes, of a tensor on the device and one on the CPU."""
    assert found.device == device and found.dtype is expected.dtype
    assert found.shape == expected.shape
    np.testing.assert_array_equal(found.detach().cpu().numpy(), expected.detach().numpy())
