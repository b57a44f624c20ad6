"""Eager calls on small tensors, by tgraph and by PyTorch: `python -m benchmarks.small_calls`.

Nothing is computed for long here, so this is what a call costs by itself. A call is an expression
of both libraries. Each round times a batch of it in both, in one process with one thread; what is
told is the median of the rounds' CPU times and of their ratios, so that other programs of the
machine meet both alike.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from . import report
from .eager import write

LIBRARIES = "tgraph", "torch"

CALLS = """
x + y
x + 1
x - y
x * y
x * 2.5
x / y
x / 2
x ** 2
-x
x @ y
T.mm(x, y)
x @ v
b @ b
x > 0
x == y
x.exp()
x.log()
x.tanh()
x.sigmoid()
x.abs()
x.sqrt()
x.sum()
x.sum(1)
x.sum(dim=1, keepdim=True)
x.mean()
x.mean(-1)
x.max()
x.max(1)
x.argmax(1)
x.reshape(16, 64)
x.view(-1)
x.t()
x.transpose(0, 1)
x.permute(1, 0)
x.unsqueeze(0)
s.squeeze(0)
x.flatten()
x.expand(4, 32, 32)
x.contiguous()
x.clone()
x.detach()
x.double()
x[2]
x[:, 3]
x[1:5, ::2]
x[i]
x[mask]
T.cat([x, y])
T.stack([x, y])
x.chunk(2, 1)
T.where(mask, x, y)
x.clamp(0.1, 0.9)
x.clamp(min=0)
x.masked_fill(mask, 0.0)
x.softmax(-1)
x.log_softmax(-1)
F.relu(x)
F.gelu(x)
F.silu(x)
F.linear(x, y, v)
F.layer_norm(x, (32,), v, v)
F.dropout(x, 0.5)
F.mse_loss(x, y)
F.cross_entropy(x, labels)
F.embedding(labels, x)
F.scaled_dot_product_attention(q, q, q)
x.gather(1, places)
x.index_select(0, labels)
T.einsum('ij,jk->ik', x, y)
x.norm()
x.std()
x.cumsum(0)
x.topk(3)
x.sort()
"""
"""With and without gradients."""

PLAIN = """
z.add_(y)
z.mul_(0.999)
z.copy_(y)
z[2] = 0.5
z.zero_()
T.zeros(8)
T.ones(8, 8)
T.arange(8)
T.tensor([1.0, 2.0])
T.randn(8)
T.zeros_like(x)
x.shape
x.size(0)
one.item()
x.requires_grad
"""
"""Without gradients alone."""

BACKWARD = """
(w + y).sum().backward()
(w * y).sum().backward()
(w @ y).sum().backward()
w.exp().mean().backward()
w.softmax(-1).sum().backward()
F.relu(w @ y).sum().backward()
F.mse_loss(F.linear(x, w, g), y).backward()
F.cross_entropy(w, labels).backward()
F.layer_norm(w, (32,), g, g).sum().backward()
w[labels].sum().backward()
T.cat([w, w]).sum().backward()
w.t().reshape(-1).sum().backward()
(w[:, 1:] - w[:, :-1]).square().mean().backward()
T.autograd.grad((w * w).sum(), w)
"""
"""A small graph with its pass; gradients are added up."""

STEPS = """
T.optim.SGD(ps, lr=1e-3)
T.optim.SGD(ps, lr=1e-3, momentum=0.9)
T.optim.Adam(ps, lr=1e-3)
T.optim.AdamW(ps, lr=1e-3)
T.optim.RMSprop(ps, lr=1e-3)
"""
"""Steps of optimizers of eight parameters; and `zero_grad`, with the gradients made anew."""


class Row(NamedTuple):
    """What is timed, and under which name."""

    name: str
    statement: str
    setup: str = "None"
    grad: bool = False


def rows() -> list[Row]:
    """All that is measured."""
    calls = [*CALLS.strip().splitlines()]
    return [
        *(Row(each, each) for each in [*calls, *PLAIN.strip().splitlines()]),
        *(Row(f"{each}, of what requires grad", each, grad=True) for each in calls
          if each not in ("x > 0", "x == y", "x.argmax(1)", "x.detach()")),
        *(Row(each, each) for each in BACKWARD.strip().splitlines()),
        *(Row(f"{each}.step()", "made.step()", each) for each in STEPS.strip().splitlines()),
    ]  # fmt: skip


def names(library: str, grad: bool) -> dict[str, Any]:
    """What an expression may name."""
    T = sys.modules[library]
    T.manual_seed(0)
    found = {"T": T, "F": T.nn.functional}
    for name, shape in {"x": (32, 32), "y": (32, 32), "v": (32,), "b": (4, 8, 8), "s": (1, 8),
                        "q": (2, 2, 8, 8)}.items():  # fmt: skip
        found[name] = T.rand(*shape).requires_grad_(grad)
    found["labels"], found["i"] = T.arange(32), T.tensor([2, 5, 7])
    found["places"], found["mask"] = T.zeros(32, 4, dtype=T.int64), T.rand(32, 32) > 0.5
    found["w"], found["g"] = T.rand(32, 32, requires_grad=True), T.ones(32, requires_grad=True)
    found["z"], found["one"] = T.rand(32, 32), T.ones(1)
    found["ps"] = ps = [T.rand(16, 16, requires_grad=True) for _ in range(8)]
    for each in ps:
        each.grad = T.rand(16, 16)
    return found


Batch = Callable[[int], None]


def batch(row: Row, library: str) -> Batch:
    """A function that runs a statement so many times."""
    given = names(library, row.grad)
    given["made"] = eval(row.setup, given)
    exec(f"def run(count):\n for _ in range(count):\n  {row.statement}\n", given)
    run: Batch = given["run"]
    return run


def timed(run: Batch, count: int) -> float:
    """CPU seconds of a call, of `count` calls."""
    start = time.process_time()
    run(count)
    return (time.process_time() - start) / count


class Measured(NamedTuple):
    """Medians over the rounds: seconds of a call of either library, and their ratio."""

    ours: float
    theirs: float
    ratio: float


def measured(row: Row, rounds: int, seconds: float) -> Measured:
    """Batches of both libraries in turns; each takes about `seconds` at first."""
    runs = [batch(row, library) for library in LIBRARIES]
    counts = []
    for run in runs:
        run(30)  # what is compiled on the way is no part of it
        counts.append(max(1, round(seconds / max(timed(run, 20), 1e-8))))
    found = [tuple(map(timed, runs, counts)) for _ in range(rounds)]
    ours, theirs = (statistics.median(each) for each in zip(*found, strict=True))
    return Measured(ours, theirs, statistics.median(one / other for one, other in found))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="parts of the expressions to measure; all without")
    parser.add_argument("--rounds", type=int, default=11, help="(%(default)s)")
    parser.add_argument("--seconds", type=float, default=0.003, help="a batch (%(default)s)")
    parser.add_argument("--save", metavar="NAME", help="write results/NAME.md")
    options = parser.parse_args()
    options.threads = 1
    for library in LIBRARIES:
        __import__(library)
        sys.modules[library].set_num_threads(1)
    chosen = [row for row in rows()
              if not options.names or any(each in row.name for each in options.names)]  # fmt: skip
    found = {row.name: measured(row, options.rounds, options.seconds) for row in chosen}
    note = (
        "CPU time of an eager call on tensors of up to 32 by 32 elements, one thread. Batches of "
        "the two libraries alternate in one process; the ratio is the median of the rounds' ratios."
    )
    mean = statistics.geometric_mean(each.ratio for each in found.values())
    told = f"The geometric mean of the ratios is {mean:.2f}."
    told_rows = [
        [f"`{name}`", report.seconds(each.ours), report.seconds(each.theirs), f"{each.ratio:.2f}"]
        for name, each in found.items()
    ]
    table = report.table(["call", "tgraph", "PyTorch", "ratio"], told_rows)
    write("Small eager calls", options, "", [note, told, table])


if __name__ == "__main__":
    main()
