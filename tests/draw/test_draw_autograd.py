import pytest

import tgraph as tg
from tgraph import nn
from tgraph.autograd import Function
from tgraph.drawing.autograd_picture import autograd_picture


def boxes(picture):
    return {box.title: box for box in picture.boxes}


def arrows(picture):
    names = {box.key: box.title for box in picture.boxes}
    return [(names[arrow.source], names[arrow.target]) for arrow in picture.arrows]


def test_records_lead_from_leaves_to_the_tensor():
    x = tg.ones(2, 3, requires_grad=True)
    loss = (x * 2).sum()
    picture = autograd_picture(loss, {id(x): "x", id(loss): "loss"})
    assert arrows(picture) == [
        ("x", "MulBackward0"), ("MulBackward0", "SumBackward0"), ("SumBackward0", "loss"),
    ]  # fmt: skip
    found = boxes(picture)
    assert found["x"].lines == ("float32[2, 3]",) and found["x"].kind == "leaf"
    assert found["MulBackward0"].lines[-1].startswith("test_draw_autograd.py:")
    assert "loss = (x * 2).sum()" in found["MulBackward0"].tooltip
    assert picture.title == "autograd graph of loss"
    assert [arrow.label for arrow in picture.arrows] == ["", "2×3", ""]


def test_saved_values_are_counted_and_shown_as_freed():
    x = tg.ones(4, requires_grad=True)
    y = x.exp()
    picture = autograd_picture(y)
    assert boxes(picture)["ExpBackward0"].lines[1] == "saves 16 B"
    assert "saves float32[4]" in boxes(picture)["ExpBackward0"].tooltip
    assert "16 B saved for the backward pass" in picture.summary
    y.sum().backward()
    freed = autograd_picture(y)
    assert boxes(freed)["ExpBackward0"].lines[1] == "saved values freed"
    assert "holds a gradient" in boxes(freed)["leaf"].tooltip
    assert "0 B saved" in freed.summary


def test_what_needs_no_gradient_is_not_there():
    x, y = tg.ones(2, requires_grad=True), tg.ones(2)
    assert arrows(autograd_picture(x * y)) == [("leaf", "MulBackward0"), ("MulBackward0", "output")]


def test_a_shared_value_is_one_box():
    x = tg.ones(2, requires_grad=True)
    y = x.exp()
    picture = autograd_picture(y * y + x)
    assert [box.title for box in picture.boxes].count("ExpBackward0") == 1
    assert arrows(picture).count(("ExpBackward0", "MulBackward0")) == 1


def test_parameters_views_and_functions_of_ones_own():
    class Double(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    w = nn.Parameter(tg.ones(2, 2))
    picture = autograd_picture(Double.apply(w.t()).sum(), {id(w): "w"})
    found = boxes(picture)
    assert found["w"].kind == "parameter"
    assert found["DoubleBackward"].kind == "opaque"
    assert "saves 16 B" in found["DoubleBackward"].lines


def test_a_compiled_function_is_one_box():
    f = tg.compile(lambda x: (x * x).sum())
    x = tg.ones(8, requires_grad=True)
    picture = autograd_picture(f(x))
    (box,) = [each for each in picture.boxes if each.kind == "compiled"]
    assert box.title == "CompiledFunctionBackward"
    assert "saves 32 B" in box.lines


def test_a_write_through_a_view():
    x = tg.ones(3, requires_grad=True)
    y = x * 1
    y[0] = 5.0
    assert "CopySlices" in boxes(autograd_picture(y))


def test_a_leaf_alone():
    x = tg.ones(3, requires_grad=True)
    assert arrows(autograd_picture(x, {id(x): "x"})) == [("x", "x")]


def test_a_tensor_without_history():
    with pytest.raises(RuntimeError, match=r"float32\[3\] that does not require grad has no hist"):
        tg.draw(tg.ones(3))


def test_a_long_history():
    value = x = tg.ones(1, requires_grad=True)
    for _ in range(20_000):
        value = value + x
    assert len(autograd_picture(value).boxes) == 20_002
