"""tgraph: PyTorch's code, the whole function or step compiled, or run eagerly."""

from __future__ import annotations

import gc
import importlib
from functools import partial
from typing import Any

import tgraph as tg
from tgraph.nn import functional as F

from ...case import Case
from ...contenders import with_tgraph as base
from .. import formulas, resnet

Data = base.Data


class Contender(base.Workloads):
    """Variants: "compiled", "eager", and "launched": compiled, but never captured as a graph."""

    def __init__(self, variant: str, device: str, threads: int) -> None:
        super().__init__(_unchanged if variant == "eager" else tg.compile, device)
        base.start(threads)
        if variant == "launched":
            _never_capture()

    def versions(self) -> dict[str, str]:
        return base.versions()

    def synchronize(self, result: Any) -> None:
        if self.device == "cuda":
            tg.cuda.synchronize()

    def release(self) -> None:
        gc.collect()
        if self.device == "cuda":
            tg.cuda.empty_cache()

    def black_scholes(self, data: Data) -> Case:
        def function(*inputs: tg.Tensor) -> tuple[tg.Tensor, ...]:
            return formulas.black_scholes(tg, tg.erf, *inputs)

        return self.case(function, *self.tensors(data, "spot", "strike", "years"))

    def stencil(self, data: Data) -> Case:
        def function(u: tg.Tensor) -> tg.Tensor:
            return formulas.diffused(lambda u: F.pad(u, (1, 1, 1, 1)), u)

        return self.case(function, *self.tensors(data, "u"))

    def lstm(self, data: Data) -> Case:
        input_w, hidden_w, input_b, hidden_b = self.tensors(
            data, "input_w", "hidden_w", "input_b", "hidden_b"
        )

        def turn(state: Any, projected: tg.Tensor) -> Any:
            h, c = state
            i, f, g, o = (projected + F.linear(h, hidden_w)).chunk(4, -1)
            c = tg.sigmoid(f) * c + tg.sigmoid(i) * tg.tanh(g)
            h = tg.sigmoid(o) * tg.tanh(c)
            return (h, c), h

        def function(x: tg.Tensor) -> tuple[tg.Tensor, ...]:
            zeros = tg.zeros(x.shape[1], hidden_w.shape[1], device=x.device)
            projected = F.linear(x, input_w, input_b + hidden_b)
            (h, c), seen = tg.scan(turn, (zeros, zeros), projected)
            return seen, h, c

        return self.case(function, *self.tensors(data, "x"))

    def decode(self, data: Data) -> Case:
        def write(cache: tg.Tensor, at: tg.Tensor, row: tg.Tensor) -> tg.Tensor:
            return cache.index_copy(0, at.reshape(1).to(cache.device), row[None])

        def function(x: tg.Tensor, cache: tg.Tensor, *weights: tg.Tensor) -> tuple[tg.Tensor, ...]:
            positions = tg.arange(len(cache), device=x.device)[:, None]

            def turn(at: tg.Tensor, state: Any) -> Any:
                return formulas.decoded(tg, write, at, *state, positions, weights)

            return tg.fori_loop(0, len(cache), turn, (x, cache, cache))[:2]

        names = ("x", "cache", "query_w", "key_w", "value_w", "out_w")
        return self.case(function, *self.tensors(data, *names))

    def newton(self, data: Data) -> Case:
        def function(a: tg.Tensor) -> tg.Tensor:
            far, nearer = partial(formulas.is_far, a), partial(formulas.nearer, a)
            return tg.while_loop(far, nearer, a)

        return self.case(function, *self.tensors(data, "a"))

    def adamw(self, data: Data) -> Case:
        return self.step(data, base.adamw)

    def gpt2_train(self, data: Data) -> Case:
        tokens, labels = self.tensors(data, "tokens", "labels")
        words, places, *blocks, final_w, final_b = values = self.parameters(data)

        def loss_of() -> tg.Tensor:
            x = F.embedding(tokens, words) + places
            for first in range(0, len(blocks), 12):
                x = base.block(x, blocks[first : first + 12], causal=True, linear=half_linear)
            h = F.layer_norm(x, x.shape[-1:], final_w, final_b)
            logits = half_linear(h, words)
            return F.cross_entropy(logits.flatten(0, 1).float(), labels.flatten())

        return self.training(loss_of, base.adamw(values), values)

    def resnet18(self, data: Data) -> Case:
        p = dict(zip(data, self.tensors(data, *data), strict=True))

        def function(x: tg.Tensor) -> tg.Tensor:
            return resnet.forward(resnet.TorchLayers(F), {**p, "x": x})

        return self.case(function, p["x"])


def half_linear(x: tg.Tensor, weight: tg.Tensor, *bias: tg.Tensor) -> tg.Tensor:
    """A product of bfloat16 with weights kept in float32, as PyTorch's autocast has it."""
    return F.linear(*(each.to(tg.bfloat16) for each in (x, weight, *bias)))


def _never_capture() -> None:
    """From now on all plans launch kernel by kernel."""
    plans: Any = importlib.import_module("tgraph.runtime.cuda.plan").CudaPlan
    plans.can_capture = property(lambda plan: False, lambda plan, value: None)


def _unchanged(function: base.Function) -> base.Function:
    return function
