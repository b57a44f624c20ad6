"""Random training programs: eager, compiled and PyTorch's steps leave the same behind.

`--programs N` runs N / 16 of them, `--seed N` others.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import random_training

import tgraph as tg


def described(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [described(each) for each in value]
    if not hasattr(value, "detach"):
        return value
    return np.array(value.detach().numpy()), value.requires_grad, value.is_leaf


def outcome(T: Any, text: str, compiled: bool = False) -> list[Any]:
    """What a program hands to `seen`, up to an error, of which the class is the last."""
    found: list[Any] = []
    T.manual_seed(0)
    before = T.get_default_dtype()
    T.set_default_dtype(T.float64)
    put = tg.compile if compiled else lambda function: function
    try:
        random_training.function(text)(T, put, lambda *values: found.append(described(values)))
    except (RuntimeError, ValueError, KeyError, AttributeError) as error:
        found.append(type(error).__name__)
    finally:
        T.set_default_dtype(before)
    return found


def same(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray):
        return one.shape == other.shape and np.allclose(one, other, 1e-6, 1e-8, equal_nan=True)
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


@pytest.fixture(scope="module", params=range(2))
def seeds(request: pytest.FixtureRequest) -> range:
    """Half of the programs."""
    first = request.config.getoption("--seed")
    count = -(-request.config.getoption("--programs") // 16)
    return range(first, first + count)[request.param :: 2]


@pytest.mark.filterwarnings("ignore::UserWarning")  # of recompiling, and of schedules
def test_compiled_steps_are_eager_ones(seeds: range) -> None:
    for seed in seeds:
        text = random_training.program(seed)
        expected, found = outcome(tg, text), outcome(tg, text, compiled=True)
        assert same(expected, found), f"program {seed}\n{text}\n{expected[-1]}\n{found[-1]}"


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_steps_are_those_of_pytorch(seeds: range) -> None:
    torch = pytest.importorskip("torch", reason="compares with PyTorch, which is not installed")
    for seed in seeds:
        text = random_training.program(seed)
        if "Dropout" in text:
            continue
        expected, found = outcome(torch, text), outcome(tg, text)
        assert same(expected, found), f"program {seed}\n{text}\n{expected[-1]}\n{found[-1]}"
