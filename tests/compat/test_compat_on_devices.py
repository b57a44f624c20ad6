"""The sample of PyTorch's cases, and malformed calls of it, with all tensors on a CUDA device.

What PyTorch gives for them on the CPU, tgraph gives on the device.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tools.conformance.malformed import cases, forms_of, ours, table
from tools.conformance.replay import Record, replay
from tools.conformance.sample import read
from tools.conformance.values import outcome

pytest_plugins = ["cuda_tools.device"]

DATA = Path(__file__).parent / "data"
MOST = 15
"""So many cases are a test: some compile for a second each."""


def parts(rows: Sequence[Any]) -> list[Sequence[Any]]:
    """Neighbours are apart."""
    count = -(-len(rows) // MOST)
    return [rows[at::count] for at in range(count)]


def names_the_cpu(record: Record) -> bool:
    return any(isinstance(each, str) and each == "cpu" for each in record.given.get("args", ()))


RECORDS = [each for each in read(DATA / "conformance.npz") if not names_the_cpu(each)]
COMPILED = parts([each for each in RECORDS if "error" not in each.wanted])
EAGER = parts(RECORDS)
LINES = table(DATA / "malformed.txt")
MALFORMED = parts([record for key, record in cases(DATA / "conformance.npz") if key in LINES])


@pytest.mark.parametrize("part", range(len(EAGER)))
def test_what_pytorch_gave(part: int, cuda: Any) -> None:
    found = [(each, outcome(replay, each, (False,), cuda)) for each in EAGER[part]]
    wrong = [f"{each.name} {each.text}\n    {text}" for each, text in found if text]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("part", range(len(COMPILED)))
def test_what_pytorch_gave_compiled(part: int, cuda: Any) -> None:
    """But for what a trace refuses, as on the CPU."""
    found = [(each, outcome(replay, each, (True,), cuda)) for each in COMPILED[part]]
    wrong = [
        f"{each.name} {each.text}\n    {text}"
        for each, text in found
        if text and text != outcome(replay, each, (True,))
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("part", range(len(MALFORMED)))
def test_malformed_calls(part: int, cuda: Any) -> None:
    """They raise what they raise on the CPU; tensors on meta lie on no device."""
    wrong = []
    for record in MALFORMED[part]:
        for form in forms_of(record):
            if "on meta" in form.text:
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                (want, _), (have, error) = ours(record, form), ours(record, form, device=cuda)
            if want[0] not in have:
                wrong.append(f"{record.name} {form.text}: {have} {error!r}, not {want}"[:300])
    assert not wrong, "\n".join(wrong)
