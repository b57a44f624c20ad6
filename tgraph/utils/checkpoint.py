"""Values that are computed again for gradients instead of kept: `tgraph.checkpoint`."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from ..core.pytree import flatten
from ..core.tensor import Tensor
from ..ops.generator import get_rng_state, set_rng_state
from ..transforms.checkpoint import (
    CheckpointError,
    Options,
    checkpoint_name,
    checkpoint_policies,
    run,
)

__all__ = ["CheckpointError", "check_backward_validity", "checkpoint", "checkpoint_name",
           "checkpoint_policies", "checkpoint_sequential", "detach_variable", "get_device_states",
           "noop_context_fn", "set_checkpoint_debug_enabled", "set_checkpoint_early_stop",
           "set_device_states"]  # fmt: skip

Contexts = Callable[[], tuple[AbstractContextManager[Any], AbstractContextManager[Any]]]


def noop_context_fn() -> tuple[AbstractContextManager[Any], AbstractContextManager[Any]]:
    """Two contexts that do nothing: what `checkpoint` takes for `context_fn` if not told."""
    return nullcontext(), nullcontext()


def checkpoint(
    function: Callable[..., Any], *args: Any, use_reentrant: bool | None = None,
    context_fn: Contexts = noop_context_fn, determinism_check: str = "default", debug: bool = False,
    early_stop: bool = True, preserve_rng_state: bool = True, **kwargs: Any,
) -> Any:  # fmt: skip
    """`function(*args, **kwargs)` by `tgraph.checkpoint`, with PyTorch's options.

    `context_fn` gives two context managers, one around the first run and one around the second.
    Where the second run keeps less than the first, or tensors of other types, is a CheckpointError,
    unless `determinism_check` is "none". `use_reentrant=True` takes no keywords for the function,
    and is else as False; `debug` and `early_stop` change nothing: the second run goes to its end.

    >>> import tgraph as tg
    >>> x = tg.ones(2, requires_grad=True)
    >>> tg.utils.checkpoint.checkpoint(tg.sin, x, use_reentrant=False).sum().backward()
    >>> x.grad
    tensor([0.5403, 0.5403])
    """
    if determinism_check not in ("default", "none"):
        raise ValueError(
            f"determinism_check should be one of ['default', 'none'], but got {determinism_check}"
        )
    if use_reentrant:
        if kwargs:
            raise ValueError(f"Unexpected keyword arguments: {','.join(kwargs)}")
        if context_fn is not noop_context_fn or debug:
            raise ValueError(
                "Passing `context_fn` or `debug` is only supported when use_reentrant=False."
            )
    contexts = None if context_fn is noop_context_fn else context_fn
    is_checked = determinism_check == "default"
    options = Options(replays=preserve_rng_state, is_checked=is_checked, contexts=contexts)
    return run(function, args, kwargs, options)


@contextmanager
def set_checkpoint_early_stop(enable: bool) -> Iterator[None]:
    """PyTorch's switch for second runs that end early; here they go to their end."""
    yield


@contextmanager
def set_checkpoint_debug_enabled(enabled: bool | None) -> Iterator[None]:
    """PyTorch's switch for longer errors; here they are as they are."""
    yield


def detach_variable(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """The tensors of a tuple without their history, as leaves; what is none as it is.

    >>> import tgraph as tg
    >>> tg.utils.checkpoint.detach_variable((tg.ones(1, requires_grad=True) * 2, 5))
    (tensor([2.], requires_grad=True), 5)
    """
    if not isinstance(inputs, tuple):
        raise RuntimeError(
            "Only tuple of tensors is supported. Got Unsupported input type: "
            f"{type(inputs).__name__}"
        )
    return tuple(
        each.detach().requires_grad_(each.requires_grad) if isinstance(each, Tensor) else each
        for each in inputs
    )


def check_backward_validity(inputs: Iterable[Any]) -> None:
    """A warning where no tensor among `inputs` requires grad."""
    if not any(isinstance(each, Tensor) and each.requires_grad for each in inputs):
        warnings.warn(
            "None of the inputs have requires_grad=True. Gradients will be None", stacklevel=2
        )


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
    preserve = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise ValueError(f"Unexpected keyword arguments: {','.join(kwargs)}")
    length = max(len(layers) // segments, 1)
    for start in range(0, length * (segments - 1), length):
        part = _in_turn(layers[start : start + length])
        input = checkpoint(part, input, use_reentrant=use_reentrant, preserve_rng_state=preserve)
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
