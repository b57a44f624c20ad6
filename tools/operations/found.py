"""The operations, their rows in the tables of tests, and what is found by running those."""

from __future__ import annotations

import inspect
import re
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from complex_cases import CASES as COMPLEX
from complex_cases import ComplexCase
from opcase import OpCase
from opcases import CASES
from source_cases import CONVERSIONS, SOURCES
from test_batch_and_tangents import ROWS
from test_batch_and_tangents import (
    test_examples_of_a_batch_are_as_one_by_one as check_batch,
)
from test_batch_and_tangents import test_tangents_are_the_transpose_of_gradients as check_tangents
from test_ops import Gradients, check_values, tensors
from test_ops import test_gradient as check_gradient
from test_ops import test_second_gradient as check_second

import tgraph as tg
import tgraph.nn.functional as F
from tgraph.core.public import OPERATIONS

ROWS.update({case.name: case for case in CONVERSIONS})
COLUMNS = ("CPU", "CUDA", "gradient", "double gradient", "forward mode", "vmap", "compiled",
           "fused")  # fmt: skip
YES, NONE, NO = "yes", "–", "no"
PAGE = Path(__file__).parents[2] / "docs" / "operations.md"

_BY_VALUES = "What it gives, a value decides, and it is no tensor; PyTorch's compiler breaks there"
_COUNTS = "PyTorch has no gradient either: where a value lies decides, and a step has none"
_PIVOTS = "PyTorch has no gradient either: values choose the order of rows; `linalg.eigh` has one"
WHY_NOT = {
    "allclose": f"{_BY_VALUES}.", "equal": f"{_BY_VALUES}.",
    "bincount": "How long it is, the greatest value decides, and PyTorch's compiler breaks there; "
    "`histc` and `scatter_add` have sizes of their own.",
    "detach_copy": "It cuts gradients off, which is what it is for.",
    "histogram": f"{_COUNTS}.", "histogramdd": f"{_COUNTS}.",
    "unique": f"{_COUNTS}.", "unique_consecutive": f"{_COUNTS}.",
    "linalg.ldl_factor": f"{_PIVOTS}.", "linalg.ldl_factor_ex": f"{_PIVOTS}.",
    "linalg.ldl_solve": "Its matrix comes from `linalg.ldl_factor`; `linalg.solve` has gradients.",
}  # fmt: skip
"""Why an operation has a cell that says no."""


class Found(NamedTuple):
    """One operation: its names, and a cell for each of COLUMNS."""

    name: str
    forms: str
    cells: tuple[str, ...]


def operations() -> dict[str, dict[str, list[Any]]]:
    """Family -> operation -> its rows: of OpCases, of complex numbers, or of what makes tensors."""
    rows: dict[str, list[Any]] = {}
    for case in CASES:
        for name in case.operation.split(","):
            rows.setdefault(name, []).append(case)
    for case in COMPLEX:
        if case.name in OPERATIONS and not any(
            isinstance(each, OpCase) for each in rows.get(case.name, ())
        ):
            rows.setdefault(case.name, []).append(case)
    for each in CONVERSIONS:
        rows[each.name] = [each]
    for calls in SOURCES.values():
        rows.update({name: [call] for name, call in calls.items()})
    aliases = {
        alias for name in rows.keys() & OPERATIONS.keys() for alias in OPERATIONS[name].aliases
    }
    found: dict[str, dict[str, list[Any]]] = {}
    for name in sorted(rows.keys() - aliases):
        found.setdefault(family(name), {})[name] = rows[name]
    small = [title for title, own in found.items() if len(own) < 4]
    others = {name: own for title in small for name, own in found.pop(title).items()}
    return {**dict(sorted(found.items())), "others": dict(sorted(others.items()))}


def all_rows() -> dict[str, list[Any]]:
    """Operation -> its rows, of all families."""
    return {name: rows for family in operations().values() for name, rows in family.items()}


def cells_of_page() -> dict[str, tuple[str, ...]]:
    """Operation -> the cells that the page has behind its names."""
    found = {}
    for line in PAGE.read_text().splitlines():
        names, *cells = (each.strip() for each in line.strip("|").split(" | "))
        if line.startswith("| `") and len(cells) == len(COLUMNS) + 1:
            found[re.findall("`(.*?)`", names)[0]] = tuple(cells)
    return found


