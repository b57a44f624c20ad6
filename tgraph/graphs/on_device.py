"""A graph that is built for the CPU, as it is on another device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..compiler.ir import Builder, Family, Graph, Node, TensorType, input_node
from ..compiler.ir import primitives as p
from ..runtime.device import CPU, Device


def on_device(graph: Graph, device: Device) -> Graph:
    """`graph` with all that is on the CPU on `device`; what is elsewhere stays there.

    Inputs that are moved are contiguous.
    """
    new = {node: _input(node, device) for node in graph.inputs}
    build = Builder()
    for node in graph.nodes:
        if node not in new:
            new[node] = _moved(build, node, [new[each] for each in node.inputs], device)
    return Graph([new[each] for each in graph.inputs], [new[each] for each in graph.outputs])


def _input(node: Node, device: Device) -> Node:
    if node.type.device is not CPU:
        return node
    return input_node(node.attrs["name"], node.type.with_device(device), node.where)


def _moved(build: Builder, node: Node, operands: Sequence[Node], device: Device) -> Node:
    attrs = {name: _attribute(each, device) for name, each in node.attrs.items()}
    if node.primitive is p.transfer:
        attrs["device"] = device if attrs["device"] is CPU else attrs["device"]
        if operands[0].type.device == attrs["device"]:
            return operands[0]
    elif node.primitive.family in (Family.SOURCE, Family.RANDOM) and node.type.device is CPU:
        attrs["device"] = device
    return build.apply(node.primitive, operands, attrs, node.where)


def _attribute(value: Any, device: Device) -> Any:
    """Graphs of branches and loops, and the types of what a user's function gives."""
    if isinstance(value, Graph):
        return on_device(value, device)
    if isinstance(value, TensorType):
        return value.with_device(device) if value.device is CPU else value
    if type(value) is tuple and any(isinstance(each, (Graph, TensorType)) for each in value):
        return tuple(_attribute(each, device) for each in value)
    return value
