"""Jacobians and Hessians, whole or times a vector: batches of products that other modes give."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

from ..autograd.transforms import ArgNums, grad, vjp
from ..compiler.ir import primitives as p
from ..core import pytree
from ..core.dispatch import apply, make_source
from ..core.eager_context import current_context
from ..core.tensor import Tensor
from ..runtime.dtypes import int64
from .batching import vmap
from .forward import jvp


def jacrev(
    func: Callable[..., Any], argnums: ArgNums = 0, *, has_aux: bool = False,
    chunk_size: int | None = None,
) -> Callable[..., Any]:  # fmt: skip
    """A function that gives the Jacobian of `func`, row by row in reverse mode.

    For each output a container like the arguments that `argnums` says, of tensors whose shapes are
    that of the output and then that of the argument. With `has_aux` the function gives
    `(outputs, aux)`, and the result is `(jacobian, aux)`. It costs about as much as one gradient
    for each element of the outputs, `chunk_size` of them at a time.

    >>> import tgraph as tg
    >>> tg.jacrev(lambda x: x**2)(tg.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """

    @functools.wraps(func)
    def transformed(*args: Any, **kwargs: Any) -> Any:
        chosen, single = _chosen(argnums, args, "jacrev")
        found = vjp(_of_chosen(func, args, kwargs, chosen), *(args[at] for at in chosen),
                    has_aux=has_aux)  # fmt: skip
        outputs, pull = found[:2]
        leaves, spec = pytree.flatten(outputs)
        rows = vmap(pull, chunk_size=chunk_size, randomness="same")(
            spec.unflatten(_basis(leaves, "jacrev"))
        )
        columns = [pytree.flatten(each) for each in rows]
        trees = []
        for at, leaf in enumerate(leaves):
            own = [
                row_spec.unflatten(_block(each, leaves, at, leaf) for each in row_leaves)
                for row_leaves, row_spec in columns
            ]
            trees.append(own[0] if single else tuple(own))
        jacobian = spec.unflatten(trees)
        return (jacobian, found[2]) if has_aux else jacobian

    return transformed


def jacfwd(
    func: Callable[..., Any], argnums: ArgNums = 0, has_aux: bool = False, *,
    randomness: str = "error", chunk_size: int | None = None,
) -> Callable[..., Any]:  # fmt: skip
    """A function that gives the Jacobian of `func`, column by column in forward mode.

    What it gives is what `jacrev` gives. It costs about as much as one call of `func` for each
    element of the arguments, and is the better one where those are fewer than the outputs'.

    >>> import tgraph as tg
    >>> tg.jacfwd(lambda x: x**2)(tg.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """

    @functools.wraps(func)
    def transformed(*args: Any, **kwargs: Any) -> Any:
        chosen, single = _chosen(argnums, args, "jacfwd")
        primals = tuple(args[at] for at in chosen)
        inner = _of_chosen(func, args, kwargs, chosen)
        leaves, spec = pytree.flatten(primals)

        def push(*basis: Tensor) -> Any:
            found = jvp(inner, primals, spec.unflatten(basis), has_aux=has_aux)
            return (found[1], *found[2:])

        # What does not depend on tangents, such as aux, is one for all of them.
        found = vmap(
            push, out_dims=(0, None) if has_aux else (0,), randomness=randomness,
            chunk_size=chunk_size,
        )(*_basis(leaves, "jacfwd"))  # fmt: skip
        outputs, out_spec = pytree.flatten(found[0])
        trees = []
        for each in outputs:
            blocks = [_block_of_columns(each, leaves, at) for at in range(len(leaves))]
            own = spec.unflatten(blocks)
            trees.append(own[0] if single else own)
        jacobian = out_spec.unflatten(trees)
        return (jacobian, found[1]) if has_aux else jacobian

    return transformed


def hessian(func: Callable[..., Any], argnums: ArgNums = 0) -> Callable[..., Any]:
    """A function that gives the Hessian of a scalar function: `jacfwd(jacrev(func))`.

    >>> import tgraph as tg
    >>> tg.hessian(lambda x: (x**3).sum())(tg.tensor([1.0, 2.0]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    return jacfwd(jacrev(func, argnums), argnums)


def hvp(
    func: Callable[..., Any], primals: tuple[Any, ...], tangents: tuple[Any, ...]
) -> tuple[Any, Any]:
    """`(gradients, Hessian times tangents)` of a scalar function, without the Hessian itself.

    Both have the structure of `primals`, a tuple of arguments.

    >>> import tgraph as tg
    >>> tg.hvp(lambda x: (x**3).sum(), (tg.ones(2),), (tg.ones(2),))
    ((tensor([3., 3.]),), (tensor([6., 6.]),))
    """
    argnums = tuple(range(len(primals)))
    found: tuple[Any, Any] = jvp(grad(func, argnums), primals, tangents)
    return found


def _chosen(argnums: ArgNums, args: Sequence[Any], operation: str) -> tuple[list[int], bool]:
    single = isinstance(argnums, int)
    chosen = [argnums] if isinstance(argnums, int) else list(argnums)
    if any(not -len(args) <= at < len(args) for at in chosen):
        raise RuntimeError(
            f"{operation}: argnums={argnums} does not fit a call with {len(args)} positional "
            "arguments"
        )
    return [at % len(args) for at in chosen], single


def _of_chosen(
    func: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any], chosen: Sequence[int]
) -> Callable[..., Any]:
    """`func` as a function of some of its arguments."""

    def inner(*own: Any) -> Any:
        given = list(args)
        for at, each in zip(chosen, own, strict=True):
            given[at] = each
        return func(*given, **kwargs)

    return inner


def _basis(leaves: Sequence[Any], operation: str) -> list[Tensor]:
    """For every element of all tensors a tangent that is 1 there and 0 elsewhere."""
    for each in leaves:
        if not isinstance(each, Tensor):
            raise RuntimeError(f"{operation}: expected Tensors, got {type(each).__name__}")
    total = sum(each._type.numel for each in leaves)
    made, before = [], 0
    for each in leaves:
        shape, dtype, device = each._type
        size, context = math.prod(shape), current_context()
        numbers = make_source(p.iota, device, size=total, dtype=int64)
        own = make_source(p.iota, device, size=size, dtype=int64)
        column = apply(p.sub, numbers, context.constant(before, int64, device))
        ones = apply(p.eq, apply(p.reshape, column, shape=(total, 1)), own)
        made.append(apply(p.reshape, apply(p.cast, ones, dtype=dtype), shape=(total, *shape)))
        before += size
    return made


def _span(x: Tensor, leaves: Sequence[Tensor], at: int) -> Tensor:
    """What of a batch over `_basis(leaves)` belongs to one of the leaves."""
    start = sum(each._type.numel for each in leaves[:at])
    count, ndim = leaves[at]._type.numel, x.ndim
    if count == x._type.shape[0]:
        return x
    starts, stops = (start, *(0,) * (ndim - 1)), (start + count, *x._type.shape[1:])
    return apply(p.slice_, x, starts=starts, stops=stops, steps=(1,) * ndim)


def _block(rows: Tensor, leaves: Sequence[Tensor], at: int, output: Tensor) -> Tensor:
    own = _span(rows, leaves, at)
    return apply(p.reshape, own, shape=(*output._type.shape, *own._type.shape[1:]))


def _block_of_columns(columns: Tensor, leaves: Sequence[Tensor], at: int) -> Tensor:
    own = _span(columns, leaves, at)
    rows = apply(p.permute, own, axes=(*range(1, own.ndim), 0))
    return apply(p.reshape, rows, shape=(*own._type.shape[1:], *leaves[at]._type.shape))
