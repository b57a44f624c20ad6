"""Strides: what eager mode lays out, a trace knows, and what PyTorch's basic operations give."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import find_spec
from random import Random
from typing import Any

import numpy as np
import pytest
from opcase import Array, OpCase
from opcases import CASES
from rows import check_rows
from sampling import rotating
from test_ops import as_tuple

import tgraph as tg
from tgraph.compiled.compile import compile as compiled
from tgraph.tracing import trace

LAID_OUT = [case for case in CASES if case.layouts and case.compiles]


def transposed(array: Array) -> Array:
    return np.ascontiguousarray(array.T).T


def sliced(array: Array) -> Array:
    """Every second element of something larger, the axes in another order."""
    axes = np.roll(np.arange(array.ndim), 1)
    whole = np.zeros([2 * array.shape[axis] + 1 for axis in axes], array.dtype)
    part = whole[(slice(1, None, 2),) * array.ndim].transpose(np.argsort(axes))
    part[...] = array
    return part


def expanded(array: Array) -> Array:
    """One place of the first axis, shown as often as there are."""
    return np.broadcast_to(array[:1], array.shape)


def channels_last(array: Array) -> Array:
    axes = (0, *range(2, array.ndim), 1) if array.ndim > 2 else tuple(range(array.ndim))
    return np.ascontiguousarray(array.transpose(axes)).transpose(np.argsort(axes))


LAYOUTS = (np.array, transposed, sliced, expanded, channels_last)


def laid(array: Array, made: Callable[[Array], Array]) -> Array:
    return made(array) if np.ndim(array) > 1 else np.asarray(array)


def strides(results: Any) -> list[tuple[int, ...]]:
    return [each.stride() for each in as_tuple(results) if isinstance(each, tg.Tensor)]


class Found(Exception):
    """Carries strides out of a trace, whose other effects are undone."""


Call = tuple[Callable[..., Any], Sequence[Any]]


def traced_strides(calls: Sequence[Call]) -> list[list[tuple[int, ...]]]:
    """Of the results of each call; one trace has all."""

    def noting(inputs: list[Any]) -> None:
        raise Found([strides(call(*each)) for (call, _), each in zip(calls, inputs, strict=True)])

    with pytest.raises(Found) as found:
        trace(noting, [list(inputs) for _, inputs in calls])
    return found.value.args[0]  # type: ignore[no-any-return]


def laid_calls(case: OpCase) -> dict[str, Call]:
    """A row's calls with tensors that lie in memory in several ways."""
    calls: dict[str, Call] = {}
    for variant in (case, *map(case.with_shapes, case.more)):
        arrays = variant.arrays(case.dtypes[0])
        if not all(np.size(each) for each in arrays):
            continue  # what has no elements has no order
        for number in range(len(LAYOUTS) + 2):
            layouts = [LAYOUTS[(number + at * (number > 4)) % 5] for at in range(len(arrays))]
            inputs = [tg.from_numpy(laid(each, made)) for made, each in zip(layouts, arrays)]
            label = [(made.__name__, each.shape) for made, each in zip(layouts, arrays)]
            calls[str(label)] = variant.function, inputs
    return calls


PARTS = 4
"""So many tests share the rows."""


@pytest.mark.parametrize("part", range(PARTS))
def test_a_trace_knows_the_strides_of_eager_results(part: int) -> None:
    def check(case: OpCase) -> None:
        calls = laid_calls(case)
        eager = [strides(function(*inputs)) for function, inputs in calls.values()]
        traced = traced_strides(list(calls.values()))
        assert dict(zip(calls, traced)) == dict(zip(calls, eager))

    check_rows(rotating(LAID_OUT, 3)[part::PARTS], check, lambda case: case.name)


def is_dense(tensor: tg.Tensor) -> bool:
    """Whether the elements fill a block of memory, but for axes of one element."""
    pairs = sorted((step, size) for step, size in zip(tensor.stride(), tensor.shape) if size > 1)
    expected = 1
    for step, size in pairs:
        if step != expected:
            return False
        expected *= size
    return True


def steps(tensor: tg.Tensor) -> tuple[int, ...]:
    """Strides without axes of one element."""
    return tuple(step for step, size in zip(tensor.stride(), tensor.shape) if size > 1)


COMPILED_TOGETHER = 10


