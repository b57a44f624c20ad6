"""Gradients of tensors of a graph with respect to other tensors of it."""

from __future__ import annotations

from typing import Any

from ..autograd.api import grad
from ..compiler.ir import Node
from ..core.dispatch import settled
from ..core.tensor import Tensor
from ..ops.creation import ones_like, zeros_like
from ..ops.from_data import as_tensor


def gradients(
    ys: Any, xs: Any, grad_ys: Any = None, unconnected_gradients: str = "none"
) -> list[Tensor | None]:
    """The gradients of the sum of all `ys` with respect to each of `xs`, a tensor or several.

    `xs` are placeholders, variables, or whatever is computed of these. `grad_ys` are factors of the
    shapes of `ys`, None for ones. The gradients can be differentiated again, and so can `ys`. Where
    `ys` do not depend on one of `xs`, it is None, or zeros if `unconnected_gradients` is "zero".

    RuntimeError for one of `xs` whose history nobody knows: it is detached, was made under
    `no_grad()`, or is a constant or random number without `requires_grad_()`.

    >>> import tgraph as tg
    >>> with tg.Graph() as g:
    ...     x = tg.placeholder(tg.float32, (None,), "x")
    ...     square = x**2
    ...     slope, of_square = tg.gradients(square * x, [x, square])
    ...     (bend,) = tg.gradients(slope, x)
    >>> tg.Session(g).run([slope, of_square, bend], {x: [1.0, 2.0]})
    [tensor([ 3., 12.]), tensor([1., 2.]), tensor([ 6., 12.])]
    """
    results = list(ys) if isinstance(ys, (tuple, list)) else [ys]
    asked = list(xs) if isinstance(xs, (tuple, list)) else [xs]
    factors = grad_ys if isinstance(grad_ys, (tuple, list)) else [grad_ys] * len(results)
    if len(factors) != len(results):
        raise ValueError(f"gradients(): got {len(results)} ys and {len(factors)} grad_ys")
    if unconnected_gradients not in ("none", "zero"):
        raise ValueError(
            f"gradients(): unconnected_gradients is 'none' or 'zero', not {unconnected_gradients!r}"
        )
    for at, x in enumerate(asked):
        _check(x, f"xs[{at}]")
    known = [
        (y, ones_like(y) if own is None else _factor(own, y))
        for y, own in zip(results, factors, strict=True)
        if settled(y)._requires_grad
    ]
    if not known:
        raise RuntimeError("gradients(): none of ys depends on anything that requires gradients")
    heads, given = zip(*known, strict=True)
    found = grad(heads, asked, given, create_graph=True, allow_unused=True)
    if unconnected_gradients == "none":
        return list(found)
    return [zeros_like(x) if each is None else each for each, x in zip(found, asked)]


def _factor(given: Any, y: Tensor) -> Tensor:
    return given if isinstance(given, Tensor) else as_tensor(given, dtype=y.dtype)


def _check(x: Any, which: str) -> None:
    if not isinstance(x, Tensor):
        raise TypeError(f"gradients(): {which} is a {type(x).__name__}, not a tensor")
    if settled(x)._requires_grad:
        return
    if not x._type.dtype.is_differentiable:
        raise TypeError(f"gradients(): {which} is of {x.dtype}, which has no gradients")
    where = f", made at {x._value.where}," if type(x._value) is Node else ""
    raise RuntimeError(
        f"gradients(): {which}, {x._type}{where} has no history of gradients: it is detached, "
        "made under no_grad(), or a constant, random numbers or a tensor of the outside. Call "
        "requires_grad_() on it before it is used."
    )
