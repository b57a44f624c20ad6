"""Which cases go into the file of the tests: small ones of every name that agree."""

from __future__ import annotations

import concurrent.futures
import multiprocessing
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from .replay import Record, replay
from .runner import FAMILIES
from .sample import NotPlain, Writer
from .values import outcome, tensors_of

VALUES = {"modules": 2, "optimizers": 4, "operations": 2}
ERRORS = {"modules": 1, "optimizers": 3, "operations": 1}
"""How many cases of a name there are, with values and with errors."""
LARGEST = 2500
"""How many numbers a case may have, of all its tensors."""


def write_sample(path: Path, only: Sequence[str] | None, processes: int) -> None:
    """Run PyTorch and tgraph, and write what both agree about."""
    writer, written = Writer(), 0
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(processes, context) as pool:
        for family in ("modules", "optimizers", "operations"):
            names = [each for each in FAMILIES[family].names() if each in (only or [each])]
            waiting = [pool.submit(chosen, family, name) for name in names]
            for each in waiting:
                for record in each.result():
                    writer.add(record)
                    written += 1
    writer.write(path)
    print(f"{path}: {written} cases, {path.stat().st_size / 1e6:.2f} MB")


def chosen(family: str, name: str) -> list[Record]:
    """Of the cases that agree eagerly: some with values and some with errors, evenly among all."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    cases = list(FAMILIES[family].cases_of(name, torch.float64))
    return [
        *_agreeing(family, name, [each for each in cases if not each.refused], VALUES[family]),
        *_agreeing(family, name, [each for each in cases if each.refused], ERRORS[family]),
    ]


def _agreeing(family: str, name: str, cases: list[Any], count: int) -> list[Record]:
    found: list[Record] = []
    for case in _spread(cases, count):
        made: list[Record] = []
        text = outcome(_recorded, FAMILIES[family], case, made)
        if text == f"missing: {name}" or len(found) == count:
            return found
        if made and not text and _is_plain(made[0]) and _numbers(made[0]) <= LARGEST:
            found.append(made[0])
    return found


def _recorded(module: Any, case: Any, found: list[Record]) -> None:
    record = module.record(case)
    if record is not None:
        found.append(record)
        replay(record, (False,))


def _is_plain(record: Record) -> bool:
    try:
        Writer().add(record)
    except NotPlain:
        return False
    return True


def _numbers(record: Record) -> int:
    return sum(each.values.size for each in tensors_of([record.given, record.wanted]))


def _spread(cases: list[Any], count: int) -> list[Any]:
    """Those that stand evenly among all first, then the others."""
    places = np.linspace(0, len(cases) - 1, min(count, len(cases))).astype(int).tolist()
    return [cases[place] for place in dict.fromkeys([*places, *range(len(cases))])]
