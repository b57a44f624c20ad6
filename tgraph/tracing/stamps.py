"""Updates of tensors that are alike are traced once, and stamped out for the others.

An optimizer does the same to each of its parameters: a function that is marked as `fused_update`,
called with other tensors and the same numbers. The first call is traced as it is written. Later
ones repeat its nodes over their own tensors, which takes a fifth of the time of Python's way
through operations, promotion and writes. The graph is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..compiler.ir import Family, Node
from ..compiler.ir.layouts import node_strides
from ..compiler.ir.shapes import contiguous_strides
from ..core.inplace import check_memory, count_writes
from ..core.state import state
from ..core.tensor import Tensor, storage_of, strides_of
from ..core.traced_number import TracedNumber
from ..runtime.records import record

if TYPE_CHECKING:
    from .trace_context import Trace

_PLAIN = frozenset({bool, int, float, str, type(None)})


@record(eq=False)
class Stamp:
    """What a call did to its tensors, which are numbered, and so is what was made of them.

    `steps` are nodes, with the numbers of their operands, or an operand itself that is the same for
    all calls. `captured` are the tensors in the order in which the trace met them, `written` those
    that were written, with what they hold now and how often they were written. `shape` is that of
    all tensors and steps where others may be of another.
    """

    steps: tuple[tuple[Node, tuple[int | Node, ...]], ...]
    captured: tuple[int, ...]
    written: tuple[tuple[int, int | Node, int], ...]
    shape: tuple[int, ...] | None


class Stamps:
    """The stamps of one trace."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._stamps: dict[Any, Stamp | None] = {}
        self._for_one_shape: set[Any] = set()  # keys of what is not the same for all shapes
        self._kept: list[Any] = []  # what keys tell apart by its id

    def call(self, function: Callable[..., None], leaves: Sequence[Any]) -> None:
        """`function(*leaves)`, which writes some of the tensors among them."""
        tensors = [each for each in leaves if isinstance(each, Tensor)]
        shape = _common_shape(tensors)
        if state.grad_enabled or not all(map(_is_known, leaves)):
            function(*leaves)
            return
        key = self._key(function, leaves, shape)
        if key in self._for_one_shape:
            shape, key = None, self._key(function, leaves, None)
        found = self._stamps.get(key)
        if found is not None:
            self._press(found, tensors, shape)
        elif key in self._stamps:
            function(*leaves)
        else:
            of_shape = self._key(function, leaves, None)
            self._kept += leaves
            made = self._traced(function, leaves, tensors, shape)
            if made is not None and made.shape != shape:
                self._for_one_shape.add(key)
                key = of_shape
            self._stamps[key] = made

    def _key(
        self, function: Callable[..., None], leaves: Sequence[Any], shape: tuple[int, ...] | None
    ) -> Any:
        """Equal for calls that do the same; those of other shapes, too, but where `shape` is None.

        Otherwise it is that of all tensors but numbers.
        """
        key: list[Any] = [function, shape is None]
        first: dict[Any, int] = {}
        for each in leaves:
            kind = type(each)
            if issubclass(kind, TracedNumber):
                key.append(id(each))
            elif kind in _PLAIN:
                key.append((kind, repr(each)))
            else:
                node, type_ = self._known(each), each._type
                key.append(first.setdefault(id(each), len(first)))
                if not type_.shape:  # a number, which all calls may read
                    key.append(id(each) if node is None else node)
                    continue
                key.append(None if node is None else first.setdefault(node, len(first)))
                key += (type_, strides_of(each)) if shape is None else type_[1:]
        return tuple(key)

    def _known(self, tensor: Tensor) -> Node | None:
        """The value of a tensor that the trace has met."""
        value = tensor._value
        return value if type(value) is Node else self._trace.table.get(id(tensor))

    def _traced(
        self,
        function: Callable[..., None],
        leaves: Sequence[Any],
        tensors: Sequence[Tensor],
        shape: tuple[int, ...] | None,
    ) -> Stamp | None:
        """Call the function as it is written; None where others cannot be made after it."""
        trace = self._trace
        before = [self._known(each) for each in tensors]
        versions = [storage_of(each).version for each in tensors]
        reads, inputs = trace.reads(), len(trace.inputs)
        with trace.logging() as log:
            function(*leaves)
        position = {id(each): at for at, each in reversed(list(enumerate(tensors)))}
        captured = []
        for entry in trace.inputs[inputs:]:
            at = position.get(id(entry.handle))
            if at is not None:
                captured.append(at)
                before[at] = entry.node
            elif entry.source.kind != "number":
                return None
        numbers: dict[Node, int] = {}
        for at, node in enumerate(before):
            if node is not None and node.shape:
                numbers.setdefault(node, at)
        steps = _steps(log, numbers, len(tensors))
        if steps is None or trace.reads() != reads:
            return None
        written: list[tuple[int, int | Node, int]] = []
        for at, each in enumerate(tensors):
            now, times = self._known(each), storage_of(each).version - versions[at]
            if times and position[id(each)] == at and now is not None:
                written.append((at, numbers.get(now, now), times))
        if not all(_is_of_elements(*step, shape) for step in steps):
            shape = None
        return Stamp(steps, tuple(captured), tuple(written), shape)

    def _press(
        self, stamp: Stamp, tensors: Sequence[Tensor], shape: tuple[int, ...] | None
    ) -> None:
        """Do to other tensors, all of `shape` if it is given, what a call did to its own."""
        trace = self._trace
        for at in stamp.captured:
            trace.value_of(tensors[at])
        values = [trace.value_of(each) for each in tensors]
        for node, operands in stamp.steps:
            inputs = [values[each] if type(each) is int else each for each in operands]
            type_ = node.type if shape is None else node.type.with_shape(shape)
            values.append(trace.repeat(node, inputs, type_))
        for at, value, times in stamp.written:
            target = tensors[at]
            check_memory(target)
            trace.touch(target)
            trace.rebind(target, values[value] if type(value) is int else value)
            count_writes(target, times, follow=False)


