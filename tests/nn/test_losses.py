"""Losses against formulas in NumPy; values and gradients."""

import numpy as np
import pytest

import tgraph as tg
from tgraph import nn
from tgraph.nn import functional as F

RNG = np.random.default_rng(7)
X, Y = RNG.standard_normal((6, 5)), RNG.standard_normal((6, 5))
PROBABILITIES = RNG.random((6, 5))
CLASSES = np.array([0, 4, 2, 1, 1, 3])
WEIGHT = np.array([0.5, 1.5, 2.0, 0.1, 1.0])


def log_softmax(x, axis=1):
    return x - np.log(np.exp(x).sum(axis, keepdims=True))


def reduced(losses, reduction):
    return {"mean": losses.mean(), "sum": losses.sum(), "none": losses}[reduction]


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_regression_losses(reduction):
    x, y = tg.tensor(X), tg.tensor(Y)
    small = np.abs(X - Y) < 0.5
    smooth = np.where(small, (X - Y) ** 2, np.abs(X - Y) - 0.25)
    cases = [
        (nn.MSELoss(reduction=reduction), (X - Y) ** 2),
        (nn.L1Loss(reduction=reduction), np.abs(X - Y)),
        (nn.SmoothL1Loss(reduction=reduction, beta=0.5), smooth),
    ]
    for loss, expected in cases:
        np.testing.assert_allclose(loss(x, y).numpy(), reduced(expected, reduction), rtol=1e-12)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_binary_cross_entropy_with_logits(reduction):
    p = 1 / (1 + np.exp(-X))
    positive = np.array([2.0, 1.0, 0.5, 3.0, 1.0])
    losses = -(positive * PROBABILITIES * np.log(p) + (1 - PROBABILITIES) * np.log(1 - p)) * WEIGHT
    loss = nn.BCEWithLogitsLoss(
        tg.tensor(WEIGHT), reduction=reduction, pos_weight=tg.tensor(positive)
    )
    found = loss(tg.tensor(X), tg.tensor(PROBABILITIES))
    np.testing.assert_allclose(found.numpy(), reduced(losses, reduction), rtol=1e-12)
    huge = nn.BCEWithLogitsLoss()(tg.tensor([1000.0, -1000.0]), tg.tensor([0.0, 0.0]))
    assert huge.item() == 500


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("weight", [None, WEIGHT])
@pytest.mark.parametrize("ignored", [-100, 1])
@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_cross_entropy(reduction, weight, ignored, smoothing):
    weights = np.ones(5) if weight is None else weight
    logs = log_softmax(X)
    counted = (ignored != CLASSES) * 1.0
    nll = -logs[np.arange(6), CLASSES] * weights[CLASSES] * counted
    spread = -(logs * weights).sum(1) * counted
    losses = (1 - smoothing) * nll + smoothing / 5 * spread
    expected = losses
    if reduction == "sum":
        expected = losses.sum()
    elif reduction == "mean":
        expected = losses.sum() / (weights[CLASSES] * counted).sum()
    given = None if weight is None else tg.tensor(weight)
    loss = nn.CrossEntropyLoss(
        given, ignore_index=ignored, reduction=reduction, label_smoothing=smoothing
    )
    found = loss(tg.tensor(X), tg.tensor(CLASSES))
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-12)


def test_cross_entropy_gradient():
    x = tg.tensor(X, requires_grad=True)
    nn.CrossEntropyLoss()(x, tg.tensor(CLASSES)).backward()
    expected = (np.exp(log_softmax(X)) - np.eye(5)[CLASSES]) / 6
    np.testing.assert_allclose(x.grad.numpy(), expected, atol=1e-14)


def test_cross_entropy_of_images_and_probabilities():
    x, y = RNG.standard_normal((3, 5, 2, 4)), RNG.integers(0, 5, (3, 2, 4))
    logs = log_softmax(x)
    losses = -np.take_along_axis(logs, y[:, None], 1)[:, 0]
    none = nn.CrossEntropyLoss(reduction="none")
    np.testing.assert_allclose(none(tg.tensor(x), tg.tensor(y)).numpy(), losses, rtol=1e-12)
    mean = nn.CrossEntropyLoss()(tg.tensor(X), tg.tensor(PROBABILITIES)).item()
    expected = -(log_softmax(X) * PROBABILITIES).sum(1).mean()
    assert mean == pytest.approx(expected, rel=1e-12)


def test_nll_is_cross_entropy_of_the_logarithms():
    x, y = tg.tensor(X), tg.tensor(CLASSES)
    for options in ({}, {"weight": tg.tensor(WEIGHT)}, {"ignore_index": 1, "reduction": "sum"}):
        logs = nn.LogSoftmax(dim=1)(x)
        found, expected = nn.NLLLoss(**options)(logs, y), nn.CrossEntropyLoss(**options)(x, y)
        assert found.item() == pytest.approx(expected.item(), rel=1e-12)


