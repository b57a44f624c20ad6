# ruff: noqa: F403 - the namespace is what its chapters have
"""The Python array API standard, 2024.12: tensors for programs that name no library.

The functions of the standard by its own names and rules, where those of `tgraph` are PyTorch's.
They are thin: each is an operation of `tgraph`, so results have gradients, and `tgraph.compile`
traces them. Source: https://data-apis.org/array-api/2024.12/

>>> import tgraph as tg
>>> x = tg.tensor([[1.0, 2.0], [3.0, 5.0]])
>>> xp = x.__array_namespace__()
>>> xp.sum(x, axis=0, keepdims=True)
tensor([[4., 7.]])
"""

from math import e, inf, nan, pi

from . import (
    creation,
    data_types,
    elementwise,
    fft,
    linalg,
    manipulation,
    reductions,
    searching,
)
from .creation import *
from .data_types import *
from .elementwise import *
from .info import array_namespace_info as __array_namespace_info__
from .linalg import matmul, matrix_transpose, tensordot, vecdot
from .manipulation import *
from .reductions import *
from .searching import *

__array_api_version__ = "2024.12"
newaxis = None

__all__ = [
    *creation.__all__, *data_types.__all__, *elementwise.__all__, *manipulation.__all__,
    *reductions.__all__, *searching.__all__, "matmul", "matrix_transpose", "tensordot", "vecdot",
    "fft", "linalg", "e", "inf", "nan", "newaxis", "pi", "__array_api_version__",
    "__array_namespace_info__",
]  # fmt: skip


def __dir__() -> list[str]:
    return sorted({*__all__, *(each for each in globals() if each.startswith("__"))})
