"""The table of number types computes the same with all libraries."""

import pytest
from sampling import rotating

pytest.importorskip("torch", reason="compares with PyTorch, which is not installed")

from benchmarks import number_types

ROWS = list(number_types.rows())


@pytest.mark.parametrize("row", rotating(ROWS, 10), ids=lambda row: f"{row.name} {row.dtype}")
def test_contenders_agree(row):
    found = number_types.contenders(row, 400, compiles=False)
    assert {"tgraph", "torch"} <= set(found)
