"""Learning rate schedules against PyTorch's numbers (torch 2.13) and their formulas."""

import math

import pytest

import tgraph as tg
from tgraph import optim
from tgraph.optim import lr_scheduler


def optimizer(*rates):
    groups = [{"params": tg.ones(1, requires_grad=True), "lr": rate} for rate in rates]
    return optim.SGD(groups)


def rates(scheduler, count=8):
    found = []
    for _ in range(count):
        found.append(scheduler.optimizer.param_groups[0]["lr"])
        scheduler.step()
    return found


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda o: lr_scheduler.StepLR(o, 3, 0.5), [0.4, 0.4, 0.4, 0.2, 0.2, 0.2, 0.1, 0.1]),
        (lambda o: lr_scheduler.ExponentialLR(o, 0.9), [0.4 * 0.9**n for n in range(8)]),
        (
            lambda o: lr_scheduler.CosineAnnealingLR(o, 4, 0.1),
            [0.4, 0.35606601717798214, 0.25, 0.1439339828220179, 0.1, 0.1439339828220179,
             0.2500000000000001, 0.35606601717798236],
        ),
        (
            lambda o: lr_scheduler.LambdaLR(o, lambda epoch: 1 / (1 + epoch)),
            [0.4 / (1 + n) for n in range(8)],
        ),
    ],
)  # fmt: skip
def test_rates(make, expected):
    assert rates(make(optimizer(0.4))) == pytest.approx(expected, rel=1e-12)


def test_cosine_is_a_cosine():
    found = rates(lr_scheduler.CosineAnnealingLR(optimizer(1.0), 10), 11)
    wave = [(1 + math.cos(math.pi * n / 10)) / 2 for n in range(11)]
    assert found == pytest.approx(wave, abs=1e-12)


def test_every_group_has_its_rate():
    scheduler = lr_scheduler.LambdaLR(optimizer(1.0, 2.0), [lambda n: 0.5**n, lambda n: n + 1])
    scheduler.step()
    assert scheduler.get_last_lr() == [0.5, 4.0]
    with pytest.raises(ValueError, match="Expected 2 lr_lambdas, but got 1"):
        lr_scheduler.LambdaLR(optimizer(1.0, 2.0), [lambda n: n])


def test_state_dict_resumes():
    one, other = (lr_scheduler.StepLR(optimizer(1.0), 2) for _ in range(2))
    one.step()
    other.load_state_dict(one.state_dict())
    assert rates(one, 3)[1:] == rates(other, 3)[1:] == pytest.approx([0.1, 0.1])
    assert "optimizer" not in one.state_dict()


def test_resuming_needs_the_first_rate():
    with pytest.raises(KeyError, match="param 'initial_lr' is not specified"):
        lr_scheduler.StepLR(optimizer(1.0), 2, last_epoch=3)
    with pytest.raises(TypeError, match="list is not an Optimizer"):
        lr_scheduler.StepLR([], 2)


@pytest.mark.parametrize("mode, values", [("max", [1.0, 1.05, 1.2]), ("min", [1.0, 0.95, 0.8])])
def test_a_plateau_is_what_is_not_better_by_the_threshold(mode, values):
    scheduler = lr_scheduler.ReduceLROnPlateau(
        optimizer(1.0), mode, factor=0.5, patience=0, threshold=0.1
    )
    found = []
    for value in values:
        scheduler.step(value)
        found += scheduler.get_last_lr()
    assert found == [1.0, 0.5, 0.5]
