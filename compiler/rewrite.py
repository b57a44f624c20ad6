"""Local rewrites: small named functions on a primitive, and the one driver that applies them.

A rule looks at one node, whose operands are rewritten already, and returns the node that stands
for it, or None. The driver works from the inputs to the outputs; what a rule returns is looked at
again, and so are the nodes it made on the way, until no rule fires.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NoReturn

from .ir import UNKNOWN, Builder, Family, Graph, Node, Primitive, Provenance
from .ir.primitive import Attrs

_NO_ATTRS: Attrs = {}

_FIRINGS_PER_NODE = 50
_LAST_SHOWN = 8


class RewriteBuilder(Builder):
    """A builder whose new nodes come from the line of the node that is being rewritten."""

    def __init__(self) -> None:
        super().__init__()
        self.where = UNKNOWN
        self.order: dict[Node, int] = {}  # when each node was found final: one order per walk
        self.reads: dict[Node, int] = {}

    def apply(
        self,
        primitive: Primitive,
        inputs: Sequence[Node] = (),
        attrs: Attrs = _NO_ATTRS,
        where: Provenance = UNKNOWN,
    ) -> Node:
        return super().apply(primitive, inputs, attrs, self.where if where is UNKNOWN else where)

    def read_once(self, node: Node) -> bool:
        """Whether one node only reads `node`, as far as the graph before the walk tells.

        A node that a rule made counts as read by the one that is looked at. Only in a walk with
        `count_reads`.
        """
        return self.reads.get(node, 1) == 1


RuleFunction = Callable[[RewriteBuilder, Node], Node | None]


@dataclass(frozen=True)
class Rule:
    """A rewrite of the nodes of some primitives or families."""

    function: RuleFunction
    targets: frozenset[Primitive | Family]

    @property
    def name(self) -> str:
        return self.function.__name__


class RewriteError(RuntimeError):
    """Rules undo each other or grow the graph without end."""


def rewrite(*targets: Primitive | Family) -> Callable[[RuleFunction], Rule]:
    """Make a rule of a function that is called for nodes of these primitives or families.

    >>> from tgraph.compiler.ir import primitives as p
    >>> @rewrite(p.neg)
    ... def double_negation(build, node):
    ...     (x,) = node.inputs
    ...     return x.inputs[0] if x.primitive is p.neg else None
    >>> double_negation.name
    'double_negation'
    """
    return lambda function: Rule(function, frozenset(targets))


def apply_rules(
    graph: Graph, rules: Sequence[Rule], *, limit: int | None = None, count_reads: bool = False
) -> Graph:
    """`graph` after `rules`, tried in order on every node.

    New nodes take the provenance of the node that they replace. `count_reads` makes
    `build.read_once` known to the rules. RewriteError after `limit` firings (by default 50 per
    node), or where rules run in a circle, names the rules that fired last.
    """
    if not _any_fits(graph, rules):
        return graph
    if limit is None:
        limit = _FIRINGS_PER_NODE * (len(graph.nodes) + 20)
    walk = _Walk(graph, rules, limit)
    if count_reads:
        walk.count_reads(graph)
    outputs = walk.rewritten(graph.outputs)
    return graph if tuple(outputs) == graph.outputs else Graph(graph.inputs, outputs)


def _any_fits(graph: Graph, rules: Sequence[Rule]) -> bool:
    """Whether a rule may fire at all; it is cheap to ask and often spares the walk."""
    present: set[Primitive | Family] = {node.primitive for node in graph.nodes}
    present |= {node.primitive.family for node in graph.nodes}
    return any(rule.targets & present for rule in rules)


class _Walk:
    """One walk: an explicit stack of nodes whose final form is still to be found."""

    def __init__(self, graph: Graph, rules: Sequence[Rule], limit: int) -> None:
        self._rules = rules
        self._rules_of: dict[Primitive, list[RuleFunction]] = {}
        self._build = RewriteBuilder()
        self._order = self._build.order
        self._order.update((node, at) for at, node in enumerate(graph.inputs))
        self._final: dict[Node, Node] = {node: node for node in graph.inputs}
        self._becomes: dict[Node, Node] = {}  # replaced, the replacement still to be looked at
        self._old_reads: dict[Node, int] = {}
        self._left = limit
        self._fired: deque[str] = deque(maxlen=_LAST_SHOWN)

    def count_reads(self, graph: Graph) -> None:
        self._old_reads = {node: len(readers) for node, readers in graph.consumers.items()}
        for node in graph.outputs:
            self._old_reads[node] += 1
        self._build.reads.update((node, self._old_reads[node]) for node in graph.inputs)

    def rewritten(self, outputs: Sequence[Node]) -> list[Node]:
        final, stack = self._final, list(reversed(outputs))
        while stack:
            node = stack[-1]
            if node in final:
                stack.pop()
                continue
            pending = self._pending(node)
            if pending:
                if not self._becomes.keys().isdisjoint(pending):
                    # A replaced node is needed for its own replacement.
                    self._refuse("rewrites run in a circle")
                stack.extend(pending)
            else:
                self._settle(node)
        return [final[node] for node in outputs]

    def _pending(self, node: Node) -> list[Node]:
        """What must be final before `node` can be."""
        final = self._final
        successor = self._becomes.get(node)
        if successor is not None:
            return [] if successor in final else [successor]
        return [operand for operand in reversed(node.inputs) if operand not in final]

    def _settle(self, node: Node) -> None:
        """Find the final form of `node`, or what it becomes."""
        final = self._final
        successor = self._becomes.pop(node, None)
        if successor is not None:
            self._finish(node, final[successor])
            return
        current = self._build.rebuild(node, [final[operand] for operand in node.inputs])
        if current is not node:
            if current in final:
                self._finish(node, final[current])
            else:
                self._replace(node, current)
            return
        replacement = self._fire(node)
        if replacement is None or replacement is node:
            self._order[node] = len(self._order)
            self._finish(node, node)
        else:
            self._replace(node, replacement)

    def _finish(self, node: Node, final: Node) -> None:
        self._final[node] = final
        read = self._old_reads.get(node)
        if read is not None:
            self._build.reads[final] = self._build.reads.get(final, 0) + read

    def _replace(self, node: Node, replacement: Node) -> None:
        if replacement.type != node.type:
            self._refuse(f"{node} would become {replacement}, which is of another type")
        if replacement in self._becomes:
            self._refuse("rewrites run in a circle")
        self._becomes[node] = replacement

    def _fire(self, node: Node) -> Node | None:
        rules = self._rules_of.get(node.primitive)
        if rules is None:
            rules = self._rules_of[node.primitive] = self._find_rules(node.primitive)
        self._build.where = node.where
        for rule in rules:
            replacement = rule(self._build, node)
            if replacement is not None:
                self._count(rule, node)
                return replacement
        return None

    def _find_rules(self, primitive: Primitive) -> list[RuleFunction]:
        wanted = {primitive, primitive.family}
        return [rule.function for rule in self._rules if rule.targets & wanted]

    def _count(self, rule: RuleFunction, node: Node) -> None:
        self._fired.append(f"{rule.__name__} on {node.primitive.name} at {node.where}")
        self._left -= 1
        if self._left < 0:
            self._refuse("too many rewrites")

    def _refuse(self, what: str) -> NoReturn:
        raise RewriteError(f"{what}; fired last: {', '.join(self._fired)}")
