"""The fake's ufuncs: CuPy's loops, its choice among them, and its results where NumPy's differ."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from . import indexing
from .arrays import BFLOAT16, converted, here, is_half, ndarray, perform, supported

_INTS = "bBhHiIlLqQ"
_FLOATS = "eEfd"  # E is bfloat16, which CuPy has where ml_dtypes is installed
_COMPLEX = "FD"
_PYTHON = (bool, int, float, complex)
Loops = tuple[str, ...]


def _loops(nin: int, chars: str, result: str = "") -> Loops:
    return tuple(f"{char * nin}->{result or char}" for char in chars)


def dtype_of(char: str) -> np.dtype[Any]:
    return BFLOAT16 if char == "E" else np.dtype(char)


_ARITHMETIC = _loops(2, "?" + _INTS + _FLOATS + _COMPLEX)
_UNARY = _loops(1, "?" + _INTS + _FLOATS)
_NUMBERS = _loops(1, _INTS + _FLOATS + _COMPLEX)
_DIVISIONS = _loops(2, _INTS + _FLOATS)
_MATH = _loops(1, _FLOATS + _COMPLEX)
_TRUTH = ("??->?", "qq->?", "QQ->?", "qQ->?", "Qq->?", *_loops(2, _FLOATS, "?"))
_COMPARISON = (*_TRUTH, *_loops(2, _COMPLEX, "?"))
_NAMES_OF_MATH = (
    "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "sin", "cos", "tan", "sinh",
    "cosh", "tanh", "arcsin", "arccos", "arctan", "arcsinh", "arccosh", "arctanh", "rint",
)  # fmt: skip
_COMPARISONS = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")

LOOPS: dict[str, Loops] = {
    **dict.fromkeys(("add", "subtract", "multiply", "maximum", "minimum"), _ARITHMETIC),
    **dict.fromkeys(("floor_divide", "remainder", "fmod"), _DIVISIONS),
    "true_divide": ("qq->d", "qQ->d", "Qq->d", "QQ->d", *_loops(2, _FLOATS + _COMPLEX)),
    "power": ("??->b", *_DIVISIONS, *_loops(2, _COMPLEX)),
    # Those of complex numbers do not compile, and here raise TypeError once they run.
    **dict.fromkeys(("arctan2", "copysign"), _loops(2, _FLOATS + _COMPLEX)),
    **dict.fromkeys(_COMPARISONS, _COMPARISON),
    **dict.fromkeys(("logical_and", "logical_or"), _TRUTH),
    "logical_xor": _loops(2, "?" + _INTS + "efd", "?"),
    "logical_not": _loops(1, "?" + _INTS + "efd", "?"),
    **dict.fromkeys(("bitwise_and", "bitwise_or", "bitwise_xor"), _loops(2, "?" + _INTS)),
    **dict.fromkeys(("left_shift", "right_shift"), _loops(2, _INTS)),
    "invert": _loops(1, "?" + _INTS),
    **dict.fromkeys(("floor", "ceil", "trunc"), _UNARY),
    **dict.fromkeys(("negative", "positive"), (*_UNARY, *_loops(1, _COMPLEX))),
    "absolute": (*_UNARY, "F->f", "D->d"),
    **dict.fromkeys(("sign", "square", "reciprocal", "conjugate"), _NUMBERS),
    **dict.fromkeys(_NAMES_OF_MATH, _MATH),
    "cbrt": _loops(1, _FLOATS),
    **dict.fromkeys(("isnan", "isinf", "isfinite"), _loops(1, _FLOATS + _COMPLEX, "?")),
    "signbit": _loops(1, _FLOATS, "?"),
}
SCATTERS = {
    "add": "add", "subtract": "sub", "maximum": "max", "minimum": "min",
    "bitwise_and": "and", "bitwise_or": "or", "bitwise_xor": "xor",
}  # fmt: skip
WHERE: Loops = tuple(f"?{char * 2}->{char}" for char in "?" + _INTS + "efdFD")
ERF: Loops = ("e->d", "f->f", "d->d")


class Scalar:
    """A Python or NumPy scalar; `weak` is the type of a Python number, which gives way."""

    def __init__(self, value: Any) -> None:
        self.value = value
        self.weak: Any = type(value) if type(value) in (int, float, complex) else None
        if isinstance(value, np.generic):
            self.dtype = supported(value.dtype)
        elif type(value) in _PYTHON:
            big = type(value) is int and value >= 1 << 63
            self.dtype = np.dtype(np.uint64 if big else type(value))
        else:
            raise TypeError(f"Unsupported type {type(value)}")


Operand = ndarray | Scalar
Kinds = tuple[tuple[np.dtype[Any], Any], ...]  # dtypes, and the types of Python's numbers


def operand(value: Any) -> Operand:
    return value if isinstance(value, ndarray) else Scalar(value)


def _kind_score(kind: Any) -> int:
    ranks: tuple[Any, ...] = (np.bool_, (np.integer, int), (np.inexact, float, complex))
    return next((rank for rank, types in enumerate(ranks) if issubclass(kind, types)), 3)


def _weak_counts(kinds: Kinds) -> bool:
    """Whether Python scalars give way: not where they are of a higher kind than the arrays."""
    weak = [_kind_score(weakness) for _, weakness in kinds if weakness]
    firm = [_kind_score(dtype.type) for dtype, weakness in kinds if not weakness]
    return bool(weak and firm) and max(firm) >= max(weak)


def _takes(loop: str, kinds: Kinds, weak: list[Any]) -> bool:
    for char, (dtype, _), weakness in zip(loop, kinds, weak):
        wanted = dtype_of(char)
        if np.can_cast(dtype, wanted):
            continue
        if not weakness or np.result_type(weakness(0), wanted) != wanted:
            return False
    return True


@cache
def chosen(name: str, loops: Loops, kinds: Kinds, dtype: Any) -> str:
    """The first loop that takes operands, or whose results have a dtype; TypeError for none."""
    if dtype is not None:
        for loop in loops:
            if all(dtype_of(char) == dtype for char in loop.split("->")[1]):
                return loop
        raise TypeError(f"Wrong type ({dtype}) of arguments for cupy_{name}")
    weak = [weakness if _weak_counts(kinds) else None for _, weakness in kinds]
    if loops is _TRUTH or loops is _COMPARISON:  # a Python int of any size compares with integers
        weak = [
            None if it is int and other.kind in "iu" and not weakness else it
            for it, (other, weakness) in zip(weak, kinds[::-1])
        ]
    for loop in loops:
        if _takes(loop, kinds, weak):
            return loop
    raise TypeError(
        f"Wrong type ({tuple(dtype for dtype, _ in kinds)}) of arguments for cupy_{name}"
    )


class ufunc:
    """Called with arrays and scalars; keywords `out`, `dtype` and `casting` and no other."""

    def __init__(
        self,
        name: str,
        loops: Loops,
        function: Callable[..., Any],
        casting: str = "same_kind",
    ) -> None:
        self.name, self.__name__ = f"cupy_{name}", f"cupy_{name}"
        self.nin, self.nout = loops[0].index("->"), 1
        self.nargs = self.nin + 1
        self.types = list(loops)
        self._name, self._loops, self._function, self._casting = name, loops, function, casting

    def __repr__(self) -> str:
        return f"<ufunc '{self.name}'>"

    def __call__(self, *args: Any, **kwargs: Any) -> ndarray:
        out, dtype = kwargs.pop("out", None), kwargs.pop("dtype", None)
        casting = kwargs.pop("casting", self._casting)
        if kwargs:
            raise TypeError(f"Wrong arguments {kwargs}")
        if not self.nin <= len(args) <= self.nargs:
            raise TypeError(
                f"Wrong number of arguments for {self.name!r}. It must be either {self.nin} or "
                f"{self.nargs} (with outputs), but given {len(args)}."
            )
        if out is not None and len(args) > self.nin:
            raise ValueError("Cannot specify 'out' as both a positional and keyword argument")
        if isinstance(out, tuple):
            (out,) = out
        out = args[self.nin] if len(args) > self.nin else out
        operands = [operand(arg) for arg in args[: self.nin]]
        here(*operands, out)
        loop = self._loop(operands, None if dtype is None else np.dtype(dtype))
        ins, result = loop.split("->")
        shape = self._shape(operands, out)
        made = self._out(out, shape, dtype_of(result), casting)

        hosts = [
            each._np if isinstance(each, ndarray) else np.array(each.value, dtype_of(char))
            for char, each in zip(ins, operands)
        ]

        def values() -> Any:
            arrays = [converted(host, dtype_of(char)) for char, host in zip(ins, hosts)]
            found = computed_wide(self._function, arrays)
            return np.broadcast_to(converted(found, dtype_of(result)), shape)

        perform(made, values, *operands)
        return made

    def _loop(self, operands: list[Operand], dtype: Any) -> str:
        kinds = tuple((each.dtype, getattr(each, "weak", None)) for each in operands)
        loop = chosen(self._name, self._loops, kinds, dtype)
        if loop[0] == "?" and self._name in ("subtract", "negative", "positive"):
            raise TypeError(f"cupy boolean {self._name} is not supported")
        return loop

    def _shape(self, operands: list[Operand], out: Any) -> tuple[int, ...]:
        arrays = [each for each in (*operands, out) if isinstance(each, ndarray)]
        return np.broadcast_shapes(*(each.shape for each in arrays))

    def _out(self, out: Any, shape: tuple[int, ...], dtype: Any, casting: str) -> ndarray:
        if out is None:
            return ndarray(shape, dtype)
        if not isinstance(out, ndarray):
            raise TypeError("Output arguments type must be cupy.ndarray")
        if out.shape != shape:
            raise ValueError("Out shape is mismatched")
        if not np.can_cast(dtype, out.dtype, casting):  # type: ignore[arg-type]
            raise TypeError(
                f"Cannot cast output operand from {dtype!r} to {out.dtype!r} according to the "
                f"rule '{casting}'"
            )
        return out

    def outer(self, A: Any, B: Any, **kwargs: Any) -> ndarray:
        from .routines import array

        A, B = array(A), array(B)
        return self(A.reshape(A.shape + (1,) * B.ndim), B, **kwargs)

    def at(self, a: ndarray, indices: Any, b: Any = None) -> None:
        if self._name not in SCATTERS:
            raise NotImplementedError(f"`{self.name}.at` is not supported yet")
        indexing.scatter(a, indices, b, SCATTERS[self._name])

    def reduce(
        self, array: Any, axis: Any = 0, dtype: Any = None, out: Any = None, keepdims: bool = False
    ) -> ndarray:
        if self._name not in ("add", "multiply"):
            raise NotImplementedError(f"`{self.name}.reduce` is not supported yet")
        method = array.sum if self._name == "add" else array.prod
        found: ndarray = method(axis, dtype, out, keepdims)
        return found

    def accumulate(self, array: Any, axis: Any = 0, dtype: Any = None, out: Any = None) -> ndarray:
        if self._name not in ("add", "multiply"):
            raise NotImplementedError(f"`{self.name}.accumulate` is not supported yet")
        found: ndarray = array.cumsum(axis, dtype, out)
        return found


def computed_wide(function: Callable[..., Any], arrays: list[Any]) -> Any:
    """The function of arrays; of 16-bit floats in float32, as a GPU computes them."""
    wide = [each.astype(np.float32) if is_half(each.dtype) else each for each in arrays]
    with np.errstate(all="ignore"):
        return function(*wide)


# -- results that are not NumPy's ------------------------------------------------------------


def _floor_divide(x: Any, y: Any) -> Any:
    if x.dtype.kind == "f":
        return np.floor(x / y)
    return np.where(y == 0, 0, np.floor_divide(x, np.where(y == 0, 1, y).astype(y.dtype)))


def _remainder(x: Any, y: Any) -> Any:
    rest = x - _floor_divide(x, y) * y
    return rest if x.dtype.kind == "f" else np.where(y == 0, 0, rest)


def _fmod(x: Any, y: Any) -> Any:
    if x.dtype.kind == "f":
        return np.fmod(x, y)
    return np.where(y == 0, 0, np.fmod(x.astype(float), np.where(y == 0, 1, y).astype(float)))


def _power(x: Any, y: Any) -> Any:
    if x.dtype.kind == "c":
        return np.where(y == 0, x.dtype.type(1), np.exp(y * np.log(x)))
    if x.dtype.kind == "f":
        return np.power(x, y)
    x, y = (each.astype(np.int8) if each.dtype.kind == "b" else each for each in (x, y))
    powers = np.power(x, np.where(y < 0, 0, y).astype(y.dtype))
    inverse = np.where(x == 1, 1, np.where(x == -1, np.where(y & 1, -1, 1), 0)).astype(x.dtype)
    return np.where(y < 0, inverse, powers)


def _reciprocal(x: Any) -> Any:
    if x.dtype.kind == "f":
        return np.reciprocal(x)
    if x.dtype.kind == "c":
        return _complex_quotient(np.ones_like(x), x)
    return np.where(x == 0, 0, np.reciprocal(np.where(x == 0, 1, x).astype(x.dtype)))


def _true_divide(x: Any, y: Any) -> Any:
    if x.dtype.kind == "c":
        return _complex_quotient(x, y)
    return np.true_divide(x, y) if x.dtype.kind == "f" else x.astype(float) / y.astype(float)


def _complex_quotient(x: Any, y: Any) -> Any:
    """By the parts of what is divided by the sum of the divisor's; NaN where that is 0."""
    by = 1 / (abs(y.real) + abs(y.imag))
    (a, b), (c, d) = ((each.real * by, each.imag * by) for each in (x, y))
    by = 1 / (c * c + d * d)
    re, im = (a * c + b * d) * by, (b * c - a * d) * by
    found = np.empty(re.shape, x.dtype)
    found.real, found.imag = re, im
    return found


