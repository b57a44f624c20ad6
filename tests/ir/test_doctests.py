"""The examples in the documentation of the graph and of what works on it."""

import doctest
import importlib

import pytest
from tgraph.compiler import pipeline

MODULES = [
    "compiler.ir.node", "compiler.ir.promotion", "compiler.ir.shapes", "compiler.ir.text",
    "compiler.ir.types", "compiler.interpret", "compiler.rewrite", "compiler.pipeline",
    "compiler.passes.reshape_groups", "runtime.arrays",
]  # fmt: skip


@pytest.mark.parametrize("name", MODULES)
def test_examples(name, verify_between_passes, monkeypatch):
    # Doctest passes over a function that another module has put in its place.
    monkeypatch.setattr(pipeline, "optimize", verify_between_passes)
    results = doctest.testmod(importlib.import_module(f"tgraph.{name}"))
    assert results.attempted > 0 and results.failed == 0
