"""In-place writes and views: whose history changes, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from finite_differences import check_gradients

import tgraph as tg

BASE = np.random.RandomState(0).randn(3, 4)
VECTOR = np.random.RandomState(1).randn(4)


def write_a_row(x: Any, v: Any) -> Any:
    y = x * 2
    y[1] = v
    return y * y


def add_to_a_column_view(x: Any, v: Any) -> Any:
    y = x * 2
    column = y.t()[1]
    column.add_(v[:3])
    return y * column[:, None]


def write_the_base_then_use_a_view(x: Any, v: Any) -> Any:
    y = x * 2
    view = y.view(2, 6)
    y.mul_(3).add_(v)
    return view * view


def a_view_of_a_view(x: Any, v: Any) -> Any:
    y = x * v
    outer = y[1:]
    inner = outer[:, ::2]
    inner.mul_(3)
    outer.tanh_()
    return y * y


def two_views_of_one_place(x: Any, v: Any) -> Any:
    y = x * 2
    first, second = y[0], y[0]
    first.add_(v)
    return second * second


def fill_a_diagonal(x: Any, v: Any) -> Any:
    y = x * v
    y.diagonal().fill_(3.0)
    return y * y


def copy_into_a_buffer(x: Any, v: Any) -> Any:
    buffer = tg.zeros(5, 4, dtype=tg.float64)
    buffer[1:4].copy_(x * v)
    buffer[0] += v
    return buffer * buffer


def assign_with_a_mask(x: Any, v: Any) -> Any:
    y = x * 2
    y[x > 0] = 5.0
    return y * v


def assign_at_positions(x: Any, v: Any) -> Any:
    y = x * 2
    y[tg.tensor([2, 0])] = v
    return y * y


def add_at_positions(x: Any, v: Any) -> Any:
    y = x * 2
    y[:, tg.tensor([0, 2])] += v[:2]
    return y * y


def update_with_its_own_rows(x: Any, v: Any) -> Any:
    y = x * v
    y[0] += y[1]
    y[1] += y[2]
    return y * 1


def interleaved(x: Any, v: Any) -> Any:
    y = (x * v).clone()
    y[:, ::2] += x[:, 1::2]
    return y**2


def overwrite_triangle(x: Any, v: Any) -> Any:
    y = x * v
    y.tril_()
    return y * y


def loop_accumulation(x: Any, v: Any) -> Any:
    total = tg.zeros(3, 4, dtype=tg.float64)
    for factor in range(4):
        total += x * factor * v
    return total * total


def sigmoid_of_a_view(x: Any, v: Any) -> Any:
    y = x * v
    y[:2].sigmoid_()
    return y * y


def windows(x: Any, v: Any) -> Any:
    y = x * v
    y.unfold(1, 2, 2).mul_(3)
    return y * y


def permuted_and_flattened(x: Any, v: Any) -> Any:
    y = (x * v).t().contiguous()
    y.view(-1)[::3] = 0.0
    return y * y


PROGRAMS: list[Callable[..., Any]] = [
    write_a_row, add_to_a_column_view, write_the_base_then_use_a_view, a_view_of_a_view,
    two_views_of_one_place, fill_a_diagonal, copy_into_a_buffer, assign_with_a_mask,
    assign_at_positions, add_at_positions, update_with_its_own_rows, interleaved,
    overwrite_triangle, loop_accumulation, sigmoid_of_a_view, windows, permuted_and_flattened,
]  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda each: each.__name__)
def test_gradients_of_programs_that_write(program: Callable[..., Any]) -> None:
    check_gradients(program, BASE, VECTOR)


def leaf() -> Any:
    return tg.tensor([1.0, 2.0, 3.0], requires_grad=True)


def test_a_leaf_cannot_be_written() -> None:
    x = leaf()
    message = "a leaf Variable that requires grad is being used in an in-place operation"
    for write in (lambda: x.add_(1), lambda: x.__setitem__(0, 1.0), lambda: x.zero_()):
        with pytest.raises(RuntimeError, match=message):
            write()
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad"):
        x[:2].mul_(2)
    assert x.tolist() == [1.0, 2.0, 3.0]


def test_under_no_grad_a_leaf_is_written_and_stays_a_leaf() -> None:
    x = leaf()
    with tg.no_grad():
        x.add_(1)
        x[0] = 9.0
    assert x.is_leaf and x.requires_grad
    assert x.tolist() == [9.0, 3.0, 4.0]
    assert x._version == 2


def test_a_view_made_under_no_grad_cannot_be_written_with_recording_on() -> None:
    x = leaf() * 1
    with tg.no_grad():
        view = x[:2]
    with pytest.raises(RuntimeError, match="A view was created in no_grad mode"):
        view.mul_(2)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("mode", [tg.no_grad, tg.inference_mode])
def test_a_view_made_without_a_history_stays_without_one(mode: Any, compiled: bool) -> None:
    """Also when the memory is written, recorded or not, and it has to look there again."""
    x, w = leaf(), leaf()

    def rows(x: Any, w: Any) -> Any:
        with mode():
            view = x[1:]
            view.mul_(2)
        written = x * 1
        with mode():
            other = written[1:]
        written.add_(w)
        return view * w[1:], other * 2

    product, other = (tg.compile(rows) if compiled else rows)(x, w)
    assert product.tolist() == [8, 18] and other.tolist() == [12, 18]
    assert not other.requires_grad
    product.sum().backward()
    assert x.grad is None and w.grad.tolist() == [0, 4, 6]


@pytest.mark.parametrize("compiled", [False, True])
def test_a_leaf_that_is_a_view_cannot_be_written_through_views(compiled: bool) -> None:
    """What it is a view of requires no gradient."""

    def write(how: Any) -> Any:
        x = tg.arange(1.0, 5.0).reshape(2, 2).requires_grad_()
        how(x)
        return x

    run = tg.compile(write) if compiled else write
    writes = [lambda x: x[0].mul_(2), lambda x: x.t().unsqueeze_(0), lambda x: x.mul_(2)]
    for how in writes:
        with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad"):
            run(how)
        with tg.no_grad():
            assert run(how).is_leaf


@pytest.mark.parametrize("compiled", [False, True])
def test_a_new_shape_under_no_grad_keeps_the_history(compiled: bool) -> None:
    def transposed(x: Any) -> Any:
        y, view = x * tg.tensor([1.0, 10.0]), x[:]
        with tg.no_grad():
            y.t_()
            view.unsqueeze_(0)
        return y, view

    x = tg.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    y, view = (tg.compile(transposed) if compiled else transposed)(x)
    assert y.grad_fn is not None and view.shape == (1, 2, 2)
    (y * tg.tensor([[1.0, 2.0], [3.0, 4.0]])).sum().backward()
    assert x.grad.tolist() == [[1, 30], [2, 40]]
    (view * view).sum().backward()
    assert x.grad.tolist() == [[3, 34], [8, 48]]


def test_an_overwritten_input_is_named_with_both_lines() -> None:
    x = leaf()
    y = x * 1
    z = (y * y).sum()  # saved here
    y.add_(1)  # overwritten here
    with pytest.raises(RuntimeError, match="modified by an inplace operation") as error:
        z.backward()
    lines = Path(__file__).read_text().splitlines()
    saved = next(at for at, line in enumerate(lines, 1) if line.endswith("# saved here"))
    written = next(at for at, line in enumerate(lines, 1) if line.endswith("# overwritten here"))
    text = str(error.value)
    assert f"saved by MulBackward0 at {__file__}:{saved}" in text
    assert f"overwritten at {__file__}:{written}" in text
    assert "[float32[3]]" in text and "version 1; expected version 0" in text


def test_an_overwritten_output_is_noticed() -> None:
    y = leaf().exp()
    y.add_(1)
    with pytest.raises(RuntimeError, match="saved by ExpBackward0"):
        y.sum().backward()


def test_a_write_through_a_view_detach_or_data_is_noticed() -> None:
    for through in (lambda x: x[:1], lambda x: x.detach(), lambda x: x.view(-1)):
        x = leaf() * 1
        z = (x * x).sum()
        with tg.no_grad():
            through(x).add_(1)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            z.backward()


def test_a_write_that_saved_nothing_is_allowed() -> None:
    x = leaf()
    y = x + 1
    y.add_(1)
    y.sum().backward()
    assert x.grad.tolist() == [1.0] * 3


def test_an_in_place_operation_keeps_its_own_output() -> None:
    x = leaf()
    y = x * 1
    y.exp_()
    y.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), np.exp([1.0, 2.0, 3.0]), rtol=1e-6)


def test_filling_gives_zero_gradients() -> None:
    x = leaf()
    y = x * 2
    y.fill_(7.0)
    assert y.requires_grad
    y.sum().backward()
    assert x.grad.tolist() == [0.0] * 3


def test_copying_a_leaf_does_not_make_the_copy_a_leaf() -> None:
    x = leaf()
    y = tg.zeros(3)
    y.copy_(x)
    assert y.requires_grad and not y.is_leaf
    y.sum().backward()
    assert x.grad.tolist() == [1.0] * 3 and y.grad is None


@pytest.mark.parametrize("index", [..., slice(None)])
def test_assigning_a_leaf_to_all_elements_does_not_make_them_the_leaf(index: Any) -> None:
    x, y = leaf(), tg.zeros(3)
    y[index] = x
    assert y.requires_grad and not y.is_leaf
    (y * y).sum().backward()
    assert x.grad.tolist() == [2.0, 4.0, 6.0] and x.is_leaf
    with tg.no_grad():
        y.zero_()
    assert x.tolist() == [1.0, 2.0, 3.0]


def test_a_view_follows_what_its_base_became() -> None:
    x = leaf()
    base = tg.zeros(5)
    view = base[1:4]
    other = base[:2]
    view.add_(x)
    assert base.requires_grad and view.requires_grad and other.requires_grad
    assert base.grad_fn.name() == "torch::autograd::CopySlices"
    assert view.grad_fn.name() == "SliceBackward0"
    (other * other).sum().backward()
    assert x.grad.tolist() == [2.0, 0.0, 0.0]


def test_detach_shares_memory_and_leaves_history_alone() -> None:
    x = leaf()
    y = x * 2
    bare = y.detach()
    bare[0] = 9.0
    assert not bare.requires_grad
    assert y.tolist() == [9.0, 4.0, 6.0]
    y.sum().backward()
    assert x.grad.tolist() == [2.0] * 3


def test_detach_in_place() -> None:
    y = leaf() * 2
    y.detach_()
    assert y.is_leaf and not y.requires_grad
    with pytest.raises(RuntimeError, match="Can't detach views in-place"):
        (leaf() * 2)[:2].detach_()


def test_views_of_before_their_base_required_grad_have_no_history() -> None:
    x = tg.ones(3)
    part = x[1:]
    x.requires_grad_()
    assert not part.requires_grad and not (part * 2).requires_grad and x[1:].requires_grad
    with pytest.raises(RuntimeError, match="a view of a leaf"):
        part.mul_(2)


def test_detach_in_place_does_nothing_in_inference_mode() -> None:
    y = leaf() * 2
    with tg.inference_mode():
        made = leaf() * 2
        assert y.detach_() is y and y[1:].detach_().tolist() == [4.0, 6.0]
        part = made[1:]
    assert y.requires_grad and not y.is_leaf
    assert part.detach_() is part


def test_detach_in_place_in_a_compiled_function() -> None:
    @tg.compile
    def function(y: Any) -> Any:
        before = y * 3
        y.detach_()
        return before, y * 3

    for _ in range(2):
        x = leaf()
        y = x * 2
        before, after = function(y)
        assert y.is_leaf and not y.requires_grad and not after.requires_grad
        before.sum().backward()
        assert x.grad.tolist() == [6.0] * 3
    with pytest.raises(RuntimeError, match="Can't detach views in-place"):
        function((leaf() * 2)[:2])
    with pytest.raises(tg.TraceError, match=r"detach_\(\) and then requires_grad_\(\) of `y`"):
        tg.compile(lambda y: y.detach_().requires_grad_() * 2)(leaf() * 2)


def test_data_can_be_written_and_replaced() -> None:
    x = leaf()
    x.data.mul_(2)
    assert x.tolist() == [2.0, 4.0, 6.0] and x.requires_grad
    x.data = tg.zeros(4)
    assert x.shape == (4,) and x.requires_grad and x.is_leaf


def test_integer_targets_take_values_without_history() -> None:
    x = leaf()
    counts = tg.zeros(3, dtype=tg.int64)
    counts[:] = x
    assert counts.tolist() == [1, 2, 3] and not counts.requires_grad


# --- .data counts for itself ----------------------------------------------------------------------


def data_of_what_was_saved(T: Any, x: Any) -> Any:
    y = x * 1
    z = y * y
    y.data.add_(1)
    return z


def data_of_a_result_that_was_saved(T: Any, x: Any) -> Any:
    y = x.exp()
    y.data.mul_(2)
    return y


def data_of_what_a_view_was_saved_of(T: Any, x: Any) -> Any:
    y = x * 1
    z = y[1:].sin()
    y.data.zero_()
    return z


def data_of_a_view(T: Any, x: Any) -> Any:
    y = x * 1
    z = y * y
    y[1:].data.mul_(3)
    return z + y


def a_view_of_data(T: Any, x: Any) -> Any:
    y = x * 1
    z = y * y
    y.data[:2].neg_()
    return z + y


def data_saved_and_its_tensor_written(T: Any, x: Any) -> Any:
    y = x * 1
    z = x * y.data
    with T.no_grad():
        y.add_(1)
    return z


def data_saved_and_written(T: Any, x: Any) -> Any:
    d = (x * 1).data
    z = x * d
    d.add_(1)
    return z


def data_saved_and_written_through_its_view(T: Any, x: Any) -> Any:
    d = (x * 1).data
    z = x * d
    d[:1].add_(1)
    return z


def data_saved_and_another_written(T: Any, x: Any) -> Any:
    y = x * 1
    z = x * y.data
    y.data.add_(1)
    return z


def data_of_an_in_place_result(T: Any, x: Any) -> Any:
    y = x * 1
    y.tanh_()
    y.data.mul_(0.5)
    return y


def detached_and_written(T: Any, x: Any) -> Any:
    y = x * 1
    z = y * y
    y.detach().add_(1)
    return z


DATA_PROGRAMS = [
    data_of_what_was_saved, data_of_a_result_that_was_saved, data_of_what_a_view_was_saved_of,
    data_of_a_view, a_view_of_data, data_saved_and_its_tensor_written, data_saved_and_written,
    data_saved_and_written_through_its_view, data_saved_and_another_written,
    data_of_an_in_place_result, detached_and_written,
]  # fmt: skip


def ends_as(T: Any, program: Any, compiled: bool = False) -> Any:
    x = T.tensor([0.5, 1.0, 1.5], requires_grad=True)
    try:
        call = lambda x: program(T, x)  # noqa: E731
        result = (tg.compile(call) if compiled else call)(x)
        result.sum().backward()
    except RuntimeError as error:
        assert "modified by an inplace operation" in str(error)
        return "refused"
    return result.tolist(), x.grad.tolist()


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("program", DATA_PROGRAMS, ids=lambda each: each.__name__)
def test_writes_through_data_are_pytorch_s(program: Any, compiled: bool) -> None:
    torch = pytest.importorskip("torch", reason="compares with PyTorch, which is not installed")
    found, expected = ends_as(tg, program, compiled), ends_as(torch, program)
    assert isinstance(found, str) == isinstance(expected, str)
    if found != "refused":
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-6)


def test_data_has_a_version_of_its_own() -> None:
    x = leaf()
    first, second = x.data, x.data
    first.add_(1)
    first[:1].add_(1)
    assert (x._version, first._version, second._version) == (0, 2, 0)
    with tg.no_grad():
        x.add_(1)
    assert (x._version, first._version, second._version) == (1, 2, 0)
    assert x.tolist() == first.tolist() == second.tolist() == [4.0, 4.0, 5.0]


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_writes_through_data_of_the_outside(compiled: bool) -> None:
    x = tg.tensor([1.0, 2.0])
    d, view = x.data, x[1:]

    def write() -> Any:
        x.data.mul_(2)
        d.add_(1)
        return view * 1

    call = tg.compile(write) if compiled else write
    assert call().tolist() == [5.0] and call().tolist() == [11.0]
    assert x.tolist() == [7.0, 11.0] and view.tolist() == [11.0]
    assert (x._version, d._version, view._version) == (0, 2, 0)


def test_a_new_data_leaves_the_count_alone() -> None:
    x, y = tg.ones(2), tg.zeros(2)
    x.add_(1)
    x.data = y
    y.add_(1)
    assert (x._version, y._version) == (1, 1) and x.tolist() == [1.0, 1.0]


# --- what is detached has a history of its own ----------------------------------------------------


def a_part_of_what_is_detached(a: Any, w: Any) -> Any:
    d = a.detach()
    d.mul_(w)
    d[1:] = d[1:] * 2
    view = d[:1]
    view.sin_()
    return d.sum() + (view * view).sum()


def views_of_data(a: Any, w: Any) -> Any:
    d = a.data
    view = d[0]
    deeper = view.detach()[1:]
    deeper.add_(0.5)
    d.mul_(w)
    view.mul_(w[0])
    return d.sum() + (view * view).sum()


def detached_twice(a: Any, w: Any) -> Any:
    d = a.detach()
    e = d[1:].detach()
    f = e[0]
    a.add_(1)
    f.mul_(2)
    d.add_(3)
    return (f * w[0]).sum() + (e * w[1:]).sum() + (a * w).sum()


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("program", [a_part_of_what_is_detached, views_of_data, detached_twice])
def test_views_of_what_is_detached(program: Any, compiled: bool) -> None:
    """Gradients against finite differences, and memory that all of them share."""
    call = tg.compile(program) if compiled else program

    def run(w: Any) -> Any:
        return program(tg.arange(6.0, dtype=tg.float64).reshape(2, 3) / 6, w)

    for _ in range(2):
        a = tg.arange(6.0, dtype=tg.float64).reshape(2, 3) / 6
        w = tg.tensor(BASE[:2, :3], requires_grad=True)
        call(a, w).backward()
        step = 1e-6 * np.random.RandomState(2).randn(2, 3)
        with tg.no_grad():
            change = (run(w + step) - run(w - step)).item()
        assert abs((w.grad.numpy() * step).sum() * 2 - change) < 1e-12
        other = tg.arange(6.0, dtype=tg.float64).reshape(2, 3) / 6
        program(other, w.detach())
        assert a.tolist() == other.tolist() and a._version == other._version
        assert not a.requires_grad


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_views_of_what_is_detached_are_returned_as_views(compiled: bool) -> None:
    def program(a: Any) -> Any:
        d = a.data
        view = d[1]
        return d, view, view.detach()[1:]

    a = tg.zeros(2, 3)
    for each in (tg.compile(program) if compiled else program)(a):
        each.add_(1)
    assert a.tolist() == [[1, 1, 1], [2, 3, 3]] and a._version == 0
