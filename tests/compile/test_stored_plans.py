"""Plans on disk: the same results in another process, and never those of another program."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tgraph.compiler.compile_graph import compile_graph
from tgraph.compiler.ir import Builder, Graph, Node, Provenance, TensorType, input_node
from tgraph.compiler.ir import primitives as p
from tgraph.compiler.ir.graph_key import MOST_CONSTANT_BYTES, graph_key
from tgraph.compiler.plan import stored_plan
from tgraph.compiler.plan.ready_plan import LatePlan
from tgraph.compiler.targets.cpu.executable import CpuExecutable
from tgraph.runtime import own_code
from tgraph.runtime.dtypes import DType, float16, float32, float64, int64

import tgraph as tg

HEAD = """
import sys
import numpy as np
import tgraph as tg
from tgraph import nn
from tgraph.nn import functional as F

def told(*results):
    print(*(np.asarray(each).tobytes().hex() for each in results))

tg.manual_seed(3)
"""
PROGRAMS = {
    "training": """
        model = nn.Sequential(nn.Linear(20, 32), nn.ReLU(), nn.Dropout(0.5), nn.Linear(32, 4))
        optimizer = tg.optim.AdamW(model.parameters(), lr=0.1)
        x, y = tg.randn(16, 20), tg.randint(0, 4, (16,))
        @tg.compile
        def step():
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            return loss
        told(step().detach(), step().detach(), *(each.detach() for each in model.parameters()))
        """,
    "convolution": """
        model = nn.Sequential(nn.Conv2d(3, 8, 3, stride=2), nn.BatchNorm2d(8), nn.MaxPool2d(2))
        x = tg.randn(2, 3, 21, 21, requires_grad=True)
        y = tg.compile(model)(x)
        y.square().sum().backward()
        told(y.detach(), x.grad, model[1].running_var)
        """,
    "attention": """
        q, k, v = (tg.randn(2, 3, 40, 16) for _ in range(3))
        told(tg.compile(lambda *x: F.scaled_dot_product_attention(*x, is_causal=True))(q, k, v))
        """,
    "attention with gradients": """
        q, k, v = (tg.randn(1, 2, 700, 16, requires_grad=True) for _ in range(3))
        y = tg.compile(lambda *x: F.scaled_dot_product_attention(*x, is_causal=True))(q, k, v)
        y.square().sum().backward()
        told(y.detach(), q.grad, k.grad, v.grad)
        """,
    "weights packed once": """
        w, x = tg.randn(64, 64) / 8, tg.randn(8, 64)
        def recurrent(x, w):
            for _ in range(5):
                x = tg.tanh(x @ w.T)
            return x
        told(tg.compile(recurrent)(x, w))
        """,
    "rare numbers": """
        x = tg.tensor([0.5, 1e30, 3e5, float("inf")])
        told(*tg.compile(lambda x: (tg.sin(x), tg.cos(x.double()), tg.tan(x)))(x))
        """,
    "order": """
        x = tg.randn(30, 500)
        told(*tg.compile(lambda x: tuple(tg.topk(x, 5)) + (tg.argsort(x),))(x))
        """,
    "rows in order": """
        told(*tg.compile(lambda x: (tg.sort(x).values, x * 2))(tg.randn(30, 500)))
        """,
    "product with a vector": """
        told(tg.compile(lambda a, b: a @ b)(tg.randn(300, 200), tg.randn(200)))
        """,
    "strides and no elements": """
        x = tg.randn(6, 8)
        told(*tg.compile(lambda a, b: (a + b, a[:0], a @ b))(x[:, :6].t(), x[:, 1:7]))
        """,
    "in place": """
        x = tg.randn(50)
        @tg.compile
        def update(x):
            x.mul_(2).add_(1)
            return x.sum()
        told(update(x), update(x), x)
        """,
    "a position outside": """
        f = tg.compile(lambda x, i: x[i] * 2)
        x = tg.arange(10.0)
        told(f(x, tg.tensor([1, 2])))
        try:
            f(x, tg.tensor([1, 12]))
        except IndexError as error:
            print(error)
        """,
}


NOT_STORED = ("rows in order",)


def run(program: str, folder: Path, before: str = "") -> list[str]:
    """What a program prints in a process of its own; at last whether it has compiled anything."""
    text = HEAD + before + textwrap.dedent(program)
    text += "\nprint('tgraph.compiler.make_executable' in sys.modules)"
    env = {**os.environ, "TGRAPH_CACHE_DIR": str(folder)}
    command = [sys.executable, "-c", text]
    ran = subprocess.run(command, capture_output=True, text=True, env=env, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.splitlines()


@pytest.mark.parametrize("name", PROGRAMS)
def test_another_process_does_the_same(name: str, tmp_path: Path) -> None:
    # A thread imports the compiler meanwhile, where it is not hindered.
    first = run(PROGRAMS[name], tmp_path, "tg.compile(lambda x: x)\n")
    # The lines of the program are others now.
    quiet = "from tgraph.compiled import graph_function\n\n\ngraph_function._begun = True\n"
    second = run(PROGRAMS[name], tmp_path, quiet)
    assert first[:1] == second[:1] and first[-1] == "True"
    assert second[-1] == str(name in NOT_STORED)


def test_errors_name_the_lines_of_their_process(tmp_path: Path) -> None:
    program = PROGRAMS["a position outside"]
    (_, first, _), (_, second, _) = run(program, tmp_path), run(program, tmp_path, "\n\n\n")
    assert first.startswith("index 12 is out of bounds for dimension with size 10 (indexed at ")
    line = int(first.split(":")[-1].rstrip(")"))
    assert second == first.replace(f":{line})", f":{line + 3})")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Plans are stored here."""
    monkeypatch.setenv("TGRAPH_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(own_code, "enabled", True)
    return tmp_path


def scaled(factor: Any = 3.0, where: Provenance | None = None, name: str = "x") -> Graph:
    build, x = Builder(), input_node(name, TensorType((4, 6), float32))
    number = build.full((), factor, float32)
    where = where or Provenance("program.py", 1)
    return Graph([x], [build.apply(p.mul, [x, number], where=where)])


def test_a_stored_plan_can_be_explained(folder: Path) -> None:
    x = np.ones((4, 6), np.float32)
    first, second = compile_graph(scaled()), compile_graph(scaled())
    assert isinstance(first, CpuExecutable) and isinstance(second, LatePlan)
    assert second.run([x])[0].tobytes() == first.run([x])[0].tobytes()
    assert second.plan.describe() == first.plan.describe()
    assert [each.name for each in second.kernels] == [each.name for each in first.kernels]
    assert str(second.graph) == str(first.graph) and second.refused == first.refused


def test_what_is_told_of_a_compiled_function(folder: Path) -> None:
    def function(x: tg.Tensor) -> tg.Tensor:
        return tg.softmax(x, -1) @ x.t()

    x = tg.randn(30, 30)
    first, second = tg.compile(function), tg.compile(function)
    assert first(x).numpy().tobytes() == second(x).numpy().tobytes()
    assert isinstance(second.latest.function.plain, LatePlan)
    assert str(second.explain(x)) == str(first.explain(x))
    assert second.explain(x, measure=True).kernels[0].seconds > 0
    assert str(tg.draw(second, None, x)) == str(tg.draw(first, None, x))


def test_gradients_of_stored_plans(folder: Path) -> None:
    x = tg.randn(20, requires_grad=True)
    found = []
    for _ in range(2):
        compiled = tg.compile(lambda x: (tg.tanh(x) * tg.exp(x)).sum())
        (once,) = tg.autograd.grad(compiled(x), x, create_graph=True)
        (twice,) = tg.autograd.grad(once.sum(), x)
        found.append((once.detach().numpy().tobytes(), twice.numpy().tobytes()))
    assert found[0] == found[1]


# --- keys -----------------------------------------------------------------------------------------


def test_names_and_lines_are_left_out() -> None:
    other = scaled(where=Provenance("other.py", 20, "f", "Model.layer"), name="y")
    assert graph_key(scaled()) == graph_key(other)


def test_which_lines_are_the_same_is_not_left_out() -> None:
    def key(*lines: int) -> str | None:
        build, x = Builder(), input_node("x", TensorType((4,), float32))
        node = x
        for line in lines:
            node = build.apply(p.exp, [node], where=Provenance("program.py", line))
        return graph_key(Graph([x], [node]))

    assert key(1, 1) == key(2, 2) != key(1, 2) == key(5, 3)


def of_type(type_: TensorType, **attrs: Any) -> Graph:
    x = Node(p.input_, (), {"name": "x", **attrs}, type_)
    return Graph([x], [Builder().apply(p.neg, [x])])


def of_constant(value: np.ndarray[Any, Any]) -> Graph:
    build, x = Builder(), input_node("x", TensorType(value.shape, float32))
    return Graph([x], [build.apply(p.add, [x, build.apply(p.constant, (), {"value": value})])])


def numbers(*changed: float, count: int = 2000) -> np.ndarray[Any, Any]:
    found = np.arange(count, dtype=np.float32)
    found[: len(changed)] = changed
    return found


DIFFERENT: dict[str, Callable[[], list[str | None]]] = {
    "numbers": lambda: [
        graph_key(scaled(each)) for each in (0.0, -0.0, 1.0, 1, True, float("nan"), float("inf"))
    ],
    "types": lambda: [
        graph_key(of_type(TensorType(*each)))
        for each in (((4, 6), float32), ((6, 4), float32), ((24,), float32), ((4, 6), float64))
    ],
    "constants": lambda: [
        graph_key(of_constant(each))
        for each in (numbers(), numbers(1), numbers(-0.0), numbers(count=1999))
    ],
    "how it is asked for": lambda: [
        graph_key(scaled()),
        graph_key(scaled(), donate={0: 0}),
        graph_key(scaled(), overwritten=[0]),
        graph_key(scaled(), strides={0: (1, 4)}),
        graph_key(scaled(), strides={0: (12, 1)}),
    ],
    "how inputs lie": lambda: [
        graph_key(of_type(TensorType((4, 4), float32), **attrs))
        for attrs in ({}, {"strides": (1, 4)}, {"strides": (8, 1)})
    ],
    "outputs": lambda: [
        graph_key(Graph(scaled().inputs, ())),
        graph_key(graph := scaled()),
        graph_key(Graph(graph.inputs, [*graph.outputs, *graph.outputs])),
        graph_key(Graph(graph.inputs, graph.inputs)),
    ],
}


@pytest.mark.parametrize("kind", DIFFERENT)
def test_different_requests_have_different_keys(kind: str) -> None:
    keys = DIFFERENT[kind]()
    assert None not in keys and len(set(keys)) == len(keys)


def test_what_means_something_here_only_has_no_key() -> None:
    x = tg.randn(3)
    called = tg.trace(lambda x: tg.tracing.host_call(np.sort, x, results=((3,), x.dtype)), x)
    assert graph_key(called) is None
    assert graph_key(of_constant(np.zeros(MOST_CONSTANT_BYTES // 4 + 1, np.float32))) is None
    assert graph_key(of_type(TensorType((3,), float32, tg.device("cuda:0")))) is None


@pytest.mark.parametrize("dtype", [int64, float16], ids=str)
def test_addresses_and_python_functions_are_not_stored(folder: Path, dtype: DType) -> None:
    """NumPy's function for one, which is elsewhere in the next process; and none for the other."""
    x = input_node("x", TensorType((30, 700), dtype))
    graph = Graph([x], [Builder().apply(p.sort, [x], {"descending": False})])
    for _ in range(2):
        assert isinstance(compile_graph(graph), CpuExecutable)


# --- the compiler's own code ----------------------------------------------------------------------


@pytest.fixture
def code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], str]:
    """What tells a compiler of one file, which is old enough."""
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "pass.py").write_text("x = 1")
    monkeypatch.setattr(own_code, "_FLOORS", (tmp_path,))
    monkeypatch.setattr(own_code, "_began", own_code._began + 1e6)
    return own_code._digest.__wrapped__


def test_changed_code_has_other_plans(tmp_path: Path, code: Callable[[], str]) -> None:
    file = tmp_path / "inner" / "pass.py"
    before, status = code(), file.stat()
    assert before and code() == before
    file.write_text("x = 2")
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))  # as some installers do
    assert file.stat().st_size == status.st_size and code() not in ("", before)


