"""The graph of gradients: its nodes and edges, hooks of several tensors, and what is kept in it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal

from ..core.dispatch import edge_of, settled
from ..core.eager_context import current_context
from ..core.inplace import count_writes
from ..core.record import Node, RemovableHandle
from ..core.saved_tensors import Hooks, Pack, Unpack
from ..core.state import state
from ..core.tensor import Tensor
from ..runtime.device import CPU
from .api import GradientEdge, get_gradient_edge, register_hook

__all__ = [
    "GradientEdge",
    "Node",
    "allow_mutation_on_saved_tensors",
    "disable_saved_tensors_hooks",
    "get_gradient_edge",
    "increment_version",
    "register_multi_grad_hook",
    "save_on_cpu",
    "saved_tensors_hooks",
]


class saved_tensors_hooks:
    """Inside the block, each tensor that is kept for the backward pass goes through functions.

    `pack_hook(tensor)` is called when it is saved, and what it gives is kept instead;
    `unpack_hook` makes a tensor of that when the backward pass, or `node._saved_self`, reads it.
    Of blocks in one another, the inner one counts. A compiled function hands through what its
    plan keeps. Inside of a function that is traced there are no values yet: RuntimeError.

    >>> import tgraph as tg
    >>> x = tg.tensor([1.0, 2.0], requires_grad=True)
    >>> with tg.autograd.graph.saved_tensors_hooks(lambda t: t.numpy(force=True), tg.tensor):
    ...     y = x.exp().sum()
    >>> y.backward()
    >>> x.grad
    tensor([2.7183, 7.3891])
    """

    def __init__(self, pack_hook: Pack, unpack_hook: Unpack) -> None:
        self.pack_hook, self.unpack_hook = pack_hook, unpack_hook
        self._outer: list[Any] = []

    def __enter__(self) -> None:
        if state.hooks_disabled is not None:
            raise RuntimeError(state.hooks_disabled)
        if current_context().tracing:
            raise RuntimeError(
                "saved_tensors_hooks in a function that is traced: there are no values that hooks "
                "could see. Enter the block where the compiled function is called."
            )
        self._outer.append(state.saved_hooks)
        state.saved_hooks = Hooks(self.pack_hook, self.unpack_hook)

    def __exit__(self, *error: object) -> None:
        state.saved_hooks = self._outer.pop()


class save_on_cpu(saved_tensors_hooks):
    """Inside the block, tensors are kept in the memory of the CPU, and moved back when they are
    read.

    `pin_memory` lets copies to a GPU run beside its work.

    >>> import tgraph as tg
    >>> x = tg.ones(2, requires_grad=True)
    >>> with tg.autograd.graph.save_on_cpu():
    ...     y = (x * x).sum()
    >>> y.backward()
    >>> x.grad
    tensor([2., 2.])
    """

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        def pack(tensor: Tensor) -> tuple[Any, Tensor]:
            kept = tensor.detach()
            moved = kept.clone() if kept.device is CPU else kept.cpu()
            return tensor.device, moved.pin_memory() if pin_memory and tensor.is_cuda else moved

        def unpack(packed: tuple[Any, Tensor]) -> Tensor:
            device, kept = packed
            found: Tensor = kept.to(device, non_blocking=pin_memory)
            return found

        super().__init__(pack, unpack)


@contextmanager
def disable_saved_tensors_hooks(error_message: str) -> Iterator[None]:
    """Inside the block, `saved_tensors_hooks` is a RuntimeError with this message.

    >>> import tgraph as tg
    >>> with tg.autograd.graph.disable_saved_tensors_hooks("not here"):
    ...     tg.autograd.graph.save_on_cpu().__enter__()
    Traceback (most recent call last):
        ...
    RuntimeError: not here
    """
    if state.saved_hooks is not None:
        raise RuntimeError(error_message)
    previous, state.hooks_disabled = state.hooks_disabled, error_message
    try:
        yield
    finally:
        state.hooks_disabled = previous


class _Kept:
    """Whether what was saved in a block of `allow_mutation_on_saved_tensors` is still there."""

    def __init__(self) -> None:
        self.generation = 0

    def clear(self) -> None:
        """Forget what is kept; graphs that were recorded so far have no backward pass."""
        self.generation += 1


@contextmanager
def allow_mutation_on_saved_tensors() -> Iterator[_Kept]:
    """Inside the block, tensors that are kept for the backward pass may be written in place.

    Copies are kept: the gradient is that of the values of the forward pass. It is asked inside the
    block, too.

    >>> import tgraph as tg
    >>> with tg.autograd.graph.allow_mutation_on_saved_tensors():
    ...     x = tg.ones(2, requires_grad=True)
    ...     y = x.clone()
    ...     loss = (y**2).sum()
    ...     _ = y.sin_()
    ...     loss.backward()
    >>> x.grad
    tensor([2., 2.])
    """
    if state.mutation_allowed:
        raise RuntimeError("allow_mutation_on_saved_tensors contexts cannot be nested")
    kept = _Kept()

    def pack(tensor: Tensor) -> tuple[int, Tensor]:
        return kept.generation, tensor.detach().clone()

    def unpack(packed: tuple[int, Tensor]) -> Tensor:
        generation, tensor = packed
        if generation != kept.generation:
            raise AssertionError(
                "Trying to backward outside of the 'allow_mutation_on_saved_tensors' context in "
                "which the graph was originally recorded."
            )
        return tensor

    state.mutation_allowed = True
    try:
        with saved_tensors_hooks(pack, unpack):
            yield kept
    finally:
        kept.clear()
        state.mutation_allowed = False


def register_multi_grad_hook(
    tensors: Sequence[Tensor], fn: Callable[..., Any], *, mode: Literal["all", "any"] = "all"
) -> RemovableHandle:
    """Call `fn` when the gradients of several tensors are there, once in each backward pass.

    With `mode` "all" it gets a list, with None for tensors that the pass does not reach, when the
    last one is there; with "any" the first gradient.

    >>> import tgraph as tg
    >>> x, y = tg.ones(1, requires_grad=True), tg.ones(1, requires_grad=True)
    >>> handle = tg.autograd.graph.register_multi_grad_hook((x, y), print)
    >>> (x * y * 2).backward()
    [tensor([2.]), tensor([2.])]
    """
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    edges = [edge_of(settled(each)) for each in tensors]
    if None in edges:
        raise AssertionError("Expected gradient function to be set")
    calls = _Calls(fn, [id(edge[0]) for edge in edges if edge is not None], mode == "all")
    hooks = [register_hook(each, calls.hook(at)) for at, each in enumerate(tensors)]
    return _Handles(hooks)


class _Handles(RemovableHandle):
    """The handle of several hooks."""

    def __init__(self, handles: Sequence[RemovableHandle]) -> None:
        super().__init__({})
        self._handles = handles

    def remove(self) -> None:
        for each in self._handles:
            each.remove()


class _Calls:
    """What has arrived of the gradients of several tensors, in the pass that runs."""

    def __init__(self, fn: Callable[..., Any], targets: list[int], all_of_them: bool) -> None:
        self.fn, self.targets, self.all_of_them = fn, targets, all_of_them
        self.running: Any = None
        self.came: list[Tensor | None] = []
        self.missing = 0

    def hook(self, at: int) -> Callable[[Tensor], None]:
        def arrived(gradient: Tensor) -> None:
            running = state.backward_pass
            is_first = running is not self.running
            if is_first:
                self.running, self.came = running, [None] * len(self.targets)
                self.missing = sum(each in running.reached for each in self.targets)
            self.came[at] = gradient
            self.missing -= 1
            if not self.all_of_them:
                if is_first:
                    self.fn(gradient)
            elif not self.missing:
                came, self.came, self.running = self.came, [], None
                self.fn(came)

        return arrived


def increment_version(tensor: Tensor | Iterable[Tensor]) -> None:
    """Count a write of the memory of one or several tensors, which somebody else wrote.

    What was saved before is then an error in the backward pass.

    >>> import tgraph as tg
    >>> x = tg.ones(2)
    >>> tg.autograd.graph.increment_version(x)
    >>> x._version
    1
    """
    given: Any = (tensor,) if isinstance(tensor, Tensor) else tensor
    several = tuple(given) if isinstance(given, Iterable) else (given,)
    if not all(isinstance(each, Tensor) for each in several):
        raise RuntimeError("increment_version expect a Iterable[Tensor] as input")
    for each in several:
        count_writes(each, 1)
