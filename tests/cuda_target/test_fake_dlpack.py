"""The stand-in's DLPack is CuPy's: CuPy itself takes its capsules, for which it needs no GPU."""

from __future__ import annotations

import inspect
import warnings
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from cuda_tools import fake_cupy
from cuda_tools.fake_cupy import cupy, dlpack

DTYPES = [*map(np.dtype, "?bhiqBHIQefd"), np.dtype(ml_dtypes.bfloat16)]


@pytest.fixture(autouse=True)
def machine() -> Any:
    with fake_cupy.install() as made:
        yield made


@pytest.fixture
def real() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip("cupy", reason="CuPy is not installed")


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("version", [None, (1, 0)])
def test_cupy_takes_its_capsules(real: Any, dtype: Any, version: Any) -> None:
    array = cupy.array(np.ones((3, 4), dtype)).T
    capsule = array.__dlpack__(max_version=version)
    theirs = real.from_dlpack(capsule)
    assert (theirs.dtype, theirs.shape, theirs.strides) == (dtype, (4, 3), array.strides)
    assert (theirs.data.ptr, theirs.data.device_id) == (array.data.ptr, 0)
    for take in (real.from_dlpack, cupy.from_dlpack):
        with pytest.raises(ValueError, match="cannot be consumed multiple times"):
            take(capsule)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("version", [None, (1, 0)])
def test_it_takes_its_own_capsules(dtype: Any, version: Any) -> None:
    array = cupy.array(np.ones((3, 4), dtype))[1:, ::2]
    capsule = array.__dlpack__(max_version=version)
    shown = cupy.from_dlpack(capsule)
    assert (shown.dtype, shown.shape, shown.strides) == (dtype, (2, 2), array.strides)
    assert shown.data.ptr == array.data.ptr
    assert type(shown.data.mem) is dlpack.DLPackMemory
    for wrong in (capsule, 3):
        with pytest.raises(ValueError, match="cannot be consumed multiple times"):
            cupy.from_dlpack(wrong)


def test_signatures_are_those_of_cupy(real: Any) -> None:
    ours = inspect.signature(dlpack.from_dlpack).parameters
    assert [str(each.replace(annotation=each.empty)) for each in ours.values()] == [
        "array", "device=None", "copy=None"
    ]  # fmt: skip
    assert "from_dlpack(array, *, device=None, copy=None)" in real.from_dlpack.__doc__
    known = real.ndarray.__dlpack__.__doc__
    assert "(self, *, stream=None, tuple max_version=None, dl_device=None, copy=None)" in known
    assert list(inspect.signature(dlpack.dlpack).parameters) == [
        "self", "stream", "max_version", "dl_device", "copy"
    ]  # fmt: skip


def test_what_it_refuses(real: Any) -> None:
    for library in (cupy, real):
        with pytest.raises(TypeError, match="CPU arrays cannot be directly imported"):
            library.from_dlpack(np.ones(2))
        with pytest.raises(RuntimeError, match="CuPy is built against CUDA"):
            library.from_dlpack(np.ones(2).__dlpack__())
        with pytest.raises(NotImplementedError, match="does not support device"):
            library.from_dlpack(np.ones(2), device=(2, 0))
    for stream in (0, -2, "1"):
        with pytest.raises(ValueError, match="the valid stream for the DLPack protocol"):
            cupy.zeros(2).__dlpack__(stream=stream)


def test_memory_is_kept_for_the_reader() -> None:
    used = cupy.get_default_memory_pool().used_bytes
    array = cupy.zeros(128, np.float64)
    shown = cupy.from_dlpack(array)
    del array
    assert used() == 1024 and shown.tolist() == [0.0] * 128
    del shown
    assert used() == 0


def test_the_second_device_is_told() -> None:
    with cupy.cuda.Device(1):
        array = cupy.zeros(2)
    assert array.__dlpack_device__() == (2, 1)
    assert cupy.from_dlpack(array).device.id == 1
    assert cupy.cuda.Device().id == 0
