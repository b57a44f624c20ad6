"""Making tensors: dtypes, sharing, checks."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tgraph.runtime.cuda import backend

import tgraph as tg


@pytest.mark.parametrize(
    ("data", "dtype"),
    [
        (1, tg.int64),
        (1.5, tg.float32),
        (True, tg.bool),
        ([1, 2.5], tg.float32),
        ([], tg.float32),
        ([[True], [False]], tg.bool),
        (np.float32(3), tg.float32),
        (np.ones(2), tg.float64),
        ([np.float64(1.0)], tg.float64),
        (np.ones(2, ml_dtypes.bfloat16), tg.bfloat16),
        (range(3), tg.int64),
    ],
    ids=str,
)
def test_dtype_of_data(data: Any, dtype: tg.dtype) -> None:
    assert tg.tensor(data).dtype is dtype


@pytest.fixture
def default_dtype() -> Iterator[None]:
    yield
    tg.set_default_dtype(tg.float32)


def test_default_dtype(default_dtype: None) -> None:
    tg.set_default_dtype(tg.float64)
    assert tg.get_default_dtype() is tg.float64
    assert tg.tensor(1.5).dtype is tg.zeros(2).dtype is tg.randn(2).dtype is tg.float64
    assert (tg.tensor(2) / 3).dtype is tg.float64
    with pytest.raises(TypeError, match="only floating-point types"):
        tg.set_default_dtype(tg.int32)


def test_tensor_copies() -> None:
    array = np.zeros(3)
    tensor = tg.tensor(array)
    array[0] = 5
    assert tensor.tolist() == [0.0, 0.0, 0.0]
    with pytest.warns(UserWarning, match="recommended to use sourceTensor"):
        copy = tg.tensor(tensor)
    copy[0] = 7
    assert tensor[0] == 0


def test_from_numpy_shares() -> None:
    array = np.zeros((2, 3))
    tensor = tg.from_numpy(array)
    array[0, 0] = 5
    tensor[1, 2] = 7
    assert tensor[0, 0] == 5 and array[1, 2] == 7
    assert np.shares_memory(tensor.numpy(), array)
    assert tg.from_numpy(array.T).stride() == (1, 3)


def test_from_numpy_refuses_what_it_cannot_hold() -> None:
    with pytest.raises(TypeError, match=r"expected np.ndarray"):
        tg.from_numpy([1, 2])
    with pytest.raises(ValueError, match="negative"):
        tg.from_numpy(np.zeros(3)[::-1])
    with pytest.raises(
        TypeError, match=r"can't convert np.ndarray of type complex256|type clongdouble"
    ):
        tg.from_numpy(np.zeros(2, np.clongdouble))
    other = np.zeros(2, ">f4" if sys.byteorder == "little" else "<f4")
    with pytest.raises(ValueError, match="byte order"):
        tg.from_numpy(other)


def test_a_read_only_array_is_not_written() -> None:
    array = np.zeros(2)
    array.flags.writeable = False
    tensor = tg.from_numpy(array)
    for write in (lambda: tensor.add_(1), lambda: tensor.__setitem__(0, 1.0)):
        with pytest.raises(RuntimeError, match="read-only"):
            write()
    assert (tensor + 1).tolist() == [1.0, 1.0]


def test_as_tensor_shares_where_it_can() -> None:
    array = np.zeros(2, np.float32)
    assert np.shares_memory(tg.as_tensor(array).numpy(), array)
    assert not np.shares_memory(tg.as_tensor(array, dtype=tg.float64).numpy(), array)
    tensor = tg.ones(2)
    assert tg.as_tensor(tensor) is tensor
    assert tg.as_tensor([1, 2]).dtype is tg.int64


def test_nested_tensors() -> None:
    assert tg.tensor([tg.tensor(1.0), tg.tensor(2.0)]).tolist() == [1.0, 2.0]
    assert tg.tensor([[tg.tensor(1), 2]]).tolist() == [[1, 2]]


@pytest.mark.parametrize("data", [[[1, 2], [3]], "a", [1, "a"], [1, None], [object]], ids=str)
def test_data_that_is_no_numbers(data: Any) -> None:
    with pytest.raises((ValueError, TypeError, RuntimeError), match=r"tensor\(\)"):
        tg.tensor(data)


def test_values_that_do_not_fit() -> None:
    with pytest.raises(RuntimeError, match="without overflow"):
        tg.tensor(300, dtype=tg.uint8)
    assert tg.tensor([-1.7, 2.7], dtype=tg.int32).tolist() == [-1, 2]
    large = [[2**63 + 1], [3]]  # of which NumPy makes floats
    assert tg.tensor(large, dtype=tg.uint64).tolist() == large
    assert tg.tensor([2.0**63, 1.0, float("nan")])[:2].tolist() == [2.0**63, 1.0]
    for dtype in (None, tg.int64):
        with pytest.raises(RuntimeError, match="int64 without overflow"):
            tg.tensor(large, dtype=dtype)
    with pytest.raises(RuntimeError, match="uint64 without overflow"):
        tg.tensor([2**63 + 1, -1], dtype=tg.uint64)


def test_negative_numbers_wrap_into_unsigned_types() -> None:
    assert tg.tensor([-1, -255], dtype=tg.uint8).tolist() == [255, 1]  # as in PyTorch
    with pytest.raises(RuntimeError, match="without overflow"):
        tg.tensor([-256], dtype=tg.uint8)


def test_python_and_numpy_types_as_dtype() -> None:
    assert tg.zeros(2, dtype=float).dtype is tg.float64
    assert tg.zeros(2, dtype=np.int16).dtype is tg.int16
    assert tg.zeros(2, dtype=bool).dtype is tg.bool


def test_filled() -> None:
    assert tg.full((2,), 7).dtype is tg.int64
    assert tg.full((2,), 7.0).dtype is tg.float32
    assert tg.full((2,), True).dtype is tg.bool
    assert tg.full((2,), tg.tensor(3.5)).tolist() == [3.5, 3.5]
    assert tg.full(3, 2).shape == (3,)
    assert tg.zeros(2, 3).shape == tg.zeros((2, 3)).shape == tg.zeros([2, 3]).shape == (2, 3)
    assert tg.zeros(()).shape == tg.zeros(tg.Size([])).shape == ()
    assert tg.ones_like(tg.zeros(2, dtype=tg.int8)).dtype is tg.int8
    assert tg.zeros(2).new_full((1,), 3).dtype is tg.float32
    with pytest.raises(RuntimeError, match="negative dimension -1"):
        tg.zeros(2, -1)


def test_every_call_makes_new_memory() -> None:
    first, second = tg.zeros(2), tg.zeros(2)
    first[0] = 1
    assert second.tolist() == [0.0, 0.0]
    scalar = tg.tensor(2.0)
    scalar.add_(1)
    assert (tg.tensor(2.0) * 1).item() == 2.0
    assert (tg.ones(1) * 2.0).item() == 2.0


def test_arange() -> None:
    assert tg.arange(3).dtype is tg.int64
    assert tg.arange(2, 10, 3).tolist() == [2, 5, 8]
    assert tg.arange(3, 0, -1).tolist() == [3, 2, 1]
    assert tg.arange(0, 1, 0.25).tolist() == [0.0, 0.25, 0.5, 0.75]
    assert tg.arange(3, dtype=tg.float64).dtype is tg.float64
    assert tg.arange(0).shape == (0,)
    assert tg.arange(0, 1, 0.1).shape == (10,)
    assert len(tg.arange(70000.0)) == 70000 and tg.arange(70000.0)[-1] == 69999
    with pytest.raises(RuntimeError, match="step must be nonzero"):
        tg.arange(0, 3, 0)
    with pytest.raises(RuntimeError, match="inconsistent with step sign"):
        tg.arange(3, 0)


def test_sequences() -> None:
    np.testing.assert_array_equal(tg.linspace(0, 1, 5).numpy(), [0, 0.25, 0.5, 0.75, 1])
    assert tg.linspace(3, 5, 1).tolist() == [3.0]
    np.testing.assert_allclose(tg.logspace(0, 2, 3).numpy(), [1, 10, 100])
    np.testing.assert_array_equal(tg.eye(2, 3).numpy(), np.eye(2, 3))


def test_matrices() -> None:
    x = tg.arange(12.0).reshape(3, 4)
    for k in (-2, 0, 1):
        np.testing.assert_array_equal(tg.tril(x, k).numpy(), np.tril(x.numpy(), k))
        np.testing.assert_array_equal(tg.triu(x, k).numpy(), np.triu(x.numpy(), k))
        np.testing.assert_array_equal(tg.diag(x, k).numpy(), np.diag(x.numpy(), k))
        np.testing.assert_array_equal(tg.diag(x[0], k).numpy(), np.diag(x.numpy()[0], k))
    assert tg.tril(tg.ones(2, 2, dtype=tg.bool)).dtype is tg.bool
    with pytest.raises(RuntimeError, match="at least 2 dimensions"):
        tg.tril(tg.ones(3))


def test_meshgrid() -> None:
    for indexing in ("ij", "xy"):
        found = tg.meshgrid(tg.arange(2), tg.arange(3), indexing=indexing)
        expected = np.meshgrid(np.arange(2), np.arange(3), indexing=indexing)
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_array_equal(a.numpy(), b)


def test_cuda_is_refused_where_it_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backend, "why_unavailable", lambda: "there is no driver")
    for make in (
        lambda: tg.zeros(2, device="cuda"),
        lambda: tg.ones(2).to("cuda:0"),
        lambda: tg.ones(2).cuda(),
        lambda: tg.tensor([1.0], device=tg.device("cuda")),
        lambda: tg.randn(2, device=0),
        lambda: tg.nn.Linear(2, 2).cuda(),
    ):
        with pytest.raises(RuntimeError, match=r"^CUDA is not available: there is no driver$"):
            make()
    with pytest.raises(RuntimeError, match="Expected one of cpu, cuda"):
        tg.zeros(2, device="tpu")
    assert tg.zeros(2, device="cpu").device == tg.device("cpu")


def test_devices_by_name() -> None:
    assert tg.device("cuda:1") == tg.device("cuda", 1) != tg.device("cuda")
    assert tg.device("cuda:1").type == "cuda" and str(tg.device("cuda:1")) == "cuda:1"
    for bad in ("gpu", "cpu:", "cuda:x", ""):
        with pytest.raises(RuntimeError, match="Expected one of cpu, cuda, meta device type"):
            tg.device(bad)


def test_the_constructor_of_the_class() -> None:
    assert tg.Tensor(2, 3).shape == (2, 3)
    assert tg.Tensor([1, 2]).dtype is tg.float32
    assert tg.Tensor().shape == (0,)


def test_numbers_of_the_other_byte_order_are_numbers() -> None:
    for kind in (">f4", ">i2", "<f8", ">c8"):
        assert tg.tensor(np.array([1, 2], kind)).tolist() == [1, 2]


@pytest.mark.parametrize("steps", [1, 2, 7, 10])
def test_linspace_of_integers_is_cut_alike_of_ends_that_are_not_known(steps):
    compiled = tg.compile(lambda start, end: tg.linspace(start, end, steps, dtype=tg.int64))
    for start, end in np.random.default_rng(0).integers(-50, 50, (20, 2)).astype(float).tolist():
        expected = tg.linspace(start, end, steps, dtype=tg.int64)
        assert compiled(tg.tensor(start), tg.tensor(end)).tolist() == expected.tolist()
    assert tg.linspace(-30.0, 24.0, 10, dtype=tg.int64).tolist() == [*range(-30, 25, 6)]
