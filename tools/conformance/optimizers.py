"""PyTorch's option sets of its optimizers (`common_optimizers.optim_db`)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch.testing._internal import common_optimizers

import tgraph as tg

from .translate import Difference, compare, own, own_name, told

STEPS = 12


class Case(NamedTuple):
    """An optimizer and its options."""

    optimizer: str
    options: dict[str, Any]
    dtype: torch.dtype
    text: str


_INFOS = {each.optim_cls.__name__: each for each in common_optimizers.optim_db}


def names() -> list[str]:
    """All optimizers, in PyTorch's order."""
    return list(_INFOS)


def cases_of(name: str, dtype: torch.dtype) -> Iterator[Case]:
    for each in _INFOS[name].optim_inputs_func(device="cpu", dtype=dtype):
        yield Case(name, each.kwargs, dtype, f"{each.kwargs}")


def run(case: Case) -> None:
    """A few steps, eager and compiled, and the state; Difference unless all are PyTorch's."""
    torch.manual_seed(0)
    shapes = [(4, 3), (3, 4)] if case.optimizer == "Muon" else [(4, 3), (3,)]
    begin = [torch.randn(shape, dtype=case.dtype) for shape in shapes]
    targets = [torch.randn_like(each) for each in begin]
    theirs_class = _INFOS[case.optimizer].optim_cls
    theirs = [each.clone().requires_grad_() for each in begin]
    reference = theirs_class(theirs, **case.options)
    for _ in range(STEPS):
        reference.step(_closure(reference, theirs, targets))
    for compiled in (False, True):
        kind = "compiled" if compiled else "values"
        ours = [tg.nn.Parameter(own(each)) for each in begin]
        goals = [own(each) for each in targets]
        made = own_name(f"optim.{case.optimizer}")(ours, **own(case.options))
        step = _step(made, ours, goals)
        run_step = tg.compile(step) if compiled else step
        try:
            for _ in range(STEPS):
                run_step()
        except Exception as error:
            raise Difference(kind, told(error)) from error
        compare(kind, ours, [each.detach() for each in theirs], loose=10.0)
        _same_state(made, reference)


def _closure(optimizer: Any, parameters: list[Any], targets: list[Any]) -> Any:
    def closure() -> Any:
        optimizer.zero_grad()
        loss = sum(((one - other) ** 2).mean() + (one**4).mean() / 10
                   for one, other in zip(parameters, targets, strict=True))  # fmt: skip
        loss.backward()
        return loss

    return closure


def _step(optimizer: Any, parameters: list[Any], targets: list[Any]) -> Any:
    closure = _closure(optimizer, parameters, targets)
    return lambda: optimizer.step(closure)


def _same_state(ours: Any, theirs: Any) -> None:
    found, wanted = ours.state_dict(), theirs.state_dict()
    if list(found) != list(wanted):
        raise Difference("state", f"{list(found)} instead of {list(wanted)}")
    for mine, their in zip(found["param_groups"], wanted["param_groups"], strict=True):
        if set(mine) != set(their):
            raise Difference("state", f"groups differ in {sorted(set(mine) ^ set(their))}")
    for key, their in wanted["state"].items():
        mine = found["state"].get(key, {})
        if set(mine) != set(their):
            raise Difference("state", f"of {key} differs in {sorted(set(mine) ^ set(their))}")
        for name, value in their.items():
            if isinstance(value, torch.Tensor) and value.ndim:
                compare(f"state {name}", mine[name], value, loose=10.0)
