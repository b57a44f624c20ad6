"""Sparse tensors compute what dense ones do: values, gradients, tables, optimizers, devices."""

from __future__ import annotations

import copy
import io
import pickle
from typing import Any

import numpy as np
import pytest
from sparse_cases import AT, COLUMNS, DENSE, OF_COO, OPERATIONS, ROWS, VALUES, made, table

import tgraph as tg

pytest_plugins = ["cuda_tools.device"]
TWICE = [[1, 0, 1, 1], [0, 3, 3, 0]]
# These are about layouts, or look at stored elements alone.
NOT_OF_DENSE = {
    "addmm", "softmax", "log_softmax", "sum(0)", "mask", "spdiags", "hybrid", "x @ x",
    "cat of values", "index_select of values", "of three", "neg_",
}  # fmt: skip


def same(have: Any, want: Any) -> None:
    assert have.shape == want.shape and have.dtype is want.dtype
    a, b = have.detach().to_dense().numpy(), want.detach().to_dense().numpy()
    np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("layout", ["coo", "uncoalesced", "csr", "csc"])
def test_operations_are_those_of_dense_tensors(layout: str) -> None:
    rows = OPERATIONS if layout.startswith("cs") else {**OPERATIONS, **OF_COO}
    d = tg.tensor(DENSE)
    for name in rows.keys() - NOT_OF_DENSE:
        x = made(tg, TWICE, [1.0, 2.0, 3.0, 4.0], layout)
        have, want = rows[name](tg, x, d), rows[name](tg, x.to_dense(), d)
        same(have, want)
    x = made(tg, TWICE, [1.0, 2.0, 3.0, 4.0], layout)
    wanted = np.zeros((ROWS, COLUMNS), np.float32)
    np.add.at(wanted, tuple(TWICE), [1.0, 2.0, 3.0, 4.0])
    np.testing.assert_array_equal(x.to_dense().numpy(), wanted)
    square = x @ (x.t() if x.is_sparse else x.to_dense().t().to_sparse_csr())
    np.testing.assert_allclose(square.to_dense().numpy(), wanted @ wanted.T)


@pytest.mark.parametrize("layout", ["coo", "csr"])
def test_gradients_are_those_of_dense_tensors(layout: str) -> None:
    """Of a leaf where it has elements; the same from compiled code, given or captured."""
    weight = tg.arange(6.0).reshape(3, 2)

    def loss(x: Any, d: Any) -> Any:
        return ((x @ d) ** 2 * weight).sum()

    results = []
    for function in (loss, tg.compile(loss)):
        x = made(tg, AT, VALUES, layout).detach().requires_grad_()
        d = tg.tensor(DENSE.T[:, :2].copy(), requires_grad=True)
        function(x, d).backward()
        assert x.grad.layout is x.layout and x.grad._nnz() == 3
        results.append((x.grad, d.grad))
    x = made(tg, AT, VALUES, "coo").to_dense().requires_grad_()
    d = tg.tensor(DENSE.T[:, :2].copy(), requires_grad=True)
    loss(x, d).backward()
    where = made(tg, AT, [1.0] * 3, "coo").to_dense()
    for of_x, of_d in results:
        same(of_x, x.grad * where)
        same(of_d, d.grad)
    captured, again = made(tg, AT, VALUES, layout), d.detach().requires_grad_()
    tg.compile(lambda d: loss(captured, d))(again).backward()
    same(again.grad, d.grad)


def test_batches_and_tangents_of_products() -> None:
    a, d = made(tg, AT, VALUES, "csr"), tg.randn(2, COLUMNS, 2)
    expected = tg.stack([a.to_dense() @ each for each in d])
    for batched in (tg.vmap(lambda d: a @ d), tg.compile(tg.vmap(lambda d: a @ d))):
        same(batched(d), expected)

    def of_values(v: Any) -> Any:
        return tg.sparse_csr_tensor(a.crow_indices(), a.col_indices(), v, a.shape) @ d[0]

    v = tg.randn(2, 3)
    same(tg.vmap(of_values)(v), tg.stack([of_values(each) for each in v]))
    same(tg.func.jvp(of_values, (v[0],), (v[1],))[1], of_values(v[1]))
    same(tg.func.jvp(lambda d: a @ d, (d[0],), (d[1],))[1], expected[1])


def test_gradients_of_tables_and_optimizers() -> None:
    def steps(name: str, sparse: bool) -> Any:
        e = table(tg)
        e.sparse = sparse
        optimizer = getattr(tg.optim, name)(e.parameters(), lr=0.1)
        for _ in range(3):  # of the same rows, for rows that are not used stay as they are
            optimizer.zero_grad()
            (e(tg.tensor([0, 1, 1, 2, 3])) ** 2).sum().backward()
            assert e.weight.grad.is_sparse == sparse
            optimizer.step()
        return e.weight

    for name in ("SGD", "Adagrad"):
        same(steps(name, True), steps(name, False))
    same(steps("SparseAdam", True), steps("Adam", False))


