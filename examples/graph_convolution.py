"""A graph convolutional network over a sparse adjacency matrix, eagerly and compiled.

    python examples/graph_convolution.py            # or with --quick

A graph is drawn whose nodes belong to communities and have most of their edges within them.
Features are noise that leans a little to the community, so that a network has to look at
neighbours. It learns from a tenth of the nodes.

Source: Kipf and Welling, "Semi-Supervised Classification with Graph Convolutional Networks" (2017).
"""

from __future__ import annotations

import argparse
import time

import tgraph as tg
from tgraph import Tensor, nn, optim
from tgraph.nn import functional as F


def drawn(nodes: int, communities: int, degree: int) -> tuple[Tensor, Tensor, Tensor]:
    """The normalized adjacency matrix as CSR, features, and the community of each node."""
    label = tg.arange(nodes) % communities
    source = tg.arange(nodes).repeat_interleave(degree)
    step = communities * tg.randint(1, nodes // communities, source.shape)
    stays = tg.rand(source.shape[0]) < 0.8
    target = (source + tg.where(stays, step, tg.randint(1, nodes, source.shape))) % nodes
    loops = tg.arange(nodes)
    rows, columns = tg.cat([source, target, loops]), tg.cat([target, source, loops])
    counts = tg.zeros(nodes).index_add(0, rows, tg.ones(len(rows)))
    scale = counts.rsqrt()
    at, size = tg.stack([rows, columns]), (nodes, nodes)
    matrix = tg.sparse_coo_tensor(at, scale[rows] * scale[columns], size)
    features = tg.randn(nodes, 16) + 0.5 * F.one_hot(label, 16)
    return matrix.coalesce().to_sparse_csr(), features, label


class GraphConvolution(nn.Module):
    """Two layers, each the mean of what neighbours have, then a linear map."""

    def __init__(self, inputs: int, hidden: int, classes: int) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(inputs, hidden), nn.Linear(hidden, classes)

    def forward(self, matrix: Tensor, x: Tensor) -> Tensor:
        hidden = F.relu(matrix @ self.first(x))
        scores: Tensor = matrix @ self.second(hidden)
        return scores


def train(compiled: bool, nodes: int, steps: int) -> tuple[float, float]:
    """The last loss and the share of the other nodes that are told right."""
    tg.manual_seed(0)
    matrix, features, label = drawn(nodes, 4, 8)
    known = tg.arange(nodes // 10)
    model = GraphConvolution(16, 32, 4)
    optimizer = optim.Adam(model.parameters(), lr=0.02)

    def step() -> Tensor:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(matrix, features)[known], label[known])
        loss.backward()
        optimizer.step()
        return loss.detach()

    run = tg.compile(step) if compiled else step
    run()
    start = time.perf_counter()
    for _ in range(steps):
        loss = run()
    each = 1e3 * (time.perf_counter() - start) / steps
    with tg.no_grad():
        right = (model(matrix, features).argmax(1) == label)[nodes // 10 :].float().mean()
    name = "compiled" if compiled else "eager"
    print(f"{name}: loss {loss.item():.4f}, {right.item():.1%} right, {each:.2f} ms a step")
    return loss.item(), right.item()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    nodes, steps = (400, 40) if parser.parse_args().quick else (20_000, 60)
    (loss, right), (compiled_loss, _) = train(False, nodes, steps), train(True, nodes, steps)
    assert right > 0.7, "the network did not learn"
    assert abs(loss - compiled_loss) < 1e-3, "compiled and eager training differ"


if __name__ == "__main__":
    main()
