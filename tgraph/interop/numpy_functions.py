"""NumPy's functions, called with tensors: those of tgraph where it has them.

Results go by tgraph's rules of types (integers become float32 in `np.sin`), have gradients, and are
traced. Where an argument has no meaning there, such as `where=`, and for functions that tgraph does
not have, NumPy computes with the tensors' arrays: elementwise functions give tensors all the same,
others what NumPy gives.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np

from .. import array_api as xp
from .. import linalg
from ..core import pytree
from ..core.operands import as_float, cast, is_scalar
from ..core.tensor import Tensor
from ..ops.creation_options import as_dtype
from ..ops.from_data import as_tensor
from ..ops.functions import FUNCTIONS
from ..runtime.dtypes import DType

# --- elementwise functions ------------------------------------------------------------------------

_UFUNCS = {
    "power": "pow", "absolute": "abs", "fabs": "abs", "rint": "round", "sign": "sgn",
    "conjugate": "conj", "invert": "bitwise_not", "left_shift": "bitwise_left_shift",
    "right_shift": "bitwise_right_shift", "equal": "eq", "arcsin": "asin", "arccos": "acos",
    "arctan": "atan", "arcsinh": "asinh", "arccosh": "acosh", "arctanh": "atanh",
    "arctan2": "atan2", "degrees": "rad2deg", "radians": "deg2rad", "modf": None, "frexp": None,
    "ldexp": None, "vecdot": None, "heaviside": None,
}  # fmt: skip
"""The names of tgraph that are not NumPy's; None where they mean something else."""


