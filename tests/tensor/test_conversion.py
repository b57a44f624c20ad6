"""Python numbers, arrays, iteration, copies and pickles."""

from __future__ import annotations

import copy
import operator
import pickle
import warnings
from typing import Any

import numpy as np
import pytest

import tgraph as tg


def test_numbers() -> None:
    assert tg.tensor([[2.5]]).item() == 2.5
    assert int(tg.tensor(3.7)) == 3 and float(tg.tensor(2)) == 2.0
    assert type(tg.tensor(True).item()) is bool
    assert bool(tg.tensor([0.5])) and not tg.tensor(0)
    with pytest.raises(RuntimeError, match="a Tensor with 2 elements cannot be converted to Sca"):
        tg.ones(2).item()
    with pytest.raises(RuntimeError, match="with more than one value is ambiguous"):
        bool(tg.ones(2))
    with pytest.raises(RuntimeError, match="with no values is ambiguous"):
        bool(tg.ones(0))
    with pytest.raises(TypeError, match="only integer tensors of a single element"):
        range(tg.tensor(2.0))


def test_lists() -> None:
    assert tg.arange(4).reshape(2, 2).tolist() == [[0, 1], [2, 3]]
    assert tg.tensor(1.5).tolist() == 1.5
    assert type(tg.tensor([1.5], dtype=tg.bfloat16).tolist()[0]) is float


def test_numpy_shares_memory() -> None:
    x = tg.zeros(3)
    array = x.numpy()
    array[0] = 5
    assert x[0] == 5
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of NumPy, since 2.5
        array.shape = (3, 1)
    assert x.shape == (3,)
    assert x[1:].numpy().base is not None
    with pytest.raises(RuntimeError, match="Can't call numpy\\(\\) on Tensor that requires grad"):
        tg.ones(2, requires_grad=True).numpy()
    assert tg.ones(2, requires_grad=True).numpy(force=True).tolist() == [1.0, 1.0]


def test_numpy_functions_take_tensors() -> None:
    x = tg.tensor([1.0, 4.0])
    assert np.sqrt(x).tolist() == [1.0, 2.0]
    assert np.asarray(x, dtype=np.float64).dtype == np.float64
    with pytest.raises(ValueError, match="a copy is needed to make float64 of float32"):
        np.asarray(x, dtype=np.float64, copy=False)
    assert np.concatenate([x, x]).shape == (4,)
    assert isinstance(np.float64(2) * x, tg.Tensor)
    assert (np.float64(2) * x).dtype is tg.float32
    for mixed in (x + np.ones(2), np.ones(2) + x):
        assert isinstance(mixed, tg.Tensor) and mixed.dtype is tg.float64
    with pytest.raises(TypeError):
        operator.add(x, [1, 2])
    with pytest.raises(TypeError, match=r"add\(\): expected a Tensor or a number, got ndarray"):
        tg.add(x, np.ones(2))


def test_iteration_and_membership() -> None:
    x = tg.arange(6).reshape(2, 3)
    first, second = x
    assert first.tolist() == [0, 1, 2] and len(x) == 2
    second[0] = 9
    assert x[1, 0] == 9 and 9 in x and 7 not in x
    with pytest.raises(TypeError, match="len\\(\\) of a 0-d tensor"):
        len(tg.tensor(1))
    with pytest.raises(TypeError, match="iteration over a 0-d tensor"):
        iter(tg.tensor(1))


def test_hash_and_equality() -> None:
    x = tg.ones(2)
    assert {x: 1}[x] == 1
    assert (x == x).all() and (x == None) is False  # noqa: E711
    assert (x != "a") is True


def test_to() -> None:
    x = tg.ones(2)
    assert x.to(tg.float64).dtype is x.to("cpu", tg.float64).dtype is tg.float64
    assert x.to(dtype=tg.int8).dtype is tg.int8
    assert x.to(tg.ones(1, dtype=tg.float16)).dtype is tg.float16
    assert x.to(x.device) is x
    assert x.type(tg.int32).dtype is tg.int32 and x.type() == "torch.FloatTensor"
    casts: dict[str, Any] = {
        "float": tg.float32, "double": tg.float64, "half": tg.float16, "bfloat16": tg.bfloat16,
        "long": tg.int64, "int": tg.int32, "short": tg.int16, "char": tg.int8, "byte": tg.uint8,
        "bool": tg.bool,
    }  # fmt: skip
    for name, dtype in casts.items():
        assert getattr(x, name)().dtype is dtype


def test_deepcopy() -> None:
    x = tg.tensor([1.0, 2.0], requires_grad=True)
    (x * x).sum().backward()
    both = copy.deepcopy([x, x])
    assert both[0] is both[1] and both[0] is not x
    assert both[0].requires_grad and both[0].grad.tolist() == [2.0, 4.0]
    assert not np.shares_memory(both[0].detach().numpy(), x.detach().numpy())
    with pytest.raises(RuntimeError, match="created explicitly by the user"):
        copy.deepcopy(x * 2)


@pytest.mark.parametrize("dtype", [tg.float32, tg.bfloat16, tg.int8, tg.bool])
def test_pickle(dtype: tg.dtype) -> None:
    x = tg.tensor([[1, 0, 2]], dtype=dtype)
    again = pickle.loads(pickle.dumps(x))
    assert again.dtype is dtype and again.tolist() == x.tolist()
    again.fill_(0)
    assert pickle.loads(pickle.dumps(tg.tensor(2.0, requires_grad=True))).requires_grad
    assert pickle.loads(pickle.dumps(tg.tensor(2.0))).shape == ()
    result = pickle.loads(pickle.dumps(tg.tensor(2.0, requires_grad=True) * 2))
    assert result.item() == 4.0 and result.requires_grad and result.is_leaf


def test_properties() -> None:
    x = tg.zeros(2, 3, dtype=tg.float64)
    assert x.itemsize == x.element_size() == 8 and x.nbytes == 48
    assert x.numel() == x.nelement() == 6
    assert x.is_floating_point() and x.is_signed() and not x.is_complex()
    assert x.is_cpu and not x.is_cuda and x.get_device() == -1
    assert x[0].data_ptr() - x.data_ptr() == 0 and x[1].data_ptr() - x.data_ptr() == 24
    assert str(x.device) == "cpu" and repr(x.dtype) == "tgraph.float64"


def test_limits() -> None:
    assert tg.finfo(tg.float32).eps == 2.0**-23
    assert tg.finfo(tg.bfloat16).max > 3e38 and tg.finfo().bits == 32
    assert tg.iinfo(tg.int8).min == -128
    with pytest.raises(TypeError, match="requires a floating point"):
        tg.finfo(tg.int8)
    with pytest.raises(TypeError, match="requires an integer"):
        tg.iinfo(tg.float32)


def test_names_and_numpy_types_stand_for_dtypes() -> None:
    """Wherever a dtype is taken; what names none is refused by its type, as there."""
    x = tg.ones(2)
    for dtype, other in ((tg.float64, "float64"), (tg.float64, float), (tg.bfloat16, "bfloat16"),
                         (tg.int16, np.int16), (tg.int32, np.dtype("int32"))):  # fmt: skip
        for call in (
            lambda dtype: tg.ones(2, dtype=dtype),
            lambda dtype: x.sum(dtype=dtype),
            tg.compile(lambda dtype: x.cumsum(0, dtype=dtype)),
        ):
            assert call(other).dtype is call(dtype).dtype is dtype
    with pytest.raises(TypeError, match="argument 'dtype' must be dtype, not str"):
        x.sum(dtype="number")
