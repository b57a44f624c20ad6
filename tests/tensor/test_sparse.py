"""Sparse tensors against PyTorch's: values, layouts, gradients, files; compiled and on CUDA."""

from __future__ import annotations

import copy
import io
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import tgraph as tg

pytest_plugins = ["cuda_tools.device"]
pytestmark = pytest.mark.filterwarnings("ignore:Sparse (CSR|invariant)")

ROWS, COLUMNS = 3, 4
Both = tuple[Any, Any]


def same(have: Any, want: Any) -> None:
    if not isinstance(want, torch.Tensor):
        assert have == want
        return
    assert repr(have.layout) == repr(want.layout).replace("torch", "tgraph")
    assert tuple(have.shape) == tuple(want.shape)
    assert repr(have.dtype).split(".")[1] == repr(want.dtype).split(".")[1]
    a, b = have.detach().to_dense().numpy(), want.detach().to_dense().numpy()
    np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def made(lib: Any, at: Any, values: Any, layout: str) -> Any:
    x = lib.sparse_coo_tensor(lib.tensor(at), lib.tensor(values), (ROWS, COLUMNS))
    if layout == "uncoalesced":
        return x
    return x.coalesce() if layout == "coo" else x.coalesce().to_sparse_csr()


DENSE = np.arange(12, dtype=np.float32).reshape(ROWS, COLUMNS) - 5
OPERATIONS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "mm": lambda lib, x, d: lib.mm(x, d.t()),
    "dense @ x": lambda lib, x, d: d.t() @ x,
    "mv": lambda lib, x, d: x.mv(d[0]),
    "x @ x": lambda lib, x, d: x @ (x.t() if x.is_sparse else x.to_dense().t().to_sparse_csr()),
    "addmm": lambda lib, x, d: lib.sparse.addmm(lib.ones(3, 3), x, d.t(), beta=2.0, alpha=0.5),
    "dense + x": lambda lib, x, d: d + x,
    "x + x": lambda lib, x, d: x + x,
    "x * dense": lambda lib, x, d: x * d,
    "x * 2": lambda lib, x, d: -x * 2,
    "sin": lambda lib, x, d: x.sin(),
    "relu": lambda lib, x, d: lib.relu(x),
    "expm1": lambda lib, x, d: x.expm1(),
    "complex mm": lambda lib, x, d: x.to(lib.complex64) @ (d.t() * (1 + 2j)),
    "double": lambda lib, x, d: x.to(lib.float64),
    "sum": lambda lib, x, d: x.sum(),
}
OF_COO: dict[str, Callable[[Any, Any, Any], Any]] = {
    "softmax": lambda lib, x, d: lib.sparse.softmax(x, 1),
    "log_softmax": lambda lib, x, d: lib.sparse.log_softmax(x, 0),
    "sum(0)": lambda lib, x, d: lib.sparse.sum(x, 0),
    "x + other": lambda lib, x, d: x + d.to_sparse(),
    "x * other": lambda lib, x, d: x * (d - 1).relu().to_sparse(),
    "dense - x": lambda lib, x, d: d - x,
    "x / 4": lambda lib, x, d: x / 4,
    "x ** 2": lambda lib, x, d: x**2,
    "select": lambda lib, x, d: x[1],
    "mask": lambda lib, x, d: d.sparse_mask(x.coalesce()),
    "zeros_like": lambda lib, x, d: lib.zeros_like(x),
    "spdiags": lambda lib, x, d: lib.sparse.spdiags(d, lib.tensor([0, 2, -1]), (4, 5)),
    "hybrid": lambda lib, x, d: lib.sparse.sum(d.to_sparse(1) * 2, 1),
}