def family(name: str) -> str:
    """The namespace in its name, or the module that it stands in."""
    if "." in name:
        return name.split(".")[0]
    declared = OPERATIONS.get(name) or OPERATIONS.get(name + "_")
    function = declared.function if declared else getattr(F, name, None) or getattr(tg, name, None)
    if function is None:
        return "indexing"
    module = getattr(inspect.unwrap(function), "__module__", name)
    return module.split(".")[-1].replace("_", " ")


def unlisted() -> set[str]:
    """Declared operations that no table has, which the page would not show."""
    shown = {name for rows in operations().values() for name in rows}
    return {each for each in OPERATIONS if each not in shown and each.rstrip("_") not in shown}


def forms(name: str) -> str:
    """In which forms users call it: function, method, in place, with `out=`."""
    declared = OPERATIONS.get(name)
    if declared is None:
        return "f"
    flags = {"f": declared.is_function, "m": declared.is_method, "i": declared.inplace,
             "o": declared.out}  # fmt: skip
    return " ".join(letter for letter, has in flags.items() if has)


def names(name: str) -> str:
    declared = OPERATIONS.get(name)
    return ", ".join(f"`{each}`" for each in (declared.names if declared else (name,)))


# -- kernels ---------------------------------------------------------------------------------


def neighboured(function: Callable[..., Any], only: int | None = None) -> Callable[..., Any]:
    """With an elementwise function in front of it and two behind it; one result or all."""

    def probe(*inputs: tg.Tensor) -> Any:
        given = [2 * each if each.dtype.is_floating_point else each for each in inputs]
        results = [each for each in tg.pytree.leaves(function(*given)) if tg.is_tensor(each)]
        results = results if only is None else results[only : only + 1]
        return [_with_more(each) for each in results]

    return probe


def _with_more(x: tg.Tensor) -> tg.Tensor:
    if x.dtype is tg.bool:
        return ~x
    return x * 3 + 1 if x.dtype.is_complex else tg.relu(x * 3)


def steps(program: Any) -> str:
    """Such as "one kernel", or "2 kernels, gemm"."""
    kinds = Counter(each.kind for each in program.kernels)
    kernels = kinds.pop("kernel", 0)
    parts = [f"{kernels} kernels"] if kernels > 1 else ["one kernel"] if kernels else []
    parts += [kind if many == 1 else f"{many} {kind}" for kind, many in sorted(kinds.items())]
    return ", ".join(parts) or "folded"


def fused(name: str, case: Any) -> tuple[str, str]:
    """The steps that `neighboured` becomes on the CPU and on a GPU, or "" where it is no plan."""
    inputs = _inputs(case)
    function = _function(case)
    only = None
    if isinstance(case, OpCase) and "," in case.operation:
        group = case.operation.split(",")
        results = tg.pytree.leaves(function(*inputs))
        if len(results) == len(group):
            only = group.index(name)
        else:
            function, inputs = _alone(name)
            if function is None:
                return "in a group", "in a group"
    probe = neighboured(function, only)
    return _steps_of(tg.tracing.program, probe, inputs), _steps_of(tg.cuda.program, probe, inputs)


def _alone(name: str) -> tuple[Callable[..., Any] | None, list[tg.Tensor]]:
    """The function itself, of one matrix or several, where that is a call of it."""
    at: Any = tg
    for part in name.split("."):
        at = getattr(at, part, None) or getattr(F, part, None)
    matrix = np.eye(3, dtype=np.float32) * 2 + 0.25
    for count in (1, 2, 3):
        inputs = tensors([matrix] * count)
        try:
            tg.pytree.leaves(at(*inputs))
        except (RuntimeError, TypeError, ValueError):
            continue
        return at, inputs
    return None, []


def _steps_of(program: Any, probe: Any, inputs: list[tg.Tensor]) -> str:
    try:
        return steps(program(probe, *inputs))
    except tg.TraceError:  # what selects by data runs in stages, or not at all
        return ""


def _inputs(case: Any) -> list[tg.Tensor]:
    if isinstance(case, OpCase):
        return tensors(case.arrays(case.dtypes[0]))
    if isinstance(case, ComplexCase):
        return [tg.from_numpy(each) for each in case.arrays(np.complex64)]
    return []


def _function(case: Any) -> Callable[..., Any]:
    if isinstance(case, OpCase):
        return case.function
    return partial(case.function, tg) if isinstance(case, ComplexCase) else case


# -- cells -----------------------------------------------------------------------------------


def flagged(rows: list[Any], flag: str) -> bool:
    """Whether a test in CI holds one of the rows to it."""
    return any(getattr(each, flag, False) for each in rows)


