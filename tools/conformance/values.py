"""Values as plain data, which tgraph's are made from and compared with; needs no PyTorch.

Containers and Python's own values stand for themselves; tensors and what has a name in both
libraries are one of the classes here.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

import tgraph as tg


class Array(NamedTuple):
    """A tensor: bfloat16 as float32, and in which order its axes lie in memory."""

    values: np.ndarray
    dtype: str
    grad: bool = False
    order: tuple[int, ...] | None = None
    parameter: bool = False


class Sparse(NamedTuple):
    """A sparse tensor: the positions, and the values last."""

    layout: str
    shape: tuple[int, ...]
    parts: tuple[Array, ...]
    grad: bool = False


class Named(NamedTuple):
    """A dtype, a device, a memory format or a function, at a path below both libraries."""

    path: str


class Made(NamedTuple):
    """What a class or function at a path gives for arguments: modules and partial functions."""

    path: str
    args: tuple[Any, ...]
    keywords: dict[str, Any]
    state: dict[str, Any] | None = None


TOLERANCES = {
    "float64": (1e-7, 1e-7), "float32": (1e-4, 2e-5), "complex128": (1e-7, 1e-7),
    "complex64": (1e-4, 2e-5), "float16": (2e-2, 2e-2), "bfloat16": (5e-2, 5e-2),
}  # fmt: skip
"""Relative and absolute, by the type of PyTorch's value."""


class Missing(Exception):
    """tgraph has no such name."""


class Difference(Exception):
    """tgraph gives something else than PyTorch; `kind` is what was compared."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(f"{kind}: {text}")
        self.kind = kind


class TakesNumbers(Exception):
    """tgraph takes numbers where PyTorch wants tensors, and gives what it gives for tensors."""


def told(error: BaseException) -> str:
    """The type and first line of an error."""
    return f"{type(error).__name__}: {error}".split("\n")[0][:200]


def own_name(path: str) -> Any:
    """What tgraph has at a dotted path of PyTorch's, without "torch."."""
    found: Any = tg
    for name in path.split("."):
        try:
            found = getattr(found, name)
        except AttributeError as error:
            raise Missing(path) from error
    return found


def own(value: Any, known: dict[int, Any] | None = None) -> Any:
    """A value of tgraph's from plain data; the same tensor for the same `Array`."""
    known = {} if known is None else known
    if isinstance(value, (Array, Sparse)):
        if id(value) not in known:
            known[id(value)] = (_own_tensor if isinstance(value, Array) else _own_sparse)(value)
        return known[id(value)]
    if isinstance(value, Named):
        return own_name(value.path)
    if isinstance(value, Made):
        return _own_made(value, known)
    if isinstance(value, (list, tuple)):
        return type(value)(own(each, known) for each in value)
    if isinstance(value, dict):
        return {key: own(each, known) for key, each in value.items()}
    return value


def _own_tensor(value: Array) -> Any:
    made = tg.tensor(np.array(value.values, copy=True))
    if value.dtype == "bfloat16":
        made = made.to(tg.bfloat16)
    if value.order is not None:
        back = [value.order.index(axis) for axis in range(len(value.order))]
        made = made.permute(value.order).contiguous().permute(back)
    if value.parameter:
        return tg.nn.Parameter(made, requires_grad=value.grad)
    return made.requires_grad_(True) if value.grad else made


def _own_sparse(value: Sparse) -> Any:
    made = own_name(f"{value.layout}_tensor")(*map(_own_tensor, value.parts), value.shape)
    return made.requires_grad_(True) if value.grad else made


def parts_of(tensor: Any) -> tuple[Any, ...]:
    """The positions and values of a sparse tensor of either library."""
    layout = str(tensor.layout)
    if layout.endswith("coo"):
        tensor = tensor.coalesce()
        return tensor.indices(), tensor.values()
    if layout.endswith(("csr", "bsr")):
        return tensor.crow_indices(), tensor.col_indices(), tensor.values()
    return tensor.ccol_indices(), tensor.row_indices(), tensor.values()


def _own_made(value: Made, known: dict[int, Any]) -> Any:
    args, keywords = own(value.args, known), own(value.keywords, known)
    if value.path == "partial":
        return functools.partial(*args, **keywords)
    made = own_name(value.path)(*args, **keywords)
    if value.state is not None:
        made.load_state_dict(own(value.state))
    return made


def tensors_of(value: Any) -> Iterator[Any]:
    """The tensors of a container of tgraph's, or the arrays of plain data, in order."""
    if isinstance(value, (tg.Tensor, Array, Sparse)):
        yield value
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from tensors_of(each)
    elif isinstance(value, dict):
        for each in value.values():
            yield from tensors_of(each)