@pytest.mark.parametrize("first", range(0, len(LAID_OUT), COMPILED_TOGETHER))
def test_compiled_results_lie_in_memory_as_eager_ones(first: int) -> None:
    rows = LAID_OUT[first : first + COMPILED_TOGETHER]
    calls = {(row.name, name): call for row in rows for name, call in laid_calls(row).items()}
    functions = [function for function, _ in calls.values()]
    inputs = [list(each) for _, each in calls.values()]

    def all_of_them(inputs: list[Any]) -> list[Any]:
        return [function(*each) for function, each in zip(functions, inputs, strict=True)]

    eager, found = all_of_them(inputs), compiled(all_of_them)(inputs)
    for name, one, other in zip(calls, eager, found, strict=True):
        for a, b in zip(as_tuple(one), as_tuple(other), strict=True):
            if isinstance(a, tg.Tensor) and is_dense(a):
                assert steps(a) == steps(b), name


@pytest.mark.parametrize("made", [transposed, channels_last], ids=lambda each: each.__name__)
def test_results_that_are_saved_for_gradients_lie_so_too(made: Callable[[Array], Array]) -> None:
    def results(x: Any) -> tuple[Any, ...]:
        a = x.exp()  # saved as it is returned
        b = (a * x).tanh()
        return a, b, b.transpose(0, 1), a.relu().contiguous(), b

    def derivatives(function: Any, x: Any) -> list[Any]:
        found = function(x)
        loss = sum((each * (at + 1)).sum() for at, each in enumerate(found))
        (first,) = tg.autograd.grad(loss, x, create_graph=True)
        (second,) = tg.autograd.grad((first * first).sum(), x)
        return [*found, first, second]

    array = made(np.random.default_rng(2).standard_normal((2, 3, 4, 5)))
    compiled_results = compiled(results)
    for _ in range(2):
        x, y = (tg.from_numpy(made(array)).requires_grad_() for _ in range(2))
        for a, b in zip(derivatives(results, x), derivatives(compiled_results, y), strict=True):
            np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-12)
        assert [each.stride() for each in compiled_results(y)] == [
            each.stride() for each in results(x)
        ]


# -- PyTorch ---------------------------------------------------------------------------------


BASIC: dict[str, Callable[..., Any]] = {
    "mul": lambda T, x, y: x * y,
    "mul a number": lambda T, x, y: x * 2,
    "subtract from a number": lambda T, x, y: 2 - x,
    "exp": lambda T, x, y: x.exp(),
    "compare": lambda T, x, y: x > y,
    "where": lambda T, x, y: T.where(x > 0, y, x),
    "cast": lambda T, x, y: x.double(),
    "clone": lambda T, x, y: x.clone(),
    "contiguous": lambda T, x, y: x.contiguous(),
    "flip": lambda T, x, y: x.flip(0),
    "row": lambda T, x, y: x + y[:1],
    "column": lambda T, x, y: y[..., :1] + x,
    "last rows": lambda T, x, y: y[-1] + x,
    "unsqueeze": lambda T, x, y: x.unsqueeze(1) * y.unsqueeze(0),
    "sum": lambda T, x, y: x.sum(0),
    "sum keepdim": lambda T, x, y: (x * y).sum(-1, keepdim=True),
    "amax": lambda T, x, y: x.amax(1),
    "argmax": lambda T, x, y: x.argmax(0),
    "matmul": lambda T, x, y: x @ y.transpose(-1, -2),
    "index": lambda T, x, y: x.index_select(1, T.tensor([1, 0])),
    "gather": lambda T, x, y: x.gather(0, T.zeros(2, *x.shape[1:]).long()),
    "stack": lambda T, x, y: T.stack([x, y]),
    "cumsum": lambda T, x, y: x.cumsum(1),
    "tril": lambda T, x, y: x.tril(),
}


@pytest.mark.parametrize("shape", [(3, 4), (2, 3, 4)], ids=str)
def test_strides_of_basic_operations_are_those_of_pytorch(shape: tuple[int, ...]) -> None:
    torch = pytest.importorskip("torch", reason="compares with PyTorch, which is not installed")
    array = np.random.default_rng(0).standard_normal(shape)
    both = {
        f"{first.__name__}, {second.__name__}": (first(array), second(array))
        for first in LAYOUTS
        for second in LAYOUTS
    }

    def check(name: str) -> None:
        def call(x: Any, y: Any) -> Any:
            return BASIC[name](tg, x, y)

        theirs = {
            label: [BASIC[name](torch, *(from_array(torch, each) for each in pair)).stride()]
            for label, pair in both.items()
        }
        calls = [(call, [tg.from_numpy(each) for each in pair]) for pair in both.values()]
        eager = [strides(call(*inputs)) for call, inputs in calls]
        assert dict(zip(both, eager)) == theirs
        assert dict(zip(both, traced_strides(calls))) == theirs

    check_rows(BASIC, check)


