"""What the forward pass remembers for the backward pass.

A record is what PyTorch calls `grad_fn`: which operation made a tensor, from what, and the values
its gradient rule (`vjp_rules.py`) asked for.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Self

from ..compiler.ir import TensorType
from .state import state
from .tensor import InferenceStorage, Tensor

# Where a cotangent goes: output number `index` of a Record, or a leaf tensor.
Edge = tuple[Any, int] | None

_order = itertools.count()


def next_order() -> int:
    """A number between those of the records made before and those made later."""
    return next(_order)


FREED = (
    "Trying to backward through the graph a second time (or directly access saved tensors after "
    "they have already been freed). Saved intermediate values of the graph are freed when you "
    "call .backward() or autograd.grad(). Specify retain_graph=True if you need to backward "
    "through the graph a second time or if you need to access saved tensors after calling "
    "backward. The operation is {name}, recorded at {site}."
)

BEFORE, AFTER = "before", "after"
"""Beside numbers of outputs in `hooks`: those of the record itself, with all of its cotangents."""


class RemovableHandle:
    """What is returned for a hook; `remove()` takes the hook away again."""

    _numbers = itertools.count(1)

    def __init__(self, hooks_dict: dict[int, Any], *, extra_dict: Any = None) -> None:
        """`extra_dict`, one or a list of them, has entries for the hook that go with it."""
        given = () if extra_dict is None else extra_dict
        extra = [given] if isinstance(given, Mapping) else given
        self._tables: list[Any] = [hooks_dict, *extra]
        self.id = next(RemovableHandle._numbers)

    def remove(self) -> None:
        for table in self._tables:
            table.pop(self.id, None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: Any) -> None:
        self.remove()


class Node:
    """What users see of the graph of gradients: a step on the way back, or its end at a leaf.

    >>> import tgraph as tg
    >>> x = tg.ones(2, requires_grad=True)
    >>> node = (x * 2).grad_fn
    >>> isinstance(node, tg.autograd.graph.Node), node.name(), type(node).__name__
    (True, 'MulBackward0', 'MulBackward0')
    """

    __slots__ = ("__weakref__", "_metadata")

    _metadata: dict[Any, Any]

    def name(self) -> str:
        """Such as "MulBackward0"."""
        raise NotImplementedError

    @property
    def next_functions(self) -> tuple[tuple[Any, int], ...]:
        """The nodes to which this one leads, each with the number of its output."""
        return ()

    @property
    def metadata(self) -> dict[Any, Any]:
        """A dictionary for whatever users want to keep with the node."""
        try:
            return self._metadata
        except AttributeError:
            self._metadata = {}
            return self._metadata

    def register_hook(self, fn: Callable[..., Any]) -> RemovableHandle:
        """Call `fn(grad_inputs, grad_outputs)` after this node ran, with tuples of tensors.

        What it returns, a tuple or None, takes the place of `grad_inputs`.
        """
        return self._hooked(fn, AFTER)

    def register_prehook(self, fn: Callable[..., Any]) -> RemovableHandle:
        """Call `fn(grad_outputs)` before this node runs; a tuple returned takes their place."""
        return self._hooked(fn, BEFORE)

    def _hooked(self, fn: Callable[..., Any], when: str) -> RemovableHandle:
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"<{type_name(self.name())} object at {id(self):#x}>"


def type_name(name: str) -> str:
    """The name of the type of a node, which is without namespaces of C++."""
    return name.rpartition("::")[2]


_shown: dict[tuple[type, str], type] = {}


def shown(record: Any) -> Any:
    """A record as users see it: its type has the name of its operation.

    Types are made when somebody looks, as few ever do.
    """
    kind, name = type(record), type_name(record.name())
    if kind.__name__ != name:
        own = kind.__mro__[1] if kind in _made else kind
        if (own, name) not in _shown:
            made = type(name, (own,), {"__slots__": (), "__module__": own.__module__})
            _shown[own, name] = made
            _made.add(made)
        record.__class__ = _shown[own, name]
    return record


_made: set[type] = set()


class Record(Node):
    """An operation that happened. `edges` lead to where the cotangents of its inputs go.

    Records are numbered as they are made and are only ever made after those they lead to, so that
    descending `order` is a topological order.
    """

    __slots__ = ("edges", "freed", "hooks", "order", "outputs", "region", "site")

    # Whether `cotangents` makes new tensors, to which nobody else holds on.
    makes_fresh = True
    # Whether its rule knows saved tensors by their identity.
    keeps_handles = False
    # Whether it is one compiled step, in the place of several.
    is_plan = False

    def __init__(self, edges: tuple[Edge, ...], outputs: tuple[TensorType, ...], site: Any) -> None:
        self.edges = edges
        self.outputs = outputs
        self.site = site
        self.order = next(_order)
        self.hooks: dict[Any, dict[int, Any]] | None = None  # output -> {handle id: hook}
        self.freed = False
        self.region = state.region  # which computes again what is saved, where there is one

    def cotangents(
        self, incoming: list[Tensor | None], wanted: Sequence[bool]
    ) -> Sequence[Tensor | None]:
        """One cotangent (or None) per edge, where it is wanted.

        Its shape may be any to which the input was broadcast.
        """
        raise NotImplementedError

    def saved_values(self) -> Sequence[Saved]:
        """The tensors kept for the backward pass."""
        return ()

    def free(self) -> None:
        """Drop the saved values, if there are any, after which the record cannot run again."""

    @property
    def next_functions(self) -> tuple[tuple[Any, int], ...]:
        return tuple(
            (None, 0) if edge is None else (as_node(edge[0]), edge[1]) for edge in self.edges
        )

    @property
    def requires_grad(self) -> bool:
        return True

    def _sequence_nr(self) -> int:
        """Nodes that were made later have higher numbers."""
        return self.order

    def _hooked(self, fn: Callable[..., Any], when: str) -> RemovableHandle:
        if self.hooks is None:
            self.hooks = {}
        table = self.hooks.setdefault(when, {})
        handle = RemovableHandle(table)
        table[handle.id] = fn
        return handle


class AccumulateGrad(Node):
    """The node of a leaf, where gradients are added to `.grad`."""

    __slots__ = ("variable",)

    _known: ClassVar[weakref.WeakValueDictionary[int, AccumulateGrad]] = (
        weakref.WeakValueDictionary()
    )

    def __init__(self, variable: Tensor) -> None:
        self.variable = variable

    @classmethod
    def of(cls, leaf: Tensor) -> AccumulateGrad:
        """The one node of a leaf, as long as somebody holds it."""
        found = cls._known.get(id(leaf))  # which holds the leaf, so that the number is its own
        if found is None:
            found = cls._known[id(leaf)] = cls(leaf)
        return found

    def name(self) -> str:
        return "torch::autograd::AccumulateGrad"

    @property
    def requires_grad(self) -> bool:
        return True

    def _hooked(self, fn: Callable[..., Any], when: str) -> RemovableHandle:
        leaf = self.variable
        if leaf._hooks is None:
            leaf._hooks = {}
        handle = RemovableHandle(leaf._hooks)
        leaf._hooks[handle.id] = AroundAccumulation(fn, when)
        return handle


class AroundAccumulation:
    """A hook of a leaf's node, among the hooks of the leaf."""

    __slots__ = ("hook", "when")

    def __init__(self, hook: Any, when: str) -> None:
        self.hook, self.when = hook, when


