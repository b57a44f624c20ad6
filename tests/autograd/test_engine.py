"""The backward pass: accumulation, hooks, retained graphs, errors, long chains."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest

import tgraph as tg


def leaf(*values: float) -> Any:
    return tg.tensor(list(values), requires_grad=True)


def test_gradients_accumulate_in_place() -> None:
    x = leaf(1.0, 2.0)
    (x * x).sum().backward()
    first = x.grad
    (x * x).sum().backward()
    assert x.grad is first
    assert first.tolist() == [4.0, 8.0]


def test_several_uses_add_up() -> None:
    x = leaf(3.0)
    y = x * x + x * 2
    y.backward(tg.ones(1))
    assert x.grad.tolist() == [8.0]


def test_broadcast_operands_get_their_own_shape() -> None:
    x = tg.ones(3, 1, requires_grad=True)
    y = tg.ones(4, requires_grad=True)
    z = tg.tensor(2.0, requires_grad=True)
    (x * y * z).sum().backward()
    assert x.grad.shape == (3, 1) and x.grad.tolist() == [[8.0]] * 3
    assert y.grad.tolist() == [6.0] * 4
    assert z.grad.shape == () and z.grad.item() == 12.0


def test_two_leaves_do_not_share_the_memory_of_their_gradients() -> None:
    x, y = leaf(1.0), leaf(1.0)
    (x + y).backward(tg.ones(1))
    x.grad.add_(1)
    assert y.grad.tolist() == [1.0]


def test_a_gradient_does_not_share_the_memory_of_the_given_cotangent() -> None:
    x, given = leaf(1.0), tg.ones(1)
    (x + 0).backward(given)
    x.grad.add_(1)
    assert given.tolist() == [1.0]


def test_backward_needs_a_scalar_or_a_cotangent() -> None:
    x = leaf(1.0, 2.0)
    with pytest.raises(RuntimeError, match="grad can be implicitly created only for scalar"):
        (x * 2).backward()
    with pytest.raises(RuntimeError, match="Mismatch in shape: grad_output"):
        (x * 2).backward(tg.ones(3))


def test_backward_needs_history() -> None:
    message = "element 0 of tensors does not require grad and does not have a grad_fn"
    with pytest.raises(RuntimeError, match=message):
        tg.ones(1).backward()


def test_second_backward_names_the_operation_and_its_line() -> None:
    x = leaf(1.0)
    y = (x * x).sum()
    y.backward()
    with pytest.raises(
        RuntimeError, match="Trying to backward through the graph a second time"
    ) as e:
        y.backward()
    assert "MulBackward0" in str(e.value) and "test_engine.py:" in str(e.value)


def test_operations_that_save_nothing_run_backward_again() -> None:
    x = leaf(1.0)
    y = (x + 1).sum()
    y.backward()
    y.backward()
    assert x.grad.tolist() == [2.0]


SAVING_NOTHING = {
    "mul": lambda x: x * 2,
    "add alpha": lambda x: tg.add(x, x, alpha=3),
    "mean": lambda x: x.mean(),
    "mean of rows": lambda x: x.mean(1),
    "cumsum": lambda x: x.cumsum(0),
    "sign": lambda x: x.sign(),
    "tril": lambda x: x.tril(),
    "triu": lambda x: x.triu(1),
    "diag": lambda x: x[0].diag(),
    "diag_embed": lambda x: tg.diag_embed(x, 1),
    "addmm": lambda x: tg.addmm(x, tg.ones(3, 2), tg.ones(2, 3), beta=0.5),
    "affine_grid": lambda x: tg.nn.functional.affine_grid(x[None, :2], (1, 1, 2, 2), False),
    "nearest": lambda x: tg.nn.functional.interpolate(x[None], 5),
    "adaptive_avg_pool1d": lambda x: tg.nn.functional.adaptive_avg_pool1d(x, 2),
    "slices": lambda x: tg.cat([x[1:], x.t()]).reshape(-1).flip(0),
}


@pytest.mark.parametrize("name", SAVING_NOTHING)
def test_operations_whose_gradients_need_shapes_alone_save_nothing(name: str) -> None:
    """Nor do the plans of eager mode, which run from the second call on; gradients stay right."""
    function, found = SAVING_NOTHING[name], []
    for run in (function, function, function, tg.compile(function)):
        x = tg.tensor([[1.0, -2.0, 3.0], [0.5, 4.0, 2.5], [6.0, 7.0, -1.0]], requires_grad=True)
        with tg.autograd.graph.saved_tensors_hooks(pytest.fail, pytest.fail):
            y = run(x)
        weights = tg.arange(1.0, y.numel() + 1).reshape(y.shape)
        (first,) = tg.autograd.grad(y, x, weights, retain_graph=True)
        weights.requires_grad_()
        y.backward(weights)
        y.backward(weights, create_graph=True)
        assert tg.equal(x.grad, first * 2)
        (back,) = tg.autograd.grad((x.grad * first).sum() + weights.sum(), weights)
        found.append((first, back))
    for each in found[1:]:
        assert all(map(tg.allclose, each, found[0]))


def test_what_no_gradient_reads_is_not_held_by_a_plan() -> None:
    for _ in range(3):
        x = leaf(1.0, 2.0, 3.0)
        middle = x + 1
        reference, mean = weakref.ref(middle), middle.mean()
        del middle
        assert reference() is None and mean.requires_grad


def test_retain_graph() -> None:
    x = leaf(2.0)
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.tolist() == [8.0]


def test_saved_values_are_freed() -> None:
    x = leaf(2.0)
    middle = x * 3
    reference = weakref.ref(middle)
    y = (middle * middle).sum()
    del middle
    assert reference() is not None
    y.backward()
    assert reference() is None


def test_no_reference_cycles() -> None:
    gc.collect()
    gc.disable()
    try:
        x = leaf(2.0)
        y = x.exp().sigmoid().tanh()
        reference = weakref.ref(y)
        del y
        assert reference() is None
        loss = x.exp().sum()
        loss.backward(create_graph=True)
        record = weakref.ref(loss.grad_fn)
        x.grad = None
        del loss
        assert record() is None
    finally:
        gc.enable()


def test_create_graph_accumulates_a_gradient_with_history() -> None:
    x = leaf(3.0)
    (x**3).sum().backward(create_graph=True)
    gradient = x.grad
    assert gradient.requires_grad
    x.grad = None
    gradient.sum().backward()
    assert x.grad.tolist() == [18.0]


def test_inputs_limits_what_accumulates() -> None:
    x, y = leaf(1.0), leaf(2.0)
    middle = x * y
    (middle * 3).sum().backward(inputs=[x, middle])
    assert x.grad.tolist() == [6.0]
    assert middle.grad.tolist() == [3.0]
    assert y.grad is None
    with pytest.raises(RuntimeError, match="cannot be empty"):
        (x * 1).sum().backward(inputs=[])


def test_grad_returns_without_accumulating() -> None:
    x, unused = leaf(2.0), leaf(1.0)
    y = x * x
    assert tg.autograd.grad(y.sum(), [x, y])[0].tolist() == [4.0]
    assert x.grad is None
    with pytest.raises(RuntimeError, match="at index 1 appears to not have been used"):
        tg.autograd.grad((x * x).sum(), [x, unused])
    found = tg.autograd.grad((x * x).sum(), [x, unused], allow_unused=True)
    assert found[1] is None
    found = tg.autograd.grad((x * x).sum(), [x, unused], materialize_grads=True)
    assert found[1].tolist() == [0.0]


def test_grad_of_an_output_with_respect_to_itself() -> None:
    x = leaf(2.0)
    y = x * x
    assert tg.autograd.grad(y, y, tg.full((1,), 5.0))[0].tolist() == [5.0]


def test_grad_needs_inputs_that_require_grad() -> None:
    x = leaf(2.0)
    with pytest.raises(RuntimeError, match="does not require grad"):
        tg.autograd.grad((x * x).sum(), tg.ones(1))


def test_grad_with_respect_to_an_inner_tensor_does_not_free_what_lies_before() -> None:
    x = leaf(2.0)
    y = x.exp()
    z = (y * y).sum()
    tg.autograd.grad(z, y)
    y.sum().backward()
    assert x.grad.item() == pytest.approx(np.exp(2.0))


def test_hooks_see_and_replace_gradients() -> None:
    x = leaf(1.0, 2.0)
    seen = []
    x.register_hook(lambda g: seen.append(g.tolist()))
    handle = x.register_hook(lambda g: g * 10)
    (x * 3).sum().backward()
    assert seen == [[3.0, 3.0]]
    assert x.grad.tolist() == [30.0, 30.0]
    handle.remove()
    x.grad = None
    (x * 3).sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]


def test_hooks_of_inner_tensors_run_once_with_the_whole_gradient() -> None:
    x = leaf(1.0)
    y = x * 2
    seen = []
    y.register_hook(lambda g: seen.append(g.item()) or g * 2)
    (y * 3 + y * 4).sum().backward()
    assert seen == [7.0]
    assert x.grad.tolist() == [28.0]


def test_hooks_need_a_gradient() -> None:
    with pytest.raises(RuntimeError, match="cannot register a hook"):
        tg.ones(1).register_hook(lambda g: g)


def test_retain_grad() -> None:
    x = leaf(3.0)
    y = x * 2
    y.retain_grad()
    y.retain_grad()
    assert y.retains_grad and not x.retains_grad
    (y * y).sum().backward()
    assert y.grad.tolist() == [12.0]
    assert (x * 1).grad is None
    with pytest.raises(RuntimeError, match="can't retain_grad"):
        tg.ones(1).retain_grad()


@pytest.mark.parametrize("compiled", [False, True])
def test_retain_grad_keeps_what_hooks_made(compiled: bool) -> None:
    def function(x: Any) -> Any:
        y = x * 2
        y.retain_grad()
        y.register_hook(lambda gradient: gradient * 10)
        (y * 3).sum().backward()
        return y.grad

    x = leaf(1.0, 2.0)
    assert (tg.compile(function) if compiled else function)(x).tolist() == [30.0, 30.0]
    assert x.grad.tolist() == [60.0, 60.0]


@pytest.mark.parametrize("compiled", [False, True])
def test_retain_grad_goes_along_with_writes(compiled: bool) -> None:
    """It keeps the gradient of what the tensor holds now; hooks stay with what it held."""

    def itself(y: Any, view: Any) -> None:
        y.mul_(3)

    def through_a_view(y: Any, view: Any) -> None:
        y[0] = y[1] * 2

    def viewed(y: Any, view: Any) -> None:
        view.mul_(3)

    for write in (itself, through_a_view, viewed):
        x = tg.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
        y = x * 2
        view = y[0]
        for each in (y, view):
            each.retain_grad()
        (tg.compile(write) if compiled else write)(y, view)
        (y * y).sum().backward(retain_graph=True)
        assert y.retains_grad and tg.equal(y.grad, y.detach() * 2)
        (view * view).sum().backward()
        assert tg.equal(view.grad, view.detach() * 2)


def test_grad_fn_names_and_next_functions() -> None:
    x = leaf(1.0)
    y = x * 2
    z = y + 1
    assert repr(z.grad_fn).startswith("<AddBackward0 object at 0x")
    ((before, number), (nothing, _)) = z.grad_fn.next_functions
    assert (before.name(), number, nothing) == ("MulBackward0", 0, None)
    accumulate = before.next_functions[0][0]
    assert accumulate.name() == "torch::autograd::AccumulateGrad" and accumulate.variable is x
    assert x.grad_fn is None and x.is_leaf and not z.is_leaf
    assert tg.softmax(x, 0).grad_fn.name() == "SoftmaxBackward0"


def test_records_know_their_line() -> None:
    x = leaf(1.0)
    y = x * 2
    where = y.grad_fn.site.provenance
    assert where.file == __file__
    assert where.function == "test_records_know_their_line"
    assert where.line == y.grad_fn.site.line > 200


def test_requires_grad_flags() -> None:
    x = tg.ones(2)
    assert not x.requires_grad
    assert x.requires_grad_() is x and x.requires_grad
    x.requires_grad = False
    assert not x.requires_grad
    with pytest.raises(
        RuntimeError, match="only Tensors of floating point and complex dtype can require"
    ):
        tg.ones(2, dtype=tg.int64).requires_grad_()
    y = leaf(1.0) * 2
    with pytest.raises(RuntimeError, match="can only change requires_grad flags of leaf"):
        y.requires_grad = False


def test_assigning_grad_checks_it() -> None:
    x = leaf(1.0, 2.0)
    x.grad = tg.ones(2)
    with pytest.raises(RuntimeError, match=r"size '\[3\]' to a tensor of size '\[2\]'"):
        x.grad = tg.ones(3)
    with pytest.raises(RuntimeError, match="different type"):
        x.grad = tg.ones(2, dtype=tg.float64)
    with pytest.raises(TypeError, match="expected to be a Tensor or None"):
        x.grad = 1.0
    del x.grad
    assert x.grad is None


def test_results_of_integers_and_comparisons_require_no_grad() -> None:
    x = leaf(1.5, -2.5)
    assert not (x > 0).requires_grad
    assert not x.argmax().requires_grad
    assert not x.long().requires_grad
    assert (x // 2).requires_grad  # zeros, as of any step
    assert x.floor().requires_grad


def test_deep_chain() -> None:
    x = leaf(1.0)
    y = x
    for _ in range(100_000):
        y = y + 1
    y.sum().backward()
    assert x.grad.tolist() == [1.0]
    del y


def test_wide_fan_out() -> None:
    x = leaf(1.0)
    total = tg.zeros(1)
    for _ in range(5_000):
        total = total + x
    total.sum().backward()
    assert x.grad.tolist() == [5000.0]


def test_gradient_through_a_diamond_of_depth_sixty_is_linear_work() -> None:
    x = leaf(1.0)
    y = x
    for _ in range(60):
        y = (y + y) * 0.5
    y.sum().backward()
    assert x.grad.tolist() == [1.0]


def test_an_interrupted_backward_leaves_the_gradient_mode_as_it_was() -> None:
    x = leaf(1.0)
    y = (x * x).sum()

    def fail(gradient: Any) -> None:
        raise KeyboardInterrupt

    x.register_hook(fail)
    with pytest.raises(KeyboardInterrupt):
        y.backward()
    assert tg.is_grad_enabled()


def test_a_backward_that_raises_accumulates_nothing() -> None:
    x, w = leaf(1.0, 2.0), leaf(3.0, 4.0)
    y = x * 2
    y.register_hook(lambda gradient: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        (y * w).sum().backward()
    assert x.grad is None and w.grad is None


def test_slopes_of_straight_pieces_are_constants() -> None:
    x, y = leaf(1.0, -2.0), leaf(3.0, 4.0)
    (first,) = tg.autograd.grad((tg.relu(x) * y).sum(), x, create_graph=True)
    second = tg.autograd.grad(first.sum(), (x, y), allow_unused=True)
    assert second[0] is None and second[1].tolist() == [1.0, 0.0]


def test_hooks_give_back_tensors_of_the_same_type() -> None:
    x = tg.ones(3, requires_grad=True)
    for given, error, message in (
        (tg.ones(2), RuntimeError, r"hook '<lambda>' has changed the size of value"),
        (tg.ones(3).double(), RuntimeError, r"hook '<lambda>' has changed the type of value"),
        (3, TypeError, r"hook '<lambda>' must return a Tensor or None, not int"),
    ):
        handle = x.register_hook(lambda grad, given=given: given)
        with pytest.raises(error, match=message):
            x.sum().backward()
        handle.remove()
    x.sum().backward()
    assert x.grad.tolist() == [1, 1, 1]


def test_cotangents_are_tensors() -> None:
    x = tg.ones(3, requires_grad=True)
    with pytest.raises(TypeError, match="gradients can be either Tensors or None, but got float"):
        x.sum().backward(2.0)


def test_a_gradient_that_belongs_to_a_graph_is_not_written() -> None:
    x = tg.tensor([2.0], requires_grad=True)
    (x**3).sum().backward(create_graph=True)
    first = x.grad
    (x**3).sum().backward(create_graph=True)
    assert first.tolist() == [12.0] and x.grad.tolist() == [24.0]
