"""Matrix products."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..compiler.ir import primitives as p
from ..compiler.ir.dim import size_text
from ..compiler.ir.shapes import broadcast, normalize_axis
from ..core.autocast import with_autocast
from ..core.dispatch import apply
from ..core.operands import Scalar, require_tensor
from ..core.planned import planned
from ..core.public import public
from ..core.state import state
from ..core.tensor import Tensor
from ..runtime.dtypes import bool_
from . import elementwise as e
from . import movement as m
from . import reductions as r


def _check_pair(operation: str, a: Tensor, b: Tensor) -> None:
    x, y = require_tensor(a, operation), require_tensor(b, operation, "other")
    if x._type.dtype is not y._type.dtype:
        raise RuntimeError(
            f"{operation}: expected m1 and m2 to have the same dtype, but got: "
            f"{x._type.dtype.name} != {y._type.dtype.name}"
        )
    if x._type.dtype is bool_:
        raise NotImplementedError(f'"{operation}" not implemented for bool')


def _product(a: Tensor, b: Tensor) -> Tensor:
    return apply(p.matmul, a, b, transpose_a=False, transpose_b=False)


_contraction = with_autocast(_product, "matmul")


def _need_dims(operation: str, **wanted: tuple[Tensor, int]) -> None:
    for name, (tensor, ndim) in wanted.items():
        if len(require_tensor(tensor, operation, name)._type.shape) != ndim:
            kinds = {1: "a vector", 2: "a matrix", 3: "a 3D tensor"}
            raise RuntimeError(
                f"{operation}: {name} must be {kinds[ndim]}, got {len(tensor._type.shape)}-D "
                f"tensor of shape {list(tensor._type.shape)}"
            )


@public(method=True, out="exact", overlap="any")
def matmul(input: Tensor, other: Tensor) -> Tensor:
    """The matrix product; vectors count as a row on the left and a column on the right.

    Leading dimensions are batches and broadcast.

    >>> import tgraph as tg
    >>> (tg.ones(5, 2, 3) @ tg.ones(3)).shape
    tgraph.Size([5, 2])
    """
    _check_pair("matmul", input, other)
    a, b = input._type.shape, other._type.shape
    if not a or not b:
        raise RuntimeError(
            f"both arguments to matmul need to be at least 1D, but they are {len(a)}D and {len(b)}D"
        )
    if a[-1] != b[-2 if len(b) > 1 else 0]:
        raise _misfit(a, b)
    if len(a) > 1 and len(b) > 1:
        return _folded_product(input, other)
    return _product_of_vectors(input, other)


@planned
def _product_of_vectors(input: Tensor, other: Tensor) -> Tensor:
    """The product of which at least one operand is a vector."""
    a, b = input._type.shape, other._type.shape
    left = m.unsqueeze(input, 0) if len(a) == 1 else input
    right = m.unsqueeze(other, 1) if len(b) == 1 else other
    result = _folded_product(left, right)
    if len(b) == 1:
        result = m.squeeze(result, -1)
    return m.squeeze(result, -1 if len(b) == 1 else -2) if len(a) == 1 else result


def _misfit(a: tuple[int, ...], b: tuple[int, ...]) -> RuntimeError:
    if len(a) == 1 and len(b) == 1:
        return RuntimeError(
            f"inconsistent tensor size, expected tensor [{a[0]}] and src [{b[0]}] to have the same "
            f"number of elements, but got {a[0]} and {b[0]} elements respectively"
        )
    if len(b) == 1:
        rows, columns = a[-2:]
        return RuntimeError(
            f"size mismatch, got input ({rows}), mat ({rows}x{columns}), vec ({b[0]})"
        )
    sizes = ["x".join(map(str, each)) for each in ((1, *a)[-2:], b[-2:])]
    return RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({sizes[0]} and {sizes[1]})")


def _folded_product(left: Tensor, right: Tensor) -> Tensor:
    """Batches of rows times one matrix are one product of matrices."""
    shape = left._type.shape
    if len(shape) <= 2 or len(right._type.shape) != 2 or not m.is_contiguous(left):
        return _product(left, right)
    rows = apply(p.reshape, left, shape=(left._type.numel // max(shape[-1], 1), shape[-1]))
    if shape[-1] == 0:
        return _product(left, right)
    folded = _product(rows, right)
    return apply(p.reshape, folded, shape=(*shape[:-1], right._type.shape[1]))


@public(method=True, out="exact", overlap="any")
def mm(input: Tensor, mat2: Tensor) -> Tensor:
    """The product of two matrices."""
    _need_dims("mm", self=(input, 2), mat2=(mat2, 2))
    return matmul(input, mat2)


@public(method=True, out="exact", overlap="any")
def bmm(input: Tensor, mat2: Tensor) -> Tensor:
    """The products of two batches of matrices."""
    _need_dims("bmm", batch1=(input, 3), batch2=(mat2, 3))
    a, b = input._type.shape, mat2._type.shape
    if a[0] != b[0] or a[2] != b[1]:
        raise RuntimeError(
            f"Expected size for first two dimensions of batch2 tensor to be: [{a[0]}, {a[2]}] but "
            f"got: [{b[0]}, {b[1]}]."
        )
    return matmul(input, mat2)


@public(method=True, out="exact", overlap="any")
def mv(input: Tensor, vec: Tensor) -> Tensor:
    """A matrix times a vector."""
    _need_dims("mv", self=(input, 2), vec=(vec, 1))
    return matmul(input, vec)


@public(method=True, out="exact", overlap="any")
def dot(input: Tensor, other: Tensor) -> Tensor:
    """The inner product of two vectors."""
    _check_pair("dot", input, other)
    if len(input._type.shape) != 1 or len(other._type.shape) != 1:
        raise RuntimeError(f"1D tensors expected, but got {input.ndim}D and {other.ndim}D tensors")
    return matmul(input, other)


@public(aliases=("ger",), method=True, out=True, overlap="any")
def outer(input: Tensor, vec2: Tensor) -> Tensor:
    """Every element of one vector times every element of another."""
    _need_dims("outer", self=(input, 1), vec2=(vec2, 1))
    return e.mul(m.unsqueeze(input, 1), vec2)


@public(method=True, out="exact", overlap="any")
def inner(input: Tensor, other: Tensor) -> Tensor:
    """Inner products along the last dimensions."""
    require_tensor(input, "inner"), require_tensor(other, "inner", "other")
    if not input._type.shape or not other._type.shape:
        return e.mul(input, other)
    return tensordot(input, other, ([-1], [-1]))


@public(out="exact", overlap="any")
def tensordot(a: Tensor, b: Tensor, dims: Any = 2) -> Tensor:
    """Sum over the last `dims` dimensions of `a` and the first of `b`, or over given pairs."""
    if isinstance(dims, int):
        if not 0 <= dims <= min(a.ndim, b.ndim):
            raise RuntimeError(
                f"tensordot expects dims from 0 to the number of dimensions of both tensors, got "
                f"dims={dims} for {list(a.shape)} and {list(b.shape)}"
            )
        over_a, over_b = list(range(a.ndim - dims, a.ndim)), list(range(dims))
    else:
        if not isinstance(dims, (list, tuple, Tensor)):
            raise RuntimeError(
                f"tensordot(): expected dims to be an int or two lists of ints, got {dims!r}"
            )
        if len(dims) != 2:
            kind = RuntimeError if isinstance(dims, Tensor) else ValueError
            raise kind(f"tensordot(): expected two lists of dims, got {len(dims)}")
        over_a = [normalize_axis(axis, a.ndim) for axis in dims[0]]
        over_b = [normalize_axis(axis, b.ndim) for axis in dims[1]]
    a, b = _summed_beside_one(a, over_a, b, over_b), _summed_beside_one(b, over_b, a, over_a)
    kept_a = [axis for axis in range(a.ndim) if axis not in over_a]
    kept_b = [axis for axis in range(b.ndim) if axis not in over_b]
    shape = [a._type.shape[at] for at in kept_a] + [b._type.shape[at] for at in kept_b]
    sizes = [a._type.shape[at] for at in over_a]
    if sizes != [b._type.shape[at] for at in over_b]:
        raise RuntimeError("contracted dimensions need to match")
    count = math.prod(sizes)
    rows = math.prod(shape[: len(kept_a)])
    left = m.reshape(m.permute(a, kept_a + over_a), rows, count)
    right = m.reshape(m.permute(b, over_b + kept_b), count, math.prod(shape[len(kept_a) :]))
    return m.reshape(_product(left, right), shape)


def _summed_beside_one(x: Tensor, axes: list[int], other: Tensor, others: list[int]) -> Tensor:
    """`x` summed over the axes for which the other tensor has a single element."""
    for axis, at in zip(axes, others):
        if other._type.shape[at] == 1 != x._type.shape[axis]:
            x = r.sum(x, axis, keepdim=True)
    return x


@public(method=True, inplace=True, out="exact", overlap="any")
def addmm(
    input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Scalar = 1, alpha: Scalar = 1
) -> Tensor:
    """`beta * input + alpha * (mat1 @ mat2)`."""
    return _added(input, mm(mat1, mat2), beta, alpha)


@public(method=True, inplace=True, out="exact", overlap="any")
def addmv(input: Tensor, mat: Tensor, vec: Tensor, *, beta: Scalar = 1, alpha: Scalar = 1) -> Any:
    """`beta * input + alpha * (mat @ vec)`."""
    return _added(input, mv(mat, vec), beta, alpha)


@public(method=True, inplace=True, out="exact", overlap="any")
def baddbmm(
    input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Scalar = 1, alpha: Scalar = 1
) -> Tensor:
    """`beta * input + alpha * bmm(batch1, batch2)`."""
    return _added(input, bmm(batch1, batch2), beta, alpha)


def _added(base: Tensor, product: Tensor, beta: Scalar, alpha: Scalar) -> Tensor:
    if alpha != 1:
        product = e.mul(product, alpha)
    if beta == 0:
        return product
    return e.add(product, base if beta == 1 else e.mul(base, beta))


@public(function=False, method=True)
def trace(input: Tensor) -> Tensor:
    """The sum of the diagonal of a matrix."""
    _need_dims("trace", self=(input, 2))
    return r.sum(m.diagonal(input))


@public()
def einsum(equation: str, *operands: Any) -> Tensor:
    """Sums of products by index letters; see NumPy's einsum. Contracts from left to right.

    >>> import tgraph as tg
    >>> tg.einsum("ij,jk->ik", tg.ones(2, 3), tg.ones(3, 4)).shape
    tgraph.Size([2, 4])
    """
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = tuple(operands[0])
    for each in operands:
        require_tensor(each, "einsum", "operands")
    # Casts are those of the products of which it is made.
    return (_einsum if state.autocast is None else _einsum_in_steps)(equation, *operands)


def _einsum_in_steps(equation: str, *operands: Tensor) -> Tensor:
    terms, target = _parse_equation(equation, operands)
    labels, result = _diagonals(terms[0], operands[0])
    for at in range(1, len(operands)):
        other_labels, other = _diagonals(terms[at], operands[at])
        later = set(target).union(*terms[at + 1 :])
        labels, result = _contract(labels, result, other_labels, other, later)
    gone = [axis for axis, label in enumerate(labels) if label not in target]
    if gone:
        result = r.sum(result, gone)
    kept = [label for label in labels if label in target]
    return m.permute(result, [kept.index(label) for label in target])


_einsum = planned(_einsum_in_steps)


def _parse_equation(equation: str, operands: Sequence[Tensor]) -> tuple[list[str], str]:
    sides = equation.replace(" ", "").split("->")
    terms = sides[0].split(",")
    if len(terms) != len(operands):
        raise RuntimeError(
            f"einsum(): fewer operands were provided than specified in the equation: {len(terms)} "
            f"terms in {equation!r}, {len(operands)} operands"
        )
    extra = [each.ndim - len(term.replace("...", "")) for term, each in zip(terms, operands)]
    if any(n < 0 or (n > 0 and "..." not in term) for n, term in zip(extra, terms)):
        raise RuntimeError(
            f"einsum(): the number of subscripts in {equation!r} does not match the operands' "
            f"dimensions {[each.ndim for each in operands]}"
        )
    spare = "".join(chr(0x100 + at) for at in range(max(extra)))  # letters nobody types
    terms = [term.replace("...", spare[len(spare) - n :]) for n, term in zip(extra, terms)]
    if len(sides) == 2:
        return terms, sides[1].replace("...", spare)
    letters = "".join(terms)
    once = sorted(label for label in set(letters) - set(spare) if letters.count(label) == 1)
    return terms, spare + "".join(once)


def _diagonals(labels: str, x: Tensor) -> tuple[str, Tensor]:
    """A repeated label takes the diagonal of its dimensions."""
    for label in dict.fromkeys(labels):
        while labels.count(label) > 1:
            first = labels.index(label)
            second = labels.index(label, first + 1)
            x = m.diagonal(x, 0, first, second)
            labels = labels[:first] + labels[first + 1 : second] + labels[second + 1 :] + label
    return labels, x


def _contract(a: str, x: Tensor, b: str, y: Tensor, later: set[str]) -> tuple[str, Tensor]:
    """One product of batched matrices: labels in both that are needed no more are summed."""
    x, a = _summed(x, a, set(b) | later)
    y, b = _summed(y, b, set(a) | later)
    sizes = dict(zip(a, x._type.shape))
    for label, size in zip(b, y._type.shape):
        try:
            (sizes[label],) = broadcast((sizes.get(label, size),), (size,))
        except ValueError:
            raise RuntimeError(
                f"einsum(): operands do not broadcast: label {label!r} has sizes "
                f"{size_text(sizes[label])} and {size_text(size)}"
            ) from None
    both = [label for label in a if label in b]
    batch = [label for label in both if label in later]
    inner = [label for label in both if label not in later]
    left = [label for label in a if label not in b]
    right = [label for label in b if label not in a]
    first = _arranged(x, a, batch, left, inner, sizes)
    second = _arranged(y, b, batch, inner, right, sizes)
    product = _contraction(first, second) if inner else _product(first, second)
    labels = [*batch, *left, *right]
    return "".join(labels), m.reshape(product, [sizes[label] for label in labels])


def _summed(x: Tensor, labels: str, needed: set[str]) -> tuple[Tensor, str]:
    gone = [axis for axis, label in enumerate(labels) if label not in needed]
    if not gone:
        return x, labels
    return r.sum(x, gone), "".join(label for label in labels if label in needed)


def _arranged(
    x: Tensor,
    labels: str,
    batch: list[str],
    rows: list[str],
    columns: list[str],
    sizes: dict[str, int],
) -> Tensor:
    """`x` as [*batch, rows, columns]."""
    order = [*batch, *rows, *columns]
    x = m.permute(x, [labels.index(label) for label in order])
    x = m.expand(x, [sizes[label] for label in order])
    shape = [sizes[label] for label in batch]
    for group in (rows, columns):
        size = 1
        for label in group:
            size *= sizes[label]
        shape.append(size)
    return m.reshape(x, shape)
