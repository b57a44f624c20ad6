"""Computes what depends on nothing: small results of constants, and numbers at any size.

Random bits, host calls and inputs are never folded, nor is `iota`, which costs less to compute
where it is needed than to read. What cannot be evaluated is left alone: its error is raised where
the program runs, if it runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from ...runtime.arrays import evaluate
from ...runtime.dtypes import DType
from ..ir import Family, Node
from ..ir import primitives as p
from ..ir.size_number import computed, is_expression
from .canonicalize import uniform_constant_is_full
from .matching import CONSTANTS, constant, full, is_constant
from .rewrite import RewriteBuilder, rewrite

MAX_ELEMENTS = 4096

_FOLDED = (
    Family.ELEMENTWISE, Family.REDUCE, Family.VIEW, Family.GATHER, Family.SCATTER, Family.WINDOW,
    Family.CONTRACTION, Family.SCAN, Family.SORT,
)  # fmt: skip


@rewrite(Family.ELEMENTWISE, reading=[p.full])
def numbers(build: RewriteBuilder, node: Node) -> Node | None:
    """An elementwise function of numbers is a number, at any size."""
    for operand in node.inputs:
        if operand.primitive is not p.full:
            return None
    values = [each.attrs["value"] for each in node.inputs]
    if any(map(is_expression, values)):
        function = partial(_number, node.primitive.name, node.attrs, _dtypes(node))
        return full(build, node.type, computed(function, *values))
    operands = [_scalar(each.attrs["value"], each.type.dtype) for each in node.inputs]
    value = _evaluated(node, operands)
    if value is None or (node.primitive is p.bitcast and value != value):
        return None  # the number of a NaN has no bits to speak of
    return full(build, node.type, value.item())


def _scalar(value: Any, dtype: DType) -> Any:
    return evaluate("full", [], {"shape": (), "value": value, "dtype": dtype})


def _number(name: str, attrs: Any, dtypes: Sequence[DType], *values: Any) -> Any:
    """What `numbers` makes of numbers that are known later."""
    return evaluate(name, list(map(_scalar, values, dtypes)), attrs).item()


def _dtypes(node: Node) -> list[DType]:
    return [each.type.dtype for each in node.inputs]


@rewrite(p.reshape, p.permute, p.broadcast, p.slice_, p.flip, reading=[p.full])
def moved_numbers(build: RewriteBuilder, node: Node) -> Node | None:
    (x,) = node.inputs
    return full(build, node.type, x.attrs["value"]) if x.primitive is p.full else None


@rewrite(*_FOLDED, reading=CONSTANTS)
def small_results(build: RewriteBuilder, node: Node) -> Node | None:
    if not node.inputs or not is_constant(node.inputs[0]):
        return None  # most nodes, for little
    if node.primitive is p.broadcast:
        return None  # as cheap to read where it is needed as to store
    if not all(map(_is_known, node.inputs)) or node.type.numel > MAX_ELEMENTS:
        return None
    operands = [evaluate(each.primitive.name, [], each.attrs) for each in node.inputs]
    value = _evaluated(node, operands)
    return None if value is None else constant(build, node.type, _owned(value))


def _is_known(node: Node) -> bool:
    return is_constant(node) and node.type.numel <= MAX_ELEMENTS


def _evaluated(node: Node, operands: list[np.ndarray]) -> np.ndarray | None:
    try:
        value: np.ndarray = evaluate(node.primitive.name, operands, node.attrs)
    except (IndexError, RuntimeError):  # a position out of range, an integer division by zero
        return None
    return value


def _owned(value: np.ndarray) -> np.ndarray:
    """A dense array that nobody else holds and nobody can write to."""
    dense = np.array(value, order="C")
    dense.flags.writeable = False
    return dense


RULES = (numbers, moved_numbers, small_results, uniform_constant_is_full)
