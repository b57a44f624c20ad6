"""What `-k` does not name is not collected: to make 27,000 tests takes longer than to run a few.

A file is left alone where the words of `-k` stand neither in its path nor in its text, less the
bodies of its functions, nor in the helpers that it makes its rows with. Of the others, only those
rows become tests that `-k` names. `test_named.py` holds all tests to this.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from _pytest.mark import KeywordMatcher
from _pytest.mark.expression import Expression

ROOT = Path(__file__).parents[1]

NAMED_ELSEWHERE = {
    "tests/benchmarks/test_benchmarks.py",
    "tests/benchmarks/test_gpu_benchmarks.py",
    "tests/benchmarks/test_number_types.py",
    "tests/compat/test_torch_names.py",
    "tests/compile/test_state_changes.py",
    "tests/compile/test_state_writes.py",
    "tests/cpu_target/test_llvm_math.py",
    "tests/cuda_target/test_gpu_whole.py",
    "tests/draw/test_documentation.py",
    "tests/ir/test_decisions.py",
    "tests/runtime/test_arrays.py",
    "tests/tensor/test_determinants.py",
    "tests/tensor/test_linalg.py",
    "tests/test_planted_faults.py",
    "tests/test_special_values.py",
    "tests/transforms/test_batch_and_tangents.py",
}
"""Files whose rows have names of the product's functions, of files, or made inside of functions."""

ANYWHERE = ("true", "false", "none")
"""Words that may be in the name of any row."""

PRODUCT = ("tgraph", "compiler", "runtime")
"""Packages whose text is not looked into."""

_FUNCTION = re.compile(r"^((?:async )?def \w+\(.*?:\n).*?(?=^[^\s)])", re.MULTILINE | re.DOTALL)
_IMPORT = re.compile(r"^(?:from ([\w.]+) )?import (\([^)]*\)|.*)$", re.MULTILINE)
_PLUGINS = re.compile(r"^pytest_plugins = \[(.*)\]", re.MULTILINE)


def may_name(path: Path, expression: Expression) -> bool:
    """Whether a test of the file may have a name that the expression matches."""
    if path.relative_to(ROOT).as_posix() in NAMED_ELSEWHERE:
        return True
    return _matches(expression, lambda word: _may_have(path, word))


def _matches(expression: Expression, holds: Callable[[str], bool]) -> bool:
    """The expression's value, where `holds` is asked for each word in small letters."""
    return expression.evaluate(lambda word, /, **_: holds(word.lower()))


def _may_have(path: Path, word: str) -> bool:
    """Whether a name may have the word, which f-strings may have joined with underscores, and
    numbers added to."""
    text, is_joined = _text_of_names(path)
    if word in text:
        return True
    parts = re.findall(r"[a-z]+" if is_joined else r"[a-z_]+", word)
    return all(each.strip("_") in text for each in parts if each not in ANYWHERE)


@cache
def _text_of_names(path: Path) -> tuple[str, bool]:
    """The text that names of the tests in a file are made of, in small letters, and whether its
    f-strings join words."""
    conftests = [each / "conftest.py" for each in path.parents if each.is_relative_to(ROOT)]
    files = dict.fromkeys([path, *filter(Path.exists, conftests)])
    found = [path.relative_to(ROOT).as_posix()]
    stack = [*files]
    while stack:
        text, helpers = _parsed(stack.pop())
        found.append(text)
        stack += [each for each in helpers if each not in files]
        files.update(dict.fromkeys(helpers))
    text = "\n".join(found).lower()
    return text, "_{" in text or "}_" in text


@cache
def _parsed(path: Path) -> tuple[str, list[Path]]:
    """A file's text, of tests without the bodies of functions, and the helpers used in that."""
    text = path.read_text()
    if path.name.startswith("test_"):
        text = _FUNCTION.sub(r"\1", text + "\n#")
    without = _IMPORT.sub("", text)
    plugins = (name for line in _PLUGINS.findall(text) for name in re.findall(r"[\w.]+", line))
    found = [_file_of(each, path.parent) for each in plugins]
    for module, what in _IMPORT.findall(text):
        for name, bound in _bound(what):
            names = (f"{module}.{name}", module) if module else (name,)
            files = [_file_of(each, path.parent) for each in names]
            if any(files) and (bound == "*" or bound in without):
                found += files
    return text, [each for each in found if each is not None]


def _bound(what: str) -> Iterator[tuple[str, str]]:
    """The names that an import lists, and those it gives them."""
    for each in re.sub(r"#.*|[()]", "", what).split(","):
        parts = each.split()
        if parts:
            yield parts[0], parts[-1].split(".")[0]


@cache
def _file_of(module: str, folder: Path) -> Path | None:
    """The file of a module of the project that is no part of the product."""
    first, *rest = module.split(".")
    for start in _places(folder).get(first, ()):
        path = start.joinpath(*rest)
        for each in (path.with_suffix(".py"), path / "__init__.py"):
            if each.is_file():
                return each
    return None


@cache
def _places(folder: Path) -> dict[str, list[Path]]:
    """Where modules and packages lie that tests of a folder import."""
    found: dict[str, list[Path]] = {}
    for start in (folder, ROOT / "tests", ROOT):
        for each in start.iterdir():
            name = each.name.removesuffix(".py")
            if name not in PRODUCT:
                found.setdefault(name, []).append(start / name)
    return found


class OnlyNamed:
    """A plugin that leaves out files and rows that the words of `-k` do not name.

    There may be no `not` among them: of a file it would have to know what none of its tests has.
    """

    def __init__(self, words: str) -> None:
        self.expression = Expression.compile(words)

    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        is_test = collection_path.match("test_*.py") and collection_path.is_relative_to(ROOT)
        return True if is_test and not may_name(collection_path, self.expression) else None

    @pytest.hookimpl(wrapper=True)
    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> Iterator[None]:
        yield
        of_function = KeywordMatcher.from_item(metafunc.definition)
        if not self.expression.evaluate(of_function):
            rows = metafunc._calls
            rows[:] = [row for row in rows if self._names(row, of_function)] or rows[:1]

    def _names(self, row: Any, of_function: KeywordMatcher) -> bool:
        own = [each.lower() for each in (row.id, *(mark.name for mark in row.marks))]
        return _matches(
            self.expression, lambda word: of_function(word) or any(word in each for each in own)
        )
