"""The table of batching rules: what a primitive does to many examples at once.

A rule takes tensors of which those that are `batched` have the examples along a new first axis, and
gives the result, or the results, with such an axis:

    rule(given, tensors, attrs) -> a tensor, or a tuple of tensors

`given.size` is the number of examples and `given.batched` has a bool for each tensor; at least one
is true. `@batch` registers a rule. A primitive without one runs on one example after another.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..compiler.ir import PRIMITIVES, Family, Primitive
from ..compiler.ir import primitives as p
from ..core.dispatch import apply, make_source
from ..core.tensor import Tensor
from ..runtime.records import NamedTuple

Attrs = dict[str, Any]


class Batch(NamedTuple):
    """What is batched: how many examples, and which operands have them along their first axis."""

    primitive: Primitive
    size: int
    batched: tuple[bool, ...]


Rule = Callable[[Batch, Sequence[Tensor], Attrs], Any]
BATCH_RULES: dict[Primitive, Rule] = {}


def batch(*primitives: Primitive) -> Callable[[Rule], Rule]:
    """Register the batching rule of `primitives`: `rule(given, tensors, attrs)`.

    >>> from tgraph.compiler.ir import primitives as p
    >>> @batch(p.linear_scan)       # doctest: +SKIP
    ... def _linear_scan(given, tensors, attrs): ...
    """

    def add(rule: Rule) -> Rule:
        for primitive in primitives:
            BATCH_RULES[primitive] = rule
        return rule

    return add


# --- where the examples are ---


def moved(x: Tensor, source: int, target: int) -> Tensor:
    """`x` with the axis `source` at `target`."""
    if source == target:
        return x
    axes = [axis for axis in range(x.ndim) if axis != source]
    axes.insert(target, source)
    return apply(p.permute, x, axes=tuple(axes))


def spread(x: Tensor, size: int) -> Tensor:
    """`size` times the same."""
    return apply(p.broadcast, x, shape=(size, *x._type.shape))


def in_front(given: Batch, tensors: Sequence[Tensor]) -> list[Tensor]:
    """All operands with the examples along their first axis."""
    return [
        x if is_batched else spread(x, given.size)
        for x, is_batched in zip(tensors, given.batched, strict=True)
    ]


def aligned(given: Batch, tensors: Sequence[Tensor], least: int = 0) -> list[Tensor]:
    """Operands that broadcast: examples stand before as many axes as any operand has."""
    own = [x.ndim - is_batched for x, is_batched in zip(tensors, given.batched, strict=True)]
    rank = max(*own, least)
    return [
        _with_rank(x, rank) if is_batched else x
        for x, is_batched in zip(tensors, given.batched, strict=True)
    ]


def _with_rank(x: Tensor, rank: int) -> Tensor:
    count, *own = x._type.shape
    if len(own) == rank:
        return x
    return apply(p.reshape, x, shape=(count, *(1,) * (rank - len(own)), *own))


# --- families ---


def _of_family(family: Family) -> list[Primitive]:
    return [each for each in PRIMITIVES.values() if each.family is family]


@batch(*_of_family(Family.ELEMENTWISE), p.complex_, p.conj)
def _elementwise(given: Batch, tensors: Sequence[Tensor], attrs: Attrs) -> Any:
    # `strides` say how a copy lies in memory, of which the first axis is outermost.
    attrs = {name: value for name, value in attrs.items() if name != "strides"}
    return apply(given.primitive, *aligned(given, tensors), **attrs)


@batch(p.view_as_real, p.view_as_complex, p.repack, p.transfer, p.argsort, p.select_nth, p.sort)
@batch(p.diagonal, p.cholesky, p.lu, p.qr, p.eigh, p.svd)
def _as_it_is(given: Batch, tensors: Sequence[Tensor], attrs: Attrs) -> Any:
    """What takes any number of axes before those that it works on."""
    return apply(given.primitive, *tensors, **attrs)


@batch(p.triangular_solve)
def _all_batched(given: Batch, tensors: Sequence[Tensor], attrs: Attrs) -> Any:
    return apply(given.primitive, *in_front(given, tensors), **attrs)


@batch(*_of_family(Family.REDUCE), p.flip)
def _along_axes(given: Batch, tensors: Sequence[Tensor], attrs: Attrs) -> Any:
    axes = tuple(axis + 1 for axis in attrs["axes"])
    return apply(given.primitive, *tensors, **{**attrs, "axes": axes})


@batch(*_of_family(Family.SCAN), p.concatenate, p.assemble, p.gather, p.scatter_add)
def _along_an_axis(given: Batch, tensors: Sequence[Tensor], attrs: Attrs) -> Any:
    operands = in_front(given, tensors)
    return apply(given.primitive, *operands, **{**attrs, "axis": attrs["axis"] + 1})


# --- movement ---


@batch(p.reshape)
def _reshape(given: Batch, tensors: Sequence[Tensor], attrs: Attrs) -> Any:
    return apply(p.reshape, *tensors, shape=(given.size, *attrs["shape"]))


@batch(p.broadcast)
def _broadcast(given: Batch, tensors: Sequence[Tensor], attrs: Attrs) -> Any:
    shape = attrs["shape"]
    return apply(p.broadcast, *aligned(given, tensors, len(shape)), shape=(given.size, *shape))


@batch(p.permute)
def _permute(given: Batch, tensors: Sequence[Tensor], attrs: Attrs) -> Any:
    return apply(p.permute, *tensors, axes=(0, *(axis + 1 for axis in attrs["axes"])))


@batch(p.slice_, p.slice_update)
def _slice(given: Batch, tensors: Sequence[Tensor], attrs: Attrs) -> Any:
    whole = {"starts": 0, "stops": given.size, "steps": 1}
    attrs = {name: (whole[name], *value) for name, value in attrs.items()}
    return apply(given.primitive, *in_front(given, tensors), **attrs)


@batch(p.pad)
def _pad(given: Batch, tensors: Sequence[Tensor], attrs: Attrs) -> Any:
    amounts = {name: (0, *attrs[name]) for name in ("low", "high", "interior")}
    return apply(p.pad, *tensors, **amounts, value=attrs["value"])


@batch(p.unfold, p.fold)
def _windows(given: Batch, tensors: Sequence[Tensor], attrs: Attrs) -> Any:
    attrs = {**attrs, "axes": tuple(axis + 1 for axis in attrs["axes"])}
    if given.primitive is p.fold:
        attrs["shape"] = (given.size, *attrs["shape"])
    return apply(given.primitive, *tensors, **attrs)


@batch(p.barrier)
def _barrier(given: Batch, tensors: Sequence[Tensor], attrs: Attrs) -> Any:
    return apply(p.barrier, in_front(given, tensors)[0], tensors[1])


# --- positions ---


def _numbers(size: int, like: Tensor) -> Tensor:
    """0, 1, ... along the first axis, as positions beside `like`."""
    _, dtype, device = like._type
    shape = (size, *(1,) * (like.ndim - 1))
    numbers = make_source(p.iota, device, size=size, dtype=dtype)
    return apply(p.broadcast, apply(p.reshape, numbers, shape=shape), shape=like._type.shape)


@batch(p.index)
def _index(given: Batch, tensors: Sequence[Tensor], attrs: Attrs) -> Any:
    axis = attrs["axis"]
    x, *indices = tensors
    if not any(given.batched[1:]):
        return apply(p.index, x, *indices, axis=axis + 1)
    indices = in_front(given, tensors)[1:]
    if given.batched[0]:  # of each example its own: the axis of examples is one more to index
        x = moved(x, 0, axis)
        indices = [_numbers(given.size, indices[0]), *indices]
    return moved(apply(p.index, x, *indices, axis=axis), axis, 0)


@batch(p.index_put)
def _index_put(given: Batch, tensors: Sequence[Tensor], attrs: Attrs) -> Any:
    axis, (x, *indices, values) = attrs["axis"], in_front(given, tensors)
    if not any(given.batched[1:-1]):
        return apply(p.index_put, x, *tensors[1:-1], values, **{**attrs, "axis": axis + 1})
    numbers = _numbers(given.size, indices[0])
    x, values = moved(x, 0, axis), moved(values, 0, axis)
    return moved(apply(p.index_put, x, numbers, *indices, values, **attrs), axis, 0)


# --- products ---


@batch(p.matmul)
def _matmul(given: Batch, tensors: Sequence[Tensor], attrs: Attrs) -> Any:
    (a, b), (left, right) = tensors, given.batched
    if left and not right and b.ndim == 2 and a.ndim == 3 and not attrs["transpose_a"]:
        size, rows, width = a._type.shape  # one product of all rows
        flat = apply(p.matmul, apply(p.reshape, a, shape=(size * rows, width)), b, **attrs)
        return apply(p.reshape, flat, shape=(size, rows, flat._type.shape[1]))
    if right and not left and a.ndim == 2 and b.ndim == 3:
        columns = b._type.shape[1 if attrs["transpose_b"] else 2]
        if columns == 1:  # vectors: they are the rows of one product
            flat = apply(p.reshape, b, shape=(given.size, b._type.numel // max(given.size, 1)))
            found = apply(
                p.matmul, flat, a, transpose_a=False, transpose_b=not attrs["transpose_a"]
            )
            return apply(p.reshape, found, shape=(*found._type.shape, 1))
    return apply(p.matmul, *aligned(given, tensors), **attrs)


@batch(p.convolution)
def _convolution(given: Batch, tensors: Sequence[Tensor], attrs: Attrs) -> Any:
    (x, w), size = tensors, given.size
    if not given.batched[1]:
        flat = apply(p.convolution, _merged(x, 0), w, **attrs)
        return _split(flat, 0, size)
    groups = attrs["groups"]
    if given.batched[0]:  # examples are groups
        x, w = _merged(moved(x, 0, 1), 1), _merged(w, 0)
        found = apply(p.convolution, x, w, **{**attrs, "groups": groups * size})
        return moved(_split(found, 1, size), 1, 0)
    outer, *rest = w._type.shape[1:]
    grouped = apply(p.reshape, w, shape=(size, groups, outer // groups, *rest))
    grouped = apply(p.reshape, moved(grouped, 0, 1), shape=(size * outer, *rest))
    found = apply(p.convolution, x, grouped, **attrs)
    samples, _, *spatial = found._type.shape
    apart = apply(p.reshape, found, shape=(samples, groups, size, outer // groups, *spatial))
    return apply(p.reshape, moved(apart, 2, 0), shape=(size, samples, outer, *spatial))


def _merged(x: Tensor, axis: int) -> Tensor:
    """`axis` and the next one as one."""
    shape = x._type.shape
    one = shape[axis] * shape[axis + 1]
    return apply(p.reshape, x, shape=(*shape[:axis], one, *shape[axis + 2 :]))


def _split(x: Tensor, axis: int, size: int) -> Tensor:
    """`axis` as `size` and what is left of it."""
    shape = x._type.shape
    parts = (size, shape[axis] // max(size, 1))
    return apply(p.reshape, x, shape=(*shape[:axis], *parts, *shape[axis + 1 :]))


# --- one after another ---


def one_by_one(given: Batch, tensors: Sequence[Tensor], attrs: Attrs) -> Any:
    """The results for one example after another: what any primitive can do."""
    found = []
    for at in range(given.size):
        own = [
            _example(x, at) if is_batched else x
            for x, is_batched in zip(tensors, given.batched, strict=True)
        ]
        result = apply(given.primitive, *own, **attrs)
        found.append(result if isinstance(result, tuple) else (result,))
    if not found:
        raise NotImplementedError(
            f"vmap: {given.primitive.name} runs on one example after another, and there are none"
        )
    stacked = tuple(
        apply(p.concatenate, *[_one_more(each) for each in results], axis=0)
        for results in zip(*found, strict=True)
    )
    return stacked if isinstance(result, tuple) else stacked[0]


def _example(x: Tensor, at: int) -> Tensor:
    shape = x._type.shape
    starts, stops = (at, *(0,) * (len(shape) - 1)), (at + 1, *shape[1:])
    part = apply(p.slice_, x, starts=starts, stops=stops, steps=(1,) * len(shape))
    return apply(p.reshape, part, shape=shape[1:])


def _one_more(x: Tensor) -> Tensor:
    return apply(p.reshape, x, shape=(1, *x._type.shape))