def test_losses_refuse_what_they_do_not_know():
    with pytest.raises(ValueError, match="average is not a valid value for reduction"):
        nn.MSELoss(reduction="average")(tg.ones(2), tg.ones(2))
    with pytest.warns(UserWarning, match="different to the input size"):
        nn.MSELoss()(tg.ones(2), tg.ones(2, 1))


def test_class_weights_move_with_the_loss():
    loss = nn.CrossEntropyLoss(weight=tg.ones(5)).double()
    assert loss(tg.tensor(X), tg.tensor(CLASSES)).dtype is tg.float64
    assert list(loss.state_dict()) == ["weight"]


def test_targets_of_another_type_are_promoted():
    shares, yes, x = tg.tensor([0, 1]), tg.tensor([0.25, 0.75]), tg.tensor([0.5, -0.5])
    found = F.binary_cross_entropy(shares, yes, reduction="none")
    wanted = F.binary_cross_entropy(shares.float(), yes, reduction="none")
    assert found.tolist() == wanted.tolist()  # and not of targets cut to whole numbers
    found = F.binary_cross_entropy_with_logits(x, tg.tensor([False, True]))
    assert found.item() == F.binary_cross_entropy_with_logits(x, tg.tensor([0.0, 1.0])).item()
    apart = F.mse_loss(x, tg.tensor([True, False]), reduction="none")
    assert apart.tolist() == [0.25, 0.25]
    assert F.cosine_embedding_loss(tg.ones(2), tg.ones(2), tg.tensor(-1), margin=True).item() == 0


@pytest.mark.parametrize("compiles", [False, True])
def test_types_of_losses_are_those_of_pytorch(compiles):
    ran = tg.compile if compiles else lambda f: f
    wide, half = tg.rand(3, dtype=tg.float64), tg.rand(3, dtype=tg.float16)
    assert ran(F.binary_cross_entropy_with_logits)(half, wide).dtype is tg.float64
    assert ran(F.binary_cross_entropy_with_logits)(wide, half).dtype is tg.float16
    assert ran(F.soft_margin_loss)(half, wide).dtype is tg.float16
    assert ran(F.huber_loss)(half, wide).dtype is tg.float16
    assert ran(F.huber_loss)(wide, half).dtype is tg.float64
    narrow = half + 1
    found = ran(F.gaussian_nll_loss)(wide, wide + 1, narrow)  # without rounding on the way
    wanted = F.gaussian_nll_loss(wide, wide + 1, narrow.double())
    assert found.item() == pytest.approx(wanted.item(), rel=1e-12)


def test_gradient_of_huber_loss_at_an_infinite_distance():
    x = tg.tensor([np.inf, -np.inf, 0.5], requires_grad=True)
    F.huber_loss(x, tg.zeros(3), reduction="sum").backward()
    assert x.grad.tolist() == [1, -1, 0.5]


def test_losses_refuse_types_that_have_no_meaning():
    whole, real = tg.ones(2, 3, dtype=tg.int64), tg.ones(2, 3)
    for loss, given in (
        (F.binary_cross_entropy_with_logits, (whole, real)),
        (F.multi_margin_loss, (whole, tg.tensor([0, 1]))),
        (F.multilabel_margin_loss, (whole, whole)), (F.nll_loss, (whole, tg.tensor([0, 1]))),
    ):  # fmt: skip
        with pytest.raises(NotImplementedError, match="not implemented for int64; convert it"):
            loss(*given)
    with pytest.raises(RuntimeError, match="expected scalar type Long but found float32"):
        F.multilabel_margin_loss(real, real)
    with pytest.raises(RuntimeError, match=r"Integral inputs not supported, got tgraph\.int64"):
        F.kl_div(whole, real)
    with pytest.raises(RuntimeError, match="a weight that broadcasts to the shape of the loss"):
        F.binary_cross_entropy(real, real, weight=tg.ones(1, 2, 3))
    with pytest.raises(RuntimeError, match="a target that broadcasts to the shape of the input"):
        F.soft_margin_loss(real, tg.ones(1, 2, 3))
    with pytest.raises(ValueError, match=r"batch_size \(2\) to match target batch_size \(0\)"):
        F.nll_loss(real, tg.tensor(1))


def test_cross_entropy_of_infinite_logits_is_infinite_where_they_are_wrong():
    infinite, loss = float("inf"), F.binary_cross_entropy_with_logits
    for logit, target in ((infinite, 0.0), (infinite, 0.3), (-infinite, 0.3), (-infinite, 1.0)):
        for function in (loss, tg.compile(loss)):
            assert function(tg.tensor([logit]), tg.tensor([target])).item() == infinite
