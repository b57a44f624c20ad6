"""DataParallel: a batch is cut, and a copy of the module on each device takes a part."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

from ...core.devices import DeviceLike, as_device
from ...runtime.cuda.devices import device_count
from ...runtime.device import Device
from ..module import Module
from .parallel_apply import parallel_apply
from .replicate import replicate
from .scatter_gather import gather, scatter_kwargs


class DataParallel(Module):
    """Runs `module` on several devices, each with a part of the batch.

    A call cuts its tensors along `dim`, copies the module to `device_ids`, runs each copy with its
    part, and puts the results together on `output_device`, the first one unless given. Gradients
    add up in the parameters of `module`, which must be on the first device. What copies write to
    attributes is lost, but for buffers on the first device (running statistics).

    Devices are numbers of CUDA devices or names, also of those of the CPU (`cpu:1`). Unless given,
    they are all CUDA devices; where there is none, `module` runs as it is. A mean over a batch is
    that of parts: take the loss of what the call gives, for the gradient of one device.

    >>> import tgraph as tg
    >>> net = tg.nn.DataParallel(tg.nn.Linear(3, 2), device_ids=["cpu:0", "cpu:1"])
    >>> net(tg.ones(5, 3)).shape, list(net.state_dict())
    (tgraph.Size([5, 2]), ['module.weight', 'module.bias'])
    """

    def __init__(
        self,
        module: Module,
        device_ids: Sequence[DeviceLike] | None = None,
        output_device: DeviceLike = None,
        dim: int = 0,
    ) -> None:
        super().__init__()
        given = range(device_count()) if device_ids is None else device_ids
        devices = [as_device(each) for each in given]
        self.module = module
        self.dim = dim
        self.device_ids = [_number(each) for each in devices]
        self.output_device: int | Device | None = None
        if not devices:
            return
        out = devices[0] if output_device is None else as_device(output_device)
        self.output_device = _number(out)
        self.src_device_obj = devices[0]
        if len(devices) == 1:
            self.module.to(devices[0])

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        if not self.device_ids:
            return self.module(*inputs, **kwargs)
        _check_place(self.module, self.src_device_obj)
        parts, named = self.scatter(inputs, kwargs, self.device_ids)
        if not parts:  # a module without arguments
            parts, named = ((),), ({},)
        if len(self.device_ids) == 1:
            return self.module(*parts[0], **named[0])
        used = self.device_ids[: len(parts)]
        replicas = self.replicate(self.module, used)
        return self.gather(self.parallel_apply(replicas, parts, named), self.output_device)

    def replicate(self, module: Module, device_ids: Sequence[DeviceLike]) -> list[Module]:
        """Copies of the module on devices."""
        return replicate(module, device_ids)

    def scatter(
        self, inputs: tuple[Any, ...], kwargs: dict[str, Any] | None,
        device_ids: Sequence[DeviceLike],
    ) -> Any:  # fmt: skip
        """Arguments in parts for devices."""
        return scatter_kwargs(inputs, kwargs, device_ids, self.dim)

    def parallel_apply(self, replicas: Sequence[Module], inputs: Any, kwargs: Any) -> list[Any]:
        """What copies give for their parts."""
        return parallel_apply(replicas, inputs, kwargs, self.device_ids[: len(replicas)])

    def gather(self, outputs: Sequence[Any], output_device: DeviceLike) -> Any:
        """The results of copies as one."""
        return gather(outputs, output_device, self.dim)


def data_parallel(
    module: Module,
    inputs: Any,
    device_ids: Sequence[DeviceLike] | None = None,
    output_device: DeviceLike = None,
    dim: int = 0,
    module_kwargs: dict[str, Any] | None = None,
) -> Any:
    """A single call of `module` on several devices, as `DataParallel` makes it.

    >>> import tgraph as tg
    >>> tg.nn.parallel.data_parallel(tg.nn.ReLU(), tg.tensor([-1.0, 1.0]), ["cpu:0", "cpu:1"])
    tensor([0., 1.])
    """
    given = inputs if isinstance(inputs, tuple) else () if inputs is None else (inputs,)
    devices = [as_device(each) for each in (device_ids or range(device_count()))]
    if not devices:
        raise RuntimeError(
            "data_parallel(): no available devices were found; name those of the CPU, as in "
            'device_ids=["cpu:0", "cpu:1"], or call the module itself'
        )
    _check_place(module, devices[0])
    parts, named = scatter_kwargs(given, module_kwargs, devices, dim)
    if not parts:
        parts, named = ((),), ({},)
    if len(devices) == 1:
        return module(*parts[0], **named[0])
    used = devices[: len(parts)]
    outputs = parallel_apply(replicate(module, used), parts, named, used)
    return gather(outputs, devices[0] if output_device is None else output_device, dim)


def _number(device: Device) -> int | Device:
    """What users call a device of CUDA; those of the CPU have no numbers of their own."""
    return device.index if device.type == "cuda" and device.index is not None else device


def _check_place(module: Module, device: Device) -> None:
    for each in chain(module.parameters(), module.buffers()):
        if each.device != device:
            raise RuntimeError(
                f"module must have its parameters and buffers on device {device} (device_ids[0]) "
                f"but found one of them on device: {each.device}; move it with "
                f"module.to('{device}')"
            )
