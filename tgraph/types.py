"""The types that annotations of programs for PyTorch name."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import IO, TypeAlias

from .core.tensor import Size, Tensor
from .ops.storage import UntypedStorage as Storage
from .runtime.device import Device as _device
from .runtime.dtypes import DType

__all__ = ["Device", "FileLike", "Number", "Storage"]

Number: TypeAlias = int | float | bool
Device: TypeAlias = _device | str | int | None
FileLike: TypeAlias = str | os.PathLike[str] | IO[bytes]
_int, _float, _bool, _dtype = int, float, bool, DType
_size: TypeAlias = Size | Sequence[int]
_TensorOrTensors: TypeAlias = Tensor | Sequence[Tensor]
