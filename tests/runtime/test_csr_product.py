"""Products with sparse matrices in native code: values, threads, wrong positions, strides."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tgraph.runtime.arrays import evaluate
from tgraph.runtime.csr_native import LISTED

import tgraph as tg

# Rows, columns, elements and columns of the dense matrix; one has long rows, one none at all.
SIZES = ((50, 40, 900, 67), (3, 700, 3 * LISTED, 1), (30, 5, 40, 258), (4, 3, 0, 2), (0, 3, 0, 2))


def parts(height: int, wide: int, count: int, index: str, dtype: str) -> Any:
    """Row pointers, columns in any order, some twice, and values; the matrix of all elements."""
    rng = np.random.default_rng(count)
    rows = np.sort(rng.integers(0, max(height, 1), count))
    columns = rng.integers(0, wide, count).astype(index)
    values = rng.integers(-3, 4, count).astype(dtype)
    rowptr = np.searchsorted(rows, np.arange(height + 1)).astype(index)
    matrix = np.zeros((height, wide), np.int64)
    np.add.at(matrix, (rows, columns), values.astype(np.int64))
    return rowptr, columns, values, matrix


def products(rowptr: Any, columns: Any, values: Any, matrix: Any, dense: Any) -> list[Any]:
    """Of the matrix and of its transpose, with what fits of a dense one."""
    return [
        evaluate(
            "csr_matmul",
            [rowptr, columns, values, dense[: matrix.shape[1 - turned]]],
            {"rows": matrix.shape[turned], "transposed": bool(turned)},
            np,
        )
        for turned in (0, 1)
    ]


@pytest.mark.parametrize(
    ("dtype", "index"),
    [("float32", "int64"), ("float64", "int32"), ("int16", "int64"), ("bool", "int32"),
     ("float16", "int64")],
)  # fmt: skip
def test_sums_are_those_of_dense_matrices(dtype: str, index: str) -> None:
    for height, wide, count, width in SIZES:
        given = parts(height, wide, count, index, dtype)
        dense = np.random.default_rng(1).integers(-2, 3, (max(height, wide), width)).astype(dtype)
        for turned, found in enumerate(products(*given, dense)):
            matrix = given[3].T if turned else given[3]
            want = matrix @ dense[: matrix.shape[1]].astype(np.int64)
            assert found.dtype == dense.dtype
            np.testing.assert_array_equal(found, want.astype(dtype), str((height, wide, turned)))


def test_sums_do_not_depend_on_threads() -> None:
    """A row of most of the elements comes to one thread, others to the rest."""
    rng, before = np.random.default_rng(0), tg.get_num_threads()
    rowptr = np.concatenate([[0], np.sort(rng.integers(3000, 5000, 998)), [5000, 5000]])
    columns, values = rng.integers(0, 900, 5000), rng.normal(size=5000)
    dense, matrix = rng.normal(size=(1000, 70)), np.empty((1000, 900))
    found = []
    try:
        for threads in (1, 2, 3):
            tg.set_num_threads(threads)
            found.append(products(rowptr, columns, values, matrix, dense))
    finally:
        tg.set_num_threads(before)
    for other in found[1:]:
        for one, same in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(one, same)
    rows = np.repeat(np.arange(1000), np.diff(rowptr))
    want = np.zeros((1000, 70))
    np.add.at(want, rows, values[:, None] * dense[columns])
    np.testing.assert_allclose(found[0][0], want)


@pytest.mark.parametrize("compiled", [False, True])
def test_wrong_positions_are_errors(compiled: bool) -> None:
    """They are found where the product is computed: no memory beside the matrices is touched."""

    def product(rows: Any, columns: Any, values: Any, dense: Any) -> Any:
        return tg.sparse_csr_tensor(rows, columns, values, (2, 3)) @ dense

    values, dense = tg.ones(3), tg.ones(3, 2)
    run = tg.compile(product) if compiled else product
    for rows, columns in (
        ([0, 1, 3], [2, 0, 3]), ([0, 1, 3], [2, -1, 0]), ([0, 4, 3], [2, 0, 2]),
        ([1, 1, 3], [2, 0, 2]), ([0, 1, 2], [2, 0, 2]), ([0, -1, 3], [2, 0, 2]),
    ):  # fmt: skip
        with pytest.raises(RuntimeError):
            run(tg.tensor(rows), tg.tensor(columns), values, dense)
    assert run(tg.tensor([0, 1, 3]), tg.tensor([2, 0, 2]), values, dense).tolist() == [
        [1] * 2,
        [2] * 2,
    ]


def test_operands_of_plans_are_read_where_they_lie() -> None:
    rowptr, columns, values, _ = parts(50, 40, 900, "int64", "float32")
    at, to, of = (tg.tensor(each) for each in (rowptr, columns, np.repeat(values, 2)))
    dense = tg.randn(3, 50, 50)

    def function(at: Any, to: Any, of: Any, dense: Any) -> Any:
        rows = tg.sparse_csr_tensor(at, to, of[::2], (50, 40))
        once = tg.sparse_csr_tensor(at, to, of[:1].expand(900), (50, 40))
        return rows @ dense[1, :40, 3:9], once @ dense[2, :, :40].t(), dense[0, 2:9] @ rows

    for have, want in zip(tg.compile(function)(at, to, of, dense), function(at, to, of, dense)):
        np.testing.assert_allclose(have.numpy(), want.numpy(), 1e-5, 1e-5)
