"""Holds the engines to each other on one program, and shrinks a program on which they differ."""

from __future__ import annotations

import random
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from tgraph.compiler.ir import Builder, Graph, Node, input_node
from tgraph.compiler.passes.replace_empty import replace_empty
from tgraph.compiler.pipeline import optimize
from tgraph.runtime.arrays import evaluate

from . import elementwise, factorizations, movement, patterns
from .enclose import enclosed, turns
from .engines import Array, run_compiled, run_eagerly, run_kernel_interpreter, small_pieces
from .program import Maker, Program, random_program

MAKERS: tuple[Maker, ...] = (
    *elementwise.MAKERS, *movement.MAKERS, *patterns.MAKERS, *factorizations.MAKERS
)  # fmt: skip
ENGINES = ("kernels", "compiled", "passes", "optimised")
LARGEST_STEPS = 60


@dataclass(frozen=True)
class Case:
    """A graph, what to feed it, and how far each output may be off."""

    graph: Graph
    arrays: tuple[Array, ...]
    tolerances: tuple[float, ...]
    donate: Mapping[int, int] = field(default_factory=dict)


@dataclass
class Mismatch(Exception):
    """An engine that differs from eager evaluation."""

    engine: str
    message: str

    def __str__(self) -> str:
        return f"{self.engine}: {self.message}"


def program_of_seed(seed: int, steps: int = LARGEST_STEPS) -> Program:
    """The program of a seed; most are short, some long."""
    rng = random.Random(seed)
    longest = rng.choice((6, 15, 30, steps))
    makers = (*MAKERS, *movement.BORDERS * 5) if seed % 3 == 0 else MAKERS
    return random_program(lambda n: rng.randrange(max(n, 1)), rng.randrange(1, longest + 1), makers)


def case_of(program: Program) -> Case:
    tolerances = tuple(4 * value.error for value in program.outputs)
    return Case(program.graph(), tuple(program.arrays), tolerances, dict(program.donate))


def check(case: Case, engines: Sequence[str] = ENGINES) -> None:
    """Run `case` on every engine; Mismatch where one differs from eager evaluation."""
    case.graph.verify()
    try:
        values = run_eagerly(case.graph, case.arrays)
    except IndexError:
        _check_refused(case, engines)
        return
    expected = [values[node] for node in case.graph.outputs]
    for engine in engines:
        try:
            found = RUN[engine](case)
        except Mismatch as mismatch:
            raise Mismatch(engine, str(mismatch)) from None
        except Exception as error:
            raise Mismatch(engine, f"{type(error).__name__}: {error}") from error
        _compare(engine, case, expected, found)


def _check_refused(case: Case, engines: Sequence[str]) -> None:
    """Every engine must refuse what eager evaluation refuses.

    But for what no element of a result depends on: it is not read.
    """
    for engine in engines:
        graph = optimize(case.graph) if engine == "optimised" else case.graph
        if engine != "passes" and not _needs_outside(replace_empty(graph), case.arrays):
            continue
        try:
            RUN[engine](case)
        except IndexError:
            continue
        except Exception as error:
            raise Mismatch(engine, f"{type(error).__name__} for an IndexError: {error}") from error
        raise Mismatch(engine, "no IndexError for a position outside its axis")


def _needs_outside(graph: Graph, arrays: Sequence[Array]) -> bool:
    """Whether a result depends on what is read outside of an axis, or something is written there.

    Found by putting several values in the place of what is read there.
    """
    results = set()
    for value in (0, 1, 7):
        values = dict(zip(graph.inputs, arrays, strict=True))
        try:
            for node in graph.nodes:
                if node not in values:
                    values[node] = _with_outside(node, [values[x] for x in node.inputs], value)
        except IndexError:
            return True
        results.add(tuple(values[node].tobytes() for node in graph.outputs))
    return len(results) > 1


def _with_outside(node: Node, operands: Sequence[Array], value: int) -> Array:
    """The node's value, with `value` for the elements that it reads outside of an axis."""
    if node.primitive.name not in ("gather", "index"):
        return evaluate(node.primitive.name, operands, node.attrs)
    (x, *positions), axis = operands, node.attrs["axis"]
    sizes = x.shape[axis : axis + len(positions)]
    outside = np.logical_or.reduce([(at < 0) | (at >= n) for at, n in zip(positions, sizes)])
    if 0 in sizes:
        return np.full(node.shape, value, x.dtype)
    inside = [np.where(outside, at.dtype.type(0), at) for at in positions]
    found = evaluate(node.primitive.name, [x, *inside], node.attrs)
    if node.primitive.name == "index":
        outside = outside.reshape(outside.shape + (1,) * (found.ndim - axis - outside.ndim))
    return np.where(outside, np.asarray(value).astype(x.dtype), found)


