"""Modules as functions of their parameters, by the older name: see `tgraph.func`."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

from ...core.tensor import Tensor
from ..module import Module


def functional_call(
    module: Module,
    parameters_and_buffers: Mapping[str, Tensor],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Deprecated: `tgraph.func.functional_call`."""
    from ...transforms.functional import functional_call as call

    warnings.warn(
        "This API is deprecated as of PyTorch 2.0 and will be removed in a future version of "
        "PyTorch. Please use torch.func.functional_call instead which is a drop-in replacement.",
        FutureWarning,
        stacklevel=2,
    )
    return call(
        module, parameters_and_buffers, args, kwargs, tie_weights=tie_weights, strict=strict
    )
