"""The digits example on a device."""

from __future__ import annotations

import runpy
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

pytest_plugins = ["cuda_tools.device"]
pytestmark = pytest.mark.slow
EXAMPLE = Path(__file__).parents[2] / "examples" / "digits.py"


@pytest.mark.parametrize("name", ["mlp", "cnn"])
def test_training_as_on_the_cpu(cuda, name, tmp_path):
    pytest.importorskip("sklearn")
    example = runpy.run_path(str(EXAMPLE))
    example["train"].__globals__.update(OUT=tmp_path, BATCH=359, tqdm=_quiet)
    pictured = find_spec("graphviz") is not None
    if not pictured:
        example["train"].__globals__.update(draw=lambda *_: None)
    runs = [
        example["train"](name, example[name], compiled, 1, 0, device)
        for compiled, device in ((False, "cpu"), (True, "cuda"))
    ]
    np.testing.assert_allclose(runs[1].losses, runs[0].losses, rtol=1e-4)
    if pictured:
        assert "cuda" in (tmp_path / f"{name}_fused.svg").read_text()


class _quiet:
    """A progress bar that nobody sees."""

    def __init__(self, **_):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def update(self):
        pass

    def set_postfix(self, **_):
        pass
