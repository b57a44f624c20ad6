"""What distributions share: broadcast parameters, probabilities and logits, lazy parameters."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from numbers import Number
from typing import Any

from ..compiler.ir import primitives as p
from ..compiler.ir.promotion import promote_types
from ..core.dispatch import apply
from ..core.dtype_info import finfo
from ..core.grad_mode import recorded
from ..core.state import state
from ..core.tensor import Tensor
from ..ops import random
from ..ops.activations import sigmoid, softmax
from ..ops.creation import arange, eye
from ..ops.creation_options import get_default_dtype
from ..ops.elementwise import clamp
from ..ops.from_data import tensor
from ..ops.movement import broadcast_tensors
from ..ops.special_functions import lgamma

euler_constant = 0.57721566490153286060


def broadcast_all(*values: Any) -> tuple[Tensor, ...]:
    """Tensors of one shape; numbers take the dtype and device of the first tensor.

    >>> broadcast_all(tensor([1.0, 2.0]), 3)
    (tensor([1., 2.]), tensor([3., 3.]))
    """
    if not all(isinstance(each, (Tensor, Number)) for each in values):
        kinds = [type(each).__name__ for each in values]
        raise ValueError(
            "Input arguments must all be instances of Number, torch.Tensor or objects implementing "
            f"__torch_function__. Distributions expected numbers or tensors, got {kinds}"
        )
    given = [each for each in values if isinstance(each, Tensor)]
    options: dict[str, Any] = {"dtype": get_default_dtype()}
    if given:
        options = {"dtype": given[0].dtype, "device": given[0].device}
    tensors = [each if isinstance(each, Tensor) else tensor(each, **options) for each in values]
    return tuple(broadcast_tensors(*tensors))


def checked(holds: Tensor, value: Tensor, message: Callable[[], str]) -> Tensor:
    """`value`, where `holds` is true throughout.

    Eager code raises ValueError at once. In a trace values are not known yet: there the compiled
    function raises RuntimeError when it runs.
    """
    if state.context is None:
        if not bool(holds.all()):
            raise ValueError(f"{message()}, but found invalid values:\n{value}")
        return value
    return apply(p.require, holds.all().expand(value.shape), value, message=message())


def log_multigamma(a: Tensor, size: int) -> Tensor:
    """The logarithm of the gamma function of matrices of `size` rows.

    >>> log_multigamma(tensor(2.0), 1)
    tensor(0.)
    """
    halves = arange(size, dtype=a.dtype, device=a.device) / 2
    constant = size * (size - 1) / 4 * math.log(math.pi)
    return lgamma(a.unsqueeze(-1) - halves).sum(-1) + constant


def sum_rightmost(value: Tensor, dims: int) -> Tensor:
    """The sum over the last `dims` dimensions."""
    if dims == 0:
        return value
    return value.reshape(*value.shape[: value.ndim - dims], -1).sum(-1)


def standard_normal(shape: Any, dtype: Any, device: Any) -> Tensor:
    """Normal numbers of mean 0 and deviation 1."""
    return random.randn(*shape, dtype=dtype, device=device)


# Packages that extend PyTorch's distributions import them under these names.
_sum_rightmost, _standard_normal = sum_rightmost, standard_normal


def uniform_like(shape: Any, like: Tensor) -> Tensor:
    """Uniform numbers in (0, 1), neither 0 nor 1, with the dtype and device of `like`."""
    numbers = random.rand(*shape, dtype=like.dtype, device=like.device)
    kind = finfo(like.dtype)
    return clamp(numbers, kind.tiny, 1 - kind.eps / 2)


def clamp_probs(probs: Tensor) -> Tensor:
    """Probabilities at least one spacing away from 0 and 1."""
    eps = finfo(probs.dtype).eps
    return clamp(probs, eps, 1 - eps)


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """Probabilities of log odds (`is_binary`) or of log-probabilities that need not be normalized.

    >>> logits_to_probs(tensor([0.0, 0.0]))
    tensor([0.5000, 0.5000])
    """
    return sigmoid(logits) if is_binary else softmax(logits, -1)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """Log odds (`is_binary`) or log-probabilities."""
    inside = clamp_probs(probs)
    return inside.log() - (-inside).log1p() if is_binary else inside.log()


def tril_matrix_to_vec(mat: Tensor, diag: int = 0) -> Tensor:
    """The elements of a lower triangle, row by row, as a vector."""
    size = mat.shape[-1]
    if not -size <= diag < size:
        raise ValueError(f"diag ({diag}) provided is outside [{-size}, {size - 1}].")
    places = [i * size + j for i in range(size) for j in range(min(i + diag, size - 1) + 1)]
    flat = mat.reshape(*mat.shape[:-2], size * size)
    return flat.index_select(-1, tensor(places, device=mat.device))


def vec_to_tril_matrix(vec: Tensor, diag: int = 0) -> Tensor:
    """The lower triangle of which `tril_matrix_to_vec` makes `vec`."""
    count = vec.shape[-1]
    whole = -(1 + 2 * diag) + ((1 + 2 * diag) ** 2 + 8 * count + 4 * abs(diag) * (diag + 1)) ** 0.5
    size = round(whole / 2)
    places = [i * size + j for i in range(size) for j in range(min(i + diag, size - 1) + 1)]
    if len(places) != count:
        raise ValueError(
            f"The size of last dimension is {count} which cannot be expressed as the lower "
            "triangular part of a square D x D matrix."
        )
    index = tensor(places, device=vec.device).expand(vec.shape)
    flat = vec.new_zeros((*vec.shape[:-1], size * size)).scatter(-1, index, vec)
    return flat.reshape(*vec.shape[:-1], size, size)


def identity_like(matrix: Tensor) -> Tensor:
    """The unit matrix of a matrix's size, dtype and device."""
    return eye(matrix.shape[-1], dtype=matrix.dtype, device=matrix.device)


def diagonal_matrix(values: Tensor) -> Tensor:
    """Matrices with the last dimension of `values` on their diagonals."""
    return values.unsqueeze(-1) * eye(values.shape[-1], dtype=values.dtype, device=values.device)


def wider(*tensors: Tensor) -> Any:
    """The dtype that holds those of all tensors."""
    return functools.reduce(promote_types, [each.dtype for each in tensors])


class lazy_property:
    """A property that is computed, with gradients, when it is first read, and then kept."""

    def __init__(self, wrapped: Callable[[Any], Any]) -> None:
        self.wrapped = wrapped
        functools.update_wrapper(self, wrapped)  # type: ignore[arg-type]

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self
        with recorded():
            value = self.wrapped(instance)
        setattr(instance, self.wrapped.__name__, value)
        return value
