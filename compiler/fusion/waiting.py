"""What steps wait for that read nothing of it: see `barrier`."""

from __future__ import annotations

from ..ir import Family, Node
from ..ir import primitives as p


def waited_for(step: Node) -> list[Node]:
    """What barriers stand before that are between a step and the memory that it reads."""
    found: dict[Node, None] = {}
    pending = list(step.inputs)
    while pending:
        node = pending.pop()
        if node.primitive.family is not Family.VIEW:
            continue
        if node.primitive is p.barrier:
            found[node.inputs[1]] = None
        pending.append(node.inputs[0])
    return list(found)
