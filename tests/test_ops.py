"""Every row of the table of operations: values, dtypes, compiled code, derivatives, layouts."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import pytest
from batches import Batches, Call, run_compiled
from complex_cases import CASES as COMPLEX_CASES
from opcase import SMALLEST, Argument, Array, OpCase
from opcases import CASES
from tgraph.compiler.ir import PRIMITIVES

import tgraph as tg
from tgraph.compiled.compile import compile as compiled
from tgraph.core.context import use_context
from tgraph.core.eager_context import EAGER
from tgraph.tracing import trace

COMPILED = [case for case in CASES if case.compiles]
SMOOTH = [case for case in CASES if case.gradient]
STEP = 1e-6


def ids(case: OpCase) -> str:
    return case.name.replace(" ", "_")


def as_tuple(result: Any) -> tuple[Any, ...]:
    return result if isinstance(result, tuple) else (result,)


def tensors(arrays: Sequence[Array]) -> list[Any]:
    return [tg.from_numpy(np.array(array)) for array in arrays]


def check(case: OpCase, dtype: Any, found: Any, expected: Any, what: str) -> None:
    """Shapes, dtypes and values of one result or several."""
    found, expected = as_tuple(found), as_tuple(expected)
    assert len(found) == len(expected), f"{what}: {len(found)} results, expected {len(expected)}"
    for number, (have, want) in enumerate(zip(found, expected, strict=True)):
        result = case.result_dtype(dtype, number)
        label = f"{what}, result {number} of dtype {dtype.name}"
        want = np.asarray(want)
        assert have.dtype is result, f"{label}: dtype {have.dtype}, expected {result}"
        assert tuple(have.shape) == want.shape, f"{label}: {have.shape}, expected {want.shape}"
        check_values(have.detach().numpy(), want.astype(result.numpy), case.tolerance, label)


def check_values(have: Array, want: Array, tolerance: float, label: str) -> None:
    if want.dtype.kind not in "fV":
        np.testing.assert_array_equal(have, want, err_msg=label)
        return
    name = "bfloat16" if want.dtype.kind == "V" else want.dtype.name
    allowed = tolerance * SMALLEST[name]
    have, want = have.astype(np.float64), want.astype(np.float64)
    np.testing.assert_allclose(have, want, rtol=allowed, atol=allowed, err_msg=label)


def variants(case: OpCase) -> Iterator[tuple[OpCase, Any]]:
    """The row with every dtype, then its other shapes with the first two."""
    for dtype in case.dtypes:
        yield case, dtype
    for shapes in case.more:
        for dtype in case.dtypes[:2]:
            yield case.with_shapes(shapes), dtype


@pytest.mark.parametrize("case", CASES, ids=ids)
def test_forward(case: OpCase) -> None:
    for variant, dtype in variants(case):
        arrays = variant.arrays(dtype)
        found = variant.function(*tensors(arrays))
        shapes = [array.shape for array in arrays]
        check(variant, dtype, found, variant.expected(arrays), f"{case.name} of {shapes}")


def _compiled_call(case: OpCase, number: int) -> Call | None:
    """The variant of a row with a number."""
    every = list(variants(case))
    if number >= len(every):
        return None
    variant, dtype = every[number]
    return Call(variant.function, tensors(variant.arrays(dtype)))


FORWARD = Batches(_compiled_call)


@pytest.mark.parametrize("case", COMPILED, ids=ids)
def test_compiled(case: OpCase, request: pytest.FixtureRequest) -> None:
    for number, (variant, dtype) in enumerate(variants(case)):
        inputs = tensors(variant.arrays(dtype))
        eager = as_tuple(variant.function(*inputs))
        found = as_tuple(FORWARD.result(request, case, number))
        assert len(eager) == len(found)
        for have, want in zip(found, eager, strict=True):
            label = f"{case.name} of {[list(each.shape) for each in inputs]} {dtype.name}"
            assert have.dtype is want.dtype, label
            assert have.shape == want.shape, label
            check_values(have.numpy(), want.numpy(), case.tolerance, label)


# -- derivatives -----------------------------------------------------------------------------


class Gradients:
    """A row as a function of its float inputs, in float64, with a direction for each."""

    def __init__(self, case: OpCase) -> None:
        self.case = case
        self.inputs = case.arrays(tg.float64)
        self.moving = [at for at, each in enumerate(case.arguments) if each.dtype is None]
        rng = np.random.default_rng(1)
        outputs = plainly(self.function, *tensors([self.inputs[at] for at in self.moving]))
        self.points = [self.inputs[at] for at in self.moving]
        self.cotangents = [rng.standard_normal(each.shape) for each in outputs]
        self.weights = [rng.standard_normal(each.shape) for each in self.points]
        self.directions = [rng.standard_normal(each.shape) for each in self.points]

    def function(self, *points: Any) -> tuple[Any, ...]:
        """The float results."""
        inputs: list[Any] = tensors(self.inputs)
        for at, point in zip(self.moving, points, strict=True):
            inputs[at] = point
        results = as_tuple(self.case.function(*inputs))
        return tuple(each for each in results if each.dtype is tg.float64)

    def first(self, *arguments: Any) -> tuple[Any, ...]:
        """The cotangents of the inputs, for points and then cotangents of the results."""
        points, cotangents = arguments[: len(self.points)], arguments[len(self.points) :]
        outputs = self.function(*points)
        return tuple(
            tg.autograd.grad(
                outputs, points, cotangents, create_graph=True, materialize_grads=True
            )
        )  # fmt: skip

    def second(self, *arguments: Any) -> tuple[Any, ...]:
        """The gradient of a weighted sum of `first` with respect to everything."""
        weights = tensors(self.weights)
        total = sum((g * w).sum() for g, w in zip(self.first(*arguments), weights, strict=True))
        if not total.requires_grad:  # no element depends on the arguments
            return tuple(tg.zeros_like(each) for each in arguments)
        return tuple(tg.autograd.grad(total, arguments, materialize_grads=True, allow_unused=True))

    def arguments(self) -> list[Any]:
        arrays = [*self.points, *self.cotangents]
        return [each.requires_grad_() for each in tensors(arrays)]


def plainly(function: Callable[..., Any], *args: Any) -> Any:
    """What a function gives as it is written: there are no plans in a named context."""
    with use_context(EAGER):
        return function(*args)


def slope(function: Callable[..., Sequence[Any]], points: Sequence[Array],
          directions: Sequence[Array], weights: Sequence[Array]) -> float:  # fmt: skip
    """The derivative along `directions` of a weighted sum of results, by central differences."""
    ends = []
    for step in (STEP, -STEP):
        moved = [x + step * v for x, v in zip(points, directions, strict=True)]
        results = plainly(function, *[each.requires_grad_() for each in tensors(moved)])
        ends.append([each.detach().numpy() for each in results])
    pairs = zip(weights, *ends, strict=True)
    return float(sum(np.sum(w * (high - low)) for w, high, low in pairs)) / (2 * STEP)


def close(found: float, expected: float, tolerance: float, what: str) -> None:
    assert found == pytest.approx(expected, rel=tolerance, abs=tolerance), what


@pytest.mark.parametrize("case", SMOOTH, ids=ids)
def test_gradient(case: OpCase) -> None:
    row = Gradients(case)
    found = plainly(row.first, *row.arguments())
    along = sum(np.sum(g.detach().numpy() * v) for g, v in zip(found, row.directions, strict=True))
    expected = slope(row.function, row.points, row.directions, row.cotangents)
    close(float(along), expected, 1e-6, f"gradient of {case.name}")


@pytest.mark.parametrize("case", [case for case in SMOOTH if case.second], ids=ids)
def test_second_gradient(case: OpCase) -> None:
    row = Gradients(case)
    found = plainly(row.second, *row.arguments())
    rng = np.random.default_rng(2)
    directions = [rng.standard_normal(each.shape) for each in (*row.points, *row.cotangents)]
    along = sum(np.sum(g.detach().numpy() * v) for g, v in zip(found, directions, strict=True))
    points = [*row.points, *row.cotangents]
    expected = slope(row.first, points, directions, row.weights)
    close(float(along), expected, 1e-5, f"second gradient of {case.name}")


def _gradient_call(case: OpCase, _: None) -> Call:
    row = Gradients(case)
    return Call(row.first, row.arguments())


def _second_gradient_call(case: OpCase, _: None) -> Call:
    row = Gradients(case)
    return Call(row.second, row.arguments())


class Differentiated(NamedTuple):
    """A row whose compiled function is differentiated."""

    function: Callable[..., Any]
    inputs: Sequence[Any]
    cotangents: Sequence[Any]


def _around_call(case: OpCase, _: None) -> Differentiated:
    row = Gradients(case)
    points = [each.requires_grad_() for each in tensors(row.points)]
    return Differentiated(row.function, points, tensors(row.cotangents))


def _run_around(calls: Sequence[Differentiated]) -> list[Any]:
    """The gradients of a compiled function of many rows, in one backward pass."""
    outputs = [output for each in run_compiled(calls) for output in each]
    points = [point for call in calls for point in call.inputs]
    cotangents = [each for call in calls for each in call.cotangents]
    found = iter(tg.autograd.grad(outputs, points, cotangents, materialize_grads=True))
    return [tuple(islice(found, len(call.inputs))) for call in calls]


INSIDE = Batches(_gradient_call, 10)
AROUND = Batches(_around_call, 10, _run_around)
SECOND = Batches(_second_gradient_call, 6)


@pytest.mark.parametrize("case", [c for c in SMOOTH if c.compiles], ids=ids)
def test_compiled_gradient(case: OpCase, request: pytest.FixtureRequest) -> None:
    """Differentiated inside a compiled function, and a compiled function differentiated.

    A third of the rows in each run: each row's rules are held by `test_gradient`, its operations
    compiled by `test_compiled`.
    """
    row = Gradients(case)
    expected = plainly(row.first, *row.arguments())
    for how, batches in {"inside": INSIDE, "around": AROUND}.items():
        found = batches.result(request, case)
        for have, want in zip(found, expected, strict=True):
            check_values(have.detach().numpy(), want.detach().numpy(), 1e5, f"{how} {case.name}")


@pytest.mark.parametrize("case", [c for c in SMOOTH if c.second and c.compiles], ids=ids)
def test_compiled_second_gradient(case: OpCase, request: pytest.FixtureRequest) -> None:
    row = Gradients(case)
    expected = plainly(row.second, *row.arguments())
    for have, want in zip(SECOND.result(request, case), expected, strict=True):
        check_values(have.detach().numpy(), want.detach().numpy(), 1e6, case.name)


# -- layouts ---------------------------------------------------------------------------------


def spaced(array: Array) -> Array:
    """The same elements, every other one of a longer last axis."""
    if array.ndim == 0:
        return array
    wide = np.zeros((*array.shape[:-1], 2 * array.shape[-1]), array.dtype)
    wide[..., ::2] = array
    return wide[..., ::2]


def transposed(array: Array) -> Array:
    """The same elements, with the axes in memory the other way round."""
    return np.ascontiguousarray(array.T).T if array.ndim > 1 else array


def repeated(array: Array) -> Array:
    """The first entry of the first axis, again and again, by a stride of 0."""
    if array.ndim == 0 or array.shape[0] == 0:
        return array
    return np.broadcast_to(array[:1], array.shape)


LAYOUTS = (spaced, transposed, repeated)


def _laid_out(case: OpCase, layout: Callable[[Array], Array]) -> list[Array]:
    """The inputs of a row, those of the row's dtype in another layout."""
    arrays = case.arrays(case.dtypes[0])
    free = [argument.dtype is None for argument in case.arguments]
    return [layout(a) if f else a for a, f in zip(arrays, free, strict=True)]


