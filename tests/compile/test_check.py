"""compile(check=True) finds what is wrong, and is quiet where nothing is."""

import ctypes
import inspect
import re

import pytest
from tgraph.compiler import pipeline
from tgraph.compiler.ir import primitives as p
from tgraph.compiler.ir import transform
from tgraph.compiler.targets.cpu import scalar as llvm_scalar

import tgraph as tg
from tgraph import nn
from tgraph.compiled.check import CheckError

X = tg.tensor([[0.5, -1.0, 2.0], [1.5, 0.25, -0.75]])


def miscompile(monkeypatch, old, new):
    """Plant a pass that makes `new` of every `old`."""

    def wrong(graph):
        def rewrite(build, node, operands):
            if node.primitive is old:
                return build.apply(new, operands, node.attrs, node.where)
            return build.rebuild(node, operands)

        return transform(graph, rewrite)

    planted = pipeline.Pass("planted", wrong, "to be found")
    monkeypatch.setattr(pipeline, "PASSES", (*pipeline.PASSES[:2], planted, *pipeline.PASSES[2:]))


def line_of(function, offset):
    return f"{__file__}:{inspect.getsourcelines(function)[1] + offset}"


def test_correct_functions_pass():
    model = nn.Sequential(nn.Linear(3, 4), nn.GELU(), nn.Dropout(0.5), nn.Linear(4, 2))
    optimizer = tg.optim.AdamW(model.parameters(), lr=0.01)
    total = tg.zeros(())

    @tg.compile(check=True)
    def step(x, scale):
        optimizer.zero_grad()
        loss = (model(x) * scale).square().mean()
        loss.backward()
        optimizer.step()
        total.add_(loss.detach())
        return loss, x * scale

    for scale in (1.0, 2.0, 3.0):
        step(X, scale)
    assert len(step.compiles) == 2 and total.item() > 0

    checked = tg.compile(model, check=True)
    assert checked(X).requires_grad
    view = tg.zeros(2, 6)[:, ::2]
    writes = tg.compile(lambda x: x.add_(1).sum(), check=True)
    assert writes(view).item() == 6 and writes(view).item() == 12
    empty = tg.compile(lambda x: (x > 0, x.sum(0), x / 0), check=True)
    empty(tg.zeros(0, 3))
    empty(X)


def test_a_wrong_pass_is_found(monkeypatch):
    miscompile(monkeypatch, p.tanh, p.sin)

    def function(x):
        y = x * 2 + 1
        z = y.tanh()
        return (z * y).sum(), y

    with pytest.raises(CheckError, match="compiled 'function' differs from eager code") as caught:
        tg.compile(function, check=True)(X)
    text = str(caught.value)
    assert f"tanh of type float32[2, 3], at {line_of(function, 2)}" in text
    assert "The pass 'planted' changed its value." in text
    assert "kernel" in text
    assert caught.value.node.primitive is p.tanh
    assert "tanh" in str(caught.value.graph)


def test_a_wrong_kernel_is_found(monkeypatch):
    """A scalar template that writes the wrong instruction: the graph is right, its code is not."""
    monkeypatch.setitem(llvm_scalar.TEMPLATES, "minimum", llvm_scalar.TEMPLATES["maximum"])

    def function(x, y):
        z = x @ y
        z = z - z.amax(1, keepdim=True)
        return tg.minimum(z.exp(), tg.full((), 0.5)).sum(), z

    with pytest.raises(CheckError, match="compiled 'function' differs from eager code") as caught:
        tg.compile(function, check=True)(X, X.t().contiguous())
    text = str(caught.value)
    assert f"minimum of type float32[2, 2], at {line_of(function, 3)}" in text
    assert re.search(r"computed by kernel k\d_\w*minimum \[kernel\]", text)
    assert "The optimised graph is right; the kernel computes something else." in text
    assert caught.value.node.primitive is p.minimum


def test_a_wrong_gradient_is_found(monkeypatch):
    # Only the gradient of tan has an addition with one.
    w = tg.tensor([1.0, 0.5, 0.25], requires_grad=True)

    def function(x):
        return (x * w).sin().sum()

    compiled = tg.compile(function, check=True)
    compiled(X)
    miscompile(monkeypatch, p.cos, p.sin)
    compiled = tg.compile(function, check=True)
    with pytest.raises(CheckError, match="the gradient of `w`") as caught:
        compiled(X)
    assert caught.value.node.primitive is p.cos
    assert line_of(function, 1) in str(caught.value)


def test_wrong_new_values_are_found(monkeypatch):
    miscompile(monkeypatch, p.exp, p.log1p)
    state = tg.zeros(3)

    @tg.compile(check=True)
    def function(x):
        state.add_(x[0].exp())

    with pytest.raises(CheckError, match="the new value of `state`"):
        function(X)


def test_what_is_not_watched_is_found():
    box = ctypes.c_double(1.0)
    function = tg.compile(lambda x: x * ctypes.pointer(box)[0], check=True)
    function(X)
    box.value = 2.0
    with pytest.raises(CheckError, match="reads something that changes between calls"):
        function(X)


def test_another_structure_is_found():
    calls = ctypes.c_int(1)
    function = tg.compile(lambda x: (x,) * ctypes.pointer(calls)[0], check=True)
    function(X)
    calls.value = 2
    with pytest.raises(CheckError, match="another structure"):
        function(X)
        function(X)


def test_random_numbers_are_the_same_on_both_sides():
    tg.manual_seed(3)
    function = tg.compile(lambda: tg.rand(3) + tg.randn(3), check=True)
    checked = [function() for _ in range(3)]
    tg.manual_seed(3)
    for each in checked:
        assert tg.equal(each, function.function())
