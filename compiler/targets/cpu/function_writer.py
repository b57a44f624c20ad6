"""The text of one LLVM function under construction."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from ....runtime.dtypes import DType
from ....runtime.llvm_text import Text
from ....runtime.records import NamedTuple
from ...ir.size_number import SizeText, is_expression
from .math.functions import function_name, is_long
from .scalar import llvm_type


def known_number(text: str) -> int | None:
    """The number that stands in a text, also an open size; None for what is computed."""
    if type(text) is SizeText:
        size: int = text.size
        return size
    return int(text) if text.isdigit() else None


_SUFFIX = {"float": "f32", "double": "f64"}
_ARITHMETIC: Mapping[str, Callable[[int, int], int]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "sdiv": operator.floordiv,
    "smin": min,
    "smax": max,
}
"""Of numbers that are not negative."""


class VectorLoop(NamedTuple):
    """How LLVM is to vectorise a loop: `width` steps at once, the last ones `masked` or singly.

    `interleave` is how many vectors are taken together; 0 leaves that to LLVM.
    """

    width: int
    masked: bool = False
    interleave: int = 0


ONE_BY_ONE = VectorLoop(1, False, 1)

# At a call: the function is not put in its place, whatever else it says of itself.
_NOT_INLINED = " noinline"


class Writer(Text):
    """The text, and what it refers to; the scalar templates write into it.

    `functions` of the math library and `declarations` are what the text refers to, `allocas` its
    local memory. `loops` are the innermost ones; the N-th refers to its metadata as !LOOPN.
    Long functions are put in the place of their calls only in innermost loops that may become
    vectors, where they must be; nowhere in a text that is not `vectorised`.
    """

    def __init__(self, vectorised: bool = True) -> None:
        super().__init__()
        self._vectorised = vectorised
        self.allocas: list[str] = []
        self.functions: set[str] = set()
        self.declarations: set[str] = set()
        self.loops: list[VectorLoop] = []
        self._inner_loops = 0

    def call(self, op: str, dtype: DType, args: Sequence[str]) -> str:
        """Call the math library's function for `op`; 16-bit floats are computed as float32."""
        computed = "float32" if dtype.kind == "float" and dtype.itemsize < 8 else dtype.name
        function = function_name(op, computed)
        self.functions.add(function)
        type_ = llvm_type(dtype)
        call = f"call {type_} @{function}({', '.join(f'{type_} {a}' for a in args)})"
        return self.op(call + _NOT_INLINED if is_long(function) else call)

    def intrinsic(self, name: str, type: str, args: Sequence[str], flags: str = "") -> str:
        """Call an LLVM intrinsic whose operands and result have one type."""
        full = f"{name}.{_SUFFIX.get(type, type)}"
        self.declarations.add(f"declare {type} @{full}({', '.join([type] * len(args))})")
        return self.op(f"call {flags}{type} @{full}({', '.join(f'{type} {a}' for a in args)})")

    def integer(self, name: str, a: str, b: str | int) -> str:
        """A sum or the like of two integers; known ones are computed here."""
        if (name, str(b)) in (("add", "0"), ("sub", "0"), ("mul", "1")):
            return a
        first, second = known_number(a), known_number(str(b))
        if first is not None and second is not None:
            return str(_ARITHMETIC[name](first, second))
        if name in ("smin", "smax"):
            self.declarations.add(f"declare i64 @llvm.{name}.i64(i64, i64)")
            return self.op(f"call i64 @llvm.{name}.i64(i64 {a}, i64 {b})")
        return self.op(f"{name} i64 {a}, {b}")

    def plus(self, a: str, b: str) -> str:
        """A sum of two integers that are not negative, nor is it too large."""
        return self.op(f"add nuw nsw i64 {a}, {b}")

    def least(self, a: str, b: int) -> str:
        """The smaller one of two integers, of which LLVM does not know that it always is `a`."""
        self.declarations.add("declare i64 @llvm.smin.i64(i64, i64)")
        return self.op(f"call i64 @llvm.smin.i64(i64 {a}, i64 {b})")

    def suppose(self, condition: str) -> None:
        """Tell LLVM what holds here."""
        self.declarations.add("declare void @llvm.assume(i1)")
        self.line(f"call void @llvm.assume(i1 {condition})")

    def sealed(self, type: str, value: str) -> str:
        """An integer as a value that LLVM knows nothing of, and so leaves as it is."""
        return self.op(f'call {type} asm "", "=r,0"({type} {value})')

    @contextmanager
    def unless_zero(self, number: Any) -> Iterator[None]:
        """What is written inside is done where a number is not 0, which is asked if it is open."""
        if not is_expression(number):
            yield
            return
        with self.when(self.op(f"icmp ne i64 {number}, 0")):
            yield

    @contextmanager
    def cases(self, number: Any) -> Iterator[Callable[[int], None]]:
        """What is written behind `begin(value)`, which this gives, is done where `number` is that.

        It is one jump, as rows of a few elements have no time for a test of each value.
        """
        done = self.fresh("done")
        begun: list[str] = []
        at = len(self.lines)
        self.line("")

        def begin(value: int) -> None:
            if begun:
                self.line(f"br label %{done}")
            label = self.fresh("case")
            begun.append(f"i64 {value}, label %{label}")
            self.label(label)

        yield begin
        self.line(f"br label %{done}")
        self.lines[at] = f"  switch i64 {number}, label %{done} [{' '.join(begun)}]"
        self.label(done)

    @contextmanager
    def loop(self, low: str, high: str, vector: VectorLoop | None = None) -> Iterator[str]:
        """A loop over [low, high) in steps of one; yields the counter.

        `vector` is for innermost loops; those without are not vectorised.
        """
        outer, self._inner_loops = self._inner_loops, 0
        head, body, done = (self.fresh(stem) for stem in ("head", "loop", "done"))
        self.line(f"br label %{head}")
        self.label(head)
        some = self.op(f"icmp slt i64 {low}, {high}")
        self.line(f"br i1 {some}, label %{body}, label %{done}")
        self.label(body)
        counter = self.fresh("%v")
        at = len(self.lines)
        self.line("")
        yield counter
        following = self.op(f"add nuw nsw i64 {counter}, 1")
        # Not "less than", of which LLVM would not see how many steps a tile of known size has.
        again = self.op(f"icmp ne i64 {following}, {high}")
        hint, is_innermost = "", self._inner_loops == 0
        self._inner_loops = outer + 1
        if is_innermost:
            self._inline_from(at)
            hint = f", !llvm.loop !LOOP{len(self.loops)}"
            self.loops.append(vector or ONE_BY_ONE)
        self.line(f"br i1 {again}, label %{body}, label %{done}{hint}")
        self.lines[at] = f"  {counter} = phi i64 [ {low}, %{head} ], [ {following}, %{self.block} ]"
        self.label(done)

    def _inline_from(self, first: int) -> None:
        """Let the functions that are called from this line on be put in the place of the calls."""
        if self._vectorised:
            lines = self.lines[first:]
            self.lines[first:] = [line.removesuffix(_NOT_INLINED) for line in lines]
