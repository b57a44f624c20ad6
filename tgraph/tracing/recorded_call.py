"""What a recorded call means: its results, and what it changes besides computing them."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import field
from typing import Any

import numpy as np

from ..compiler.ir import Graph, Node
from ..core import pytree
from ..core.overlap import Origin
from ..core.tensor import Tensor, ViewStep, blank
from ..core.trace_state import HandleState, Source, TraceInput
from ..runtime.records import record
from .trace_context import Trace
from .traced_gradients import TracedGradients


@record(eq=False)
class Ref:
    """What stands at one leaf of a result, or in a gradient, after a call.

    `kind` is one of: "output" (number `key` of the graph's outputs, a new tensor), "outside" (the
    tensor found at the Source `key`), "view" (`steps` applied to the Ref `key`), "number" (the
    Python number that the expression `key` gives), "shape" (the Size `key`, with open sizes in it),
    "static" (the object `key` itself), "made" (a copy of `key.value`, which the function made),
    "container" (made of the structure and Refs that are the `key`, and found in several places),
    "given" (the container among the arguments that the text `key` reaches). `leaf` says that a new
    tensor requires grad without a history; `history` is the output whose history a view gets.
    `apart` says that a view counts writes for itself, as `.data` does. A tensor of a class of its
    own is made by `like`, which a view has of what it is a view of, too. `version` is how often the
    function wrote a new tensor in place.
    """

    kind: str
    key: Any
    steps: tuple[ViewStep, ...] = ()
    differentiable: bool = True
    leaf: bool = False
    history: int | None = None
    apart: bool = False
    like: TensorOfClass | None = None
    version: int = 0


@record(eq=False)
class TensorOfClass:
    """A tensor of a subclass, such as a Parameter."""

    kind: type

    def of(self, tensor: Tensor) -> Tensor:
        """`tensor`, which nobody else has, as one of the class."""
        made: Tensor = blank(self.kind)
        for name in _TENSOR_SLOTS:
            setattr(made, name, getattr(tensor, name))
        return made


_TENSOR_SLOTS = [name for name in Tensor.__slots__ if name[:2] != "__"]


@record(eq=False)
class Write:
    """Memory that the call overwrites: input number `input` becomes output number `output`."""

    input: int
    output: int | None  # None: only counted as written
    times: int  # as which it counts; not at all where it was written through .data
    written: Any


@record(eq=False)
class Made:
    """An object that the traced function made; copies share the objects of the outside with it."""

    value: Any
    outside: list[Any]

    def copy(self) -> Any:
        if isinstance(self.value, np.ndarray):
            return self.value.copy()
        return deepcopy(self.value, {id(each): each for each in self.outside})


@record(eq=False)
class Change:
    """Something that the call writes into a Python object: a PlaceWrite whose value is refs.

    `holder` is the object, or the text that reaches a container among the arguments; a Ref stands
    for the attributes of a tensor. Without a `tree` nothing is left at the place.
    """

    kind: str
    holder: Any
    key: Any
    tree: pytree.TreeSpec | None
    refs: list[Ref]
    is_given: bool = False


@record(eq=False, frozen=False)
class Effects:
    """What a call changes besides computing its result."""

    writes: list[Write] = field(default_factory=list)
    # (owner, which is a Ref if the call makes it, what its .grad becomes; None for no gradient)
    grads: list[tuple[Source | Ref, Ref | None]] = field(default_factory=list)
    # (owner, requires_grad) of leaves
    flags: list[tuple[Source, bool]] = field(default_factory=list)
    # (owner, output) whose history becomes that of the output
    histories: list[tuple[Source, int]] = field(default_factory=list)
    # owners that have no history any more
    detached: list[Source] = field(default_factory=list)
    # (view that counts for itself, how often it was written, where)
    counts: list[tuple[Source, int, Any]] = field(default_factory=list)
    # (owner, what its .data becomes), and views of the memory that owners had before
    replaced: list[tuple[Source, Ref]] = field(default_factory=list)
    parted: list[Ref] = field(default_factory=list)
    # (generator, calls drawn, seed where the call sets one, output with the counter where draws in
    # branches and loops let only that tell)
    generators: list[tuple[Any, int, int | None, int | None]] = field(default_factory=list)
    # Python objects written into
    changes: list[Change] = field(default_factory=list)
    # Whether gradients were computed while the function ran
    differentiates: bool = False


@record(eq=False, frozen=False)
class Call:
    """One recorded call of a function."""

    trace: Trace
    graph: Graph
    inputs: list[TraceInput]
    result: pytree.TreeSpec
    refs: list[Ref]
    effects: Effects
    # What was read of gradients: (owner, whether there was none).
    grads_read: list[tuple[Source, bool]]
    final: list[HandleState]
    # Input number -> what gradients with respect to it are asked of. Below 0 stand `leaves`.
    asked: dict[int, Tensor]
    # What requires grad without a history, and was made by the call itself.
    leaves: list[Ref]
    # Outputs that can be differentiated: number -> the handle in the trace.
    differentiable: dict[int, Tensor]
    traced_gradients: TracedGradients | None
    # Outputs that require grad, yet cannot be differentiated, and why.
    freed: dict[int, str]
    # Positions of leaves behind the arguments that the function did not read.
    unread: list[int]
    # Position of a tensor among the leaves -> attributes of the user's that were read of it.
    attributes: dict[int, dict[str, Any]]
    # Position of a tensor among the leaves -> where it lay in its storage, as the call asked.
    origins: dict[int, Origin]
    # What reaches the containers among the arguments that can be written into, and attributes of
    # tensors; and those of the outside that the function met: a call gives none of these, and none
    # twice.
    containers: list[str]
    met: list[Any]
    # (position of a tensor, another position or a tensor of the outside) -> whether they were one.
    compared: dict[tuple[int, int | Tensor], bool]
    # Nodes of the trace that are inputs, as an earlier stage of the call computes them.
    cut: tuple[Node, ...] = ()

    @property
    def donate(self) -> dict[int, int]:
        """Output number -> the input whose memory it is written into."""
        writes = self.effects.writes
        return {write.output: write.input for write in writes if write.output is not None}

    @property
    def given_back(self) -> set[int]:
        """The outputs that are results of the call, or what results are views of."""
        found, waiting = set(), list(self.refs)
        while waiting:
            ref = waiting.pop()
            if ref.kind == "output":
                found.add(ref.key)
            elif ref.kind == "view":
                waiting.append(ref.key)
            elif ref.kind == "container":
                waiting += ref.key[1]
        return found

    @property
    def by_identity(self) -> bool:
        """Whether more counts of a tensor than what is in its memory: which one it is."""
        effects = self.effects
        found = self.grads_read or effects.grads or effects.flags or effects.replaced
        return effects.differentiates or bool(found)


def follows_its_base(tensor: Tensor) -> bool:
    """Whether the history of a tensor is that of another, which it is a view of."""
    view = tensor._view
    return view is not None and view.differentiable and view.base._requires_grad
