"""The page of what agrees with PyTorch and what does not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).parents[2]

_HEAD = """# What agrees with PyTorch

Written by `make conformance ARGS="{command}"`,
with PyTorch {version}, Python {python} and tgraph at {commits}:
PyTorch's own test databases run against tgraph, with equal weights and inputs. A module agrees
where its state keys, repr, values, gradients and buffers are PyTorch's in all cases; an optimizer
where parameters and state are after {steps} steps of all option sets (of LBFGS {steps_lbfgs}); an
operation where values, gradients, the method, the method in place and `out=` are, in up to about
{samples} of its samples. What PyTorch's lists say is refused has to raise the same class of error,
or, where it is a number in the place of a tensor, to give what PyTorch gives for the tensor. All
runs eagerly, and the first {compiled} cases of a name compiled, too. Random numbers are tgraph's
own: of what draws them shapes are compared, and dropout is switched off. The ordinary tests run a
sample of the cases, `tests/compat/data`; where there is a CUDA device, with all tensors on it, too
(`--device cuda`).
"""


_BY_VALUES = (
    "what it gives, a value decides: PyTorch's compiler breaks its graph there, and runs it eagerly"
)
_OF_ATEN = "of `torch.ops.aten` alone: `torch` has no such name"
_SIZES = "the tool makes tensors by NumPy, whose arrays have at most 64 dimensions, as tensors here ([differences](differences.md))"  # noqa: E501
_TEXTS = "compiles a kernel of text in C++, for CUDA alone"
_REASONS = {
    "Adam": "`foreach` and `capturable` tell PyTorch's kernels apart, of which there are none here",
    "AdamW": "as `Adam`",
    "LBFGS": "a step decides by values how it goes on: it runs eagerly, its closure compiled",
    "Muon": "it orthogonalizes in bfloat16, whose roundings are another library's own",
    "addbmm": "PyTorch's `addbmm_` gives its tensor another shape; `addmm_` and `baddbmm_` refuse that, and so does it here",  # noqa: E501
    **dict.fromkeys(("allclose", "bincount", "equal", "item", "nn.functional.one_hot",
                     "repeat_interleave", "tensor_split"), _BY_VALUES),
    **dict.fromkeys(("amax", "amin", "aminmax"), _SIZES),
    "as_strided_scatter": "PyTorch gives a gradient to elements of the input that were replaced",
    "chalf": "`complex32`, which NumPy has not ([differences](differences.md))",
    **dict.fromkeys(("jiterator_binary", "jiterator_binary_return_by_ref"), _TEXTS),
    **dict.fromkeys(("max_pool2d_with_indices_backward", "native_dropout_backward", "slice"),
                    _OF_ATEN),
    "narrow": "where a view begins, a plan has to know; PyTorch takes a `start` that is a tensor into its graph",  # noqa: E501
    "narrow_copy": "PyTorch's is an error of its own, as it says; `narrow` gives IndexError there, too",  # noqa: E501
    "resize_": "a trace has no memory that could grow",
    "special.bessel_j0": "PyTorch's is wrong in the seventh digit; SciPy's agrees to 1e-15",
    "special.bessel_y1": "as `special.bessel_j0`",
}  # fmt: skip
"""Why optimizers and operations differ, as their documentation tells."""


_NUMBERS = (
    "Numbers are taken where PyTorch wants tensors ([differences](differences.md)), with what it "
    "gives for tensors, by "
)


def written(results: Mapping[str, Sequence[Any]], **facts: Any) -> str:
    """As Markdown."""
    from .operations import SAMPLES
    from .optimizers import STEPS, STEPS_OF

    lines = [_HEAD.format(steps=STEPS, steps_lbfgs=STEPS_OF["LBFGS"], samples=SAMPLES,
                          commits=_commits(results), **facts)]  # fmt: skip
    lines += ["| family | names | all cases agree | some agree | none agree | not there |",
              "| --- | ---: | ---: | ---: | ---: | ---: |"]  # fmt: skip
    for group, found in _by_group(results).items():
        lines.append(f"| {group} | {len(found)} | {' | '.join(map(str, _counts(found)))} |")
    for family, found in results.items():
        unknown = [f"`{each.name}`" for each in found if not each.count]
        others = [each for each in found if each.differences]
        agreeing = [f"`{each.name}`" for each in found if not each.differences and each.count]
        lines += ["", f"## {family.capitalize()}"]
        lines += ["", f"All cases agree: {', '.join(agreeing)}."] if agreeing else []
        numbers = [f"`{each.name}`" for each in found if each.numbers]
        if numbers:
            lines += ["", _NUMBERS + f"{', '.join(numbers)}."]
        if unknown:
            lines += ["", f"PyTorch runs none of its samples here: {', '.join(unknown)}."]
        if others:
            lines += ["", "| name | cases that agree | first difference | why |",
                      "| --- | ---: | --- | --- |"]  # fmt: skip
            for each in others:
                text = each.differences[0][1].replace(f"{_ROOT}/", "")
                text = text.replace("|", "\\|").replace("\n", " ")
                row = (f"`{each.name}`", f"{each.agree} of {each.count}", text[:160])
                lines.append(f"| {' | '.join(row)} | {_REASONS.get(each.name, '')} |")
    return "\n".join(lines) + "\n"


def _commits(results: Mapping[str, Sequence[Any]]) -> str:
    """At which most ran, and which names at others."""
    names: dict[str, list[str]] = {}
    for found in results.values():
        for each in found:
            names.setdefault(each.commit, []).append(f"`{each.name}`")
    most = max(names, key=lambda commit: len(names[commit]))
    others = [f"{', '.join(names[commit])} again at {commit}" for commit in names if commit != most]
    return "; ".join([most, *others])


def _by_group(results: Mapping[str, Sequence[Any]]) -> dict[str, list[Any]]:
    groups: dict[str, list[Any]] = {}
    for found in results.values():
        for each in found:
            if each.count:
                groups.setdefault(each.group, []).append(each)
    return groups


def _is_missing(result: Any) -> bool:
    return bool(result.differences) and not result.agree and all(
        text.startswith("missing") for _, text in result.differences
    )  # fmt: skip


def _counts(found: Sequence[Any]) -> tuple[int, int, int, int]:
    missing = sum(map(_is_missing, found))
    whole = sum(not each.differences for each in found)
    none = sum(bool(each.differences) and not each.agree for each in found) - missing
    return whole, len(found) - whole - none - missing, none, missing