def test_what_is_not_there_is_an_error() -> None:
    x, d = made(tg, AT, VALUES, "coo"), tg.tensor(DENSE)
    for call, text in (
        (lambda: x.exp(), "exp is not implemented for tensors of layout tgraph.sparse_coo"),
        (lambda: x + 1, "use add(dense, sparse)"),
        (lambda: tg.cat([x, d]), "all sparse"),
        (lambda: tg.cat([x.to_sparse_csr()] * 2), "concatenate is not"),
        (lambda: d.to_sparse(1).reshape(-1), "reshape of sparse and dense dimensions"),
        (lambda: x[::2], "indexing with anything but integers"),
        (lambda: x.index_select(1, tg.tensor([9])), "out of range for dimension 1 with size 4"),
        (lambda: x.to_sparse_csr().t_(), "to_sparse_coo() gives one"),
        (
            lambda: tg.sparse_csr_tensor([0, 2], [1, 0], [1.0, 2.0], (1, 2), check_invariants=True),
            "`col_indices` must be in order",
        ),
        (lambda: tg.sparse_csc_tensor([0, 1], [9], [1.0], (2, 1)), "0 <= row_indices < 2"),
        (lambda: x.numpy(), "to_dense() gives"),
        (lambda: tg.nn.functional.dropout(x), "is not implemented"),
        (lambda: x.fill_(1.0), "fill_() is not"),
        (lambda: tg.ones_like(x), "full_like is not"),
        (lambda: tg.ones(2, layout=tg.sparse_coo), "call to_sparse() on it"),
        (lambda: tg.sparse.mm(d, d.t()), "expected a tensor of layout"),
        (lambda: tg.sparse_coo_tensor([[5]], [1.0], (2,)), "size is inconsistent with indices"),
        (lambda: tg.sparse_csr_tensor([0, 1], [9], [1.0], (1, 2)), "is not satisfied"),
        (lambda: made(tg, AT, VALUES, "uncoalesced").values(), "call .coalesce() first"),
        (lambda: tg.compile(lambda a: a.exp())(x), "exp is not"),
    ):
        with pytest.raises((RuntimeError, TypeError, IndexError)) as caught:
            call()
        assert text in str(caught.value)
    e = table(tg)
    e(tg.tensor([1])).sum().backward()
    with pytest.raises(RuntimeError, match="Adam does not support sparse gradients"):
        tg.optim.Adam(e.parameters()).step()


def test_copies_and_files() -> None:
    kept = {"a": made(tg, AT, VALUES, "coo"), "b": made(tg, AT, VALUES, "csr").double()}
    kept["c"] = made(tg, AT, VALUES, "csc")
    rows = [each.to(tg.int32) for each in (kept["b"].crow_indices(), kept["b"].col_indices())]
    kept["d"] = tg.sparse_csr_tensor(*rows, tg.tensor(VALUES), (ROWS, COLUMNS))
    assert kept["d"].col_indices().dtype is tg.int32 and kept["d"][1].indices().dtype is tg.int64
    same(kept["d"] @ tg.tensor(DENSE.T.copy()), kept["a"] @ tg.tensor(DENSE.T.copy()))
    file = io.BytesIO()
    tg.save(kept, file)
    file.seek(0)
    for read in (tg.load(file), pickle.loads(pickle.dumps(kept)), copy.deepcopy(kept)):
        for name, want in kept.items():
            assert read[name].layout is want.layout
            same(read[name], want)


def test_products_on_a_device(cuda: Any) -> None:
    x, d = made(tg, AT, VALUES, "coo"), tg.tensor(DENSE.T.copy())
    there, dense = x.to(cuda).requires_grad_(), d.to(cuda).requires_grad_()
    product = there @ dense
    product.sum().backward()
    same(product.cpu(), x @ d)
    here = d.detach().requires_grad_()
    (x @ here).sum().backward()
    assert tg.equal(dense.grad.cpu(), here.grad) and there.grad.device == cuda


def test_types_that_are_usual_are_not_printed() -> None:
    for dtype, told in ((tg.complex64, False), (tg.complex128, True)):
        assert ("dtype=" in repr(tg.eye(2, dtype=dtype).to_sparse())) is told


def test_a_size_alone() -> None:
    for empty in (tg.sparse_coo_tensor(size=(2, 3)), tg.sparse_coo_tensor((2, 3))):
        assert empty.shape == (2, 3) and empty._nnz() == 0
    for given in ({}, {"indices": [[0]], "size": (2,)}, {"values": [1.0], "size": (2,)}):
        with pytest.raises(TypeError, match="expected indices and values, or a size alone"):
            tg.sparse_coo_tensor(**given)
