"""The examples in the docstrings of tensor functions run and print what they say."""

from __future__ import annotations

import doctest
import importlib

import pytest

MODULES = [
    "activations",
    "autograd.api",
    "autograd.function",
    "autograd.grad_mode",
    "autograd.record",
    "autograd.transforms",
    "comparison",
    "conversion",
    "creation",
    "elementwise",
    "functional",
    "indexing",
    "joining",
    "linalg",
    "losses",
    "movement",
    "operands",
    "positions",
    "random",
    "reductions",
    "sorting",
    "tensor",
    "views",
]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name: str) -> None:
    result = doctest.testmod(importlib.import_module(f"tgraph.{name}"))
    assert result.failed == 0
