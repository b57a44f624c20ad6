"""What a run is fed: values for placeholders, checked against what was declared."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ..compiler.ir import Node
from ..compiler.ir.dim import Dim, SizeGuard, SymInt, is_open, solved
from ..core.dispatch import settled
from ..core.tensor import Tensor
from ..runtime.arrays import place, to_host
from ..runtime.device import Device
from ..tracing.selections import Selection
from .graph_trace import GraphTrace
from .lookup import named
from .needed import Needed
from .placeholder import Placeholder

Array = Any  # of NumPy or CuPy


def placeholder_of(trace: GraphTrace, key: Any) -> Placeholder:
    """The placeholder that is to be fed, or that has the name which is.

    TypeError, ValueError or KeyError for what is none of the graph.
    """
    if type(key) is str:
        key = named(trace, key)
    found: Placeholder | None = trace.graph.placeholders.get(id(key))
    if found is not None and found.tensor is key:
        return found
    if isinstance(key, Tensor) and type(key._value) is Node:
        where = key._value.where
        if trace.owns(key._value):
            raise ValueError(f"only placeholders can be fed, not the tensor made at {where}")
        raise ValueError(f"the tensor made at {where} is fed, which belongs to another graph")
    raise TypeError(
        f"feed_dict has a {type(key).__name__} among its keys; these are placeholders or names"
    )


def placeholders_of(trace: GraphTrace, keys: Iterable[Any]) -> list[Placeholder]:
    """`placeholder_of` for each; ValueError for one that is there twice, as by its name, too."""
    found = {}
    for key in keys:
        each = placeholder_of(trace, key)
        if id(each) in found:
            raise ValueError(f"{each} is fed twice")
        found[id(each)] = each
    return list(found.values())


def array_of(placeholder: Placeholder, value: Any, device: Device) -> Array:
    """The array of a value that is fed, for `device`; one of NumPy may be for another one."""
    type_ = placeholder.type
    if isinstance(value, Tensor):
        if type(value._value) is Node:
            raise TypeError(f"{placeholder} is fed a tensor of a graph, which has no value")
        array = settled(value)._value
        if value._type.dtype is not type_.dtype:
            raise TypeError(_mismatch(placeholder, value._type.dtype.name, array.shape))
        if value._type.device != device:
            array = place(to_host(array), device)
    elif isinstance(value, (np.ndarray, np.generic)):
        array = np.asarray(value)
        _check_dtype(placeholder, array)
    else:
        array = _of_python(placeholder, value)
    return array


def _of_python(placeholder: Placeholder, value: Any) -> Array:
    """Numbers in lists have no dtype; they are taken for the placeholder's if they can be."""
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise TypeError(f"{placeholder} is fed a {type(value).__name__}: {error}") from None
    dtype = placeholder.type.dtype.numpy
    came = _KINDS.get(array.dtype.kind)
    if came is None:
        raise TypeError(f"{placeholder} is fed a {type(value).__name__}, which is no tensor")
    if came > _KINDS.get(dtype.kind, 2):  # bfloat16 is of no kind that NumPy knows
        raise TypeError(_mismatch(placeholder, array.dtype.name, array.shape))
    with np.errstate(all="ignore"):  # floats that are too large become infinite
        made = array.astype(dtype)
    if dtype.kind in "iu" and (made != array).any():
        raise ValueError(f"{placeholder} is fed {value!r}, which {dtype.name} does not hold")
    return made


_KINDS = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}
"""Kinds of NumPy's dtypes; numbers of one become those of a later one without loss."""


def _check_dtype(placeholder: Placeholder, array: Array) -> None:
    if array.dtype != placeholder.type.dtype.numpy:
        raise TypeError(_mismatch(placeholder, array.dtype.name, array.shape))


def _mismatch(placeholder: Placeholder, dtype: str, shape: Sequence[int]) -> str:
    given = f"{dtype}[{', '.join(map(str, shape))}]"
    return f"{placeholder}, made at {placeholder.node.where}, is fed {given}"