def _layout_call(case: OpCase, layout: Callable[[Array], Array]) -> Call | None:
    if not case.compiles:
        return None
    return Call(case.function, [_strided(array) for array in _laid_out(case, layout)])


LAID_OUT = Batches(_layout_call)


@pytest.mark.parametrize("case", [case for case in CASES if case.layouts], ids=ids)
def test_layouts(case: OpCase, request: pytest.FixtureRequest) -> None:
    """Inputs that are not contiguous, eager and compiled."""
    for layout in LAYOUTS:
        laid = _laid_out(case, layout)
        expected = as_tuple(case.function(*tensors(laid)))
        runs = {"eager": case.function(*[_strided(array) for array in laid])}
        if case.compiles:
            runs["compiled"] = LAID_OUT.result(request, case, layout)
        for how, found in runs.items():
            label = f"{case.name}, {layout.__name__}, {how}"
            for have, want in zip(as_tuple(found), expected, strict=True):
                check_values(have.numpy(), want.numpy(), case.tolerance, label)


def _strided(array: Array) -> Any:
    """A tensor that lies in memory as `array` does."""
    if array.ndim and 0 in array.strides and array.shape[0] > 1:
        return tg.from_numpy(np.array(array[:1])).expand(*array.shape)
    return tg.from_numpy(array)


