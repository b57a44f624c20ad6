"""Branches and loops on one device each, whatever their operands and graphs are on.

A loop counts in a number of the host, draws by the counter of a generator there, and computes on a
device. Moving numbers in each turn would make every turn wait; so all of it runs where the work is:
what is elsewhere is moved before, and results that belong elsewhere behind it.
"""

from __future__ import annotations

from typing import Any

from ...runtime.device import CPU, Device
from ..ir import Builder, Family, Graph, Node, TensorType, input_node, transform
from ..ir import primitives as p
from ..ir.graph import nested_graphs


def on_one_device(graph: Graph) -> Graph:
    """`graph` with each branch and loop on one device; NotImplementedError where it needs two."""
    if graph.primitives.isdisjoint((p.branch, p.loop)):
        return graph
    moved: dict[Node, Node] = {}

    def rewrite(build: Builder, node: Node, inputs: tuple[Node, ...]) -> Node:
        if node.primitive is p.get and node.inputs[0] in moved:
            found = build.apply(p.get, [moved[node.inputs[0]]], node.attrs, node.where)
            return _on(build, found, node.type.device, node)
        if node.primitive.family is not Family.CONTROL:
            return build.rebuild(node, inputs)
        device = _device_of(node)
        given = [_on(build, each, device, node) for each in inputs]
        made = build.apply(node.primitive, given, _there(dict(node.attrs), device), node.where)
        moved[node] = made
        return made

    return transform(graph, rewrite)


def _on(build: Builder, node: Node, device: Device, reader: Node) -> Node:
    if node.type.device is device:
        return node
    return build.apply(p.transfer, [node], {"device": device}, reader.where)


def _device_of(node: Node) -> Device:
    """Where a branch or a loop runs: on the device that it computes on, rather than the host."""
    operands = node.inputs[1:] if node.primitive is p.branch else node.inputs
    inside = [each for graph in nested_graphs(node) for part in graph.whole for each in part.nodes]
    outputs = [each for graph in nested_graphs(node) for each in graph.outputs]
    found = {each.device for one in (*operands, *inside, *outputs) for each in _types(one)}
    devices = sorted(found - {CPU}, key=str)
    if len(devices) > 1:
        raise NotImplementedError(
            f"{node.primitive.name} (at {node.where}): a compiled branch or loop computes on one "
            f"device, this one on {' and '.join(map(str, devices))}; move what it reads to one of "
            "them, or write it in Python around what is compiled"
        )
    return devices[0] if devices else CPU


def _types(node: Node) -> tuple[TensorType, ...]:
    type_: Any = node.type
    return (type_,) if isinstance(type_, TensorType) else type_


def _there(value: Any, device: Device) -> Any:
    """Attributes, with the graphs among them, on a device."""
    if isinstance(value, Graph):
        return _graph_there(value, device)
    if isinstance(value, TensorType):
        return value.with_device(device)
    if isinstance(value, Device):
        return device
    if type(value) is tuple:
        return tuple(_there(each, device) for each in value)
    if isinstance(value, dict):
        return {name: _there(each, device) for name, each in value.items()}
    return value


def _graph_there(graph: Graph, device: Device) -> Graph:
    nodes = [each for part in graph.whole for each in (*part.inputs, *part.nodes)]
    if all(type_.device is device for each in nodes for type_ in _types(each)):
        return graph
    build = Builder()
    new = {
        each: input_node(each.attrs["name"], _there(each.type, device), each.where)
        for each in graph.inputs
    }
    for node in graph.nodes:
        if node in new:
            continue
        operands = [new[each] for each in node.inputs]
        attrs = _there(dict(node.attrs), device)
        if node.primitive is p.transfer:
            new[node] = operands[0]
            continue
        if node.primitive.family is Family.SOURCE and device is not CPU:
            attrs["device"] = device
        new[node] = build.apply(node.primitive, operands, attrs, node.where)
    return Graph([new[each] for each in graph.inputs], [new[each] for each in graph.outputs])
