"""A graph that is built for the CPU, as it is on another device."""

from __future__ import annotations

from ..compiler.ir import Graph
from ..compiler.moved_graph import moved
from ..runtime.device import CPU, Device


def on_device(graph: Graph, device: Device) -> Graph:
    """`graph` with all that is on the CPU on `device`; what is elsewhere stays there.

    Inputs that are moved are contiguous.
    """
    return moved(graph, lambda own: device if own is CPU else own, keep_order=False)