class Keeping:
    """The hook that `retain_grad` leaves with the history of a tensor."""

    __slots__ = ("_keep", "_tensor")

    def __init__(self, tensor: Tensor, keep: Callable[[Tensor, Tensor], None]) -> None:
        self._tensor, self._keep = weakref.ref(tensor), keep

    def __call__(self, cotangent: Tensor) -> None:
        tensor = self._tensor()
        if tensor is not None:
            self._keep(tensor, cotangent)

    def is_of(self, tensor: Tensor) -> bool:
        return self._tensor() is tensor


def take_keeping(tensor: Tensor, before: Edge) -> None:
    """Let `retain_grad()` keep what arrives at the history of a tensor, no longer at `before`."""
    if tensor._hooks is None or before is None or isinstance(before[0], Tensor):
        return
    table = (before[0].hooks or {}).get(before[1], {})
    own = [key for key, each in table.items() if type(each) is Keeping and each.is_of(tensor)]
    if own and tensor._record is not None:
        record = tensor._record
        if record.hooks is None:
            record.hooks = {}
        tensor._hooks = record.hooks.setdefault(tensor._index, {})
        tensor._hooks.update((key, table.pop(key)) for key in own)


def as_node(target: Record | Tensor) -> Any:
    """The node at the end of an edge."""
    return AccumulateGrad.of(target) if isinstance(target, Tensor) else shown(target)


class Saved:
    """A tensor kept for the backward pass, with the version its memory had.

    An output is kept without its record, which would refer to itself; `unpack` puts it back.
    """

    __slots__ = ("tensor", "version")

    def __init__(self, tensor: Tensor) -> None:
        self.tensor: Any = tensor  # or a saved_tensors.Packed in its place
        storage = tensor._storage
        self.version = 0 if storage is None else storage.version
        if type(storage) is InferenceStorage and not state.inference:
            raise RuntimeError(
                "Inference tensors cannot be saved for backward. Please do not use Tensors created "
                "in inference mode in computation tracked by autograd. To work around this, you "
                "can make a clone to get a normal tensor and use it in autograd, or use no_grad() "
                "instead of inference_mode()."
            )
