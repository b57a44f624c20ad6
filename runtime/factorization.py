"""Factorizations of batches of matrices as steps of plans, and as plans of their own in eager mode.

What a step is told: sizes, workspace, which matrices a thread does. A matrix runs on one thread:
OpenBLAS's own threads wait for each other, which takes many times as long as one thread where cores
have other work.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from . import blas, jit, lapack, lapack_native, small_matrices_native
from .lapack_calls import CALLS, SMALL, TRIANGULAR_SOLVE_OF_COPY, LibraryCall
from .linalg_error import LinAlgError, decode, failure
from .memo import Memo
from .parallel import shared_out
from .plan import Plan
from .plan_steps import ARENA_SLOT, STATUS_SLOT, BufferRef, KernelStep, merged_batch
from .records import record

Array = np.ndarray[Any, Any]

UNITS = 64
"""Units of matrices, each of which has workspace of its own, while that takes few bytes."""
MOST_WORKSPACE = 16 << 20
SHARE, CALL, SMALL_CALL = 200_000, 2_000, 20
"""Operations that are worth a thread, and what calling LAPACK, or doing several matrices at a time,
costs beside those of a matrix."""
SMALL_SIZE, MATRICES = 32, 32
"""Up to which size LAPACK is not called, where there are n * n / MATRICES matrices: a group of them
takes as long as one. Measured with 16 in a group and with 8, on one thread."""
MOST_TILES = 512 << 10
"""Bytes of a group of matrices and their right sides, which stay in the second-level cache."""
MOST_ELEMENTS = 1 << 28
"""Of a matrix, so that LAPACK's integers can count all that it needs."""


