"""Clipping gradients; parameters as one vector."""

import copy
import math
import pickle

import numpy as np
import pytest

import tgraph as tg
from tgraph import nn
from tgraph.nn import utils


def parameters(*gradients):
    found = []
    for gradient in gradients:
        tensor = tg.zeros(len(gradient), requires_grad=True)
        tensor.grad = tg.tensor(gradient)
        found.append(tensor)
    return found


@pytest.mark.parametrize("order", [1.0, 2.0, 3.0, math.inf])
def test_clip_grad_norm(order):
    values = [[3.0, -1.0], [2.0, 0.5, -4.0]]
    flat = np.concatenate(values)
    norm = np.abs(flat).max() if order == math.inf else (np.abs(flat) ** order).sum() ** (1 / order)
    given = parameters(*values)
    held = given[0].grad
    total = utils.clip_grad_norm_(given, 2.0, norm_type=order)
    assert total.item() == pytest.approx(norm, rel=1e-6)
    clipped = np.concatenate([each.grad.numpy() for each in given])
    np.testing.assert_allclose(clipped, flat * 2 / norm, rtol=1e-5)
    assert given[0].grad is held  # in place
    again = utils.clip_grad_norm_(given, 100.0, norm_type=order)
    assert again.item() == pytest.approx(2, rel=1e-5)
    np.testing.assert_allclose(
        np.concatenate([each.grad.numpy() for each in given]), clipped, rtol=1e-6
    )


def test_clip_grad_norm_of_nothing_and_of_infinity():
    assert utils.clip_grad_norm_([tg.zeros(2, requires_grad=True)], 1.0).item() == 0
    assert utils.clip_grad_norm_(parameters([3.0])[0], 1.0).item() == 3
    with pytest.raises(RuntimeError, match=r"norm of order 2.0 for gradients .* is non-finite"):
        utils.clip_grad_norm_(parameters([math.inf, 1.0]), 1.0, error_if_nonfinite=True)


def test_clip_grad_value():
    given = [*parameters([3.0, -1.0], [0.5, -4.0]), tg.zeros(1, requires_grad=True)]
    utils.clip_grad_value_(given, 2.0)
    assert [each.grad.tolist() for each in given[:2]] == [[2, -1], [0.5, -2]]


def test_parameters_as_one_vector():
    layer = nn.Linear(2, 3)
    vector = utils.parameters_to_vector(layer.parameters())
    assert vector.shape == (9,) and vector.requires_grad
    utils.vector_to_parameters(tg.arange(9, dtype=tg.float32), layer.parameters())
    assert layer.weight.tolist() == [[0, 1], [2, 3], [4, 5]]
    assert layer.bias.tolist() == [6, 7, 8]
    assert layer.weight.is_leaf
    with pytest.raises(RuntimeError, match="expected a vector of 9 elements"):
        utils.vector_to_parameters(tg.zeros(8), layer.parameters())


def test_total_norm_and_names_of_before():
    given = [tg.tensor([3.0]), tg.tensor([0.0, 4.0])]
    assert utils.get_total_norm(given).item() == 5
    assert utils.get_total_norm([]).item() == 0
    held = parameters([3.0, 4.0])
    with pytest.warns(FutureWarning, match="deprecated in favor of"):
        assert utils.clip_grad_norm(held, 1.0).item() == 5
    with pytest.warns(UserWarning, match="empty generator"):
        utils.clip_grad_norm_((each for each in ()), 1.0)


def same_compiled(layer, x):
    """The result, which compiled code gives too, with the gradients of all parameters."""
    results = []
    for function in (layer, tg.compile(layer)):
        layer.zero_grad()
        result = function(x)
        (result * result).sum().backward()
        results.append([result, *(each.grad for each in layer.parameters())])
    for one, other in zip(*results):
        assert tg.allclose(one, other, atol=1e-12)
    return results[0][0]


@pytest.mark.parametrize("older", [True, False])
def test_weight_norm(older):
    layer, x = nn.Linear(3, 2).double(), tg.ones(1, 3, dtype=tg.float64)
    expected, weight = layer(x), layer.weight.detach().clone()
    norms = weight.norm(dim=1, keepdim=True)
    if older:
        with pytest.warns(FutureWarning, match="parametrizations.weight_norm"):
            utils.weight_norm(layer)
        assert sorted(layer.state_dict()) == ["bias", "weight_g", "weight_v"]
        saved = {key: each.clone() for key, each in layer.state_dict().items()}
        other = utils.parametrizations.weight_norm(nn.Linear(3, 2).double())
        other.load_state_dict(saved)
        assert tg.allclose(other(x), expected)
        assert tg.allclose(layer.weight_g, norms)
    else:
        utils.parametrizations.weight_norm(layer)
        assert tg.allclose(layer.parametrizations.weight.original0, norms)
        layer.weight = weight
    assert tg.allclose(same_compiled(layer, x), expected)
    if older:
        utils.remove_weight_norm(layer)
    else:
        utils.parametrize.remove_parametrizations(layer, "weight")
    assert type(layer) is nn.Linear and isinstance(layer.weight, nn.Parameter)
    assert tg.allclose(layer(x), expected)


