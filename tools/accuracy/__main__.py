"""`make accuracy`: measures all functions beside PyTorch and mpmath, and writes what it finds.

`python -m tools.accuracy lgamma erf` prints the errors of functions whose names contain one of the
words, with the places of the greatest ones and of all values that are wrong.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from . import sample
from .exact import exact
from .functions import FUNCTIONS, Function
from .measure import WAYS, Error, Exact, summary
from .references import REFERENCES

HEAD = """# How exact functions of numbers are

Written by `make accuracy`, which compares with mpmath at 90 digits;
`tests/accuracy/test_accuracy.py` holds the same functions at some of the points.

A cell tells the greatest error and the mean one in units in the last place (ulp) of the type: 0.5
is a value that is rounded once. "n wrong" are values that are NaN or infinite where they should not
be, or the other way around; they are not in the errors. Points are spaced logarithmically from the
smallest normal number to where results overflow or vanish, with more where functions are usually
asked, beside what they change at, subnormal numbers, infinities, NaN and both zeros. "Compiled" is
the CPU's code; kernels of CUDA have the device's own functions.

- Functions marked * cross zero. Their errors are in units of the height of the wave there and not
  of the value, as a number that is itself rounded has no exact zero: 1 for polynomials, `lgamma`
  and `digamma`, the amplitude for Bessel and Airy functions and `sinc`, |x| / 2 for `gelu`, the
  terms that are summed for polynomials of Hermite and Laguerre.
- Outside of a domain and at infinities PyTorch's values are wanted, and where it gives NaN though
  there is a limit (Bessel functions and `airy_ai` at infinity, `polygamma` there) the limit.
- Special functions compute in float64 and round once, so float32 is exact to half a unit.
- What is far from half a unit has its reason in the formula: `sinc` rounds pi * x, as PyTorch does;
  `silu` and `mish` multiply by a number that is subnormal; Chebyshev polynomials follow a rounded
  angle; `igammac` subtracts from 1 where its first argument is near 0, `airy_ai` rounds the phase
  of its wave far to the left.
"""


def measured(function: Function, values: Exact) -> dict[str, Error]:
    return {way: summary(call(function, values.points), values) for way, call in WAYS.items()}


def _number(error: float) -> str:
    if error < 1000:
        return f"{error:.1f}" if error >= 0.95 else f"{error:.2g}"
    return f"{error:.0e}".replace("e+0", "e").replace("e+", "e")


def cell(error: Error) -> str:
    wrong = f", {error.wrong.size} wrong" if error.wrong.size else ""
    return f"{_number(error.greatest)} ({_number(error.mean)}){wrong}"


def page(found: dict[tuple[str, str], dict[str, Error]]) -> str:
    parts = [HEAD]
    for dtype in ("float32", "float64"):
        parts += [f"## {dtype}\n", f"| function | {' | '.join(WAYS)} |", "| --- " * 4 + "|"]
        for function in FUNCTIONS:
            errors = found[function.name, dtype]
            star = " *" if REFERENCES[function.name].size is not None else ""
            cells = " | ".join(cell(errors[way]) for way in WAYS)
            parts.append(f"| `{function.name}`{star} | {cells} |")
        parts.append("")
    return "\n".join(parts)


def _places(values: Exact, places: Any) -> list[tuple[Any, ...]]:
    return [tuple(float(each[at]) for each in values.points) for at in places]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("words", nargs="*")
    parser.add_argument("--page", type=Path)
    parser.add_argument("--sample", type=Path)
    options = parser.parse_args()
    found, samples = {}, []
    for function in FUNCTIONS:
        if options.words and not any(word in function.name for word in options.words):
            continue
        for dtype in (np.float32, np.float64):
            name = np.dtype(dtype).name
            values = exact(function, dtype)
            errors = measured(function, values)
            found[function.name, name] = errors
            own = [errors["eager"], errors["compiled"]]
            most = sample.bound(max(each.greatest for each in own))
            few = sample.chosen(values, [each.worst for each in own])
            samples.append(sample.Sample(function.name, name, few, most))
            print(f"{function.name}, {name}")
            for way, error in errors.items():
                print(f"    {way}: {cell(error)}; worst {_places(values, [error.worst])}")
                if error.wrong.size:
                    print(f"        wrong {_places(values, error.wrong)}")
    if options.page:
        options.page.write_text(page(found))
    if options.sample:
        sample.write(options.sample, samples)


if __name__ == "__main__":
    main()
