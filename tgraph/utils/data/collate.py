"""Batches of examples."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ...core.tensor import Tensor
from ...ops.concatenation import stack
from ...ops.from_data import as_tensor, tensor
from ...runtime.dtypes import float64

_Functions = Mapping[Any, Callable[..., Any]]


def collate(batch: Sequence[Any], *, collate_fn_map: _Functions | None = None) -> Any:
    """Examples of the same structure as one, with a collated batch at each place.

    `collate_fn_map` tells functions by types (or tuples of types) of what they collate; they are
    called with a list and `collate_fn_map`.

    TypeError for what nobody collates, RuntimeError for sequences of different lengths.
    """
    first = batch[0]
    found = _function_for(type(first), collate_fn_map or {})
    if found is not None:
        return found(batch, collate_fn_map=collate_fn_map)
    if isinstance(first, Mapping):
        return _like(first, {
            key: collate([each[key] for each in batch], collate_fn_map=collate_fn_map)
            for key in first
        })  # fmt: skip
    if isinstance(first, Sequence):
        return _sequences(batch, collate_fn_map)
    raise TypeError(
        "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; "
        f"found {type(first)}"
    )


def _function_for(kind: type, functions: _Functions) -> Callable[..., Any] | None:
    if kind in functions:
        return functions[kind]
    return next((each for types, each in functions.items() if issubclass(kind, types)), None)


def _like(example: Any, found: dict[Any, Any]) -> Any:
    """A mapping of the type of `example` where it takes one."""
    try:
        return type(example)(found)
    except TypeError:
        return found


def _sequences(batch: Sequence[Any], functions: _Functions | None) -> Any:
    first = batch[0]
    if any(len(each) != len(first) for each in batch):
        raise RuntimeError("each element in list of batch should be of equal size")
    columns = [collate(column, collate_fn_map=functions) for column in zip(*batch, strict=True)]
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return type(first)(*columns)
    if isinstance(first, tuple):
        return columns
    try:
        return type(first)(columns)  # type: ignore[call-arg]
    except TypeError:
        return columns


def _tensors(batch: Sequence[Tensor], *, collate_fn_map: Any = None) -> Tensor:
    found: Tensor = stack(list(batch))
    return found


def _arrays(batch: Sequence[Any], *, collate_fn_map: Any = None) -> Tensor:
    if batch[0].dtype.kind in "SUOV":
        raise TypeError(
            "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; "
            f"found an array of {batch[0].dtype}"
        )
    return as_tensor(np.stack(batch))


def _floats(batch: Sequence[float], *, collate_fn_map: Any = None) -> Tensor:
    return tensor(batch, dtype=float64)


def _integers(batch: Sequence[int], *, collate_fn_map: Any = None) -> Tensor:
    return tensor(batch)


def _as_they_are(batch: Sequence[Any], *, collate_fn_map: Any = None) -> Any:
    return batch


default_collate_fn_map: dict[Any, Callable[..., Any]] = {
    Tensor: _tensors, np.ndarray: _arrays, (np.bool_, np.number, np.object_): _arrays,
    float: _floats, int: _integers, str: _as_they_are, bytes: _as_they_are,
}  # fmt: skip


def default_collate(batch: Sequence[Any]) -> Any:
    """A batch of tensors, arrays, numbers, strings, and containers of them.

    Tensors and arrays are stacked, numbers become tensors (floats of float64), strings stay lists;
    tuples, lists and mappings become containers of batches.

    >>> import tgraph as tg
    >>> tg.utils.data.default_collate([{"x": 1.0, "name": "a"}, {"x": 2.0, "name": "b"}])
    {'x': tensor([1., 2.], dtype=tgraph.float64), 'name': ['a', 'b']}
    """
    return collate(batch, collate_fn_map=default_collate_fn_map)


def default_convert(data: Any) -> Any:
    """The arrays of an example as tensors; what else it holds stays as it is."""
    if isinstance(data, Tensor):
        return data
    if isinstance(data, (np.ndarray, np.number, np.bool_)):
        return data if data.dtype.kind in "SUOV" else as_tensor(data)
    if isinstance(data, Mapping):
        return _like(data, {key: default_convert(each) for key, each in data.items()})
    if isinstance(data, tuple):
        found = [default_convert(each) for each in data]
        return type(data)(*found) if hasattr(data, "_fields") else found
    if isinstance(data, Sequence) and not isinstance(data, (str, bytes)):
        found = [default_convert(each) for each in data]
        try:
            return type(data)(found)  # type: ignore[call-arg]
        except TypeError:
            return found
    return data
