"""The texts of kernels put together to one LLVM module: what they call, and metadata of loops."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from ....runtime.records import record
from .function_writer import VectorLoop
from .math.functions import definitions

# A call of memset, made of constants that are stored side by side, would keep a loop from being
# vectorised.
_FUNCTION_ATTRIBUTES = (
    'nounwind "prefer-vector-width"="512" "no-trapping-math"="true" "no-builtin-memset"'
)


@record()
class KernelText:
    """The LLVM text of one kernel, in which NAME stands for its name, and what it calls.

    Equal kernels have equal texts whatever they are called, so that each is compiled once.
    `loops` are its innermost ones, !LOOPN in the text. `small` says that there is too little work
    to be worth the optimiser's time.
    """

    text: str
    functions: frozenset[str]
    declarations: frozenset[str]
    loops: tuple[VectorLoop, ...]
    small: bool = False


def kernels_module(kernels: Mapping[str, KernelText]) -> str:
    """The text of an LLVM module that defines the named kernels."""
    library = definitions(sorted({name for each in kernels.values() for name in each.functions}))
    known = {line for line in library.splitlines() if line.startswith("declare")}
    wanted = {line for each in kernels.values() for line in each.declarations}
    texts: list[str] = []
    loops: list[VectorLoop] = []
    for name, each in kernels.items():
        texts.append(_numbered(each.text.replace("NAME", name), len(loops)))
        loops += each.loops
    attributes = f"attributes #0 = {{ {_FUNCTION_ATTRIBUTES} }}"
    return "\n".join([*sorted(wanted - known), library, *texts, attributes, *_metadata(loops)])


def _numbered(text: str, first: int) -> str:
    """A kernel's text with its loops numbered from `first`."""
    return re.sub(r"!LOOP(\d+)", lambda match: f"!{first + int(match[1])}", text)


def _metadata(loops: Sequence[VectorLoop]) -> Iterator[str]:
    """What LLVM is told of each loop.

    Without a width it would weigh all of them, which takes longer, and where its two cost models
    disagree a build with assertions ends the process.
    """
    number = {shape: len(loops) + 3 * at for at, shape in enumerate(dict.fromkeys(loops))}
    for loop, shape in enumerate(loops):
        at = number[shape]
        yield f"!{loop} = distinct !{{!{loop}, !{at}, !{at + 1}, !{at + 2}}}"
    for shape, at in number.items():
        yield f'!{at} = !{{!"llvm.loop.vectorize.width", i32 {shape.width}}}'
        yield f'!{at + 1} = !{{!"llvm.loop.vectorize.predicate.enable", i1 {int(shape.masked)}}}'
        yield f'!{at + 2} = !{{!"llvm.loop.interleave.count", i32 {shape.interleave}}}'