@settings(deadline=None, max_examples=150)
@given(
    st.lists(st.tuples(st.integers(0, ROWS - 1), st.integers(0, COLUMNS - 1)), max_size=6),
    st.sampled_from(["coo", "uncoalesced", "csr"]),
    st.sampled_from([*OPERATIONS, *OF_COO]),
)
def test_operations_are_pytorchs(places: Any, layout: str, name: str) -> None:
    at = np.array(places, np.int64).reshape(-1, 2).T
    values = np.arange(1, 1 + at.shape[1], dtype=np.float32) / 4
    if layout == "csr" and name in OF_COO:
        layout = "coo"
    operation = {**OPERATIONS, **OF_COO}[name]
    have, want = (
        operation(lib, made(lib, at, values, layout), lib.tensor(DENSE)) for lib in (tg, torch)
    )
    same(have, want)
    if not places and isinstance(want, torch.Tensor) and want.is_sparse:
        assert have._nnz() == want._nnz()


AT = [[0, 1, 1], [3, 0, 3]]
VALUES = [3.0, 4.0, 5.0]


@pytest.mark.parametrize("layout", ["coo", "csr"])
def test_gradients_and_compiled_products(layout: str) -> None:
    """Of a leaf they are sparse, of its values plain ones; captured or given, compiled or not."""
    weight = np.arange(6, dtype=np.float32).reshape(3, 2)

    def loss(lib: Any, x: Any, d: Any) -> Any:
        return (lib.sparse.mm(x, d) * lib.tensor(weight)).sum()

    dense = DENSE.T[:, :2].copy()
    results = []
    captured = made(tg, AT, VALUES, layout)
    runs = [
        (torch, lambda x, d: loss(torch, x, d)),
        (tg, lambda x, d: loss(tg, x, d)),
        (tg, tg.compile(lambda x, d: loss(tg, x, d))),
    ]
    for lib, function in runs:
        x = made(lib, AT, VALUES, layout).detach().requires_grad_()
        d = lib.tensor(dense, requires_grad=True)
        value = function(x, d)
        value.backward()
        assert x.is_leaf and x.requires_grad
        results.append((value, x.grad, d.grad))
    for have in results[1:]:
        for one, other in zip(have, results[0]):
            same(one, other)
    d = tg.tensor(dense, requires_grad=True)
    step = tg.compile(lambda d: loss(tg, captured, d))
    step(d).backward()
    same(step(d), results[0][0])
    same(d.grad, results[0][2])
    (asked,) = tg.autograd.grad(loss(tg, captured.requires_grad_(), d), captured)
    same(asked, results[0][1])


def test_gradients_through_values_and_conversions() -> None:
    grads = []
    for lib in (torch, tg):
        v = lib.tensor(VALUES, requires_grad=True)
        x = lib.sparse_coo_tensor(lib.tensor(AT), v, (ROWS, COLUMNS))
        d = lib.tensor(DENSE, requires_grad=True)
        total = (x.to_dense() ** 2).sum() + (lib.sparse.softmax(x, 1).to_dense() ** 2).sum()
        total = (
            total + lib.sparse.sum(lib.sparse.mm(x, x.t())) + (d.to_sparse().to_dense() * d).sum()
        )
        places = x.detach().coalesce().to_sparse_csr()
        total = total + lib.sparse.sampled_addmm(places, d @ d.t(), d, alpha=0.1).to_dense().sum()
        total.backward()
        grads.append((v.grad, d.grad))
    for have, want in zip(grads[1], grads[0]):
        same(have, want)


@pytest.mark.parametrize("reduce", ["mean", "amax", "amin"])
def test_other_reductions_of_products(reduce: str) -> None:
    have, want = (
        lib.sparse.mm(made(lib, AT, VALUES, "csr"), lib.tensor(DENSE.T.copy()), reduce)
        for lib in (tg, torch)
    )
    same(have, want)


def table(lib: Any, **options: Any) -> Any:
    made = lib.nn.Embedding(4, 2, sparse=True, **options)
    made.weight.data.copy_(lib.arange(8.0).reshape(4, 2))
    return made


