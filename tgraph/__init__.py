"""Tensors recorded in a graph."""

import numpy as _np

from . import dispatch, methods
from .tensor import Tensor, wrap_array


def tensor(data, requires_grad=False):
    array = _np.array(data)
    if array.dtype == _np.float64:
        array = array.astype(_np.float32)
    return wrap_array(array).requires_grad_(requires_grad)
