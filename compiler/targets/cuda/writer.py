"""Lines of CUDA C, and the small expressions that hand-written kernels are filled in with."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from math import prod

from ...kernel.kernel import Param
from .scalar import memory_type
from .template import TemplateSchedule


class CudaWriter:
    """A text on its way out: lines so far, and the current indentation."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.indent = 0

    def line(self, text: str) -> None:
        self.lines.append("  " * self.indent + text if text else "")

    def text(self) -> str:
        return "\n".join([*self.lines, ""])

    @contextmanager
    def block(self, head: str, end: str = "}") -> Iterator[None]:
        """Braces around what is written inside."""
        self.line(f"{head} {{" if head else "{")
        self.indent += 1
        yield
        self.indent -= 1
        self.line(end)

    @contextmanager
    def unrolled(self, name: str, count: int, step: int = 1) -> Iterator[None]:
        """A loop that the compiler writes out."""
        self.line("#pragma unroll")
        increment = f"++{name}" if step == 1 else f"{name} += {step}"
        with self.block(f"for (int {name} = 0; {name} < {count}; {increment})"):
            yield

    @contextmanager
    def definition(
        self, schedule: TemplateSchedule, name: str, blocks_per_processor: int = 1
    ) -> Iterator[None]:
        """The head of the kernel around its body."""
        x, y = schedule.block
        params = ", ".join(map(declared, schedule.kernel.params))
        bounds = str(x * y) if blocks_per_processor == 1 else f"{x * y}, {blocks_per_processor}"
        with self.block(f'extern "C" __global__ void __launch_bounds__({bounds}) {name}({params})'):
            yield


_SHARED = re.compile(r"(?<!extern )__shared__ (?:__align__\(16\) )?([a-z ]+) \w+((?:\[\d+\])+);")
_BYTES = {"unsigned char": 1, "bool": 1, "unsigned short": 2, "int": 4, "float": 4, "double": 8}


def declared_shared(source: str) -> dict[str, int]:
    """The shared memory that each kernel of a module's text declares for a block, in bytes."""
    found = {}
    for kernel in source.split('extern "C" __global__ ')[1:]:
        name = kernel[: kernel.index("(", kernel.index(") "))].rsplit(" ", 1)[1]
        found[name] = sum(
            prod(map(int, re.findall(r"\d+", sizes))) * _BYTES.get(type_, 8)
            for type_, sizes in _SHARED.findall(kernel)
        )
    return found


def declared(param: Param) -> str:
    """The declaration of a parameter."""
    if param.by_value:
        return f"Pack<{memory_type(param.dtype)}, {param.elements}> {param.name}"
    const = "" if param.written else "const "
    return f"{const}{memory_type(param.dtype)}* __restrict__ {param.name}"


def linear(terms: Iterable[tuple[str, int]], constant: int = 0) -> str:
    """A sum of names times numbers, without what is zero."""
    found = [
        name if factor == 1 else f"{name} * {factor}" for name, factor in terms if factor and name
    ]
    if constant or not found:
        found.append(str(constant))
    return " + ".join(found).replace("+ -", "- ")


def digit(number: str, below: int, size: int, last: bool = False) -> str:
    """One digit of a number: what `below` lower ones count stands before it.

    `last` is the highest digit, which needs no remainder.
    """
    quotient = f"{number} / {below}" if below > 1 else number
    return quotient if last else f"{quotient} % {size}"


def decode(
    writer: CudaWriter, integer: str, number: str, names: Sequence[str], sizes: Sequence[int]
) -> None:
    """Declare the row-major digits of a number; digits of size one are 0."""
    below = 1
    values: list[str] = []
    for position in range(len(sizes) - 1, -1, -1):
        highest = all(size == 1 for size in sizes[:position])
        value = digit(number, below, sizes[position], highest) if sizes[position] > 1 else "0"
        values.append(f"const {integer} {names[position]} = {value};")
        below *= sizes[position]
    for value in reversed(values):
        writer.line(value)


def conditions(tests: Iterable[str]) -> str:
    """All of the tests that are there, or true."""
    return " && ".join(test for test in tests if test) or "true"


def begin(param: Param) -> str:
    """Where the elements of a parameter begin, for who reads or writes them."""
    return f"{param.name}.at" if param.by_value else param.name
