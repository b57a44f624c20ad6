"""What a fused function does for one signature: the kernels, and what they read and write.

`compiled` makes it of the scalars that were recorded (`fused_expression.py`), `execute` runs it.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..compiler.ir import Graph, TensorType
from ..core import pytree
from ..core.inplace import prepare_direct_write
from ..core.out_of_memory import note
from ..core.tensor import Tensor, intern_type, wrap
from ..core.traced_float import TracedFloat
from ..runtime.cuda import arrays, elementwise
from ..runtime.cuda.memory import when_full
from ..runtime.device import CPU
from .fused_expression import Expression, TracedInt


class Launch(NamedTuple):
    """One kernel: its text, the leaves that it reads, and the numbers of the outputs it writes.

    `singles` are those that are one element, written beside the others.
    """

    text: elementwise.Text
    leaves: tuple[int, ...]
    outputs: tuple[int, ...]
    singles: tuple[int, ...]


class Program(NamedTuple):
    """What a fused function does for one signature.

    `results` tells for each leaf of the result whether it is an argument, an output, or anything
    else, which is given as it is. `types` are those of the outputs. The last of these are written
    into arguments, the `targets`, where the function writes in place. `reads` are the leaves of the
    arguments that matter for the results.
    """

    launches: tuple[Launch, ...]
    types: tuple[TensorType, ...]
    targets: tuple[int, ...]
    results: tuple[Any, ...]
    spec: pytree.TreeSpec
    reads: frozenset[int]


class Output(NamedTuple):
    """A leaf of the result that a kernel writes."""

    number: int


class Argument(NamedTuple):
    """A leaf of the result that is a leaf of the arguments."""

    position: int


class Traced(NamedTuple):
    """What a fused function did, run with handles to scalars."""

    context: Expression
    given: list[Any]  # the leaves as the function saw them
    positions: list[int]  # of the context's inputs among the leaves
    results: list[Any]
    spec: pytree.TreeSpec


# --- from scalars to kernels ---------------------------------------------------------------------


def compiled(traced: Traced) -> Program:
    """The kernels that compute what was traced."""
    from ..compiler.targets.cuda.elementwise import simplified

    context = traced.context
    tensors: list[Tensor] = []
    targets: list[int] = []
    results: list[Any] = []
    for each in traced.results:
        results.append(_result(each, traced, tensors))
    if context.writes:
        for at, node in zip(traced.positions, context.inputs, strict=True):
            handle = traced.given[at]
            if isinstance(handle, Tensor) and handle._value is not node:
                targets.append(at)
                tensors.append(handle)
    graph = simplified(Graph(context.inputs, [context.value_of(each) for each in tensors]))
    if context.sums:
        results = [_passed_on(each, graph, tensors, traced) for each in results]
    wanted = [each.number for each in results if type(each) is Output]
    outputs = sorted({*wanted, *range(len(tensors) - len(targets), len(tensors))})
    launches = _launches(context.name, graph, tensors, outputs, traced)
    if targets:
        first = len(tensors) - len(targets)
        written = {first + number: at for number, at in enumerate(targets)}
        _check_order(launches, written, traced)
    reads = {at for launch in launches for at in launch.leaves}
    reads |= {each.position for each in results if type(each) is Argument}
    types = tuple(each._type for each in tensors)
    return Program(
        tuple(launches), types, tuple(targets), tuple(results), traced.spec, frozenset(reads)
    )


def _result(result: Any, traced: Traced, tensors: list[Tensor]) -> Any:
    """Where a leaf of the result comes from; a new tensor is added to `tensors`."""
    for at, each in enumerate(traced.given):
        if result is each and (isinstance(each, Tensor) or type(each) in (TracedFloat, TracedInt)):
            return Argument(at)
    if type(result) in (TracedFloat, TracedInt):
        raise traced.context.refusal("a number as its result")
    if not isinstance(result, Tensor):
        return result
    for number, each in enumerate(tensors):
        if each is result:
            return Output(number)
    tensors.append(result)
    return Output(len(tensors) - 1)


def _passed_on(result: Any, graph: Graph, tensors: list[Tensor], traced: Traced) -> Any:
    """A gradient that is an argument as it came needs no kernel."""
    if type(result) is not Output:
        return result
    node = graph.outputs[result.number]
    for at, each in zip(traced.positions, graph.inputs, strict=True):
        if each is node and traced.given[at]._type == tensors[result.number]._type:
            return Argument(at)
    return result


def _launches(
    name: str, graph: Graph, tensors: Sequence[Tensor], outputs: Sequence[int], traced: Traced
) -> list[Launch]:
    """One kernel for all outputs of one shape, the largest first."""
    from ..compiler.targets.cuda.elementwise import write_text

    groups: dict[tuple[int, ...], list[int]] = {}
    for number in sorted(outputs, key=lambda each: -tensors[each]._type.numel):
        groups.setdefault(tensors[number]._type.shape, []).append(number)
    singles: list[int] = []
    largest = next(iter(groups), ())
    if largest and 0 not in largest and () in groups and _by_the_way(graph, groups[()], traced):
        singles = groups.pop(())
    launches = []
    for numbers in groups.values():
        beside = singles if numbers is groups[largest] else []
        nodes = [graph.outputs[each] for each in (*numbers, *beside)]
        once = [False] * len(numbers) + [True] * len(beside)
        text = write_text(Graph(graph.inputs, nodes), name, once)
        leaves = tuple(traced.positions[each] for each in text.read)
        launches.append(Launch(text, leaves, tuple(numbers), tuple(beside)))
    return launches


def _by_the_way(graph: Graph, numbers: Sequence[int], traced: Traced) -> bool:
    """Whether outputs of one element are made of Python numbers alone.

    The kernel of other outputs then writes them too, as nothing waits for what they were before.
    """
    made = Graph((), [graph.outputs[each] for each in numbers])
    given = dict(zip(graph.inputs, traced.positions, strict=True))
    return all(
        not isinstance(traced.given[given[node]], Tensor) for node in made.nodes if node in given
    )


def _check_order(launches: Sequence[Launch], outputs: dict[int, int], traced: Traced) -> None:
    """Refuse to overwrite what a kernel reads after, or beside, the one that writes it."""
    written: set[int] = set()
    for launch in launches:
        beside = {outputs[each] for each in launch.singles if each in outputs}
        if (written | beside) & set(launch.leaves):
            raise traced.context.refusal("a tensor of another shape that it overwrites")
        written |= {outputs[each] for each in launch.outputs if each in outputs} | beside


# --- running them --------------------------------------------------------------------------------


def execute(program: Program, leaves: Sequence[Any]) -> list[Tensor]:
    """Run the kernels of a program; gives its outputs that are new."""
    if not program.launches:
        return []
    device = next(
        each._type.device
        for each in leaves
        if isinstance(each, Tensor) and each._type.device is not CPU
    )
    fresh = len(program.types) - len(program.targets)
    for at in program.targets:
        prepare_direct_write(leaves[at])
    with arrays.current(device):
        made: list[Any] = [
            when_full(functools.partial(arrays.empty, type_.shape, type_.dtype.numpy))
            for type_ in program.types[:fresh]
        ]
        values = made + [leaves[at]._value for at in program.targets]
        for launch in program.launches:
            elementwise.launch(
                launch.text,
                [_value(leaves[at]) for at in launch.leaves],
                [values[number] for number in launch.outputs],
                [values[number] for number in launch.singles],
                fresh=not program.targets,
            )
    for each in made:
        note(each)
    return [
        wrap(value, intern_type(type_.shape, type_.dtype, device))
        for value, type_ in zip(made, program.types)
    ]


def _value(leaf: Any) -> Any:
    """What a kernel is given: an array of the device, or a number."""
    if not isinstance(leaf, Tensor):
        return leaf
    return leaf._value[()] if type(leaf._value) is np.ndarray else leaf._value
