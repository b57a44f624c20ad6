"""Hooks of modules, eager and compiled; hooks of all modules; hooks of states."""

import copy
import pickle

import pytest

import tgraph as tg
from tgraph import nn
from tgraph.nn.modules import module as hooks_of_all


def plus_one(module, args, output):
    return output + 1


def doubled(module, args, output):
    return output * 2


def negated(module, args):
    return -args[0]


def with_factor(module, args, kwargs):
    return args, {"factor": kwargs.get("factor", 1) * 3}


class Scale(nn.Module):
    def forward(self, x, factor=1):
        return x * factor


def test_hooks_change_arguments_and_results_and_compiled_code_follows():
    net = nn.Sequential(nn.Identity(), nn.Linear(2, 2))
    call, x = tg.compile(net), tg.ones(1, 2)
    assert tg.equal(call(x), net(x))
    handles = []
    for register in (
        lambda: net[0].register_forward_hook(plus_one),
        lambda: net[1].register_forward_pre_hook(negated),
        lambda: hooks_of_all.register_module_forward_hook(plus_one),
    ):
        before = net(x)
        handles.append(register())
        assert not tg.equal(net(x), before)
        assert tg.allclose(call(x), net(x))
    net[0].register_forward_hook(doubled, prepend=True)
    assert net[0](tg.zeros(())).item() == (0 + 1) * 2 + 1
    net[0]._forward_hooks.popitem(last=False)
    for handle in handles:
        handle.remove()
        assert tg.allclose(call(x), net(x))
    assert not nn.Identity()._hooked
    assert len(net[0]._forward_hooks) == 0


def test_hooks_with_keyword_arguments():
    scale = Scale()
    with scale.register_forward_pre_hook(with_factor, with_kwargs=True):
        assert scale(tg.ones(())).item() == 3
        seen = []
        scale.register_forward_hook(lambda *given: seen.append(given[2]), with_kwargs=True)
        assert scale(tg.ones(()), factor=2).item() == 6
        assert seen == [{"factor": 6}]
    assert scale(tg.ones(())).item() == 1
    scale.register_forward_pre_hook(lambda module, args, kwargs: args, with_kwargs=True)
    with pytest.raises(RuntimeError, match="must return None or a tuple"):
        scale(tg.ones(()))


def test_hooks_that_are_always_called():
    class Failing(nn.Module):
        def forward(self, x):
            raise ZeroDivisionError

    seen = []
    failing = Failing()
    failing.register_forward_hook(lambda *given: seen.append("one"), always_call=True)
    failing.register_forward_hook(lambda *given: seen.append("other"))
    with pytest.raises(ZeroDivisionError):
        failing(1)
    assert seen == ["one"]


def test_backward_hooks():
    class Both(nn.Module):
        def forward(self, x, y):
            return 2 * x, x * y

    both, seen = Both(), []
    both.register_full_backward_pre_hook(lambda module, grads: (grads[0] * 10, grads[1]))
    both.register_full_backward_hook(
        lambda module, got, gave: seen.append([each.item() for each in (*got, *gave)])
    )
    x, y = (tg.tensor(each, requires_grad=True) for each in (3.0, 5.0))
    tg.autograd.backward(both(x, y), [tg.tensor(1.0), tg.tensor(1.0)])
    assert (x.grad.item(), y.grad.item()) == (25, 3)
    assert seen == [[25, 3, 10, 1]]
    layer = nn.Linear(2, 2)
    call = tg.compile(layer)
    for factor in (None, 2, 5):
        if factor:
            layer.register_full_backward_hook(lambda module, got, gave, f=factor: (got[0] * f,))
        for function in (layer, call):
            x = tg.ones(1, 2, requires_grad=True)
            function(x).sum().backward()
            expected = layer.weight.sum(0) * {None: 1, 2: 2, 5: 10}[factor]
            assert tg.allclose(x.grad[0], expected)
    with pytest.raises(RuntimeError, match="Cannot use both regular backward hooks"):
        layer.register_backward_hook(lambda *given: None)


def test_hooks_of_states():
    net = nn.Sequential(nn.Linear(1, 1))
    order = []
    net.register_state_dict_pre_hook(lambda module, prefix, keep_vars: order.append("before"))
    net[0].register_state_dict_post_hook(
        lambda module, state, prefix, metadata: state.pop(f"{prefix}bias") and None
    )
    state = net.state_dict()
    assert order == ["before"] and list(state) == ["0.weight"]
    assert state._metadata == {"": {"version": 1}, "0": {"version": 1}}

    def renamed(module, state, prefix, metadata, strict, missing, unexpected, errors):
        state[f"{prefix}bias"] = state.pop(f"{prefix}offset")

    net[0].register_load_state_dict_pre_hook(renamed)
    net.register_load_state_dict_post_hook(lambda module, keys: keys.unexpected_keys.clear())
    given = {"0.weight": tg.ones(1, 1), "0.offset": tg.ones(1), "more": tg.ones(1)}
    assert repr(net.load_state_dict(given)) == "<All keys matched successfully>"
    assert net(tg.ones(1, 1)).item() == 2
    with pytest.raises(RuntimeError, match="post-hook must return None"):
        net.register_state_dict_post_hook(lambda *given: {})
        net.state_dict()


def test_copies_keep_hooks():
    layer = nn.Identity()
    layer.register_forward_hook(plus_one)
    for other in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert other(tg.ones(())).item() == 2
        other._forward_hooks.clear()
        assert layer(tg.ones(())).item() == 2


def test_hooks_of_registration():
    names = []
    hooks = [
        hooks_of_all.register_module_parameter_registration_hook(lambda m, n, p: names.append(n)),
        hooks_of_all.register_module_buffer_registration_hook(lambda m, n, b: b + 1),
        hooks_of_all.register_module_module_registration_hook(lambda m, n, c: names.append(n)),
    ]
    try:
        net = nn.Sequential(nn.Linear(1, 1))
        net.register_buffer("seen", tg.zeros(()))
    finally:
        for each in hooks:
            each.remove()
    assert names == ["weight", "bias", "0"] and net.seen.item() == 1


def test_a_module_that_compiles_its_calls():
    layer = nn.Linear(2, 2)
    expected = layer(tg.ones(1, 2))
    layer.compile()
    assert tg.allclose(layer(tg.ones(1, 2)), expected)
    layer.register_forward_hook(plus_one)
    assert tg.allclose(layer(tg.ones(1, 2)), expected + 1)
    assert "_compiled_call_impl" not in pickle.loads(pickle.dumps(layer)).__dict__
