"""Products of vectors and matrices beside the matrix product, and distances."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from ..compiler.ir.shapes import normalize_axis
from ..core.autocast import with_autocast
from ..core.complex_parts import conjugate
from ..core.operands import Scalar, cast, promote, require_tensor, result_type
from ..core.planned import planned
from ..core.public import public
from ..core.tensor import Tensor
from ..runtime.dtypes import bool_
from . import creation
from . import elementwise as e
from . import movement as m
from . import reductions as r
from .concatenation import all_given, cat, roll
from .gather_scatter import index_select
from .index_items import constant_index
from .linalg import bmm, matmul
from .norms import norm, vector_norm


@public(method=True, out="exact")
def cross(input: Tensor, other: Tensor, dim: int | None = None) -> Tensor:
    """The cross product of vectors along `dim`, by default the first dimension of size 3.

    >>> import tgraph as tg
    >>> tg.cross(tg.tensor([1.0, 0.0, 0.0]), tg.tensor([0.0, 1.0, 0.0]))
    tensor([0., 0., 1.])
    """
    require_tensor(input, "cross"), require_tensor(other, "cross", "other")
    if dim is None:
        shape = m.broadcast_shapes(input._type.shape, other._type.shape)
        if 3 not in shape:
            raise RuntimeError("no dimension of size 3 in input")
        dim = shape.index(3) - len(shape)
    return _cross("cross", input, other, dim)


def cross_along(input: Tensor, other: Tensor, *, dim: int = -1) -> Tensor:
    """The cross product of vectors of three elements along `dim`.

    >>> import tgraph as tg
    >>> tg.linalg.cross(tg.tensor([0.0, 1.0, 0.0]), tg.tensor([1.0, 0.0, 0.0]))
    tensor([ 0.,  0., -1.])
    """
    return _cross("linalg.cross", input, other, dim)


def _cross(name: str, input: Tensor, other: Tensor, dim: int) -> Tensor:
    x, y = promote(name, input, other)
    if x.ndim != y.ndim:
        raise RuntimeError(
            f"{name}: inputs must have the same number of dimensions, got {x.ndim} and {y.ndim}"
        )
    axis = normalize_axis(dim, x.ndim)
    sizes = x._type.shape[axis], y._type.shape[axis]
    if sizes != (3, 3):
        raise RuntimeError(
            f"{name}: inputs dimension {dim} must have length 3. Got {sizes[0]} and {sizes[1]}"
        )
    x, y = m.broadcast_tensors(x, y)
    return _cross_product(x, y, axis)


@planned
def _cross_product(x: Tensor, y: Tensor, axis: int) -> Tensor:
    ahead = e.mul(roll(x, -1, axis), roll(y, -2, axis))
    return e.sub(ahead, e.mul(roll(x, -2, axis), roll(y, -1, axis)))


@with_autocast
def vecdot(x: Tensor, y: Tensor, *, dim: int = -1) -> Tensor:
    """Inner products of vectors along `dim`, of complex ones with the conjugates of `x`.

    >>> import tgraph as tg
    >>> tg.linalg.vecdot(tg.tensor([[1.0, 2.0], [3.0, 4.0]]), tg.tensor([1.0, 1.0]))
    tensor([3., 7.])
    """
    x, y = promote("linalg.vecdot", x, y)
    return r.sum(e.mul(conjugate(x), y), dim, dtype=x._type.dtype)


@public(method=True, out=True)
@planned
def kron(input: Tensor, other: Tensor) -> Tensor:
    """Kronecker's product: every element of `input` times all of `other`.

    >>> import tgraph as tg
    >>> tg.kron(tg.tensor([1, 10]), tg.tensor([1, 2, 3]))
    tensor([ 1,  2,  3, 10, 20, 30])
    """
    require_tensor(input, "kron"), require_tensor(other, "kron", "other")
    ndim = max(input.ndim, other.ndim)
    shapes = [(1,) * (ndim - each.ndim) + each._type.shape for each in (input, other)]
    left = m.reshape(input, [size for each in shapes[0] for size in (each, 1)])
    right = m.reshape(other, [size for each in shapes[1] for size in (1, each)])
    return m.reshape(e.mul(left, right), [a * b for a, b in zip(*shapes, strict=True)])


@public(method=True, inplace=True, out="exact", overlap="any")
def addbmm(
    input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Scalar = 1, alpha: Scalar = 1
) -> Tensor:
    """`beta * input + alpha * bmm(batch1, batch2).sum(0)`."""
    return _weighted(input, r.sum(bmm(batch1, batch2), 0), beta, alpha)


@public(method=True, inplace=True, out=True, overlap="any")
def addr(
    input: Tensor, vec1: Tensor, vec2: Tensor, *, beta: Scalar = 1, alpha: Scalar = 1
) -> Tensor:
    """`beta * input + alpha * outer(vec1, vec2)`.

    >>> import tgraph as tg
    >>> tg.addr(tg.zeros(2, 2), tg.tensor([1.0, 2.0]), tg.tensor([3.0, 4.0]))
    tensor([[3., 4.],
            [6., 8.]])
    """
    for name, each in (("vec1", vec1), ("vec2", vec2)):
        if require_tensor(each, "addr", name).ndim != 1:
            raise RuntimeError(f"addr: Expected 1-D argument {name}, but got {each.ndim}-D")
    product = e.mul(m.unsqueeze(vec1, 1), vec2)
    if product._type.dtype is bool_:
        if not beta:
            return e.logical_and(product, bool(alpha))
        return e.logical_or(input, e.logical_and(product, bool(alpha)))
    return _weighted(input, product, beta, alpha)


def _weighted(base: Tensor, product: Tensor, beta: Scalar, alpha: Scalar) -> Tensor:
    if alpha != 1:
        product = e.mul(product, alpha)
    if beta == 0:
        shape = m.broadcast_shapes(base._type.shape, product._type.shape)
        return cast(m.expand(product, shape), result_type(base, product))
    return e.add(product, base if beta == 1 else e.mul(base, beta))


# --- distances -----------------------------------------------------------------------------------


_COMPUTE_MODES = (
    "use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist"
)  # fmt: skip


@public()
def cdist(
    x1: Tensor,
    x2: Tensor,
    p: float = 2.0,
    compute_mode: str | None = "use_mm_for_euclid_dist_if_necessary",
) -> Tensor:
    """The distances of all rows of `x1` to all rows of `x2`, by the norm of order `p`.

    Euclidean distances of more than 25 rows are computed by a product, as in PyTorch, unless
    `compute_mode` says "donot_use_mm_for_euclid_dist".

    >>> import tgraph as tg
    >>> tg.cdist(tg.tensor([[0.0, 0.0]]), tg.tensor([[3.0, 4.0], [0.0, 1.0]]))
    tensor([[5., 1.]])
    """
    if compute_mode not in _COMPUTE_MODES:
        raise ValueError(f"{compute_mode} is not a valid value for compute_mode")
    for name, each in (("X1", x1), ("X2", x2)):
        type_ = require_tensor(each, "cdist", name.lower())._type
        if not type_.dtype.is_floating_point:
            raise RuntimeError(
                f"cdist only supports floating-point dtypes, {name} got: {type_.dtype.name}"
            )
        if type_.ndim < 2:
            raise RuntimeError(
                f"cdist only supports at least 2D tensors, {name} got: {type_.ndim}D"
            )
    if x1._type.shape[-1] != x2._type.shape[-1]:
        raise RuntimeError(
            f"X1 and X2 must have the same number of columns. X1: {x1._type.shape[-1]} X2: "
            f"{x2._type.shape[-1]}"
        )
    if not p >= 0:
        raise RuntimeError("cdist only supports non-negative p values")
    always = compute_mode == "use_mm_for_euclid_dist"
    never = compute_mode == "donot_use_mm_for_euclid_dist"
    rows = max(x1._type.shape[-2], x2._type.shape[-2])
    if p == 2 and (always or (rows > 25 and not never)):
        return _euclidean(*promote("cdist", x1, x2))
    apart = e.sub(m.unsqueeze(x1, -2), m.unsqueeze(x2, -3))
    if not apart._type.shape[-1]:
        return r.sum(apart, -1)
    return vector_norm(apart, p, -1)


@planned
def _euclidean(x: Tensor, y: Tensor) -> Tensor:
    across = m.unsqueeze(r.sum(e.mul(y, y), -1), -2)
    squares = e.add(m.unsqueeze(r.sum(e.mul(x, x), -1), -1), across)
    squares = e.sub(squares, e.mul(matmul(x, m.transpose(y, -2, -1)), 2))
    return r.safe_sqrt(e.clamp(squares, min=0))


@public()
def pdist(input: Tensor, p: float = 2.0) -> Tensor:
    """The distances between all pairs of rows, by the norm of order `p`: those above the diagonal.

    >>> import tgraph as tg
    >>> tg.nn.functional.pdist(tg.tensor([[0.0, 0.0], [3.0, 4.0], [0.0, 1.0]]))
    tensor([5.0000, 1.0000, 4.2426])
    """
    if require_tensor(input, "pdist").ndim != 2:
        raise RuntimeError(f"pdist only supports 2D tensors, got: {input.ndim}D")
    if not input._type.dtype.is_floating_point:
        raise RuntimeError("pdist only supports floating-point dtypes")
    if p < 0:
        raise RuntimeError("pdist only supports non-negative p values")
    pairs = np.triu_indices(input._type.shape[0], 1)
    places = (constant_index(each.tolist(), input._type.device) for each in pairs)
    apart = e.sub(*(index_select(input, 0, each) for each in places))
    return vector_norm(apart, p, -1) if apart._type.shape[-1] else r.sum(apart, -1)


@public(method=True)
def dist(input: Tensor, other: Tensor, p: float = 2) -> Tensor:
    """The norm of order `p` of `input - other`.

    >>> import tgraph as tg
    >>> tg.dist(tg.tensor([1.0, 2.0]), tg.tensor([4.0, 6.0]))
    tensor(5.)
    """
    return norm(e.sub(input, other), p)


@public(method=True, inplace=True, out="exact")
def renorm(input: Tensor, p: float, dim: int, maxnorm: float) -> Tensor:
    """Slices along `dim` whose norm of order `p` exceeds `maxnorm` scaled down to it.

    >>> import tgraph as tg
    >>> tg.renorm(tg.tensor([[3.0, 4.0], [0.0, 1.0]]), 2, 0, 1)
    tensor([[0.6000, 0.8000],
            [0.0000, 1.0000]])
    """
    require_tensor(input, "renorm")
    if p <= 0:
        raise RuntimeError("renorm: non-positive-norm not supported")
    if maxnorm < 0:
        raise RuntimeError(f"renorm: expected maxnorm to be >= 0 but got {maxnorm}")
    if input.ndim < 2:
        raise RuntimeError(
            f"renorm: input needs at least 2 dimensions, got {input.ndim} dimensions"
        )
    axis = normalize_axis(dim, input.ndim)
    others = [each for each in range(input.ndim) if each != axis]
    sizes = vector_norm(input, p, others, True)
    factor = e.where(e.gt(sizes, maxnorm), e.div(maxnorm, e.add(sizes, 1e-7)), 1.0)
    return e.mul(input, cast(factor, input._type.dtype))


# --- tables --------------------------------------------------------------------------------------


@public()
def vander(x: Tensor, N: int | None = None, increasing: bool = False) -> Tensor:
    """Powers of the elements of a vector as rows, from the highest to the power 0.

    >>> import tgraph as tg
    >>> tg.vander(tg.tensor([1, 2, 3]), increasing=True)
    tensor([[1, 1, 1],
            [1, 2, 4],
            [1, 3, 9]])
    """
    if require_tensor(x, "vander", "x").ndim != 1:
        raise RuntimeError(f"x must be a one-dimensional tensor, got {x.ndim}-D")
    count = x._type.shape[0] if N is None else N
    if count < 0:
        raise RuntimeError("N must be non-negative.")
    powers = creation.arange(count, device=x.device)
    if not increasing:
        powers = e.sub(count - 1, powers)
    x = e.mul(x, 1) if x._type.dtype is bool_ else x
    return e.pow(m.unsqueeze(x, -1), powers)


def powers_of(x: Tensor, *, N: int | None = None) -> Tensor:
    """Vandermonde's matrices: the powers from 0 on of each element along the last dimension.

    >>> import tgraph as tg
    >>> tg.linalg.vander(tg.tensor([2, 3]), N=3)
    tensor([[1, 2, 4],
            [1, 3, 9]])
    """
    x = require_tensor(x, "linalg.vander", "x")
    x = x if x.ndim else m.reshape(x, 1)
    count = x._type.shape[-1] if N is None else N
    if count <= 1:
        raise RuntimeError(f"N must be greater than 1, got {count}")
    x = e.mul(x, 1) if x._type.dtype is bool_ else x
    return e.pow(m.unsqueeze(x, -1), creation.arange(count, device=x.device))


def diagonal_of(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """The diagonal of each matrix, in the same memory.

    >>> import tgraph as tg
    >>> tg.linalg.diagonal(tg.tensor([[1, 2], [3, 4]]))
    tensor([1, 4])
    """
    return m.diagonal(A, offset, dim1, dim2)


@public()
def cartesian_prod(*tensors: Any) -> Tensor:
    """All tuples with an element of each vector, as rows.

    >>> import tgraph as tg
    >>> tg.cartesian_prod(tg.tensor([1, 2]), tg.tensor([3, 4])).tolist()
    [[1, 3], [1, 4], [2, 3], [2, 4]]
    """
    for each in tensors:
        if require_tensor(each, "cartesian_prod", "tensors").ndim != 1:
            raise RuntimeError(f"Expect a 1D vector, but got shape {list(each._type.shape)}")
    if len(tensors) == 1:
        return m.clone(tensors[0])
    grids = creation.meshgrid(*tensors, indexing="ij")
    return cat([m.unsqueeze(m.reshape(each, -1), 1) for each in grids], 1)


@public()
def combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """All choices of `r` elements of a vector, in their order, as rows.

    >>> import tgraph as tg
    >>> tg.combinations(tg.tensor([1, 2, 3])).tolist()
    [[1, 2], [1, 3], [2, 3]]
    """
    if require_tensor(input, "combinations").ndim != 1:
        raise RuntimeError(f"Expect a 1D vector, but got shape {list(input._type.shape)}")
    if r < 0:
        raise RuntimeError(f"Expect a non-negative number, but got {r}")
    if r == 0:
        return creation.new_empty(input, (0,))
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    chosen = [at for row in choose(range(input._type.shape[0]), r) for at in row]
    at = constant_index(chosen, input._type.device)
    return m.reshape(index_select(input, 0, at), len(chosen) // r, r)


@public()
def block_diag(*tensors: Any) -> Tensor:
    """Matrices one after another along the diagonal of a matrix; vectors are rows.

    >>> import tgraph as tg
    >>> tg.block_diag(tg.ones(1, 2), tg.tensor(5.0))
    tensor([[1., 1., 0.],
            [0., 0., 5.]])
    """
    given = all_given(tensors, "block_diag")
    for each in given:
        if each.ndim > 2:
            raise RuntimeError(f"Input tensors must have 2 or fewer dimensions, got {each.ndim}")
    if not given:
        return creation.empty(1, 0)
    common = result_type(*(each._type.dtype for each in given))
    blocks = [
        cast(m.reshape(each, (1,) * (2 - each.ndim) + each._type.shape), common) for each in given
    ]
    width = sum(each._type.shape[1] for each in blocks)
    rows, before = [], 0
    for block in blocks:
        size, columns = block._type.shape
        sides = (size, before), (size, width - before - columns)
        left, right = (creation.new_zeros(block, side) for side in sides)
        rows.append(cat([left, block, right], 1))
        before += columns
    return cat(rows, 0)
