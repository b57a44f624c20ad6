"""`checkpoint`: values of the forward pass that are computed again by the backward pass.

While a function is traced, a context knows how (`tracing/regions.py`). In eager code a checkpointed
function is one record, which runs the function again, with the random numbers that it drew.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ..autograd.custom_call import own_handle
from ..autograd.engine import run_backward
from ..autograd.transforms import ends_since
from ..core import pytree
from ..core.dispatch import handle_of, settled, unpack
from ..core.eager_context import EagerContext, current_context
from ..core.grad_mode import enable_grad
from ..core.provenance import user_site
from ..core.record import Edge, Record, Saved, next_order
from ..core.state import state
from ..core.tensor import Tensor
from ..ops.random import default_generator

Policy = Callable[[str, "str | None"], bool]
"""Whether a value is kept, by the name of its primitive and the name given by `checkpoint_name`."""

PRODUCTS = frozenset({"matmul", "convolution", "attention"})


class checkpoint_policies:
    """Which values of a checkpointed function are kept for the backward pass.

    A policy is a function of the name of a primitive, such as "matmul" or "exp", and the name that
    `checkpoint_name` gave the value, or None.
    """

    @staticmethod
    def nothing_saveable(primitive: str, name: str | None) -> bool:
        """All is computed again."""
        return False

    @staticmethod
    def everything_saveable(primitive: str, name: str | None) -> bool:
        """All that is needed is kept, as without a checkpoint."""
        return True

    @staticmethod
    def dots_saveable(primitive: str, name: str | None) -> bool:
        """Results of matrix products and convolutions are kept."""
        return primitive in PRODUCTS

    checkpoint_dots = dots_saveable

    @staticmethod
    def save_only_these_names(*names: str) -> Policy:
        """Values with one of these names are kept."""
        return lambda primitive, name: name in names

    @staticmethod
    def save_any_names_but_these(*names: str) -> Policy:
        """Values with a name that is none of these are kept."""
        return lambda primitive, name: name is not None and name not in names

    @staticmethod
    def save_from_both_policies(first: Policy, second: Policy) -> Policy:
        """What either policy keeps is kept."""
        return lambda primitive, name: first(primitive, name) or second(primitive, name)


def checkpoint_name(x: Tensor, name: str) -> Tensor:
    """`x`, known by `name` to the policies of checkpoints around it."""
    current_context().named(x, name)
    return x


def checkpoint(
    function: Callable[..., Any], *args: Any, policy: Policy | None = None,
    use_reentrant: bool | None = None, preserve_rng_state: bool = True, **kwargs: Any,
) -> Any:  # fmt: skip
    """`function(*args, **kwargs)`, whose values are computed again for its gradient, not kept.

    Without arguments it gives such a function, as `jax.checkpoint` does. What the function reads
    besides (parameters of modules, other tensors) gets gradients, too. Random numbers are the same
    in the second run, unless `preserve_rng_state` is False. `policy`, one of
    `checkpoint_policies`, says what is kept nevertheless; names are known in compiled code alone,
    as are the policies inside of `vmap` and `jvp`. `use_reentrant` is taken for PyTorch's sake.

    In eager code the function runs twice, and must do the same both times; what it writes, such as
    running statistics, is written twice. In a compiled function its operations are repeated, and
    peak memory of the plan falls. Branches and loops inside of a compiled checkpoint are kept as
    they are.

    RuntimeError where the second run gives tensors of other types than the first.

    >>> import tgraph as tg
    >>> layer = tg.nn.Sequential(tg.nn.Linear(2, 2), tg.nn.Tanh())
    >>> x = tg.ones(1, 2, requires_grad=True)
    >>> tg.checkpoint(layer, x).sum().backward()
    >>> again = tg.checkpoint(layer, policy=tg.checkpoint_policies.dots_saveable)
    >>> again(x).shape
    tgraph.Size([1, 2])
    """
    keeps = checkpoint_policies.nothing_saveable if policy is None else policy
    if not args and not kwargs:

        @functools.wraps(function, updated=())
        def checkpointed(*args: Any, **kwargs: Any) -> Any:
            return _run(function, args, kwargs, keeps, preserve_rng_state)

        return checkpointed
    return _run(function, args, kwargs, keeps, preserve_rng_state)


def _run(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], policy: Policy,
    replays: bool,
) -> Any:  # fmt: skip
    if policy is checkpoint_policies.everything_saveable or not state.grad_enabled:
        return function(*args, **kwargs)
    with current_context().region(policy) as is_traced:
        if is_traced:
            return function(*args, **kwargs)
    return _Run(function, args, kwargs, policy, replays).outputs()


class _Run:
    """One call of a checkpointed function in eager code."""

    def __init__(
        self, function: Callable[..., Any], args: Any, kwargs: Any, policy: Policy, replays: bool
    ) -> None:
        self.function, self.args, self.kwargs = function, args, kwargs
        drawn = [default_generator] if replays else []
        self.autocast = state.autocast
        self.generators = [(each, each.initial_seed(), each.counter) for each in drawn]
        self.kept = _Kept(policy)
        self.spec: pytree.TreeSpec | None = None  # of what the first run gives
        self.live: list[int] = []  # which leaves of it have a history

    def outputs(self) -> Any:
        first = next_order()
        with self.kept.used():
            result = self.function(*self.args, **self.kwargs)
        leaves, spec = pytree.flatten(result)
        self.spec, self.live = spec, [
            at for at, each in enumerate(leaves)
            if isinstance(each, Tensor) and settled(each)._requires_grad
        ]  # fmt: skip
        if not self.live:
            return result
        made = [leaves[at] for at in self.live]
        ends = ends_since(first, made)
        own = [own_handle(each) for each in made]
        given = [each for each in pytree.leaves((self.args, self.kwargs)) if type(each) is Tensor]
        record = CheckpointRecord(self, ends, own, given)
        for index, (at, each) in enumerate(zip(self.live, own, strict=True)):
            each._record, each._index, each._requires_grad = record, index, True
            leaves[at] = each
        return spec.unflatten(leaves)

    def again(self) -> list[Tensor]:
        """The outputs that have a history, from a second run."""
        now = [(each, each.initial_seed(), each.counter) for each, _, _ in self.generators]
        for generator, seed, counter in self.generators:
            generator.restart(seed, counter)
        casting, state.autocast = state.autocast, self.autocast
        try:
            with enable_grad(), self.kept.used():
                result = self.function(*self.args, **self.kwargs)
        finally:
            state.autocast = casting
            for generator, seed, counter in now:
                generator.restart(seed, counter)
        leaves, spec = pytree.flatten(result)
        if spec != self.spec:
            raise RuntimeError(_OTHERWISE)
        return [leaves[at] for at in self.live]


_OTHERWISE = (
    "checkpoint: the function gave something else when it ran again for its gradient; what it "
    "computes must depend on its arguments, and on nothing that changed since"
)


class CheckpointRecord(Record):
    """A call that runs once more for its gradient."""

    __slots__ = ("given", "run")

    makes_fresh = False

    def __init__(
        self, run: _Run, ends: Sequence[Edge], outputs: Sequence[Tensor], given: Sequence[Tensor]
    ) -> None:
        super().__init__(tuple(ends), tuple(each._type for each in outputs), user_site())
        self.run: _Run | None = run
        self.given = list(map(Saved, given))

    def name(self) -> str:
        return "CheckpointBackward"

    def cotangents(
        self, incoming: list[Tensor | None], wanted: Sequence[bool]
    ) -> Sequence[Tensor | None]:
        assert self.run is not None
        for each in self.given:
            unpack(each, self)
        made = self.run.again()
        if [each._type for each in made] != list(self.outputs):
            raise RuntimeError(_OTHERWISE)
        pairs = [
            (output, cotangent)
            for output, cotangent in zip(made, incoming, strict=True)
            if cotangent is not None and settled(output)._requires_grad
        ]
        asked = [
            handle_of(edge) for edge, is_wanted in zip(self.edges, wanted, strict=True) if is_wanted
        ]
        if not pairs:
            return [None] * len(wanted)
        heads, given = zip(*pairs, strict=True)
        found = iter(
            run_backward(heads, given, state.grad_enabled, state.grad_enabled, asked, False, True)
        )
        return [next(found) if is_wanted else None for is_wanted in wanted]

    def saved_values(self) -> list[Saved]:
        return self.given

    def free(self) -> None:
        self.freed, self.run, self.given = True, None, []


class _Kept(EagerContext):
    """Eager mode that keeps what a policy says, and gives it instead of computing it again."""

    def __init__(self, policy: Policy) -> None:
        super().__init__()
        self.policy = policy
        self.values: list[Any] = []
        self.at: int | None = None  # the next one that is given; None in the first run

    @contextmanager
    def used(self) -> Iterator[None]:
        if state.context is not None or self.policy is checkpoint_policies.nothing_saveable:
            yield
            return
        state.context = self
        try:
            yield
        finally:
            state.context = None
            self.at = 0

    def evaluate(self, primitive: Any, tensors: Any, attrs: Any, type_: Any) -> Any:
        if not self.policy(primitive.name, None):
            return super().evaluate(primitive, tensors, attrs, type_)
        if self.at is None:
            value = super().evaluate(primitive, tensors, attrs, type_)
            self.values.append(value)
            return value
        if self.at == len(self.values):
            raise RuntimeError(_OTHERWISE)
        self.at += 1
        return self.values[self.at - 1]
