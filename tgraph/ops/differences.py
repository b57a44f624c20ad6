"""Differences of neighbours, and integrals by trapezoids."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..compiler.ir.shapes import are_same, normalize_axis
from ..core.operands import Operand, promote, require_tensor
from ..core.public import public
from ..core.tensor import Tensor
from ..runtime.dtypes import bool_
from . import elementwise as e
from . import movement as m
from . import reductions as r
from .concatenation import cat
from .scans import cumsum


@public(method=True, out="exact", overlap="any")
def diff(
    input: Tensor,
    n: int = 1,
    dim: int = -1,
    prepend: Tensor | None = None,
    append: Tensor | None = None,
) -> Tensor:
    """Differences of neighbours along `dim`, taken `n` times.

    >>> import tgraph as tg
    >>> tg.diff(tg.tensor([1, 4, 9, 16]))
    tensor([3, 5, 7])
    """
    if not require_tensor(input, "diff").ndim:
        raise RuntimeError("diff expects input to be at least one-dimensional")
    if n < 0:
        raise RuntimeError(f"order must be non-negative but got {n}")
    axis = normalize_axis(dim, input.ndim)
    _check_beside(input, axis, prepend, append)
    if not n:
        return m.clone(input)
    parts = [each for each in (prepend, input, append) if each is not None]
    x = cat(parts, axis) if len(parts) > 1 else input
    for _ in range(min(n, x._type.shape[axis])):
        size = max(x._type.shape[axis] - 1, 0)
        right, left = (
            m.narrow(x, axis, x._type.shape[axis] - size, size),
            m.narrow(x, axis, 0, size),
        )
        x = e.logical_xor(right, left) if x._type.dtype is bool_ else e.sub(right, left)
    return x


def _check_beside(input: Tensor, axis: int, *others: Tensor | None) -> None:
    """RuntimeError for what does not fit before or behind the input."""
    for other in others:
        if other is None:
            continue
        if other.ndim != input.ndim:
            raise RuntimeError(
                f"diff expects prepend or append to be the same dimension as input: expected "
                f"{input.ndim} dimensions, got {other.ndim}"
            )
        for at, (size, wanted) in enumerate(zip(other._type.shape, input._type.shape)):
            if at != axis and not are_same((size,), (wanted,)):
                raise RuntimeError(
                    "diff expects the shape of tensor to prepend or append to match that of input "
                    f"except along the differencing dimension; input.size({at}) = {wanted}, but "
                    f"got tensor.size({at}) = {size}"
                )


def _steps(y: Tensor, x: Tensor | None, dx: Any, dim: int) -> tuple[int, Tensor]:
    """Of each trapezoid twice its area."""
    if not require_tensor(y, "trapezoid", "y").ndim:
        raise IndexError("trapezoid: y must have at least one dimension")
    axis = normalize_axis(dim, y.ndim)
    size = y._type.shape[axis]
    count = max(size - 1, 0)
    sides = e.add(m.narrow(y, axis, 0, count), m.narrow(y, axis, size - count, count))
    if x is None:
        return axis, e.mul(sides, dx)
    if x.ndim == 1:
        if x._type.shape[0] != size:
            raise RuntimeError(
                f"There must be one `x` value for each sample point, got {x._type.shape[0]} for "
                f"{size}"
            )
        widths = m.reshape(diff(x), [count if at == axis else 1 for at in range(y.ndim)])
    else:
        widths = diff(x, dim=dim)
    return axis, e.mul(sides, widths)


@public(aliases=("trapz",))
def trapezoid(y: Tensor, x: Tensor | None = None, *, dx: Operand = 1, dim: int = -1) -> Tensor:
    """The integral along `dim` of lines through values `y` at places `x`, or `dx` apart.

    >>> import tgraph as tg
    >>> tg.trapezoid(tg.tensor([1.0, 2.0, 3.0]))
    tensor(4.)
    """
    axis, steps = _steps(y, x, dx, dim)
    return e.div(r.sum(steps, axis), 2)


@public()
def cumulative_trapezoid(
    y: Tensor, x: Tensor | None = None, *, dx: Operand = 1, dim: int = -1
) -> Tensor:
    """The integrals up to each place but the first: see `trapezoid`.

    >>> import tgraph as tg
    >>> tg.cumulative_trapezoid(tg.tensor([1.0, 2.0, 3.0]))
    tensor([1.5000, 4.0000])
    """
    axis, steps = _steps(y, x, dx, dim)
    return e.div(cumsum(steps, axis), 2)


@public()
def gradient(
    input: Tensor,
    *,
    spacing: Any = 1,
    dim: int | Sequence[int] | None = None,
    edge_order: int = 1,
) -> tuple[Tensor, ...]:
    """Slopes along each of `dim`, by central differences, at the ends by one-sided ones.

    `spacing` is the distance of neighbours, or one for each dimension, or tensors of places.

    >>> import tgraph as tg
    >>> tg.gradient(tg.tensor([1.0, 4.0, 9.0]))
    (tensor([3., 4., 5.]),)
    """
    if require_tensor(input, "gradient")._type.dtype is bool_:
        raise RuntimeError("gradient(): booleans have no slope; convert them with .float()")
    if edge_order not in (1, 2):
        raise RuntimeError("torch.gradient only supports edge_order=1 and edge_order=2.")
    dims = list(range(input.ndim)) if dim is None else [dim] if isinstance(dim, int) else list(dim)
    spacing = 1 if spacing is None else spacing
    axes = [normalize_axis(each, input.ndim) for each in dims]
    for each in axes:
        if axes.count(each) > 1:
            raise RuntimeError(f"dim {each} appears multiple times in the list of dims")
    if isinstance(spacing, Tensor) and spacing.ndim:
        raise TypeError(
            "gradient(): argument 'spacing' must be a number or a list with one for each dimension;"
            " tensors of places go into a list"
        )
    given = list(spacing) if isinstance(spacing, (list, tuple)) else [spacing] * len(dims)
    if len(given) != len(dims):
        raise RuntimeError(
            f"torch.gradient expected spacing to be unspecified, a scalar or a list of length "
            f"{len(dims)}, got {len(given)} values"
        )
    return tuple(
        _slope(input, normalize_axis(each, input.ndim), by, edge_order)
        for each, by in zip(dims, given, strict=True)
    )


def _slope(x: Tensor, axis: int, spacing: Any, edge_order: int) -> Tensor:
    size = x._type.shape[axis]
    if size <= edge_order:
        raise RuntimeError(
            "torch.gradient expected each dimension size to be at least edge_order+1"
        )
    if isinstance(spacing, Tensor) and spacing.ndim:
        if spacing.ndim != 1 or spacing._type.shape[0] != size:
            raise RuntimeError(
                f"gradient(): expected spacing to be a vector of {size} places for dimension "
                f"{axis}, got a tensor of shape {list(spacing._type.shape)}"
            )
        return _slope_between_places(*promote("gradient", x, spacing), axis, edge_order)

    def at(start: int, count: int = 1) -> Tensor:
        return m.narrow(x, axis, start, count)

    def of_three(one: Tensor, two: Tensor, three: Tensor) -> Tensor:
        return e.add(e.sub(e.mul(two, 2), e.mul(one, 1.5)), e.mul(three, -0.5))

    if edge_order == 1:
        first, last = e.sub(at(1), at(0)), e.sub(at(size - 1), at(size - 2))
    else:
        first = of_three(at(0), at(1), at(2))
        last = e.neg(of_three(at(size - 1), at(size - 2), at(size - 3)))
    inner = e.div(e.sub(at(2, size - 2), at(0, size - 2)), 2)
    # Divided one by one, so that the last node is that of `cat`, as in PyTorch.
    return cat([e.div(each, spacing) for each in (first, inner, last)], axis)


def _slope_between_places(x: Tensor, places: Tensor, axis: int, edge_order: int) -> Tensor:
    size = x._type.shape[axis]
    widths = m.reshape(diff(places), [-1 if at == axis else 1 for at in range(x.ndim)])
    slopes = e.div(diff(x, dim=axis), widths)

    def part(y: Tensor, start: int, count: int) -> Tensor:
        return m.narrow(y, axis, start, count)

    first, last = part(slopes, 0, 1), part(slopes, size - 2, 1)
    if size > 2:
        before, after = part(slopes, 0, size - 2), part(slopes, 1, size - 2)
        left, right = part(widths, 0, size - 2), part(widths, 1, size - 2)
        total = e.add(left, right)
        inner = e.div(e.add(e.mul(before, right), e.mul(after, left)), total)
        if edge_order == 2:
            bend = e.div(e.sub(after, before), total)
            first = e.sub(first, e.mul(part(bend, 0, 1), part(widths, 0, 1)))
            last = e.add(last, e.mul(part(bend, size - 3, 1), part(widths, size - 2, 1)))
        return cat([first, inner, last], axis)
    return cat([first, last], axis)
