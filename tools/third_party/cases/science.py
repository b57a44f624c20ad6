"""Differential equations, flows, processes, graphs."""

from __future__ import annotations

from typing import Any

from .registry import case, floats


@case
def torchdiffeq__rk4() -> tuple[Any, list[Any]]:
    return _odeint("rk4")


@case
def torchdiffeq__dopri5() -> tuple[Any, list[Any]]:
    return _odeint("dopri5")


@case
def torchdiffeq__adjoint() -> tuple[Any, list[Any]]:
    return _odeint("dopri5", adjoint=True)


def _odeint(method: str, adjoint: bool = False) -> tuple[Any, list[Any]]:
    import torch
    import torchdiffeq

    solve = torchdiffeq.odeint_adjoint if adjoint else torchdiffeq.odeint

    class Flow(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = torch.nn.Sequential(
                torch.nn.Linear(2, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2)
            )

        def forward(self, t: Any, y: Any) -> Any:
            return self.net(y * y * y)

    class Solved(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.flow = Flow()

        def forward(self, y: Any) -> Any:
            return solve(self.flow, y, torch.linspace(0.0, 1.0, 5), method=method)

    return Solved(), [floats(3, 2)]


@case
def nflows__coupling() -> tuple[Any, list[Any]]:
    from nflows.distributions.normal import StandardNormal
    from nflows.flows.base import Flow
    from nflows.transforms.autoregressive import MaskedAffineAutoregressiveTransform
    from nflows.transforms.base import CompositeTransform
    from nflows.transforms.permutations import ReversePermutation

    layers = [
        each
        for _ in range(2)
        for each in (
            ReversePermutation(features=3),
            MaskedAffineAutoregressiveTransform(features=3, hidden_features=8),
        )
    ]
    flow = Flow(CompositeTransform(layers), StandardNormal([3]))
    flow.forward = flow.log_prob
    return flow, [floats(4, 3)]


@case
def siren_pytorch__net() -> tuple[Any, list[Any]]:
    from siren_pytorch import SirenNet

    return SirenNet(dim_in=2, dim_hidden=16, dim_out=3, num_layers=3), [floats(5, 2)]


@case
def geoopt__poincare() -> tuple[Any, list[Any]]:
    import geoopt

    ball = geoopt.PoincareBall()

    def call(x: Any, y: Any) -> Any:
        one, other = ball.expmap0(x * 0.1), ball.expmap0(y * 0.1)
        return ball.dist(one, other) + ball.mobius_add(one, other).sum(-1)

    return call, [floats(4, 3), floats(4, 3, seed=1)]


@case
def geoopt__mobius() -> tuple[Any, list[Any]]:
    import torch
    from geoopt.manifolds.stereographic import math

    def call(x: Any, y: Any) -> Any:
        k = torch.tensor(-1.0)
        one, other = math.expmap0(x * 0.1, k=k), math.expmap0(y * 0.1, k=k)
        return math.dist(one, other, k=k) + math.mobius_add(one, other, k=k).sum(-1)

    return call, [floats(4, 3), floats(4, 3, seed=1)]


@case
def gpytorch__regression() -> tuple[Any, list[Any]]:
    import gpytorch
    import torch

    class Model(gpytorch.models.ExactGP):
        def __init__(self, x: Any, y: Any, likelihood: Any) -> None:
            super().__init__(x, y, likelihood)
            self.mean_module = gpytorch.means.ConstantMean()
            self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())

        def forward(self, x: Any) -> Any:
            return gpytorch.distributions.MultivariateNormal(
                self.mean_module(x), self.covar_module(x)
            )

    x = torch.linspace(0, 1, 12)
    y = torch.sin(x * 6)
    likelihood = gpytorch.likelihoods.GaussianLikelihood()
    model = Model(x, y, likelihood)
    model.train()
    likelihood.train()
    loss = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
    return (lambda scale: loss(model(x), y) * scale.sum()), [floats(1)]


@case
def pyro__normal() -> tuple[Any, list[Any]]:
    import pyro.distributions as dist

    return (lambda x: dist.Normal(x, 1.0).to_event(1).log_prob(x * 2)), [floats(4, 3)]


@case
def torch_geometric__gcn() -> tuple[Any, list[Any]]:
    import torch
    from torch_geometric.nn import GCNConv

    model = GCNConv(4, 3)
    edges = torch.tensor([[0, 1, 2, 3], [1, 2, 3, 0]])

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = model

        def forward(self, x: Any) -> Any:
            return self.layer(x, edges)

    return Net(), [floats(4, 4)]
