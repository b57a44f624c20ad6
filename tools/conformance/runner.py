"""Running the cases of a family, in processes."""

from __future__ import annotations

import concurrent.futures
import json
import multiprocessing
import subprocess
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
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
    commit: str = ""


class ResultLog:
    """Results by family and name, and a file that they are added to, a line of JSON for each.

    Of a name that ran more than once the last one counts.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.commit = _commit()
        self.results: dict[str, dict[str, Result]] = {family: {} for family in FAMILIES}
        for line in path.read_text().splitlines() if path and path.exists() else ():
            fields = json.loads(line)
            family, result = fields.pop("family"), Result(**fields)
            self.results[family][result.name] = result

    def add(self, family: str, result: Result) -> None:
        """What `result` of this commit gives in the place of an earlier one."""
        result = self.results[family][result.name] = result._replace(commit=self.commit)
        if self.path:
            with self.path.open("a") as file:
                file.write(json.dumps({"family": family, **result._asdict()}) + "\n")

    def in_order(self) -> dict[str, list[Result]]:
        """Of each family that has any, in the order of its names."""
        return {family: [found[name] for name in FAMILIES[family].names() if name in found]
                for family, found in self.results.items() if found}  # fmt: skip


def _commit() -> str:
    command = ["git", "describe", "--always", "--dirty", "--exclude=*"]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    return found.stdout.strip() or "an unknown commit"


def _result(family: str, name: str, dtype: str, compiled: int, device: str) -> Result:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    module = FAMILIES[family]
    count, numbers, wrong = 0, 0, []
    for case in module.cases_of(name, getattr(torch, dtype)):
        ran: list[bool] = []
        ways = EAGER_AND_COMPILED if count < compiled else (False,)
        text = outcome(_run, module, case, ran, ways, device)
        count += bool(ran or text)
        if text == "takes numbers":
            numbers += 1
            continue
        wrong += [(case.text, text)] if text else []
        if text == f"missing: {name}":
            break  # and so are its other cases
    return Result(name, module.group_of(name), count - len(wrong), count, wrong, numbers)


def _run(module: Any, case: Any, ran: list[bool], ways: Sequence[bool], device: str) -> None:
    record = module.record(case)
    if record is not None:
        ran.append(True)
        replay(record, ways, device)


def results_of(
    family: str, names: list[str], dtype: str, processes: int, compiled: int, device: str
) -> Iterator[Result]:
    """Those of all names, in order; of each the first cases are compiled, too."""
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(processes, context) as pool:
        waiting = [pool.submit(_result, family, name, dtype, compiled, device) for name in names]
        yield from (each.result() for each in waiting)
