"""Copies of a module on several devices, whose gradients arrive at the module itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from ...core.devices import DeviceLike, as_device
from ...core.operands import on_device
from ...core.tensor import Tensor
from ...runtime.device import Device
from ..module import Module
from ..parameter import UninitializedTensorMixin

_M = TypeVar("_M", bound=Module)


def replicate(network: _M, devices: Sequence[DeviceLike], detach: bool = False) -> list[_M]:
    """One copy of `network` for each device, with its parameters and buffers moved there.

    The parameters of a copy are computed from those of `network`, so that gradients go back and add
    up there; with `detach` none do. Where a tensor is already it is no copy: what a copy on the
    module's own device writes into buffers stays. All other attributes are shared.

    RuntimeError for a module whose parameters have no values yet.

    >>> import tgraph as tg
    >>> layer = tg.nn.Linear(2, 1)
    >>> one, two = tg.nn.parallel.replicate(layer, ["cpu:0", "cpu:1"])
    >>> two.weight.device, two.weight.is_leaf
    (device(type='cpu', index=1), False)
    """
    return [_replica(network, as_device(each), detach) for each in devices]


def _replica(network: _M, device: Device, detach: bool) -> _M:
    """Tensors and modules that are met twice are one in the copy, too."""
    moved: dict[int, Tensor] = {}
    modules = list(network.modules())
    copies = {id(module): module._replicate_for_data_parallel() for module in modules}

    def there(tensor: Tensor) -> Tensor:
        if isinstance(tensor, UninitializedTensorMixin):
            raise RuntimeError(
                "replicate(): the module has parameters without values. Run a forward pass of it "
                "on one device first, to initialize lazy modules"
            )
        if id(tensor) not in moved:
            moved[id(tensor)] = on_device(tensor.detach() if detach else tensor, device)
        return moved[id(tensor)]

    for module in modules:
        copy = copies[id(module)]
        for name, child in module._modules.items():
            copy._modules[name] = None if child is None else copies[id(child)]
        for name, parameter in module._parameters.items():
            # A plain attribute: parameters are leaves.
            object.__setattr__(copy, name, None if parameter is None else there(parameter))
        for name, buffer in module._buffers.items():
            if buffer is not None:
                copy._buffers[name] = there(buffer)
    result: _M = copies[id(network)]
    return result
