"""A graph with its values on other devices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import MappingProxyType
from typing import Any

from ..runtime.device import CPU, Device
from .ir import Builder, Family, Graph, Node, TensorType
from .ir import primitives as p
from .ir.shapes import contiguous_strides

Place = Callable[[Device], Device]


def with_one_host(graph: Graph) -> Graph:
    """`graph` with what is on `cpu:1`, `cpu:2`... on the CPU: one piece of hardware is one target.

    What moved between them is copied, as memory of its own.
    """
    nodes = (node for each in graph.whole for node in (*each.inputs, *each.nodes))
    if all(device is CPU or not device.is_host for node in nodes for device in _devices(node)):
        return graph
    return moved(graph, _hardware)


def _hardware(device: Device) -> Device:
    return CPU if device.is_host else device


def _devices(node: Node) -> list[Device]:
    type_: Any = node.type
    return [type_.device] if isinstance(type_, TensorType) else [each.device for each in type_]


def moved(graph: Graph, place: Place, keep_order: bool = True) -> Graph:
    """`graph` with each value on the device `place(device)` instead of its own.

    A move that is none any more becomes a copy. Without `keep_order` inputs that are moved are
    contiguous.
    """
    new = {node: _input(node, place, keep_order) for node in graph.inputs}
    build = Builder()
    for node in graph.nodes:
        if node not in new:
            new[node] = _moved(build, node, [new[each] for each in node.inputs], place)
    return Graph([new[each] for each in graph.inputs], [new[each] for each in graph.outputs])


def _input(node: Node, place: Place, keep_order: bool) -> Node:
    there = place(node.type.device)
    if there is node.type.device:
        return node
    type_ = node.type.with_device(there)
    attrs = {**node.attrs, "type": type_}
    if not keep_order:
        attrs.pop("strides", None)
    return Node(p.input_, (), MappingProxyType(attrs), type_, node.where)


def _moved(build: Builder, node: Node, operands: Sequence[Node], place: Place) -> Node:
    attrs = {name: _attribute(each, place) for name, each in node.attrs.items()}
    if node.primitive is p.transfer:
        if operands[0].type.device == attrs["device"]:
            strides = contiguous_strides(node.type.shape)
            return build.apply(p.copy, operands, {"strides": strides}, node.where)
    elif node.primitive.family in (Family.SOURCE, Family.RANDOM):
        attrs.pop("device", None)
        there = place(node.type.device)
        attrs |= {} if there is CPU else {"device": there}
    return build.apply(node.primitive, operands, attrs, node.where)


def _attribute(value: Any, place: Place) -> Any:
    """Graphs of branches and loops, and the types of what a user's function gives."""
    if isinstance(value, Graph):
        return moved(value, place, keep_order=False)
    if isinstance(value, TensorType):
        return value.with_device(place(value.device))
    if isinstance(value, Device):
        return place(value)
    if type(value) is tuple and any(isinstance(each, (Graph, TensorType)) for each in value):
        return tuple(_attribute(each, place) for each in value)
    return value