def _run_passes(case: Case) -> list[Array]:
    """What each pass makes of the graph, evaluated eagerly; the first that is wrong is named."""
    eager = run_eagerly(case.graph, case.arrays)
    expected = [eager[node] for node in case.graph.outputs]
    found: list[list[Array]] = []

    def after(name: str, graph: Graph) -> None:
        graph.verify()
        values = run_eagerly(graph, case.arrays)
        found.append([values[node] for node in graph.outputs])
        _compare(f"after {name}", case, expected, found[-1])

    with small_pieces():
        optimize(case.graph, after)
    return found[-1]


def _run_optimised(case: Case) -> list[Array]:
    with small_pieces():
        graph = optimize(case.graph)
    return run_compiled(graph, case.arrays, case.donate, large=True)


def _run_enclosed(case: Case) -> list[Array]:
    with small_pieces():
        graph = optimize(enclosed(case.graph))
    graph.verify()
    return run_compiled(graph, (*case.arrays, turns()), case.donate)


RUN: dict[str, Callable[[Case], list[Array]]] = {
    "kernels": lambda case: run_kernel_interpreter(case.graph, case.arrays),
    "compiled": lambda case: run_compiled(case.graph, case.arrays, case.donate),
    "passes": _run_passes,
    "optimised": _run_optimised,
    "enclosed": _run_enclosed,
}


def _compare(
    engine: str, case: Case, expected: Sequence[Array], found: Sequence[Array]
) -> None:  # fmt: skip
    for number, (want, have) in enumerate(zip(expected, found, strict=True)):
        if want.shape != have.shape or want.dtype != have.dtype:
            raise Mismatch(
                engine,
                f"output {number} is {have.dtype}{list(have.shape)}, "
                f"expected {want.dtype}{list(want.shape)}",
            )
        if want.dtype.kind in "biu":
            wrong = want != have
        else:
            wide, other = want.astype(np.float64), have.astype(np.float64)
            wrong = ~(np.abs(wide - other) <= case.tolerances[number])
        if wrong.any():
            at = tuple(int(each[0]) for each in np.nonzero(wrong)) if wrong.ndim else ()
            raise Mismatch(
                engine,
                f"output {number} differs in {int(wrong.sum())} of {wrong.size} elements, "
                f"first at {list(at)}: {have[at]!r} for {want[at]!r}, "
                f"allowed {case.tolerances[number]:.3g}",
            )


# -- shrinking -------------------------------------------------------------------------------


def fails(case: Case, engine: str) -> bool:
    try:
        check(case, [engine])
    except Mismatch:
        return True
    except Exception:
        return False
    return False


def shrink(case: Case, engine: str) -> Case:
    """A small part of `case` on which `engine` still fails: fewer outputs, nodes become inputs."""
    case = _fewer_outputs(case, engine)
    progress = True
    while progress:
        smaller = _earlier_output(case, engine) or _later_inputs(case, engine)
        progress = smaller is not None
        case = smaller or case
    for number in range(len(case.arrays)):
        case = _plainer_input(case, engine, number)
    return case


def _fewer_outputs(case: Case, engine: str) -> Case:
    if case.donate and fails(replace(case, donate={}), engine):
        case = replace(case, donate={})
    number = 0
    while number < len(case.graph.outputs) and len(case.graph.outputs) > 1:
        kept = [at for at in range(len(case.graph.outputs)) if at != number]
        smaller = _used(
            Case(
                Graph(case.graph.inputs, [case.graph.outputs[at] for at in kept]),
                case.arrays,
                tuple(case.tolerances[at] for at in kept),
                {kept.index(o): i for o, i in case.donate.items() if o != number},
            )
        )
        if fails(smaller, engine):
            case = smaller
        else:
            number += 1
    return _used(case)


def _used(case: Case) -> Case:
    """Without inputs that nothing reads."""
    kept = [
        number
        for number, node in enumerate(case.graph.inputs)
        if case.graph.consumers[node]
        or node in case.graph.outputs
        or number in case.donate.values()
    ]
    return Case(
        Graph([case.graph.inputs[at] for at in kept], case.graph.outputs),
        tuple(case.arrays[at] for at in kept),
        case.tolerances,
        {output: kept.index(number) for output, number in case.donate.items()},
    )


