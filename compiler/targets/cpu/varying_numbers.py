"""Kernels for other sizes, whose texts differ in numbers alone, as one that is given them.

Which numbers become parameters, `compiler/kernel/varying_texts.py` knows. Which may, and how LLVM's
text reads them, is told here: LLVM makes better loops of those it knows.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ....runtime.records import NamedTuple, replace
from ...kernel.varying_texts import Families
from .module_text import KernelText

MOST_PARAMETERS = 64

_VALUE = r"(?:-?\d+|%\w+)"
_FLOAT = r"(?:0x[0-9A-F]{16}|%\w+)"
# Instructions whose operands may be registers as well. Of divisions LLVM must know the divisor, as
# by an integer that it does not know they take long.
_LINE = re.compile(
    rf"  %v\d+ = (?:"
    rf"icmp \w+ i64 {_VALUE}, {_VALUE}"
    rf"|(?:add|sub|mul)(?: nuw| nsw)* i64 {_VALUE}, {_VALUE}"
    rf"|phi i64 \[ {_VALUE}, %\w+ \], \[ {_VALUE}, %\w+ \]"
    rf"|call i64 @llvm\.(?:smin|smax)\.i64\(i64 {_VALUE}, i64 {_VALUE}\)"
    rf"|getelementptr(?: inbounds)? \w+, ptr %\w+, i64 {_VALUE}"
    rf"|f(?:add|sub|mul|div)(?: [a-z]+)* (?P<float>float|double) {_FLOAT}, {_FLOAT}"
    rf")"
)
_INTEGER = re.compile(r"(?<![%\w.])-?\d+(?!\w)")
_BITS = re.compile(r"0x[0-9A-F]{16}")  # of a double, also where it is a float
# What is no number in the way of loops, and yet may be an open size.
_WORDS = re.compile(
    rf"  (?:store i64 {_VALUE}, ptr %\w+"
    rf"|%v\d+ = and i64 {_VALUE}, \d+"
    rf"|switch i64 {_VALUE}, label %\w+ \[(?:i64 \d+, label %\w+ ?)+\]"
    rf"|store (?P<float>float|double) {_FLOAT}, ptr %\w+"
    rf"|%\w+ = alloca \w+, i64 {_VALUE}, align 64"
    rf"|%q\w+ = (?:sitofp i64 {_VALUE} to double|(?:mul|sub) i64 {_VALUE}, {_VALUE}"
    rf"|icmp sge i64 {_VALUE}, {_VALUE}|select i1 %\w+, i64 {_VALUE}, i64 0)"
    rf"|(?:%v\d+ = )?call \w+ @\w+\((?:(?:ptr|i\d+|float|double) {_VALUE}(?:, |\)))+)"
)
# Memory on the stack, which is as large as the kernel asks: whoever wrote it has asked whether that
# is small.
_ROW = re.compile(r"(  %\w+ = alloca )\[(\?\d+\?) x (\w+)\](, align 64)")
# Places in memory divided by a size: both are far below 2^52.
_QUOTIENT = re.compile(rf"  (%v\d+) = (udiv|urem) i64 ({_VALUE}|\?\d+\?), (\?\d+\?)")
_NAME = re.compile(r"\?\d+\?")  # of an open size, see `PlanSizes`
_BODY = "define internal void @NAME_body("
_CALL = "  call void @NAME_body("
_BOUNDS = "i64 %lo, i64 %hi"


_families = Families()


class _Number(NamedTuple):
    """A number in a text: its type there, and the word that gives it."""

    type: str
    word: int


def with_varying_numbers(text: KernelText) -> tuple[KernelText, tuple[int, ...]]:
    """The kernel to compile for one of `text`, and the parameters that make it that one."""
    lines, numbers = _parted(text.text)
    key = lines, text.functions, text.declarations, text.loops, text.small
    varying = _families.varying(key, numbers)
    if not varying or len(varying) > MOST_PARAMETERS:
        return text, ()
    lifted = _lifted(text.text, {at: numbers[at].type for at in varying})
    return replace(text, text=lifted), tuple(numbers[at].word for at in varying)


def with_sizes(text: KernelText, sizes: Mapping[str, Any]) -> tuple[KernelText, tuple[Any, ...]]:
    """The kernel with parameters for the numbers that `sizes` name, and what those are.

    ValueError where one stands where LLVM must know it.
    """
    found: dict[str, str] = {}  # the type of each
    names: dict[str, str] = {}
    lines: list[str] = []
    for line in _with_quotients(text.text.splitlines()):
        line = _ROW.sub(r"\1\3, i64 \2\4", line)
        for name in _NAME.findall(line):
            names.setdefault(name, f"%w{len(names)}")
        written = _NAME.sub(lambda match: names[match[0]], line)
        if written != line:
            known = _LINE.fullmatch(written) or _WORDS.fullmatch(written)
            type_ = known["float"] or "i64" if known else ""
            if any(found.setdefault(name, type_) != type_ for name in _NAME.findall(line)):
                type_ = ""
            if not type_:
                raise ValueError(line.strip())
        lines.append(written)
    if names:
        types = list(found.values())
        lines = [each for line in lines for each in _passed(line, types)]
    return replace(text, text="\n".join(lines)), tuple(sizes[name] for name in names)


def _with_quotients(lines: Sequence[str]) -> Iterator[str]:
    """Lines that divide by open sizes as others that multiply by reciprocals, which has vectors.

    The reciprocal is computed in front of loops. The product is rounded down to the quotient or to
    one beside it, as the rest tells.
    """
    for line in lines:
        found = _QUOTIENT.fullmatch(line)
        if found is None:
            yield line
            continue
        name, what, number, divisor = found.groups()
        own = f"%q{name[2:]}"
        yield f"  {own}a = sitofp i64 {number} to double"
        yield f"  {own}b = sitofp i64 {divisor} to double"
        yield f"  {own}c = fdiv double 1.0, {own}b"
        yield f"  {own}d = fmul double {own}a, {own}c"
        yield f"  {own}e = fptosi double {own}d to i64"
        yield f"  {own}f = mul i64 {own}e, {divisor}"
        yield f"  {own}g = sub i64 {number}, {own}f"
        yield f"  {own}h = icmp slt i64 {own}g, 0"
        yield f"  {own}i = icmp sge i64 {own}g, {divisor}"
        if what == "udiv":
            yield f"  {own}j = sext i1 {own}h to i64"
            yield f"  {own}k = zext i1 {own}i to i64"
            yield f"  {own}l = add i64 {own}j, {own}k"
            yield f"  {name} = add i64 {own}e, {own}l"
        else:
            yield f"  {own}j = select i1 {own}h, i64 {divisor}, i64 0"
            yield f"  {own}k = sub i64 0, {divisor}"
            yield f"  {own}l = select i1 {own}i, i64 {own}k, i64 {own}j"
            yield f"  {name} = add i64 {own}g, {own}l"


def _parted(text: str) -> tuple[tuple[str, ...], tuple[_Number, ...]]:
    """The lines of a text without the numbers that may be parameters, and those."""
    lines: list[str] = []
    numbers: list[_Number] = []
    for line in text.splitlines():
        found = _numbers(line)
        if found is not None:
            pattern, type_ = found
            numbers += [_Number(type_, _word(each)) for each in pattern.findall(line)]
            line = pattern.sub("#", line)
        lines.append(line)
    return tuple(lines), tuple(numbers)


def _numbers(line: str) -> tuple[re.Pattern[str], str] | None:
    """What finds the numbers of a line, and their type; None where they must stay."""
    found = _LINE.fullmatch(line)
    if found is None:
        return None
    return (_BITS, found["float"]) if found["float"] else (_INTEGER, "i64")


def _word(number: str) -> int:
    """The 64 bits of a number, as a signed integer."""
    if not number.startswith("0x"):
        return int(number)
    bits = int(number, 16)
    return bits - (1 << 64) if bits >> 63 else bits


def _lifted(text: str, types: dict[int, str]) -> str:
    """`text` with parameters for some of its numbers, of which the types are given."""
    names = {at: f"%w{parameter}" for parameter, at in enumerate(types)}
    count = itertools.count()
    lines: list[str] = []
    for line in text.splitlines():
        found = _numbers(line)
        if found is not None:
            line = found[0].sub(lambda match: names.get(next(count), match[0]), line)
        lines += _passed(line, list(types.values()))
    return "\n".join(lines)


def _passed(line: str, types: Sequence[str]) -> Iterator[str]:
    """The parameters where the function takes them, and where its wrapper reads and passes them."""
    words = [f"{type_} %w{parameter}" for parameter, type_ in enumerate(types)]
    bounds = ", ".join([_BOUNDS, *words])
    if line.startswith(_BODY):
        yield line.replace(_BOUNDS, bounds)
    elif line.startswith(_CALL):
        behind = line.count("ptr ")  # the addresses lies that of the parameters
        yield f"  %last = getelementptr ptr, ptr %args, i64 {behind}"
        yield "  %words = load ptr, ptr %last"
        for parameter, type_ in enumerate(types):
            yield from _read(parameter, type_)
        yield line.replace(_BOUNDS, bounds)
    else:
        yield line


def _read(parameter: int, type_: str) -> Iterator[str]:
    yield f"  %b{parameter} = getelementptr i64, ptr %words, i64 {parameter}"
    if type_ != "float":
        yield f"  %w{parameter} = load {type_}, ptr %b{parameter}"
        return
    yield f"  %d{parameter} = load double, ptr %b{parameter}"
    yield f"  %w{parameter} = fptrunc double %d{parameter} to float"
