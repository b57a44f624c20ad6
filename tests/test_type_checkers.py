"""A type checker finds operations and methods in the stubs, and what is wrong in programs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

RIGHT = """
import tgraph as tg
from tgraph import nn, optim

x: tg.Tensor = tg.randn(3, 4, dtype=tg.float64)
total: tg.Tensor = (x + 1 - 2 * x) @ x.t() + x[0, 1:2] + x.sum(dim=0)[:1] + tg.sum(x, 1)[:1]
x.add_(1).clip_(0, 1).absolute_()
x += 1
mask: tg.Tensor = (x == 1) | ~(x < 0)
size: int = x.shape[0] + x.numel() + x.int().ndim
dtype: tg.dtype = x.dtype
tg.exp(x, out=tg.zeros_like(x))
values, places = x.sort(dim=1)

@tg.compile
def double(x: tg.Tensor, times: int = 2) -> tg.Tensor:
    return x * times

@tg.compile(check=True)
def triple(x: tg.Tensor) -> tg.Tensor:
    return x * 3

result: tg.Tensor = double(x, times=3) + triple(x)
print(double.explain(x), len(double.compiles), tg.__version__, tg.pi, tg.finfo(tg.float32).eps)
layer = nn.Linear(3, 4)
optim.SGD(layer.parameters(), lr=0.1).step()
if layer.bias is not None:
    layer.bias.requires_grad_(False)
"""
WRONG = {
    "x.nonsense()": "attr-defined",
    "tg.nonsense": "attr-defined",
    "x.sum(dimension=0)": "call-arg",
    "tg.softmax(x)": "call-arg",
    "tg.exp(x).shape.numbers": "attr-defined",
    "double(3)": "arg-type",
}


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that has the package as an installation has it."""
    folder = tmp_path_factory.mktemp("installed")
    (folder / "tgraph").mkdir()
    for each in (*(ROOT / "tgraph").iterdir(), ROOT / "compiler", ROOT / "runtime"):
        (folder / "tgraph" / each.name).symlink_to(each)
    return folder


def checked(package: Path, *files: Path) -> str:
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent"]
    options = ["--config-file", str(ROOT / "pyproject.toml"), "--cache-dir", str(package / "cache")]
    env = {**os.environ, "MYPYPATH": str(package)}
    run = subprocess.run(
        [*command, *options, *map(str, files)],
        capture_output=True, text=True, cwd=package, env=env,
    )  # fmt: skip
    assert not run.stderr
    return run.stdout


@pytest.mark.slow
def test_type_checkers_know_operations_and_methods(package: Path, tmp_path: Path) -> None:
    file = tmp_path / "program.py"
    file.write_text(RIGHT + "".join(f"{line}\n" for line in WRONG))
    first = len(RIGHT.splitlines()) + 1
    found = dict(re.findall(r"program\.py:(\d+): error: .*\[([\w-]+)\]", checked(package, file)))
    assert found == {str(first + at): code for at, code in enumerate(WRONG.values())}


@pytest.mark.slow
def test_the_examples_are_typed(package: Path) -> None:
    examples = sorted((ROOT / "examples").glob("*.py"))
    assert examples
    assert "Success" in checked(package, *examples)
