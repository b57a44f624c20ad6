"""Values that are computed again for gradients instead of kept: `tgraph.checkpoint`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..core.pytree import flatten
from ..core.tensor import Tensor
from ..ops.random import get_rng_state, set_rng_state
from ..transforms.checkpoint import checkpoint as _checkpoint
from ..transforms.checkpoint import checkpoint_name, checkpoint_policies

__all__ = ["checkpoint", "checkpoint_name", "checkpoint_policies", "checkpoint_sequential",
           "get_device_states", "set_device_states"]  # fmt: skip


def checkpoint(
    function: Callable[..., Any], *args: Any, use_reentrant: bool | None = None,
    context_fn: Any = None, determinism_check: str = "default", debug: bool = False,
    early_stop: bool = True, preserve_rng_state: bool = True, **kwargs: Any,
) -> Any:  # fmt: skip
    """`function(*args, **kwargs)` by `tgraph.checkpoint`, with PyTorch's options.

    `use_reentrant`, `determinism_check`, `debug` and `early_stop` change nothing.
    NotImplementedError for a `context_fn`.
    """
    if context_fn is not None:
        raise NotImplementedError(
            "checkpoint: context_fn is not taken; tgraph.checkpoint(function, *args, policy=...) "
            "says what is kept"
        )
    run = _checkpoint(function, preserve_rng_state=preserve_rng_state)
    return run(*args, **kwargs)


def checkpoint_sequential(
    functions: Any, segments: int, input: Any, use_reentrant: bool | None = None, **kwargs: Any
) -> Any:
    """`input` through `functions` (a Sequential, or a list), in as many checkpoints as `segments`.

    The last segment is kept whole, as its gradient comes first.

    >>> import tgraph as tg
    >>> from tgraph.utils.checkpoint import checkpoint_sequential
    >>> net = tg.nn.Sequential(*[tg.nn.Linear(2, 2) for _ in range(4)])
    >>> checkpoint_sequential(net, 2, tg.ones(1, 2)).shape
    tgraph.Size([1, 2])
    """
    layers = list(functions.children() if hasattr(functions, "children") else functions)
    length = max(len(layers) // segments, 1)
    for start in range(0, length * (segments - 1), length):
        part = _in_turn(layers[start : start + length])
        input = checkpoint(part, input, use_reentrant=use_reentrant, **kwargs)
    return _in_turn(layers[length * (segments - 1) :])(input)


def get_device_states(*args: Any) -> tuple[list[int], list[Tensor]]:
    """The CUDA devices on which `args` lie, and the states of their random numbers.

    >>> import tgraph as tg
    >>> tg.utils.checkpoint.get_device_states(tg.ones(2))
    ([], [])
    """
    tensors = [each for each in flatten(args)[0] if isinstance(each, Tensor)]
    devices = sorted({each.device.index or 0 for each in tensors if each.is_cuda})
    return devices, [get_rng_state() for _ in devices]


def set_device_states(devices: Sequence[int], states: Sequence[Tensor], **kwargs: Any) -> None:
    """Go on from what `get_device_states` gave: all devices draw from one generator."""
    for state in states[:1]:
        set_rng_state(state)


def _in_turn(layers: Sequence[Callable[[Any], Any]]) -> Callable[[Any], Any]:
    def run(value: Any) -> Any:
        for layer in layers:
            value = layer(value)
        return value

    return run
