"""Makers of views, movement, reductions and access at positions."""

from __future__ import annotations

from math import prod

import numpy as np
from tgraph.compiler.ir import primitives as p
from tgraph.runtime.dtypes import float32, int32, int64

from .elementwise import is_number
from .program import MAX_NDIM, Program, Unfit, Value


def _has_axes(value: Value) -> bool:
    return value.ndim > 0


def some_axes(program: Program, ndim: int) -> tuple[int, ...]:
    axes = tuple(axis for axis in range(ndim) if program.choose(2))
    return axes or ((program.choose(ndim),) if ndim else ())


def reduce(program: Program) -> None:
    value = program.draw(is_number)
    axes = some_axes(program, value.ndim)
    prim = program.pick((p.sum_, p.sum_, p.sum_, p.max_, p.min_, p.prod))
    program.keep(program.op(prim, value, axes=axes, keepdims=bool(program.choose(2))))


def logical_reduce(program: Program) -> None:
    value = program.draw(lambda v: v.is_bool)
    axes = some_axes(program, value.ndim)
    prim = program.pick((p.any_, p.all_, p.max_, p.min_))
    program.keep(program.op(prim, value, axes=axes, keepdims=bool(program.choose(2))))


def position(program: Program) -> None:
    value = program.draw(lambda v: v.exact and v.ndim > 0)
    axis = program.choose(value.ndim)
    prim = program.pick((p.argmax, p.argmin))
    program.keep(program.op(prim, value, axes=(axis,), keepdims=bool(program.choose(2))))


def running_fold(program: Program) -> None:
    value = program.draw(lambda v: is_number(v) and v.ndim > 0)
    attrs = {"axis": program.choose(value.ndim), "reverse": bool(program.choose(2))}
    scan = program.pick((p.cumsum, p.cumsum, p.cumprod, p.cummax, p.cummin, p.linear_scan))
    operands = [value]
    if scan is p.linear_scan:
        operands.append(program.draw(lambda v: v.is_float and v.node.type == value.node.type))
    folded = program.op(scan, *operands, **attrs)
    program.keep(folded)
    if program.maybe(3):  # what one stage reads of it, and what no other can
        axes = (attrs["axis"],)
        reduced = program.op(program.pick((p.sum_, p.max_)), folded, axes=axes, keepdims=True)
        program.keep(program.op(p.add, folded, reduced))


def extreme_of_some(program: Program) -> None:
    """Where a condition fails, what changes no extreme, or hardly any."""
    value = program.draw(lambda v: is_number(v) and v.ndim > 0)
    chosen = program.draw(lambda v: v.is_bool and program.broadcasts(v.shape, value.shape))
    largest = bool(program.choose(2))
    number = program.pick((0, 2, -2 if value.dtype.kind != "uint" else 0))
    left = program.op(p.where, chosen, value, program.const(number, value.dtype))
    axes = some_axes(program, left.ndim)
    keep = {"axes": axes, "keepdims": bool(program.choose(2))}
    program.keep(program.op(p.max_ if largest else p.min_, left, **keep))


