"""Orthogonal polynomials of a degree that may differ from element to element.

Those of Chebyshev in closed form, by angles, the others by their recurrences up to the greatest
degree (Abramowitz and Stegun, 22.3.15 to 22.3.16 and 22.7). Degrees are cut to whole numbers; 0
below 0. Gradients, which PyTorch has none of, are with respect to the argument: derivatives of any
order follow the same recurrences.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..compiler.ir import TensorType
from ..core.composite import composite
from ..core.dispatch import detached
from ..core.operands import Operand, cast, promote_real_float, with_a_tensor
from ..core.tensor import Tensor
from ..core.vjp_rules import input_vjp
from ..runtime.dtypes import bool_, float64
from . import creation
from . import elementwise as e
from . import reductions as r
from .loops import while_loop
from .mathematics import acosh


def _operands(name: str, x: Operand, n: Operand) -> tuple[Tensor, Tensor, Tensor]:
    """The first in its dtype, then both in float64."""
    first, second = promote_real_float(name, *with_a_tensor(name, x, n))
    return first, cast(first, float64), e.trunc(cast(detached(second), float64))


def _odd(n: Tensor) -> Tensor:
    return e.ne(e.remainder(n, 2), 0)


# --- Chebyshev's polynomials ---------------------------------------------------------------------


def _chebyshev(x: Tensor, n: Tensor, kind: str) -> Tensor:
    """x = cos(t), or +-cosh(t) outside of [-1, 1]: quotients of functions of multiples of t."""
    size = e.abs(x)
    inside = e.lt(size, 1)
    angle = e.acos(e.where(inside, x, 0.0))
    turn = acosh(e.where(e.gt(size, 1), size, 2.0))
    within = _quotient(kind, n, angle, e.sin, e.cos)
    mirrored = {"v": "w", "w": "v"}.get(kind, kind)
    left, right = (_quotient(each, n, turn, e.sinh, e.cosh) for each in (mirrored, kind))
    negative = e.lt(x, 0)
    outside = e.where(negative, left, right)
    edge = e.where(negative, _at_one(mirrored, n), _at_one(kind, n))
    found = e.where(e.gt(size, 1), outside, edge)
    found = e.where(e.logical_and(negative, _odd(n)), e.neg(found), found)
    found = e.where(inside, within, found)
    return e.where(e.lt(n, 0), 0.0, e.where(e.isnan(x), x, found))


def _quotient(
    kind: str, n: Tensor, t: Tensor, sine: Callable[[Any], Tensor], cosine: Callable[[Any], Tensor]
) -> Tensor:
    if kind == "t":
        return cosine(e.mul(n, t))
    if kind == "u":
        return e.div(sine(e.mul(e.add(n, 1), t)), sine(t))
    many, half = e.mul(e.add(n, 0.5), t), e.mul(t, 0.5)
    function = cosine if kind == "v" else sine
    return e.div(function(many), function(half))


def _at_one(kind: str, n: Tensor) -> Tensor:
    if kind in "tv":
        return creation.ones_like(n)
    return e.add(n, 1) if kind == "u" else e.add(e.mul(n, 2), 1)


def _chebyshev_of(name: str, x: Operand, n: Operand, kind: str, shifted: bool = False) -> Tensor:
    first, wide, degree = _operands(name, x, n)
    place = e.sub(e.mul(wide, 2), 1) if shifted else wide
    return cast(_polynomial(place, degree, kind=kind, order=0), first._type.dtype)


def chebyshev_polynomial_t(input: Operand, n: Operand) -> Tensor:
    """Chebyshev's polynomial of the first kind: cos(n * acos(input)).

    >>> import tgraph as tg
    >>> tg.special.chebyshev_polynomial_t(tg.tensor([0.5, 2.0]), 2)
    tensor([-0.5000,  7.0000])
    """
    return _chebyshev_of("chebyshev_polynomial_t", input, n, "t")


def chebyshev_polynomial_u(input: Operand, n: Operand) -> Tensor:
    """Chebyshev's polynomial of the second kind.

    >>> import tgraph as tg
    >>> tg.special.chebyshev_polynomial_u(tg.tensor([0.0, 2.0]), 2)
    tensor([-1., 15.])
    """
    return _chebyshev_of("chebyshev_polynomial_u", input, n, "u")


def chebyshev_polynomial_v(input: Operand, n: Operand) -> Tensor:
    """Chebyshev's polynomial of the third kind."""
    return _chebyshev_of("chebyshev_polynomial_v", input, n, "v")


def chebyshev_polynomial_w(input: Operand, n: Operand) -> Tensor:
    """Chebyshev's polynomial of the fourth kind."""
    return _chebyshev_of("chebyshev_polynomial_w", input, n, "w")


def shifted_chebyshev_polynomial_t(input: Operand, n: Operand) -> Tensor:
    """`chebyshev_polynomial_t` of 2 * input - 1."""
    return _chebyshev_of("shifted_chebyshev_polynomial_t", input, n, "t", True)


def shifted_chebyshev_polynomial_u(input: Operand, n: Operand) -> Tensor:
    """`chebyshev_polynomial_u` of 2 * input - 1."""
    return _chebyshev_of("shifted_chebyshev_polynomial_u", input, n, "u", True)


def shifted_chebyshev_polynomial_v(input: Operand, n: Operand) -> Tensor:
    """`chebyshev_polynomial_v` of 2 * input - 1."""
    return _chebyshev_of("shifted_chebyshev_polynomial_v", input, n, "v", True)