def elementwise(ufunc: Any, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A call of one of NumPy's ufuncs of which an input or output is a tensor."""
    out = kwargs.get("out", ())
    own = FUNCTIONS.get(_UFUNCS.get(ufunc.__name__, ufunc.__name__) or "")
    if own is None or method != "__call__" or not kwargs.keys() <= {"out", "dtype"}:
        return _by_numpy(getattr(ufunc, method), inputs, kwargs)
    if any(isinstance(each, np.ndarray) for each in out):
        return _by_numpy(ufunc, inputs, kwargs)
    found = _of_operands(own, _as_operands(inputs))
    if kwargs.get("dtype") is not None:
        found = cast(found, _dtype(kwargs["dtype"]))
    return out[0].copy_(found) if out else found


def _as_operands(inputs: Any) -> list[Any]:
    """Arrays and nested sequences as tensors."""
    return [
        as_tensor(each) if isinstance(each, (np.ndarray, list, tuple)) else each for each in inputs
    ]


def _of_operands(function: Any, operands: list[Any]) -> Any:
    """A function of tensors and numbers; those that take no numbers are given tensors of them."""
    try:
        return function(*operands)
    except TypeError:
        if not any(is_scalar(each) for each in operands):
            raise
        return function(*(as_tensor(each) if is_scalar(each) else each for each in operands))


def _dtype(given: Any) -> DType:
    found = as_dtype(given if isinstance(given, DType) else np.dtype(given))
    assert found is not None
    return found


def _by_numpy(function: Any, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What NumPy makes of the arrays; tensors that are written into are given its results."""
    targets = kwargs.get("out", ())
    is_tensor = [isinstance(each, Tensor) for each in targets]
    kwargs = _as_arrays({name: value for name, value in kwargs.items() if name != "out"})
    if targets and not any(is_tensor):
        return function(*_as_arrays(inputs), out=targets, **kwargs)
    found = function(*_as_arrays(inputs), **kwargs)
    if targets:
        results = found if isinstance(found, tuple) else (found,)
        for target, result in zip(targets, results):
            target.copy_(as_tensor(result))
        return targets[0] if len(targets) == 1 else targets
    return pytree.map(_as_result, found)


def _as_result(found: Any) -> Any:
    return as_tensor(found) if isinstance(found, (np.ndarray, np.generic)) else found


def _as_arrays(given: Any) -> Any:
    return pytree.map(lambda each: np.asarray(each) if isinstance(each, Tensor) else each, given)


# --- other functions ------------------------------------------------------------------------------


def call(function: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A call of one of NumPy's functions of which some argument is a tensor."""
    if not all(issubclass(each, (Tensor, np.ndarray)) for each in types):
        return NotImplemented
    own = _functions().get(function)
    if own is not None:
        function_, signature = own
        try:
            signature.bind(*args, **kwargs)
        except TypeError:  # an argument that has no meaning here
            pass
        else:
            return function_(*_with_tensors(args), **kwargs)
    return function(*_as_arrays(args), **_as_arrays(kwargs))


def _with_tensors(args: tuple[Any, ...]) -> list[Any]:
    return [
        as_tensor(each)
        if isinstance(each, np.ndarray)
        else type(each)(map(_with_tensor, each))
        if type(each) in (list, tuple)
        else each
        for each in args
    ]


def _with_tensor(each: Any) -> Any:
    return as_tensor(each) if isinstance(each, np.ndarray) else each


def _reduction(function: Any, floats: bool = False) -> Callable[..., Any]:
    def of_axes(a: Any, axis: Any = None, *, keepdims: Any = False) -> Any:
        x = as_float(a, function.__name__) if floats else a
        return function(x, axis=axis, keepdims=keepdims)

    return of_axes


def _spread(function: Any) -> Callable[..., Any]:
    def of_axes(a: Any, axis: Any = None, *, ddof: float = 0, keepdims: Any = False) -> Any:
        x = as_float(a, function.__name__)
        return function(x, axis=axis, correction=ddof, keepdims=keepdims)

    return of_axes


def _total(function: Any) -> Callable[..., Any]:
    def of_axes(a: Any, axis: Any = None, dtype: Any = None, *, keepdims: Any = False) -> Any:
        wanted = None if dtype is None else _dtype(dtype)
        return function(a, axis=axis, dtype=wanted, keepdims=keepdims)

    return of_axes


def _running(function: Any) -> Callable[..., Any]:
    def of_axis(a: Any, axis: Any = None, dtype: Any = None) -> Any:
        x = a.reshape(-1) if axis is None else a
        return function(x, axis=axis, dtype=None if dtype is None else _dtype(dtype))

    return of_axis


def _ordered(function: Any) -> Callable[..., Any]:
    def of_axis(a: Any, axis: Any = -1) -> Any:
        return function(a.reshape(-1) if axis is None else a, axis=-1 if axis is None else axis)

    return of_axis


def _like(function: Any) -> Callable[..., Any]:
    def of_dtype(a: Any, dtype: Any = None) -> Any:
        return function(a, dtype=None if dtype is None else _dtype(dtype))

    return of_dtype


def _full_like(a: Any, fill_value: Any, dtype: Any = None) -> Any:
    return xp.full_like(a, fill_value, dtype=None if dtype is None else _dtype(dtype))


def _where(condition: Any, *values: Any) -> Any:
    if values:
        return FUNCTIONS["where"](as_tensor(condition), *values)
    return xp.nonzero(condition)


def _squeeze(a: Any, axis: Any = None) -> Any:
    return FUNCTIONS["squeeze"](a) if axis is None else xp.squeeze(a, axis)


def _transpose(a: Any, axes: Any = None) -> Any:
    return xp.permute_dims(a, tuple(range(a.ndim))[::-1] if axes is None else axes)


def _trace(a: Any, offset: int = 0) -> Any:
    return xp.linalg.trace(xp.moveaxis(a, (0, 1), (-2, -1)), offset=offset)


def _take(a: Any, indices: Any, axis: Any = None) -> Any:
    return xp.take(a.reshape(-1) if axis is None else a, as_tensor(indices), axis=axis or 0)


def _same_signature(name: str) -> Callable[..., Any]:
    """A function of tgraph that takes what NumPy's takes."""
    own = FUNCTIONS[name]
    return lambda *args: own(*args)


_ALIKE = {
    name: name
    for name in (
        "broadcast_to", "column_stack", "dstack", "einsum", "flipud", "fliplr", "hstack", "inner",
        "isclose", "kron", "moveaxis", "ravel", "swapaxes", "tensordot", "tril",
        "triu", "vdot", "vstack",
    )
}  # fmt: skip


def _pairs() -> Iterator[tuple[str, Any]]:
    """NumPy's names, and what is called in their place."""
    for name in ("max", "min", "all", "any", "argmax", "argmin", "count_nonzero"):
        yield name, _reduction(getattr(xp, name))
    yield from {"amax": _reduction(xp.max), "amin": _reduction(xp.min)}.items()
    yield "mean", _reduction(xp.mean, floats=True)
    yield from ((name, _spread(getattr(xp, name))) for name in ("var", "std"))
    yield from ((name, _total(getattr(xp, name))) for name in ("sum", "prod"))
    yield from {
        "cumsum": _running(xp.cumulative_sum), "cumprod": _running(xp.cumulative_prod),
    }.items()  # fmt: skip
    yield from ((name, _ordered(getattr(xp, name))) for name in ("sort", "argsort"))
    for name in ("zeros_like", "ones_like", "empty_like"):
        yield name, _like(getattr(xp, name))
    yield from ((name, _same_signature(own)) for name, own in _ALIKE.items())
    yield from {
        "concatenate": lambda arrays, axis=0: xp.concat(arrays, axis=axis),
        "stack": lambda arrays, axis=0: xp.stack(arrays, axis=axis),
        "reshape": lambda a, shape: a.reshape(shape),
        "expand_dims": lambda a, axis: xp.expand_dims(a, axis),
        "outer": lambda a, b: FUNCTIONS["outer"](a.reshape(-1), b.reshape(-1)),
        "flip": lambda m, axis=None: xp.flip(m, axis=axis),
        "roll": lambda a, shift, axis=None: xp.roll(a, shift, axis=axis),
        "tile": lambda a, reps: FUNCTIONS["tile"](a, reps if isinstance(reps, tuple) else (reps,)),
        "repeat": lambda a, repeats, axis=None: xp.repeat(a, repeats, axis=axis),
        "clip": lambda a, a_min=None, a_max=None: FUNCTIONS["clamp"](a, a_min, a_max),
        "dot": lambda a, b: a @ b if a.ndim == 1 or 0 < b.ndim <= 2 else _dot(a, b),
        "matrix_transpose": lambda x: xp.matrix_transpose(x),
        "diff": lambda a, n=1, axis=-1: xp.diff(a, n=n, axis=axis),
        "nonzero": lambda a: xp.nonzero(a),
        "full_like": _full_like, "squeeze": _squeeze, "take": _take, "trace": _trace,
        "transpose": _transpose,
        "where": _where, "copy": lambda a: a.clone(), "real": lambda val: FUNCTIONS["real"](val),
        "round": lambda a, decimals=0: FUNCTIONS["round"](a, decimals=decimals),
        "shape": lambda a: tuple(a.shape), "ndim": lambda a: a.ndim, "size": lambda a: a.numel(),
    }.items()  # fmt: skip


def _dot(a: Tensor, b: Tensor) -> Tensor:
    if not a.ndim or not b.ndim:
        return a * b
    return xp.tensordot(a, b, axes=((-1,), (-2,)))


_OF_MATRICES = (
    "cholesky", "det", "eigh", "eigvalsh", "inv", "pinv", "slogdet", "solve", "matrix_power",
)  # fmt: skip


@cache
def _functions() -> dict[Any, tuple[Callable[..., Any], inspect.Signature]]:
    """By NumPy's function: ours, and what it takes."""
    named = {getattr(np, name): own for name, own in _pairs()}
    for name in _OF_MATRICES:
        named[getattr(np.linalg, name)] = getattr(xp.linalg, name)
    named[np.linalg.norm] = lambda x, ord=None, axis=None, keepdims=False: linalg.norm(
        x, ord, axis, keepdims
    )
    return {function: (own, inspect.signature(own)) for function, own in named.items()}
