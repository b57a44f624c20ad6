"""Compiling prints nothing: LLVM reports loops on the error stream that it was told to vectorise
and cannot."""

from __future__ import annotations

import pytest
from random_graphs.engines import as_if_large
from sampling import rotating
from test_ops import COMPILED, ids, tensors

import tgraph as tg
from tgraph.nn import functional as F


@pytest.fixture(autouse=True)
def compiled_anew(tmp_path, monkeypatch):
    """Every kernel as if it were large, and by LLVM, not from the cache on disk."""
    monkeypatch.setenv("TGRAPH_CACHE_DIR", str(tmp_path))
    with as_if_large():
        yield


@pytest.mark.parametrize("length", [16, 61, 64])
def test_causal_attention(length, capfd):
    query, key, value = (tg.randn(2, 2, length, 8) for _ in range(3))
    tg.compile(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True))(
        query, key, value
    )
    assert capfd.readouterr().err == ""


def test_open_sizes(capfd):
    """Small axes along which neighbours lie an open size apart; rests of rows of any length."""
    weight = tg.randn(8, 24, requires_grad=True)

    def gradient(x):
        parts = (x.view(x.shape[0], 3, 8).transpose(0, 1) @ weight).chunk(3, -1)
        heads = [each.reshape(3, x.shape[0], 2, 4).transpose(1, 2) for each in parts]
        seen = F.scaled_dot_product_attention(*heads, is_causal=True)
        return tg.autograd.grad((seen**2).mean(), [weight])[0]

    compiled = tg.compile(gradient, dynamic={"x": 0})
    compiled(tg.randn(160, 24))
    assert capfd.readouterr().err == ""
    assert any(each.startswith("one plan") for each in compiled.explain(tg.randn(160, 24)).sizes)


@pytest.mark.slow
# A part: what is printed depends on stages and schedules, of which rows share most.
@pytest.mark.parametrize("case", rotating(COMPILED, 10), ids=ids)
def test_operations(case, capfd):
    for dtype in case.dtypes[:2]:
        tg.compile(case.function)(*tensors(case.arrays(dtype)))
    assert capfd.readouterr().err == ""