@record()
class Factorization:
    """A routine for matrices that lie in a certain way.

    `shape` is that of the first operand, `numbers` are those of the call, `batch` has for each
    dimension of the batch its size and the strides of the operands in bytes.
    """

    call: LibraryCall
    dtype: str
    shape: tuple[int, ...]
    numbers: Mapping[str, int]
    batch: tuple[tuple[int, ...], ...]
    check: str

    @property
    def members(self) -> int:
        return prod(self.shape[:-2])

    @property
    def at_a_time(self) -> int:
        """Matrices that are done at a time."""
        return self.numbers["lanes"] if self.is_small else 1

    @property
    def is_small(self) -> bool:
        """Whether generated code does it, without LAPACK."""
        return self.call in SMALL.values()

    @property
    def units(self) -> int:
        most = MOST_WORKSPACE // max(self.numbers["unit.bytes"], 1)
        return max(1, min(-(-self.members // self.at_a_time), UNITS, most))

    @property
    def flops(self) -> int:
        """Operations of all matrices, roughly."""
        return self.call.flops(dict(self.numbers)) * self.members

    @property
    def grain(self) -> int:
        """How many units are worth a thread; all where LAPACK has threads that nobody can hold."""
        if self.is_small:
            moved = self.numbers["unit.bytes"] // jit.vector_bytes()
            each = SMALL_CALL + 2 * moved
            return max(1, SHARE * self.units // (self.flops // 2 + each * self.members + 1))
        if not blas.load().set_threads:
            return self.units
        return max(1, SHARE * self.units // (self.flops + CALL * self.members + 1))

    def result_bytes(self, index: int) -> int:
        name = self.call.results[index].name
        return self.members * self.numbers[f"{name}.bytes"]

    def scratch_bytes(self, results: Sequence[BufferRef | None]) -> int:
        """What `step` needs beside operands and results: workspace, and places for the others."""
        missing = [at for at, place in enumerate(results) if place is None]
        return self.units * self.numbers["unit.bytes"] + sum(map(self._room, missing))

    def step(
        self,
        operands: Sequence[BufferRef],
        results: Sequence[BufferRef | None],
        scratch: BufferRef,
    ) -> KernelStep:
        """The step, with `scratch_bytes` of memory at `scratch`."""
        places, at = [], scratch.offset
        for index, place in enumerate(results):
            places.append(place or BufferRef(scratch.slot, at))
            at += 0 if place else self._room(index)
        names = lapack_native.number_names(self.call)
        native = small_matrices_native if self.is_small else lapack_native
        numbers = self.numbers
        return KernelStep(
            self.call.primitive,
            native.load(self.call, self.dtype),
            (*operands, *places, BufferRef(scratch.slot, at), BufferRef(STATUS_SLOT)),
            self.units if self.members else 0,
            self.grain,
            (
                *(self.members, self.units, numbers["unit.bytes"], bool(self.check) * 1),
                len(self.batch),
                *(lapack_native.number_value(name, numbers, self.dtype) for name in names),
                *(word for axis in self.batch for word in axis),
            ),
            limits_blas=not self.is_small,
        )

    def _room(self, index: int) -> int:
        return -(-self.result_bytes(index) // 64) * 64

    def error(self, status: int) -> LinAlgError:
        """What a step raises that has set the status."""
        member, said, is_finite = decode(status)
        element = member if len(self.shape) > 2 else None
        return failure(self.call.primitive, self.check, element, said, is_finite)

    def summary(self) -> str:
        """A line for people."""
        sizes = " x ".join(map(str, self.shape[-2:]))
        matrices = "matrix" if self.members == 1 else "matrices"
        shared = shared_out(self.units, self.grain, "unit")
        by = f"{self.at_a_time} at a time" if self.is_small else lapack.load().name
        return f"{by}: {self.members:,} {matrices} {sizes}; {shared}"


def can_call(primitive: str, shapes: Sequence[tuple[int, ...]]) -> bool:
    """Whether LAPACK does matrices of these shapes: it has no singular values of empty ones."""
    if primitive == "svd" and not prod(shapes[0][-2:]):
        return False
    return max(prod(shape[-2:]) for shape in shapes) < MOST_ELEMENTS


def factorization(
    primitive: str,
    dtype: str,
    shapes: Sequence[tuple[int, ...]],
    strides: Sequence[tuple[int, ...]],
    attrs: Mapping[str, Any],
) -> Factorization:
    """How a primitive is computed of operands with these shapes, and strides in bytes."""
    call = SMALL[primitive] if _is_small(primitive, shapes) else CALLS[primitive]
    item = np.dtype(dtype).itemsize
    steps = [_matrix_strides(*each, item) for each in zip(shapes, strides, strict=True)]
    if call is SMALL["triangular_solve"] and steps[0] == (1, shapes[0][-1]):  # lies by columns
        steps[0] = steps[0][::-1]
        attrs = {**attrs, **{name: not attrs[name] for name in ("lower", "transpose")}}
    if call is CALLS["triangular_solve"] and not _lies_as_matrix(shapes[0], steps[0]):
        call = TRIANGULAR_SOLVE_OF_COPY
    sizes = [shape[-2:] for shape in shapes]
    numbers = lapack_native.numbers_of(call, dtype, sizes, steps, attrs)
    batch = _batch(shapes[0][:-2], [each[:-2] for each in strides])
    return Factorization(call, dtype, shapes[0], numbers, batch, attrs.get("check") or "")


def _is_small(primitive: str, shapes: Sequence[tuple[int, ...]]) -> bool:
    """Whether there are so many so small matrices that doing several at a time takes less."""
    if primitive not in SMALL:
        return False
    *batch, _, n = shapes[0]
    tiles = n * (n + shapes[-1][-1]) * jit.vector_bytes()
    return n <= SMALL_SIZE and tiles <= MOST_TILES and MATRICES * prod(batch) >= n * n


def _matrix_strides(shape: tuple[int, ...], strides: tuple[int, ...], item: int) -> tuple[int, int]:
    """From row to row and from column to column, in elements."""
    (rows, columns), (row, column) = shape[-2:], strides[-2:]
    # How far it were to a second row or column does not matter.
    column = column // item if columns > 1 else 1
    return (row // item if rows > 1 else max(columns * column, 1)), column


def _lies_as_matrix(shape: tuple[int, ...], strides: tuple[int, int]) -> bool:
    """Whether LAPACK reads a square matrix where it lies, by rows or by columns."""
    (row, column), n = strides, shape[-1]
    return (column == 1 and row >= n) or (row == 1 and column >= n)


def _batch(
    sizes: tuple[int, ...], strides: Sequence[tuple[int, ...]]
) -> tuple[tuple[int, ...], ...]:
    """Dimensions of the batch, of which those that go on evenly are one."""
    moves = [*strides, *strides, *strides][:3]
    return tuple(axis[: 1 + len(strides)] for axis in merged_batch(list(zip(sizes, *moves))))


# -- eager mode ------------------------------------------------------------------------------

_plans: Memo[tuple[Any, ...], tuple[Factorization, Plan]] = Memo(256)


def factorize(primitive: str, arrays: Sequence[Array], attrs: Mapping[str, Any]) -> list[Array]:
    """The results for arrays of one type, by a plan of one step; LinAlgError where it `check`s."""
    operands = [np.ascontiguousarray(each) for each in arrays]
    shapes = tuple(each.shape for each in operands)
    key = (primitive, operands[0].dtype.name, shapes, tuple(attrs.items()))
    found = _plans.get(key)
    if found is None:
        made = factorization(
            primitive, operands[0].dtype.name, shapes, [each.strides for each in operands], attrs
        )
        found = _plans.keep(key, (made, _plan(made, len(operands))))
    of, plan = found
    batch = of.shape[:-2]
    results = [
        np.empty((*batch, *(of.numbers[size] for size in each.sizes)), each.dtype or of.dtype)
        for each in of.call.results
    ]
    if plan.run((*operands, *results)):
        raise of.error(int(plan.status[0]))
    return results


def _plan(of: Factorization, operands: int) -> Plan:
    count = operands + len(of.call.results)
    slots = [BufferRef(slot) for slot in range(1, 1 + count)]
    results = slots[operands:]
    step = of.step(slots[:operands], results, BufferRef(ARENA_SLOT))
    return Plan([step], of.scratch_bytes(results), 1 + count)
