"""Programs with loops in PyTorch: loops are Python's, and `with_torch_compile` compiles turns."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional as F

from ..case import Case
from ..contenders import with_torch as base
from ..networks.with_torch import Workloads as Networks
from .workloads import STEPS, TOLERANCE

Data = base.Data


class Workloads(Networks):
    """The workloads, with `compiled` applied to each function that computes something."""

    def lstm_scan(self, data: Data) -> Case:
        """By the library's own kernel."""
        return self.lstm(data)

    def newton(self, data: Data) -> Case:
        @self.compiled
        def goes_on(x: torch.Tensor, a: torch.Tensor) -> torch.Tensor:
            return (x * x * x - a).abs().amax() > TOLERANCE

        @self.compiled
        def turn(x: torch.Tensor, a: torch.Tensor) -> torch.Tensor:
            return x - (x * x * x - a) / (3 * x * x)

        (a,) = self.tensors(data, "a")

        def call() -> torch.Tensor:
            with torch.no_grad():
                x = a
                while goes_on(x, a):
                    x = turn(x, a)
                return x

        return Case(call, base.arrays)

    def decode(self, data: Data) -> Case:
        table, qw, qb, kw, kb, vw, vb = self.tensors(
            data, "table", "query_w", "query_b", "key_w", "key_b", "value_w", "value_b"
        )
        (output,) = self.tensors(data, "output")
        width, places = table.shape[1], torch.arange(STEPS)

        @self.compiled
        def step(
            token: torch.Tensor, at: torch.Tensor, keys: torch.Tensor, values: torch.Tensor
        ) -> tuple[torch.Tensor, torch.Tensor]:
            x = table[token]
            q = F.linear(x, qw, qb)
            keys.index_copy_(0, at, F.linear(x, kw, kb))
            values.index_copy_(0, at, F.linear(x, vw, vb))
            scores = (q @ keys.T * width**-0.5).masked_fill(places > at, -float("inf"))
            x = x + torch.softmax(scores, 1) @ values
            return (x @ output.T).argmax(1), x

        def call() -> tuple[torch.Tensor, ...]:
            with torch.no_grad():
                keys, values = torch.zeros(2, STEPS, width)
                token, tokens = torch.zeros(1, dtype=torch.int64), []
                for at in places.split(1):
                    token, x = step(token, at, keys, values)
                    tokens.append(token)
                return torch.cat(tokens), x[0]

        return Case(call, base.arrays)


_workloads = Workloads(lambda function: function)


def __getattr__(name: str) -> Any:
    return getattr(_workloads, name)
