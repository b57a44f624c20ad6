"""Sparse tensors against PyTorch's: values, layouts, gradients, files; compiled, too."""

from __future__ import annotations

import copy
import io
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sparse_cases import AT, COLUMNS, DENSE, OF_COO, OPERATIONS, ROWS, VALUES, made, table

import tgraph as tg

torch = pytest.importorskip("torch", reason="compares with PyTorch, which is not installed")
# What PyTorch refuses.
NOT_OF_CSC = {"x * dense", "x @ x"}
pytestmark = pytest.mark.filterwarnings("ignore:Sparse (CSR|invariant)")


def same(have: Any, want: Any) -> None:
    if not isinstance(want, torch.Tensor):
        assert have == want
        return
    assert repr(have.layout) == repr(want.layout).replace("torch", "tgraph")
    assert tuple(have.shape) == tuple(want.shape)
    assert repr(have.dtype).split(".")[1] == repr(want.dtype).split(".")[1]
    a, b = have.detach().to_dense().numpy(), want.detach().to_dense().numpy()
    np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


@settings(deadline=None, max_examples=150)
@given(
    st.lists(st.tuples(st.integers(0, ROWS - 1), st.integers(0, COLUMNS - 1)), max_size=6),
    st.sampled_from(["coo", "uncoalesced", "csr", "csc"]),
    st.sampled_from([*OPERATIONS, *OF_COO]),
)
def test_operations_are_pytorchs(places: Any, layout: str, name: str) -> None:
    at = np.array(places, np.int64).reshape(-1, 2).T
    values = np.arange(1, 1 + at.shape[1], dtype=np.float32) / 4
    if layout == "csc" and name in NOT_OF_CSC:
        layout = "csr"
    if layout.startswith("cs") and name in OF_COO:
        layout = "coo"
    operation = {**OPERATIONS, **OF_COO}[name]
    have, want = (
        operation(lib, made(lib, at, values, layout), lib.tensor(DENSE)) for lib in (tg, torch)
    )
    same(have, want)
    if not places and isinstance(want, torch.Tensor) and want.is_sparse:
        assert have._nnz() == want._nnz()


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


@pytest.mark.parametrize("layout", ["coo", "csr"])
def test_backward_from_sparse_results(layout: str) -> None:
    """With a gradient of the result's places, of some and others, and of all elements."""
    seen: dict[Any, list[Any]] = {torch: [], tg: []}
    for lib, found in seen.items():
        places = made(lib, AT, VALUES, layout).detach()
        others = lib.tensor(DENSE).to_sparse(layout=places.layout)
        for cotangent in (places, others, lib.tensor(DENSE)):
            x = made(lib, AT, VALUES, layout).detach().requires_grad_()
            found.append(
                lib.autograd.grad(x * 2, x, cotangent)[0].to_dense() * (places.to_dense() != 0)
            )
        (x * 2).backward(places)
        found.append(x.grad)
    for have, want in zip(seen[tg], seen[torch]):
        same(have, want)
    with pytest.raises(RuntimeError, match="needs a gradient of its shape"):
        (x * 2).backward()


def test_sampled_products_into_a_tensor() -> None:
    a, b = (DENSE @ DENSE.T, DENSE)
    found = []
    for lib in (torch, tg):
        places, d = made(lib, AT, VALUES, "csr").detach(), [lib.tensor(each) for each in (a, b)]
        out = lib.zeros_like(places)
        assert lib.sparse.sampled_addmm(places, *d, out=out) is out
        found.append(out)
        with pytest.raises(RuntimeError, match="automatic differentiation"):
            lib.sparse.sampled_addmm(places, *[each.requires_grad_() for each in d], out=out)
    same(*found[::-1])
    with pytest.raises(ValueError, match="requires dense parameter tensors"):  # PyTorch's, too
        tg.optim.SparseAdam([made(tg, AT, VALUES, "coo").detach()])


@pytest.mark.parametrize("reduce", ["mean", "amax", "amin"])
def test_other_reductions_of_products(reduce: str) -> None:
    have, want = (
        lib.sparse.mm(made(lib, AT, VALUES, "csr"), lib.tensor(DENSE.T.copy()), reduce)
        for lib in (tg, torch)
    )
    same(have, want)


def test_gradients_of_tables_list_their_rows() -> None:
    ways = ((torch, lambda f: f), (tg, lambda f: f), (tg, tg.compile))
    seen: list[list[Any]] = [[] for _ in ways]
    for (lib, run), found in zip(ways, seen):
        e = table(lib, padding_idx=3)
        rows = run(lambda at, e=e: e(at) * 2)
        for at in ([1, 1, 2], [1, 3]):  # a second backward adds rows
            rows(lib.tensor(at)).sum().backward()
            found.append(e.weight.grad)
        (e.weight * 2).sum().backward()
        found.append(e.weight.grad)
        bags = lib.nn.EmbeddingBag(4, 2, mode="mean", sparse=True)
        run(bags)(lib.tensor([[1, 1], [2, 3]])).sum().backward()
        found.append(bags.weight.grad)
        x, at = lib.tensor(DENSE, requires_grad=True), lib.tensor([[0, 0], [3, 1]])
        run(lambda x, at: x.gather(1, at, sparse_grad=True))(x, at).sum().backward()
        found.append(x.grad)
    for want, *others in zip(*seen, strict=True):
        for have in others:
            same(have, want)
    e = table(tg)
    (e(tg.tensor([1, 1, 2]))).sum().backward()
    norm = tg.nn.utils.clip_grad_norm_(e.parameters(), 1.0)  # of sums: rows of 2, 2 and 1, 1
    assert norm.item() == pytest.approx(10**0.5)
    assert tg.linalg.norm(e.weight.grad.to_dense()).item() == pytest.approx(1.0, rel=1e-5)
    e.zero_grad(set_to_none=False)
    assert e.weight.grad._nnz() == 0


def test_gradients_of_compiled_tables_are_sparse_where_eager_ones_are() -> None:
    """Of a table that is read twice they are of all rows; a sum with a dense one is dense."""
    w = table(tg).weight
    rows = tg.nn.functional.embedding

    def gradient(function: Any, **options: Any) -> Any:
        (found,) = tg.autograd.grad(function(tg.tensor([1, 0])), w, **options)
        return found

    functions = {
        "twice": lambda at: (rows(at, w, sparse=True) * rows(at + 1, w, sparse=True)).sum(),
        "and dense": lambda at: (rows(at, w, sparse=True) @ w.T).sin().sum(),
        "multiplied": lambda at: rows(at, (w * 2).cos(), sparse=True).sum(),
        "loop": lambda at: tg.while_loop(
            lambda n, y: n < 2, lambda n, y: (n + 1, y + rows(at, w, sparse=True)),
            (tg.tensor(0), tg.zeros(2, 2)))[1].sum(),
    }  # fmt: skip
    for name, function in functions.items():
        have, want = gradient(tg.compile(function)), gradient(function)
        assert name == "loop" or have.layout is want.layout, name
        have, want = (each.to_dense() if each.is_sparse else each for each in (have, want))
        tg.testing.assert_close(have, want)
    first = gradient(tg.compile(functions["twice"]), create_graph=True)
    first.square().sum().backward()
    assert first.layout is tg.strided and w.grad is not None


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
