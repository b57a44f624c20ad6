"""The record of a call of a compiled function: what it saved, and how its backward pass runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..autograd.api import retain_grad
from ..compiler.ir import Graph, Node, TensorType
from ..compiler.ir import primitives as p
from ..core.dispatch import apply, edge_of, unpack, without_history, zeros_of
from ..core.eager_context import array_type
from ..core.layouts import sparse_coo
from ..core.provenance import user_site
from ..core.record import Edge, Record, Saved, take_keeping
from ..core.saved_tensors import Hooks, pack_saved, packs
from ..core.sparse_tensor import make_sparse
from ..core.state import state
from ..core.tensor import Tensor, intern_type, wrap
from ..runtime.arrays import contiguous, with_strides
from ..runtime.device import CPU
from ..runtime.records import NamedTuple

if TYPE_CHECKING:
    from .graph_function import GraphFunction

Array = np.ndarray[Any, Any]


class Asked(NamedTuple):
    """Of a backward pass: the inputs whose gradients are wanted, the results that have one.

    By their numbers among differentiable inputs, and results. Where a result has none, nothing is
    computed of it: a cotangent of zeros would be NaN behind an infinite slope.
    """

    wanted: tuple[bool, ...]
    given: tuple[bool, ...]


class Place(NamedTuple):
    """Which outputs of a backward plan are a gradient: one, or the parts of a sparse tensor.

    `coalesced` tells of that whether its positions are known to be in order, each once.
    """

    outputs: tuple[int, ...]
    coalesced: bool = False

    def gradient(
        self, results: Sequence[Any], types: Sequence[TensorType], of: TensorType
    ) -> Tensor:
        """The gradient of an input of type `of`: some `results` of a plan, which have `types`."""
        parts = [wrap(results[at], type_) for at, type_ in zip(self.outputs, types, strict=True)]
        if len(parts) == 1:
            return parts[0]
        *positions, elements = parts
        return make_sparse(sparse_coo, tuple(positions), elements, of.shape, self.coalesced)


class CompiledRecord(Record):
    """A call of a compiled function, as its backward pass sees it."""

    __slots__ = ("function", "primals", "saved")

    is_plan = True

    def __init__(
        self,
        function: GraphFunction,
        inputs: Sequence[Any],
        arrays: Sequence[Array],
        values: Sequence[Array],
    ) -> None:
        edges = tuple([_edge(inputs[at]) if at >= 0 else None for at in function.asked])
        Record.__init__(self, edges, function.differentiable_types, user_site(2))
        self.function = function
        saved = function.forward.saved
        # Where the backward plan reads nothing of the call, neither do gradients of any order.
        primals = [
            array if not isinstance(given, Tensor) else Saved(given) if saved else given._type
            for given, array in zip(inputs, arrays)
        ]
        self.primals: list[Any] | None = primals
        self.saved: list[Any] | None = [
            primals[number] if kind == "primal" else values[number] for kind, number in saved
        ]

    def name(self) -> str:
        return "CompiledFunctionBackward"

    def end_at(self, leaves: Sequence[Tensor]) -> None:
        """The leaves that the call made, where gradients end as well."""
        numbers = zip(self.function.asked, self.edges, strict=True)
        self.edges = tuple(_edge(leaves[at]) if at < 0 else edge for at, edge in numbers)

    def attach(self, results: Mapping[int, Tensor]) -> None:
        """Give the results of the call, by number, their history."""
        for index, number in enumerate(self.function.differentiable):
            result = results.get(number)
            if result is not None:
                before = edge_of(result)
                result._record, result._index, result._requires_grad = self, index, True
                take_keeping(result, before)
                if number in self.function.retaining:
                    retain_grad(result)
        if self.saved is None:
            return
        # A result that was saved must not be written in place before the backward pass.
        outputs = self.function.outputs
        for at, (kind, index) in enumerate(self.function.forward.saved):
            if kind == "output" and index < len(outputs.nodes):
                shown = results.get(outputs.number_of(index))
                if shown is not None:
                    self.saved[at] = Saved(without_history(shown))
        if state.saved_hooks is not None and (hooks := packs()) is not None:
            self._pack(hooks)

    def _pack(self, hooks: Hooks) -> None:
        """Hand all that is kept through the hooks of users."""
        assert self.saved is not None
        for at, each in enumerate(self.saved):
            if not isinstance(each, Saved):
                on_host = isinstance(each, np.ndarray)
                device = CPU if on_host else self.outputs[0].device
                self.saved[at] = Saved(wrap(each, array_type(each, device)))
        for saved in self.saved_values():
            pack_saved(saved, hooks)

    def saved_values(self) -> list[Saved]:
        kept = [*(self.primals or ()), *(self.saved or ())]
        return list({id(each): each for each in kept if isinstance(each, Saved)}.values())

    def is_unchanged(self, number: int) -> None:
        """The call counted a write of an input, which has the value that it had."""
        saved = None if self.primals is None else self.primals[number]
        if isinstance(saved, Saved):
            saved.version = saved.tensor._version

    def cotangents(
        self, incoming: list[Tensor | None], wanted: Sequence[bool]
    ) -> list[Tensor | None]:
        if None in incoming:
            wanted = self._reached(incoming, wanted)
        if not any(wanted):
            return [None] * len(wanted)
        asked = Asked(tuple(wanted), tuple(each is not None for each in incoming))
        given = [each for each in incoming if each is not None]
        if state.context is not None and state.context.lifts:
            return self._replayed(given, asked)
        if state.grad_enabled:
            return self._again(given, asked)
        assert self.saved is not None
        plan, places = self.function.backward_plan(asked)
        arrays = [self._array(at) for at in range(len(self.saved))]
        arrays += [dense(each) for each in given]
        results = plan.run(arrays)
        forward = self.function.forward
        found: list[Tensor | None] = []
        for own, known, edge in zip(places, forward.gradients, self.edges):
            if own is None or known is None or edge is None:
                found.append(None)
                continue
            target, index = edge
            types = [forward.types[at] for at in known.outputs]
            of = target._type if isinstance(target, Tensor) else target.outputs[index]
            found.append(own.gradient(results, types, of))
        return found

    def _array(self, at: int) -> Array:
        """What was saved, laid out in memory as it was for the forward plan."""
        assert self.saved is not None
        saved = self.saved[at]
        array: Array = unpack(saved, self)._value if isinstance(saved, Saved) else saved
        kind, number = self.function.forward.saved[at]
        if kind == "primal" and number in self.function.strides:
            return with_strides(array, self.function.strides[number])  # hooks may have copied it
        if kind == "output":
            return self.function.outputs.in_order(number, contiguous, array)
        return contiguous(array)  # the forward read a dense copy, too

    def _reached(self, incoming: list[Tensor | None], wanted: Sequence[bool]) -> list[bool]:
        """The wanted inputs on which outputs with a cotangent depend."""
        reaches = self.function.reaches
        bits = 0
        for number, cotangent in zip(self.function.differentiable, incoming):
            bits |= 0 if cotangent is None else reaches[number]
        return [bool(is_wanted and bits >> at & 1) for at, is_wanted in enumerate(wanted)]

    def _again(self, given: list[Tensor], asked: Asked) -> list[Tensor | None]:
        """The backward pass as a differentiable function of inputs and cotangents."""
        assert self.primals is not None and self.saved is not None
        higher, has_gradient = self.function.higher(asked.given)
        primals = [
            unpack(each, self) if is_read and isinstance(each, Saved) else _held(each)
            for each, is_read in zip(self.primals, higher.read_inputs)
        ]
        kept = [contiguous(self._array(at)) for at in self.function.kept]
        ends = zip(self.function.asked, self.edges, strict=True)
        leaves = [edge[0] for at, edge in ends if at < 0 and edge is not None]
        results = iter(higher([*primals, *given, *kept], leaves))
        found = [next(results) if each else None for each in has_gradient]
        return [each if is_wanted else None for each, is_wanted in zip(found, asked.wanted)]

    def _replayed(self, given: list[Tensor], asked: Asked) -> list[Tensor | None]:
        """The backward pass operation by operation, of tensors that no plan takes."""
        assert self.primals is not None
        if self.function.fed.open is not None:
            raise NotImplementedError(
                f"the gradient of '{self.function.name}', compiled for sizes that vary, does not "
                f"run in {state.context.name}; compile it without `dynamic`"
            )
        graph, has_gradient = self.function.gradients_from(asked.given)
        primals = [
            unpack(each, self) if type(each) is Saved else _held(each) for each in self.primals
        ]
        results = iter(replayed(graph, [*primals, *given]))
        found = [next(results) if each else None for each in has_gradient]
        return [each if is_wanted else None for each, is_wanted in zip(found, asked.wanted)]

    def free(self) -> None:
        if self.saved:
            self.freed = True
            self.primals = self.saved = None


def replayed(graph: Graph, inputs: Sequence[Any]) -> list[Tensor]:
    """What `graph` gives for tensors (or arrays), applied in the current context."""
    values: dict[Node, Any] = {
        node: each if isinstance(each, Tensor) else wrap(each, intern_type(*node.type))
        for node, each in zip(graph.inputs, inputs, strict=True)
    }
    for node in graph.nodes:
        if node in values:
            continue
        operands = [values[each] for each in node.inputs]
        if node.primitive is p.get:
            values[node] = operands[0][node.attrs["index"]]
        else:
            values[node] = apply(node.primitive, *operands, **node.attrs)
    return [values[each] for each in graph.outputs]


def _held(primal: Any) -> Any:
    """What stands for an operand of which no value is read."""
    if isinstance(primal, TensorType):
        return zeros_of(primal)
    return primal.tensor if isinstance(primal, Saved) else primal


def _edge(given: Any) -> Edge:
    return edge_of(given) if isinstance(given, Tensor) else None


def array_of(given: Any) -> Array:
    """The array of a tensor, or the array that is given."""
    return given._value if isinstance(given, Tensor) else given  # type: ignore[no-any-return]


def dense(given: Any) -> Array:
    """The array of a tensor or an array, copied where it is not contiguous."""
    return contiguous(array_of(given))
