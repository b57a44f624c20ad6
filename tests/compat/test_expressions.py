"""One-line expressions as tutorials have them: what they print, or raise, is what PyTorch does."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import tgraph

torch = pytest.importorskip("torch", reason="compares with PyTorch, which is not installed")

LINES = (Path(__file__).parent / "data" / "expressions.txt").read_text().splitlines()

# What differs, and why that is meant or not known any better.
DIFFER = {
    "taken, where PyTorch refuses": [
        "torch.zeros()", "torch.ones(2, dtype='float32')", "torch.ones(2, dtype=np.float32)",
        "np.array([1.,2]) + torch.tensor([1.,2])", "np.array([1.,2]) * torch.tensor([1.,2])",
        "np.mean(torch.tensor([1.,2]))",
    ],
    "a tensor, where PyTorch gives an array": [
        "np.concatenate([torch.ones(2), torch.zeros(1)])",
    ],
    "rounded otherwise": [
        "torch.blackman_window(5, periodic=False)",
        "torch.linalg.det(torch.tensor([[1.,2],[3,4]]))",
    ],
    "another class of error": [
        "torch.arange(5)['a']", "torch.tensor([2**70])",
        "torch.reshape(torch.ones(2))",
    ],
    "there is no CUDA, which PyTorch says by an AssertionError": [
        "torch.eye(2).to('cuda')", "torch.eye(2).cuda()",
    ],
    "a state is seed and counter": ["torch.get_rng_state().dtype"],
    "devices that are not here": ["torch.ones(2).xpu", "torch.device('cpu:0')"],
}  # fmt: skip
MEANT = {line for lines in DIFFER.values() for line in lines}


def outcome(library: ModuleType, line: str) -> str:
    try:
        result = eval(line, {"torch": library, "np": np})
    except Exception as error:
        # Our classes for one mistake are also those of PyTorch's.
        names = {each.__name__ for each in type(error).__mro__}
        for known in ("IndexError", "TypeError", "ValueError", "LinAlgError", "RuntimeError"):
            if known in names or f"_{known}" in names:
                return known
        return type(error).__name__
    return re.sub(r"\b(torch|tgraph)\.(?!return_types)", "", repr(result)).replace(
        "tgraph", "torch"
    )


def test_they_do_what_pytorch_does() -> None:
    assert set(LINES) >= MEANT
    differ = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for line in LINES:
            want, have = outcome(torch, line), outcome(tgraph, line)
            if want != have:
                differ[line] = (want, have)
    assert {line: differ[line] for line in differ.keys() - MEANT} == {}
    assert set(differ) == MEANT
