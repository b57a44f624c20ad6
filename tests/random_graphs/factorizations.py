"""Makers of matrix factorizations, of matrices near the identity.

There no pivot and no sign of a factor is near a choice, and factors change little more than their
matrix. Of eigen- and singular vectors only what does not depend on their order goes on.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from tgraph.compiler.ir import Node, Primitive
from tgraph.compiler.ir import primitives as p
from tgraph.runtime.dtypes import float32, float64

from .bounds import INEXACT
from .program import Program, Unfit, Value, mantissa

LARGEST_SIZE = 17
FACTORS_ERROR = 8.0  # by how much more than its matrix a factor may be off


def _near_identity(program: Program) -> Value:
    """Symmetric matrices whose eigenvalues lie in [1, 1.25], of the columns of a value."""
    x = program.draw(lambda v: v.dtype in (float32, float64) and v.ndim >= 2)
    *_, rows, columns = x.shape
    if columns > LARGEST_SIZE:
        raise Unfit
    products = program.op(p.matmul, x, x, transpose_a=True, transpose_b=False)
    trace = max(x.bound**2 * rows * columns, 1.0)
    scale = program.const(2.0 ** -(2 + math.ceil(math.log2(trace))), x.dtype)
    identity = program.build.apply(
        p.constant, [], {"value": np.eye(columns, dtype=x.dtype.numpy)}
    )  # fmt: skip
    near = program.op(p.mul, products, scale, bound=0.25)
    return program.op(p.add, near, program.known(identity, 1.0, 0.0, 0), bound=1.25)


def _error(matrix: Value) -> float:
    n = matrix.shape[-1]
    return FACTORS_ERROR * (n * matrix.error + (n + 4) ** 1.5 * 2.0 ** -mantissa(matrix.dtype))


def _call(program: Program, routine: Primitive, matrix: Value, **attrs: Any) -> list[Node]:
    call = program.build.apply(routine, [matrix.node], attrs)
    count = len(routine.infer([matrix.node.type], attrs))
    return [program.build.apply(p.get, [call], {"index": at}) for at in range(count)]


def _factor(program: Program, node: Node, matrix: Value, bound: float = 2.0) -> Value:
    return program.known(node, bound, _error(matrix), INEXACT)


def cholesky(program: Program) -> None:
    """The factor, and what is solved with it forward and back."""
    matrix = _near_identity(program)
    check = program.pick((None, "linalg.cholesky"))
    factor, info = _call(program, p.cholesky, matrix, check=check)
    lower = program.keep(_factor(program, factor, matrix))
    if check is None and program.choose(2):
        program.keep(program.known(info, 0.0, 0.0, 0))
    program.keep(_solved(program, lower, matrix, lower=True, unit=False))


def lu(program: Program) -> None:
    matrix = _near_identity(program)
    factors, rows, sign, _ = _call(program, p.lu, matrix, check="linalg.solve")
    both = program.keep(_factor(program, factors, matrix))
    if program.choose(2):
        program.keep(program.known(rows, float(matrix.shape[-1]), 0.0, 0))
        program.keep(program.known(sign, 1.0, 0.0, 0))
    program.keep(_solved(program, both, matrix, lower=bool(program.choose(2)), unit=False))


def _solved(program: Program, factor: Value, matrix: Value, lower: bool, unit: bool) -> Value:
    n = matrix.shape[-1]
    other = program.draw(
        lambda v: v.dtype is matrix.dtype and v.ndim >= 2 and v.shape[:-1] == matrix.shape[:-1]
    )
    attrs = {"lower": lower, "transpose": bool(program.choose(2)), "unit": unit}
    node = program.build.apply(p.triangular_solve, [factor.node, other.node], attrs)
    error = 2 * math.sqrt(n) * (other.error + other.bound * n * _error(matrix))
    return program.known(node, 2 * math.sqrt(n) * other.bound, error, INEXACT)


def qr(program: Program) -> None:
    matrix = _near_identity(program)
    q, r = _call(program, p.qr, matrix, complete=bool(program.choose(2)))
    for node in (q, r):
        if program.choose(3):
            program.keep(_factor(program, node, matrix))


def eigh(program: Program) -> None:
    """Eigenvalues, and the matrix put together again."""
    matrix = _near_identity(program)
    values, vectors, _ = _call(program, p.eigh, matrix, check="linalg.eigh")
    program.keep(_factor(program, values, matrix))
    _together(program, matrix, vectors, values, vectors, transpose=True)


def svd(program: Program) -> None:
    matrix = _near_identity(program)
    full = bool(program.choose(2))
    u, values, vh, _ = _call(program, p.svd, matrix, full=full, check="linalg.svd")
    program.keep(_factor(program, values, matrix))
    _together(program, matrix, u, values, vh, transpose=False)


def _together(
    program: Program, matrix: Value, left: Node, values: Node, right: Node, transpose: bool
) -> None:
    row = program.build.apply(
        p.reshape, [values], {"shape": (*values.shape[:-1], 1, values.shape[-1])}
    )
    scaled = program.build.apply(p.mul, [left, row])
    flags = {"transpose_a": False, "transpose_b": transpose}
    node = program.build.apply(p.matmul, [scaled, right], flags)
    program.keep(_factor(program, node, matrix))


MAKERS = (cholesky, lu, qr, eigh, svd)
