"""Calls as PyTorch takes them: the order of arguments, defaults and classes of errors.

`python -m tools.call_table tests/compat/data/calls.txt` writes what PyTorch gives, and where the
class of an error is another one here; it is not needed here.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import tgraph as tg
from tools.call_table import CALLS, Library, difference, malformed, shown

LINES = (Path(__file__).parent / "data" / "calls.txt").read_text().splitlines()
TABLE = {call: tuple(rest.split(" | ")) for call, rest in (each.split(" -> ", 1) for each in LINES)}
REASONS = {
    "T=": "a number or a list in the place of a tensor, None in that of all dimensions",
    "R=": "types that differ are promoted; booleans and complex numbers count as others do",
    "N=": "PyTorch has no kernel for the type",
    "=R": "PyTorch reads the memory of a tensor on meta, or loses an imaginary part",
    "=T": "PyTorch takes all arguments that its functions only pass on, or one too many",
    "=I": "positions that are not used are looked at, too",
    "=A": "as =T",
    "=N": "types are looked at on meta, too",
    **dict.fromkeys(
        ("TR", "TI", "TV", "TN", "TA", "RT", "RV", "RI", "RN", "IR", "IN", "IT", "IV", "NR", "NT",
         "VR", "VT"),
        "several things are wrong, and another one is seen first",
    ),
    "AT": "PyTorch's Python code asks something that is no tensor for an attribute",
    "SR": "PyTorch asserts it",
}  # fmt: skip
"""Of a letter of PyTorch's and one of ours, why."""


def test_every_call() -> None:
    assert list(TABLE) == CALLS
    ours, wrong, unknown = Library(tg), [], []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for call, (value, wanted, other) in TABLE.items():
            forms = list(malformed(call))
            if (found := shown(ours.result(call))) != value:
                wrong.append(f"{call}: {found}, not {value}")
            if (found := difference(ours, forms, wanted)) != other.strip():
                wrong.append(f"{call}: {found}, not {other} of {forms}")
            unknown += [f"{call}: {a + b}" for a, b in zip(wanted, other)
                        if b not in ". " and a + b not in REASONS]  # fmt: skip
    assert not wrong, "\n".join(wrong)
    assert not unknown
