"""Models of sequences in tgraph: the whole step compiled."""

from __future__ import annotations

import tgraph as tg

from ..case import Case
from ..contenders import with_tgraph as base
from . import modules

Data = base.Data


def lstm_train(data: Data) -> Case:
    return _case(data, modules.recurrent, modules.adam)


def gpt_train(data: Data) -> Case:
    return _case(data, modules.gpt, modules.adamw)


def _case(data: Data, model_of: base.Function, optimizer_of: base.Function) -> Case:
    given = {name: tg.from_numpy(each.copy()) for name, each in data.items()}
    model, values = model_of(tg, given)
    optimizer = optimizer_of(tg, model)
    tokens, labels = given["tokens"], given["labels"]

    @tg.compile
    def step() -> tg.Tensor:
        loss: tg.Tensor = modules.step(
            tg, model, optimizer, lambda: modules.loss_of(tg, model, tokens, labels)
        )
        return loss

    ordered = [values[name] for name in base.parameters(data)]
    return Case(step, lambda loss: base.arrays((loss, *ordered)))
