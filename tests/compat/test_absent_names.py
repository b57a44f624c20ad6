"""PyTorch's names: each is here, or in the list of those that are not, with the reason."""

from __future__ import annotations

import re
import types
import warnings
from functools import reduce
from typing import Any

import pytest
from absent_names import ABSENT

import tgraph as tg

PLACES = ("", "Tensor", "nn.functional", "nn", "linalg", "fft", "special", "optim", "autograd",
          "nn.init", "nn.utils", "distributions", "func", "amp")  # fmt: skip
PATTERNS = [each for text in ABSENT.values() for each in text.split()]


def found_in(root: Any, place: str) -> Any:
    return reduce(getattr, place.split(".") if place else [], root)


def of_itself(value: Any) -> bool:
    """Whether PyTorch made it, and not Python's `typing`."""
    module = getattr(value, "__module__", None) or "torch"
    return not isinstance(value, types.ModuleType) and module.startswith("torch")


def test_what_is_absent_is_listed_with_the_reason() -> None:
    torch = pytest.importorskip("torch", reason="compares with PyTorch, which is not installed")
    absent = set()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of names that are deprecated there
        for place in PLACES:
            names, ours = found_in(torch, place), found_in(tg, place)
            for name in dir(names):
                full = f"{place}.{name}".lstrip(".")
                if name.startswith("_") or not of_itself(getattr(names, name, None)):
                    continue
                if not hasattr(ours, name):
                    absent.add(full)
    assert not [each for each in absent if not any(re.fullmatch(p, each) for p in PATTERNS)]
    nothing = [p for p in PATTERNS if not any(re.fullmatch(p, each) for each in absent)]
    assert not nothing, "patterns that fit no name which is absent"
