"""Programs with loops in PyTorch: loops are Python's, and `with_torch_compile` compiles turns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.nn import functional as F

from ..case import Case
from ..contenders import with_torch as base
from ..networks.with_torch import Workloads as Networks
from .formulas import END, begin, step
from .workloads import BEAMS, LIKELY, STEPS, TOLERANCE, WORD_OF_END

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

    def ode_adjoint(self, data: Data) -> Case:
        """What the solver does in a turn is compiled; Python asks whether there is another one."""
        weights = self.tensors(data, "inner_w", "inner_b", "outer_w", "outer_b")
        y, target = self.tensors(data, "y", "target")

        def network(y: torch.Tensor, w1: Any, b1: Any, w2: Any, b2: Any) -> torch.Tensor:
            return F.linear(torch.tanh(F.linear(y, w1, b1)), w2, b2)

        def slope(state: Any) -> Any:
            return (network(state[0], *weights),)

        def backwards(state: Any) -> Any:
            found, gradients = self.pulled_back(network, [state[0], *weights], state[1])
            return (-found, *gradients)

        def solver(slope: Any, counted: int) -> Any:
            first = self.compiled(lambda *y: begin(slope, y, torch.tensor))
            turn = self.compiled(lambda *state: step(torch, slope, counted, state))

            def solved(*y: torch.Tensor) -> Any:
                state = first(*y)
                while state[0] < END:
                    state = turn(*state)
                return state[3]

            return solved

        forwards, back = solver(slope, 1), solver(backwards, 2)

        def call() -> tuple[torch.Tensor, ...]:
            with torch.no_grad():
                (last,) = forwards(y)
                first = [last, 2 / last.numel() * (last - target), *map(torch.zeros_like, weights)]
                return F.mse_loss(last, target), *back(*first)[1:]

        return Case(call, base.arrays)

    @staticmethod
    def pulled_back(function: Any, inputs: Sequence[torch.Tensor], cotangent: torch.Tensor) -> Any:
        """What a function gives, and the gradients: by the tape, the fastest way in eager mode."""
        with torch.enable_grad():
            own = [each.detach().requires_grad_() for each in inputs]
            found = function(*own)
            return found.detach(), torch.autograd.grad(found, own, cotangent)

    def following(self, data: Data) -> Any:
        """Scores of the word behind one at a place in each of several sentences."""
        table, output, qw, qb, kw, kb, vw, vb = self.tensors(
            data, "table", "output", "query_w", "query_b", "key_w", "key_b", "value_w", "value_b"
        )
        width, places = table.shape[1], torch.arange(STEPS)

        def function(
            word: torch.Tensor, at: torch.Tensor, keys: torch.Tensor, values: torch.Tensor
        ) -> torch.Tensor:
            x = table[word]
            q = F.linear(x, qw, qb)
            keys.index_copy_(1, at, F.linear(x, kw, kb)[:, None])
            values.index_copy_(1, at, F.linear(x, vw, vb)[:, None])
            scores = (keys @ q[:, :, None])[:, :, 0] * width**-0.5
            weights = torch.softmax(scores.masked_fill(places > at, -float("inf")), 1)
            return F.linear(x + (weights[:, None] @ values)[:, 0], output)

        return function

    def beam_search(self, data: Data) -> Case:
        following, (ends,) = self.following(data), self.tensors(data, "ends")
        words, width = data["table"].shape
        only_end = torch.where(torch.arange(words) == WORD_OF_END, 0.0, -float("inf"))

        @self.compiled
        def turn(
            at: Any, word: Any, ended: Any, total: Any, sentences: Any, keys: Any, values: Any
        ) -> Any:
            chances = torch.log_softmax(following(word, at, keys, values) + ends[at], 1)
            chances = torch.where(ended[:, None], only_end, chances)
            total, best = torch.topk((total[:, None] + chances).flatten(), BEAMS)
            parent, word = best // words, best % words
            sentences = sentences[parent].index_copy(1, at, word[:, None])
            ended = ended[parent] | (word == WORD_OF_END)
            return ended.all(), word, ended, total, sentences, keys[parent], values[parent]

        def call() -> tuple[torch.Tensor, ...]:
            with torch.no_grad():
                word, ended = torch.ones(BEAMS, dtype=torch.int64), torch.zeros(BEAMS).bool()
                total = torch.where(torch.arange(BEAMS) == 0, 0.0, -float("inf"))
                sentences = torch.full((BEAMS, STEPS), WORD_OF_END)
                keys, values = torch.zeros(2, BEAMS, STEPS, width)
                state = word, ended, total, sentences, keys, values
                for at in torch.arange(STEPS).split(1):
                    is_over, *state = turn(at, *state)
                    if is_over:
                        break
                return state[3], state[2]

        return Case(call, base.arrays)

    def sampling(self, data: Data) -> Case:
        following, width = self.following(data), data["table"].shape[1]
        first, temperature = self.tensors(data, "first", "temperature")

        @self.compiled
        def turn(
            word: torch.Tensor, at: torch.Tensor, keys: torch.Tensor, values: torch.Tensor
        ) -> torch.Tensor:
            scores, likely = torch.topk(following(word, at, keys, values), LIKELY)
            drawn = torch.multinomial(torch.softmax(scores / temperature, 1), 1)
            return likely.gather(1, drawn)[:, 0]

        def call() -> torch.Tensor:
            with torch.no_grad():
                keys, values = torch.zeros(2, len(first), STEPS, width)
                word, words = first, []
                for at in torch.arange(STEPS).split(1):
                    word = turn(word, at, keys, values)
                    words.append(word)
                return torch.stack(words, 1)

        return Case(call, base.arrays)


_workloads = Workloads(lambda function: function)


def __getattr__(name: str) -> Any:
    return getattr(_workloads, name)
