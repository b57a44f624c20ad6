"""Programs with loops in tgraph, compiled: each is one plan."""

from __future__ import annotations

from typing import Any

import tgraph as tg
from tgraph.nn import functional as F

from ..case import Case
from ..contenders import with_tgraph as base
from .workloads import STEPS, TOLERANCE

Data = base.Data


class Workloads(base.Workloads):
    """The workloads, with `compiled` applied to each whole function."""

    def lstm_scan(self, data: Data) -> Case:
        input_w, hidden_w, input_b, hidden_b = self.tensors(
            data, "input_w", "hidden_w", "input_b", "hidden_b"
        )

        def step(state: tuple[tg.Tensor, tg.Tensor], projected: tg.Tensor) -> Any:
            h, c = state
            i, f, g, o = (projected + F.linear(h, hidden_w)).chunk(4, -1)
            c = tg.sigmoid(f) * c + tg.sigmoid(i) * tg.tanh(g)
            h = tg.sigmoid(o) * tg.tanh(c)
            return (h, c), h

        def function(x: tg.Tensor) -> tuple[tg.Tensor, ...]:
            zeros = tg.zeros(x.shape[1], hidden_w.shape[1])
            (h, c), seen = tg.scan(step, (zeros, zeros), F.linear(x, input_w, input_b + hidden_b))
            return seen, h, c

        return self.case(function, *self.tensors(data, "x"))

    def newton(self, data: Data) -> Case:
        def function(a: tg.Tensor) -> tg.Tensor:
            found: tg.Tensor = tg.while_loop(
                lambda x: (x * x * x - a).abs().amax() > TOLERANCE,
                lambda x: x - (x * x * x - a) / (3 * x * x),
                a,
            )
            return found

        return self.case(function, *self.tensors(data, "a"))

    def decode(self, data: Data) -> Case:
        """Keys and values are written where they lie."""
        table, qw, qb, kw, kb, vw, vb = self.tensors(
            data, "table", "query_w", "query_b", "key_w", "key_b", "value_w", "value_b"
        )
        width = table.shape[1]

        def function(table: tg.Tensor, output: tg.Tensor) -> tuple[tg.Tensor, ...]:
            keys, values = tg.zeros(STEPS, width), tg.zeros(STEPS, width)
            places = tg.arange(STEPS)

            def step(state: Any, at: tg.Tensor) -> Any:
                token, _ = state
                x = table[token]
                q = F.linear(x, qw, qb)
                keys[at], values[at] = F.linear(x, kw, kb), F.linear(x, vw, vb)
                scores = (keys @ q * width**-0.5).masked_fill(places > at, -float("inf"))
                x = x + tg.softmax(scores, 0) @ values
                token = (output @ x).argmax()
                return (token, x), token

            (_, x), tokens = tg.scan(step, (0, table[0]), places)
            return tokens, x

        return self.case(function, table, *self.tensors(data, "output"))


_workloads = Workloads(tg.compile)


def __getattr__(name: str) -> Any:
    return getattr(_workloads, name)
