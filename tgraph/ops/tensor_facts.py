"""What is asked about tensors: yes or no, or a number. Also loops of Python over their elements."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

from ..core.inplace import copy_
from ..core.operands import require_tensor
from ..core.public import public
from ..core.tensor import Size, Tensor
from ..runtime.dtypes import int64
from . import creation, norms
from . import elementwise as e
from . import movement as m
from . import reductions as r
from .concatenation import cat
from .rearranging import unsafe_split
from .sorting import argsort


@public(method=True)
def is_nonzero(input: Tensor) -> bool:
    """Whether the one element is not 0: RuntimeError of more or none."""
    if require_tensor(input, "is_nonzero").numel() != 1:
        what = "no values" if not input.numel() else "more than one value"
        raise RuntimeError(f"Boolean value of Tensor with {what} is ambiguous")
    return bool(input)


@public(method=True)
def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Whether the shapes are equal."""
    return input.shape == require_tensor(other, "is_same_size", "other").shape


@public()
def is_signed(input: Tensor) -> bool:
    """Whether the type of the elements has negative numbers."""
    return require_tensor(input, "is_signed").is_signed()


@public()
def typename(obj: Any) -> str:
    """The full name of the type of an object, as "torch.FloatTensor" of a tensor."""
    if isinstance(obj, Tensor):
        return str(obj.type())
    kind = obj if hasattr(obj, "__qualname__") else type(obj)
    module = getattr(kind, "__module__", "builtins")
    name = str(kind.__qualname__)
    return name if module in (None, "builtins") else f"{module}.{name}"


@public(method=True)
def is_inference(input: Tensor) -> bool:
    """False: tensors made under `inference_mode` are those that `no_grad` makes."""
    require_tensor(input, "is_inference")
    return False


@public(method=True)
def is_distributed(input: Tensor) -> bool:
    """False: there is one process."""
    require_tensor(input, "is_distributed")
    return False


@public(method=True)
def nonzero_static(input: Tensor, *, size: int, fill_value: int = -1) -> Tensor:
    """The first `size` places of what is not 0, in rows; `fill_value` where there are fewer.

    The size is known, so that it can be compiled.

    >>> import tgraph as tg
    >>> tg.nonzero_static(tg.tensor([0, 3, 0, 5]), size=3)
    tensor([[ 1],
            [ 3],
            [-1]])
    """
    if size < 0:
        raise RuntimeError(f"nonzero_static: 'size' must be an non-negative integer, got {size}")
    shape, place = input._type.shape, input._type.device
    found = e.ne(m.reshape(input.detach(), -1), 0)
    count = found._type.shape[0]
    if not shape or not count or not size:
        rows = (size, len(shape))
        return creation.full(rows, fill_value, dtype=int64, device=place)
    at = argsort(found, 0, descending=True, stable=True)[:size]
    is_there = e.lt(creation.arange(size, device=place), r.count_nonzero(found))
    if size > count:
        at = cat([at, creation.zeros(size - count, dtype=at.dtype, device=place)])
    columns = []
    for length in reversed(shape):
        columns.append(e.where(is_there, e.remainder(at, length), fill_value))
        at = e.floor_divide(at, length)
    return m.transpose(m.contiguous(_stacked(columns[::-1])), 0, 1)


def _stacked(columns: Sequence[Tensor]) -> Tensor:
    return cat([m.unsqueeze(each, 0) for each in columns])


@public(method=True)
def unsafe_split_with_sizes(
    input: Tensor, split_sizes: Sequence[int], dim: int = 0
) -> tuple[Tensor, ...]:
    """The parts of `split_with_sizes`, each in memory of its own."""
    return unsafe_split(input, split_sizes, dim)


@public()
def fill(input: Tensor, value: Any) -> Tensor:
    """A tensor as `input`, of one number or of the element of a tensor."""
    return m.clone(require_tensor(input, "fill")).fill_(value)


