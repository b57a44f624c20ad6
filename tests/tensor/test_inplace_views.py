"""Methods that change the shape of a tensor object itself, beside views of it and backward."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import tgraph as tg


def test_views_of_what_changes_its_shape_stay_views() -> None:
    x = tg.arange(6.0, requires_grad=True)
    y = x * 1
    view, plain = y[2:], y.detach()
    y.unsqueeze_(1).t_()
    y.mul_(2)
    view.mul_(3)
    assert y.tolist() == [[0, 2, 12, 18, 24, 30]] and plain.tolist() == y[0].tolist()
    (y.sum() + view.sum()).backward()
    assert x.grad.tolist() == [2, 2, 12, 12, 12, 12]


def test_memory_is_that_of_before() -> None:
    x = tg.arange(6)
    row = x[:2]
    assert x.as_strided_((2, 2), (3, 1)).tolist() == [[0, 1], [3, 4]]
    assert x.as_strided_((6,), (1,)).tolist() == [0, 1, 2, 3, 4, 5]
    y = tg.ones(2, 3, requires_grad=True) * 2
    shown = y[0]
    with pytest.raises(RuntimeError, match=r"as_strided_\(\): a tensor that requires grad"):
        y.as_strided_((2,), (1,))
    assert shown.tolist() == [2, 2, 2]
    assert x.resize_(2, 2).resize_(6).tolist() == [0, 1, 2, 3, 4, 5]
    assert x.resize_(7).tolist() == [0, 1, 2, 3, 4, 5, 0]
    assert x.fill_(7).tolist() == [7] * 7 and row.tolist() == [7, 7]
    alone = tg.tensor([1, 2])
    assert alone.resize_(2, 2).shape == (2, 2) and alone[0].tolist() == [1, 2]
    # A tensor that is pointed at its own memory is no view of itself.
    whole = tg.arange(3)
    assert whole.set_(whole.untyped_storage(), 1, (2,)).tolist() == [1, 2]
    assert whole.set_(whole.untyped_storage()).tolist() == [0, 1, 2]


def test_backward_and_leaves_refuse_other_shapes() -> None:
    leaf = tg.ones(2, requires_grad=True)
    for write in (leaf.unsqueeze_, leaf.t_, leaf.squeeze_):
        with pytest.raises(RuntimeError, match="leaf"):
            write(0) if write == leaf.unsqueeze_ else write()
    with pytest.raises(RuntimeError, match="cannot resize"):
        leaf.resize_(1)
    saved = leaf * 1
    square = saved * saved
    saved.unsqueeze_(0)
    with pytest.raises(RuntimeError, match="modified by an inplace"):
        square.sum().backward()


def test_traced_code_changes_its_own_tensors_alone() -> None:
    def own(x: tg.Tensor) -> tuple[tg.Tensor, tg.Tensor]:
        y = x * 2
        view = y[1:]
        y.unsqueeze_(0)
        view.mul_(3)
        return y.add_(1), view

    x = tg.arange(4.0)
    for found, wanted in zip(tg.compile(own)(x), own(x), strict=True):
        assert found.tolist() == wanted.tolist()
    refused: list[Callable[[tg.Tensor], tg.Tensor]] = [
        lambda y: y.unsqueeze_(0), lambda y: y + x.unsqueeze_(0), lambda y: (y * 1).resize_(2)
    ]  # fmt: skip
    for each in refused:
        with pytest.raises(RuntimeError, match="in a traced"):
            tg.compile(each)(x)
    assert x.shape == (4,)


def test_positions_outside_are_errors_of_both_classes() -> None:
    x, at = tg.zeros(3), tg.tensor([5])
    for run in (lambda x, at: x.gather(0, at), lambda x, at: x.scatter(0, at, 1.0)):
        for each in (run, tg.compile(run)):
            for kind in (IndexError, RuntimeError):
                with pytest.raises(kind, match="index 5 is out of bounds"):
                    each(x, at)
