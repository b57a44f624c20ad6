"""Running the cases of a family, in processes."""

from __future__ import annotations

import concurrent.futures
import multiprocessing
import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from . import modules, operations, optimizers
from .replay import EAGER_AND_COMPILED, replay
from .values import outcome

FAMILIES: dict[str, Any] = {
    "modules": modules, "optimizers": optimizers, "operations": operations,
}  # fmt: skip


class Result(NamedTuple):
    """How many cases agree, of how many, and what is different about the others.

    In `numbers` of those that agree, numbers are taken where PyTorch wants tensors.
    """

    name: str
    group: str
    agree: int
    count: int
    differences: list[tuple[str, str]]
    numbers: int = 0


def _result(family: str, name: str, dtype: str, compiled: int) -> Result:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    module = FAMILIES[family]
    count, numbers, wrong = 0, 0, []
    for case in module.cases_of(name, getattr(torch, dtype)):
        ran: list[bool] = []
        ways = EAGER_AND_COMPILED if count < compiled else (False,)
        text = outcome(_run, module, case, ran, ways)
        count += bool(ran or text)
        if text == "takes numbers":
            numbers += 1
            continue
        wrong += [(case.text, text)] if text else []
        if text == f"missing: {name}":
            break  # and so are its other cases
    return Result(name, module.group_of(name), count - len(wrong), count, wrong, numbers)


def _run(module: Any, case: Any, ran: list[bool], ways: Sequence[bool]) -> None:
    record = module.record(case)
    if record is not None:
        ran.append(True)
        replay(record, ways)


def results_of(
    family: str, names: list[str], dtype: str, processes: int, compiled: int
) -> list[Result]:
    """Those of all names, in order; of each the first cases are compiled, too."""
    found = []
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(processes, context) as pool:
        waiting = [pool.submit(_result, family, name, dtype, compiled) for name in names]
        for each in waiting:
            result = each.result()
            first = result.differences[0][1] if result.differences else ""
            print(f"{result.name:40} {result.agree:3} / {result.count:3}  {first}", flush=True)
            found.append(result)
    return found
