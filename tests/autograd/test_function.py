"""Custom gradients through autograd.Function."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from finite_differences import check_gradients

import tgraph as tg


class Scale(tg.autograd.Function):
    """Two outputs; the second input is a plain number."""

    @staticmethod
    def forward(ctx: Any, x: Any, factor: float) -> Any:
        ctx.save_for_backward(x)
        ctx.factor = factor
        return x * factor, x * x

    @staticmethod
    def backward(ctx: Any, scaled: Any, squared: Any) -> Any:
        (x,) = ctx.saved_tensors
        return scaled * ctx.factor + squared * 2 * x, None


class Exponential(tg.autograd.Function):
    """Saves its output, in the form with setup_context."""

    @staticmethod
    def forward(x: Any) -> Any:
        return x.exp()

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(output)

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        (output,) = ctx.saved_tensors
        return gradient * output


def test_gradients_and_second_gradients() -> None:
    x = np.random.RandomState(0).randn(3, 2)
    check_gradients(lambda t: Scale.apply(t, 3.0)[0] * Scale.apply(t, 2.0)[1], x)
    check_gradients(Exponential.apply, x)


def test_name_and_history() -> None:
    x = tg.ones(2, requires_grad=True)
    first, second = Scale.apply(x, 2.0)
    assert first.grad_fn is second.grad_fn
    assert first.grad_fn.name() == "ScaleBackward"
    assert not Scale.apply(tg.ones(2), 2.0)[0].requires_grad


def test_outputs_without_cotangent_get_zeros() -> None:
    x = tg.ones(2, requires_grad=True)
    Scale.apply(x, 2.0)[0].sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


def test_none_instead_of_zeros_on_request() -> None:
    seen = []

    class Pair(tg.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.set_materialize_grads(False)
            return x * 1, x * 2

        @staticmethod
        def backward(ctx: Any, a: Any, b: Any) -> Any:
            seen.append(b)
            return a

    x = tg.ones(2, requires_grad=True)
    Pair.apply(x)[0].sum().backward()
    assert seen == [None]


def test_needs_input_grad_and_non_differentiable_outputs() -> None:
    class Split(tg.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            ctx.needs = ctx.needs_input_grad
            sign = x.sign()
            ctx.mark_non_differentiable(sign)
            return x + y, sign

        @staticmethod
        def backward(ctx: Any, gradient: Any, unused: Any) -> Any:
            assert ctx.needs == (True, False)
            return gradient, None

    x = tg.ones(2, requires_grad=True)
    total, sign = Split.apply(x, tg.ones(2))
    assert total.requires_grad and not sign.requires_grad
    total.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]


def test_returning_an_input_gives_a_new_tensor() -> None:
    class Reverse(tg.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x

        @staticmethod
        def backward(ctx: Any, gradient: Any) -> Any:
            return -gradient

    x = tg.ones(2, requires_grad=True)
    y = Reverse.apply(x)
    assert y is not x
    y.sum().backward()
    assert x.grad.tolist() == [-1.0, -1.0]


def test_marked_dirty_inputs_are_written_in_place() -> None:
    class Double(tg.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.mark_dirty(x)
            return x.mul_(2)

        @staticmethod
        def backward(ctx: Any, gradient: Any) -> Any:
            return gradient * 2

    x = tg.ones(2, requires_grad=True)
    y = x * 1
    z = Double.apply(y)
    assert z is y and y.tolist() == [2.0, 2.0]
    (z * z).sum().backward()
    assert x.grad.tolist() == [8.0, 8.0]


def test_saved_tensors_notice_writes_and_freeing() -> None:
    x = tg.ones(2, requires_grad=True)
    y = x * 1
    out = Scale.apply(y, 2.0)[1].sum()
    y.add_(1)
    with pytest.raises(RuntimeError, match="saved by ScaleBackward"):
        out.backward()
    out = Exponential.apply(x).sum()
    out.backward()
    with pytest.raises(RuntimeError, match="a second time"):
        out.backward()


def test_wrong_gradients_are_refused() -> None:
    def function(returned: Any) -> Any:
        class Broken(tg.autograd.Function):
            @staticmethod
            def forward(ctx: Any, x: Any) -> Any:
                return x * 2

            @staticmethod
            def backward(ctx: Any, gradient: Any) -> Any:
                return returned

        return Broken.apply(tg.ones(2, requires_grad=True)).sum()

    with pytest.raises(RuntimeError, match=r"incorrect number of gradients \(expected 1, got 2\)"):
        function((tg.ones(2), tg.ones(2))).backward()
    with pytest.raises(RuntimeError, match=r"invalid gradient at index 0 - got \[3\]"):
        function(tg.ones(3)).backward()
    with pytest.raises(TypeError, match="returned a int as gradient 0"):
        function(3).backward()
    function((tg.ones(2), None)).backward()  # surplus None are PyTorch's custom


def test_a_missing_method_says_so() -> None:
    class Empty(tg.autograd.Function):
        pass

    with pytest.raises(NotImplementedError, match="must implement the forward"):
        Empty.apply(tg.ones(1))
