"""Programs with loops in tgraph, compiled: each is one plan."""

from __future__ import annotations

from typing import Any

import tgraph as tg
from tgraph.nn import functional as F

from ..case import Case
from ..contenders import with_tgraph as base
from .formulas import END, begin, step
from .workloads import BEAMS, LIKELY, STEPS, TOLERANCE, WORD_OF_END

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

    def ode_adjoint(self, data: Data) -> Case:
        weights = self.tensors(data, "inner_w", "inner_b", "outer_w", "outer_b")

        def network(y: tg.Tensor, w1: Any, b1: Any, w2: Any, b2: Any) -> tg.Tensor:
            return F.linear(tg.tanh(F.linear(y, w1, b1)), w2, b2)

        def slope(state: Any) -> Any:
            return (network(state[0], *weights),)

        def backwards(state: Any) -> Any:
            found, pull = tg.vjp(network, state[0], *weights)
            return (-found, *pull(state[1]))

        def solved(slope: Any, y: Any, counted: int) -> Any:
            return tg.while_loop(
                lambda t, *_: t < END,
                lambda *state: step(tg, slope, counted, state),
                begin(slope, y, tg.tensor),
            )[3]

        def function(y: tg.Tensor, target: tg.Tensor) -> tuple[tg.Tensor, ...]:
            (y,) = solved(slope, [y], 1)
            first = [y, 2 / y.numel() * (y - target), *map(tg.zeros_like, weights)]
            return F.mse_loss(y, target), *solved(backwards, first, 2)[1:]

        return self.case(function, *self.tensors(data, "y", "target"))

    def following(self, data: Data) -> Any:
        """Scores of the word behind one at a place in each of several sentences."""
        table, output, qw, qb, kw, kb, vw, vb = self.tensors(
            data, "table", "output", "query_w", "query_b", "key_w", "key_b", "value_w", "value_b"
        )
        width, places = table.shape[1], tg.arange(STEPS)

        def function(word: tg.Tensor, at: tg.Tensor, keys: tg.Tensor, values: tg.Tensor) -> Any:
            x = table[word]
            q = F.linear(x, qw, qb)
            keys[:, at], values[:, at] = F.linear(x, kw, kb), F.linear(x, vw, vb)
            scores = (keys @ q[:, :, None])[:, :, 0] * width**-0.5
            weights = tg.softmax(scores.masked_fill(places > at, -float("inf")), 1)
            return F.linear(x + (weights[:, None] @ values)[:, 0], output)

        return function

    def beam_search(self, data: Data) -> Case:
        following, (ends,) = self.following(data), self.tensors(data, "ends")
        words, width = data["table"].shape
        only_end = tg.where(tg.arange(words) == WORD_OF_END, 0.0, -float("inf"))

        def turn(
            at: Any, word: Any, ended: Any, total: Any, sentences: Any, keys: Any, values: Any
        ) -> Any:
            chances = tg.log_softmax(following(word, at, keys, values) + ends[at], 1)
            chances = tg.where(ended[:, None], only_end, chances)
            total, best = tg.topk((total[:, None] + chances).flatten(), BEAMS)
            parent, word = best // words, best % words
            sentences = sentences[parent]
            sentences[:, at] = word
            ended = ended[parent] | (word == WORD_OF_END)
            return at + 1, word, ended, total, sentences, keys[parent], values[parent]

        def function() -> tuple[tg.Tensor, ...]:
            word, ended = tg.ones(BEAMS, dtype=tg.int64), tg.zeros(BEAMS, dtype=tg.bool)
            total = tg.where(tg.arange(BEAMS) == 0, 0.0, -float("inf"))
            sentences = tg.full((BEAMS, STEPS), WORD_OF_END)
            keys, values = tg.zeros(2, BEAMS, STEPS, width)
            found = tg.while_loop(
                lambda at, word, ended, *_: (at < STEPS) & ~ended.all(),
                turn,
                (0, word, ended, total, sentences, keys, values),
            )
            return found[4], found[3]

        return self.case(function)

    def sampling(self, data: Data) -> Case:
        following = self.following(data)

        def function(first: tg.Tensor, temperature: tg.Tensor) -> tg.Tensor:
            keys, values = tg.zeros(2, len(first), STEPS, data["table"].shape[1])

            def turn(word: tg.Tensor, at: tg.Tensor) -> Any:
                scores, likely = tg.topk(following(word, at, keys, values), LIKELY)
                drawn = tg.multinomial(tg.softmax(scores / temperature, 1), 1)
                word = likely.gather(1, drawn)[:, 0]
                return word, word

            return tg.scan(turn, first, tg.arange(STEPS))[1].T

        return self.case(function, *self.tensors(data, "first", "temperature"))


_workloads = Workloads(tg.compile)


def __getattr__(name: str) -> Any:
    return getattr(_workloads, name)
