"""`require`: what must hold of data is checked by the kernel that reads it, on every target."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cuda_tools import shim
from cuda_tools.run_program import interpret_program, run_program
from random_graphs.engines import run_kernel_interpreter
from tgraph.compiler.ir import primitives as p

import tgraph as tg
from tgraph.core.dispatch import apply


def positive(x: tg.Tensor) -> tg.Tensor:
    return apply(p.require, x > 0, x, message="a number is not positive")


def padded(x: tg.Tensor) -> tg.Tensor:
    """Whose padding, which is no element of x, is not asked."""
    return tg.nn.functional.pad(positive(x), (1, 2)) * 2


def of_rows(x: tg.Tensor) -> tg.Tensor:
    holds = x.sum(-1, keepdim=True) > 0
    return apply(p.require, holds, x, message="a number is not positive") + 1


def gathered(x: tg.Tensor) -> tg.Tensor:
    return positive(x)[:, tg.tensor([0, 2, 0])].sum(-1)


FUNCTIONS: list[Callable[[tg.Tensor], tg.Tensor]] = [positive, padded, of_rows, gathered]
RIGHT = np.arange(1, 13, dtype=np.float32).reshape(4, 3)
WRONG = np.concatenate([RIGHT, [[-9, -9, -9]]]).astype(np.float32)


def on_cuda(run: Any) -> Callable[..., Any]:
    return lambda function, array: run(tg.cuda.program(function, tg.from_numpy(array)), [array])[0]


RUN: dict[str, Callable[..., Any]] = {
    "eager": lambda function, array: function(tg.from_numpy(array)).numpy(),
    "compiled": lambda function, array: tg.compile(function)(tg.from_numpy(array)).numpy(),
    "kernels": lambda function, array: run_kernel_interpreter(
        tg.trace(function, tg.from_numpy(array)), [array]
    )[0],
    "kernels for CUDA": on_cuda(interpret_program),
    "CUDA": on_cuda(run_program),
}


@pytest.mark.parametrize("engine", RUN)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_on_every_target(function: Any, engine: str) -> None:
    if engine == "CUDA" and shim.available() is not None:
        pytest.skip(str(shim.available()))
    np.testing.assert_allclose(RUN[engine](function, RIGHT), RUN["eager"](function, RIGHT))
    with pytest.raises(RuntimeError, match=r"^a number is not positive"):
        RUN[engine](function, WRONG)


def test_the_kernel_that_reads_checks_and_tells_the_line() -> None:
    compiled = tg.compile(lambda x: tg.bernoulli(x) + tg.multinomial(x, 3))
    x = tg.rand(50, 3)
    assert {kernel.kind for kernel in compiled.explain(x).kernels} <= {"kernel", "sort"}
    with pytest.raises(RuntimeError, match=rf"not positive \(at {__file__}:\d+\)"):
        tg.compile(positive)(x - 1)


def test_what_a_call_overwrites_is_overwritten_behind_its_checks() -> None:
    x, count = tg.full((20,), 0.5), tg.zeros(1)

    def function(chance: tg.Tensor) -> tg.Tensor:
        count.add_(1)
        return x.bernoulli_(chance)

    compiled = tg.compile(function)
    compiled(tg.tensor(1.0))
    assert x.tolist() == [1.0] * 20
    with pytest.raises(RuntimeError, match="p_in >= 0"):
        compiled(tg.tensor(2.0))
    assert x.tolist() == [1.0] * 20 and count.item() == 2  # as eager code leaves it


def test_gradients_pass() -> None:
    for function in (positive, tg.compile(positive)):
        x = tg.ones(3, requires_grad=True)
        (function(x) * 2).sum().backward()
        assert x.grad.tolist() == [2.0] * 3


PROGRAM = """
import tgraph as tg
from tgraph.compiler.plan import stored_plan
stored_plan.keep = (lambda keep: lambda *args: (print("stored"), keep(*args)))(stored_plan.keep)
from tgraph.compiler.ir import primitives as p
from tgraph.core.dispatch import apply
f = tg.compile(lambda x: apply(p.require, x > 0, x, message="not positive"))
print(f(tg.ones(3)).tolist())
try:
    f(tg.zeros(3))
except RuntimeError as error:
    print(error)
"""


def test_a_stored_plan_checks(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    environment = {**os.environ, "TGRAPH_CACHE_DIR": str(tmp_path / "cache")}
    told = [
        subprocess.run(
            [sys.executable, str(script)], env=environment, capture_output=True, text=True,
            check=True,
        ).stdout.splitlines()
        for _ in range(2)
    ]  # fmt: skip
    assert told[0] == ["stored", *told[1]] and told[1][0] == "[1.0, 1.0, 1.0]"
    assert told[1][1] == f"not positive (at {script}:7)"