def reshape(program: Program) -> None:
    value = program.draw()
    shape = list(value.shape)
    kind = program.choose(4)
    if kind == 0 and len(shape) > 1:
        axis = program.choose(len(shape) - 1)
        shape[axis : axis + 2] = [shape[axis] * shape[axis + 1]]
    elif kind == 1 and shape:
        axis = program.choose(len(shape))
        factor = program.pick([f for f in (2, 3, 4, 5, 10) if shape[axis] % f == 0])
        shape[axis : axis + 1] = [shape[axis] // factor, factor][:: 1 - 2 * program.choose(2)]
    elif kind == 2:
        shape = [prod(shape)]
    else:
        shape.insert(program.choose(len(shape) + 1), 1)
    if len(shape) <= MAX_NDIM:
        program.keep(program.op(p.reshape, value, shape=tuple(shape)))


def squeeze(program: Program) -> None:
    value = program.draw(lambda v: 1 in v.shape)
    kept = tuple(size for size in value.shape if size != 1 or program.choose(2))
    program.keep(program.op(p.reshape, value, shape=kept))


def permute(program: Program) -> None:
    value = program.draw(lambda v: v.ndim > 1)
    rest = list(range(value.ndim))
    axes = tuple(rest.pop(program.choose(len(rest))) for _ in range(len(rest)))
    program.keep(program.op(p.permute, value, axes=axes))


def diagonal(program: Program) -> None:
    value = program.draw(lambda v: v.ndim > 1)
    program.keep(program.op(p.diagonal, value, offset=program.pick((0, 1, -1, 4, -9))))


def broadcast(program: Program) -> None:
    value = program.draw()
    shape = [program.pick((1, 2, 3, 9, 20)) if size == 1 else size for size in value.shape]
    if program.choose(2) and len(shape) < MAX_NDIM:
        shape.insert(0, program.pick((2, 4)))
    program.keep(program.op(p.broadcast, value, shape=tuple(shape)))


def outer(program: Program) -> None:
    """Two values against each other, as pairwise differences are made."""
    value = program.draw(lambda v: not v.is_bool and v.ndim in (1, 2))
    other = program.draw(lambda v: v.dtype is value.dtype and v.ndim == value.ndim)
    left = program.op(p.reshape, value, shape=(value.shape[0], 1, *value.shape[1:]))
    right = program.op(p.reshape, other, shape=(1, *other.shape))
    if not program.broadcasts(left.shape, right.shape):
        raise Unfit
    program.keep(program.op(program.pick((p.add, p.sub, p.mul, p.maximum)), left, right))


def slice_(program: Program) -> None:
    value = program.draw()
    program.keep(program.op(p.slice_, value, **_slices(program, value.shape)))


def _slices(program: Program, shape: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
    starts, stops, steps = [], [], []
    for size in shape:
        whole = program.choose(2)
        start = 0 if whole else program.choose(max(size, 1))
        stop = size if whole else start + program.choose(size - start + 1)
        starts.append(start)
        stops.append(max(stop, min(start + 1, size)) if program.choose(9) else stop)
        steps.append(1 if whole else 1 + program.choose(3))
    return {"starts": tuple(starts), "stops": tuple(stops), "steps": tuple(steps)}


def pad(program: Program) -> None:
    value = program.draw()
    low, high, interior = (
        tuple(program.choose(3) for _ in range(value.ndim)),
        tuple(program.choose(3) for _ in range(value.ndim)),
        tuple(program.choose(4) // 3 for _ in range(value.ndim)),
    )
    fill = program.pick((0, 1))
    filler = bool(fill) if value.is_bool else fill * 1.5 if value.is_float else fill
    program.keep(program.op(p.pad, value, low=low, high=high, interior=interior, value=filler))


def flip(program: Program) -> None:
    value = program.draw()
    program.keep(program.op(p.flip, value, axes=some_axes(program, value.ndim)))


def concatenate(program: Program) -> None:
    value = program.draw(_has_axes)
    axis = program.choose(value.ndim)
    found = [
        v
        for v in program.values
        if v.dtype is value.dtype
        and v.ndim == value.ndim
        and v.shape[:axis] == value.shape[:axis]
        and v.shape[axis + 1 :] == value.shape[axis + 1 :]
    ]
    parts = [value, *(program.pick(found) for _ in range(program.choose(4)))]
    program.keep(program.op(p.concatenate, *parts, axis=axis))


def roll(program: Program) -> None:
    """Two slices the other way round."""
    value = program.draw(_has_axes)
    axis = program.choose(value.ndim)
    at = program.choose(max(value.shape[axis], 1))
    parts = []
    for start, stop in ((at, value.shape[axis]), (0, at)):
        starts, stops = [0] * value.ndim, list(value.shape)
        starts[axis], stops[axis] = start, stop
        attrs = {"starts": tuple(starts), "stops": tuple(stops), "steps": (1,) * value.ndim}
        parts.append(program.op(p.slice_, value, **attrs))
    program.keep(program.op(p.concatenate, *parts, axis=axis))


def barrier(program: Program) -> None:
    value, other = program.draw(), program.draw()
    program.keep(program.op(p.barrier, value, other))


def slice_update(program: Program) -> None:
    value = program.draw(_has_axes)
    attrs = _slices(program, value.shape)
    part = program.op(p.slice_, value, **attrs)
    other = program.partner(part)
    if not program.broadcasts(other.shape, part.shape):
        raise Unfit
    update = program.op(p.broadcast, other, shape=part.shape)
    program.keep(program.op(p.slice_update, value, update, **attrs))


def windows(program: Program) -> None:
    """Pooling over one or two axes, or windows added up again."""
    value = program.draw(lambda v: not v.is_bool and v.ndim > 0)
    axes = some_axes(program, value.ndim)[:2]
    sizes = tuple(1 + program.choose(min(4, max(value.shape[axis], 1))) for axis in axes)
    steps = {
        "axes": axes,
        "strides": tuple(1 + program.choose(3) for _ in axes),
        "dilations": tuple(1 + program.choose(2) for _ in axes),
    }
    taps = program.op(p.unfold, value, sizes=sizes, **steps)
    if program.choose(2):
        last = tuple(range(value.ndim, value.ndim + len(axes)))
        program.keep(program.op(program.pick((p.max_, p.sum_)), taps, axes=last, keepdims=False))
        return
    if program.choose(2):
        taps = program.op(p.mul, taps, taps)
    program.keep(program.op(p.fold, taps, shape=value.shape, **steps))


def positions(program: Program, size: int, shape: tuple[int, ...]) -> Value:
    """An index tensor with entries in [0, size), read or computed; at times one is outside."""
    if size == 0:
        raise Unfit
    if program.choose(2):
        fitting = [
            v
            for v in program.values
            if v.dtype in (int32, int64) and program.broadcasts(v.shape, shape)
        ]
        fitting = [v for v in fitting if np.broadcast_shapes(v.shape, shape) == shape]
        if fitting:
            value = program.op(p.broadcast, program.pick(fitting), shape=shape)
            return program.op(p.remainder, value, program.const(size, value.dtype))
    rng = np.random.default_rng(program.choose(100))
    dtype = program.pick((np.int64, np.int32))
    beyond = 2 * int(program.hazard)
    array = np.asarray(rng.integers(-beyond, size + beyond, shape, dtype))
    if program.choose(3):
        return program.array(array)
    shift = program.pick((-size, size, size + 3))  # so that 0 would become none of them
    moved = program.array((array - shift).astype(dtype))
    return program.op(p.add, moved, program.const(shift, moved.dtype))


def index(program: Program) -> None:
    value = program.draw(_has_axes)
    axis = program.choose(value.ndim)
    count = 1 + (program.choose(2) if axis + 1 < value.ndim else 0)
    shape = tuple(program.pick((1, 3, 6)) for _ in range(program.choose(3)))
    at = [positions(program, value.shape[axis + each], shape) for each in range(count)]
    program.keep(program.op(p.index, value, *at, axis=axis))


def gather(program: Program) -> None:
    value = program.draw(_has_axes)
    axis = program.choose(value.ndim)
    shape = [size if program.choose(3) else min(size, 1) for size in value.shape]
    shape[axis] = program.pick((1, 4))
    at = positions(program, value.shape[axis], tuple(shape))
    program.keep(program.op(p.gather, value, at, axis=axis))


def scatter(program: Program) -> None:
    value = program.draw(lambda v: not v.is_bool and v.ndim > 0)
    axis = program.choose(value.ndim)
    shape = list(value.shape)
    shape[axis] = program.pick((1, 4))
    at = positions(program, value.shape[axis], tuple(shape))
    source = program.op(p.gather, value, at, axis=axis)
    if program.hazard:
        raise Unfit
    if program.choose(2):
        source = program.op(p.mul, source, source)
    program.keep(program.op(p.scatter_add, value, at, source, axis=axis))


def index_put(program: Program) -> None:
    value = program.draw(_has_axes)
    axis = program.choose(value.ndim)
    count = 1 + (program.choose(2) if axis + 1 < value.ndim else 0)
    shape = tuple(program.pick((1, 3, 5)) for _ in range(program.choose(3)))
    at = [positions(program, value.shape[axis + each], shape) for each in range(count)]
    wanted = (*value.shape[:axis], *shape, *value.shape[axis + count :])
    other = program.partner(value)
    if not program.broadcasts(other.shape, wanted):
        raise Unfit
    update = program.op(p.broadcast, other, shape=wanted)
    accumulate = not value.is_bool and bool(program.choose(2))
    operands = (value, *at, update)
    program.keep(program.op(p.index_put, *operands, axis=axis, accumulate=accumulate))


def iota(program: Program) -> None:
    size = program.pick(program.sizes)
    dtype = program.pick((int64, int32, float32))
    node = program.build.apply(p.iota, [], {"size": size, "dtype": dtype})
    program.keep(program.known(node, float(size), 0.0, 0))


def one_hot(program: Program) -> None:
    """Positions compared with a count, as one-hot codes and masks are made."""
    value = program.draw(lambda v: v.is_integer and v.ndim < MAX_NDIM)
    size = program.pick((2, 5, 8))
    count = program.build.apply(p.iota, [], {"size": size, "dtype": value.dtype})
    counted = program.known(count, float(size), 0.0, 0)
    column = program.op(p.reshape, value, shape=(*value.shape, 1))
    if not program.broadcasts(column.shape, counted.shape):
        raise Unfit
    program.keep(program.op(program.pick((p.eq, p.le, p.lt)), column, counted))


MAKERS = (
    reduce, reduce, reduce, logical_reduce, position, position, running_fold, running_fold,
    extreme_of_some, reshape, reshape, squeeze, permute, permute,
    diagonal, broadcast, outer, slice_, pad, flip, concatenate, roll, slice_update, windows, index,
    gather, barrier, scatter, index_put, iota, one_hot,
)  # fmt: skip

BORDERS = (slice_, pad, concatenate, roll, slice_update, windows)
"""What makes conditions on loops."""