def test_gradients_of_tables_list_their_rows() -> None:
    seen: dict[Any, list[Any]] = {torch: [], tg: []}
    for lib, found in seen.items():
        e = table(lib, padding_idx=3)
        for at in ([1, 1, 2], [1, 3]):  # a second backward adds rows
            (e(lib.tensor(at)) * 2).sum().backward()
            found.append(e.weight.grad)
        (e.weight * 2).sum().backward()
        found.append(e.weight.grad)
        bags = lib.nn.EmbeddingBag(4, 2, mode="mean", sparse=True)
        bags(lib.tensor([[1, 1], [2, 3]])).sum().backward()
        found.append(bags.weight.grad)
        x = lib.tensor(DENSE, requires_grad=True)
        x.gather(1, lib.tensor([[0, 0], [3, 1]]), sparse_grad=True).sum().backward()
        found.append(x.grad)
    for have, want in zip(seen[tg], seen[torch]):
        same(have, want)
    e = table(tg)
    (e(tg.tensor([1, 1, 2]))).sum().backward()
    norm = tg.nn.utils.clip_grad_norm_(e.parameters(), 1.0)  # of sums: rows of 2, 2 and 1, 1
    assert norm.item() == pytest.approx(10**0.5)
    assert tg.linalg.norm(e.weight.grad.to_dense()).item() == pytest.approx(1.0, rel=1e-5)
    e.zero_grad(set_to_none=False)
    assert e.weight.grad._nnz() == 0


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("SGD", {"lr": 0.1}), ("SGD", {"lr": 0.1, "momentum": 0.9, "maximize": True}),
        ("Adagrad", {"lr": 0.1, "lr_decay": 0.1}), ("SparseAdam", {"lr": 0.1}),
        ("SparseAdam", {"lr": 0.1, "maximize": True}),
    ],
)  # fmt: skip
def test_optimizers_take_sparse_gradients(name: str, options: Any) -> None:
    weights = []
    for lib in (torch, tg):
        e = table(lib)
        optimizer = getattr(lib.optim, name)(e.parameters(), **options)
        for turn in range(4):
            optimizer.zero_grad()
            (e(lib.tensor([1, 1, turn % 3])) ** 2).sum().backward()
            optimizer.step()
        weights.append(e.weight)
    same(weights[1], weights[0])


def test_what_is_not_there_is_an_error() -> None:
    x, d = made(tg, AT, VALUES, "coo"), tg.tensor(DENSE)
    for call, text in (
        (lambda: x.exp(), "exp is not implemented for tensors of layout tgraph.sparse_coo"),
        (lambda: x + 1, "use add(dense, sparse)"),
        (lambda: tg.cat([x, x]), "concatenate is not"),
        (lambda: x.reshape(-1), "reshape is not"),
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
        with pytest.raises((RuntimeError, TypeError)) as caught:
            call()
        assert text in str(caught.value)
    e = table(tg)
    e(tg.tensor([1])).sum().backward()
    with pytest.raises(RuntimeError, match="Adam does not support sparse gradients"):
        tg.optim.Adam(e.parameters()).step()


def test_copies_files_and_text() -> None:
    kept = {"a": made(tg, AT, VALUES, "coo"), "b": made(tg, AT, VALUES, "csr").double()}
    theirs = {"a": made(torch, AT, VALUES, "coo"), "b": made(torch, AT, VALUES, "csr").double()}
    file, back = io.BytesIO(), io.BytesIO()
    tg.save(kept, file)
    torch.save(theirs, back)
    file.seek(0), back.seek(0)
    read = [torch.load(file), tg.load(back), pickle.loads(pickle.dumps(kept)), copy.deepcopy(kept)]
    for name, want in theirs.items():
        for each in read[1:]:
            same(each[name], want)
        assert torch.equal(read[0][name].to_dense(), want.to_dense())
    assert repr(kept["a"]).replace("tgraph", "torch") == repr(theirs["a"])
    assert kept["a"].is_coalesced() and tg.zeros(2, 3, layout=tg.sparse_csr)._nnz() == 0


def test_products_on_a_device(cuda: Any) -> None:
    x, d = made(tg, AT, VALUES, "coo"), tg.tensor(DENSE.T.copy())
    there, dense = x.to(cuda).requires_grad_(), d.to(cuda).requires_grad_()
    product = there @ dense
    product.sum().backward()
    same(product.cpu(), torch.tensor((x @ d).numpy()))
    here = d.detach().requires_grad_()
    (x @ here).sum().backward()
    assert tg.equal(dense.grad.cpu(), here.grad) and there.grad.device == cuda