def found(name: str, rows: list[Any]) -> Found:
    """All cells of an operation, by running its rows."""
    if not isinstance(rows[0], (OpCase, ComplexCase)):
        return Found(name, forms(name), _source_cells(rows[0]))
    derive = _complex_derivatives if isinstance(rows[0], ComplexCase) else _derivatives
    gradient, second, forward, batched = derive(rows)
    here, there = fused(name, rows[0])
    cells = (YES, YES if there else "eager", gradient, second, forward, batched,
             compiles(rows, here), fused_cell(here, there))  # fmt: skip
    return Found(name, forms(name), cells)


def fused_cell(here: str, there: str) -> str:
    if not here:
        return NONE
    return here if here == there or not there else f"{here}; CUDA {there}"


def compiles(rows: list[Any], planned: str) -> str:
    case = rows[0]
    if isinstance(case, ComplexCase) or flagged(rows, "compiles"):
        return YES
    run = tg.compile(case.function)
    try:
        pairs = zip(tg.pytree.leaves(run(*_inputs(case))),
                    tg.pytree.leaves(case.function(*_inputs(case))), strict=True)  # fmt: skip
        for have, want in pairs:
            check_values(np.asarray(have), np.asarray(want), case.tolerance, case.name)
    except tg.TraceError:
        return NO
    return YES if planned else "in stages"


NARROWING = ("bfloat16", "float", "half")  # differences are not exact enough


def _derivatives(rows: list[OpCase]) -> Iterator[str]:
    if rows[0].name in NARROWING:
        yield from ("as `to`",) * 3
        yield _batched(rows)
        return
    rows_of_floats = [each for each in rows if _has_floats(each)]
    smooth = [each for each in rows_of_floats if each.gradient] or [
        each for each in rows_of_floats if _passes(check_gradient, each)
    ]
    if not smooth:
        missing = NO if rows_of_floats else NONE
        yield from (missing, missing, missing)
    else:
        yield YES
        second = [each for each in smooth if each.second] or smooth
        yield _answer(check_second, second, lambda each: each)
        yield _answer(check_tangents, smooth, lambda each: each.name)
    yield _batched(rows)


def _answer(check: Callable[[Any], None], rows: list[OpCase], of: Callable[[OpCase], Any]) -> str:
    return YES if any(_passes(check, of(each)) for each in rows) else NO


@cache
def _passes(check: Callable[[Any], None], case: Any) -> bool:
    """Refusals of floats, or of gradients, and numbers that are not those of differences."""
    try:
        check(case)
    except (AssertionError, RuntimeError, TypeError, ValueError):
        return False
    return True


def _has_floats(case: OpCase) -> bool:
    if not any(each.is_floating_point for each in case.dtypes):
        return False
    try:
        row = Gradients(case)
    except (RuntimeError, TypeError, ValueError):
        return False
    return bool(row.cotangents and row.moving)


def _batched(rows: list[OpCase]) -> str:
    inputs = _inputs(rows[0])
    try:
        tg.vmap(rows[0].function)(*[tg.stack([each, each]) for each in inputs])
    except RuntimeError as error:
        if "randomness" in str(error):
            return "as `randomness` says"
        if "not one value to go by" not in str(error):
            raise
        return "by values: an error"
    return _answer(check_batch, rows, lambda each: each.name)


def _complex_derivatives(rows: list[ComplexCase]) -> Iterator[str]:
    case = rows[0]
    inputs = [tg.from_numpy(each).requires_grad_(case.gradient) for each in case.arrays()]
    function = partial(case.function, tg)
    if case.gradient:
        yield YES if tg.autograd.gradcheck(function, inputs) else NO
        yield YES if tg.autograd.gradgradcheck(function, inputs) else NO
        yield YES if tg.autograd.gradcheck(function, inputs, check_forward_ad=True) else NO
    else:
        yield from (NONE, NONE, NONE)
    plain = [each.detach() for each in inputs]
    batched = tg.vmap(function)(*[tg.stack([each, 2 * each]) for each in plain])
    apart = [function(*plain), function(*[2 * each for each in plain])]
    yield YES if tg.allclose(batched, tg.stack(apart)) else NO


def _source_cells(call: Callable[[], Any]) -> tuple[str, ...]:
    """What makes tensors has nothing to differentiate, nor a batch."""
    here, there = fused("", call)
    planned = YES if here else NO
    return (YES, YES if there else "eager", NONE, NONE, NONE, NONE, planned,
            fused_cell(here, there))  # fmt: skip
