"""Exchange of memory with other libraries by DLPack.

>>> import numpy as np
>>> import tgraph as tg
>>> tg.utils.dlpack.from_dlpack(np.ones(2, np.float32))
tensor([1., 1.])
"""

from __future__ import annotations

from typing import Any

from ..core.tensor import Tensor
from ..interop.dlpack import from_dlpack

__all__ = ["from_dlpack", "to_dlpack"]


def to_dlpack(tensor: Tensor) -> Any:
    """The capsule of a tensor, which can be taken once."""
    return tensor.__dlpack__()
