"""Programs over arrays in PyTorch; `with_torch_compile` compiles the same functions."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional as F

from ..case import Case
from ..contenders import with_torch as base
from . import formulas

Data = base.Data


class Workloads(base.Workloads):
    """The workloads, with `compiled` applied to each function."""

    def stencil(self, data: Data) -> Case:
        return self.forward(lambda u: formulas.stencil(torch.cat, u), *self.tensors(data, "u"))

    def stencil_3d(self, data: Data) -> Case:
        def function(u: torch.Tensor) -> torch.Tensor:
            return formulas.stencil_3d(lambda u: F.pad(u, (1,) * 6), u)

        return self.forward(function, *self.tensors(data, "u"))

    def image_filter(self, data: Data) -> Case:
        def function(u: torch.Tensor) -> torch.Tensor:
            return formulas.image_filter(u, formulas.TAPS)

        return self.forward(function, *self.tensors(data, "u"))

    def argmax(self, data: Data) -> Case:
        return self.forward(lambda x: x.argmax(1), *self.tensors(data, "x"))

    def topk(self, data: Data) -> Case:
        return self.forward(lambda x: tuple(torch.topk(x, 10)), *self.tensors(data, "x"))

    def sort(self, data: Data) -> Case:
        return self.forward(lambda x: torch.sort(x).values, *self.tensors(data, "x"))

    def cumsum(self, data: Data) -> Case:
        return self.forward(lambda x: x.cumsum(1), *self.tensors(data, "x"))

    def cumsum_columns(self, data: Data) -> Case:
        return self.forward(lambda x: x.cumsum(0), *self.tensors(data, "x"))

    def column_softmax(self, data: Data) -> Case:
        return self.forward(lambda x: x.softmax(0), *self.tensors(data, "x"))

    def recurrence(self, data: Data) -> Case:
        def function(x: torch.Tensor) -> torch.Tensor:
            return formulas.recurrence(torch, torch.stack, x)

        return self.forward(function, *self.tensors(data, "x"))

    def columns(self, data: Data) -> Case:
        def function(u: torch.Tensor) -> torch.Tensor:
            return formulas.columns(torch, torch.stack, u)

        return self.forward(function, *self.tensors(data, "u"))

    def box_overlaps(self, data: Data) -> Case:
        def function(*boxes: torch.Tensor) -> torch.Tensor:
            return formulas.box_overlaps(torch, torch.amax, *boxes)

        return self.forward(function, *self.tensors(data, "a", "b"))

    def float64_sums(self, data: Data) -> Case:
        return self.forward(lambda x: formulas.float64_sums(torch, x), *self.tensors(data, "x"))

    def gather_sum(self, data: Data) -> Case:
        return self.forward(
            lambda table, index: table[index].sum(1), *self.tensors(data, "table", "index")
        )

    def masked_softmax(self, data: Data) -> Case:
        def function(x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
            return x.masked_fill(~mask, -torch.inf).softmax(-1)

        return self.forward(function, *self.tensors(data, "x", "mask"))

    def logsumexp_chain(self, data: Data) -> Case:
        def function(*given: torch.Tensor) -> torch.Tensor:
            return formulas.forward_algorithm(torch.logsumexp, *given)

        return self.forward(function, *self.tensors(data, "start", "transitions", "evidence"))

    def solves(self, data: Data) -> Case:
        def function(*given: torch.Tensor) -> torch.Tensor:
            return formulas.solved(torch.stack, *given)

        return self.forward(function, *self.tensors(data, "matrices", "right"))

    def vmap_solves(self, data: Data) -> Case:
        function = torch.vmap(torch.linalg.solve)
        return self.forward(function, *self.tensors(data, "matrices", "right"))

    def hashing(self, data: Data) -> Case:
        return self.forward(formulas.hashed, *self.tensors(data, "x"))

    def histogram(self, data: Data) -> Case:
        return self.forward(formulas.histogram, *self.tensors(data, "x", "edges"))

    def nearest(self, data: Data) -> Case:
        def function(queries: torch.Tensor, points: torch.Tensor) -> tuple[torch.Tensor, ...]:
            return tuple(formulas.distances(queries, points).min(1))

        return self.forward(function, *self.tensors(data, "queries", "points"))

    def monte_carlo(self, data: Data) -> Case:
        size = tuple(data["size"].tolist())
        return self.forward(lambda: formulas.option_price(torch.exp, torch.randn(size)))

    def spectral(self, data: Data) -> Case:
        def function(*given: torch.Tensor) -> torch.Tensor:
            return formulas.spectral_step(torch.exp, *given)

        return self.forward(function, *self.tensors(data, "u", "cosines", "sines", "numbers"))


_workloads = Workloads(lambda function: function)


def __getattr__(name: str) -> Any:
    return getattr(_workloads, name)
