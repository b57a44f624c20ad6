"""A graph attention network that tells who went with whom in a club, eagerly and compiled.

    python examples/graph_attention.py            # or with --quick

Zachary watched a karate club of 34 members break in two. The network knows who met whom, and the
side of the two leaders alone, and finds the sides of the others. Softmax over the edges that meet
in a node is written with `scatter_add`, as libraries of graph networks have it.

Sources: Zachary, "An information flow model for conflict and fission in small groups" (1977), as
networkx ships it; Veličković et al., "Graph Attention Networks" (2018).
"""

from __future__ import annotations

import argparse
import time

import networkx

import tgraph as tg
from tgraph import Tensor, nn, optim
from tgraph.nn import functional as F

LOSS_TOLERANCE = 1e-3  # fused kernels round differently, and training makes more of it


def club() -> tuple[Tensor, Tensor, Tensor]:
    """From where and to where edges go, both ways and from each member to itself; and sides."""
    graph = networkx.karate_club_graph()
    pairs = [*graph.edges, *((b, a) for a, b in graph.edges), *((a, a) for a in graph.nodes)]
    source, target = tg.tensor(pairs).unbind(1)
    sides = [int(side != "Mr. Hi") for _, side in graph.nodes(data="club")]
    return source, target, tg.tensor(sides)


def edge_softmax(scores: Tensor, target: Tensor, nodes: int) -> Tensor:
    """Softmax of (edges, heads) over the edges with the same target."""
    raised = tg.exp(scores - scores.detach().amax(0))  # of all edges: no exponential overflows
    at = target[:, None].expand_as(raised)
    total = raised.new_zeros(nodes, raised.shape[1]).scatter_add(0, at, raised)
    return raised / total[target]


class GraphAttention(nn.Module):
    """Each node becomes the mean of its neighbours, weighted by attention, for several heads."""

    def __init__(self, inputs: int, outputs: int, heads: int) -> None:
        super().__init__()
        self.heads, self.outputs = heads, outputs
        self.projected = nn.Linear(inputs, heads * outputs, bias=False)
        self.from_source = nn.Parameter(tg.empty(heads, outputs))
        self.from_target = nn.Parameter(tg.empty(heads, outputs))
        for each in (self.projected.weight, self.from_source, self.from_target):
            nn.init.xavier_uniform_(each)

    def forward(self, x: Tensor, source: Tensor, target: Tensor) -> Tensor:
        h = self.projected(x).view(-1, self.heads, self.outputs)
        by_source, by_target = (h * self.from_source).sum(-1), (h * self.from_target).sum(-1)
        scores = F.leaky_relu(by_source[source] + by_target[target], 0.2)
        weights = edge_softmax(scores, target, len(h))
        found = tg.zeros_like(h).index_add(0, target, weights[..., None] * h[source])
        return found.flatten(1)


class GAT(nn.Module):
    def __init__(self, nodes: int, width: int = 8, heads: int = 4) -> None:
        super().__init__()
        self.first = GraphAttention(nodes, width, heads)
        self.second = GraphAttention(width * heads, 2, 1)
        self.dropout = nn.Dropout(0.3)

    def forward(self, x: Tensor, source: Tensor, target: Tensor) -> Tensor:
        x = self.dropout(F.elu(self.first(x, source, target)))
        scores: Tensor = self.second(x, source, target)
        return scores


def train(compiled: bool, steps: int) -> list[float]:
    """The loss of each step."""
    source, target, sides = club()
    members = tg.eye(len(sides))  # a member is known by its number alone
    leaders = tg.tensor([0, len(sides) - 1])
    tg.manual_seed(0)
    model = GAT(len(sides))
    optimizer = optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)

    def step() -> Tensor:
        optimizer.zero_grad()
        scores = model(members, source, target)
        loss = F.cross_entropy(scores[leaders], sides[leaders])
        loss.backward()
        optimizer.step()
        return loss.detach()

    run, losses, times = tg.compile(step) if compiled else step, [], []
    for _ in range(steps):
        start = time.perf_counter()
        losses.append(run().item())
        times.append(time.perf_counter() - start)
    model.eval()
    with tg.no_grad():
        found = model(members, source, target).argmax(1)
    right, usual = int((found == sides).sum()), sorted(times)[len(times) // 2]
    print(
        f"{'compiled' if compiled else 'eager':8}  loss {losses[0]:.3f} -> {losses[-1]:.3f}, "
        f"{usual * 1e3:.2f} ms a step, {right} of {len(sides)} sides are right"
    )
    assert right >= 0.85 * len(sides)
    return losses


def main(steps: int) -> None:
    source, target, sides = club()
    weights = edge_softmax(tg.randn(len(source), 3), target, len(sides))
    sums = tg.zeros(len(sides), 3).index_add(0, target, weights)
    tg.testing.assert_close(sums, tg.ones(len(sides), 3))
    eager, compiled = (train(each, steps) for each in (False, True))
    worst = max(abs(a - b) for a, b in zip(eager, compiled, strict=True))
    print(f"losses differ by {worst:.1e}")
    assert worst < LOSS_TOLERANCE


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer steps")
    main(60 if parser.parse_args().quick else 300)
