"""`gradcheck`, `gradgradcheck`, `detect_anomaly`, `forward_ad`, and hooks after accumulation."""

from __future__ import annotations

from typing import Any

import pytest

import tgraph as tg
from tgraph import Tensor
from tgraph.autograd import forward_ad, gradcheck, gradgradcheck


def doubles(*values: float) -> Tensor:
    return tg.tensor(values, dtype=tg.float64, requires_grad=True)


class TwiceWrong(tg.autograd.Function):
    """The square, with the gradient of three times its argument."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x**2

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        return 3 * g


class OnceRight(tg.autograd.Function):
    """The square, whose gradient has no right gradient."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x**2

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        return 2 * g * ctx.saved_tensors[0].detach()


def test_right_gradients_pass() -> None:
    x, w = doubles(0.5, 2.0), doubles(1.0, 3.0)
    assert gradcheck(lambda a, b: (a @ b, a.sin() * b, "no tensor"), (x, w), check_forward_ad=True)
    assert gradgradcheck(lambda a, b: (a * b) ** 2, (x, w), gen_non_contig_grad_outputs=True)
    z = tg.tensor([1 + 2j, 0.5 - 1j], dtype=tg.complex128, requires_grad=True)
    assert gradcheck(lambda z: (z * z.conj(), z.abs(), z.exp() * z), (z,))
    assert gradcheck(lambda z: z.exp() * z, (z,), check_forward_ad=True)
    assert gradcheck(lambda x: x.sum(), (doubles(),))


def test_wrong_gradients_fail() -> None:
    x = doubles(0.5, 2.0)
    with pytest.raises(RuntimeError, match="Jacobian mismatch for output 0 with respect to input"):
        gradcheck(TwiceWrong.apply, (x,))
    assert not gradcheck(TwiceWrong.apply, (x,), raise_exception=False)
    assert gradcheck(OnceRight.apply, (x,))
    assert not gradgradcheck(OnceRight.apply, (x,), raise_exception=False)
    with pytest.raises(ValueError, match="at least one input tensor to require gradient"):
        gradcheck(tg.sin, (x.detach(),))
    with pytest.raises(NotImplementedError, match="check_batched_grad"):
        gradcheck(tg.sin, (x,), check_batched_grad=True)
    with pytest.warns(UserWarning, match="not a double precision"):
        gradcheck(lambda x: 2 * x, (x.detach().float().requires_grad_(),), eps=1e-2)


def test_anomaly_names_operation_and_line() -> None:
    x = tg.tensor([0.0, 1.0], requires_grad=True)

    def step(x: Tensor) -> None:
        (x.sqrt() * 0).sum().backward()

    compiled = tg.compile(step)
    compiled(x)  # has a plan from before
    for run in (step, compiled):
        with (
            tg.autograd.detect_anomaly(),
            pytest.raises(RuntimeError, match=r"'SqrtBackward0' .* nan .*test_gradient_checks\.py"),
        ):
            run(x)
        with tg.autograd.set_detect_anomaly(True, check_nan=False):
            assert tg.is_anomaly_enabled()
            assert not tg.is_anomaly_check_nan_enabled()
            run(x)
    assert not tg.is_anomaly_enabled() and tg.is_anomaly_check_nan_enabled()
    # Of one example, too.
    with tg.autograd.detect_anomaly(), pytest.raises(RuntimeError, match="SqrtBackward0"):
        tg.vmap(tg.grad(lambda x: x.sqrt() * 0))(x.detach())


def test_dual_numbers() -> None:
    x, w = tg.tensor([1.0, 2.0]), tg.tensor([3.0, 4.0], requires_grad=True)
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, tg.ones(2))
        found = forward_ad.unpack_dual((dual * w).exp().sum())
        assert forward_ad.unpack_dual(w).tangent is None
        with pytest.raises(RuntimeError, match="Nested forward mode"):
            forward_ad.enter_dual_level()
        with pytest.raises(RuntimeError, match="make_dual: expected a tangent of the type"):
            forward_ad.make_dual(x, tg.ones(3))
    assert forward_ad.unpack_dual(dual).tangent is None
    assert found.tangent is not None
    expected = tg.jvp(lambda x: (x * w).exp().sum(), (x,), (tg.ones(2),))[1]
    tg.testing.assert_close(found.tangent, expected)
    (gradient,) = tg.autograd.grad(found.tangent, w)  # through the tangent
    tg.testing.assert_close(gradient, (1 + x * w.detach()) * (x * w.detach()).exp())
    with pytest.raises(RuntimeError, match="no level exists"):
        forward_ad.make_dual(x, x)
    level = forward_ad.enter_dual_level()
    forward_ad.exit_dual_level(level=level)


@pytest.mark.parametrize("compiled", [False, True])
def test_an_optimizer_steps_when_its_gradient_is_there(compiled: bool) -> None:
    def run(in_hooks: bool) -> list[Tensor]:
        weights = [tg.tensor([1.0, -2.0], requires_grad=True) for _ in range(2)]
        optimizers = [tg.optim.SGD([each], lr=0.1, momentum=0.9) for each in weights]

        def update(each: Tensor, at: int) -> None:
            optimizers[at].step()
            optimizers[at].zero_grad()

        handles = [
            each.register_post_accumulate_grad_hook(lambda x, at=at: update(x, at))
            for at, each in enumerate(weights) if in_hooks
        ]  # fmt: skip

        def step(x: Tensor) -> Tensor:
            loss = ((weights[0] * x).sin() + weights[1] ** 2).sum()
            loss.backward()
            if not in_hooks:
                for at, each in enumerate(weights):
                    update(each, at)
            return loss.detach()

        call = tg.compile(step) if compiled else step
        losses = [call(tg.tensor([0.5, 1.5])) for _ in range(3)]
        assert all(each.grad is None for each in weights)
        for each in handles:
            each.remove()
        return [*losses, *weights]

    for found, expected in zip(run(True), run(False), strict=True):
        tg.testing.assert_close(found, expected, rtol=1e-6, atol=1e-6)


def test_hooks_after_accumulation_are_for_leaves() -> None:
    x = tg.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="non-leaf"):
        (2 * x).register_post_accumulate_grad_hook(print)
    with pytest.raises(RuntimeError, match="doesn't require gradient"):
        tg.ones(2).register_post_accumulate_grad_hook(print)
    seen: list[list[float]] = []
    x.register_post_accumulate_grad_hook(lambda each: seen.append(each.grad.tolist()))
    x.register_hook(lambda g: g * 2)  # comes before, whatever the order of registration
    x.sum().backward()
    (3 * x).sum().backward()
    tg.autograd.grad(x.sum(), x)  # accumulates nothing
    assert seen == [[2.0, 2.0], [8.0, 8.0]]


def test_gradients_of_a_batch_of_vectors() -> None:
    x = tg.tensor([1.0, 2.0], requires_grad=True)
    y = x**2
    (rows,) = tg.autograd.grad(y, x, tg.eye(2), is_grads_batched=True)
    assert rows.tolist() == [[2.0, 0.0], [0.0, 4.0]]
    (none,) = tg.autograd.grad(y, x, tg.ones(0, 2), is_grads_batched=True)
    assert none.shape == (0, 2)
    with pytest.raises(RuntimeError, match="is_grads_batched: expected grad_outputs with the same"):
        tg.autograd.grad(y, x, None, is_grads_batched=True)
    with pytest.warns(FutureWarning, match="only_inputs argument is deprecated"):
        tg.autograd.grad(y, x, tg.ones(2), only_inputs=False)