def _earlier_output(case: Case, engine: str) -> Case | None:
    """An inner node as the only output; exact ones alone, where no tolerance is known."""
    if case.donate or len(case.graph.outputs) > 1:
        return None
    for node in case.graph.nodes:
        if node.primitive.name in ("input", "host_call") or node in case.graph.outputs:
            continue
        smaller = _used(replace(case, graph=Graph(case.graph.inputs, [node])))
        if fails(smaller, engine):
            return smaller
    return None


def _later_inputs(case: Case, engine: str) -> Case | None:
    """Inner nodes fed as inputs with the values that they have."""
    try:
        values = run_eagerly(case.graph, case.arrays)
    except IndexError:
        return None
    for node in reversed(case.graph.nodes):
        if node.primitive.name in ("input", "full", "host_call") or node in case.graph.outputs:
            continue
        smaller = _cut(case, node, np.ascontiguousarray(values[node]).reshape(node.shape))
        if fails(smaller, engine):
            return smaller
    return None


def _cut(case: Case, cut: Node, value: Array) -> Case:
    fresh = input_node(f"c{len(case.graph.inputs)}", cut.type)
    build = Builder()
    new: dict[Node, Node] = {node: node for node in case.graph.inputs}
    new[cut] = fresh
    for node in case.graph.nodes:
        if node not in new:
            new[node] = build.rebuild(node, [new[each] for each in node.inputs])
    graph = Graph([*case.graph.inputs, fresh], [new[node] for node in case.graph.outputs])
    return _used(replace(case, graph=graph, arrays=(*case.arrays, value)))


def _counted(like: Array) -> Array:
    return (np.arange(like.size) % 5).astype(like.dtype).reshape(like.shape)


def _halves(like: Array) -> Array:
    with np.errstate(invalid="ignore"):  # of types without negative numbers
        return ((np.arange(like.size) % 9 - 4) / 2).astype(like.dtype).reshape(like.shape)


# What an input of many elements may be replaced by, and how that is written.
_PATTERNS = {
    "(np.arange({size}) % 5).reshape({shape})": _counted,
    "((np.arange({size}) % 9 - 4) / 2).reshape({shape})": _halves,
}


def _plainer_input(case: Case, engine: str, number: int) -> Case:
    """An input as contiguous zeros, ones or a pattern, if that still fails."""
    array = case.arrays[number]
    candidates = [
        np.zeros(array.shape, array.dtype),
        np.ones(array.shape, array.dtype),
        *(pattern(array) for pattern in _PATTERNS.values()),
        np.ascontiguousarray(array).reshape(array.shape),
    ]
    for plain in candidates:
        arrays = (*case.arrays[:number], plain, *case.arrays[number + 1 :])
        smaller = replace(case, arrays=arrays)
        if fails(smaller, engine):
            return smaller
    return case


def describe(case: Case) -> str:
    """The graph, and Python that makes its inputs."""
    lines = [str(case.graph)]
    for node, array in zip(case.graph.inputs, case.arrays, strict=True):
        data = f"np.array({array.tolist()})" if array.size <= 40 else _pattern(array)
        layout = "" if array.flags.c_contiguous else f"  # strides {array.strides} bytes"
        lines.append(f"{node.attrs['name']} = {data}.astype({str(array.dtype)!r}){layout}")
    if case.donate:
        lines.append(f"donate = {dict(case.donate)}")
    return "\n".join(lines)


def _pattern(array: Array) -> str:
    for text, pattern in _PATTERNS.items():
        if np.array_equal(array, pattern(array)):
            return text.format(size=array.size, shape=array.shape)
    if array.size and (array == array.flat[0]).all():
        return f"np.full({array.shape}, {array.flat[0].item()!r})"
    rows = textwrap.shorten(str(array.reshape(-1)[:40].tolist()), 300)
    return f"<{array.shape} beginning {rows}>"


def report(seed: int, case: Case, mismatch: Mismatch, engines: Sequence[str] = ENGINES) -> str:
    """The failure of a seed as text: the smallest program found, and how it fails."""
    small = shrink(case, mismatch.engine)
    message: Any = mismatch
    try:
        check(small, [mismatch.engine])
    except Mismatch as error:
        message = error
    return f"seed {seed}: {mismatch}\nshrunk to:\n{describe(small)}\n{message}"
