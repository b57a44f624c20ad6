"""What tests of fused functions share: what ran on the device, and an example."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from test_ops import as_tuple, check_values
from tgraph.runtime.cuda import backend, elementwise

import tgraph as tg
from tgraph.core import eager_context


class Counted:
    """What ran on the device: kernels of fused functions, and operations by themselves."""

    def __init__(self, monkeypatch: Any) -> None:
        self.kernels: list[str] = []
        self.texts: list[elementwise.Text] = []
        self.operations: list[str] = []
        launch, evaluate = elementwise.launch, eager_context._evaluate_on_device

        def launched(text: Any, *args: Any, **kwargs: Any) -> None:
            self.kernels.append(text.name)
            self.texts.append(text)
            launch(text, *args, **kwargs)

        def evaluated(primitive: Any, tensors: Any, attrs: Any) -> Any:
            self.operations.append(primitive.name)
            return evaluate(primitive, tensors, attrs)

        monkeypatch.setattr(elementwise, "launch", launched)
        monkeypatch.setattr(eager_context, "_evaluate_on_device", evaluated)

    def clear(self) -> None:
        self.kernels.clear()
        self.operations.clear()


def compiled_texts() -> int:
    """How many kernels there are."""
    return sum(key[0] == "elementwise" for key in backend.kept() if isinstance(key, tuple))


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
