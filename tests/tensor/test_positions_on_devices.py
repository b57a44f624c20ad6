"""Tensors on CUDA devices: read, written and summed at positions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from device_tools import CPU, same

import tgraph as tg
from tgraph.nn import functional as F

pytest_plugins = ["cuda_tools.device"]

TABLE = np.array([[0, -1], [2, 1]])
INDICES = {
    "list": [2, 0, 2],
    "negative": [-1, -3],
    "array": np.array([1, 2]),
    "table": TABLE,
    "pair": ([0, 1], [2, -1]),
    "apart": ([0, 1], slice(None), [1, 0]),
    "behind": (slice(1, 3), [0, 2]),
    "behind two": (slice(None), slice(1), [3, 3, -4]),
    "broadcast": (TABLE, [[1]]),
    "none": (None, [0], Ellipsis, 1),
    "mask": np.array([True, False, True]),
    "wide mask": np.arange(15).reshape(3, 5) % 3 == 0,
    "mask behind": (slice(None), np.array([True, False, True, True, False])),
    "mask of none": np.zeros(3, bool),
    "number": 1,
    "numbers": (-1, 2, 0),
    "slices": (slice(None, None, 2), slice(-2, None)),
    "empty list": [],
    "true": True,
    "false": False,
    "bytes": np.array([1, 0, 1], np.uint8),
    "one position": np.array([2]),
    "a position": np.array(-1),
    "positions behind": (slice(None), np.array(2), np.array([1, 1])),
}


def index_on(index: Any, device: Any) -> Any:
    """An index with its arrays as tensors on a device."""
    if isinstance(index, tuple):
        return tuple(index_on(each, device) for each in index)
    return tg.tensor(index, device=device) if isinstance(index, np.ndarray) else index


@pytest.mark.parametrize("dtype", [tg.float32, tg.bfloat16, tg.int16, tg.bool], ids=str)
def test_what_is_distinct(dtype: Any, cuda: Any) -> None:
    """Elements never come to the host, which reads how many are distinct."""
    x = (tg.arange(60) * 7 % 4 - 1).reshape(15, 2, 2).to(dtype)
    if dtype is tg.float32:
        x[3, 1, 0] = x[4, 1, 0] = float("nan")
    for function in (tg.unique, tg.unique_consecutive):
        for dim in (None, 0, 1):
            for given in (x, x[:0]) if dim != 1 else (x,):
                for returned in ({}, {"return_counts": True}, {"return_inverse": True}):
                    expected = function(given, dim=dim, **returned)
                    found = function(given.cuda(), dim=dim, **returned)
                    pairs = zip(found, expected, strict=True) if returned else [(found, expected)]
                    for one, other in pairs:
                        same(one, other, cuda)
    same(x.cuda().nonzero(), x.nonzero(), cuda)
    same(tg.tensor(2, device=cuda).nonzero(), tg.tensor(2).nonzero(), cuda)


@pytest.mark.parametrize("dtype", [tg.float32, tg.bfloat16, tg.int8, tg.bool], ids=str)
@pytest.mark.parametrize("index", INDICES.values(), ids=INDICES)
def test_reading_and_writing_at_positions(index: Any, dtype: Any, cuda: Any) -> None:
    x = (tg.arange(60) % 7).reshape(3, 5, 4).to(dtype)
    expected = x[index_on(index, CPU)]
    same(x.cuda()[index_on(index, cuda)], expected, cuda)
    several = (tg.arange(expected.numel()) % 5).reshape(expected.shape).to(dtype)
    for values in (1, several, tg.tensor(3).to(dtype)):
        here, there = x.clone(), x.cuda()
        here[index_on(index, CPU)] = values
        there[index_on(index, cuda)] = values.cuda() if isinstance(values, tg.Tensor) else values
        same(there, here, cuda)
        assert there._version == here._version


def test_writing_through_a_view_at_positions(cuda: Any) -> None:
    for device in (CPU, cuda):
        x = tg.zeros(3, 4, device=device)
        x.T[tg.tensor([1, 3, 1], device=device)] = tg.arange(9.0, device=device).reshape(3, 3)
        assert x.tolist() == [[0, 6, 0, 3], [0, 7, 0, 4], [0, 8, 0, 5]]


@pytest.mark.parametrize("wrong", [5, -6, 2**40])
def test_positions_outside(wrong: int, cuda: Any) -> None:
    x = tg.arange(5.0, device=cuda)
    at = tg.tensor([0, wrong], device=cuda)
    values = tg.ones(2, device=cuda)
    message = f"^index {wrong} is out of bounds for dimension 0 with size 5$"
    for access in (
        lambda: x[at],
        lambda: x[:, None][at],
        lambda: x.__setitem__(at, 1.0),
        lambda: x.__setitem__(at, values),
        lambda: x.index_put_((at,), values),
        lambda: x.index_put_((at,), values, accumulate=True),
        lambda: tg.take(x, at),
        lambda: tg.take_along_dim(x, at, 0),
        lambda: tg.gather(x, 0, at),
        lambda: tg.index_select(x, 0, at),
        lambda: tg.scatter(x, 0, at, values),
        lambda: tg.scatter_add(x, 0, at, values),
        lambda: tg.index_add(x, 0, at, values),
        lambda: F.embedding(at, x[:, None]),
    ):
        with pytest.raises(IndexError, match=message):
            access()
    assert x.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]
    for number in (5, -6):
        with pytest.raises(IndexError, match=f"^index {number} is out of bounds"):
            x[number]
    with pytest.raises(IndexError, match="The shape of the mask"):
        x[tg.ones(4, dtype=tg.bool, device=cuda)]
    with pytest.raises(RuntimeError, match="smaller than num_classes"):
        tg.one_hot(tg.tensor([3], device=cuda), 3)


def test_integer_division_by_zero(cuda: Any) -> None:
    x = tg.tensor([1, 2], device=cuda)
    for divide in (lambda: x // 0, lambda: x % tg.tensor([1, 0], device=cuda)):
        with pytest.raises(RuntimeError, match=r"^ZeroDivisionError$"):
            divide()
    same(x / 0, tg.tensor([float("inf")] * 2), cuda)


def test_sums_at_repeated_positions_are_the_same_every_time(cuda: Any) -> None:
    tg.manual_seed(0)
    at, values = tg.randint(0, 7, (3000,)), tg.randn(3000)
    zeros = tg.zeros(7, device=cuda)
    runs = [tg.index_add(zeros, 0, at.cuda(), values.cuda()).tolist() for _ in range(3)]
    assert runs[0] == runs[1] == runs[2]
    np.testing.assert_allclose(runs[0], tg.index_add(tg.zeros(7), 0, at, values).numpy(), rtol=1e-4)
    weight = tg.randn(7, 3, device=cuda, requires_grad=True)
    F.embedding(at.cuda(), weight).sum().backward()
    counts = tg.bincount(at, minlength=7)
    np.testing.assert_array_equal(weight.grad.cpu().numpy(), counts[:, None].expand(7, 3).numpy())
