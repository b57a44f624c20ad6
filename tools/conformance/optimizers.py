"""PyTorch's option sets of its optimizers (`common_optimizers.optim_db`)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch.testing._internal import common_optimizers

from .encode import again, encoded
from .replay import Record, training_step
from .values import told

STEPS = 12
STEPS_OF = {"LBFGS": 2}
"""Of what takes up to 20 steps within one."""


class Case(NamedTuple):
    """An optimizer and its options; with parameters where PyTorch refuses both."""

    optimizer: str
    options: dict[str, Any]
    dtype: torch.dtype
    text: str
    refused: Any = None


_INFOS = {each.optim_cls.__name__: each for each in common_optimizers.optim_db}


def names() -> list[str]:
    """All optimizers, in PyTorch's order."""
    return list(_INFOS)


def group_of(name: str) -> str:
    """The row of the table that an optimizer is counted in."""
    return "optimizers"


def cases_of(name: str, dtype: torch.dtype) -> Iterator[Case]:
    info = _INFOS[name]
    for each in info.optim_inputs_func(device="cpu", dtype=dtype):
        yield Case(name, each.kwargs, dtype, f"{each.kwargs}")
    for each in info.optim_error_inputs_func(device="cpu", dtype=dtype):
        made = each.optimizer_error_input
        yield Case(name, made.kwargs, dtype, f"{made.desc} is refused", each)


def record(case: Case) -> Record | None:
    """Parameters and state after a few steps; or the error of what is refused."""
    if case.refused is not None:
        return _refused(case)
    torch.manual_seed(0)
    shapes = [(4, 3), (3, 4)] if case.optimizer == "Muon" else [(4, 3), (3,)]
    begin = [torch.nn.Parameter(again(torch.randn(shape, dtype=case.dtype))) for shape in shapes]
    targets = [again(torch.randn(shape, dtype=case.dtype)) for shape in shapes]
    given = {
        "begin": encoded(begin), "targets": encoded(targets), "options": encoded(case.options),
        "steps": STEPS_OF.get(case.optimizer, STEPS),
    }  # fmt: skip
    optimizer = _INFOS[case.optimizer].optim_cls(begin, **case.options)
    step = training_step(optimizer, begin, targets)
    for _ in range(given["steps"]):
        step()
    state = optimizer.state_dict()
    wanted = {
        "parameters": [encoded(each) for each in begin],
        "groups": [dict.fromkeys(each) for each in state["param_groups"]],
        "state": {key: _of_steps(each) for key, each in state["state"].items()},
    }
    return Record("optimizers", case.optimizer, case.text, given, wanted)


def _of_steps(state: dict[str, Any]) -> dict[str, Any]:
    """The tensors; of what is one number, only that it is there, as its type may be another."""
    return {
        name: encoded(value) if isinstance(value, torch.Tensor) and value.ndim else None
        for name, value in state.items()
    }


def _refused(case: Case) -> Record | None:
    each = case.refused
    known: dict[int, Any] = {}
    parameters = each.optimizer_error_input.params
    if parameters is None:  # as in PyTorch's own test
        parameters = [torch.nn.Parameter(torch.randn(2, 3, dtype=case.dtype)) for _ in range(2)]
    at_step = each.error_on is common_optimizers.OptimizerErrorEnum.STEP_ERROR
    given = {
        "begin": encoded(parameters, known), "options": encoded(case.options, known),
        "step": [encoded(each.grad) for each in parameters] if at_step else None,
    }  # fmt: skip
    try:
        optimizer = _INFOS[case.optimizer].optim_cls(parameters, **case.options)
        if at_step:
            optimizer.step()
    except Exception as error:
        wanted = {"error": type(error).__name__, "message": told(error)}
        return Record("optimizers", case.optimizer, case.text, given, wanted)
    return None
