"""PyTorch as its users write it, and under `torch.compile` in the mode of the variant."""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch.nn import functional as F

from ...case import Case
from ...contenders import with_torch as base
from ...hyperparameters import ADAMW
from .. import formulas, resnet

Data = base.Data


def _compiler(variant: str) -> base.Function:
    if variant == "eager":
        return lambda function: function
    # Each workload has one shape; a second one with the same code is no reason for a general one.
    return functools.partial(torch.compile, mode=variant, dynamic=False)


class Contender(base.Workloads):
    """Variants: "eager", and the modes of `torch.compile`."""

    def __init__(self, variant: str, device: str, threads: int) -> None:
        super().__init__(_compiler(variant), device)
        base.start(threads)
        self.eager = variant == "eager"
        # Products of float32 are products of float32 for all contenders, also in cuDNN.
        torch.backends.cudnn.allow_tf32 = False
        torch.backends.cudnn.benchmark = True

    def versions(self) -> dict[str, str]:
        return {**base.versions(), "CUDA of torch": str(torch.version.cuda)}

    def synchronize(self, result: Any) -> None:
        if self.device == "cuda":
            torch.cuda.synchronize()

    def release(self) -> None:
        torch.compiler.reset()
        if self.device == "cuda":
            torch.cuda.empty_cache()

    def black_scholes(self, data: Data) -> Case:
        def function(*inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
            return formulas.black_scholes(torch, torch.erf, *inputs)

        return self.forward(function, *self.tensors(data, "spot", "strike", "years"))

    def stencil(self, data: Data) -> Case:
        def function(u: torch.Tensor) -> torch.Tensor:
            return formulas.diffused(lambda u: F.pad(u, (1, 1, 1, 1)), u)

        return self.forward(function, *self.tensors(data, "u"))

    def lstm(self, data: Data) -> Case:
        """The module, which cuDNN runs; no mode of the compiler changes that."""
        weights = self.tensors(data, "input_w", "hidden_w", "input_b", "hidden_b")
        sizes = data["input_w"].shape[1], data["hidden_w"].shape[1]
        module = torch.nn.LSTM(*sizes, device=self.device)
        with torch.no_grad():
            for own, given in zip(module.parameters(), weights, strict=True):
                own.copy_(given)

        def function(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
            seen, (h, c) = module(x)
            return seen, h[0], c[0]

        return self.forward(function, *self.tensors(data, "x"))

    def decode(self, data: Data) -> Case:
        """A turn is compiled; the loop is Python's."""
        names = ("x", "cache", "query_w", "key_w", "value_w", "out_w")
        x, cache, *weights = self.tensors(data, *names)
        positions = torch.arange(len(cache), device=self.device)[:, None]
        places = list(torch.arange(len(cache), device=self.device))

        def write(cache: torch.Tensor, at: torch.Tensor, row: torch.Tensor) -> torch.Tensor:
            return cache.index_copy_(0, at.reshape(1), row[None])

        def turn(at: torch.Tensor, x: Any, keys: Any, values: Any) -> torch.Tensor:
            found = formulas.decoded(torch, write, at, x, keys, values, positions, tuple(weights))
            return found[0]

        compiled = self.compiled(turn)

        def call() -> tuple[torch.Tensor, ...]:
            with torch.inference_mode():
                now, keys, values = x, cache.clone(), cache.clone()
                for at in places:
                    now = compiled(at, now.clone(), keys, values)
                return now, keys

        return Case(call, base.arrays)

    def newton(self, data: Data) -> Case:
        """A turn and its condition are compiled; the loop is Python's."""
        (a,) = self.tensors(data, "a")

        def turn(a: torch.Tensor, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            x = formulas.nearer(a, x)
            return x, formulas.is_far(a, x)

        compiled = self.compiled(turn)

        def call() -> torch.Tensor:
            with torch.inference_mode():
                x, far = compiled(a, a)
                while far:
                    x, far = compiled(a, x.clone())
                return x

        return Case(call, base.arrays)

    def adamw(self, data: Data) -> Case:
        """The fused optimizer; compiled, the one over all parameters at once that can be fused."""
        compiled = functools.partial(_compiled_adamw, device=self.device)
        return self.step(data, base.adamw if self.eager else compiled)

    def gpt2_train(self, data: Data) -> Case:
        tokens, labels = self.tensors(data, "tokens", "labels")
        words, places, *blocks, final_w, final_b = values = self.parameters(data)

        def loss_of() -> torch.Tensor:
            with torch.autocast(self.device, torch.bfloat16):
                x = F.embedding(tokens, words) + places
                for first in range(0, len(blocks), 12):
                    x = base.block(x, blocks[first : first + 12], causal=True)
                logits = F.linear(F.layer_norm(x, x.shape[-1:], final_w, final_b), words)
                return F.cross_entropy(logits.flatten(0, 1), labels.flatten())

        return self.training(loss_of, base.adamw(values), values)

    def resnet18(self, data: Data) -> Case:
        p = dict(zip(data, self.tensors(data, *data), strict=True))
        return self.forward(lambda: resnet.forward(resnet.TorchLayers(F), p))


def _compiled_adamw(values: list[torch.Tensor], device: str) -> torch.optim.Optimizer:
    return torch.optim.AdamW(
        values,
        ADAMW.rate,
        (ADAMW.beta1, ADAMW.beta2),
        ADAMW.epsilon,
        ADAMW.decay,
        foreach=True,
        capturable=device == "cuda",
    )
