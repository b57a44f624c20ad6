"""Every operation of the table, batched and in forward mode, against what defines both."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from opcase import OpCase
from opcases import CASES
from sampling import rotating
from tgraph.compiler.ir import PRIMITIVES

import tgraph as tg
from tgraph.core.vjp_rules import NON_DIFFERENTIABLE, RULES
from tgraph.transforms.batch_rules import BATCH_RULES
from tgraph.transforms.jvp_rules import JVP_RULES

ROWS = {case.name: case for case in CASES}
# They give shapes, or numbers of Python, that go by values, of which each example has its own.
BY_VALUES = (
    "allclose", "argwhere", "bincount", "equal", "masked_scatter", "masked_select", "nonzero",
    "nonzero_tuple", "unique", "unique_consecutive",
)  # fmt: skip
SOURCES = {"constant", "full", "get", "input", "iota"}  # without operands, or without a tensor's
PASSES_ONLY = {"attention", "attention_rows", "attention_gradient"}  # nobody else applies them
# Batched: one example after another.
ONE_BY_ONE = {"branch", "csr_matmul", "host_call", "loop"}
# In forward mode: what gives no floats, and what is applied to detached tensors or by passes only.
WITHOUT_TANGENTS = {
    "all", "any", "argmax", "argmin", "argsort", "bitwise_and", "bitwise_not", "bitwise_or",
    "bitwise_xor", "eq", "ge", "gt", "isinf", "isnan", "le", "logical_and", "logical_not",
    "logical_or", "logical_xor", "lt", "lu", "ne", "random_bits", "select_nth", "shift_left",
    "shift_right", "sort",
}  # fmt: skip


def tensors_of(case: OpCase, seed: int) -> list[tg.Tensor]:
    dtype = tg.float64 if tg.float64 in case.dtypes else case.dtypes[0]
    return [tg.tensor(each) for each in case.arrays(dtype, seed)]


def leaves_of(result: Any) -> list[tg.Tensor]:
    return tg.pytree.leaves(result)


def assert_near(found: tg.Tensor, expected: tg.Tensor) -> None:
    assert found.shape == expected.shape and found.dtype == expected.dtype
    np.testing.assert_allclose(
        found.detach().numpy(), expected.detach().numpy(), rtol=1e-9, atol=1e-9
    )


def test_every_primitive_has_a_rule():
    batched = {each.name for each in BATCH_RULES}
    assert PRIMITIVES.keys() - batched == SOURCES | PASSES_ONLY | ONE_BY_ONE | {"random_bits"}
    forward = {each.name for each in (*JVP_RULES, *RULES, *NON_DIFFERENTIABLE)}
    assert PRIMITIVES.keys() - forward - SOURCES - PASSES_ONLY == WITHOUT_TANGENTS


@pytest.mark.parametrize("name", ROWS)
def test_examples_of_a_batch_are_as_one_by_one(name):
    case = ROWS[name]
    one, other = tensors_of(case, 0), tensors_of(case, 1)
    count = len(one)
    together = [tg.stack(pair) for pair in zip(one, other, strict=True)]
    for batched in {
        (True,) * count,
        (True, *(False,) * (count - 1)),
        (*(False,) * (count - 1), True),
    }:
        given = [many if flag else own for many, own, flag in zip(together, one, batched)]
        second = [b if flag else a for a, b, flag in zip(one, other, batched)]
        dims = tuple(0 if flag else None for flag in batched)
        try:
            found = leaves_of(tg.vmap(case.function, in_dims=dims)(*given))
        except RuntimeError as error:
            assert case.operation in BY_VALUES and "not one value to go by" in str(error)
            continue
        pairs = zip(leaves_of(case.function(*one)), leaves_of(case.function(*second)), strict=True)
        for result, pair in zip(found, pairs, strict=True):
            assert_near(result, tg.stack(pair))


@pytest.mark.parametrize("name", [name for name, case in ROWS.items() if case.gradient])
def test_tangents_are_the_transpose_of_gradients(name):
    case = ROWS[name]
    inputs = tensors_of(case, 0)
    floats = [at for at, each in enumerate(inputs) if each.is_floating_point()]
    rng = np.random.default_rng(3)

    def function(*own: tg.Tensor) -> Any:
        given = list(inputs)
        for at, each in zip(floats, own, strict=True):
            given[at] = each
        return [each for each in leaves_of(case.function(*given)) if each.is_floating_point()]

    primals = tuple(inputs[at] for at in floats)
    tangents = tuple(tg.tensor(rng.normal(size=each.shape)) for each in primals)
    outputs, pushed = tg.jvp(function, primals, tangents)
    cotangents = [tg.tensor(rng.normal(size=each.shape)) for each in outputs]
    _, pull = tg.vjp(function, *primals)
    pulled = pull(cotangents)
    here = sum((a * b).sum().item() for a, b in zip(cotangents, pushed, strict=True))
    there = sum((a * b).sum().item() for a, b in zip(pulled, tangents, strict=True))
    assert here == pytest.approx(there, rel=1e-7, abs=1e-9)
    assert not any(each.requires_grad for each in (*outputs, *pushed))


def smooth_cases() -> list[str]:
    """Rows with two gradients, whose arguments two examples can have of their own."""
    return [
        name for name, case in ROWS.items()
        if case.gradient and case.second and case.operation not in BY_VALUES
    ]  # fmt: skip


class Scalar:
    """A row of the table as a number that depends on all its floats, and those of two examples."""

    def __init__(self, name: str) -> None:
        self.case = ROWS[name]
        self.one, self.other = tensors_of(self.case, 0), tensors_of(self.case, 1)
        self.floats = [at for at, each in enumerate(self.one) if each.is_floating_point()]

    def __call__(self, inputs: list[tg.Tensor], *own: tg.Tensor) -> tg.Tensor:
        given = list(inputs)
        for at, each in zip(self.floats, own, strict=True):
            given[at] = each
        found = [each for each in leaves_of(self.case.function(*given)) if each.is_floating_point()]
        return sum(((each * 1.3).sin().sum() for each in found), tg.zeros((), dtype=tg.float64))

    def of(self, inputs: list[tg.Tensor]) -> tuple[tg.Tensor, ...]:
        return tuple(inputs[at] for at in self.floats)

    def gradient(self, inputs: list[tg.Tensor], *own: tg.Tensor) -> Any:
        return tg.grad(lambda *own: self(inputs, *own), tuple(range(len(own))))(*own)


@pytest.mark.slow
@pytest.mark.parametrize("name", smooth_cases())
def test_transforms_of_gradients(name):
    """vmap(grad) is one gradient after another; jvp(grad) is the Hessian, which is symmetric."""
    row = Scalar(name)
    if not row.floats:
        return
    count = len(row.floats)
    together = [tg.stack(pair) for pair in zip(row.one, row.other, strict=True)]

    def of_one(*inputs: tg.Tensor) -> Any:
        return row.gradient(list(inputs), *row.of(list(inputs)))

    found = tg.vmap(of_one)(*together)
    alone = [of_one(*row.one), of_one(*row.other)]
    for result, pair in zip(found, zip(*alone, strict=True), strict=True):
        assert_near(result, tg.stack(pair))
    rng = np.random.default_rng(5)
    own = row.of(row.one)
    tangents = tuple(tg.tensor(rng.normal(size=each.shape)) for each in own)
    pushed = tg.jvp(lambda *own: row.gradient(row.one, *own), own, tangents)[1]

    def along(*own: tg.Tensor) -> tg.Tensor:
        pairs = zip(row.gradient(row.one, *own), tangents, strict=True)
        return sum(((a * b).sum() for a, b in pairs), tg.zeros((), dtype=tg.float64))

    for one, other in zip(pushed, tg.grad(along, tuple(range(count)))(*own), strict=True):
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-6, atol=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", rotating([each for each in smooth_cases() if ROWS[each].compiles], 10)
)
def test_compiled_hessians_of_examples(name):
    row = Scalar(name)
    together = [tg.stack(pair) for pair in zip(row.one, row.other, strict=True)]

    def hessian(*inputs: tg.Tensor) -> Any:
        own = row.of(list(inputs))
        return tg.hessian(lambda *own: row(list(inputs), *own), tuple(range(len(own))))(*own)

    found = leaves_of(tg.compile(tg.vmap(hessian))(*together))
    alone = [leaves_of(hessian(*row.one)), leaves_of(hessian(*row.other))]
    for result, pair in zip(found, zip(*alone, strict=True), strict=True):
        assert_near(result, tg.stack(pair))


def test_each_example_writes_its_own_values_at_its_own_positions():
    at, new = tg.tensor([[0, 2], [2, 1]]), tg.arange(1, 9).reshape(2, 2, 2)
    x = tg.zeros(2, 2, 3, dtype=tg.int64)
    found = tg.vmap(lambda x, at, new: x.index_copy(1, at, new))(x, at, new)
    assert found.tolist() == [[[1, 0, 2], [3, 0, 4]], [[0, 6, 5], [0, 8, 7]]]
