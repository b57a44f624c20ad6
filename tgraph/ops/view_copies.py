"""`view_copy` and the like: what a view shows, as a tensor of its own, row by row in memory.

>>> import tgraph as tg
>>> x = tg.arange(6.0).reshape(2, 3)
>>> tg.transpose_copy(x, 0, 1).is_contiguous(), tg.unbind_copy(x)
(True, (tensor([0., 1., 2.]), tensor([3., 4., 5.])))
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from ..core.out_argument import with_out
from ..core.tensor import Tensor
from ..core.views import detach
from . import complex_numbers, rearranging, storage_views
from . import movement as m


def _alias(input: Tensor) -> Tensor:
    return input


def _expand(input: Tensor, size: Sequence[int], *, implicit: bool = False) -> Tensor:
    return m.expand(input, size)


def _permute(input: Tensor, dims: Sequence[int]) -> Tensor:
    return m.permute(input, dims)


def _view(input: Tensor, size: Any = None, dtype: Any = None) -> Tensor:
    return storage_views.view(input, *(() if size is None else (size,)), dtype=dtype)


def sliced(
    input: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Tensor:
    """The view `input[start:end:step]` along a dimension."""
    axis = m.normalize_axis(dim, input.ndim)
    at = slice(start, end, step).indices(input.shape[axis])
    return m.slice_axis(input, axis, at[0], max(at[0], at[1]), step)


def _split(input: Tensor, split_size: int, dim: int = 0) -> tuple[Tensor, ...]:
    return m.split(input, split_size, dim)


def slice_inverse(
    input: Tensor,
    src: Tensor,
    dim: int = 0,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
) -> Tensor:
    """A view of `src`, which PyTorch's compiler puts where a slice of `input` is."""
    m.normalize_axis(dim, input.ndim)
    return m.view(src, src.shape)


def _copies(view: Callable[..., Any]) -> Callable[..., Any]:
    """The function that copies what `view` shows; each of several views is copied."""

    @functools.wraps(view)
    def copy(*args: Any, **kwargs: Any) -> Any:
        shown = view(*args, **kwargs)
        if isinstance(shown, Tensor):
            return m.row_major_copy(shown)
        return tuple(m.row_major_copy(each) for each in shown)

    name = f"{view.__name__.lstrip('_').replace('sliced', 'slice')}_copy"
    copy.__name__ = copy.__qualname__ = name
    copy.__module__ = __name__
    copy.__doc__ = f"`{name.removesuffix('_copy')}` as a tensor of its own, or several."
    return with_out(copy, "none", True)


alias_copy = _copies(_alias)
as_strided_copy = _copies(storage_views.as_strided)
detach_copy = _copies(detach)
diagonal_copy = _copies(m.diagonal)
expand_copy = _copies(_expand)
narrow_copy = _copies(m.narrow)
permute_copy = _copies(_permute)
select_copy = _copies(m.select)
slice_copy = _copies(sliced)
split_copy = _copies(_split)
split_with_sizes_copy = _copies(rearranging.split_with_sizes)
squeeze_copy = _copies(m.squeeze)
t_copy = _copies(m.t)
transpose_copy = _copies(m.transpose)
unbind_copy = _copies(m.unbind)
unfold_copy = _copies(m.unfold)
unsqueeze_copy = _copies(m.unsqueeze)
view_as_complex_copy = _copies(complex_numbers.view_as_complex)
view_as_real_copy = _copies(complex_numbers.view_as_real)
view_copy = _copies(_view)