def sizes_of(
    trace: GraphTrace,
    placeholders: Sequence[Placeholder],
    arrays: Sequence[Array],
) -> dict[Dim, int]:
    """The sizes of dims that what is fed tells; ValueError where shapes do not fit."""
    found: dict[Dim, tuple[int, str]] = {}
    computed: list[tuple[SymInt, int, str]] = []  # of what is fed in the place of a default
    for each, array in zip(placeholders, arrays, strict=True):
        shape, wanted = array.shape, each.type.shape
        if len(shape) != len(wanted):
            raise ValueError(_mismatch(each, str(array.dtype), shape))
        if array.dtype != each.type.dtype.numpy:
            raise TypeError(_mismatch(each, str(array.dtype), shape))
        for axis, (size, declared) in enumerate(zip(shape, wanted, strict=True)):
            if not is_open(declared):
                if size != declared:
                    raise ValueError(
                        f"{_mismatch(each, str(array.dtype), shape)}: axis {axis} is {size} in "
                        f"place of {declared}"
                    )
                continue
            own = f"axis {axis} of placeholder '{each.name}'"
            dim, *rest = declared.dims
            if rest or declared.terms != {(dim,): 1}:
                computed.append((declared, size, own))
                continue
            one = trace.sizes.one_of(dim)
            known, where = found.setdefault(one, (size, own))
            if known != size:
                raise ValueError(
                    f"{own} is fed {size} and {where} {known}, which are to be the same size"
                    f"{_because(trace, dim, one)}"
                )
    sizes = {dim: size for dim, (size, _) in found.items()}
    for expected, given, own in computed:
        ones = {dim: trace.sizes.one_of(dim) for dim in expected.dims}
        told = {dim: sizes[one] for dim, one in ones.items() if one in sizes}
        if len(told) < len(ones) or expected.at(told) != given:
            is_told = ", which nothing that is fed tells" if len(told) < len(ones) else ""
            raise ValueError(
                f"{own} is fed {given}, and is to be {expected.text}{is_told} "
                f"({trace.sizes.told(expected)})"
            )
    return sizes


def _because(trace: GraphTrace, dim: Dim, one: Dim) -> str:
    """Where in the graph two sizes were taken to be equal."""
    for guard in list(trace.sizes.guards.values()):
        if guard.relation == "==" and dim in guard.size.dims:
            return f" ({guard.size.text} is taken to be 0 at {guard.where})"
    return f" (both are named '{one.name}')"


def with_count(trace: GraphTrace, sizes: dict[Dim, int], selection: Selection, count: int) -> None:
    """Takes in how many elements are selected; ValueError where it has to be another number."""
    one = trace.sizes.one_of(selection.dim)
    known = sizes.setdefault(one, count)
    if known != count:
        raise ValueError(
            f"{count} elements are selected at {selection.where}, where {known} have to be"
            f"{_because(trace, selection.dim, one)}"
        )


def sizes_of_held(trace: GraphTrace, sizes: dict[Dim, int], held: Mapping[Node, Array]) -> None:
    """Takes in what the shapes of values tell that an earlier step of a run has computed."""
    pairs = [
        (size, number)
        for node, array in held.items()
        for size, number in zip(node.type.shape, array.shape, strict=True)
        if is_open(size)
    ]
    for dim, number in solved(pairs).items():
        sizes.setdefault(trace.sizes.one_of(dim), number)


def check_assumptions(
    trace: GraphTrace, sizes: Mapping[Dim, int], guards: Sequence[SizeGuard]
) -> None:
    """ValueError for sizes for which the `guards` do not hold."""
    known = trace.sizes.known(sizes)
    for guard in guards:
        dims = guard.size.dims
        if dims <= known.keys() and not guard.holds(known):
            told = ", ".join(f"{each.name} is {known[each]}" for each in dims)
            is_fed = trace.sizes.counts.keys().isdisjoint(dims)
            comes = "is fed others" if is_fed else "others come of what is fed"
            raise ValueError(
                f"the graph was built for sizes where {guard}, as {guard.where} asks, and "
                f"{comes}: {told} ({trace.sizes.told(guard.size)})"
            )


def check_fed(needed: Needed, placeholders: Sequence[Placeholder], trace: GraphTrace) -> None:
    """ValueError for a placeholder that is needed and was not fed."""
    fed = {each.node for each in placeholders}
    every = {each.node: each for each in trace.graph.placeholders.values()}
    for node in [entry.node for entry in needed.inputs]:
        missing = every.get(node)
        if missing is not None and node not in fed:
            raise ValueError(
                f"{missing}, made at {node.where}, is not fed. It is needed by what is fetched: "
                f"{needed.path_to(node)} <- '{missing.name}'"
            )
