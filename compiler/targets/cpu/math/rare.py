"""Arguments that a math function seldom meets: slow code for them, behind a branch per vector.

A loop is vectorised only without branches, so functions work everything out for every argument.
What a few arguments need may be too much for that. A function then ends in a call such as
`tg_rare_sin_f64(x, value)`, the *test*: it gives `value`, or for a rare x what the slow code does.
The vectoriser knows the names of the test's forms for vectors. They ask whether any lane is rare,
and are inlined when all other passes are done (`late` of `compile_module`), as a branch that is
hardly ever taken. Behind it is a call of the slow code, which is compiled once per process and gets
the lanes in memory, so that it needs no forms.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from .....runtime import jit
from .....runtime.records import record
from .builder import Format, FunctionBuilder, Value, constant_text

WIDTHS = (2, 4, 8, 16, 32, 64)
_PURE = "nounwind willreturn memory(none)"


@record()
class Rare:
    """The slow code of an operation, for arguments whose size is above `limit`."""

    op: str
    format: Format
    limit: float
    function: Callable[[FunctionBuilder, Value], Value]

    @property
    def name(self) -> str:
        """The name of the test."""
        return test_name(self.op, self.format)

    @property
    def lanes(self) -> str:
        """The name of the slow code, `void (ptr x, ptr value, i64 count)`."""
        return f"{self.name}_lanes"

    def forms(self) -> Iterator[tuple[str, Format, int]]:
        """Name, format and lanes of the test and of its forms for vectors."""
        yield self.name, self.format, 1
        for width in WIDTHS:
            yield f"{self.name}.v{width}", self.format.in_vectors(width), width

    def load(self) -> int:
        """The address of the slow code."""
        return jit.compile_module(_slow_text(self)).address(self.lanes)


def test_name(op: str, format: Format) -> str:
    """The name of the test for an operation, such as tg_rare_sin_f64."""
    return f"tg_rare_{op}_{format.suffix}"


def rarely(b: FunctionBuilder, op: str, x: Value, value: Value) -> Value:
    """`value`, or what the slow code of `op` gives where x is rare."""
    name, type = test_name(op, b.format), b.format.type
    forms = ",".join(f"_ZGV_LLVM_N{width}vv_{name}({name}.v{width})" for width in WIDTHS)
    call = f"call {type} @{name}({type} {x.text}, {type} {value.text}) {_PURE}"
    return b.emit(f'{call} "vector-function-abi-variant"="{forms}"', type)


def called(text: str) -> list[str]:
    """The tests that a text calls."""
    return sorted(set(re.findall(r"call \w+ @(tg_rare_\w+)\(", text)))


def declarations(tests: Iterable[Rare]) -> str:
    """What a module that calls these tests has to declare."""
    forms = [form for test in tests for form in test.forms()]
    if not forms:
        return ""
    lines = [
        f"declare {format.type} @{name}({format.type}, {format.type}) {_PURE}"
        for name, format, _ in forms
    ]
    # Else those that nobody calls yet would be gone before loops are vectorised.
    kept = ", ".join(f"ptr @{name}" for name, _, _ in forms)
    kept = f"@llvm.compiler.used = appending global [{len(forms)} x ptr] [{kept}]"
    return "\n".join([*lines, f'{kept}, section "llvm.metadata"', ""])


def late_definitions(tests: Iterable[Rare]) -> str:
    """The `late` text of a module that calls these tests, whose slow code it is linked with."""
    texts = []
    for test in tests:
        jit.add_symbol(test.lanes, test.load)
        texts.append(f"declare void @{test.lanes}(ptr, ptr, i64) cold nounwind")
        texts += [_test_text(test, *form) for form in test.forms()]
    return "\n".join([*texts, '!0 = !{!"branch_weights", i32 1, i32 1048575}']) if texts else ""


_TEST = """
define available_externally {type} @{name}({type} %given, {type} %value) alwaysinline {{
  %at = alloca {type}
  %to = alloca {type}
  %x = freeze {type} %given
  %size = call {type} @llvm.fabs.{suffix}({type} %x)
  %above = fcmp ogt {type} %size, {limit}
  {any}
  br i1 %any, label %rare, label %done, !prof !0
rare:
  store {type} %x, ptr %at
  store {type} %value, ptr %to
  call void @{lanes}(ptr %at, ptr %to, i64 {count})
  %exact = load {type}, ptr %to
  br label %done
done:
  %result = phi {type} [ %value, %0 ], [ %exact, %rare ]
  ret {type} %result
}}"""
_ANY = {
    False: "%any = or i1 %above, false",
    True: "%any = call i1 @llvm.vector.reduce.or.v{count}i1(<{count} x i1> %above)",
}


def _test_text(test: Rare, name: str, format: Format, count: int) -> str:
    return _TEST.format(
        type=format.type,
        suffix=format.suffix,
        name=name,
        limit=constant_text(test.limit, format.type),
        any=_ANY[count > 1].format(count=count),
        lanes=test.lanes,
        count=count,
    )


_SLOW = """
define void @{lanes}(ptr noalias %xs, ptr noalias %values, i64 %count) {attributes} {{
entry:
  br label %body
body:
  %i = phi i64 [ 0, %entry ], [ %next, %body ]
  %px = getelementptr {type}, ptr %xs, i64 %i
  %pv = getelementptr {type}, ptr %values, i64 %i
  %x = load {type}, ptr %px
  %value = load {type}, ptr %pv
  %size = call {type} @llvm.fabs.{suffix}({type} %x)
  %is_rare = fcmp ogt {type} %size, {limit}
  %exact = call {type} @{name}_exact({type} %x)
  %chosen = select i1 %is_rare, {type} %exact, {type} %value
  store {type} %chosen, ptr %pv
  %next = add nuw nsw i64 %i, 1
  %more = icmp slt i64 %next, %count
  br i1 %more, label %body, label %exit, !llvm.loop !0
exit:
  ret void
}}
!0 = distinct !{{!0, !1, !2, !3}}
!1 = !{{!"llvm.loop.vectorize.width", i32 {width}}}
!2 = !{{!"llvm.loop.vectorize.predicate.enable", i1 true}}
!3 = !{{!"llvm.loop.interleave.count", i32 1}}
"""


def _slow_text(test: Rare) -> str:
    """A module with the slow code."""
    b = FunctionBuilder(f"{test.name}_exact", test.format, "x")
    exact = b.finish(test.function(b, *b.arguments))
    return exact + _SLOW.format(
        lanes=test.lanes,
        name=test.name,
        type=test.format.type,
        suffix=test.format.suffix,
        limit=constant_text(test.limit, test.format.type),
        width=jit.vector_bytes() * 8 // test.format.bits,
        attributes='nounwind "prefer-vector-width"="512" "no-trapping-math"="true"',
    )
