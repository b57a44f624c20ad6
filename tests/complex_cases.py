"""The table of operations on complex numbers: what each gives, by NumPy."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, Any]


class ComplexCase(NamedTuple):
    """`function(T, *tensors)` runs with the names of tgraph and of PyTorch alike.

    `elementwise` tells whether any shapes will do that broadcast, `gradient` whether there is one.
    """

    name: str
    function: Callable[..., Any]
    reference: Callable[..., Any]
    shapes: tuple[tuple[int, ...], ...]
    gradient: bool = True
    elementwise: bool = True

    def arrays(self, dtype: Any = np.complex128, seed: int = 0) -> list[Array]:
        rng = np.random.default_rng(seed)
        return [
            np.asarray(rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(dtype)
            for shape in self.shapes
        ]


CASES: list[ComplexCase] = []


def unary(name: str, reference: Any, **options: Any) -> None:
    _add(name, lambda T, x: getattr(T, name)(x), reference, (3, 4), **options)


def _add(name: str, function: Any, reference: Any, *shapes: Any, **options: Any) -> None:
    CASES.append(ComplexCase(name, function, reference, shapes, **options))


def other(name: str, function: Any, reference: Any, *shapes: Any, **options: Any) -> None:
    _add(name, function, reference, *(shapes or ((3, 4),)), elementwise=False, **options)


for _name, _reference in {
    "neg": np.negative, "abs": np.abs, "sgn": lambda x: x / np.abs(x), "exp": np.exp,
    "log": np.log, "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x), "reciprocal": np.reciprocal,
    "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos,
    "atan": np.arctan, "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "exp2": np.exp2,
    "log2": np.log2, "log10": np.log10, "square": np.square, "conj": np.conj, "angle": np.angle,
    "real": np.real, "imag": np.imag, "expm1": np.expm1, "log1p": np.log1p,
    "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
}.items():  # fmt: skip
    unary(_name, _reference)
for _name in ("isnan", "isinf", "isfinite"):
    unary(_name, getattr(np, _name), gradient=False)

other("conv1d", lambda T, x, y: T.nn.functional.conv1d(x, y, padding=1),
      lambda x, y: _convolved(_bordered(x), y), (2, 3, 5), (3, 3, 2))  # fmt: skip
other("conv_transpose1d", lambda T, x, y: T.nn.functional.conv_transpose1d(x, y),
      lambda x, y: _convolved(_bordered(x), y.transpose(1, 0, 2)[..., ::-1]),
      (2, 3, 5), (3, 3, 2))  # fmt: skip
other("rms_norm", lambda T, x: T.nn.functional.rms_norm(x, (4,), eps=0.1),
      lambda x: x / np.sqrt((x * x).mean(-1, keepdims=True) + 0.1))  # fmt: skip


def _bordered(x: Any) -> Any:
    return np.pad(x, [(0, 0), (0, 0), (1, 1)])


def _convolved(x: Any, w: Any) -> Any:
    places = np.lib.stride_tricks.sliding_window_view(x, w.shape[-1], -1)
    return np.einsum("nitk,oik->not", places, w)


_PLACES = [[0, 2], [1, 1], [3, 3]]
_PAIR = ((3, 4), (4,))
_add("add", lambda T, x, y: T.add(x, y, alpha=2j), lambda x, y: x + 2j * y, *_PAIR)
_add("sub", lambda T, x, y: x - y, np.subtract, *_PAIR)
_add("mul", lambda T, x, y: x * y, np.multiply, *_PAIR)
_add("div", lambda T, x, y: x / y, np.divide, *_PAIR)
_add("pow", lambda T, x, y: x**y, np.power, *_PAIR)
_add("pow of a number", lambda T, x: 2**x, lambda x: 2**x, (3, 4))
_add("pow by numbers", lambda T, x: x**3 + x**-1 + x**0.5,
     lambda x: x**3 + 1 / x + np.sqrt(x), (3, 4))  # fmt: skip
_add("eq", lambda T, x, y: x == y, np.equal, *_PAIR, gradient=False)
_add("ne", lambda T, x, y: x != y, np.not_equal, *_PAIR, gradient=False)
_add("where", lambda T, x, y: T.where(x.real > 0, x, y), lambda x, y: np.where(x.real > 0, x, y),
     *_PAIR)  # fmt: skip
_add(
    "complex",
    lambda T, x, y: T.complex(x.real, y.imag),
    lambda x, y: x.real + 1j * y.imag,
    *_PAIR,
)
_add("polar", lambda T, x, y: T.polar(x.abs(), y.imag),
     lambda x, y: np.abs(x) * np.exp(1j * y.imag), *_PAIR)  # fmt: skip
_add("real times complex", lambda T, x, y: x.real * y + x.abs(), lambda x, y: x.real * y + abs(x),
     *_PAIR)  # fmt: skip
_add("numbers", lambda T, x: (x * 1j + 2) / (1 - 0.5j) - 3, lambda x: (x * 1j + 2) / (1 - 0.5j) - 3,
     (3, 4))  # fmt: skip
_add("to real and back", lambda T, x: x.real.to(x.dtype) * x, lambda x: x.real * x, (3, 4))


def _log_of_sum(x: Any, y: Any) -> Any:
    """log(exp(x) + exp(y)), the larger number turned by no more than a right angle."""
    most, least = np.where(x.real >= y.real, x, y), np.where(x.real >= y.real, y, x)
    return most + np.log1p(np.exp(least - most))


def _logs_of_sums(x: Any) -> Any:
    return np.stack(list(itertools.accumulate(x.T, lambda sums, each: _log_of_sum(each, sums))), 1)


_add("logaddexp", lambda T, x, y: T.logaddexp(x, y), _log_of_sum, *_PAIR)
other("logsumexp", lambda T, x: T.logsumexp(x, 1), lambda x: np.log(np.exp(x).sum(1)))
other("logcumsumexp", lambda T, x: T.logcumsumexp(x * 3, 1), lambda x: _logs_of_sums(x * 3))
# Of complex numbers, PyTorch has no gradient of it.
_add("nan_to_num", lambda T, x: T.nan_to_num(x * 2), lambda x: x * 2, (3, 4), gradient=False)

other(
    "view_as_real", lambda T, x: T.view_as_real(x) * 2, lambda x: 2 * np.stack([x.real, x.imag], -1)
)
other("view_as_complex", lambda T, x: T.view_as_complex(T.view_as_real(x) * 2), lambda x: 2 * x)
other("sum", lambda T, x: x.sum(0), lambda x: x.sum(0))
other("mean", lambda T, x: x.mean(), np.mean)
other("var", lambda T, x: x.var(1), lambda x: x.var(1, ddof=1))
other("norm", lambda T, x: x.norm(), np.linalg.norm)
other("prod", lambda T, x: x.prod(), np.prod, (3, 3))
other(
    "prod of rows", lambda T, x: x.prod(1, keepdim=True), lambda x: x.prod(1, keepdims=True), (2, 5)
)
other("cumsum", lambda T, x: T.cumsum(x, 1), lambda x: x.cumsum(1))
other("cumprod", lambda T, x: T.cumprod(x, 1), lambda x: x.cumprod(1))
other("matmul", lambda T, x, y: x @ y.mT, lambda x, y: x @ y.swapaxes(-1, -2), (2, 3, 4), (5, 4))
other(
    "matmul of adjoints",
    lambda T, x, y: x.mT.conj() @ y,
    lambda x, y: x.conj().T @ y,
    (4, 3),
    (4, 2),
)
other("determinants", lambda T, x: T.linalg.det(x) * T.linalg.slogdet(_regular(T, x))[1] +
      T.linalg.slogdet(x)[0],
      lambda x: np.linalg.det(x) * np.linalg.slogdet(x + 3 * np.eye(2))[1] +
      np.linalg.slogdet(x)[0], (2, 2))  # fmt: skip
other("systems", lambda T, x, y: T.linalg.cholesky(_positive(T, x), upper=True) @
      T.linalg.solve(_regular(T, x), y),
      lambda x, y: np.linalg.cholesky(x @ x.conj().T + np.eye(2)).conj().T @
      np.linalg.solve(x + 3 * np.eye(2), y), (2, 2), (2, 1))  # fmt: skip
other("eigenvectors", lambda T, x: _rebuilt(T.linalg.eigh(_positive(T, x))),
      lambda x: _exponential(x @ x.conj().T + np.eye(2)), (2, 2))  # fmt: skip
other("singular vectors", lambda T, x: _product(*T.linalg.svd(x, full_matrices=False)),
      lambda x: _product(*np.linalg.svd(x, full_matrices=False)), (3, 2))  # fmt: skip
other("orthonormal factors", lambda T, x: T.linalg.qr(x)[0] @ T.linalg.qr(x)[1][:, :2] ** 2,
      lambda x: np.linalg.qr(x)[0] @ np.linalg.qr(x)[1][:, :2] ** 2, (2, 3))  # fmt: skip
other("pseudoinverses", lambda T, x: T.linalg.pinv(x), np.linalg.pinv, (3, 2))
other("dot", lambda T, x, y: T.dot(x, y), np.dot, (5,), (5,))
other("vdot", lambda T, x, y: T.vdot(x, y), np.vdot, (5,), (5,))
other("mv", lambda T, x, y: x @ y, np.matmul, (3, 4), (4,))
other(
    "views",
    lambda T, x: x.t()[1:, ::2].reshape(-1).flip(0),
    lambda x: x.T[1:, ::2].reshape(-1)[::-1],
)
other(
    "cat", lambda T, x, y: T.cat([x, y, x]), lambda x, y: np.concatenate([x, y, x]), (2, 3), (1, 3)
)
other("stack", lambda T, x, y: T.stack([x, y], 1), lambda x, y: np.stack([x, y], 1), (2, 3), (2, 3))
other("index", lambda T, x: x[T.tensor([0, 2, 2])], lambda x: x[[0, 2, 2]])
other("gather", lambda T, x: T.gather(x, 1, T.tensor(_PLACES)),
      lambda x: np.take_along_axis(x, np.array(_PLACES), 1))  # fmt: skip
other("scatter_add", lambda T, x: T.scatter_add(x, 1, T.tensor(_PLACES), x[:, :2] * x[:, 2:]),
      lambda x: _scattered(x))  # fmt: skip
other("expand", lambda T, x: x[:, :1].expand(3, 4) * x, lambda x: x[:, :1] * x)
other("in place", lambda T, x: _in_place(x), lambda x: (x * 2j).real + 1 + 1j * (x * 2j).imag)
other("written parts", lambda T, x: _written(T, x), lambda x: x.real**2 + 1j * x.imag)


def _regular(T: Any, x: Any) -> Any:
    return x + 3 * T.eye(x.shape[-1], dtype=x.dtype, device=x.device)


def _positive(T: Any, x: Any) -> Any:
    return x @ x.mH + T.eye(x.shape[-1], dtype=x.dtype, device=x.device)


def _rebuilt(found: Any) -> Any:
    """A function of a matrix, by its eigenvalues: phases of the vectors do not matter."""
    values, vectors = found
    return (vectors * (-values).exp().unsqueeze(-2)) @ vectors.mH


def _exponential(x: Array) -> Array:
    values, vectors = np.linalg.eigh(x)
    return (vectors * np.exp(-values)) @ vectors.conj().T


def _product(u: Any, s: Any, vh: Any) -> Any:
    return (u * (s * s)[..., None, :]) @ vh * abs(u)


def _scattered(x: Array) -> Array:
    result = x.copy()
    for row, places in enumerate(_PLACES):
        np.add.at(result[row], places, (x[:, :2] * x[:, 2:])[row])
    return result


def _in_place(x: Any) -> Any:
    y = x.clone()
    y.mul_(2j)
    y += 1
    return y


def _written(T: Any, x: Any) -> Any:
    y = x.clone()
    T.view_as_real(y)[..., 0].mul_(y.detach().real.clone() * 0 + x.real)
    return y


def _read_below(x: Any) -> Any:
    """The Hermitian matrix of which the lower triangle is read, and the real parts between."""
    below = np.tril(x, -1)
    return below + below.conj().swapaxes(-1, -2) + np.eye(x.shape[-1]) * x.real


other("pinv of what is read below", lambda T, x: T.linalg.pinv(x, hermitian=True),
      lambda x: np.linalg.pinv(_read_below(x)), (3, 3), gradient=False)  # fmt: skip