@pytest.mark.parametrize("case", [case for case in SMOOTH if case.layouts], ids=ids)
def test_gradient_layouts(case: OpCase) -> None:
    """Gradients do not depend on how inputs lie in memory."""
    row = Gradients(case)
    expected = plainly(row.first, *row.arguments())
    for layout in (spaced, transposed):
        points = [tg.from_numpy(layout(each)).requires_grad_() for each in row.points]
        cotangents = [tg.from_numpy(layout(each)) for each in row.cotangents]
        for have, want in zip(plainly(row.first, *points, *cotangents), expected, strict=True):
            assert have.shape == want.shape
            check_values(have.detach().numpy(), want.detach().numpy(), 1e3, case.name)


# -- promotion -------------------------------------------------------------------------------

DTYPES = (tg.bool, tg.uint8, tg.int8, tg.int16, tg.int32, tg.int64, tg.float16, tg.bfloat16,
          tg.float32, tg.float64)  # fmt: skip
SCALARS = (True, 2, 1.5)


def mixed(x: Any, y: Any) -> tuple[Any, ...]:
    """Operations that promote: of arithmetic, choice and comparison one each."""
    return tg.add(x, y), tg.mul(x, y), tg.maximum(x, tg.mul(y, y)), tg.eq(x, y), tg.div(x, y)


