"""Errors of functions in units in the last place, at points with stored exact values.

`make accuracy` measured them at more points and wrote the points, values and bounds, and the page
docs/accuracy.md; mpmath and PyTorch are not needed here.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tools.accuracy import measure
from tools.accuracy.functions import BY_NAME, Function
from tools.accuracy.points import Array
from tools.accuracy.sample import Sample, read

SAMPLES = list(read(Path(__file__).parent / "data" / "accuracy.npz"))
NAMES = list(BY_NAME)
SPECIAL = set(NAMES[NAMES.index("erf") :])
"""Those of float32 are those of float64, rounded."""
ALIKE = ("shifted_", "polygamma(3", "polygamma(4", "mvlgamma", "scaled_modified", "ndtri")
"""Made of others' parts: compiled in slow tests only, as elementary functions are, which
tests/cpu_target/test_llvm_math.py holds at more points."""


def failures(samples: list[Sample], way: Callable[[Function, tuple[Array, ...]], Array]) -> str:
    found = []
    for each in samples:
        values = way(BY_NAME[each.name], each.exact.points)
        assert values.dtype.name == each.dtype
        errors = measure.errors(values, each.exact)
        for place in np.flatnonzero(~(errors <= each.bound)).tolist():
            at = [float(part[place]) for part in each.exact.points]
            found.append(
                f"{each.name} of {each.dtype} {at} is {values[place]!r}, not "
                f"{each.exact.high[place]!r}: {errors[place]:.1f} ulp, of {each.bound}"
            )
    return "\n".join(found)


def test_every_function_has_points() -> None:
    assert [each.name for each in SAMPLES] == [*BY_NAME] * 2
    assert all(each.exact.high.size > 20 for each in SAMPLES)


def test_eager() -> None:
    chosen = [each for each in SAMPLES if each.dtype == "float64" or each.name not in SPECIAL]
    assert not (wrong := failures(chosen, measure.eager)), wrong


def test_compiled_special_functions() -> None:
    chosen = [
        each for each in SAMPLES
        if each.dtype == "float64" and each.name in SPECIAL
        and not any(part in each.name for part in ALIKE)
    ]  # fmt: skip
    assert len(chosen) > 25
    assert not (wrong := failures(chosen, measure.compiled)), wrong


@pytest.mark.slow
@pytest.mark.parametrize("way", [measure.eager, measure.compiled], ids=["eager", "compiled"])
def test_all(way: Callable[[Function, tuple[Array, ...]], Array]) -> None:
    assert not (wrong := failures(SAMPLES, way)), wrong


def test_a_wrong_value_is_told() -> None:
    sample = next(each for each in SAMPLES if each.name == "erf" and each.dtype == "float32")
    off = failures([sample], lambda function, points: measure.eager(function, points) + 1e-6)
    assert "erf of float32" in off and "ulp, of" in off
