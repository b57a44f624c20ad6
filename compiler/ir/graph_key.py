"""What a plan follows from, as one text: a graph and how it is asked for, whoever traced it.

Equal texts mean equal plans, in other processes too. Names and lines of the program are left out,
but for which of them are the same: kernels that check something are told apart by their lines.
"""

from __future__ import annotations

import struct
from _blake2 import blake2b  # see `cache`
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ...runtime.device import CPU
from ...runtime.dtypes import DType
from . import Family, Graph, Node, Provenance
from . import primitives as p

MOST_CONSTANT_BYTES = 1 << 20
"""Of an array that is a constant; plans with larger ones would take much of a disk."""


class _NoText(Exception):
    """Something that is not the same in another process, or on other devices."""


def graph_key(
    graph: Graph,
    donate: Mapping[int, int] | None = None,
    strides: Mapping[int, tuple[int, ...]] | None = None,
    overwritten: Iterable[int] = (),
) -> str | None:
    """The text for what `compile_graph` is given; None where the plan means something here only."""
    given = [sorted((donate or {}).items()), sorted((strides or {}).items()), sorted(overwritten)]
    place: dict[Provenance, int] = {}
    try:
        texts = [_text_of_graph(each, place) for each in graph.whole]
    except _NoText:
        return None
    return "\n".join([*texts, f"{given}"])


def _text_of_graph(graph: Graph, place: dict[Provenance, int]) -> str:
    """Its nodes, how many inputs it has, and its outputs; graphs inside it have their own text.

    `place` tells which nodes of all graphs were the first of their lines.
    """
    number = {node: at for at, node in enumerate(graph.nodes)}
    results = [number[node] for node in graph.outputs]
    return "\n".join([*_lines(graph.nodes, number, place), f"{len(graph.inputs)} {results}"])


def _lines(
    nodes: Sequence[Node], number: Mapping[Node, int], place: dict[Provenance, int]
) -> list[str]:
    """One for each node: what it is, what it reads, and the first that comes of the same line."""
    known: dict[Any, str] = {}
    lines = []
    for node in nodes:
        first = place.setdefault(node.where, len(place))
        what = known.get(node.what)
        if what is None or node.primitive is p.input_:
            what = known[node.what] = _what(node)
        operands = " ".join([str(number[each]) for each in node.inputs])
        lines.append(f"{what}({operands}){first}")
    return lines


def _what(node: Node) -> str:
    """A primitive with its attributes, and the type of an input."""
    if node.primitive.family is Family.OPAQUE:  # a Python function
        raise _NoText
    if node.primitive is p.input_:
        shape, dtype, device = node.type
        if device is not CPU:
            raise _NoText
        return f"input {dtype.name} {shape} {_attributes(node, ('name', 'type'))}"
    return f"{node.primitive.name} {_attributes(node)}"


def _attributes(node: Node, without: Collection[str] = ()) -> str:
    names = sorted(name for name in node.attrs if name not in without)
    return " ".join([f"{name}={_text(node.attrs[name])}" for name in names])


def _text(value: Any) -> str:
    """An attribute; the same text for interchangeable ones only, as in `ir.node.attr_key`."""
    kind = type(value)
    if kind is float:
        return f"f{struct.pack('<d', value).hex()}"
    if kind is complex:
        return f"c{struct.pack('<dd', value.real, value.imag).hex()}"
    if kind in (bool, int, str) or value is None:
        return repr(value)
    if kind is DType:
        return f"d{value.name}"
    if kind in (tuple, list):
        return f"({','.join([_text(each) for each in value])})"
    if isinstance(value, (np.generic, np.ndarray)) and not value.dtype.hasobject:
        if value.nbytes > MOST_CONSTANT_BYTES:
            raise _NoText
        content = blake2b(value.tobytes(), digest_size=32).hexdigest()
        return f"a{value.dtype!r}{value.shape}{content}"
    if value is CPU:
        return "cpu"
    if isinstance(value, Graph):
        return "graph"  # those of a node follow in their order
    raise _NoText
