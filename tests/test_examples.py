"""The examples in the documentation of every module, and those of the README and other pages."""

from __future__ import annotations

import doctest
import importlib
import inspect
import linecache
import re
from io import StringIO
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from rows import check_rows

import tgraph
from tools.parsed import ROOT, files


class Finder(doctest.DocTestFinder):
    """Finds what a module defines: public functions say that they are of `tgraph`, too."""

    def _from_module(self, module: ModuleType, found: Any) -> bool:
        inner = inspect.unwrap(found) if callable(found) else found
        return super()._from_module(module, inner)  # type: ignore[misc]


def examples_of(module: ModuleType) -> list[doctest.DocTest]:
    return [test for test in Finder(exclude_empty=True).find(module) if test.examples]


PARTS = 8
"""So many tests share the modules."""


@pytest.mark.parametrize("part", range(PARTS))
def test_examples(part: int) -> None:
    """Every module can be imported, and its examples print what they say."""

    def check(name: str) -> None:
        runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
        module, said = importlib.import_module(name), StringIO()
        if ">>>" in files()[name].read_text():
            for test in examples_of(module):
                runner.run(test, out=said.write)
        assert runner.summarize().failed == 0, said.getvalue()

    check_rows(list(files())[part::PARTS], check)


def test_there_are_examples() -> None:
    """So that a broken search does not go unnoticed."""
    names = ("tgraph.ops.elementwise", "tgraph.ops.reductions", "tgraph.compiler.ir.node")
    for name in names:
        assert examples_of(importlib.import_module(name)), name
    assert tgraph.__doc__ is not None


def blocks_of(page: str) -> list[str]:
    text = (ROOT / page).read_text()
    return re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


NAMES = ("define_and_run", "control_flow", "transforms", "shapes", "files", "devices", "sparse")
PAGES = ["README.md", *(f"docs/{name}.md" for name in NAMES)]


@pytest.mark.parametrize("page", PAGES)
def test_pages(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The Python of a page runs from top to bottom, as somebody would paste it."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "readme"}
    for number, block in enumerate(blocks_of(page)):
        if block.lstrip().startswith(">>>"):
            test = doctest.DocTestParser().get_doctest(block, names, f"block {number}", None, 0)
            runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
            assert runner.run(test, clear_globs=False).failed == 0
            names = test.globs
        else:
            file = f"{page}, block {number}"
            linecache.cache[file] = (len(block), None, block.splitlines(True), file)
            exec(compile(block, file, "exec"), names)
