"""On a Python newer than those known, compiled functions run eagerly, with one warning."""

from __future__ import annotations

import platform
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

import tgraph as tg
from tgraph.compiled import compilations
from tgraph.tracing.recording import instrument as _  # noqa: F401  loads the module

module = sys.modules["tgraph.tracing.recording.instrument"]


@pytest.fixture
def newer_python(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(module, "KNOWN", ((3, 8), (3, 10)))
    compilations.warn_once.cache_clear()
    yield
    compilations.warn_once.cache_clear()


WARNED = r"run eagerly: tgraph.compile and tgraph.trace know the bytecode of Python 3\.8 to 3\.10, "


@pytest.mark.usefixtures("newer_python")
@pytest.mark.parametrize(
    "options", [{}, {"check": True}, {"control_flow": True}, {"dynamic": True}]
)
def test_functions_run_eagerly_with_one_warning(options: dict[str, Any]) -> None:
    seen = []

    @tg.compile(**options)
    def f(x: tg.Tensor) -> tg.Tensor:
        seen.append(len(seen))
        if len(seen) > 1:
            return x * 3
        return x * 2

    with pytest.warns(RuntimeWarning, match=WARNED) as caught:
        first = f(tg.ones(2))
    assert caught[
        0
    ].filename == __file__ and f"not that of Python {platform.python_version()}:" in str(
        caught[0].message
    )
    assert first.tolist() == [2, 2] and seen == [0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert f(tg.ones(2)).tolist() == [3, 3]
        assert tg.compile(lambda x: x + 1)(tg.ones(1)).tolist() == [2]
    assert f.compiles == []


@pytest.mark.usefixtures("newer_python")
def test_modules_train() -> None:
    model = tg.nn.Linear(3, 1)
    optimizer = tg.optim.SGD(model.parameters(), lr=0.1)
    compiled = tg.compile(model)
    with pytest.warns(RuntimeWarning, match=WARNED):
        before = compiled(tg.ones(4, 3)).sum()
    before.backward()
    optimizer.step()
    assert compiled(tg.ones(4, 3)).sum() < before


@pytest.mark.usefixtures("newer_python")
def test_what_asks_for_a_graph_is_refused() -> None:
    with pytest.raises(RuntimeError, match="know the bytecode of Python"):
        tg.trace(lambda x: x + 1, tg.ones(2))
    with pytest.raises(RuntimeError, match="know the bytecode of Python"):
        tg.compile(lambda x: x + 1).explain(tg.ones(2))


@pytest.mark.usefixtures("newer_python")
def test_graphs_that_are_built_and_eager_code_need_no_bytecode() -> None:
    with tg.Graph() as graph:
        x = tg.placeholder(tg.float32, (2,), "x")
        y = x * 2
    assert tg.Session(graph).run(y, {x: [1.0, 2.0]}).tolist() == [2, 4]
    assert tg.grad(lambda x: (x**2).sum())(tg.ones(2)).tolist() == [2, 2]
    assert tg.vmap(lambda x: x.sum())(tg.ones(2, 3)).tolist() == [3, 3]


def test_the_versions_that_are_known_compile() -> None:
    assert module.why_unknown() is None
