"""Result types of operations for all pairs of types, as PyTorch gave them; it is not needed here.

`python -m tools.promotion_table tests/compat/data/promotion.txt` writes the table.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import tgraph as tg
from tools.promotion_table import LETTERS, OPERATIONS, PAIRS, UNSIGNED, found, possible

TABLE = dict(
    each.rsplit(": ", 1)
    for each in (Path(__file__).parent / "data" / "promotion.txt").read_text().splitlines()
)
TAKEN = {
    "div", "truediv", "pow", "rpow", "maximum", "atan2", "logical_and", "logical_and_", "ldexp",
    "lerp", "addcmul", "clamp",
}  # fmt: skip
"""Operations that take some pairs that PyTorch refuses: docs/differences.md."""
REFUSED = {"copy_", "fill_", "masked_fill"}
"""Those that refuse a Python complex number for real tensors."""


def _is_meant(name: str, pair: Any, want: str, have: list[str]) -> bool:
    """What docs/differences.md tells: numbers in the place of tensors, and unsigned integers."""
    if not want.isupper():
        return have[0].isupper() and name in REFUSED and pair[2] == 1j
    return bool({pair[0], pair[2]} & {*UNSIGNED}) or (want == "T" and not isinstance(pair[2], str))


def test_every_pair() -> None:
    """Types, and classes of errors; PyTorch refuses most pairs with unsigned integers."""
    assert TABLE.keys() == OPERATIONS.keys()
    wrong, taken = [], set()
    for name, wanted in TABLE.items():
        for pair, want in zip(PAIRS, wanted, strict=True):
            have = possible(found(tg, OPERATIONS[name], pair))
            if want in have or want == "?":  # complex32 is not there
                continue
            if want.isupper() and have[0].islower() and name in TAKEN:
                taken.add(name)
            elif not _is_meant(name, pair, want, have):
                wrong.append(f"{name} of {pair}: {have}, not {want}")
    assert not wrong, "\n".join(wrong)
    assert taken == TAKEN


TYPES = ["bool", "uint8", "int32", "float16", "float32", "complex64"]
TENSORS = {
    (each, flat): tg.ones(() if flat else 2, dtype=getattr(tg, each))
    for each in TYPES for flat in (False, True)
}  # fmt: skip


def _traced(name: str, pairs: list[Any]) -> list[str]:
    def results(given: dict[tuple[str, bool], tg.Tensor]) -> list[tg.Tensor]:
        return [
            OPERATIONS[name](
                tg, given[a, flat].clone(),  # some write into it
                given[b, none] if isinstance(b, str) else b,
            )
            for a, flat, b, none in pairs
        ]  # fmt: skip

    return [LETTERS[each.type.dtype.name] for each in tg.trace(results, TENSORS).outputs]


@pytest.mark.filterwarnings("ignore:Casting complex values to real")
@pytest.mark.parametrize("part", range(2))
def test_traced_types_are_the_eager_ones(part: int) -> None:
    """Of all operations; and the first pairs that are refused are refused alike."""
    pairs = [each for each in PAIRS if each[0] in TYPES and each[2] in (*TYPES, 2, 2.5)]
    for name in sorted(OPERATIONS.keys() - {"result_type", "can_cast"})[part::2]:
        eager = {pair: possible(found(tg, OPERATIONS[name], pair)) for pair in pairs}
        taken = [pair for pair in pairs if eager[pair][0].islower()]
        assert _traced(name, taken) == [eager[pair][0] for pair in taken], name
        assert len(taken) >= 5, name  # matmul takes one type
        for pair in [each for each in pairs if each not in taken][:2]:
            with pytest.raises(Exception) as caught:
                _traced(name, [pair])
            assert set(possible(caught.value)) & set(eager[pair]), (name, pair)
