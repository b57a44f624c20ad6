"""Functions of one element at a time that run as one kernel in eager mode on a CUDA device.

A function marked by `fused` is run once per signature in a context that records scalars
(`fused_expression.py`): what it does to one element. These become a `cupy.ElementwiseKernel`, which
CuPy launches on operands of any strides. Where gradients are wanted, one step is recorded, whose
backward pass is the gradient of the scalars, again as one kernel, and so on for every order.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from types import CellType
from typing import Any, NamedTuple, ParamSpec, TypeVar

import numpy as np

from . import pytree
from .autograd import api
from .autograd.record import Edge, Record, Saved
from .compiler.ir import Graph, Node, TensorType, promotion
from .compiler.ir import primitives as p
from .compiler.ir.node import attr_key
from .compiler.ir.shapes import broadcast as broadcast_shapes
from .dispatch import (
    EAGER,
    PrimitiveRecord,
    apply,
    constant,
    edge_of,
    raise_leaked,
    settled,
    unpack,
    use_context,
    user_site,
)
from .fused_expression import Expression, NotElementwiseError, TracedInt
from .inplace import prepare_direct_write
from .operands import plain_scalar
from .out_of_memory import note
from .runtime.cuda import arrays, elementwise
from .runtime.cuda.memory import when_full
from .runtime.device import CPU
from .runtime.dtypes import DType
from .state import state
from .tensor import Tensor, intern_type, wrap
from .traced_float import Specialize, TracedFloat

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")
_KEPT = 256
"""Signatures for which a function is remembered."""


def fused(function: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
    """Let a function of elements run as one kernel in eager mode on a CUDA device. A decorator.

    The function takes tensors, which broadcast against each other, and Python numbers, also inside
    of containers, and gives new tensors. It consists of elementwise operations: arithmetic,
    mathematics, comparisons, `where`, casts. What it computes depends on its arguments alone, and
    on numbers that it reads itself from globals and closures.

    On a CUDA device one `cupy.ElementwiseKernel` computes all results of one shape, on any strided
    views without copies. It is compiled once for each combination of dtypes; numbers are arguments
    of the kernel, so that a new learning rate compiles nothing. (A number whose value the function
    asks for, as `if rate > 0` does, is fixed, and so is the exponent of `**`.) 16-bit floats are
    computed in float32 and rounded once, when stored; denormal float32 results become zero, as in
    all that CuPy computes. Gradients of any order are right: one step is recorded, whose backward
    pass is one kernel as well.

    On the CPU, and inside of functions that are traced, the function runs as it is.

    Raises TypeError, with the line, for operations that are not elementwise (reductions, indexing,
    views of other shapes, random numbers), for writing in place, and for reading tensors that are
    no arguments. These errors come on a CUDA device only.

    >>> import tgraph as tg
    >>> @tg.fused
    ... def swish(x, slope):
    ...     return x / (1 + tg.exp(-slope * x))
    >>> swish(tg.tensor([0.0, 1.0]), 2.0)
    tensor([0.0000, 0.8808])
    """
    return _function(Fused(function))


def fused_update(function: Callable[..., None]) -> Callable[..., None]:
    """As `fused`, for a function that writes some of its arguments in place and gives nothing.

    No gradient is recorded. The arguments it writes must not share memory with one another.
    """
    return _function(Fused(function, writes=True))


def _function(fused: Fused) -> Callable[..., Any]:
    """A plain function, which can be a method too, that runs `fused` where it is of use."""
    plain = fused.function

    @functools.wraps(plain)
    def call(*args: Any, **kwargs: Any) -> Any:
        context = state.context
        if (context is None or context is EAGER) and _on_device(args, kwargs):
            return fused.run(args, kwargs)
        return plain(*args, **kwargs)

    return call


# --- programs ------------------------------------------------------------------------------------


class _Launch(NamedTuple):
    """One kernel: its text, the leaves that it reads, and the numbers of the outputs it writes.

    `singles` are those that are one element, written beside the others.
    """

    text: elementwise.Text
    leaves: tuple[int, ...]
    outputs: tuple[int, ...]
    singles: tuple[int, ...]


class _Program(NamedTuple):
    """What a fused function does for one signature.

    `results` tells for each leaf of the result whether it is an argument, an output, or anything
    else, which is given as it is. `types` are those of the outputs. The last of these are written
    into arguments, the `targets`, where the function writes in place. `reads` are the leaves of the
    arguments that matter for the results.
    """

    launches: tuple[_Launch, ...]
    types: tuple[TensorType, ...]
    targets: tuple[int, ...]
    results: tuple[Any, ...]
    spec: pytree.TreeSpec
    reads: frozenset[int]


class _Output(NamedTuple):
    number: int


class _Argument(NamedTuple):
    position: int


class _Traced(NamedTuple):
    context: Expression
    given: list[Any]  # the leaves as the function saw them
    positions: list[int]  # of the context's inputs among the leaves
    results: list[Any]
    spec: pytree.TreeSpec


class Fused:
    """What runs a fused function on a CUDA device, and remembers what it is there."""

    def __init__(
        self, function: Callable[..., Any], sums: bool = False, writes: bool = False
    ) -> None:
        self.function = function
        self.sums = sums
        self.writes = writes
        self._programs: dict[Any, _Program] = {}
        self._derivatives: dict[Any, _Derivative | None] = {}
        self._fixed: dict[pytree.TreeSpec, set[int]] = {}

    @property
    def name(self) -> str:
        return getattr(self.function, "__name__", type(self.function).__name__)

    def run(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The function's result, for arguments with a tensor on a CUDA device."""
        given, spec = pytree.flatten((args, kwargs))
        leaves = [plain_scalar(each) for each in given]
        tensors = [each for each in leaves if isinstance(each, Tensor)]
        for each in tensors:
            settled(each)
            if type(each._value) is Node:
                raise_leaked(each)
        recording = state.grad_enabled and not self.writes
        wanted = frozenset(
            at
            for at, each in enumerate(leaves)
            if recording and isinstance(each, Tensor) and each._requires_grad
        )
        abstract = [each._type if isinstance(each, Tensor) else each for each in leaves]
        if not _go_together(abstract):
            return self.function(*args, **kwargs)
        program = self.program(abstract, spec)
        if any(type_.device is CPU for type_ in program.types):
            return self.function(*args, **kwargs)
        derivative = None
        if wanted:
            derivative = self._derivative(abstract, spec, wanted)
            if derivative is None:
                return self.function(*args, **kwargs)
        outputs = _execute(program, leaves)
        if derivative is not None:
            derivative.attach(leaves, outputs)
        results: list[Any] = []
        for each in program.results:
            if type(each) is _Output:
                each = outputs[each.number]
            elif type(each) is _Argument:
                each = given[each.position]
            results.append(each)
        return program.spec.unflatten(results)

    # --- signatures ---

    def _key(self, abstract: Sequence[Any], spec: pytree.TreeSpec) -> Any:
        fixed = self._fixed.get(spec, ())
        read = tuple(map(attr_key, self._numbers_read()))
        kinds = (
            type(each) if _is_number(each) and at not in fixed else _leaf_key(each)
            for at, each in enumerate(abstract)
        )
        return (spec, promotion.default_dtype, read, *kinds)

    def _numbers_read(self) -> Iterator[Any]:
        """The numbers that the function itself finds in globals and closures now."""
        code = getattr(self.function, "__code__", None)
        if code is None:
            return
        found = self.function.__globals__
        for name in code.co_names:
            value = found.get(name)
            if type(value) in _NUMBERS:
                yield value
        for cell in self.function.__closure__ or ():
            if cell != _EMPTY and type(cell.cell_contents) in _NUMBERS:
                yield cell.cell_contents

    def program(self, abstract: Sequence[Any], spec: pytree.TreeSpec) -> _Program:
        """What is done with leaves of these types; NotElementwiseError where nothing can be."""
        key = self._key(abstract, spec)
        found = self._programs.get(key)
        if found is None:
            previous, state.grad_enabled = state.grad_enabled, False
            try:
                found = _compiled(self, self.traced(abstract, spec))
            finally:
                state.grad_enabled = previous
            if len(self._programs) >= _KEPT:
                self._programs.clear()
            self._programs[self._key(abstract, spec)] = found
        return found

    def traced(
        self, abstract: Sequence[Any], spec: pytree.TreeSpec, wanted: frozenset[int] = frozenset()
    ) -> _Traced:
        """The function's scalars; leaves at the positions `wanted` require grad."""
        while True:
            fixed = self._fixed.setdefault(spec, set())
            context = Expression(self.name, self.sums, self.writes)
            try:
                with use_context(context):
                    return self._traced(context, abstract, spec, wanted, fixed)
            except Specialize as asked:
                if not asked.sources - fixed:
                    raise
                fixed.update(asked.sources)

    def _traced(
        self,
        context: Expression,
        abstract: Sequence[Any],
        spec: pytree.TreeSpec,
        wanted: frozenset[int],
        fixed: set[int],
    ) -> _Traced:
        given: list[Any] = []
        positions: list[int] = []
        for at, each in enumerate(abstract):
            if type(each) is TensorType:
                handle = context.argument(each)
                handle._requires_grad = at in wanted
                given.append(handle)
                positions.append(at)
            elif _is_number(each) and at not in fixed:
                given.append(context.number(each, at))
                positions.append(at)
            else:
                given.append(each)
        args, kwargs = spec.unflatten(given)
        results, tree = pytree.flatten(self.function(*args, **kwargs))
        return _Traced(context, given, positions, results, tree)

    # --- gradients ---

    def _derivative(
        self, abstract: Sequence[Any], spec: pytree.TreeSpec, wanted: frozenset[int]
    ) -> _Derivative | None:
        """The gradient with respect to some leaves; None where it cannot be fused."""
        key = (self._key(abstract, spec), wanted)
        if key not in self._derivatives:
            if len(self._derivatives) >= _KEPT:
                self._derivatives.clear()
            made = self._differentiated(abstract, spec, wanted)
            self._derivatives[self._key(abstract, spec), wanted] = made
            return made
        return self._derivatives[key]

    def _differentiated(
        self, abstract: Sequence[Any], spec: pytree.TreeSpec, wanted: frozenset[int]
    ) -> _Derivative | None:
        if any(abstract[at].device is CPU for at in wanted):
            return None
        previous, state.grad_enabled = state.grad_enabled, True
        try:
            traced = self.traced(abstract, spec, wanted)
        finally:
            state.grad_enabled = previous
        outputs: dict[int, int] = {}
        for at, place in enumerate(self.program(abstract, spec).results):
            made = type(place) is _Output and place.number not in outputs.values()
            if made and traced.results[at]._requires_grad:
                outputs[at] = place.number
        made_here = [traced.results[at] for at in outputs]
        if not _is_made_of_primitives(made_here):
            return None  # with rules that may do anything
        types = tuple(each._type for each in made_here)
        derivative = _Derivative(self.name, self.function, spec, sorted(wanted), outputs, types)
        if outputs:
            try:
                derivative.prepare(abstract)
            except NotElementwiseError:
                return None
        return derivative


