"""Operations on placeholders none of whose sizes are known, beside eager code."""

from __future__ import annotations

import numpy as np
import pytest
from test_ops import COMPILED, as_tuple, ids, tensors

import tgraph as tg

# One of so many rows; `compile(dynamic=...)`, whose ways these are, is tested with all.
SHARE = 8


@pytest.mark.parametrize("case", COMPILED[::SHARE], ids=ids)
def test_operations_on_open_sizes_are_right_or_refused(case):
    inputs = tensors(case.arrays(case.dtypes[0]))
    with tg.Graph() as g:
        given = [
            tg.placeholder(x.dtype, [None] * x.ndim, f"given{at}") for at, x in enumerate(inputs)
        ]
    try:
        with g:
            fetches = case.function(*given)
        found = as_tuple(tg.Session(g).run(fetches, dict(zip(given, inputs))))
    except (
        tg.TraceError,
        RuntimeError,
        ValueError,
        AssertionError,
    ) as error:  # a size has to be known
        assert "given" in str(error) or "a number is asked for" in str(error)
        return
    for have, want in zip(found, as_tuple(case.function(*inputs)), strict=True):
        assert have.dtype is want.dtype and have.shape == want.shape
        wide = [np.asarray(each.numpy(), np.complex128) for each in (have, want.detach())]
        np.testing.assert_allclose(*wide, 1e-4, 1e-5)