def compare(kind: str, found: Any, wanted: Any, *, loose: float = 1.0) -> None:
    """Raise Difference unless containers, shapes, dtypes and values agree with plain data."""
    if isinstance(wanted, Array):
        _compare_tensors(kind, found, wanted, loose)
    elif isinstance(wanted, Sparse):
        layout = str(getattr(found, "layout", type(found).__name__)).removeprefix("tgraph.")
        if layout != wanted.layout or tuple(found.shape) != wanted.shape:
            text = f"{layout} of shape {tuple(found.shape)} instead of {wanted[:2]}"
            raise Difference(kind, text)
        compare(kind, parts_of(found), wanted.parts, loose=loose)
    elif isinstance(wanted, Named):
        if found is not own_name(wanted.path):
            raise Difference(kind, f"{found} instead of {wanted.path}")
    elif isinstance(wanted, dict):
        if not isinstance(found, dict) or list(found) != list(wanted):
            keys = list(found) if isinstance(found, dict) else type(found).__name__
            raise Difference(kind, f"keys {keys} instead of {list(wanted)}")
        for key, each in wanted.items():
            compare(kind, found[key], each, loose=loose)
    elif isinstance(wanted, (list, tuple)):
        if not isinstance(found, (list, tuple)) or len(found) != len(wanted):
            raise Difference(kind, f"{type(found).__name__} instead of {len(wanted)} values")
        for pair in zip(found, wanted, strict=True):
            compare(kind, *pair, loose=loose)
    elif isinstance(wanted, float) and isinstance(found, float):
        if not np.isclose(found, wanted, rtol=1e-6, equal_nan=True):
            raise Difference(kind, f"{found!r} instead of {wanted!r}")
    elif type(found) is not type(wanted) or found != wanted:
        raise Difference(kind, f"{found!r} instead of {wanted!r}"[:160])


def compare_shapes(kind: str, found: Any, wanted: Any) -> None:
    """Raise Difference unless the tensors of both have the same shapes and types."""
    one = [(tuple(each.shape), str(each.dtype)) for each in tensors_of(found)]
    other = [(each.values.shape, f"tgraph.{each.dtype}") for each in tensors_of(wanted)]
    if one != other:
        raise Difference(kind, f"{one} instead of {other}")


def _compare_tensors(kind: str, found: Any, wanted: Array, loose: float) -> None:
    if not isinstance(found, tg.Tensor):
        raise Difference(kind, f"{type(found).__name__} instead of a tensor")
    if tuple(found.shape) != wanted.values.shape:
        raise Difference(kind, f"shape {tuple(found.shape)} instead of {wanted.values.shape}")
    if str(found.dtype).removeprefix("tgraph.") != wanted.dtype:
        raise Difference(kind, f"{found.dtype} instead of {wanted.dtype}")
    if found.device != tg.get_default_device():
        raise Difference(kind, f"lies on {found.device} instead of {tg.get_default_device()}")
    plain = found.detach().cpu()
    if wanted.dtype in ("bfloat16", "float16"):
        plain = plain.to(tg.float32)
    one, other = plain.numpy(), wanted.values
    relative, absolute = TOLERANCES.get(wanted.dtype, (0.0, 0.0))
    if not np.allclose(one, other, relative * loose, absolute * loose, equal_nan=True):
        with np.errstate(all="ignore"):
            distance = np.abs(one.astype(np.complex128) - other)
        raise Difference(kind, f"differs by up to {np.nanmax(distance):.3g}")


def same_gradients(kind: str, results: Any, sources: Any, cotangents: Any, wanted: Any) -> None:
    """Raise Difference unless gradients of `results` at `sources` agree; `cotangents` of results.

    Without cotangents PyTorch has no gradient, and then tgraph may have any. Where PyTorch leaves
    that of a source undefined, it may be zeros.
    """
    if cotangents is None:
        return
    differentiable = [each for each in tensors_of(results) if each.requires_grad]
    if len(differentiable) != len(cotangents):
        raise Difference(kind, f"{len(differentiable)} results have gradients "
                         f"instead of {len(cotangents)}")  # fmt: skip
    if not differentiable:
        return
    try:
        tg.autograd.backward(differentiable, own(list(cotangents)))
    except Exception as error:
        raise Difference(kind, told(error)) from error
    for source, gradient in zip(tensors_of(sources), wanted, strict=True):
        undefined = gradient is None and source.grad is not None and not source.grad.any()
        if (source.grad is None) != (gradient is None) and not undefined:
            raise Difference(kind, f"gradient {source.grad} instead of {gradient}"[:160])
        if gradient is not None:
            compare(kind, source.grad, gradient, loose=5.0)


def outcome(run: Callable[..., None], *args: Any) -> str:
    """What is different about a case; empty where everything agrees."""
    try:
        run(*args)
    except Missing as error:
        return f"missing: {error}"
    except Difference as error:
        return str(error)
    except TakesNumbers:
        return "takes numbers"
    except Exception as error:
        return f"raises: {told(error)}"
    return ""
