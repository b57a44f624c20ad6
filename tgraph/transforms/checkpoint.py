"""`checkpoint`: values of the forward pass that are computed again by the backward pass.

While a function is traced, a context knows how (`tracing/regions.py`). In eager code a checkpointed
function is one record, which runs the function again, with the random numbers that it drew.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

from ..autograd.custom_call import own_handle
from ..autograd.engine import run_backward
from ..autograd.transforms import ends_since
from ..core import pytree
from ..core.classes import like
from ..core.dispatch import handle_of, settled, unpack
from ..core.eager_context import EagerContext, current_context
from ..core.grad_mode import recorded
from ..core.provenance import user_site
from ..core.record import Edge, Record, Saved, next_order
from ..core.state import state
from ..core.tensor import CONSTANTS, PASSED_ON, Tensor
from ..ops.generator import default_generator
from ..runtime.records import NamedTuple

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

    CheckpointError where the second run gives, or keeps for gradients, tensors of other types than
    the first.

    >>> import tgraph as tg
    >>> layer = tg.nn.Sequential(tg.nn.Linear(2, 2), tg.nn.Tanh())
    >>> x = tg.ones(1, 2, requires_grad=True)
    >>> tg.checkpoint(layer, x).sum().backward()
    >>> again = tg.checkpoint(layer, policy=tg.checkpoint_policies.dots_saveable)
    >>> again(x).shape
    tgraph.Size([1, 2])
    """
    keeps = checkpoint_policies.nothing_saveable if policy is None else policy
    options = Options(keeps, preserve_rng_state)
    if not args and not kwargs:

        @functools.wraps(function, updated=())
        def checkpointed(*args: Any, **kwargs: Any) -> Any:
            return run(function, args, kwargs, options)

        return checkpointed
    return run(function, args, kwargs, options)


class CheckpointError(RuntimeError):
    """A function that ran again for its gradient did not do what it did before."""


class Options(NamedTuple):
    """How a function is checkpointed.

    `contexts` gives two context managers, for the first run and for the second; `is_checked` tells
    whether what the runs keep is compared.
    """

    policy: Policy = checkpoint_policies.nothing_saveable
    replays: bool = True  # random numbers
    is_checked: bool = True
    contexts: Callable[[], tuple[Any, Any]] | None = None


def run(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], options: Options
) -> Any:
    """A call of a checkpointed function."""
    first, second = (nullcontext(), None) if options.contexts is None else options.contexts()
    policy = options.policy
    if policy is checkpoint_policies.everything_saveable or not state.grad_enabled:
        with first:
            return function(*args, **kwargs)
    with current_context().region(policy) as is_traced:
        if is_traced:
            with first:
                return function(*args, **kwargs)
    return _Run(function, args, kwargs, options, second).outputs(first)


def _is_plain(each: Any) -> bool:
    """Whether it is a tensor that is no parameter, whose class operations may pass on."""
    return type(each) is Tensor or type(each) in PASSED_ON


