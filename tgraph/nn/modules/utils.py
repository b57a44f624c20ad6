"""Helpers of modules: a number for each dimension, and keys of state dictionaries."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ..sizes import as_sizes


def _ntuple(n: int, name: str = "parse") -> Callable[[Any], tuple[Any, ...]]:
    """What makes a tuple of its argument: as it is where iterable, else `n` times."""

    def parse(x: Any) -> tuple[Any, ...]:
        return as_sizes(x, n)

    parse.__name__ = name
    return parse


_single = _ntuple(1, "_single")
_pair = _ntuple(2, "_pair")
_triple = _ntuple(3, "_triple")
_quadruple = _ntuple(4, "_quadruple")


def _reverse_repeat_tuple(t: Iterable[Any], n: int) -> tuple[Any, ...]:
    """The elements from the last on, each `n` times."""
    return tuple(each for each in reversed(tuple(t)) for _ in range(n))


def _list_with_default(out_size: list[Any], defaults: list[int]) -> list[int]:
    """Sizes, of which None stands for the default of its place, from the last on."""
    if isinstance(out_size, (int,)):
        return out_size  # type: ignore[return-value]
    if len(defaults) <= len(out_size):
        raise ValueError(f"Input dimension should be at least {len(out_size) + 1}")
    return [
        default if size is None else size
        for size, default in zip(out_size, defaults[-len(out_size) :])
    ]


def consume_prefix_in_state_dict_if_present(state_dict: dict[str, Any], prefix: str) -> None:
    """Take `prefix` from the keys of a state dictionary that begin with it, in place.

    >>> state = {"module.weight": 1, "bias": 2}
    >>> consume_prefix_in_state_dict_if_present(state, "module.")
    >>> sorted(state)
    ['bias', 'weight']
    """
    for key in list(state_dict):
        if key.startswith(prefix):
            state_dict[key[len(prefix) :]] = state_dict.pop(key)
    metadata = getattr(state_dict, "_metadata", None)
    for key in list(metadata or ()):
        if metadata is not None and key and (f"{key}." == prefix or key.startswith(prefix)):
            metadata[key[len(prefix) :]] = metadata.pop(key)
