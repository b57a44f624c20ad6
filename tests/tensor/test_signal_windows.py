"""Windows of signals, of all lengths, against SciPy's; what they refuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tgraph as tg

ARGUMENTS: dict[str, dict[str, Any]] = {
    "bartlett": {}, "blackman": {}, "cosine": {}, "exponential": {"tau": 2.5},
    "gaussian": {"std": 1.7}, "general_cosine": {"a": [0.5, 0.3, 0.2]},
    "general_hamming": {"alpha": 0.6}, "hamming": {}, "hann": {}, "kaiser": {"beta": 9.0},
    "nuttall": {},
}  # fmt: skip


@pytest.mark.parametrize("sym", [True, False])
def test_windows(sym: bool) -> None:
    from scipy.signal import windows  # takes a second

    assert set(ARGUMENTS) == set(tg.signal.windows.__all__)
    for name, arguments in ARGUMENTS.items():
        for size in (0, 1, 2, 7, 8):
            found = getattr(tg.signal.windows, name)(size, sym=sym, dtype=tg.float64, **arguments)
            want = getattr(windows, name)(size, sym=sym, **arguments)
            np.testing.assert_allclose(found.numpy(), want, atol=1e-14, err_msg=f"{name} {size}")


def test_what_is_refused() -> None:
    found = tg.signal.windows
    for make in (
        lambda: found.hann(-1), lambda: found.hann(3, dtype=tg.int64),
        lambda: found.hann(3, dtype="a"), lambda: found.hann(3, dtype=[1.5]),
        lambda: found.hann(3, layout="sparse_coo"), lambda: found.gaussian(3, std=0.0),
        lambda: found.exponential(3, center=1.0), lambda: found.kaiser(3, beta=-1.0),
        lambda: found.general_cosine(3, a=[]),
    ):  # fmt: skip
        with pytest.raises(ValueError):
            make()
    with pytest.raises(TypeError, match="'requires_grad' must be bool, not int"):
        found.hann(3, requires_grad=2)
    with pytest.raises(TypeError, match=r"hann\(\): argument 'M' .* must be int, not float"):
        found.hann(3.0)
    with pytest.raises(RuntimeError, match="window overlap add min"):
        spectra = tg.stft(tg.ones(8), 4, center=False, return_complex=True)
        tg.istft(spectra, 4, window=tg.hann_window(4), center=False)
