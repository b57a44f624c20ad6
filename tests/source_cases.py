"""Public functions that make tensors, draw random numbers, or convert: a call of each.

They have tests of their own; the calls are for tables that know every operation
(docs/operations.md, test_random_calls.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from opcase import Argument, OpCase

import tgraph as tg

Call = Callable[..., Any]


def _shares(T: Any = tg, **options: Any) -> Any:
    return T.linspace(0.1, 0.9, 40, **options)


# `T` is tgraph or PyTorch; `options` has a generator, and a device.
RANDOM: dict[str, Call] = {
    "rand": lambda T, g, d: T.rand(3, 40, generator=g, device=d),
    "randn": lambda T, g, d: T.randn(3, 40, generator=g, device=d),
    "randint": lambda T, g, d: T.randint(-3, 9, (3, 40), generator=g, device=d),
    "randperm": lambda T, g, d: T.randperm(50, generator=g, device=d),
    "normal": lambda T, g, d: T.normal(2.0, 0.5, (3, 40), generator=g, device=d),
    "bernoulli": lambda T, g, d: T.bernoulli(_shares(T, device=d), generator=g),
    "multinomial": lambda T, g, d: T.multinomial(_shares(T, device=d), 7, generator=g),
    "poisson": lambda T, g, d: T.poisson(30 * _shares(T, device=d), generator=g),
    "binomial": lambda T, g, d: T.binomial(T.full((40,), 50.0, device=d), _shares(T, device=d), g),
    "rand_like": lambda T, g, d: T.rand_like(_shares(T, device=d)),
    "randn_like": lambda T, g, d: T.randn_like(_shares(T, device=d)),
    "randint_like": lambda T, g, d: T.randint_like(_shares(T, device=d), 2, 9),
    "uniform_": lambda T, g, d: T.zeros(3, 40, device=d).uniform_(-2, 3, generator=g),
    "normal_": lambda T, g, d: T.zeros(3, 40, device=d).normal_(1, 2, generator=g),
    "bernoulli_": lambda T, g, d: T.zeros(3, 40, device=d).bernoulli_(0.3, generator=g),
    "random_": lambda T, g, d: T.zeros(3, 40, device=d).random_(3, 11, generator=g),
    "exponential_": lambda T, g, d: T.zeros(3, 40, device=d).exponential_(2.0, generator=g),
    "log_normal_": lambda T, g, d: T.zeros(3, 40, device=d).log_normal_(0.5, 0.3, generator=g),
    "cauchy_": lambda T, g, d: T.zeros(3, 40, device=d).cauchy_(1.0, 2.0, generator=g),
    "geometric_": lambda T, g, d: T.zeros(3, 40, device=d).geometric_(0.3, generator=g),
}

_X = np.arange(6.0, dtype=np.float32).reshape(2, 3)
CREATION: dict[str, Call] = {
    "arange": lambda: tg.arange(0, 5, 0.5),
    "bartlett_window": lambda: tg.bartlett_window(8),
    "blackman_window": lambda: tg.blackman_window(8),
    "empty": lambda: tg.empty(2, 3).fill_(1),
    "empty_like": lambda: tg.empty_like(tg.tensor(_X)).fill_(1),
    "empty_permuted": lambda: tg.empty_permuted((2, 3), (1, 0)).fill_(1),
    "empty_strided": lambda: tg.empty_strided((2, 3), (1, 2)).fill_(1),
    "eye": lambda: tg.eye(3, 4),
    "full": lambda: tg.full((2, 3), 2.5),
    "full_like": lambda: tg.full_like(tg.tensor(_X), 2.5),
    "hamming_window": lambda: tg.hamming_window(8),
    "hann_window": lambda: tg.hann_window(8),
    "kaiser_window": lambda: tg.kaiser_window(8),
    "linspace": lambda: tg.linspace(0, 1, 7),
    "logspace": lambda: tg.logspace(0, 1, 7),
    "ones": lambda: tg.ones(2, 3),
    "ones_like": lambda: tg.ones_like(tg.tensor(_X)),
    "scalar_tensor": lambda: tg.scalar_tensor(2.5),
    "tensor": lambda: tg.tensor([1.0, 2.0]),
    "as_tensor": lambda: tg.as_tensor([1.0, 2.0]),
    "from_numpy": lambda: tg.from_numpy(_X),
    "tril_indices": lambda: tg.tril_indices(3, 3),
    "triu_indices": lambda: tg.triu_indices(3, 3),
    "zeros": lambda: tg.zeros(2, 3),
    "zeros_like": lambda: tg.zeros_like(tg.tensor(_X)),
    "new_empty": lambda: tg.tensor(_X).new_empty((2,)).fill_(1),
    "new_empty_strided": lambda: tg.tensor(_X).new_empty_strided((2, 3), (1, 2)).fill_(1),
    "new_full": lambda: tg.tensor(_X).new_full((2,), 3.0),
    "new_ones": lambda: tg.tensor(_X).new_ones((2,)),
    "new_tensor": lambda: tg.tensor(_X).new_tensor([1.0]),
    "new_zeros": lambda: tg.tensor(_X).new_zeros((2,)),
}
SOURCES: dict[str, dict[str, Call]] = {
    "Random numbers": {
        name: lambda call=call: call(tg, None, None) for name, call in RANDOM.items()
    },
    "Creation": CREATION,
}


def _row(name: str, function: Call, *shapes: tuple[int, ...], **options: Any) -> OpCase:
    """`compiles` is found by compiling, not taken as told by a test of the row."""
    arguments = tuple(map(Argument, shapes or ((2, 3),)))
    return OpCase(name, function, function, arguments, compiles=False, second=False, **options)


CONVERSIONS = [
    *(_row(name, lambda x, name=name: getattr(x, name)()) for name in (
        "bfloat16", "bool", "byte", "char", "cpu", "double", "float", "half", "int", "long",
        "short")),
    *(_row(name, lambda x, name=name: getattr(x, name)(), gradient=False) for name in (
        "cdouble", "cfloat")),
    _row("to", lambda x: x.to(tg.float64)),
    _row("type", lambda x: x.type(tg.float64)),
    _row("type_as", lambda x: x.type_as(tg.zeros(1, dtype=tg.float64))),
    _row("as_strided_", lambda x: (x * 1).as_strided_((2, 2), (3, 1))),
    _row("fill_diagonal_", lambda x: (x * 1).fill_diagonal_(0.0)),
    _row("squeeze_", lambda x: (x * 1).squeeze_(0), (1, 3)),
    _row("t_", lambda x: (x * 1).t_()),
    _row("transpose_", lambda x: (x * 1).transpose_(0, 1)),
    _row("unsqueeze_", lambda x: (x * 1).unsqueeze_(0)),
    _row("complex", lambda x, y: tg.view_as_real(tg.complex(x, y)), (2, 3), (2, 3)),
    _row("cond", lambda x: tg.cond(x.sum() > 0, lambda x: x * 2, lambda x: x * 3, (x,))),
    _row("switch", lambda x: tg.switch(tg.tensor(1), [tg.sin, tg.cos], x)),
    _row("fori_loop", lambda x: tg.fori_loop(0, 3, lambda i, x: x * 1.5, x)),
    _row("map", lambda x: tg.map(lambda row: row * row.sum(), x)),
    _row("scan", lambda x: tg.scan(lambda c, row: (c * row, c + row), x[0] * 0 + 1, x)[1]),
    _row("while_loop", lambda x: tg.while_loop(
        lambda i, x: i < 3, lambda i, x: (i + 1, x * 1.5), (tg.tensor(0), x))[1]),
]  # fmt: skip
