"""Compiling prints nothing: LLVM reports loops on the error stream that it was told to vectorise
and cannot."""

from __future__ import annotations

import pytest
from random_graphs.engines import as_if_large
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


@pytest.mark.slow
@pytest.mark.parametrize("case", COMPILED, ids=ids)
def test_operations(case, capfd):
    for dtype in case.dtypes[:2]:
        tg.compile(case.function)(*tensors(case.arrays(dtype)))
    assert capfd.readouterr().err == ""