def _go_together(abstract: Sequence[Any]) -> bool:
    """Whether a kernel can read all the tensors: on one device, or without dimensions."""
    types = [each for each in abstract if type(each) is TensorType]
    there = {each.device for each in types if each.device is not CPU}
    return len(there) == 1 and not any(each.device is CPU and each.shape for each in types)


def _on_device(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether a tensor among the arguments lies on a CUDA device."""
    nested = bool(kwargs)
    for each in args:
        if isinstance(each, Tensor):
            if each._type.device is not CPU:
                return True
            if each._type.shape:
                return False  # it goes with no tensor of a device
        elif type(each) not in _PLAIN:
            nested = True
    if not nested:
        return False
    leaves = pytree.leaves((args, kwargs))
    return any(isinstance(each, Tensor) and each._type.device is not CPU for each in leaves)


_NUMBERS = frozenset({float, int, bool})
_EMPTY = CellType()
_PLAIN = frozenset({float, int, bool, str, type(None), TensorType, DType})


def _is_number(value: Any) -> bool:
    """Whether a leaf can be an argument of a kernel."""
    return type(value) is float or (type(value) is int and -(2**63) <= value < 2**63)


def _leaf_key(leaf: Any) -> Any:
    if type(leaf) is TensorType:
        return leaf
    try:
        hash(leaf)
    except TypeError:
        raise TypeError(
            f"arguments of a fused function are tensors, numbers and what can be hashed, not "
            f"{type(leaf).__name__}"
        ) from None
    return type(leaf), attr_key(leaf)


def _is_made_of_primitives(results: Sequence[Tensor]) -> bool:
    """Whether the history of results has rules of our own alone, which are elementwise."""
    seen: set[int] = set()
    stack: list[Any] = [each._record for each in results]
    while stack:
        record = stack.pop()
        if record is None or isinstance(record, Tensor) or id(record) in seen:
            continue
        if type(record) is not PrimitiveRecord:
            return False
        seen.add(id(record))
        stack += [edge[0] for edge in record.edges if edge is not None]
    return True


# --- from scalars to kernels ---------------------------------------------------------------------


def _compiled(fused: Fused, traced: _Traced) -> _Program:
    """The kernels that compute what was traced."""
    from .compiler.codegen.cuda_elementwise import simplified

    context = traced.context
    tensors: list[Tensor] = []
    targets: list[int] = []
    results: list[Any] = []
    for each in traced.results:
        results.append(_result(each, traced, tensors))
    if fused.writes:
        for at, node in zip(traced.positions, context.inputs, strict=True):
            handle = traced.given[at]
            if isinstance(handle, Tensor) and handle._value is not node:
                targets.append(at)
                tensors.append(handle)
    graph = simplified(Graph(context.inputs, [context.value_of(each) for each in tensors]))
    if fused.sums:
        results = [_passed_on(each, graph, tensors, traced) for each in results]
    wanted = [each.number for each in results if type(each) is _Output]
    outputs = sorted({*wanted, *range(len(tensors) - len(targets), len(tensors))})
    launches = _launches(fused.name, graph, tensors, outputs, traced)
    if targets:
        first = len(tensors) - len(targets)
        written = {first + number: at for number, at in enumerate(targets)}
        _check_order(launches, written, traced)
    reads = {at for launch in launches for at in launch.leaves}
    reads |= {each.position for each in results if type(each) is _Argument}
    types = tuple(each._type for each in tensors)
    return _Program(
        tuple(launches), types, tuple(targets), tuple(results), traced.spec, frozenset(reads)
    )


def _result(result: Any, traced: _Traced, tensors: list[Tensor]) -> Any:
    """Where a leaf of the result comes from; a new tensor is added to `tensors`."""
    for at, each in enumerate(traced.given):
        if result is each and (isinstance(each, Tensor) or type(each) in (TracedFloat, TracedInt)):
            return _Argument(at)
    if type(result) in (TracedFloat, TracedInt):
        raise traced.context.refusal("a number as its result")
    if not isinstance(result, Tensor):
        return result
    for number, each in enumerate(tensors):
        if each is result:
            return _Output(number)
    tensors.append(result)
    return _Output(len(tensors) - 1)


def _passed_on(result: Any, graph: Graph, tensors: list[Tensor], traced: _Traced) -> Any:
    """A gradient that is an argument as it came needs no kernel."""
    if type(result) is not _Output:
        return result
    node = graph.outputs[result.number]
    for at, each in zip(traced.positions, graph.inputs, strict=True):
        if each is node and traced.given[at]._type == tensors[result.number]._type:
            return _Argument(at)
    return result


def _launches(
    name: str, graph: Graph, tensors: Sequence[Tensor], outputs: Sequence[int], traced: _Traced
) -> list[_Launch]:
    """One kernel for all outputs of one shape, the largest first."""
    from .compiler.codegen.cuda_elementwise import write_text

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
        launches.append(_Launch(text, leaves, tuple(numbers), tuple(beside)))
    return launches


def _by_the_way(graph: Graph, numbers: Sequence[int], traced: _Traced) -> bool:
    """Whether outputs of one element are made of Python numbers alone.

    The kernel of other outputs then writes them too, as nothing waits for what they were before.
    """
    made = Graph((), [graph.outputs[each] for each in numbers])
    given = dict(zip(graph.inputs, traced.positions, strict=True))
    return all(
        not isinstance(traced.given[given[node]], Tensor) for node in made.nodes if node in given
    )


def _check_order(launches: Sequence[_Launch], outputs: dict[int, int], traced: _Traced) -> None:
    """Refuse to overwrite what a kernel reads after, or beside, the one that writes it."""
    written: set[int] = set()
    for launch in launches:
        beside = {outputs[each] for each in launch.singles if each in outputs}
        if (written | beside) & set(launch.leaves):
            raise traced.context.refusal("a tensor of another shape that it overwrites")
        written |= {outputs[each] for each in launch.outputs if each in outputs} | beside


def _execute(program: _Program, leaves: Sequence[Any]) -> list[Tensor]:
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


# --- gradients -----------------------------------------------------------------------------------


class _Derivative:
    """The gradient of a fused function for one signature, itself a fused function.

    It takes the leaves of the arguments and one cotangent for each output that can be
    differentiated, and gives the cotangents of the leaves `wanted`.
    """

    def __init__(
        self,
        name: str,
        function: Callable[..., Any],
        spec: pytree.TreeSpec,
        wanted: Sequence[int],
        outputs: dict[int, int],
        types: tuple[TensorType, ...],
    ) -> None:
        self.name = name
        self.function = function
        self.spec = spec
        self.wanted = tuple(wanted)
        self.outputs = outputs  # leaf of the result -> number of the output
        self.types = types
        self.reads: frozenset[int] = frozenset()

        def backward(*given: Any) -> Any:
            return self._gradient(given)

        backward.__name__ = f"{name}_backward"
        self.fused = Fused(backward, sums=True)
        self.call = _function(self.fused)

    def prepare(self, abstract: Sequence[Any]) -> None:
        """Find out what is read; NotElementwiseError where the gradient is not elementwise."""
        given = [*abstract, *self.types]
        spec = pytree.flatten((tuple(range(len(given))), {}))[1]
        self.reads = self.fused.program(given, spec).reads

    def _gradient(self, given: Sequence[Any]) -> tuple[Tensor | None, ...]:
        count = len(given) - len(self.types)
        leaves, cotangents = list(given[:count]), given[count:]
        onward, state.grad_enabled = state.grad_enabled, True
        try:
            for at in self.wanted:
                leaves[at] = apply(p.copy, leaves[at])
                leaves[at]._requires_grad = True
            args, kwargs = self.spec.unflatten(leaves)
            results = pytree.leaves(self.function(*args, **kwargs))
            found = api.grad(
                [results[at] for at in self.outputs],
                [leaves[at] for at in self.wanted],
                cotangents,
                create_graph=onward,
                allow_unused=True,
            )
            context = state.context
            if isinstance(context, Expression):
                # Sums wait until after the kernel, which gives what is to be added up.
                shapes = [each._type.shape for each in given if isinstance(each, Tensor)]
                shape = broadcast_shapes(*shapes)
                found = tuple(None if each is None else _spread(each, shape) for each in found)
        finally:
            state.grad_enabled = onward
        return found

    def attach(self, leaves: Sequence[Any], outputs: Sequence[Tensor]) -> None:
        """Record one step that made `outputs` from `leaves`."""
        if not self.outputs:
            return
        record = FusedRecord(self, leaves)
        for index, number in enumerate(self.outputs.values()):
            made = outputs[number]
            made._record, made._index, made._requires_grad = record, index, True


def _spread(gradient: Tensor, shape: tuple[int, ...]) -> Tensor:
    if gradient._type.shape == shape:
        return gradient
    return apply(p.broadcast, gradient, shape=shape)


class FusedRecord(Record):
    """The call of a fused function: tensors that its gradient reads are Saved."""

    __slots__ = ("derivative", "leaves")

    def __init__(self, derivative: _Derivative, leaves: Sequence[Any]) -> None:
        edges: tuple[Edge, ...] = tuple(edge_of(leaves[at]) for at in derivative.wanted)
        super().__init__(edges, derivative.types, user_site())
        self.derivative = derivative
        self.leaves: list[Any] | None = [
            (Saved(each) if at in derivative.reads else each._type)
            if isinstance(each, Tensor)
            else each
            for at, each in enumerate(leaves)
        ]

    def name(self) -> str:
        words = self.derivative.name.split("_")
        return f"{''.join(word.capitalize() for word in words)}Backward0"

    def cotangents(
        self, incoming: list[Tensor | None], wanted: Sequence[bool]
    ) -> list[Tensor | None]:
        assert self.leaves is not None
        leaves = [self._leaf(each) for each in self.leaves]
        given = [
            _zeros(type_) if each is None else each
            for each, type_ in zip(incoming, self.outputs, strict=True)
        ]
        return list(self.derivative.call(*leaves, *given))

    def _leaf(self, kept: Any) -> Any:
        if type(kept) is Saved:
            return unpack(kept, self)
        return _zeros(kept) if type(kept) is TensorType else kept

    def free(self) -> None:
        assert self.leaves is not None
        if any(type(each) is Saved for each in self.leaves):
            self.freed = True
            self.leaves = None


def _zeros(type_: TensorType) -> Tensor:
    """Zeros that take no memory, in place of what is not read or was not reached."""
    zero = constant(0, type_.dtype, type_.device)
    return apply(p.broadcast, zero, shape=type_.shape) if type_.shape else zero