@public(out=True)
def frobenius_norm(input: Tensor, dim: Any, keepdim: bool = False) -> Tensor:
    """The root of the sum of squares along dimensions; of none, of all elements."""
    dims = (dim,) if isinstance(dim, int) else tuple(dim)
    if len(dims) > 2:
        raise RuntimeError(
            f"Expected at most 2 dimensions, but got {len(dims)} dimensions instead."
        )
    return norms.vector_norm(input, 2, dims or None, keepdim)


@public(out=True)
def nuclear_norm(input: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
    """The sum of singular values of matrices, which lie in two dimensions: the last two."""
    if isinstance(dim, bool):
        dim, keepdim = None, dim
    return norms.matrix_norm(input, "nuc", (-2, -1) if dim is None else tuple(dim), keepdim)


@public()
def norm_except_dim(v: Tensor, pow: int = 2, dim: int = 0) -> Tensor:
    """The norms over all dimensions but one; over all for a `dim` of -1.

    >>> import tgraph as tg
    >>> tg.norm_except_dim(tg.tensor([[3.0, 4.0], [6.0, 8.0]]), 2, 0)
    tensor([[ 5.],
            [10.]])
    """
    if dim == -1:
        return norms.norm(v, pow)
    axes = [at for at in range(v.ndim) if at != m.normalize_axis(dim, v.ndim)]
    return norms.norm(v, pow, axes, keepdim=True) if axes else e.abs(v)


# --- loops of Python -----------------------------------------------------------------------------


def _looped(name: str, function: Callable[..., Any], *tensors: Tensor) -> Tensor:
    """Write over the first tensor what a function of Python gives for each element of all."""
    first = tensors[0]
    if first._type.device.type != "cpu":
        raise TypeError(f"{name} is only implemented on CPU tensors")
    if first.requires_grad:
        raise RuntimeError(f"Can't call {name}() on Variable that requires grad. Use "
                           f"var.detach().{name}().")  # fmt: skip
    rows = [m.expand(each.detach(), *first.shape).flatten().tolist() for each in tensors]
    values = [function(*each) for each in zip(*rows)]
    return copy_(first, creation.tensor(values, dtype=first.dtype).reshape(first.shape))


@public(function=False, method=True)
def apply_(self: Tensor, callable: Callable[[Any], Any]) -> Tensor:
    """Write `callable(element)` over each element: a loop of Python, for tests.

    >>> import tgraph as tg
    >>> tg.tensor([1.0, 2.0]).apply_(lambda number: number + 1)
    tensor([2., 3.])
    """
    return _looped("apply_", callable, self)


@public(function=False, method=True)
def map_(self: Tensor, tensor: Tensor, callable: Callable[[Any, Any], Any]) -> Tensor:
    """Write `callable(element, other)` over each element, with those of another tensor."""
    return _looped("map_", callable, self, tensor)


@public(function=False, method=True)
def map2_(self: Tensor, x: Tensor, y: Tensor, callable: Callable[[Any, Any, Any], Any]) -> Tensor:
    """Write `callable(element, other, third)` over each element, with those of two tensors."""
    return _looped("map2_", callable, self, x, y)


# --- older names ---------------------------------------------------------------------------------


@public(function=False, method=True)
def new(self: Tensor, *args: Any) -> Tensor:
    """A tensor of this one's type and device: of sizes, of data, or without elements."""
    like = {"dtype": self.dtype, "device": self.device}
    if len(args) == 1 and not isinstance(args[0], int):
        is_sizes = isinstance(args[0], Size)
        return creation.empty(*args[0], **like) if is_sizes else creation.tensor(args[0], **like)
    return creation.empty(*(args or (0,)), **like)


@public(function=False, method=True)
def resize(self: Tensor, *sizes: Any) -> Tensor:
    """`reshape`; deprecated, as in PyTorch."""
    warnings.warn("non-inplace resize is deprecated", stacklevel=2)
    return m.reshape(self, *sizes)


@public(function=False, method=True)
def resize_as(self: Tensor, tensor: Tensor) -> Tensor:
    """`reshape_as`; deprecated, as in PyTorch."""
    warnings.warn("non-inplace resize_as is deprecated", stacklevel=2)
    return m.reshape(self, tensor.shape)
