"""Matrix products: shapes, folding, errors, einsum."""

from __future__ import annotations

import numpy as np
import pytest

import tgraph as tg

RNG = np.random.RandomState(0)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((4,), (4,)), ((3, 4), (4,)), ((4,), (4, 5)), ((3, 4), (4, 5)), ((2, 3, 4), (4, 5)),
        ((2, 3, 4), (2, 4, 5)), ((4,), (2, 4, 5)), ((2, 3, 4), (4,)), ((2, 1, 3, 4), (6, 4, 5)),
        ((3, 0), (0, 2)), ((0, 3), (3, 2)), ((2, 0, 4), (4, 5)), ((1, 1), (1, 1)),
    ],
    ids=str,
)  # fmt: skip
def test_matmul_as_numpy(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    x, y = RNG.randn(*a), RNG.randn(*b)
    found = tg.tensor(x) @ tg.tensor(y)
    np.testing.assert_allclose(found.numpy(), x @ y, rtol=1e-12)
    assert found.shape == (x @ y).shape


def test_transposed_operands() -> None:
    x, y = RNG.randn(3, 4), RNG.randn(3, 5)
    np.testing.assert_allclose((tg.tensor(x).t() @ tg.tensor(y)).numpy(), x.T @ y)
    batch = RNG.randn(2, 3, 4)
    np.testing.assert_allclose(
        (tg.tensor(batch).mT @ tg.tensor(y)).numpy(), batch.swapaxes(1, 2) @ y
    )


def test_integers_and_halves() -> None:
    x = tg.arange(6).reshape(2, 3)
    assert (x @ x.t()).tolist() == [[5, 14], [14, 50]]
    half = tg.ones(2, 3000, dtype=tg.float16)
    assert (half @ half.t()).tolist() == [[3000.0] * 2] * 2


def test_other_products() -> None:
    x, y = tg.tensor(RNG.randn(3, 4)), tg.tensor(RNG.randn(4, 3))
    np.testing.assert_allclose(tg.mm(x, y).numpy(), x.numpy() @ y.numpy())
    np.testing.assert_allclose(tg.mv(x, y[:, 0]).numpy(), x.numpy() @ y.numpy()[:, 0])
    np.testing.assert_allclose(tg.dot(x[0], y[:, 0]).item(), x.numpy()[0] @ y.numpy()[:, 0])
    np.testing.assert_allclose(tg.outer(x[0], y[0]).numpy(), np.outer(x.numpy()[0], y.numpy()[0]))
    np.testing.assert_allclose(
        tg.addmm(tg.ones(3, dtype=tg.float64), x, y, beta=2, alpha=0.5).numpy(),
        2 + 0.5 * x.numpy() @ y.numpy(),
    )
    np.testing.assert_allclose(tg.trace(x).item(), np.trace(x.numpy()))
    a, b = RNG.randn(2, 3, 4), RNG.randn(4, 2, 5)
    np.testing.assert_allclose(
        tg.tensordot(tg.tensor(a), tg.tensor(b), ([0, 2], [1, 0])).numpy(),
        np.tensordot(a, b, ([0, 2], [1, 0])),
    )


@pytest.mark.parametrize(
    ("operation", "message"),
    [
        (
            lambda: tg.ones(2, 3) @ tg.ones(4, 5),
            r"mat1 and mat2 shapes cannot be multiplied \(2x3 and 4x5\)",
        ),
        (lambda: tg.ones(2, 3) @ tg.ones(2), r"size mismatch, got input \(2\), mat \(2x3\)"),
        (lambda: tg.ones(2) @ tg.ones(3), "inconsistent tensor size, expected tensor"),
        (lambda: tg.tensor(1.0) @ tg.ones(3), "need to be at least 1D, but they are 0D and 1D"),
        (
            lambda: tg.ones(4, 2, 3) @ tg.ones(3, 3, 5),
            r"The size of tensor a \(4\) must match the size of tensor b \(3\)",
        ),
        (lambda: tg.ones(2, 3) @ tg.ones(3, 2).double(), "same dtype, but got: float32 != float64"),
        (lambda: tg.mm(tg.ones(2, 3), tg.ones(3)), "mat2 must be a matrix"),
        (lambda: tg.bmm(tg.ones(2, 3, 4), tg.ones(2, 5, 6)), "Expected size for first two dimen"),
        (lambda: tg.dot(tg.ones(2, 2), tg.ones(2)), "1D tensors expected"),
    ],
)
def test_errors(operation: object, message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        operation()  # type: ignore[operator]
    with pytest.raises(TypeError):
        tg.ones(2, 2) @ 2


EQUATIONS: list[tuple[str, list[tuple[int, ...]]]] = [
    ("ij,jk->ik", [(2, 3), (3, 4)]),
    ("ij,jk", [(2, 3), (3, 4)]),
    ("bij,bjk->bik", [(2, 3, 4), (2, 4, 5)]),
    ("ii->i", [(3, 3)]),
    ("ii", [(3, 3)]),
    ("ijij->ji", [(2, 3, 2, 3)]),
    ("ij->ji", [(2, 3)]),
    ("ij->", [(2, 3)]),
    ("i,j->ij", [(2,), (3,)]),
    ("i,i", [(3,), (3,)]),
    ("...ij,...jk->...ik", [(2, 3, 4), (4, 5)]),
    ("...i->...", [(2, 3, 4)]),
    ("bhqd,bhkd->bhqk", [(2, 2, 3, 4), (2, 2, 5, 4)]),
    ("ij,jk,kl->il", [(2, 3), (3, 4), (4, 5)]),
    ("bn,anm,bm->ba", [(2, 3), (4, 3, 5), (2, 5)]),
    ("ij,kl->", [(2, 3), (4, 5)]),
    (" i j , j k -> k i ", [(2, 3), (3, 4)]),
    ("bij,bj->i", [(2, 3, 4), (2, 4)]),
]


@pytest.mark.parametrize(("equation", "shapes"), EQUATIONS, ids=[each for each, _ in EQUATIONS])
def test_einsum(equation: str, shapes: list[tuple[int, ...]]) -> None:
    arrays = [RNG.randn(*shape) for shape in shapes]
    found = tg.einsum(equation, *map(tg.tensor, arrays))
    np.testing.assert_allclose(found.numpy(), np.einsum(equation, *arrays), rtol=1e-10, atol=1e-12)


def test_einsum_errors() -> None:
    with pytest.raises(RuntimeError, match="does not match the operands"):
        tg.einsum("ijk,jk", tg.ones(2, 3), tg.ones(3, 4))
    with pytest.raises(RuntimeError, match="fewer operands"):
        tg.einsum("ij", tg.ones(2, 3), tg.ones(3, 4))
    with pytest.raises(RuntimeError, match="do not broadcast"):
        tg.einsum("ij,jk", tg.ones(2, 3), tg.ones(2, 3))