def values(dtype: Any, shape: tuple[int, ...]) -> Array:
    return np.resize(np.array([1, 3, 2, 1]), shape).astype(dtype.numpy)


@pytest.mark.parametrize("other", DTYPES, ids=str)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_promotion(dtype: Any, other: Any) -> None:
    """Tensors of two dtypes, with dimensions and without: as after casting both, everywhere."""
    run = compiled(mixed)
    for shapes in [((4,), (4,)), ((4,), ()), ((), (4,)), ((), ())]:
        x, y = tensors([values(dtype, shapes[0]), values(other, shapes[1])])
        both = tg.result_type(x, y)
        expected = mixed(x.to(both), y.to(both))
        for found in (mixed(x, y), run(x, y)):
            for have, want in zip(found, expected, strict=True):
                assert have.dtype is want.dtype, (dtype, other, shapes)
                check_values(have.numpy(), want.numpy(), 4, f"{dtype} {other} {shapes}")


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_promotion_of_scalars(dtype: Any) -> None:
    for scalar in SCALARS:
        run = compiled(lambda x, s=scalar: (x * s, s + x, tg.div(x, s), x == s))
        for shape in ((4,), ()):
            (x,) = tensors([values(dtype, shape)])
            both = tg.result_type(x, scalar)
            wide = x.to(both)
            number = tg.tensor(scalar).to(both)
            expected = wide * number, number + wide, tg.div(wide, number), wide == number
            for found in (run(x), (x * scalar, scalar + x, tg.div(x, scalar), x == scalar)):
                for have, want in zip(found, expected, strict=True):
                    assert have.dtype is want.dtype, (dtype, scalar, shape)
                    check_values(have.numpy(), want.numpy(), 4, f"{dtype} {scalar} {shape}")


