"""Equal nodes become one.

A builder keeps equal nodes from being made twice; what is left are large constants, which it
compares by identity. Here they are compared by their contents, once.
"""

from __future__ import annotations

from _blake2 import blake2b  # hashlib would load OpenSSL first, which takes milliseconds
from typing import Any

from ..ir import Builder, Graph, Node, transform
from ..ir import primitives as p


def eliminate_common(graph: Graph) -> Graph:
    first: dict[Any, Node] = {}

    def shared(build: Builder, node: Node, inputs: tuple[Node, ...]) -> Node:
        if node.primitive is p.constant:
            node = first.setdefault(_contents(node), node)
        return build.rebuild(node, inputs)

    return transform(graph, shared, of=[p.constant])


def _contents(node: Node) -> Any:
    value = node.attrs["value"]
    return node.type, blake2b(value.tobytes(), digest_size=32).digest()
