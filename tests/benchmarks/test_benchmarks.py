"""The benchmarks measure what they say: contenders compute the same, wrong results are told."""

from __future__ import annotations

import ast
import dataclasses
import doctest
import json
import os
import subprocess
import sys
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from sampling import rotating
from tgraph.runtime import own_code

from benchmarks import commits, contenders, measure, report, steps
from benchmarks.contenders import with_numpy
from benchmarks.measure import Options, Result
from benchmarks.workload import Workload
from benchmarks.workloads import BY_NAME, WORKLOADS

FOLDER = Path(contenders.__file__).parent
# The others would only take time here: their results are checked before each benchmark.
QUICK = ["gelu_chain_1k", "tiny_mlp", "mlp_train", "cnn_train", "transformer_train"]
QUICK += ["stencil", "topk", "solves", "histogram", "small_mlp_train", "dropout"]
QUICK += ["stencil_odd", "softmax_odd", "attention_odd", "attention_train_odd", "call_twenty"]
QUICK += ["lstm_scan", "newton", "decode"]
SLOW = [name for name in BY_NAME if name not in QUICK]


def options(caches: Path) -> Options:
    return Options(1, 2, 0.01, 0, False, True, 60.0, caches)


def defined(theme: str, module: str) -> set[str]:
    tree = ast.parse((FOLDER.parent / theme / f"with_{module}.py").read_text())
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("theme", sorted({workload.theme for workload in BY_NAME.values()}))
@pytest.mark.parametrize("module", ["numpy", "torch", "jax", "tgraph"])
def test_every_contender_has_every_workload(theme: str, module: str) -> None:
    wanted = {each.implementation for each in BY_NAME.values() if each.theme == theme}
    assert wanted <= defined(theme, module)


def test_names_are_of_one_row_each() -> None:
    assert len(BY_NAME) == len(WORKLOADS)


@pytest.mark.parametrize(
    "name", [*rotating(QUICK, 3), *(pytest.param(n, marks=pytest.mark.slow) for n in SLOW)]
)
def test_tgraph_computes_what_the_reference_does(name: str) -> None:
    workload = BY_NAME[name]
    case = contenders.implementation("tgraph", workload)(workload.data())
    for _ in range(workload.steps):
        result = case.call()
    got = case.fetch(result)
    assert measure.deviation(workload, got, measure.reference(workload)) <= workload.tolerance


TRAINING = ["mlp_train", "transformer_train", "cnn_train", "small_mlp_train", "residual_train"]


