"""Models of sequences in PyTorch; `with_torch_compile` compiles the same losses."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch

from ..case import Case
from ..contenders import with_torch as base
from ..workload import parameters
from . import modules

Data = base.Data


class Workloads:
    """The workloads, with `compiled` applied to the loss; the optimizer's kernel is fused."""

    def __init__(self, compiled: base.Function) -> None:
        self.compiled = compiled

    def lstm_train(self, data: Data) -> Case:
        return self._case(data, modules.recurrent, modules.adam)

    def gpt_train(self, data: Data) -> Case:
        return self._case(data, modules.gpt, modules.adamw)

    def _case(self, data: Data, model_of: base.Function, optimizer_of: base.Function) -> Case:
        given = {name: torch.from_numpy(each.copy()) for name, each in data.items()}
        model, values = model_of(torch, given)
        optimizer = optimizer_of(torch, model, fused=True)
        compiled = self.compiled(partial(modules.loss_of, torch))
        tokens, labels = given["tokens"], given["labels"]

        def call() -> Any:
            return modules.step(torch, model, optimizer, lambda: compiled(model, tokens, labels))

        ordered = [values[name] for name in parameters(data)]
        return Case(call, lambda loss: base.arrays((loss, *ordered)))


_workloads = Workloads(lambda function: function)


def __getattr__(name: str) -> Any:
    return getattr(_workloads, name)
