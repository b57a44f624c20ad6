"""Plans that write in place: each parameter's update in an optimizer is one launch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from eager_tools import Counted, parameters, same, set_gradients

import tgraph as tg
from tgraph.core import eager_context
from tgraph.ops.fused import fused_update

pytest_plugins = ["cuda_tools.device"]


@pytest.fixture
def counted(cuda: Any, monkeypatch: Any) -> Counted:
    return Counted(monkeypatch)


def test_updates_write_into_views(cuda: Any) -> None:
    @fused_update
    def moved(target: Any, other: Any, rate: float) -> None:
        target.sub_(other * rate)
        other.mul_(2)

    def run(device: Any) -> list[Any]:
        whole, other = tg.arange(12.0).reshape(3, 4).to(device), tg.ones(3).to(device)
        for _ in range(3):
            moved(whole[:, 1], other, 0.5)
            moved(whole[:, 2], other, 0.25)
            moved(whole[1, :3], other, 0.25)  # not aligned
        return [whole.cpu(), other.cpu()]

    for have, want in zip(run(cuda), run("cpu"), strict=True):
        assert tg.equal(have, want)
    x, y = tg.ones(3).cuda(), tg.ones(3).cuda()
    for _ in range(3):
        version = x._version
        moved(x, y, 0.5)
        assert x._version == version + 1


def test_an_update_reads_before_it_writes(cuda: Any) -> None:
    @fused_update
    def pushed(target: Any, source: Any) -> None:
        target.copy_(source * 2)

    @fused_update
    def centred(target: Any, source: Any) -> None:
        target.sub_(source.mean())

    for device in (tg.device("cpu"), cuda):
        for _ in range(3):
            pushed(tg.ones(5).to(device), tg.ones(5).to(device))
            line = tg.arange(6.0).to(device)
            pushed(line[1:], line[:-1])
            assert line.tolist() == [0.0, 0.0, 2.0, 4.0, 6.0, 8.0]
            centred(line, line)
            assert line.sum().item() == pytest.approx(0, abs=1e-5)
    with pytest.raises(RuntimeError, match="more than one element"):
        pushed(tg.ones(1).cuda().expand(3), tg.ones(3).cuda())

    @fused_update
    def clashing(target: Any, number: Any) -> None:
        target.mul_(number)
        number.fill_(2.0)

    x, number = tg.ones(3).cuda(), tg.tensor(3.0).cuda()
    for _ in range(3):
        clashing(x, number)
    assert (x.tolist(), number.item()) == ([12.0] * 3, 2.0)


OPTIMIZERS: list[tuple[Any, dict[str, Any]]] = [
    (tg.optim.SGD, {}),
    (tg.optim.SGD, {"momentum": 0.9, "weight_decay": 0.1, "nesterov": True}),
    (tg.optim.SGD, {"momentum": 0.9, "maximize": True}),
    (tg.optim.Adam, {}),
    (tg.optim.Adam, {"amsgrad": True, "weight_decay": 0.1, "maximize": True}),
    (tg.optim.AdamW, {}),
    (tg.optim.RMSprop, {}),
    (tg.optim.RMSprop, {"centered": True, "momentum": 0.5, "weight_decay": 0.1}),
    (tg.optim.Adadelta, {"weight_decay": 0.1}),
    (tg.optim.Adagrad, {"lr_decay": 0.1}),
    (tg.optim.Adamax, {"weight_decay": 0.1, "maximize": True}),
    (tg.optim.Rprop, {}),
]


@pytest.mark.parametrize(("kind", "options"), OPTIMIZERS)
def test_an_update_is_one_kernel(cuda: Any, counted: Counted, kind: Any, options: Any) -> None:
    here, there = parameters("cpu"), parameters(cuda)
    ours, theirs = kind(here, lr=0.1, **options), kind(there, lr=0.1, **options)
    for step in range(4):
        set_gradients(here, step)
        set_gradients(there, step)
        ours.step()
        counted.clear()
        theirs.step()
        if step > 1:  # the first step has momentum to make
            assert len(counted.kernels) == len(there)
            assert counted.operations == counted.others == []
        if step > 2:
            assert counted.compiled == []
        for optimizer in (ours, theirs):
            optimizer.param_groups[0]["lr"] *= 0.5
    for have, want in zip(there, here, strict=True):
        same(have, want, 64, "parameter")
    for one, other in zip(there, here, strict=True):
        for name, want in ours.state[other].items():
            same(theirs.state[one][name], want, 64, name)


@pytest.mark.parametrize("kind", ["ASGD", "NAdam", "RAdam", "Adafactor", "SparseAdam"])
@pytest.mark.parametrize("way", ["eager", "compiled"])
def test_other_updates(cuda: Any, kind: str, way: str) -> None:
    """Those of several kernels, and one that begins to adapt after some steps."""
    options = {"betas": (0.5, 0.6)} if kind == "RAdam" else {}
    left = []
    for device in (tg.device("cpu"), cuda):
        found = parameters(device)
        optimizer = getattr(tg.optim, kind)(found, lr=0.1, **options)
        run = tg.compile(optimizer.step) if way == "compiled" else optimizer.step
        for step in range(5):
            set_gradients(found, step)
            run()
        left.append([*found, *optimizer.state[found[0]].values()])
    for want, have in zip(*left, strict=True):
        same(have, want, 256, kind)


@pytest.mark.parametrize("way", ["eager", "compiled"])
def test_scaled_steps_in_mixed_precision(cuda: Any, way: str) -> None:
    x = tg.nn.Parameter(tg.ones(4, 4).cuda())
    optimizer, scaler = tg.optim.SGD([x], lr=0.5), tg.amp.GradScaler(init_scale=2.0**17)

    def step(given: Any) -> Any:
        optimizer.zero_grad()
        with tg.autocast("cuda"):
            out = given @ x
            loss = out.exp().sum()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        return out.dtype, loss.dtype

    run = tg.compile(step) if way == "compiled" else step
    for factor in (1.0, 2.0**-10, 2.0**-10):  # gradients of float16 overflow first
        seen = run((tg.eye(4) * factor).cuda())
    assert seen == (tg.float16, tg.float32)
    assert scaler.get_scale() == 2.0**15
    expected = 1 - 0.5 * 2.0**-10 * np.exp(2.0**-10)
    assert x.detach().cpu().flatten().tolist() == pytest.approx([expected] * 16, rel=1e-6)


def test_dampening(cuda: Any) -> None:
    options = {"lr": 0.1, "momentum": 0.9, "dampening": 0.3}
    here, there = parameters("cpu"), parameters(cuda)
    optimizers = [(tg.optim.SGD(each, **options), each) for each in (here, there)]
    for step in range(3):
        for optimizer, tensors_ in optimizers:
            set_gradients(tensors_, step)
            optimizer.step()
    for have, want in zip(there, here, strict=True):
        same(have, want, 64, "parameter")


def test_counters_that_others_write(cuda: Any) -> None:
    """Eager steps, compiled ones and loaded states in turns."""

    def trained(device: Any) -> list[Any]:
        found = parameters(device)
        optimizer = tg.optim.Adam(found, lr=0.1)
        compiled = tg.compile(optimizer.step)
        saved: Any = None
        for number, step in enumerate([optimizer.step, compiled, compiled, optimizer.step] * 2):
            set_gradients(found, number)
            step()
            if number == 2:
                saved = {
                    name: {key: value.clone() for key, value in state.items()}
                    for name, state in optimizer.state_dict()["state"].items()
                }
            if number == 5:
                groups = optimizer.state_dict()["param_groups"]
                optimizer.load_state_dict({"state": saved, "param_groups": groups})
        assert [optimizer.state[each]["step"].item() for each in found] == [5.0] * 3
        return found

    for have, want in zip(trained(cuda), trained("cpu"), strict=True):
        same(have, want, 256, "parameter")


def test_a_copy_within_one_memory_reads_before_it_writes(cuda: Any, monkeypatch: Any) -> None:
    """Also on a device that writes the first elements before it reads the last ones."""
    copied = eager_context.copy_elements

    def one_by_one(target: Any, source: Any) -> None:
        for at in range(target.shape[1]):
            copied(target[:, at : at + 1], source[:, at : at + 1])

    rows = tg.arange(8.0).reshape(2, 4).to(cuda)
    monkeypatch.setattr(eager_context, "copy_elements", one_by_one)
    rows[:, 1:].copy_(rows[:, :-1])
    assert rows.tolist() == [[0.0, 0.0, 1.0, 2.0], [4.0, 4.0, 5.0, 6.0]]
