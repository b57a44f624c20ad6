"""What goes through the hooks of saved tensors beside eager operations: plans and traces."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

import tgraph as tg

hooks = tg.autograd.graph.saved_tensors_hooks


def test_a_compiled_function_hands_over_what_its_plan_keeps() -> None:
    @tg.compile
    def f(x: Any) -> Any:
        return (x.exp() * x).sin().sum()

    x = tg.tensor([0.5, 1.0], requires_grad=True)
    f(x).backward()
    plain, x.grad = x.grad, None
    shapes: list[Any] = []

    def pack(tensor: Any) -> Any:
        shapes.append(tuple(tensor.shape))
        return tensor.numpy(force=True).copy()

    with hooks(pack, tg.tensor):
        y = f(x)
    assert shapes and set(shapes) <= {(2,), ()}
    (first,) = tg.autograd.grad(y, x, create_graph=True)
    assert first.tolist() == pytest.approx(plain.tolist())
    (second,) = tg.autograd.grad(first.sum(), x)
    (wanted,) = tg.autograd.grad(tg.autograd.grad(f(x), x, create_graph=True)[0].sum(), x)
    assert second.tolist() == pytest.approx(wanted.tolist())


@pytest.mark.parametrize(
    "view",
    [
        lambda base: base.t(),
        lambda base: base[:, ::2],
        lambda base: base[0].expand(5, 6),
        lambda base: base.reshape(1, 4, 6).permute(2, 0, 1),
    ],
    ids=["transposed", "each second", "expanded", "permuted"],
)
@pytest.mark.parametrize("dynamic", [False, True])
def test_what_hooks_copied_is_laid_out_as_the_plan_reads_it(view: Any, dynamic: bool) -> None:
    @partial(tg.compile, dynamic=dynamic)
    def f(x: Any) -> Any:
        return (x.exp() * x).sin()

    def second(function: Any, x: Any) -> Any:
        (first,) = tg.autograd.grad(function(x).sum(), x, create_graph=True)
        return first, tg.autograd.grad((first * first).sum(), x)[0]

    for _ in range(2):
        x = view(tg.rand(4, 6)).detach().requires_grad_()
        with hooks(lambda t: t.detach().numpy().copy(order="C"), tg.tensor):
            found = second(f, x)
            wanted = second(f.__wrapped__, x)
        for one, other in zip(found, wanted, strict=True):
            assert tg.allclose(one, other, rtol=1e-4, atol=1e-5)


def test_planned_functions_run_as_written_under_hooks() -> None:
    x, kept = tg.rand(4, 4, requires_grad=True), []
    for _ in range(3):
        tg.nn.functional.gelu(x)  # a plan by now
    with hooks(lambda t: kept.append(t) or len(kept) - 1, lambda at: kept[at]):  # type: ignore[func-returns-value]
        y = tg.nn.functional.gelu(x).sum()
    assert kept
    (found,) = tg.autograd.grad(y, x)
    (wanted,) = tg.autograd.grad(tg.nn.functional.gelu(x).sum(), x)
    assert tg.allclose(found, wanted, rtol=1e-5, atol=1e-6)


def test_hooks_are_not_entered_in_a_trace() -> None:
    def f(x: Any) -> Any:
        with hooks(lambda t: t, lambda t: t):
            return x * x

    with pytest.raises(RuntimeError, match="saved_tensors_hooks in a function that is traced"):
        tg.compile(f)(tg.ones(2))


def test_hooks_may_not_write_into_what_they_pack() -> None:
    def pack(tensor: tg.Tensor) -> tg.Tensor:
        with tg.no_grad():
            return tensor.add_(1)

    x = tg.tensor([1.0], requires_grad=True)
    with hooks(pack, lambda kept: kept), pytest.raises(RuntimeError, match="input in place"):
        x.exp().exp()
