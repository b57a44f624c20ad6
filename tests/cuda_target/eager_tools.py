"""What tests of plans of eager mode share: what ran on the device, and an example."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from test_ops import as_tuple, check_values
from tgraph.runtime.cuda import arrays, backend, capture, nvrtc, step_runner

import tgraph as tg
from tgraph.core import eager_context


class Counted:
    """What the device was asked for: kernels of plans, operations by themselves, and the rest.

    `compiled` are texts that NVRTC was asked for, `others` transfers and captures.
    """

    def __init__(self, monkeypatch: Any) -> None:
        self.kernels: list[str] = []
        self.operations: list[str] = []
        self.compiled: list[str] = []
        self.others: list[str] = []
        launch, evaluate = step_runner.launch, eager_context._evaluate_on_device
        compile_cubin = nvrtc.compile_cubin

        def launched(asked: Any, stream: Any) -> None:
            self.kernels.append(asked.name)
            launch(asked, stream)

        def evaluated(primitive: Any, *arguments: Any) -> Any:
            self.operations.append(primitive.name)
            return evaluate(primitive, *arguments)

        def compiled(source: str, arch: str) -> bytes:
            self.compiled.append(source)
            return compile_cubin(source, arch)

        def noted(what: str, function: Any) -> Any:
            def call(*args: Any, **kwargs: Any) -> Any:
                self.others.append(what)
                return function(*args, **kwargs)

            return call

        monkeypatch.setattr(step_runner, "launch", launched)
        monkeypatch.setattr(eager_context, "_evaluate_on_device", evaluated)
        monkeypatch.setattr(nvrtc, "compile_cubin", compiled)
        runtime = backend.cupy().cuda.runtime
        monkeypatch.setattr(runtime, "memcpyAsync", noted("copy", runtime.memcpyAsync))
        monkeypatch.setattr(arrays, "uploaded", noted("upload", arrays.uploaded))
        monkeypatch.setattr(capture.Capture, "graph", noted("capture", capture.Capture.graph))

    def clear(self) -> None:
        for each in (self.kernels, self.operations, self.compiled, self.others):
            each.clear()

    def one_launch(self) -> bool:
        """Whether the device was asked for one kernel, and for nothing else."""
        return len(self.kernels) == 1 and not (self.operations or self.compiled or self.others)


def settled(function: Callable[..., Any], *args: Any) -> Any:
    """What it gives once all there is to plan has been planned."""
    for _ in range(5):
        result = function(*args)
    return result


def same(found: Any, expected: Any, tolerance: float, what: str) -> None:
    found, expected = as_tuple(found), as_tuple(expected)
    assert len(found) == len(expected), what
    for have, want in zip(found, expected, strict=True):
        assert have.device.type == "cuda", what
        assert (have.dtype, have.shape) == (want.dtype, want.shape), what
        check_values(have.detach().cpu().numpy(), want.detach().numpy(), tolerance, what)


@tg.fused
def swish(x: Any, slope: Any) -> Any:
    return x / (1 + tg.exp(-slope * x))


def parameters(device: Any) -> list[Any]:
    rng = np.random.default_rng(0)
    made = [rng.standard_normal(shape).astype(np.float32) for shape in ((4, 3), (3,), ())]
    return [tg.from_numpy(np.array(each)).to(device).requires_grad_() for each in made]


def set_gradients(parameters: Sequence[Any], seed: int) -> None:
    rng = np.random.default_rng(seed)
    for each in parameters:
        values = rng.standard_normal(each.shape).astype(np.float32)
        each.grad = tg.from_numpy(np.array(values)).to(each.device)
