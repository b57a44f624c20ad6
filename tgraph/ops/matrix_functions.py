"""Functions of matrices that are made of products."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..core.autocast import with_autocast
from ..core.operands import cast, require_tensor, widened
from ..core.planned import planned
from ..core.tensor import Tensor
from . import elementwise as e
from . import linalg as la
from . import movement as m
from . import reductions as r
from .creation import eye
from .factorizations import inv

# Up to which 1-norm the Taylor series of degree 16 is exact, by the bits of a real number, and how
# many squarings lead from there to 32768.
_SERIES = {32: (2.5, 14), 64: (0.75, 16)}


@planned
def matrix_exp(input: Tensor) -> Tensor:
    """The exponential of square matrices [..., n, n], whose 1-norm is below 32768.

    By scaling, the Taylor series of degree 16, and as few squarings as its remainder allows, since
    each doubles what was rounded. Sources: Moler and Van Loan, "Nineteen Dubious Ways to Compute
    the Exponential of a Matrix" (2003); Paterson and Stockmeyer (1973) for the order of products.

    >>> import tgraph as tg
    >>> matrix_exp(tg.tensor([[0.0, 1.0], [0.0, 0.0]])).tolist()
    [[1.0, 1.0], [0.0, 1.0]]
    """
    shape = input._type.shape
    if len(shape) < 2 or shape[-1] != shape[-2]:
        raise RuntimeError(
            "linalg.matrix_exp: A must be batches of square matrices, but has the shape "
            f"{list(shape)}"
        )
    wide = widened(input)
    size = r.amax(r.sum(e.abs(wide.detach()), -2), -1)
    exact, squarings = _SERIES[size._type.dtype.bits]
    halvings = e.clamp(e.ceil(e.log2(e.clamp(e.div(size, exact), min=1))), max=squarings)
    halvings = m.unsqueeze(m.unsqueeze(halvings, -1), -1)
    found = _exp_series(e.mul(wide, e.exp2(e.neg(halvings))))
    for at in range(squarings):
        found = e.where(e.lt(at, halvings), la.matmul(found, found), found)
    return cast(found, input._type.dtype)


def _exp_series(x: Tensor) -> Tensor:
    """The Taylor series of degree 16, in four powers of `x` and three more products."""
    square = la.matmul(x, x)
    fourth = la.matmul(square, square)
    powers = [eye(x._type.shape[-1], dtype=x._type.dtype, device=x._type.device)]
    powers += [x, square, la.matmul(square, x), fourth]
    found: Tensor | None = None
    for first in (12, 8, 4, 0):
        terms = powers if found is None else powers[:-1]
        part = e.div(terms[0], math.factorial(first))
        for at, power in enumerate(terms[1:], first + 1):
            part = e.add(part, e.div(power, math.factorial(at)))
        found = part if found is None else e.add(la.matmul(found, fourth), part)
    assert found is not None
    return found


def matrix_power(A: Tensor, n: int) -> Tensor:
    """A square matrix multiplied `n` times; for negative `n`, its inverse.

    >>> import tgraph as tg
    >>> tg.linalg.matrix_power(tg.tensor([[1.0, 1.0], [0.0, 1.0]]), 3)
    tensor([[1., 3.],
            [0., 1.]])
    """
    name = "linalg.matrix_power"
    shape = require_tensor(A, name, "A")._type.shape
    if len(shape) < 2 or shape[-1] != shape[-2]:
        raise RuntimeError(f"{name}: A must be batches of square matrices, got {list(shape)}")
    if n < 0:
        return matrix_power(inv(A), -n)
    if n == 0:
        one = eye(shape[-1], dtype=A._type.dtype, device=A._type.device)
        return e.where(e.eq(one, one), one, A)  # of which a gradient is asked, too: zeros
    found, square = None, A
    while n:
        if n & 1:
            found = square if found is None else la.matmul(found, square)
        n >>= 1
        square = la.matmul(square, square) if n else square
    assert found is not None
    return m.clone(found) if found is A else found


@with_autocast
def multi_dot(tensors: Sequence[Tensor]) -> Tensor:
    """The product of two or more matrices, in the order that takes the fewest multiplications.

    The first and the last may be vectors. Source of the order: Cormen et al., "Introduction to
    Algorithms", chapter 15.2.

    >>> import tgraph as tg
    >>> tg.linalg.multi_dot([tg.ones(2, 3), tg.ones(3, 4), tg.ones(4)])
    tensor([12., 12.])
    """
    name = "linalg.multi_dot"
    if len(tensors) < 2:
        raise RuntimeError(f"{name}(): expected at least 2 tensors but got {len(tensors)}")
    given = [require_tensor(each, name) for each in tensors]
    is_row, is_column = given[0].ndim == 1, given[-1].ndim == 1
    if is_row:
        given[0] = m.unsqueeze(given[0], 0)
    if is_column:
        given[-1] = m.unsqueeze(given[-1], 1)
    for at, each in enumerate(given):
        if each.ndim != 2:
            raise RuntimeError(f"{name}(): tensor {at} must be 2D but got {each.ndim}D")
    sizes = [*(each._type.shape[0] for each in given), given[-1]._type.shape[1]]
    found = _product_of(given, _cuts(sizes), 0, len(given) - 1)
    if is_column:
        found = m.squeeze(found, 1)
    return m.squeeze(found, 0) if is_row else found


def _cuts(sizes: Sequence[int]) -> dict[tuple[int, int], int]:
    """Where the product of the matrices from one to another is best cut."""
    count = len(sizes) - 1
    price = {(at, at): 0 for at in range(count)}
    cuts = {}
    for length in range(1, count):
        for first in range(count - length):
            last = first + length
            prices = {
                cut: price[first, cut] + price[cut + 1, last]
                + sizes[first] * sizes[cut + 1] * sizes[last + 1]
                for cut in range(first, last)
            }  # fmt: skip
            cuts[first, last] = best = min(prices, key=prices.__getitem__)
            price[first, last] = prices[best]
    return cuts


def _product_of(
    given: Sequence[Tensor], cuts: dict[tuple[int, int], int], first: int, last: int
) -> Tensor:
    if first == last:
        return given[first]
    cut = cuts[first, last]
    left = _product_of(given, cuts, first, cut)
    return la.matmul(left, _product_of(given, cuts, cut + 1, last))
