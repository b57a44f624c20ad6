"""Result types of operations for all pairs of types, as PyTorch gave them; it is not needed here.

`python -m tools.promotion_table tests/compat/data/promotion.txt` writes the table.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import tgraph as tg
from tools.promotion_table import LETTERS, OPERATIONS, PAIRS, letter, line

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


def test_every_pair() -> None:
    assert TABLE.keys() == OPERATIONS.keys()
    wrong, taken = [], set()
    for name, wanted in TABLE.items():
        for pair, want, have in zip(PAIRS, wanted, line(tg, OPERATIONS[name]), strict=True):
            if want in (have, "?"):  # complex32 is not there
                continue
            if want == "!" and name in TAKEN:
                taken.add(name)
            elif not (have == "!" and name in REFUSED and pair[2] == 1j):
                wrong.append(f"{name} of {pair}: {have}, not {want}")
    assert not wrong, "\n".join(wrong)
    assert taken == TAKEN


@pytest.mark.parametrize("name", ["mul", "div", "where", "lerp", "cat"])
def test_traced_types_are_the_eager_ones(name: str) -> None:
    call = OPERATIONS[name]
    types = ["bool", "uint8", "int32", "float16", "float32", "complex64"]
    chosen = [
        pair for pair in PAIRS
        if pair[0] in types and (pair[2] in (*types, 2, 2.5))
        and letter(tg, call, pair) != "!"
    ]  # fmt: skip
    tensors = {
        (each, flat): tg.ones(() if flat else 2, dtype=getattr(tg, each))
        for each in types for flat in (False, True)
    }  # fmt: skip

    def operand(given: dict[tuple[str, bool], tg.Tensor], each: object, flat: bool) -> object:
        return given[each, flat] if isinstance(each, str) else each

    def all_of(given: dict[tuple[str, bool], tg.Tensor]) -> list[tg.Tensor]:
        return [call(tg, given[a, flat], operand(given, b, none)) for a, flat, b, none in chosen]

    graph = tg.trace(all_of, tensors)
    found = [LETTERS[each.type.dtype.name] for each in graph.outputs]
    assert found == [letter(tg, call, pair) for pair in chosen]
    assert len(chosen) > 35
