"""Arrays of NumPy as tensors: strides, byte order, alignment and overlap, eager and compiled."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

import tgraph as tg

RUNS = [pytest.param(lambda f: f, id="eager"), pytest.param(tg.compile, id="compiled")]
PACKED = np.dtype([("flag", "i1"), ("x", "f4"), ("y", "f8")])  # 13 bytes
ALIGNED = np.dtype([("x", "f4"), ("y", "f8")], align=True)  # 16 bytes


def records(dtype: np.dtype[Any], count: int = 5) -> np.ndarray[Any, Any]:
    found = np.zeros(count, dtype)
    for name in dtype.names or ():
        found[name] = np.arange(count) + 1
    return found


class Interface:
    """Memory that is known by the array interface alone."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.held = array
        self.__array_interface__ = array.__array_interface__


ODD = {
    "a field of packed records": records(PACKED)["x"],
    "a longer field": records(PACKED)["y"],
    "a field before others": records(np.dtype([("x", "f8"), ("flag", "i1")]))["x"],
    "two dimensions": records(PACKED, 6).reshape(2, 3)["y"],
    "backwards": records(PACKED)["x"][::-1],
}


@pytest.mark.parametrize("array", ODD.values(), ids=ODD)
def test_strides_between_elements_are_refused_where_memory_is_shared(array: Any) -> None:
    with pytest.raises(ValueError, match=r"stride.*copy"):
        tg.from_numpy(array)
    with pytest.raises((BufferError, ValueError)):
        tg.from_dlpack(array)


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("make", [tg.tensor, tg.as_tensor, tg.asarray], ids=lambda f: f.__name__)
@pytest.mark.parametrize("of", [lambda a: a, Interface], ids=["array", "interface"])
@pytest.mark.parametrize("array", ODD.values(), ids=ODD)
def test_strides_between_elements_are_copied_elsewhere(
    array: Any, of: Any, make: Any, run: Any
) -> None:
    made = make(of(array))
    assert made.dtype is tg.tensor(array.copy()).dtype
    assert not np.shares_memory(made.numpy(), array)
    assert run(lambda x: x * 2)(made).tolist() == (array * 2).tolist()


def test_one_record_is_refused_as_several_are() -> None:
    with pytest.raises(ValueError, match=r"stride.*copy"):
        tg.from_numpy(records(PACKED, 1)["x"])
    assert tg.from_numpy(records(PACKED, 0)["x"]).shape == (0,)
    assert tg.as_tensor(records(PACKED, 1)["x"]).stride() == (1,)


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("field", ["x", "y"])
def test_aligned_records_are_shared(field: str, run: Any) -> None:
    array = records(ALIGNED)
    shared = tg.from_numpy(array[field])
    run(lambda x: x.mul_(2))(shared)
    assert array[field].tolist() == [2.0, 4.0, 6.0, 8.0, 10.0]
    other = {"x": "y", "y": "x"}[field]
    assert array[other].tolist() == [1.0, 2.0, 3.0, 4.0, 5.0]


@pytest.mark.parametrize("make", [tg.tensor, tg.as_tensor], ids=lambda f: f.__name__)
@pytest.mark.parametrize("run", RUNS)
def test_negative_strides_are_copied(make: Any, run: Any) -> None:
    array = np.arange(6.0).reshape(2, 3)
    for backwards in (array[::-1], array[:, ::-1], array.T[::-1]):
        made = make(backwards)
        assert min(made.stride()) > 0 and not np.shares_memory(made.numpy(), array)
        assert run(lambda x: x * 2)(made).tolist() == (backwards * 2).tolist()


