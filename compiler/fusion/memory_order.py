"""An order of groups in which little memory is needed at once, for graphs with barriers.

Whoever computes values again to save memory needs them to go as soon as they have been read: the
gradient of a parameter comes before the next layer is computed again. Of the groups that can run,
the one comes first behind which least is left in memory (list scheduling; Sethi and Ullman's rule
for trees, taken greedily).
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Collection, Sequence

from ..ir import Node
from .fused_graph import Group

MAX_COMPARED = 64
"""Groups that can run among which the next one is chosen, so that time grows with their number."""


def memory_order(groups: Sequence[Group], outputs: Collection[Node]) -> list[Group]:
    """`groups`, which are in an order in which they can run, in another such order.

    `outputs` are nodes whose memory is not of the plan's own.
    """
    writer = {node: group for group in groups for node in group.nodes}
    readers: dict[Node, int] = {}
    waiting: dict[Group, set[Group]] = {}
    followers: dict[Group, list[Group]] = {group: [] for group in groups}
    for group in groups:
        waiting[group] = {writer[each] for each in group.reads if each in writer} - {group}
        for each in waiting[group]:
            followers[each].append(group)
        for node in group.reads:
            readers[node] = readers.get(node, 0) + 1

    def growth(group: Group) -> int:
        """By how much more memory is needed behind a group."""
        own = [root.node for root in group.roots if root.stored]
        made = sum(_bytes(node) for node in own if node in readers and node not in outputs)
        freed = [
            each for each in group.reads
            if readers[each] == 1 and each in writer and each not in outputs
        ]  # fmt: skip
        return made - sum(map(_bytes, freed))

    place = {group: at for at, group in enumerate(groups)}
    ready = [at for at, group in enumerate(groups) if not waiting[group]]
    order: list[Group] = []
    while ready:
        at = min(ready[:MAX_COMPARED], key=lambda at: growth(groups[at]))  # the first of equals
        ready.remove(at)
        chosen = groups[at]
        order.append(chosen)
        for node in chosen.reads:
            readers[node] -= 1
        for each in followers[chosen]:
            waiting[each].discard(chosen)
            if not waiting[each]:
                insort(ready, place[each])
    return order


def _bytes(node: Node) -> int:
    """Of a node with one result; those of several lie where `get` nodes do."""
    size: int = node.type.nbytes if hasattr(node.type, "dtype") else 0
    return size