def shifted_chebyshev_polynomial_w(input: Operand, n: Operand) -> Tensor:
    """`chebyshev_polynomial_w` of 2 * input - 1."""
    return _chebyshev_of("shifted_chebyshev_polynomial_w", input, n, "w", True)


# --- recurrences ---------------------------------------------------------------------------------

_RECURRENCES: dict[str, Callable[[Any], tuple[Any, Any, Any, Any]]] = {
    "hermite_h": lambda k: (2.0, 0.0, e.mul(k, 2), None),
    "hermite_he": lambda k: (1.0, 0.0, k, None),
    "laguerre": lambda k: (-1.0, e.add(e.mul(k, 2), 1), k, e.add(k, 1)),
    "legendre": lambda k: (e.add(e.mul(k, 2), 1), 0.0, k, e.add(k, 1)),
    **dict.fromkeys("tuvw", lambda k: (2.0, 0.0, 1.0, None)),
}
"""a, b, c and d: ((a * x + b) * p - c * q) / d is the polynomial k + 1, p and q are k and k - 1."""

_FIRST = {"t": (1.0, 0.0), "v": (2.0, -1.0), "w": (2.0, 1.0)}
"""a and b of the first polynomial, where they are others."""


@composite("orthogonal_polynomial")
def _polynomial(x: Tensor, n: Tensor, *, kind: str, order: int) -> Tensor:
    """The derivative of an order, which may be 0, of the polynomial of degree n."""
    if not order and kind in "tuvw":
        return _chebyshev(x, n, kind)
    one = creation.ones_like(e.add(x, n))
    zero = e.mul(one, 0)

    def following(k: Any, factors: Any, now: Sequence[Tensor], before: Sequence[Tensor]) -> Any:
        a, b, c, d = factors
        place = e.add(e.mul(x, a), b)
        found = [e.sub(e.mul(place, p), e.mul(q, c)) for p, q in zip(now, before)]
        inner = [e.mul(now[at], a * (at + 1.0)) for at in range(order)]
        whole = [found[0], *(e.add(one, other) for one, other in zip(found[1:], inner))]
        return whole if d is None else [e.div(each, d) for each in whole]

    def goes_on(k: Tensor, *levels: Tensor) -> Tensor:
        return cast(r.any(e.lt(k, n)), bool_)

    def advance(k: Tensor, *levels: Tensor) -> tuple[Tensor, ...]:
        before, now = levels[: order + 1], levels[order + 1 :]
        is_on = e.lt(k, n)
        found = following(k, _RECURRENCES[kind](k), now, before)
        return (e.add(k, 1), *(e.where(is_on, *each) for each in zip(now, before)),
                *(e.where(is_on, *each) for each in zip(found, now)))  # fmt: skip

    start = creation.zeros((), dtype=float64, device=x.device)
    begin, nothing = [one, *[zero] * order], [zero] * (order + 1)
    first = (*_FIRST[kind], 0.0, None) if kind in _FIRST else _RECURRENCES[kind](start)
    levels = while_loop(
        goes_on, advance, (e.add(start, 1), *begin, *following(start, first, begin, nothing))
    )
    found = e.where(e.eq(n, 0), begin[order], levels[-1])
    return e.where(e.lt(n, 0), 0.0, found)


@input_vjp(_polynomial, 0, saves=(0, 1))
def _polynomial_vjp(
    g: Tensor, out: TensorType, x: Tensor, n: Tensor, kind: str, order: int
) -> Tensor:
    return e.mul(g, _polynomial(x, n, kind=kind, order=order + 1))


def _recurrence(name: str, x: Operand, n: Operand, kind: str) -> Tensor:
    given, wide, degree = _operands(name, x, n)
    return cast(_polynomial(wide, degree, kind=kind, order=0), given._type.dtype)


def hermite_polynomial_h(input: Operand, n: Operand) -> Tensor:
    """The polynomial of Hermite of physics, with exp(-x**2) as its weight.

    >>> import tgraph as tg
    >>> tg.special.hermite_polynomial_h(tg.tensor([0.0, 1.0]), 2)
    tensor([-2.,  2.])
    """
    return _recurrence("hermite_polynomial_h", input, n, "hermite_h")


def hermite_polynomial_he(input: Operand, n: Operand) -> Tensor:
    """The polynomial of Hermite of statistics, with exp(-x**2 / 2) as its weight.

    >>> import tgraph as tg
    >>> tg.special.hermite_polynomial_he(tg.tensor([0.0, 1.0]), 2)
    tensor([-1.,  0.])
    """
    return _recurrence("hermite_polynomial_he", input, n, "hermite_he")


def laguerre_polynomial_l(input: Operand, n: Operand) -> Tensor:
    """Laguerre's polynomial, with exp(-x) as its weight.

    >>> import tgraph as tg
    >>> tg.special.laguerre_polynomial_l(tg.tensor([0.0, 2.0]), 2)
    tensor([ 1., -1.])
    """
    return _recurrence("laguerre_polynomial_l", input, n, "laguerre")


def legendre_polynomial_p(input: Operand, n: Operand) -> Tensor:
    """Legendre's polynomial, with the weight 1 in [-1, 1].

    >>> import tgraph as tg
    >>> tg.special.legendre_polynomial_p(tg.tensor([0.0, 1.0]), 2)
    tensor([-0.5000,  1.0000])
    """
    return _recurrence("legendre_polynomial_p", input, n, "legendre")
