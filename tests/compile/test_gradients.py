"""Gradients of compiled functions, of any order, from inside and outside."""

import numpy as np
import pytest

import tgraph as tg
from tgraph import nn
from tgraph.autograd import Function
from tgraph.autograd import grad as gradient


def same(a, b):
    np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=2e-5, atol=1e-6)


def random(*shape, seed=0):
    values = np.random.default_rng(seed).uniform(0.3, 1.7, shape)
    return tg.tensor(values.astype(np.float64))


FUNCTIONS = {
    "product": lambda x, y: (x * y).sum(),
    "chain": lambda x, y: ((x * y).tanh().exp() / (1 + x * x)).sum(),
    "matmul": lambda x, y: ((x @ y.t()) ** 2).sum(),
    "softmax": lambda x, y: (x.softmax(-1) * y).log().sum(),
    "layer norm": lambda x, y: (
        ((x - x.mean(1, keepdim=True)) / (x.var(1, keepdim=True) + 0.1).sqrt()) * y
    ).sum(),
    "views": lambda x, y: (x.t()[1:].reshape(-1) * y[:, :2].reshape(-1)).prod(),
    "indexing": lambda x, y: (x[tg.tensor([0, 0, 2])] * y).square().sum(),
    "where": lambda x, y: tg.where(x > y, x * x, y * y * y).sum(),
    "in place": lambda x, y: (x.clone().add_(y).mul_(2).add_(x)).square().sum(),
    "extremes": lambda x, y: (x.amax(1) * y.amin(0)[0]).sum(),
    "one input": lambda x, y: (x**3).sum() + y.detach().sum(),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_to_the_third_order(name):
    function = FUNCTIONS[name]
    compiled = tg.compile(function)

    def derivatives(f):
        x, y = random(3, 3).requires_grad_(), random(3, 3, seed=1).requires_grad_()
        values, found = [f(x, y)], []
        for order in range(3):
            grads = gradient(values, [x, y], create_graph=True, allow_unused=True)
            found += [each for each in grads if each is not None]
            values = [(each * (order + each.detach())).sum() for each in grads if each is not None]
            values = [value for value in values if value.requires_grad]
            if not values:
                break
        return found

    wanted = derivatives(function)
    for _ in range(2):
        found = derivatives(compiled)
        assert len(found) == len(wanted) >= 2
        for a, b in zip(found, wanted, strict=True):
            same(a, b)
    assert len(compiled.compiles) == 1


def test_transforms_around_and_inside():
    def function(x):
        return (x.sin() * x * x).sum()

    x = random(4)
    wanted = tg.grad(lambda z: tg.grad(function)(z).sum())(x)
    compiled = tg.compile(function)
    same(tg.grad(lambda z: tg.grad(compiled)(z).sum())(x), wanted)
    same(tg.compile(tg.grad(lambda z: tg.grad(function)(z).sum()))(x), wanted)
    same(tg.compile(tg.grad(lambda z: tg.grad(compiled)(z).sum()))(x), wanted)
    same(tg.grad(tg.compile(lambda z: tg.grad(compiled)(z).sum()))(x), wanted)
    value, grads = tg.compile(tg.value_and_grad(function))(x)
    same(value, function(x))
    same(grads, tg.grad(function)(x))


def test_captured_parameters_get_gradients():
    model = tg.nn.Sequential(tg.nn.Linear(3, 4), tg.nn.GELU(), tg.nn.Linear(4, 2))
    compiled = tg.compile(model)
    x = random(5, 3).float()
    model(x).square().sum().backward()
    wanted = [each.grad for each in model.parameters()]
    for _ in range(2):
        model.zero_grad()
        compiled(x).square().sum().backward()
        for parameter, grad in zip(model.parameters(), wanted, strict=True):
            same(parameter.grad, grad)
    assert len(compiled.compiles) == 1


def test_several_results_of_which_some_are_used():
    @tg.compile
    def function(x, y):
        return x * y, (x + y).exp(), x.detach() * 2, (y > 1)

    for used in ([0], [1], [0, 1]):
        x, y = random(3).requires_grad_(), random(3, seed=1).requires_grad_()
        results = function(x, y)
        assert [each.requires_grad for each in results] == [True, True, False, False]
        grads = gradient([results[at].sum() for at in used], [x, y])
        eager = function.function(x, y)
        wanted = gradient([eager[at].sum() for at in used], [x, y])
        for a, b in zip(grads, wanted, strict=True):
            same(a, b)


def test_detach_and_no_grad_keep_their_meaning_in_every_order():
    def function(x):
        with tg.no_grad():
            frozen = x * 3
        return (x.detach() * x + frozen * x).sum()

    for f in (function, tg.compile(function)):
        x = random(3).requires_grad_()
        (first,) = gradient(f(x), x, create_graph=True)
        same(first, x.detach() * 4)
        assert not first.requires_grad or gradient(first.sum(), x, allow_unused=True) == (None,)


def test_custom_gradients():
    class Odd(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 1

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return grad * 100 * x

    compiled = tg.compile(lambda x: Odd.apply(x).sum())
    x = random(3).requires_grad_()
    (first,) = gradient(compiled(x), x, create_graph=True)
    same(first, x * 100)
    (second,) = gradient(first.sum(), x)
    same(second, tg.full((3,), 100.0))


def test_a_custom_gradient_that_reads_tensors_of_the_outside():
    factor = tg.full((3,), 7.0, dtype=tg.float64)

    class Scaled(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, grad):
            return grad * factor

    compiled = tg.compile(lambda x: Scaled.apply(x).sum())
    x = random(3).requires_grad_()
    for _ in range(2):
        same(gradient(compiled(x), x)[0], factor)
        factor.add_(1)


def test_only_what_is_asked_for_is_computed():
    compiled = tg.compile(lambda x, y: (x * y).sum())
    x, y = random(3).requires_grad_(), random(3, seed=1).requires_grad_()
    same(gradient(compiled(x, y), y)[0], x)
    same(gradient(compiled(x, y), x)[0], y)
    assert compiled(x.detach(), y).requires_grad
    assert not compiled(x.detach(), y.detach()).requires_grad
    with tg.no_grad():
        assert not compiled(x, y).requires_grad
    reasons = [record.reason for record in compiled.compiles]
    assert reasons[-1] == "gradient mode changed: True -> False"
    assert len(reasons) == 4


def test_backward_twice_needs_retain_graph():
    compiled = tg.compile(lambda x: (x * x).sum())
    x = random(3).requires_grad_()
    loss = compiled(x)
    loss.backward(retain_graph=True)
    loss.backward()
    same(x.grad, x * 4)
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        loss.backward()


def test_results_that_were_saved_are_watched():
    compiled = tg.compile(lambda x: x.exp())
    x = random(3).requires_grad_()
    result = compiled(x)
    with tg.no_grad():
        result.add_(1)
    try:
        result.sum().backward()
    except RuntimeError as error:
        assert "modified by an inplace operation" in str(error)
    else:  # computed again rather than saved
        same(x.grad, x.exp())


def test_gradients_flow_through_arguments_with_a_history():
    compiled = tg.compile(lambda x: x.square().sum())
    w = random(3).requires_grad_()
    for _ in range(2):
        w.grad = None
        compiled(w * 2).backward()
        same(w.grad, w * 8)
    base = random(2, 3).requires_grad_()
    compiled(base[1]).backward()
    assert base.grad[0].tolist() == [0, 0, 0]
    same(base.grad[1], base[1] * 2)


def test_captured_tensors_with_a_history():
    w = random(3).requires_grad_()
    scaled = w * 2
    compiled = tg.compile(lambda: scaled.square().sum())
    compiled().backward(retain_graph=True)
    same(w.grad, w * 8)


def test_leaves_that_are_views():
    whole = tg.arange(6.0)
    row = whole.reshape(2, 3)[1].requires_grad_()
    detached = (random(3) * 1).detach().requires_grad_()
    compiled = tg.compile(lambda: (row * row).sum() + (detached**3).sum())
    for _ in range(2):
        row.grad = detached.grad = None
        compiled().backward()
        assert row.grad.tolist() == [6, 8, 10]
        same(detached.grad, 3 * detached**2)

    @tg.compile
    def step():
        row.grad = None
        (row * row).sum().backward()
        with tg.no_grad():
            row.sub_(row.grad, alpha=0.5)

    step()
    assert row.tolist() == [0, 0, 0] and whole.tolist() == [0, 1, 2, 0, 0, 0]
    assert row.requires_grad and row.is_leaf
    assert len(step.compiles) == len(compiled.compiles) == 1


def test_a_detached_view_that_gets_a_history():
    base, w = tg.ones(2), tg.ones(2, requires_grad=True)
    detached = base.detach()

    @tg.compile
    def function():
        detached.add_(w * 3)

    function()
    assert detached.requires_grad and not base.requires_grad and base.tolist() == [4, 4]
    (detached * 2).sum().backward()
    assert w.grad.tolist() == [6, 6]
    function()  # now a tensor with a history
    assert "requiring grad" not in function.compiles[0].reason
    assert function.compiles[1].reason == (
        "captured tensor `detached` changed: float32[2] -> float32[2] with a history"
    )
    (detached * 2).sum().backward()  # the history of both calls, which keep no values
    assert w.grad.tolist() == [18, 18]


def test_a_detached_view_that_is_read_after_its_base_was_written():
    base, w = tg.ones(2), tg.ones(2, requires_grad=True)
    detached = base.detach()
    leaf = base.detach().requires_grad_()

    @tg.compile
    def function():
        base.mul_(2)
        total = (leaf * 5).sum()
        detached.add_(w)
        return total

    function().backward()
    assert leaf.grad.tolist() == [5, 5]
    assert detached.requires_grad and base.tolist() == [3, 3]
    function()
    assert function.compiles[1].reason.startswith("captured tensor `detached` changed")


def test_a_detached_view_with_a_history_is_returned():
    base, w = tg.ones(2), tg.ones(2, requires_grad=True)

    @tg.compile
    def function():
        detached = base.detach()
        detached.add_(w * 3)
        return detached, base[0].requires_grad_()

    detached, first = function()
    assert detached.requires_grad and not base.requires_grad
    assert first.requires_grad and first.is_leaf
    (detached * 2).sum().backward()
    assert w.grad.tolist() == [6, 6]
    detached.detach().zero_()
    assert base.tolist() == [0, 0] and first.item() == 0


def test_backward_inside_stops_at_what_was_computed_outside():
    w = random(3).requires_grad_()

    @tg.compile
    def function(x):
        (x * x).sum().backward()

    with pytest.raises(tg.TraceError, match="reached 'x', which was computed outside"):
        function(w * 2)
    function(w)
    same(w.grad, w * 2)


def test_non_contiguous_inputs_and_cotangents():
    compiled = tg.compile(lambda x: x * x)
    memory = random(4, 6)
    x, y = memory.t().requires_grad_(), memory.t().clone().requires_grad_()
    weight = random(4, 6, seed=2).t()
    (compiled(x) * weight).sum().backward()
    ((y * y) * weight).sum().backward()
    same(x.grad, y.grad)
    z = random(3).requires_grad_()
    compiled(z).sum().backward()  # an expanded cotangent
    same(z.grad, z * 2)


def test_a_leaf_made_inside_is_a_leaf_outside():
    result = tg.compile(lambda: tg.zeros(3, requires_grad=True))()
    assert result.requires_grad and result.is_leaf


FACTOR = tg.tensor([2.0, 3.0], requires_grad=True)


def _flag_of_an_argument(x):
    y = x * 2
    x.requires_grad_()
    return (x**3 * FACTOR + y).sum(), x


def _flag_of_what_was_written(x):
    x[0] = 5.0
    x.requires_grad = True
    return (x * x).sum(), x


def _copy(x):
    leaf = x.clone().detach().requires_grad_()
    return (leaf**3 * FACTOR).sum(), leaf


def _detached(x):
    leaf = x.detach().requires_grad_()
    other = tg.nn.Parameter(x + 1)
    return (leaf * other * leaf * FACTOR).sum(), leaf, {"other": [other]}


def _nothing_of_the_outside(x):
    leaf = tg.zeros(2, requires_grad=True)
    leaf.register_hook(lambda grad: grad * 10)
    return (leaf + x).square().sum(), leaf


def _derived_inside(x):
    leaf = x.detach().requires_grad_()
    (slope,) = tg.autograd.grad((leaf**3).sum(), leaf, create_graph=True)
    return (slope * FACTOR).sum(), leaf


@pytest.mark.parametrize(
    "function",
    [_flag_of_an_argument, _flag_of_what_was_written, _copy, _detached, _nothing_of_the_outside,
     _derived_inside],
)  # fmt: skip
def test_gradients_of_leaves_that_the_function_makes(function):
    def gradients(run, start):
        FACTOR.grad = None
        y, leaf, *_ = run(tg.tensor([start, 1.0]))
        (slope,) = gradient(y, leaf, create_graph=True)
        y.backward(retain_graph=True)
        slope.square().sum().backward()
        return y, leaf, slope, leaf.grad, *([] if FACTOR.grad is None else [FACTOR.grad])

    compiled = tg.compile(function)
    for start in (2.0, 3.0):
        found, wanted = gradients(compiled, start), gradients(function, start)
        assert len(found) == len(wanted)
        for a, b in zip(found, wanted):
            same(a, b)


def test_gradients_of_leaves_for_any_size():
    compiled = tg.compile(_copy, dynamic={"x": 0})
    with tg.no_grad():
        _, leaf = compiled(tg.ones(2))
    y, leaf = compiled(tg.ones(2))
    y.backward()
    assert leaf.grad.tolist() == [6.0, 9.0]


def test_gradients_that_a_result_has():
    def step(x):
        leaf = tg.ones(2, requires_grad=True)
        hidden = leaf * x
        hidden.retain_grad()
        hidden.square().sum().backward()
        return leaf, hidden, hidden.grad

    compiled = tg.compile(step)
    for start in (1.0, 2.0):
        leaf, hidden, grad = compiled(tg.full((2,), start))
        assert leaf.grad.tolist() == [2 * start**2] * 2 and hidden.grad is grad


@pytest.mark.parametrize("dynamic", [None, {"x": 0}])
def test_results_of_which_retain_grad_was_asked(dynamic):
    def step(x):
        inner, result = x.exp(), x * x
        for each in (inner, result):
            each.retain_grad()
        return result, inner * 2

    found = []
    for function in (step, tg.compile(step, dynamic=dynamic)):
        for create_graph in (False, True):
            x = random(3).requires_grad_()
            result, other = function(x)
            assert result.retains_grad and not other.retains_grad
            (result * result).sum().backward(retain_graph=True, create_graph=create_graph)
            first = x.grad, result.grad
            (other + result).sum().backward(tg.tensor(2.0))
            found.append([*first, x.grad, result.grad])
    for eager, compiled in zip(found[:2], found[2:], strict=True):
        for a, b in zip(eager, compiled, strict=True):
            same(a, b)


def test_a_kept_gradient_of_a_result_is_the_one_before_hooks_of_inside():
    """As `torch.compile` has it; docs/differences.md."""

    def step(x):
        result = x * x
        result.register_hook(lambda grad: grad * 3)
        result.retain_grad()
        return result

    for function, kept in ((step, 3), (tg.compile(step), 1)):
        x = tg.tensor([2.0], requires_grad=True)
        result = function(x)
        result.sum().backward()
        assert (result.grad.item(), x.grad.item()) == (kept, 12)


def test_a_view_of_an_argument_has_its_history():
    compiled = tg.compile(lambda x: x[1:])
    x = random(3).requires_grad_()
    compiled(x).sum().backward()
    assert x.grad.tolist() == [0, 1, 1]


def test_random_numbers_are_the_same_in_backward():
    def function(x):
        return nn.functional.dropout(x * x, 0.5).sum()

    compiled, grads = tg.compile(function), []
    for f in (function, compiled):
        tg.manual_seed(3)
        x = random(50).requires_grad_()
        f(x).backward()
        grads.append(x.grad)
        (first,) = gradient(f(x), x, create_graph=True)
        grads.append(gradient(first.sum(), x)[0])
    same(grads[0], grads[2])
    same(grads[1], grads[3])


def test_second_gradients_of_a_broadcast_cotangent():
    """What a backward pass saves for the next is read as it lies, here 0 bytes apart."""

    def function(x, y):
        return (x - y) * (x - y)

    found = []
    for f in (function, tg.compile(function)):
        x, y = random(3, 4).requires_grad_(), random(3, 4, seed=1).requires_grad_()
        first = gradient(f(x, y).sum(), [x, y], create_graph=True)
        found.append(gradient(sum((each * each).sum() for each in first), [x, y]))
    for eager, compiled in zip(*found, strict=True):
        same(eager, compiled)


@pytest.mark.parametrize("dynamic", [None, {"x": 0, "y": 0}])
def test_what_is_overwritten_is_kept_densely_whatever_its_strides(dynamic):
    def product(x, y):
        x.mul_(y)
        return x

    for of in (lambda x: x[:, 1::2], lambda x: x.t()[:, :3], lambda x: x[::2, 1:4]):
        for create_graph in (False, True):
            x, y = of(random(7, 7)), of(random(7, 7, seed=1)).detach().requires_grad_()
            before = x.clone()
            result = tg.compile(product, dynamic=dynamic)(x, y).sum()
            same(gradient(result, y, create_graph=create_graph)[0], before)


def steep(x, y):
    logs = tg.cat([x.log(), y])
    return x * y, x.sqrt() @ y.t(), logs, tg.where(x > 0, x.log(), (x[1:2] / 0).cumsum(0)).mean(0)


@pytest.mark.parametrize("dynamic", [None, {"x": 0, "y": 0}])
def test_what_nothing_comes_into_has_no_part_in_gradients(dynamic):
    """Where a slope is infinite, zeros in the place of a missing cotangent would give NaN."""
    found = []
    for function in (steep, tg.compile(steep, dynamic=dynamic)):
        for used in ([0], [2], [0, 2], [3]):
            x, y = random(3, 3), random(3, 3, seed=1).requires_grad_()
            x[1], x[2, 0] = 0, -1
            x.requires_grad_()
            results = function(x, y)
            values = [(results[at] * results[at].detach().nan_to_num()).sum() for at in used]
            first = gradient(values, [x, y], create_graph=True, allow_unused=True)
            first = [each for each in first if each is not None]
            found.append([*first, *gradient(values, x)])
            if used == [0]:
                found[-1] += gradient(sum((each * each).sum() for each in first), [x, y])
                assert all(each.isfinite().all() for each in found[-1])
    for eager, compiled in zip(found[:4], found[4:], strict=True):
        assert len(eager) == len(compiled)
        for a, b in zip(eager, compiled, strict=True):
            np.testing.assert_allclose(b.detach().numpy(), a.detach().numpy(), rtol=1e-12)


def test_complex_results_into_which_nothing_comes():
    compiled = tg.compile(lambda z: ((z**3).sum().real, (z**2).sum().imag))
    for at, slope in enumerate((lambda z: 3 * z * z, lambda z: 2j * z)):
        z = tg.tensor([1 + 2j, 2 - 1j], requires_grad=True)
        compiled(z)[at].backward()
        same(tg.view_as_real(z.grad), tg.view_as_real(slope(z.detach()).conj() * (1, -1)[at]))


def test_results_without_a_gradient_say_why_to_whoever_asks():
    """A parameter that was written behind its use, or what the call differentiated itself."""
    weight, plain = random(3, seed=1).requires_grad_(), random(3, seed=2).requires_grad_()

    @tg.compile
    def overwritten(x):
        result = x * weight
        with tg.no_grad():
            weight.add_(1)
        return result

    @tg.compile
    def used_up(x):
        loss = (x * weight).sum()
        loss.backward()
        return loss

    for function, message in ((overwritten, "modified by an inplace"), (used_up, "already been")):
        for wanted in ("x", "weight"):
            x = random(3).requires_grad_()
            value = function(x)
            result = (value * plain).sum()
            with pytest.raises(RuntimeError, match=message):
                gradient(result, {"x": x, "weight": weight}[wanted], retain_graph=True)
            same(gradient(result, plain)[0], value.expand(3))
