"""Draws of numbers of events, as functions of `tgraph`."""

from __future__ import annotations

from ..core.tensor import Tensor
from .binomial import Binomial
from .gamma_draws import poisson as _poisson


def poisson(input: Tensor, generator: object = None) -> Tensor:
    """One draw for each element of a Poisson distribution of that rate."""
    _refuse_generator("poisson", generator)
    if (input < 0).any():
        raise RuntimeError("invalid Poisson rate, expected rate to be non-negative")
    return _poisson(input)


def binomial(count: Tensor, prob: Tensor, generator: object = None) -> Tensor:
    """How many of `count` trials succeed, each with a probability: one draw for each element."""
    _refuse_generator("binomial", generator)
    return Binomial(count, prob).sample()


def _refuse_generator(name: str, generator: object) -> None:
    if generator is not None:
        raise NotImplementedError(
            f"{name}(generator=): draws are of the global generator, see tgraph.manual_seed"
        )
