"""Local rewrites: small named functions on a primitive, and the one driver that applies them.

A rule looks at one node, whose operands are rewritten already, and returns the node that stands
for it, or None. The driver works from the inputs to the outputs; what a rule returns is looked at
again, and so are the nodes it made on the way, until no rule fires.

What a rule says depends on the node and what that reads alone, unless it asks the builder about the
graph around it. So a node notes the rules that left it alone, and is not shown to them again: of
the many passes over a large graph only few find much to do.
"""

from __future__ import annotations

import functools
import itertools
import operator
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any, NoReturn

from ...runtime.records import NamedTuple, record
from ..ir import PRIMITIVES, UNKNOWN, Builder, Family, Graph, Node, Primitive, Provenance
from ..ir.primitive import Attrs
from ..ir.types import ResultType

_FIRINGS_PER_NODE = 50
_LAST_SHOWN = 8


class RewriteBuilder(Builder):
    """A builder whose new nodes come from the line of the node for which they stand."""

    def __init__(self) -> None:
        super().__init__()
        self.node: Node | None = None  # that is being rewritten
        self.reads: dict[Node, int] = {}
        self.graph: Graph | None = None  # that is asked where nothing is in `reads`
        self.asked = False  # by a rule, about more than its node

    def _apply(
        self,
        what: Any,
        primitive: Primitive,
        operands: tuple[Node, ...],
        attrs: Attrs,
        where: Provenance,
        instead: Node | None = None,
        type_: ResultType | None = None,
    ) -> Node:
        instead = instead or self.node
        if where is UNKNOWN and instead is not None:
            where = instead.where
        return super()._apply(what, primitive, operands, attrs, where, instead, type_)

    def read_once(self, node: Node) -> bool:
        """Whether one node only reads `node`: see `readers`."""
        return self.readers(node) == 1

    def read_twice(self, node: Node) -> bool:
        return self.readers(node) == 2

    def readers(self, node: Node) -> int:
        """How many nodes, and outputs, read `node`, as far as the graph before the walk tells.

        A node that a rule made counts as read by the one that is looked at. Only in a walk with
        `count_reads`.
        """
        self.asked = True
        reads = self.reads if self.graph is None else self.graph.reads
        return reads.get(node, 1)


RuleFunction = Callable[[RewriteBuilder, Node], Node | None]


_numbers = itertools.count()


@record()
class Rule:
    """A rewrite of the nodes of some primitives or families.

    Where it names primitives in `reading`, it leaves alone whatever reads none of them, and asks
    nothing about it.
    """

    function: RuleFunction
    targets: frozenset[Primitive | Family]
    reading: frozenset[Primitive] = frozenset()
    bit: int = field(default_factory=lambda: 1 << next(_numbers))

    @property
    def name(self) -> str:
        return self.function.__name__


class RewriteError(RuntimeError):
    """Rules undo each other or grow the graph without end."""


def rewrite(
    *targets: Primitive | Family, reading: Iterable[Primitive] = ()
) -> Callable[[RuleFunction], Rule]:
    """Make a rule of a function that is called for nodes of these primitives or families.

    Given `reading`, it is called for those that read one of these primitives.

    >>> from tgraph.compiler.ir import primitives as p
    >>> @rewrite(p.neg, reading=[p.neg])
    ... def double_negation(build, node):
    ...     (x,) = node.inputs
    ...     return x.inputs[0] if x.primitive is p.neg else None
    >>> double_negation.name
    'double_negation'
    """
    return lambda function: Rule(function, frozenset(targets), frozenset(reading))


def elementwise_with(fact: str) -> list[Primitive]:
    """The elementwise primitives of which a fact is known, as the targets of a rule.

    >>> elementwise_with("absorbing")
    [logical_and, logical_or]
    """
    return [
        each
        for each in PRIMITIVES.values()
        if each.family is Family.ELEMENTWISE and getattr(each, fact) != getattr(Primitive, fact)
    ]


def apply_rules(
    graph: Graph, rules: Sequence[Rule], *, limit: int | None = None, count_reads: bool = False
) -> Graph:
    """`graph` after `rules`, tried in order on every node.

    New nodes take the provenance of the node that they replace. `count_reads` makes
    `build.read_once` known to the rules. RewriteError after `limit` firings (by default 50 per
    node), or where rules run in a circle, names the rules that fired last.
    """
    table = _table(tuple(rules))
    if not any(map(table.bits.__getitem__, graph.primitives)):
        return graph  # cheap to ask
    if limit is None:
        limit = _FIRINGS_PER_NODE * (len(graph.nodes) + 20)
    if _Walk(graph, table, limit, count_reads).changes_nothing(graph):
        return graph
    outputs = _Walk(graph, table, limit, count_reads).rewritten(graph)
    return graph.with_outputs(outputs)


class _Rules(NamedTuple):
    """The rules that may fire for a primitive that reads others, and the bits of the rest."""

    others: int
    each: list[Rule]


