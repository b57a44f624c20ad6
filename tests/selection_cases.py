"""Programs that select by data, and what they are given: of none, of one, of all."""

import random

import numpy as np

import tgraph as tg
from tgraph import nn

F = nn.functional


def data(seed, *shape):
    made = np.random.default_rng(seed).standard_normal(shape or (6, 4)).astype(np.float32)
    made[:1] = abs(made[:1]) + 1  # so that one is selected at least
    return tg.from_numpy(made)


def tensors(*shape):
    """Of some elements are above 0, of the last three all, none, and one."""
    some = [data(seed, *shape) for seed in range(4)]
    one = -some[0].abs() - 1
    one.reshape(-1)[0] = 1
    return [*some, some[0].abs() + 1, -some[0].abs() - 1, one]


def put(x):
    x = x.clone()
    x[x > 0] = x[x > 0] * 2 + 1
    x[x[:, 0] < 0] -= 1
    return x


def above_mean(x):
    positive = (x * 3)[x > 0]
    return positive[positive >= positive.sum() / 6] * 2


def suppressed(x):
    """What is left of rows that lie far from those above them, as of boxes that overlap."""
    kept = x[x[:, 0] > -3]
    near = ((kept[:, None] - kept[None]) ** 2).sum(2) < 2
    return kept[near.tril(-1).sum(1) == 0]


def behind_a_loop(x):
    """One of its results says what is selected, and what of another is read by the last stage."""
    _, large, small = tg.while_loop(
        lambda n, *_: n < 3, lambda n, a, b: (n + 1, a * 2 - b.sum(), b.tanh()), (0, x, x)
    )
    return small[large > 0], small


FUNCTIONS = {
    "behind a loop": behind_a_loop,
    "elements": lambda x: x[x > 0],
    "sum": lambda x: x[x > 0].sum() * 2,
    "computed": lambda x: (lambda h: h[h > 0.1] ** 2 + h.sum())((x @ x.t() / 9).tanh()),
    "rows": lambda x: x[x[:, 0] > 0] @ x.t(),
    "rows by rows": lambda x: (lambda y: y @ y.t())(x[x[:, 0] > 0]),
    "columns": lambda x: x[:, x[0] > 0].sum(0),
    "softmax": lambda x: F.softmax(x[x[:, 0] > 0], dim=1),
    "layers": lambda x: F.layer_norm(x[x[:, 0] > 0], (4,)).relu().cumsum(0),
    "two": lambda x: (x[x > 0].sum(), x[x < 0].exp().sum(), x[x > 0] * 2),
    "one of another": above_mean,
    "put back": put,
    "index_put": lambda x: x.index_put((x > 0,), x[x > 0].sin()) * x,
    "filled and gathered": lambda x: tg.cat([x[x > 0], tg.zeros(3)]).sort()[0],
    "size": lambda x: (x[x > 0].shape, x[x > 0].sum() / max(len(x), 1), x[x > 0].shape[0] * 2),
    "of its number": lambda x: tg.arange(x[x > 0].shape[0]) * 2,
    "by its number": lambda x: (lambda n: n[n * 0.5 > 1])(tg.arange(x[x > 0].shape[0])),
    "times its number": lambda x: (lambda y: y[y > 3])(x * x[x > 0].shape[0]),
    "mask twice": lambda x: x[x > 0] + x.abs()[x > 0],
    "far rows": suppressed,
    "by one truth": lambda x: (x[x.sum() > 0], x[:, x[0, 0] > 0], tg.nonzero(x.amin() > 0)),
    "random": lambda x: F.dropout(x[x > 0], 0.5) + tg.rand(6).sum(),
}  # fmt: skip


def random_program(seed):
    """Rows of cumulated softmaxes add up to whole numbers, about: no rounding is to decide."""

    def run(x):
        pick, rows = random.Random(seed), [x]
        total = x.sum()
        for _ in range(pick.randrange(3, 7)):
            y = pick.choice(rows)
            total = total + y.sum() * 0.1
            rows.append(
                pick.choice([
                    lambda y=y: y[y[:, 0] > pick.choice([-1, 0, 0.5])],
                    lambda y=y: y[y.sum(1) < pick.choice([0.05, 2.3])] * 2,
                    lambda y=y: tg.cat([y, x]),
                    lambda y=y: y - y.amax(1, keepdim=True),
                    lambda y=y: (y @ y.t() / 10) @ y,
                    lambda y=y: y.index_put((y > 0.3,), y[y > 0.3].tanh()),
                    lambda y=y: y[tg.nonzero(y[:, 1] > 0)[:, 0]],
                    lambda y=y: F.softmax(y, dim=1).cumsum(0),
                    lambda y=y: tg.where(y > 0, y, y * 0.1).flip(0),
                ])()
            )  # fmt: skip
        return total, rows[-1]

    return run