@pytest.mark.parametrize("make", [tg.tensor, tg.as_tensor], ids=lambda f: f.__name__)
@pytest.mark.parametrize("dtype", ["f4", "f8", "i2", "i8", "f2"])
@pytest.mark.parametrize("run", RUNS)
def test_swapped_bytes_are_converted(make: Any, dtype: str, run: Any) -> None:
    array = np.arange(5).astype(">" + dtype)
    with pytest.raises(ValueError, match="byte order"):
        tg.from_numpy(array)
    assert run(lambda x: x + x)(make(array)).tolist() == [0, 2, 4, 6, 8]


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("offset", [1, 2, 3, 5, 7])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, np.int64, np.int16])
def test_memory_that_is_not_aligned_is_shared(dtype: Any, offset: int, run: Any) -> None:
    """Elements may begin at any byte, as in a file that was read whole."""
    count = 1000
    memory = bytearray(np.dtype(dtype).itemsize * count + offset)
    array = np.frombuffer(memory, dtype, count, offset)
    array[:] = np.arange(count) % 100
    before = array.copy()
    x, y = tg.from_numpy(array), tg.from_numpy(array[:900].reshape(30, 30))
    assert run(lambda x: (x * 2).sum())(x).item() == tg.from_numpy(before * 2).sum().item()
    square = before[:900].reshape(30, 30)
    assert run(lambda y: y.t() + y)(y).tolist() == (square.T + square).tolist()
    if np.dtype(dtype).kind == "f":
        aligned = tg.tensor(square)
        wanted = (aligned @ aligned).numpy()
        np.testing.assert_allclose(run(lambda y: y @ y)(y).numpy(), wanted, rtol=1e-2)
    run(lambda x: x.add_(1))(x)
    assert array.tolist() == (before + 1).tolist()


# --- several elements at one place ---------------------------------------------------------------


