"""The tables that a new primitive must be entered into, and whether its facts are true."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

import numpy as np
from tgraph.compiler.fusion.rules import is_step
from tgraph.compiler.ir import (
    PRIMITIVES,
    Builder,
    Family,
    IRTypeError,
    Primitive,
    TensorType,
    input_node,
)
from tgraph.compiler.ir import primitives as p
from tgraph.compiler.ir.monoids import MONOID_OF, Monoid
from tgraph.compiler.kernel import views
from tgraph.compiler.targets.cpu import scalar as llvm_scalar
from tgraph.compiler.targets.cuda import scalar as cuda_scalar
from tgraph.compiler.targets.cuda.stage_body import JOIN
from tgraph.runtime.arrays import FUNCTIONS, evaluate
from tgraph.runtime.dtypes import REAL_DTYPES, DType, bool_, float32

import tgraph.linalg  # noqa: F401 (the rules of factorizations come with it)
from tgraph.core.vjp_rules import NON_DIFFERENTIABLE, RULES, InputRules
from tools.parsed import files, tree_of

Array = np.ndarray[Any, Any]
ELEMENTWISE = [each for each in PRIMITIVES.values() if each.family is Family.ELEMENTWISE]
# Integers, booleans, positions and sources: nothing to differentiate.
NO_GRADIENT = {
    "input", "constant", "full", "iota", "random_bits", "get", "isnan", "isinf", "eq",
    "ne", "lt", "le", "gt", "ge", "logical_not", "logical_and", "logical_or", "logical_xor",
    "bitwise_not", "bitwise_and", "bitwise_or", "bitwise_xor", "shift_left", "shift_right",
    "argmax", "argmin", "any", "all",
    "argsort", "select_nth",
    # Of detached matrices only: what is solved with its factors has a rule for the matrix.
    "lu",
    # Written by passes, behind all gradients.
    "attention", "attention_rows", "attention_gradient", "sort", "assemble",
}  # fmt: skip


def test_every_primitive_has_an_array_function() -> None:
    assert set(FUNCTIONS) == set(PRIMITIVES) - {"input"}


def test_every_elementwise_primitive_has_a_scalar_template() -> None:
    names = {each.name for each in ELEMENTWISE} - {"cast", "bitcast", "require"}
    assert set(llvm_scalar.TEMPLATES) == names
    assert set(cuda_scalar.TEMPLATES) == names


def test_every_fusible_primitive_has_a_scalar_form() -> None:
    """What fusion takes, lowering can read and emit."""
    by_table = set(views._NEEDS) | {each.name for each in ELEMENTWISE}
    # Roots of their own; short reductions are written out, too.
    by_kernel = {"scatter_add", "index_put", *(each.name for each in MONOID_OF)}
    given = {"input"}
    steps = {
        "matmul",
        "convolution",
        "attention",
        "assemble",
        "attention_rows",
        "attention_gradient",
        "argsort",
        "select_nth",
        "sort",
        "csr_matmul",
        "host_call",
        "branch",
        "loop",
        "get",
        "transfer",
        *(each.name for each in PRIMITIVES.values() if each.family is Family.LIBRARY),
    }
    split = {each.name for each in PRIMITIVES.values() if each.family is Family.COMPLEX}
    assert by_table | by_kernel | given | steps | split == set(PRIMITIVES)
    for name in by_table | by_kernel:
        assert PRIMITIVES[name].family not in (Family.CONTRACTION, Family.OPAQUE, Family.GET)


def test_library_calls_and_python_functions_are_steps() -> None:
    build = Builder()
    x = input_node("x", TensorType((2, 2), float32))
    flags = {"transpose_a": False, "transpose_b": False}
    assert is_step(build.apply(PRIMITIVES["matmul"], [x, x], flags))
    assert not is_step(build.apply(PRIMITIVES["exp"], [x]))


def test_every_reduction_and_scan_has_a_monoid() -> None:
    folds = {each for each in PRIMITIVES.values() if each.family in (Family.REDUCE, Family.SCAN)}
    assert set(MONOID_OF) == folds
    assert set(JOIN) == {MONOID_OF[each] for each in folds}


def values_of(monoid: Monoid, dtype: DType) -> Array:
    if monoid.combine in (p.logical_or, p.logical_and):
        return np.array([False, True])
    extremes = [monoid.identity(dtype), 0, 1]
    return np.array(extremes if dtype is bool_ else [*extremes, 3], dtype.numpy)


def test_monoids_are_associative_and_have_identities() -> None:
    """As the primitive that joins results computes them, in every type that it takes."""
    for monoid in dict.fromkeys(MONOID_OF.values()):
        logical = monoid.combine in (p.logical_or, p.logical_and)
        for dtype in [bool_] if logical else REAL_DTYPES:
            if monoid.combine not in (p.add, p.mul) or dtype is not bool_:
                check_monoid(monoid, dtype)


def check_monoid(monoid: Monoid, dtype: DType) -> None:
    values, row = values_of(monoid, dtype), f"{monoid} of {dtype}"
    nothing = np.full_like(values, monoid.identity(dtype))
    for pair in ([nothing, values], [values, nothing]):
        found = evaluate(monoid.combine.name, pair, {})
        np.testing.assert_array_equal(found, values, err_msg=row)
    a, b, c = np.meshgrid(values, values, values)
    ab = evaluate(monoid.combine.name, [a, b], {})
    bc = evaluate(monoid.combine.name, [b, c], {})
    left = evaluate(monoid.combine.name, [ab, c], {})
    right = evaluate(monoid.combine.name, [a, bc], {})
    np.testing.assert_array_equal(left, right, err_msg=row)


def test_every_differentiable_primitive_has_a_gradient_rule() -> None:
    have = {each.name for each in (*RULES, *NON_DIFFERENTIABLE)}
    assert not set(PRIMITIVES) - NO_GRADIENT - have


# Operands that are conditions or positions.
NOT_DIFFERENTIATED = {
    "csr_matmul": {0, 1},
    "where": {0},
    "require": {0},
    "gather": {1},
    "scatter_add": {1},
}


def test_every_operand_has_a_gradient_rule() -> None:
    for name in sorted(each.name for each in RULES if each.name in PRIMITIVES):
        rules, primitive = RULES[PRIMITIVES[name]], PRIMITIVES[name]
        if isinstance(rules, InputRules):  # else one rule serves all operands
            assert primitive.arity is not None, name
            operands = set(range(primitive.arity)) - NOT_DIFFERENTIATED.get(name, set())
            assert set(rules.functions) == operands, name


# -- facts -----------------------------------------------------------------------------------


def samples(dtype: DType) -> Array:
    if dtype is bool_:
        return np.array([False, True])
    if dtype.is_floating_point:
        with np.errstate(all="ignore"):
            values = [0.0, -0.0, 1.0, -1.0, 2.5, -0.5, 1e30, -1e-30, np.inf, -np.inf, np.nan]
            return np.array(values).astype(dtype.numpy)
    info = np.iinfo(dtype.numpy)
    values = [0, 1, 2, 3, 7, 100, info.max, info.min]
    return np.array(values if info.min == 0 else [*values, -1, -2, -7], dtype.numpy)


def same(a: Array, b: Array) -> bool:
    """Equal, NaN with NaN; zeros of either sign are equal here."""
    if a.dtype.kind in "biu":
        return bool(np.array_equal(a, b))
    return bool(np.array_equal(a.astype(float), b.astype(float), equal_nan=True))


def dtypes_of(primitive: Primitive) -> list[DType]:
    found = []
    for dtype in REAL_DTYPES:
        try:
            result = primitive.infer([TensorType((), dtype)] * (primitive.arity or 1), {})
        except IRTypeError:
            continue
        if getattr(result, "dtype", None) is dtype or primitive.commutative:
            found.append(dtype)
    return found


def apply(primitive: Primitive, *arrays: Array) -> Array:
    result: Array = evaluate(primitive.name, arrays, {})
    return result


def facts() -> Iterator[tuple[Primitive, DType]]:
    for primitive in ELEMENTWISE:
        if primitive.name not in ("cast", "bitcast", "where", "require"):
            yield from ((primitive, dtype) for dtype in dtypes_of(primitive))


def test_facts_are_true() -> None:
    """Those of every elementwise primitive, in every dtype that it takes."""
    pairs = list(facts())
    assert len(pairs) > 300
    wrong = [
        f"{primitive.name} of {dtype}: {fact}"
        for primitive, dtype in pairs
        for fact, is_true in (unary if primitive.arity == 1 else binary)(primitive, samples(dtype))
        if not is_true
    ]
    assert not wrong


def unary(primitive: Primitive, x: Array) -> Iterator[tuple[str, bool]]:
    once = apply(primitive, x)
    if primitive.involution:
        yield "involution", same(apply(primitive, once), x)
    if primitive.idempotent:
        yield "idempotent", same(apply(primitive, once), once)


def binary(primitive: Primitive, x: Array) -> Iterator[tuple[str, bool]]:
    left, right = np.repeat(x, x.size), np.tile(x, x.size)
    if primitive.commutative:
        yield "commutative", same(apply(primitive, left, right), apply(primitive, right, left))
    if primitive.idempotent:
        yield "idempotent", same(apply(primitive, x, x), x)
    if primitive.identity is not None:
        identity = np.asarray(primitive.identity).astype(x.dtype)
        yield "identity", same(apply(primitive, x, identity), x)
    if primitive.absorbing is not None:
        absorbing = np.asarray(primitive.absorbing).astype(x.dtype)
        result = apply(primitive, x, absorbing)
        yield "absorbing", same(result, np.broadcast_to(absorbing, x.shape))
    if primitive.associative and x.dtype.kind in "biu":
        third = np.roll(right, 3)
        inner = apply(primitive, apply(primitive, left, right), third)
        yield "associative", same(inner, apply(primitive, left, apply(primitive, right, third)))


def test_costs_are_positive() -> None:
    assert all(each.cost >= 1 for each in PRIMITIVES.values())


def is_name_of_a_primitive(node: ast.expr) -> bool:
    if not isinstance(node, ast.Attribute) or node.attr != "name":
        return False
    return ast.unparse(node.value).endswith(".primitive")


def test_primitives_are_compared_not_their_names() -> None:
    """A name that is misspelt is no error; a primitive that does not exist is one."""
    found = []
    for module, path in files().items():
        if module.startswith("tgraph.runtime") or ".primitive" not in path.read_text():
            continue
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.Compare) and any(
                map(is_name_of_a_primitive, (node.left, *node.comparators))
            ):
                found.append(f"{path}:{node.lineno}: {ast.unparse(node)}")
    assert not found
