"""The state of random numbers: what `tgraph` has by the same names, and `fork_rng`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .ops.generator import (
    default_generator,
    get_rng_state,
    initial_seed,
    manual_seed,
    seed,
    set_rng_state,
)

__all__ = ["default_generator", "fork_rng", "get_rng_state", "initial_seed", "manual_seed", "seed",
           "set_rng_state"]  # fmt: skip


@contextmanager
def fork_rng(devices: Any = None, enabled: bool = True, **kwargs: Any) -> Iterator[None]:
    """Random numbers drawn inside change nothing for those drawn behind it.

    One generator serves all devices, so `devices` changes nothing.

    >>> import tgraph as tg
    >>> state = tg.get_rng_state()
    >>> with tg.random.fork_rng():
    ...     drawn = tg.rand(3)
    >>> tg.equal(tg.get_rng_state(), state)
    True
    """
    if not enabled:
        yield
        return
    state = get_rng_state()
    try:
        yield
    finally:
        set_rng_state(state)
