"""What tests of tensors on devices share."""

from __future__ import annotations

from typing import Any

import numpy as np

import tgraph as tg

CPU = tg.device("cpu")


def same(found: Any, expected: Any, device: Any) -> None:
    """Equal elements and dtypes, of a tensor on the device and one on the CPU."""
    assert found.device == device and found.dtype is expected.dtype
    assert found.shape == expected.shape
    np.testing.assert_array_equal(found.detach().cpu().numpy(), expected.detach().numpy())
