"""Scaled steps: numbers, scales and states of PyTorch's, in one plan where they are compiled."""

import copy
import pickle

import numpy as np
import pytest

import tgraph as tg

CASES = [
    ("SGD", {"momentum": 0.9, "dampening": 0.1}, True),
    ("Adam", {}, False),
    ("NAdam", {}, True),
    ("ASGD", {}, False),
]


def trained(T, name, options, clips, way="eager"):
    """Twelve steps, three of which have infinite gradients, with settings that change."""
    p = T.tensor([1.0, -2.0, 3.0], requires_grad=True)
    q = T.tensor([[0.5]], requires_grad=True)
    optimizer = getattr(T.optim, name)([p, q], lr=0.1, **options)
    scaler = T.amp.GradScaler("cpu", init_scale=2.0**10, growth_interval=3)

    def step(x):
        optimizer.zero_grad()
        loss = (p * x).pow(2).sum() + (q * x[0]).sum()
        scaler.scale(loss).backward()
        if clips:
            scaler.unscale_(optimizer)
            T.nn.utils.clip_grad_norm_([p, q], 1.0)
        scaler.step(optimizer)
        if way != "compiled without update":
            scaler.update()
        return loss

    run = tg.compile(step) if way.startswith("compiled") else step
    scales = []
    for turn in range(12):
        x = np.array([0.3, 0.2, 0.1 * turn], dtype=np.float32)
        if turn in (2, 3, 8):
            x[1] = np.inf
        run(T.tensor(x))
        if way == "compiled without update":
            scaler.update()
        scales.append(scaler.get_scale())
        if turn == 9:
            scaler.set_growth_interval(1)
            scaler.set_growth_factor(4.0)
        if turn == 10:
            optimizer.param_groups[0]["lr"] = 0.01
    if run is not step:
        run.assert_compiles(1)
    values = [each.detach().numpy() for each in (p, q)]
    return values, scales, scaler.state_dict(), optimizer


@pytest.mark.parametrize(("name", "options", "clips"), CASES)
def test_scaled_steps_are_pytorchs(name, options, clips):
    torch = pytest.importorskip("torch", reason="compares with PyTorch, which is not installed")
    expected = trained(torch, name, options, clips)
    for way in ("eager", "compiled", "compiled without update"):
        found = trained(tg, name, options, clips, way)
        for one, other in zip(found[0], expected[0], strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5)
        assert found[1:3] == expected[1:3]
        saved = found[3].state_dict()["state"]
        assert list(saved[0]) == list(expected[3].state_dict()["state"][0])
        if "step" in saved[0]:
            assert int(saved[0]["step"]) == int(expected[3].state_dict()["state"][0]["step"]) == 9


def one_step(scaler, factor):
    x = tg.tensor([1.0], requires_grad=True)
    optimizer = tg.optim.SGD([x], lr=0.5)
    scaler.scale((x * factor).sum()).backward()
    scaler.step(optimizer)
    return x, optimizer


def test_states_are_saved_and_scalers_copied():
    scaler = tg.amp.GradScaler("cpu", init_scale=8.0, growth_interval=2)
    one_step(scaler, 1.0)
    scaler.update()
    saved = scaler.state_dict()
    assert saved == {
        "scale": 8.0, "growth_factor": 2.0, "backoff_factor": 0.5, "growth_interval": 2,
        "_growth_tracker": 1,
    }  # fmt: skip
    other = tg.amp.GradScaler("cpu")
    other.load_state_dict(saved)
    for each in (other, copy.deepcopy(scaler), pickle.loads(pickle.dumps(scaler))):
        one_step(each, 1.0)
        each.update()
        assert each.get_scale() == 16.0
    scaler.update(new_scale=3.0)
    assert scaler.get_scale() == 3.0


def test_containers_and_disabled_scalers():
    scaler = tg.amp.GradScaler("cpu", init_scale=4.0)
    one, (two,) = scaler.scale((tg.ones(1), [tg.ones(1)]))
    assert (one.item(), two.item()) == (4, 4)
    off = tg.amp.GradScaler("cpu", enabled=False)
    x, _ = one_step(off, 1.0)
    off.update()
    assert x.item() == 0.5 and off.get_scale() == 1.0 and off.state_dict() == {}
    if not tg.cuda.is_available():
        with pytest.warns(UserWarning, match="CUDA is not available"):
            assert not tg.amp.GradScaler().is_enabled()


def test_wrong_orders_are_refused():
    scaler = tg.amp.GradScaler("cpu")
    x = tg.tensor([1.0], requires_grad=True)
    optimizer = tg.optim.SGD([x], lr=0.5)
    with pytest.raises(AssertionError, match="nothing was scaled"):
        scaler.step(optimizer)
    scaler.scale(x.sum()).backward()
    with pytest.raises(AssertionError, match="No inf checks were recorded prior to update"):
        scaler.update()
    scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError, match="has already been called on this optimizer"):
        scaler.unscale_(optimizer)
    scaler.step(optimizer)
    with pytest.raises(RuntimeError, match=r"step\(\) has already been called since"):
        scaler.step(optimizer)
    with pytest.raises(RuntimeError, match="is being called after step"):
        scaler.unscale_(optimizer)
    with pytest.raises(ValueError, match="Attempting to unscale FP16 gradients"):
        half = tg.ones(1, dtype=tg.float16, requires_grad=True)
        half.grad = tg.ones(1, dtype=tg.float16)
        scaler.unscale_(tg.optim.SGD([half]))


def test_a_compiled_step_watches_whether_gradients_are_unscaled():
    scaler = tg.amp.GradScaler("cpu", init_scale=4.0)
    x = tg.tensor([0.0], requires_grad=True)
    optimizer = tg.optim.SGD([x], lr=1.0)
    step = tg.compile(lambda: scaler.step(optimizer))
    for unscales in (False, True, False):
        scaler.scale(x.sum()).backward()
        if unscales:
            scaler.unscale_(optimizer)
        step()
        scaler.update()
        optimizer.zero_grad()
    assert x.item() == -3


def test_the_scale_stays_finite():
    x = tg.tensor([1.0], requires_grad=True)
    optimizer = tg.optim.SGD([x], lr=0.0)
    scaler = tg.amp.GradScaler("cpu", init_scale=2.0**126, growth_interval=1)
    for expected in (2.0**127, 2.0**127):
        scaler.scale(x.sum())
        x.grad = tg.zeros(1)
        scaler.step(optimizer)
        scaler.update()
        assert scaler.get_scale() == expected