def strided(shape: tuple[int, ...], strides: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Numbers from 0 on, with strides in elements."""
    extent = 1 + sum((size - 1) * stride for size, stride in zip(shape, strides))
    return as_strided(np.arange(float(extent)), shape, tuple(8 * each for each in strides))


OVERLAPPING = {
    "expanded": ((2, 3), (0, 1)),
    "windows": ((4, 3), (1, 1)),
    "windows with steps": ((3, 4), (3, 1)),
    "diagonals": ((3, 3), (2, 1)),
    "crossing": ((4, 3), (2, 3)),
    "three dimensions": ((2, 3, 3), (9, 2, 1)),
}
APART = {
    "dense": ((3, 4), (4, 1)),
    "transposed": ((3, 4), (1, 3)),
    "windows that touch": ((3, 2), (2, 1)),
    "combs": ((5, 2), (2, 3)),  # 0 2 4 6 8 and 3 5 7 9 11
    "long combs": ((2, 50), (25, 4)),
    "gaps": ((3, 2), (10, 3)),
    "one of a kind": ((1, 3), (0, 1)),
}
WRITES: dict[str, Callable[[Any], Any]] = {
    "add_": lambda x: x.add_(1),
    "copy_": lambda x: x.copy_(tg.arange(x.numel()).reshape(x.shape)),
    "a row": lambda x: x[0].mul_(2),
    "an element": lambda x: x.__setitem__((0,) * x.ndim, 7.0),
    "by mask": lambda x: x.__setitem__(x > 1, 7.0),
    "by positions": lambda x: x.__setitem__(tg.tensor([0]), 7.0),
    "out": lambda x: tg.exp(tg.zeros(x.shape, dtype=tg.float64), out=x),
    "a view": lambda x: x.t().zero_() if x.ndim == 2 else x[0].t().zero_(),
}


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
@pytest.mark.parametrize("layout", OVERLAPPING.values(), ids=OVERLAPPING)
def test_overlapping_elements_are_not_written(layout: Any, write: Any, run: Any) -> None:
    """What such a write means depends on its order, and compiled code has another one."""
    array = strided(*layout)
    x = tg.from_numpy(array)
    before = array.copy()
    with pytest.raises(RuntimeError, match="clone"):
        run(lambda x: (write(x), x * 1)[1])(x)
    captured = tg.from_numpy(array)
    with pytest.raises(RuntimeError, match="clone"):
        run(lambda: (write(captured), captured * 1)[1])()
    assert array.tolist() == before.tolist()
    assert run(lambda x: x * 2)(x).tolist() == (before * 2).tolist()


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
@pytest.mark.parametrize("layout", APART.values(), ids=APART)
def test_elements_apart_are_written_alike(layout: Any, write: Any) -> None:
    found = []
    for run in (lambda f: f, tg.compile):
        array = strided(*layout)
        result = run(lambda x: (write(x), x * 1)[1])(tg.from_numpy(array))
        assert result.tolist() == array.tolist()
        found.append(result.tolist())
    assert found[0] == found[1]


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize(
    "view",
    [
        lambda x: x.unfold(0, 3, 1),
        lambda x: x.unfold(0, 3, 1)[::3],
        lambda x: x.expand(3, 6),
        lambda x: x.expand(3, 6)[0],
        lambda x: x.view(2, 3).unfold(1, 2, 1)[0],
    ],
    ids=["windows", "every third window", "expanded", "a row of expanded", "a row of windows"],
)
def test_views_that_overlap_are_not_written(view: Any, run: Any) -> None:
    x = tg.arange(6.0)
    with pytest.raises(RuntimeError, match="clone"):
        run(lambda x: (view(x).add_(1), x * 1)[1])(x)
    assert x.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]


def test_random_layouts_are_told_apart() -> None:
    """Against the places themselves, counted."""
    rng = np.random.default_rng(0)
    seen = set()
    for _ in range(500):
        ndim = int(rng.integers(1, 4))
        shape = tuple(int(n) for n in rng.integers(1, 5, ndim))
        strides = tuple(int(n) for n in rng.integers(0, 9, ndim))
        places = [sum(i * s for i, s in zip(index, strides)) for index in np.ndindex(shape)]
        apart = len(set(places)) == len(places)
        seen.add(apart)
        x = tg.from_numpy(strided(shape, strides))
        if apart:
            x.add_(1)
        else:
            with pytest.raises(RuntimeError, match="single memory location"):
                x.add_(1)
    assert seen == {True, False}


# --- the array afterwards ------------------------------------------------------------------------


@pytest.mark.parametrize("make", [tg.from_numpy, tg.as_tensor], ids=lambda f: f.__name__)
@pytest.mark.parametrize("run", RUNS)
def test_a_tensor_keeps_its_shape_and_flags(make: Any, run: Any) -> None:
    """As any view of an array does, whatever becomes of the array itself."""
    array = np.arange(6.0)
    x, double = make(array), run(lambda x: x * 2)
    assert double(x).shape == (6,)
    view = array.view()
    array.flags.writeable = False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        array.shape = (2, 3)
        array.dtype = np.int64
    run(lambda x: x.add_(1))(x)
    assert view.tolist() == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    assert double(x).tolist() == [2.0, 4.0, 6.0, 8.0, 10.0, 12.0]


@pytest.mark.parametrize("of", [lambda a: a, Interface], ids=["array", "interface"])
def test_tensor_copies_and_as_tensor_shares(of: Any) -> None:
    array = np.arange(3.0)
    assert not np.shares_memory(tg.tensor(of(array)).numpy(), array)
    assert np.shares_memory(tg.as_tensor(of(array)).numpy(), array)
    assert not np.shares_memory(tg.as_tensor(of(array), dtype=tg.float32).numpy(), array)


@pytest.mark.parametrize("dtype", [np.float32, np.bool_, np.complex64, tg.bfloat16.numpy])
def test_arrays_that_came_by_dlpack_are_shared(dtype: Any) -> None:
    """Also where NumPy takes all of them for read-only."""
    array = np.zeros((2, 3), dtype)
    source = tg.from_numpy(array) if dtype == tg.bfloat16.numpy else array
    x = tg.from_dlpack(source, copy=False)
    x[1, 2] = 1
    assert array[1, 2] == 1 and x.shape == (2, 3)
    array[0, 0] = 1
    assert x[0, 0] == 1
