"""Running the cases of a family, in processes."""

from __future__ import annotations

import concurrent.futures
import multiprocessing
from typing import Any, NamedTuple

import torch

from . import modules, operations, optimizers
from .translate import outcome

FAMILIES: dict[str, Any] = {
    "modules": modules, "optimizers": optimizers, "operations": operations,
}  # fmt: skip


class Result(NamedTuple):
    """How many cases agree, of how many, and what is different about the others."""

    name: str
    agree: int
    count: int
    differences: list[tuple[str, str]]


def _result(family: str, name: str, dtype: str) -> Result:
    torch.set_num_threads(1)
    module = FAMILIES[family]
    cases = list(module.cases_of(name, getattr(torch, dtype)))
    found = [(case.text, outcome(module.run, case)) for case in cases]
    wrong = [each for each in found if each[1]]
    return Result(name, len(cases) - len(wrong), len(cases), wrong)


def results_of(family: str, names: list[str], dtype: str, processes: int) -> list[Result]:
    found = []
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(processes, context) as pool:
        waiting = [pool.submit(_result, family, name, dtype) for name in names]
        for each in waiting:
            result = each.result()
            first = result.differences[0][1] if result.differences else ""
            print(f"{result.name:40} {result.agree:3} / {result.count:3}  {first}", flush=True)
            found.append(result)
    return found