def test_code_that_changed_since_the_start_has_none(
    tmp_path: Path, code: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_code, "_began", (tmp_path / "inner" / "pass.py").stat().st_mtime)
    assert code() == ""


def test_code_in_an_archive_has_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_code, "_FLOORS", (tmp_path / "tgraph.zip" / "compiler",))
    assert own_code._digest.__wrapped__() == ""


def test_another_machine_replaces_plans(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(compile_graph(scaled()), CpuExecutable)
    target = stored_plan.jit.target()
    monkeypatch.setattr(stored_plan.jit, "target", lambda: f"{target} +more")
    assert isinstance(compile_graph(scaled()), CpuExecutable)
    assert isinstance(compile_graph(scaled()), LatePlan)
    monkeypatch.setattr(stored_plan.jit, "target", lambda: target)
    assert isinstance(compile_graph(scaled()), CpuExecutable)


def test_texts_are_made_once(folder: Path) -> None:
    made: list[str] = []

    def make() -> str:
        made.append("once")
        return "text"

    assert [own_code.kept("key", make) for _ in range(3)] == ["text"] * 3
    assert own_code.kept("other", lambda: "other") == "other" and made == ["once"]


# --- damage ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "damage", [lambda data: data[:-5], lambda data: data[:-1] + bytes([data[-1] ^ 1])]
)
def test_damaged_plans_are_made_anew(folder: Path, damage: Callable[[bytes], bytes]) -> None:
    x = np.ones((4, 6), np.float32)
    for factor in (5.0, 7.0):
        compile_graph(scaled(factor))
    for file in folder.glob("*.bin"):
        file.write_bytes(damage(file.read_bytes()))
    for kind in (CpuExecutable, LatePlan):
        found = compile_graph(scaled(5.0))
        assert type(found) is kind and found.run([x])[0].tobytes() == (5 * x).tobytes()


def test_objects_that_are_gone_are_compiled_again(folder: Path) -> None:
    program = PROGRAMS["in place"]
    first = run(program, folder)
    objects = [file for file in folder.glob("*.bin") if b"\x7fELF" in file.read_bytes()[:80]]
    for file in objects:
        file.unlink()
    assert objects and run(program, folder)[0] == first[0]