@pytest.mark.parametrize("name", rotating(TRAINING, 5))
def test_the_reference_steps_down_the_slope(name: str) -> None:
    """The gradients written by hand: a small step against one lowers the loss by its square."""
    workload = BY_NAME[name]
    seen = {}

    class Watch:
        def __init__(self, values: dict[str, np.ndarray]) -> None:
            self.values = values

        def step(self, gradients: dict[str, np.ndarray]) -> None:
            seen.update(gradients)
            for key, value in self.values.items():
                value -= 1e-6 * gradients[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(with_numpy, "_AdamW", Watch)
        patch.setattr(with_numpy, "_Momentum", Watch)
        data = {
            k: v.astype(float) if v.dtype == np.float32 else v for k, v in workload.data().items()
        }
        case = contenders.implementation("numpy", workload)(data)
        before = case.call()
        squares = sum(float((gradient**2).sum()) for gradient in seen.values())
        assert before - case.call() == pytest.approx(1e-6 * squares, rel=1e-3)


def test_measuring_takes_turns_and_leaves_out_what_is_missing(tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(measure.__dict__, "COMPILERS", ["numpy"])
        results = measure.measure(
            BY_NAME["tiny_mlp"], ["numpy", "absent"], options(tmp_path), lambda text: None
        )
    assert len(results["numpy"].rounds) == 2
    assert results["numpy"].first_cold > 0
    assert results["numpy"].first_warm > 0
    assert "absent" in results["absent"].error
    assert not results["absent"].failed


@pytest.mark.skipif(
    not (FOLDER.parent.parent / ".git").exists(), reason="a checkout without git's data"
)
def test_another_commit_is_measured_beside_this_one(tmp_path: Path) -> None:
    place = tmp_path / "before"
    assert commits.unpack("HEAD", place)
    with (place / "tgraph" / "__init__.py").open("a") as file:
        file.write("\nOTHER = True\n")
    how = dataclasses.replace(options(tmp_path), before=place, warm=False)
    asked = [
        sys.executable,
        "-c",
        "import tgraph, tgraph.compiler.ir as ir; tgraph.OTHER; print(ir)",
    ]
    settings = {**os.environ, **measure.settings("before", how)}
    found = subprocess.run(asked, env=settings, capture_output=True, text=True, cwd=tmp_path)
    assert str(place) in found.stdout, found.stderr
    names = ["tgraph", "before"]
    results = measure.measure(BY_NAME["tiny_mlp"], names, how, lambda text: None)
    assert [len(results[name].rounds) for name in names] == [2, 2], results
    with pytest.raises(ValueError, match="no commit 'none'"):
        commits.unpack("none", place)


def test_wrong_results_are_not_timed(tmp_path: Path) -> None:
    exact = Workload("tiny_mlp", "", BY_NAME["tiny_mlp"].make, tolerance=0.0)
    results = measure.measure(exact, ["numpy"], options(tmp_path), lambda text: None)
    assert results["numpy"].failed
    assert "wrong results: off by" in results["numpy"].error
    assert not results["numpy"].rounds


def test_training_is_compared_by_the_change_of_parameters() -> None:
    workload = BY_NAME["mlp_train"]
    expected = measure.reference(workload)
    slightly = [*expected[:-1], expected[-1] * 1.0001]
    assert measure.deviation(workload, expected, expected) == 0
    assert measure.deviation(workload, slightly, expected) > workload.tolerance
    assert measure.deviation(workload, [*expected[:-1], expected[-1] * np.nan], expected) == np.inf


def test_what_is_drawn_is_compared_by_its_statistics() -> None:
    workload = BY_NAME["dropout"]
    assert workload.summary is not None
    x, upstream = workload.data().values()
    mask = np.arange(len(x)) % 10 != 0
    results = [x * mask / 0.9, upstream * mask / 0.9]
    exact = measure.reference(workload)
    assert measure.deviation(workload, results, exact) <= workload.tolerance
    for wrong in ([x, upstream], [results[0], upstream / 0.9], [x * mask, results[1]]):
        assert measure.deviation(workload, wrong, exact) > workload.tolerance


def test_a_copy_moves_the_least_bytes_of_its_own_row() -> None:
    for name in ("column_stats", "column_stats_square"):
        workload = BY_NAME[name]
        with mock.patch.object(np, "ones", wraps=np.ones) as ones:
            contenders.implementation("copy", workload)({})
        assert ones.call_args.args[0] == workload.least_bytes // 2


def test_the_steps_of_a_plan_are_timed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TGRAPH_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(own_code, "enabled", True)
    for _ in range(2):  # the second plan is that of the disk
        executable, inputs = steps.observed_call(BY_NAME["tiny_mlp"])
        times = steps.step_times(executable, inputs)
        assert len(times) == len(executable.kernels) and min(times) > 0
        assert steps.whole_time(executable, inputs, 2) > 0


def measured(*rounds: float) -> Result:
    return Result([0.1], {"x": "1"}, 0.5, 0.25, list(rounds), min(rounds), [0.0] * len(rounds))


def test_the_report() -> None:
    row = {
        "numpy": measured(4e-3, 5e-3, 6e-3),
        "torch": Result(error="not installed (no torch)"),
        "jax": Result(error="wrong results: off by 1", failed=True),
        "tgraph": measured(1e-3, 1e-3, 3e-3),
        "before": measured(5e-4, 1e-3, 1e-3),
        "copy": measured(5e-4, 5e-4, 5e-4),
    }
    text = report.markdown({"cpu": "some"}, {"softmax": row})
    assert (
        "| 5.00 ms ±20% | – | failed | 1.00 ms ±100% | 1.00 ms ±25% | NumPy | **0.25** | 50% |"
        in text
    )
    assert "| `softmax` | 500 ms | – | failed | 500 ms / 250 ms | 500 ms / 250 ms |" in text
    assert "| `softmax` | 2.00 ±50% | 2.00 |" in text
    assert "- torch: not installed (no torch)" in text
    assert "- jax, softmax: wrong results: off by 1" in text
    assert "Infinity" not in json.dumps(report.as_json({}, {"softmax": row}))


def test_a_saved_report_goes_on(tmp_path: Path) -> None:
    name = str(tmp_path / "kept")
    row = {"numpy": measured(1e-3, 1e-3), "tgraph": Result(error="not installed (none)")}
    assert report.saved(name) == {}
    report.save(name, "", report.as_json({}, {"softmax": row}))
    assert report.saved(name) == {"softmax": row}


def test_rows_where_a_peer_leads_are_listed() -> None:
    ahead = {"numpy": measured(2e-3, 2e-3), "tgraph": measured(1e-3, 1e-3)}
    behind = {"numpy": measured(1e-3, 1e-3), "tgraph": measured(2e-3, 2e-3)}
    results = {"softmax": ahead, "pairwise": behind}
    assert list(report.ratios(results).items()) == [("pairwise", 2.0), ("softmax", 0.5)]
    text = report.markdown({}, results)
    assert "ahead of the best peer in 1 of 2 rows, and slower than 1.2 times its time in 1." in text
    assert "geometric mean is 1.00" in text
    assert "| `pairwise` | 2.00 | 2.00 ms | NumPy 1.00 ms |" in text


def test_examples_in_docstrings() -> None:
    assert doctest.testmod(report).failed == 0
