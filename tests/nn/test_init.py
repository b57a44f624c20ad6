"""First values: ranges, moments, in place and outside of the gradient."""

import math

import numpy as np
import pytest

import tgraph as tg
from tgraph import nn
from tgraph.nn import init


@pytest.fixture(autouse=True)
def seed():
    tg.manual_seed(11)


def filled(function, *args, shape=(200, 300), **kwargs):
    weight = tg.empty(*shape).requires_grad_()
    assert function(weight, *args, **kwargs) is weight
    assert weight.requires_grad and weight.is_leaf
    return weight.numpy(force=True)


@pytest.mark.parametrize(
    ("function", "args", "bound"),
    [
        (init.uniform_, (-0.25, 0.25), 0.25),
        (init.xavier_uniform_, (2.0,), 2 * math.sqrt(6 / 500)),
        (init.kaiming_uniform_, (), math.sqrt(6 / 300)),
        (init.kaiming_uniform_, (math.sqrt(5),), 1 / math.sqrt(300)),
        (init.kaiming_uniform_, (0, "fan_out", "linear"), math.sqrt(3 / 200)),
        (init.kaiming_uniform_, (0, "fan_in", "tanh"), 5 / 3 * math.sqrt(3 / 300)),
    ],
)
def test_uniform(function, args, bound):
    values = filled(function, *args)
    assert np.abs(values).max() <= bound * (1 + 1e-6)
    assert np.abs(values).max() > 0.999 * bound
    assert values.std() == pytest.approx(bound / math.sqrt(3), rel=0.02)
    assert values.mean() == pytest.approx(0, abs=0.02 * bound)


@pytest.mark.parametrize(
    ("function", "args", "mean", "deviation"),
    [
        (init.normal_, (3.0, 0.5), 3.0, 0.5),
        (init.xavier_normal_, (), 0.0, math.sqrt(2 / 500)),
        (init.kaiming_normal_, (), 0.0, math.sqrt(2 / 300)),
        (init.kaiming_normal_, (0, "fan_out", "selu"), 0.0, 0.75 / math.sqrt(200)),
    ],
)
def test_normal(function, args, mean, deviation):
    values = filled(function, *args)
    assert values.mean() == pytest.approx(mean, abs=0.02 * deviation)
    assert values.std() == pytest.approx(deviation, rel=0.02)
    inside = np.abs(values - mean) < deviation
    assert inside.mean() == pytest.approx(0.6827, abs=0.01)


def test_truncated_normal():
    values = filled(init.trunc_normal_, 1.0, 2.0, -1.0, 2.0)
    assert values.min() >= -1 and values.max() <= 2

    # The mean of a normal distribution cut to one deviation below and half of one above.
    def density(z):
        return math.exp(-z * z / 2) / math.sqrt(2 * math.pi)

    share = 0.5 * (math.erf(0.5 / math.sqrt(2)) - math.erf(-1 / math.sqrt(2)))
    expected = 1 + 2 * (density(-1.0) - density(0.5)) / share
    assert values.mean() == pytest.approx(expected, abs=0.02)


def test_constants():
    assert (filled(init.zeros_) == 0).all()
    assert (filled(init.ones_) == 1).all()
    assert (filled(init.constant_, 2.5) == 2.5).all()
    np.testing.assert_array_equal(filled(init.eye_, shape=(3, 4)), np.eye(3, 4))


@pytest.mark.parametrize("shape", [(4, 6), (6, 4), (5, 3, 2)])
def test_orthogonal(shape):
    values = filled(init.orthogonal_, 2.0, shape=shape).reshape(shape[0], -1)
    if values.shape[0] > values.shape[1]:
        values = values.T
    np.testing.assert_allclose(values @ values.T, 4 * np.eye(len(values)), atol=1e-5)


def test_fans_and_gains():
    assert init.fan_in_and_out(tg.empty(8, 3, 5, 2)) == (30, 80)
    assert init.calculate_gain("relu") == math.sqrt(2)
    assert init.calculate_gain("conv2d") == 1
    with pytest.raises(ValueError, match="fewer than 2 dimensions"):
        init.xavier_uniform_(tg.empty(3))
    with pytest.raises(ValueError, match="Unsupported nonlinearity relu7"):
        init.kaiming_normal_(tg.empty(3, 3), nonlinearity="relu7")
    with pytest.raises(ValueError, match="Mode fan not supported"):
        init.kaiming_normal_(tg.empty(3, 3), mode="fan")


def test_a_generator_decides_the_numbers():
    def draw():
        return filled(init.kaiming_normal_, generator=tg.Generator().manual_seed(3))

    np.testing.assert_array_equal(draw(), draw())


def test_dirac_and_sparse_and_names_of_before():
    weight = init.dirac_(tg.empty(4, 2, 3, 3), groups=2)
    x = tg.randn(1, 4, 5, 5)
    assert tg.equal(nn.functional.conv2d(x, weight, padding=1, groups=2), x)
    assert (init.sparse_(tg.empty(10, 4), 0.35) == 0).sum(0).tolist() == [4] * 4
    with pytest.warns(FutureWarning, match="`nn.init.constant` is now deprecated"):
        assert init.constant(tg.empty(1), 2.0).item() == 2