def _is_known(leaf: Any) -> bool:
    """Whether it is known of an argument what a call depends on."""
    kind = type(leaf)
    if kind is TracedNumber or kind in _PLAIN:
        return True
    return isinstance(leaf, Tensor) and leaf._view is None


def _common_shape(tensors: Sequence[Tensor]) -> tuple[int, ...] | None:
    """The shape of all tensors but numbers, where all lie densely in its order."""
    shape: tuple[int, ...] | None = None
    dense: tuple[int, ...] = ()
    for each in tensors:
        own = each._type.shape
        if not own:
            continue
        if shape is None:
            shape, dense = own, contiguous_strides(own)
        value = each._value
        if own != shape:
            return None
        if type(value) is Node:
            if node_strides(value) != dense:
                return None
        elif not value.flags.c_contiguous:
            return None
    return shape


def _is_of_elements(
    node: Node, operands: Sequence[int | Node], shape: tuple[int, ...] | None
) -> bool:
    """Whether a step does the same to each element of tensors of `shape`, and of others."""
    if node.primitive.family is not Family.ELEMENTWISE or "strides" in node.attrs:
        return False
    return node.shape == shape and all(type(each) is int or not each.shape for each in operands)


def _steps(
    log: Sequence[Node], numbers: dict[Node, int], count: int
) -> tuple[tuple[Node, tuple[int | Node, ...]], ...] | None:
    """What of `log` depends on the tensors of a call, numbered from `count` on.

    None where something may be the same by chance: a tensor and what was made, or what is read
    beside the tensors and is more than a number.
    """
    steps: list[tuple[Node, tuple[int | Node, ...]]] = []
    fixed: set[Node] = set()
    made: set[Node] = set()
    for node in log:
        if node in made or node in fixed:
            continue
        if node in numbers:
            return None
        operands = tuple([numbers.get(each, each) for each in node.inputs])
        if all(type(each) is not int for each in operands):
            fixed.add(node)
            continue
        for each in operands:
            if type(each) is not int and each.shape and each not in fixed:
                return None
        numbers[node] = count + len(steps)
        made.add(node)
        steps.append((node, operands))
    return tuple(steps)