# -- the table itself ------------------------------------------------------------------------

# Public functions that have tests of their own: they make tensors, draw random numbers, ask for
# something that is no tensor, set a mode, or transform functions.
OTHER_MODULES = (
    "autograd", "compile", "creation", "from_data", "generator", "random_fills", "draw",
    "views", "dtype_info", "parallel", "printing", "promotion", "random", "count_draws",
    "tracing", "operands", "grad_mode", "transforms", "inference", "device", "products", "amp.",
    "ops.branches", "ops.loops", "ops.row_scans", "ops.typed", "serialization", "graphs.",
    "precision", "determinism", "low_rank", "settings", "symbolic", "removed",
    "buffers_and_files", "ops.deprecated", "inplace_functions", "anomaly_mode",
    "pools_with_indices", "sparse_parts",
)  # fmt: skip
NO_ROWS = {
    "broadcast_shapes", "from_dlpack", "fused", "is_tensor", "numel", "is_floating_point",
    "is_complex", "tril_indices", "triu_indices",
    "gumbel_softmax", "dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout",
    "feature_alpha_dropout", "embedding_renorm", "get_device", "is_distributed", "is_inference",
    "is_conj", "is_neg", "is_nonzero", "is_same_size", "is_signed", "typename",
}  # fmt: skip


def public_operations() -> dict[str, str]:
    """The functions that users find in tgraph and tgraph.nn.functional: name and module.

    Names that are imported at their first use are asked for, too: what is found must not
    depend on which tests ran before.
    """
    found = {}
    for namespace in (tg, tg.nn.functional):
        for name in {*vars(namespace), *dir(namespace)}:
            value = getattr(namespace, name)
            if inspect.isfunction(value) and not name.startswith("_"):
                found[value.__name__] = _home(value)
    return found


def _home(function: Any) -> str:
    """The module that defines a function, which says that it is of the namespace."""
    while function.__module__ in (tg.__name__, tg.nn.functional.__name__):
        if not hasattr(function, "__wrapped__"):
            break
        function = function.__wrapped__
    return str(function.__module__)


def test_every_operation_has_a_row() -> None:
    covered = {name for case in CASES for name in case.operation.split(",")}
    covered |= {case.name for case in COMPLEX_CASES}
    missing = {
        name
        for name, module in public_operations().items()
        if name.rstrip("_") not in covered | NO_ROWS
        and not any(each in module for each in OTHER_MODULES)
    }
    assert missing == set()
    assert {"tril", "triu", "diag", "meshgrid"} <= covered


def test_names_tell_rows_apart() -> None:
    names = [case.name for case in CASES]
    assert len(names) == len(set(names))


# Primitives that no function of tensors applies on its own account.
ELSEWHERE = {
    "input", "constant", "copy", "random_bits", "transfer", "require", "host_call",
    "branch", "loop", "barrier", "csr_matmul",
    "attention", "attention_rows", "attention_gradient", "sort", "assemble",
}  # fmt: skip


def test_every_primitive_is_reached() -> None:
    found: set[str] = set()
    for case in COMPILED:
        for dtype in (case.dtypes[0], case.dtypes[-1]):
            graph = trace(case.function, *tensors(case.arrays(dtype)))
            found.update(node.primitive.name for node in graph.nodes)
    for each in COMPLEX_CASES:
        graph = trace(partial(each.function, tg), *map(tg.from_numpy, each.arrays()))
        found.update(node.primitive.name for node in graph.nodes)
    for case in SMOOTH[::7]:
        row = Gradients(case)
        if case.compiles:
            graph = trace(row.first, *row.arguments())
            found.update(node.primitive.name for node in graph.nodes)
    assert set(PRIMITIVES) - found <= ELSEWHERE


def test_arguments_of_rows_are_deterministic() -> None:
    case = CASES[0]
    assert isinstance(case.arguments[0], Argument)
    for one, other in zip(case.arrays(tg.float32), case.arrays(tg.float32), strict=True):
        np.testing.assert_array_equal(one, other)
