"""What the functions that make networks share: their table, and that no weights are downloaded."""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable, Iterable
from fnmatch import fnmatch
from typing import Any

from ...nn import Module

MODELS: dict[str, Callable[..., Any]] = {}
"""The functions by name."""

Make = Callable[..., Any]


def builder(make: Make) -> Make:
    """Enter a function, and give it torchvision's arguments `weights`, `progress`, `pretrained`."""

    @functools.wraps(make)
    def build(
        weights: Any = None, progress: bool = True, *, pretrained: bool = False, **kwargs: Any
    ) -> Any:
        if pretrained or weights not in (None, False):
            raise NotImplementedError(
                f"{make.__name__}(weights={weights or pretrained!r}): nothing is downloaded. Fetch "
                "torchvision's file of weights yourself; model = "
                f"{make.__name__}(); model.load_state_dict(tgraph.load('FILE.pth')) takes it"
            )
        return make(**kwargs)

    del build.__wrapped__  # its arguments are those of `build`
    MODELS[make.__name__] = build
    return build


@functools.cache
def weights_enum(name: str) -> type[enum.Enum]:
    """torchvision's names of a network's weights, which programs import beside it, as
    `ResNet18_Weights`. To ask the network for them is an error; AttributeError of other names."""
    network, found, rest = name.partition("_Weights")
    if not found or rest or network.lower() not in MODELS:
        raise AttributeError(f"module 'tgraph.vision.models' has no attribute {name!r}")
    return enum.Enum(name, ["DEFAULT", "IMAGENET1K_V1", "IMAGENET1K_V2"])


def list_models(
    module: Any = None,
    include: str | Iterable[str] | None = None,
    exclude: str | Iterable[str] | None = None,
) -> list[str]:
    """The names of the networks, by patterns with `*`.

    >>> list_models(include="resnet*")
    ['resnet101', 'resnet152', 'resnet18', 'resnet34', 'resnet50']
    """
    names = set(MODELS)
    if module is not None:
        names = {name for name in names if getattr(module, name, None) is MODELS[name]}
    if include:
        names = {name for name in names if _fits(name, include)}
    if exclude:
        names = {name for name in names if not _fits(name, exclude)}
    return sorted(names)


def _fits(name: str, patterns: str | Iterable[str]) -> bool:
    return any(
        fnmatch(name, each) for each in ([patterns] if isinstance(patterns, str) else patterns)
    )


def get_model_builder(name: str) -> Make:
    """The function of a name; ValueError where there is none."""
    try:
        return MODELS[name.lower()]
    except KeyError:
        raise ValueError(f"Unknown model {name}; there are {', '.join(sorted(MODELS))}") from None


def get_model(name: str, **config: Any) -> Module:
    """A network by name.

    >>> get_model("squeezenet1_1", num_classes=10).num_classes
    10
    """
    model: Module = get_model_builder(name)(**config)
    return model


def make_divisible(value: float, divisor: int, min_value: int | None = None) -> int:
    """The multiple of `divisor` next to a number of channels, at least 90 % of it."""
    nearest = max(min_value or divisor, int(value + divisor / 2) // divisor * divisor)
    return nearest + divisor if nearest < 0.9 * value else nearest
