"""Tensors to and from other libraries without a copy, by the protocol of DLPack.

The protocol: https://dmlc.github.io/dlpack/latest/python_spec.html
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..compiler.ir import primitives as p
from ..core.devices import DeviceLike, as_device
from ..core.dispatch import apply, settled
from ..core.tensor import Tensor
from ..ops.conversion import array_of, to
from ..ops.from_data import from_cuda_array, from_numpy
from ..runtime.arrays import copy_of, to_host
from ..runtime.cuda import arrays as cuda_arrays
from ..runtime.device import META
from ..runtime.dtypes import bfloat16
from .capsules import (
    BFLOAT,
    UINT,
    CapsuleArray,
    Writeable,
    is_capsule,
    is_writeable,
    kind_in,
    relabel,
)

# Kinds of devices, as dlpack.h numbers them.
_CPU, _CUDA, _CUDA_HOST, _CUDA_MANAGED = 1, 2, 3, 13


def dlpack_device(self: Tensor) -> tuple[int, int]:
    """The kind of device as DLPack numbers it, 1 for the CPU and 2 for CUDA, and its number."""
    if self._type.device is META:
        raise ValueError("Unknown device type meta for Dlpack")
    return (
        (_CPU, 0)
        if self._type.device.is_host
        else cuda_arrays.dlpack_device(array_of(self, "__dlpack__()"))
    )


def dlpack(
    self: Tensor,
    *,
    stream: int | None = None,
    max_version: tuple[int, int] | None = None,
    dl_device: tuple[int, int] | None = None,
    copy: bool | None = None,
) -> Any:
    """A capsule that lends this tensor's memory to another library; its `from_dlpack` calls this.

    `stream` is that on which the reader works: it waits for what was asked of the current stream
    of the tensor's device. None and 1 mean the default stream, -1 that nobody waits. `max_version`
    is the newest DLPack that the reader knows. `dl_device` is where it wants the elements: where
    they are, or on the CPU, which takes a copy. `copy` makes one always (True) or never (False).

    BufferError for a tensor that requires grad, whose history the reader would not have; for
    another device; for a needed copy that `copy` forbids; and for memory that must not be written,
    if the reader knows no DLPack 1.0.

    >>> import numpy as np
    >>> import tgraph as tg
    >>> x = tg.zeros(3)
    >>> shown = np.from_dlpack(x)
    >>> x[1] = 5.0
    >>> shown
    array([0., 5., 0.], dtype=float32)
    """
    if settled(self)._requires_grad:
        raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
    if self._type.device is META:
        raise BufferError("Cannot pack tensors on meta")
    array = array_of(self, "__dlpack__()")
    if not isinstance(array, np.ndarray):
        if dl_device is None or tuple(dl_device) == cuda_arrays.dlpack_device(array):
            lent = copy_of(array) if copy else array
            return cuda_arrays.to_dlpack(lent, stream, max_version)
        array, stream, copy = _on_host(array, dl_device, copy), None, None
    if dl_device is not None and tuple(dl_device) != (_CPU, 0):  # NumPy 2.1 raises ValueError
        raise BufferError("unsupported device requested")
    stream = None if stream == -1 else stream  # nobody waits on the CPU
    options = {"max_version": max_version, "dl_device": dl_device, "copy": copy}
    if self._type.dtype is bfloat16:
        return relabel(array.view(np.uint16).__dlpack__(stream=stream, **options), BFLOAT)
    return array.__dlpack__(stream=stream, **options)


def _on_host(array: Any, dl_device: tuple[int, int], copy: bool | None) -> np.ndarray[Any, Any]:
    """The elements of an array of a device, for a reader that wants them on the CPU."""
    if tuple(dl_device) != (_CPU, 0):
        raise BufferError(
            f"unsupported device requested: {dl_device}; a tensor on "
            f"'{cuda_arrays.device_of(array)}' can be exported where it is, or to the CPU"
        )
    if copy is False:
        raise BufferError(
            f"cannot export from '{cuda_arrays.device_of(array)}' to the CPU without a copy"
        )
    return to_host(array)


def from_dlpack(ext_tensor: Any, *, device: DeviceLike = None, copy: bool | None = None) -> Tensor:
    """A tensor over the memory of an array of another library: writes to one show in the other.

    Takes whatever has `__dlpack__`, or a capsule that it gave, and lies on the CPU or on a CUDA
    device, where the current stream waits for it. With `device`, the elements are moved there.
    `copy` makes a copy always (True) or never (False); by default one is made for another device,
    and of memory that its owner does not let be written, or, by a DLPack before 1.0, does not say
    so.

    TypeError for objects without the protocol, on other devices, and for element types that
    tensors cannot hold; ValueError for negative strides; BufferError for a needed copy that `copy`
    forbids.

    >>> import numpy as np
    >>> import tgraph as tg
    >>> array = np.arange(3)
    >>> tg.from_dlpack(array).add_(10)
    tensor([10, 11, 12])
    >>> array
    array([10, 11, 12])
    """
    if is_capsule(ext_tensor):
        ext_tensor = CapsuleArray(ext_tensor)
    if not (hasattr(ext_tensor, "__dlpack__") and hasattr(ext_tensor, "__dlpack_device__")):
        raise TypeError(
            "from_dlpack(): expected an array with __dlpack__ and __dlpack_device__, or its "
            f"capsule, got {type(ext_tensor).__name__}"
        )
    kind = int(ext_tensor.__dlpack_device__()[0])
    if kind in (_CUDA, _CUDA_MANAGED):
        shown, writeable = from_cuda_array(cuda_arrays.from_dlpack(ext_tensor)), True
    elif kind in (_CPU, _CUDA_HOST):
        array = _on_cpu(ext_tensor)
        shown, writeable = from_numpy(array), array.flags.writeable
    else:
        raise TypeError(
            "from_dlpack(): expected an array on the CPU (1) or a CUDA device (2), got one on a "
            f"device of kind {kind}; copy it there first"
        )
    there = shown._type.device if device is None else as_device(device)
    if there != shown._type.device:
        if copy is False:
            raise BufferError(
                f"cannot move from '{shown._type.device}' to '{there}' without a copy"
            )
        return to(shown, there)
    if copy is False and not writeable:
        raise BufferError("the array must not be written: it cannot become a tensor without a copy")
    return apply(p.copy, shown) if copy or not writeable else shown


def _on_cpu(source: Any) -> np.ndarray[Any, Any]:
    try:
        capsule = source.__dlpack__(max_version=(1, 0))
    except TypeError:  # by a DLPack before 1.0
        capsule = source.__dlpack__()
    if kind_in(capsule) != BFLOAT:
        return _read(capsule)
    return _read(relabel(capsule, UINT)).view(bfloat16.numpy)


def _read(capsule: Any) -> np.ndarray[Any, Any]:
    may_be_written = is_writeable(capsule)
    source: Any = CapsuleArray(capsule)
    array = np.from_dlpack(source)
    return array if array.flags.writeable or not may_be_written else np.asarray(Writeable(array))


for _name, _method in (("__dlpack__", dlpack), ("__dlpack_device__", dlpack_device)):
    setattr(Tensor, _name, _method)
