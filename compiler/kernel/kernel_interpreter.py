"""Runs any Kernel with NumPy: slow, plain, and the reference that generated code is tested by."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from ...runtime.arrays import evaluate
from ...runtime.dtypes import DType
from ...runtime.philox import random_bits
from ..ir import primitives as p
from ..ir.monoids import ARGMAX, LINEAR, SUM, Monoid
from .index import Axis, Condition, Divides, Index, InRange, Loaded, Quotient
from .kernel import Instr, Kernel, Stage, adds_up_rows

Array = np.ndarray[Any, Any]

# By the primitive with which a monoid joins results.
_UFUNCS = {p.add: np.add, p.mul: np.multiply, p.maximum: np.maximum, p.minimum: np.minimum,
           p.logical_or: np.logical_or, p.logical_and: np.logical_and}  # fmt: skip


def interpret_kernel(kernel: Kernel, buffers: Sequence[Array]) -> None:
    """Run `kernel` on flat arrays, one per parameter; writes into those that it writes.

    IndexError where a check fails.
    """
    _Interpreter(kernel, buffers).run()


class _Interpreter:
    def __init__(self, kernel: Kernel, buffers: Sequence[Array]) -> None:
        self.kernel = kernel
        self.buffers = buffers
        self.results: dict[int, Array] = {}
        self.scratch: dict[int, dict[Any, Array]] = {}
        self.axes: tuple[Axis, ...] = ()
        self.values: dict[int, Array] = {}

    def run(self) -> None:
        for stage in self.kernel.stages:
            self.axes = (*self.kernel.rows, *stage.axes)
            self.values = {}
            with np.errstate(all="ignore"):
                for number, instr in enumerate(stage.body):
                    self.values[number] = self._instr(stage, instr)

    def _instr(self, stage: Stage, instr: Instr) -> Array:
        args = [self.values[arg] for arg in instr.args]
        special = getattr(self, f"_{instr.op}_instr", None)
        if special is not None:
            return cast(Array, special(stage, instr, args))
        if instr.op in ("floor_divide", "remainder") and args[1].dtype.kind in "iu":
            # What is wanted has passed its check; the rest is divided by what masked loads give.
            args[1] = np.where(args[1] == 0, args[1].dtype.type(1), args[1])
        return cast(Array, evaluate(instr.op, args, {}))

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(axis.size for axis in self.axes)

    def index(self, index: Index) -> Array:
        """The value of an index expression at every point of the loops."""
        total: Array = np.asarray(index.const, np.int64)
        for atom, coefficient in index.terms.items():
            total = total + self._atom(atom) * coefficient
        return total

    def _atom(self, atom: Any) -> Array:
        if isinstance(atom, Axis):
            position = self.axes.index(atom)
            shape = [1] * len(self.axes)
            shape[position] = atom.size
            return np.arange(atom.size, dtype=np.int64).reshape(shape)
        if isinstance(atom, Loaded):
            return self.values[atom.key].astype(np.int64)
        inner = self.index(atom.index)
        return inner // atom.divisor if isinstance(atom, Quotient) else inner % atom.divisor

    def conditions(self, mask: tuple[Condition, ...]) -> Array:
        total: Array = np.asarray(True)
        for condition in mask:
            at = self.index(condition.index)
            if isinstance(condition, InRange):
                total = total & (at >= condition.low) & (at < condition.high)
            elif isinstance(condition, Divides):
                total = total & (at % condition.divisor == 0)
        return total

    def _const_instr(self, stage: Stage, instr: Instr, args: list[Array]) -> Array:
        return np.asarray(instr.value, instr.dtype.numpy)

    def _index_instr(self, stage: Stage, instr: Instr, args: list[Array]) -> Array:
        assert instr.index is not None
        return self.index(instr.index)

    def _condition_instr(self, stage: Stage, instr: Instr, args: list[Array]) -> Array:
        return self.conditions(instr.mask)

    def _load_instr(self, stage: Stage, instr: Instr, args: list[Array]) -> Array:
        assert instr.index is not None
        buffer, at = self.buffers[instr.param], self.index(instr.index)
        wanted = self.conditions(instr.mask)
        at, wanted = np.broadcast_arrays(at, wanted)
        if bool(np.any((at < 0) & wanted)) or bool(np.any((at >= buffer.size) & wanted)):
            raise AssertionError(f"{self.kernel.name} reads outside {instr.index} in {buffer.size}")
        values = np.zeros(at.shape, instr.dtype.numpy)
        values[wanted] = buffer[at[wanted]].astype(instr.dtype.numpy)
        return values

    def _store_instr(self, stage: Stage, instr: Instr, args: list[Array]) -> Array:
        assert instr.index is not None
        buffer = self.buffers[instr.param]
        at, value = np.broadcast_arrays(self.index(instr.index), args[0])
        at, value = np.broadcast_to(at, self.shape), np.broadcast_to(value, self.shape)
        if adds_up_rows(instr):
            buffer[at] = 0
        if instr.value == "add" or adds_up_rows(instr):
            np.add.at(buffer, at, value.astype(buffer.dtype))
        else:
            buffer[at] = value.astype(buffer.dtype)
        return value

    def _check_instr(self, stage: Stage, instr: Instr, args: list[Array]) -> Array:
        size, site, _ = instr.value
        bad = (args[0] < 0) | (args[0] >= size)
        if np.any(bad) and np.prod(self.shape) > 0:
            first = int(np.broadcast_to(args[0], bad.shape)[bad][0])
            raise self.kernel.checks[site].error(first, size)
        return args[0]

    def _reduce_instr(self, stage: Stage, instr: Instr, args: list[Array]) -> Array:
        number, monoid = instr.value
        axes = tuple(range(len(self.kernel.rows), len(self.axes)))
        value = np.broadcast_to(args[0], self.shape)
        if monoid.is_position:
            reduced = self._position(monoid, value, np.broadcast_to(args[1], self.shape), axes)
        elif value.size == 0 and monoid.is_extreme:
            reduced = np.zeros(self.shape[: axes[0]] + (1,) * len(axes), value.dtype)
        else:
            ufunc = _UFUNCS[monoid.combine]
            reduced = ufunc.reduce(value, axis=axes, keepdims=True, dtype=value.dtype)
        self.results[number] = reduced.reshape(reduced.shape[: len(self.kernel.rows)])
        return reduced

    def _contract_instr(self, stage: Stage, instr: Instr, args: list[Array]) -> Array:
        dtype = self.kernel.results[instr.value].numpy
        rows, sizes = len(self.kernel.rows), tuple(axis.size for axis in stage.axes)
        steps = math.prod(sizes)
        flat = []
        for value in args:
            value = value.reshape((1,) * (len(self.shape) - value.ndim) + value.shape)
            value = np.broadcast_to(value, (*value.shape[:rows], *sizes))
            flat.append(value.reshape(*value.shape[:rows], steps).astype(dtype))
        result: Array = np.einsum("...k,...k->...", *flat)
        self.results[instr.value] = np.broadcast_to(result, self.shape[:rows])
        return result

    def _scan_instr(self, stage: Stage, instr: Instr, args: list[Array]) -> Array:
        number, monoid = instr.value
        dtype = self.kernel.results[number].numpy
        rows = self.shape[: len(self.kernel.rows)]
        value, *other = (np.broadcast_to(each, self.shape).astype(dtype) for each in args)
        running = value.reshape(*rows, -1).copy()
        if monoid is LINEAR:
            factor = other.pop().reshape(running.shape)
            for at in range(running.shape[-1]):
                running[..., at] += factor[..., at] * (running[..., at - 1] if at else 0)
        elif value.size:
            running = _UFUNCS[monoid.combine].accumulate(running, -1, dtype)
        running = running.reshape(self.shape)
        if monoid is SUM and not other:  # which begins with a positive zero
            running = running + np.zeros((), dtype)
        for start in other:
            running = _UFUNCS[monoid.combine](running, start)
        return cast(Array, running.astype(instr.dtype.numpy))

    def _position(
        self, monoid: Monoid, value: Array, position: Array, axes: tuple[int, ...]
    ) -> Array:
        rows = value.shape[: value.ndim - len(axes)]
        flat = value.reshape((*rows, -1))
        at = (np.argmax if monoid is ARGMAX else np.argmin)(flat, axis=-1)[..., None]
        found = np.take_along_axis(position.reshape(flat.shape), at, -1)
        return found.reshape((*rows, *[1] * len(axes)))

    def _result_instr(self, stage: Stage, instr: Instr, args: list[Array]) -> Array:
        value = self.results[instr.value]
        return value.reshape(value.shape + (1,) * len(stage.axes)).astype(instr.dtype.numpy)

    def _save_instr(self, stage: Stage, instr: Instr, args: list[Array]) -> Array:
        self.scratch.setdefault(instr.value, {})[instr.index] = args[0]
        return args[0]

    def _saved_instr(self, stage: Stage, instr: Instr, args: list[Array]) -> Array:
        return self.scratch[instr.value][instr.index]

    def _cast_instr(self, stage: Stage, instr: Instr, args: list[Array]) -> Array:
        target: DType = instr.value
        return cast(Array, evaluate("cast", args, {"dtype": target}).astype(instr.dtype.numpy))

    def _bitcast_instr(self, stage: Stage, instr: Instr, args: list[Array]) -> Array:
        source, target = instr.value
        bits = args[0].astype(source.numpy)
        found = evaluate("bitcast", [bits], {"dtype": target})
        return cast(Array, found.astype(instr.dtype.numpy))

    def _random_bits_instr(self, stage: Stage, instr: Instr, args: list[Array]) -> Array:
        assert instr.index is not None
        at = np.broadcast_to(self.index(instr.index), self.shape)
        bits = random_bits(int(args[0].flat[0]), int(args[1].flat[0]), int(at.max(initial=-1)) + 1)
        # Masked elements may lie before the first.
        return cast(Array, bits[np.maximum(at, 0)])
