"""Programs over arrays in tgraph, compiled."""

from __future__ import annotations

from typing import Any

import tgraph as tg
from tgraph.nn import functional as F

from ..case import Case
from ..contenders import with_tgraph as base
from . import formulas

Data = base.Data


class Workloads(base.Workloads):
    """The workloads, with `compiled` applied to each function."""

    def stencil(self, data: Data) -> Case:
        return self.case(lambda u: formulas.stencil(tg.cat, u), *self.tensors(data, "u"))

    def stencil_3d(self, data: Data) -> Case:
        def function(u: tg.Tensor) -> tg.Tensor:
            return formulas.stencil_3d(lambda u: F.pad(u, (1,) * 6), u)

        return self.case(function, *self.tensors(data, "u"))

    def image_filter(self, data: Data) -> Case:
        def function(u: tg.Tensor) -> tg.Tensor:
            return formulas.image_filter(u, formulas.TAPS)

        return self.case(function, *self.tensors(data, "u"))

    def argmax(self, data: Data) -> Case:
        return self.case(lambda x: x.argmax(1), *self.tensors(data, "x"))

    def topk(self, data: Data) -> Case:
        return self.case(lambda x: tuple(tg.topk(x, 10)), *self.tensors(data, "x"))

    def sort(self, data: Data) -> Case:
        return self.case(lambda x: tg.sort(x).values, *self.tensors(data, "x"))

    def cumsum(self, data: Data) -> Case:
        return self.case(lambda x: x.cumsum(1), *self.tensors(data, "x"))

    def cumsum_columns(self, data: Data) -> Case:
        return self.case(lambda x: x.cumsum(0), *self.tensors(data, "x"))

    def column_softmax(self, data: Data) -> Case:
        return self.case(lambda x: x.softmax(0), *self.tensors(data, "x"))

    def recurrence(self, data: Data) -> Case:
        def function(x: tg.Tensor) -> tg.Tensor:
            return formulas.recurrence(tg, tg.stack, x)

        return self.case(function, *self.tensors(data, "x"))

    def columns(self, data: Data) -> Case:
        def function(u: tg.Tensor) -> tg.Tensor:
            return formulas.columns(tg, tg.stack, u)

        return self.case(function, *self.tensors(data, "u"))

    def box_overlaps(self, data: Data) -> Case:
        def function(*boxes: tg.Tensor) -> tg.Tensor:
            return formulas.box_overlaps(tg, tg.amax, *boxes)

        return self.case(function, *self.tensors(data, "a", "b"))

    def float64_sums(self, data: Data) -> Case:
        return self.case(lambda x: formulas.float64_sums(tg, x), *self.tensors(data, "x"))

    def gather_sum(self, data: Data) -> Case:
        return self.case(
            lambda table, index: table[index].sum(1), *self.tensors(data, "table", "index")
        )

    def masked_softmax(self, data: Data) -> Case:
        def function(x: tg.Tensor, mask: tg.Tensor) -> tg.Tensor:
            return x.masked_fill(~mask, -tg.inf).softmax(-1)

        return self.case(function, *self.tensors(data, "x", "mask"))

    def logsumexp_chain(self, data: Data) -> Case:
        def function(*given: tg.Tensor) -> tg.Tensor:
            return formulas.forward_algorithm(tg.logsumexp, *given)

        return self.case(function, *self.tensors(data, "start", "transitions", "evidence"))

    def solves(self, data: Data) -> Case:
        def function(*given: tg.Tensor) -> tg.Tensor:
            return formulas.solved(tg.stack, *given)

        return self.case(function, *self.tensors(data, "matrices", "right"))

    def vmap_solves(self, data: Data) -> Case:
        function = tg.vmap(tg.linalg.solve)
        return self.case(function, *self.tensors(data, "matrices", "right"))

    def hashing(self, data: Data) -> Case:
        return self.case(formulas.hashed, *self.tensors(data, "x"))

    def histogram(self, data: Data) -> Case:
        return self.case(formulas.histogram, *self.tensors(data, "x", "edges"))

    def nearest(self, data: Data) -> Case:
        def function(queries: tg.Tensor, points: tg.Tensor) -> tuple[tg.Tensor, ...]:
            return tuple(formulas.distances(queries, points).min(1))

        return self.case(function, *self.tensors(data, "queries", "points"))

    def monte_carlo(self, data: Data) -> Case:
        size = tuple(data["size"].tolist())
        return self.case(lambda: formulas.option_price(tg.exp, tg.randn(size)))

    def spectral(self, data: Data) -> Case:
        def function(*given: tg.Tensor) -> tg.Tensor:
            return formulas.spectral_step(tg.exp, *given)

        return self.case(function, *self.tensors(data, "u", "cosines", "sines", "numbers"))


_workloads = Workloads(tg.compile)


def __getattr__(name: str) -> Any:
    return getattr(_workloads, name)