def from_array(torch: Any, array: Array) -> Any:
    """A tensor of PyTorch that lies in memory as `array`, which may be read-only."""
    steps = [stride // array.itemsize for stride in array.strides]
    line = torch.arange(1.0 + sum((n - 1) * s for n, s in zip(array.shape, steps)))
    return line.double().as_strided(array.shape, steps)


# -- views or copies -------------------------------------------------------------------------

X_SHAPE = (2, 3, 4)


def random_program(seed: int) -> list[tuple[str, tuple[int, ...]]]:
    """Steps of a program: names of `STEPS`, and the numbers that they choose by."""
    pick = Random(seed)
    names = [*STEPS, "reshape", "write"]
    return [(pick.choice(names), tuple(pick.randrange(1000) for _ in range(4))) for _ in range(12)]


def run_program(program: Any, x: Any, y: Any) -> list[Any]:
    """The tensors that are left, and what was said about the memory of each."""
    made, said = [x, y, x.transpose(0, 2) * 2], []
    for name, numbers in program:
        source, other = made[numbers[0] % len(made)], made[numbers[1] % len(made)]
        result = STEPS[name](source, other, numbers)
        if result is not None:
            made.append(result)
            said.append((result.stride(), result.is_contiguous()))
    return [*made, *said]


def _permuted(x: Any, y: Any, numbers: Any) -> Any:
    axes = list(range(x.ndim))
    Random(numbers[2]).shuffle(axes)
    return x.permute(*axes)


def _elementwise(x: Any, y: Any, numbers: Any) -> Any:
    return x * y if x.shape == y.shape else x * 3


def _write(x: Any, y: Any, numbers: Any) -> None:
    x.add_(y if x.shape == y.shape else numbers[2] % 7)


def _reshaped(x: Any, y: Any, numbers: Any) -> Any:
    wanted = [(-1,), (x.shape[0], -1), (-1, x.shape[-1]), (1, *x.shape, 1)][numbers[2] % 4]
    return x.reshape(*wanted)


def _viewed(x: Any, y: Any, numbers: Any) -> Any:
    try:
        return x.view(-1)
    except RuntimeError:
        return x + 1


STEPS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "permute": _permuted,
    "slice": lambda x, y, numbers: x[..., numbers[2] % 2 :],
    "spread slice": lambda x, y, numbers: x[:: 1 + numbers[2] % 2],
    "elementwise": _elementwise,
    "sum": lambda x, y, numbers: x + x.sum(0, keepdim=True),
    "clone": lambda x, y, numbers: x.clone(),
    "contiguous": lambda x, y, numbers: x.contiguous(),
    "reshape": _reshaped,
    "flatten": lambda x, y, numbers: x.flatten(numbers[2] % x.ndim),
    "view": _viewed,
    "write": _write,
    "copy": lambda x, y, numbers: x.copy_(y) if x.shape == y.shape else None,
    "cast": lambda x, y, numbers: x.double().float(),
}


def starts(T: Any) -> tuple[Any, Any]:
    x = T.arange(24.0).reshape(4, 2, 3).permute(1, 2, 0)
    return x.clone(), T.arange(24.0).reshape(X_SHAPE)


@pytest.mark.parametrize("group", range(3))
def test_random_views_and_writes(group: int) -> None:
    """Values, strides and what is a view: eager, compiled, and PyTorch where it is installed."""
    programs = [random_program(seed) for seed in range(20 * group, 20 * group + 20)]
    judge = import_module("torch") if find_spec("torch") else tg

    def together(inputs: list[Any]) -> list[Any]:
        return [run_program(each, *pair) for each, pair in zip(programs, inputs, strict=True)]

    everything = compiled(together)([starts(tg) for _ in programs])

    def check(seed: int) -> None:
        wanted = run_program(programs[seed % 20], *starts(judge))
        eager = run_program(programs[seed % 20], *starts(tg))
        for each in zip(wanted, eager, everything[seed % 20], strict=True):
            assert_same_memory(*each)

    check_rows(range(20 * group, 20 * group + 20), check, lambda seed: f"seed {seed}")


def assert_same_memory(theirs: Any, eager: Any, found: Any) -> None:
    if isinstance(theirs, tuple):
        assert eager == theirs
        assert found == eager
        return
    np.testing.assert_array_equal(eager.numpy(), theirs.numpy())
    np.testing.assert_array_equal(found.numpy(), eager.numpy())
    if is_dense(eager):
        assert steps(found) == steps(eager)