class _Run:
    """One call of a checkpointed function in eager code."""

    def __init__(
        self, function: Callable[..., Any], args: Any, kwargs: Any, options: Options, second: Any
    ) -> None:
        self.function, self.args, self.kwargs = function, args, kwargs
        self.is_checked, self.second = options.is_checked, second
        self.saved: _Saved | None = None
        self.orders = range(0)  # of the records of the first run
        drawn = [default_generator] if options.replays else []
        self.autocast = state.autocast
        self.generators = [(each, each.initial_seed(), each.counter) for each in drawn]
        self.kept = _Kept(options.policy)
        self.spec: pytree.TreeSpec | None = None  # of what the first run gives
        self.live: list[int] = []  # which leaves of it have a history

    def outputs(self, context: Any) -> Any:
        for each in _given_to(self.function, self.args, self.kwargs):
            settled(each)  # a view that was written gets its history now, not in the first run
        first = next_order()
        with context, self.kept.used():
            result = self.function(*self.args, **self.kwargs)
        leaves, spec = pytree.flatten(result)
        self.spec, self.live = spec, [
            at for at, each in enumerate(leaves)
            if isinstance(each, Tensor) and settled(each)._requires_grad
        ]  # fmt: skip
        if not self.live:
            return result
        made = [leaves[at] for at in self.live]
        self.orders = range(first, next_order())
        ends = ends_since(first, made)
        if self.is_checked:
            self.saved = _Saved.since(first, made)
        own = [like(each, own_handle(each)) for each in made]
        given = [each for each in pytree.leaves((self.args, self.kwargs)) if _is_plain(each)]
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
        first = next_order()
        try:
            with self.second or nullcontext(), recorded(), self.kept.used():
                result = self.function(*self.args, **self.kwargs)
        finally:
            state.autocast = casting
            for generator, seed, counter in now:
                generator.restart(seed, counter)
        leaves, spec = pytree.flatten(result)
        if spec != self.spec:
            raise CheckpointError(_OTHERWISE)
        made = [leaves[at] for at in self.live]
        for edge in ends_since(first, made):
            if edge and isinstance(edge[0], Record) and edge[0].order in self.orders:
                raise CheckpointError(
                    "checkpoint: the second run read what the first one left at a tensor of the "
                    f"outside, by {edge[0].name()} at {edge[0].site}: its gradient would count "
                    "twice. Let the function give such a tensor as a result"
                )
        if self.saved is not None:
            self.saved.check(_Saved.since(first, made))
        return made


def _given_to(function: Any, args: Any, kwargs: Any) -> list[Tensor]:
    """The tensors that a function is called with, and those in variables around it."""
    held: list[Any] = [args, kwargs]
    for cell in getattr(function, "__closure__", None) or ():
        try:
            held.append(cell.cell_contents)
        except ValueError:  # nothing is assigned to it yet
            continue
    return [each for each in pytree.leaves(held) if isinstance(each, Tensor)]


class _Saved(NamedTuple):
    """What a run of a function keeps for its gradient: types of tensors, in order.

    `steps` are the names of what keeps them where plans are among it: functions are plans from
    their second call on, and such a run is compared with another one of the same steps alone.
    """

    types: list[Any]
    steps: list[str] | None

    @classmethod
    def since(cls, first: int, made: Sequence[Tensor]) -> _Saved:
        records: dict[int, Record] = {}
        waiting = [each._record for each in made]
        while waiting:
            record = waiting.pop()
            if isinstance(record, Record) and record.order > first and id(record) not in records:
                records[id(record)] = record
                waiting += [edge[0] for edge in record.edges if edge is not None]
        ordered = sorted(records.values(), key=lambda each: each.order)
        types = [
            each.tensor._type
            for record in ordered
            for each in record.saved_values()
            if each.tensor._storage is not CONSTANTS
        ]
        steps = [type(each).__name__ + each.name() for each in ordered]
        return cls(types, steps if any(each.is_plan for each in ordered) else None)

    def check(self, again: _Saved) -> None:
        """CheckpointError where the second run keeps less, or tensors of other types."""
        if self.steps != again.steps:
            return
        if len(again.types) < len(self.types):
            raise CheckpointError(
                "checkpoint: A different number of tensors was saved during the original forward "
                f"and recomputation: {len(self.types)} and {len(again.types)}. {_ADVICE}"
            )
        for at, (one, other) in enumerate(zip(self.types, again.types)):
            if one != other:
                raise CheckpointError(
                    "checkpoint: Recomputed values for the following tensors have different "
                    f"metadata than during the forward pass: tensor {at} was {one}, and is {other} "
                    f"now. {_ADVICE}"
                )


_ADVICE = (
    "What the function computes must depend on its arguments, and on nothing that changed since"
)
_OTHERWISE = (
    f"checkpoint: the function gave something else when it ran again for its gradient. {_ADVICE}"
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
            raise CheckpointError(_OTHERWISE)
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
            raise CheckpointError(_OTHERWISE)
        self.at += 1
        return self.values[self.at - 1]