def _of_complex(name: str, function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """NumPy's function of real numbers, another one of complex numbers."""
    return lambda x: function(x) if x.dtype.kind == "c" else getattr(np, name)(x)


def _erf(x: Any) -> Any:
    from scipy import special

    return special.erf(x)


_OWN: dict[str, Callable[..., Any]] = {
    "floor_divide": _floor_divide,
    "remainder": _remainder,
    "fmod": _fmod,
    "power": _power,
    "reciprocal": _reciprocal,
    "true_divide": _true_divide,
    "exp2": _of_complex("exp2", lambda x: np.exp(x * np.log(x.real.dtype.type(2)))),
    "expm1": _of_complex("expm1", lambda x: np.exp(x) - x.dtype.type(1)),
    "log1p": _of_complex("log1p", lambda x: np.log(x + x.dtype.type(1))),
    "log2": _of_complex("log2", lambda x: np.log(x) / np.log(x.real.dtype.type(2))),
}
UFUNCS: dict[str, Any] = {
    name: ufunc(name, loops, _OWN.get(name) or getattr(np, name)) for name, loops in LOOPS.items()
}
UFUNCS["divide"] = UFUNCS["true_divide"]
UFUNCS["abs"] = UFUNCS["absolute"]
UFUNCS["bitwise_not"] = UFUNCS["invert"]
where_ufunc = ufunc("where", WHERE, np.where)
erf = ufunc("erf", ERF, _erf)