@pytest.mark.parametrize("older", [True, False])
def test_spectral_norm(older):
    where = utils if older else utils.parametrizations
    layer = where.spectral_norm(nn.Linear(4, 3).double(), n_power_iterations=40)
    x = tg.randn(2, 4, dtype=tg.float64)
    layer(x)
    assert tg.linalg.svdvals(layer.weight)[0].item() == pytest.approx(1, abs=1e-3)
    layer.eval()
    expected = layer(x)
    assert tg.allclose(same_compiled(layer, x), expected)
    if older:
        utils.remove_spectral_norm(layer)
        assert tg.allclose(layer(x), expected) and list(layer.state_dict()) == ["bias", "weight"]


@pytest.mark.parametrize("sizes", [(3, 3), (2, 4)])
@pytest.mark.parametrize("kind", ["matrix_exp", "cayley", "householder"])
def test_orthogonal_weights(kind, sizes):
    layer = utils.parametrizations.orthogonal(nn.Linear(*sizes).double(), orthogonal_map=kind)
    with tg.no_grad():
        own = layer.parametrizations.weight.original
        own.add_(0.3 * tg.randn(*own.shape, dtype=tg.float64).tril(-1))
        own.add_(0.3 * tg.randn(*own.shape, dtype=tg.float64).triu(1))
    x = tg.randn(2, sizes[0], dtype=tg.float64)
    same_compiled(layer, x)
    weight = layer.weight.detach().numpy()
    small = weight @ weight.T if sizes[1] <= sizes[0] else weight.T @ weight
    np.testing.assert_allclose(small, np.eye(min(sizes)), atol=1e-12)
    wanted, _ = np.linalg.qr(np.random.default_rng(0).standard_normal((max(sizes), min(sizes))))
    layer.weight = tg.tensor(wanted if sizes[1] >= sizes[0] else wanted.T)
    np.testing.assert_allclose(np.abs(layer.weight.detach().numpy()).sum(), np.abs(wanted).sum())


class Doubled(nn.Module):
    def forward(self, x):
        return 2 * x

    def right_inverse(self, x):
        return x / 2


def test_parametrizations():
    layer = nn.Linear(2, 2)
    weight = layer.weight.detach().clone()
    utils.parametrize.register_parametrization(layer, "weight", Doubled())
    utils.parametrize.register_parametrization(layer, "weight", Doubled())
    assert repr(layer).startswith("ParametrizedLinear(\n  in_features=2")
    assert utils.parametrize.is_parametrized(layer, "weight") and isinstance(layer, nn.Linear)
    assert tg.equal(layer.weight, 2 * weight)
    layer.weight = weight
    assert tg.equal(layer.weight, weight)
    with utils.parametrize.cached():
        assert layer.weight is layer.weight
    assert layer.weight is not layer.weight
    twin = copy.deepcopy(layer)
    with pytest.raises(RuntimeError, match="only supported through state_dict"):
        pickle.dumps(layer)
    utils.parametrize.remove_parametrizations(layer, "weight", leave_parametrized=False)
    assert tg.equal(layer.weight, weight / 4) and tg.equal(twin.weight, weight)
    with pytest.raises(ValueError, match="does not have a parameter, a buffer, or a parametrized"):
        utils.parametrize.register_parametrization(layer, "offset", Doubled())


def test_pruning():
    layer = nn.Linear(2, 3)
    layer.load_state_dict(
        {"weight": tg.tensor([[1.0, -6], [2, 5], [-3, 4.5]]), "bias": tg.zeros(3)}
    )
    call = tg.compile(layer)
    x = tg.ones(1, 2)
    utils.prune.l1_unstructured(layer, "weight", amount=2)
    assert layer.weight.tolist() == [[0, -6], [0, 5], [-3, 4.5]]
    assert tg.equal(call(x), layer(x))
    utils.prune.ln_structured(layer, "weight", amount=1, n=2, dim=0)
    assert layer.weight_mask.tolist() == [[0, 1], [0, 0], [1, 1]]
    assert tg.equal(call(x), layer(x)) and utils.prune.is_pruned(nn.Sequential(layer))
    utils.prune.remove(layer, "weight")
    assert layer.weight.tolist() == [[0, -6], [0, 0], [-3, 4.5]] and not utils.prune.is_pruned(
        layer
    )
    utils.prune.global_unstructured(
        [(layer, "weight"), (layer, "bias")], utils.prune.RandomUnstructured, amount=1.0
    )
    assert not layer.weight.any()
    with pytest.raises(ValueError, match="float in the range"):
        utils.prune.random_unstructured(layer, "weight", amount=1.5)


def test_fusion_and_skipping_first_values():
    linear, norm = nn.Linear(3, 4), nn.BatchNorm1d(4)
    with tg.no_grad():
        norm(3 * tg.randn(8, 4) + 1)
    linear.eval(), norm.eval()
    x = tg.randn(2, 3)
    fused = utils.fuse_linear_bn_eval(linear, norm)
    assert tg.allclose(fused(x), norm(linear(x)), atol=1e-5)
    with pytest.raises(AssertionError, match="only for eval"):
        utils.fuse_linear_bn_eval(linear.train(), norm)
    before = tg.get_rng_state().clone()
    utils.skip_init(nn.Linear, 2, 3)
    assert tg.equal(tg.get_rng_state(), before)
    with pytest.raises(RuntimeError, match="must support a 'device' arg"):
        utils.skip_init(nn.ReLU)
    with pytest.warns(FutureWarning, match="deprecated as of PyTorch 2.0"):
        found = utils.stateless.functional_call(
            nn.Linear(1, 1), {"weight": tg.ones(1, 1), "bias": tg.ones(1)}, (tg.ones(1, 1),)
        )
    assert found.item() == 2
