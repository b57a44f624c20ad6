"""The page of what agrees with PyTorch and what does not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

_HEAD = """# What agrees with PyTorch

Written by `make conformance ARGS="modules optimizers operations --write docs/conformance.md"`:
PyTorch {version}'s own test databases run against tgraph, with equal weights and inputs. A module
agrees where its state keys, repr, values, gradients and buffers are PyTorch's in all cases, eagerly
and compiled; an optimizer where parameters and state are after {steps} steps of all option sets; an
operation where values and gradients are, in up to {samples} of its samples. Random numbers are
tgraph's own: of operations that draw them shapes are compared, and dropout is switched off.
"""


def written(results: Mapping[str, Sequence[Any]], version: str) -> str:
    """As Markdown."""
    from .operations import SAMPLES
    from .optimizers import STEPS

    lines = [_HEAD.format(version=version, steps=STEPS, samples=SAMPLES)]
    lines += ["| family | all agree | some agree | none agree | not there |",
              "| --- | ---: | ---: | ---: | ---: |"]  # fmt: skip
    for family, found in results.items():
        lines.append(f"| {family} | {' | '.join(map(str, _counts(found)))} |")
    for family, found in results.items():
        missing = [each.name for each in found if _is_missing(each)]
        others = [each for each in found if each.differences and not _is_missing(each)]
        lines += ["", f"## {family.capitalize()}", ""]
        agreeing = [f"`{each.name}`" for each in found if not each.differences and each.count]
        lines += [f"All cases agree: {', '.join(agreeing)}.", ""]
        if missing:
            lines += [f"Not there: {', '.join(f'`{name}`' for name in missing)}.", ""]
        if others:
            lines += ["| name | cases that agree | first difference |", "| --- | ---: | --- |"]
            for each in others:
                text = each.differences[0][1].replace("|", "\\|").replace("\n", " ")
                lines.append(f"| `{each.name}` | {each.agree} of {each.count} | {text[:120]} |")
    return "\n".join(lines) + "\n"


def _is_missing(result: Any) -> bool:
    return bool(result.differences) and not result.agree and all(
        text.startswith("missing") for _, text in result.differences
    )  # fmt: skip


def _counts(found: Sequence[Any]) -> tuple[int, int, int, int]:
    missing = sum(map(_is_missing, found))
    whole = sum(not each.differences for each in found)
    none = sum(bool(each.differences) and not each.agree for each in found) - missing
    return whole, len(found) - whole - none - missing, none, missing