class _Bits(dict[Primitive, int]):
    """The bits of the rules for each primitive."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        super().__init__()
        self.rules = rules

    def __missing__(self, primitive: Primitive) -> int:
        found = self[primitive] = _bits(_rules_for(self.rules, primitive))
        return found


class _Table:
    """Finds the rules for a node; one for all walks with the same rules."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self.bits = _Bits(rules)
        self._rules = rules
        self._found: dict[tuple[Primitive, ...], _Rules] = {}

    def rules_for(self, node: Node) -> _Rules:
        key = node.primitive, *[each.primitive for each in node.inputs]
        return self._found.get(key) or self._find(key)

    def _find(self, key: tuple[Primitive, ...]) -> _Rules:
        each = [
            rule
            for rule in _rules_for(self._rules, key[0])
            if not rule.reading or not rule.reading.isdisjoint(key[1:])
        ]
        found = self._found[key] = _Rules(self.bits[key[0]] & ~_bits(each), each)
        return found


@functools.lru_cache(maxsize=64)
def _table(rules: tuple[Rule, ...]) -> _Table:
    return _Table(rules)


def _rules_for(rules: Iterable[Rule], primitive: Primitive) -> list[Rule]:
    wanted = {primitive, primitive.family}
    return [rule for rule in rules if rule.targets & wanted]


def _bits(rules: Iterable[Rule]) -> int:
    return functools.reduce(operator.or_, (rule.bit for rule in rules), 0)


class _Walk:
    """One walk: an explicit stack of nodes whose final form is still to be found."""

    def __init__(self, graph: Graph, table: _Table, limit: int, count_reads: bool) -> None:
        self._table = table
        self._build = RewriteBuilder()
        self._final: dict[Node, Node] = {node: node for node in graph.inputs}
        self._becomes: dict[Node, Node] = {}  # replaced, the replacement still to be looked at
        self._count_reads = count_reads
        self._old_reads: Mapping[Node, int] = {}
        self._left = limit
        self._fired: deque[tuple[RuleFunction, Node]] = deque(maxlen=_LAST_SHOWN)

    def changes_nothing(self, graph: Graph) -> bool:
        """Whether the walk would leave every node as it is, as far as nodes noted it before.

        Those of an earlier walk are one for each value; others the walk has to look at.
        """
        if self._count_reads:
            self._build.graph = graph
        bits = self._table.bits
        for node in graph.nodes:
            if not bits[node.primitive] & ~node.settled or node in self._final:
                continue
            if not node.settled or self._fire(node) is not None:
                return False
        return True

    def rewritten(self, graph: Graph) -> list[Node]:
        """The outputs of `graph` in their final form.

        Most nodes stay as they are, or only read something else: these are settled at once.
        """
        final, rebuild = self._final, self._build.rebuild
        if self._count_reads:
            reads = self._old_reads = graph.reads
            self._build.reads = {node: reads[node] for node in graph.inputs}
        for node in graph.nodes:
            if node in final:
                continue
            current = rebuild(node, tuple([final[each] for each in node.inputs]))
            if current not in final and not self._stays(current):
                self._settle_all(current)
            if current is not node:
                self._finish(node, final[current])
        return [final[node] for node in graph.outputs]

    def _settle_all(self, node: Node) -> None:
        """Find the final form of a node that was replaced, and of what its replacement needs."""
        final, stack = self._final, [node]
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

    def _pending(self, node: Node) -> list[Node]:
        """What must be final before `node` can be."""
        final = self._final
        successor = self._becomes.get(node)
        if successor is not None:
            return [] if successor in final else [successor]
        return [operand for operand in reversed(node.inputs) if operand not in final]

    def _settle(self, node: Node) -> None:
        """Find the final form of `node`, whose operands are final, or what it becomes."""
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
        self._stays(node)

    def _stays(self, node: Node) -> bool:
        """Whether no rule replaces `node`, whose operands are final; then it is final too."""
        is_new = self._table.bits[node.primitive] & ~node.settled
        replacement = self._fire(node) if is_new else None
        if replacement is None or replacement is node:
            self._finish(node, node)
            return True
        self._replace(node, replacement)
        return False

    def _finish(self, node: Node, final: Node) -> None:
        self._final[node] = final
        if self._old_reads and (read := self._old_reads.get(node)) is not None:
            reads = self._build.reads
            reads[final] = reads.get(final, 0) + read

    def _replace(self, node: Node, replacement: Node) -> None:
        if replacement.type != node.type:
            self._refuse(f"{node} would become {replacement}, which is of another type")
        if replacement in self._becomes:
            self._refuse("rewrites run in a circle")
        self._becomes[node] = replacement

    def _fire(self, node: Node) -> Node | None:
        build, rules = self._build, self._table.rules_for(node)
        build.node, build.asked = node, False
        settled = node.settled | rules.others
        for rule in rules.each:
            if settled & rule.bit:
                continue
            replacement = rule.function(build, node)
            if replacement is not None:
                self._count(rule.function, node)
                return replacement
            if build.asked:
                build.asked = False
            else:
                settled |= rule.bit
        node.settled = settled
        return None

    def _count(self, rule: RuleFunction, node: Node) -> None:
        self._fired.append((rule, node))
        self._left -= 1
        if self._left < 0:
            self._refuse("too many rewrites")

    def _refuse(self, what: str) -> NoReturn:
        fired = [f"{r.__name__} on {n.primitive.name} at {n.where}" for r, n in self._fired]
        raise RewriteError(f"{what}; fired last: {', '.join(fired)}")
