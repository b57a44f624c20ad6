"""What a compiled function runs, in words: its kernels, what each computes and moves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from ..compiler.fusion.machine import nanoseconds
from ..compiler.ir import Family, Node
from ..compiler.plan.step_info import StepInfo
from ..runtime.records import record
from .compiled_call import CompiledCall
from .measure import Speed, measured, speeds_of


@record()
class KernelLine:
    """One step of a plan: a generated kernel, a product, a copy or a Python function.

    `speed` is None where nothing was measured.
    """

    info: StepInfo
    speed: Speed | None = None

    @property
    def name(self) -> str:
        return self.info.name

    @property
    def kind(self) -> str:
        """ "kernel", "gemm", "attention", "sort", "copy", "python", "loop" or "branch"."""
        return self.info.kind

    @property
    def nodes(self) -> tuple[Node, ...]:
        return self.info.nodes

    @property
    def bytes(self) -> int:
        """Bytes that it reads and writes."""
        return self.info.bytes

    @property
    def flops(self) -> int:
        """Its operations, roughly: an exponential is as many as it takes."""
        return self.info.flops

    @property
    def price(self) -> float:
        """The rough time in nanoseconds, on a typical machine, by which fusion decided."""
        return self.info.price

    @property
    def apart(self) -> float:
        """The price of the same as a kernel for each value that it computes."""
        return self.info.apart

    @property
    def seconds(self) -> float:
        """How long it takes, if that was measured."""
        return 0.0 if self.speed is None else self.speed.seconds

    @property
    def schedule(self) -> str:
        """How it runs, such as "vectorised along i0 < 512 (16 lanes); 1 task on one thread"."""
        return self.info.summary()

    @property
    def operations(self) -> str:
        """Such as "mul, sum, exp x2"."""
        names = Counter(
            node.primitive.name for node in self.nodes if node.primitive.family is not Family.SOURCE
        )
        return ", ".join(name if n == 1 else f"{name} x{n}" for name, n in names.items())

    @property
    def inside(self) -> tuple[KernelLine, ...]:
        """The steps of the graphs of a branch or a loop."""
        return tuple(map(KernelLine, self.info.inside))

    @property
    def lines(self) -> list[str]:
        """The lines of the user's program that it computes."""
        return list(dict.fromkeys(str(node.where) for node in self.nodes if node.where.file))

    def __str__(self) -> str:
        head = f"{self.name} [{self.kind}]: {self.operations or 'copy'}"
        moved = f"{_amount(self.bytes, 'B')} moved, {_amount(self.flops, 'flop')}"
        texts = [moved + self._price_text(), self.schedule, self._speed_text(), *self.lines]
        inside = [line for each in self.inside for line in str(each).splitlines()]
        return "\n".join([head, *(f"    {text}" for text in (*texts, *inside) if text)])

    def _price_text(self) -> str:
        if not self.price:
            return ""
        apart = f", apart {nanoseconds(self.apart)}" if self.apart != self.price else ""
        return f"; price {nanoseconds(self.price)}{apart}"

    def _speed_text(self) -> str:
        speed = self.speed
        if speed is None or not speed.seconds:
            return ""
        rates = [
            _amount(amount / speed.seconds, unit)
            for amount, unit in ((self.bytes, "B/s"), (self.flops, "flop/s"))
            if amount
        ]
        limit = (
            f"{speed.share:.0%} of {speed.limit} ({_amount(speed.possible, _UNITS[speed.limit])})"
        )
        return f"{_amount(speed.seconds, 's')}: {', '.join([*rates, limit])}"


_UNITS = {"bandwidth": "B/s", "peak": "flop/s"}


@record()
class PlanExplanation:
    """One plan: all its kernels, and the fusions that were not made."""

    title: str
    kernels: tuple[KernelLine, ...]
    refused: tuple[Any, ...]

    @property
    def bytes(self) -> int:
        """Bytes that the kernels read and write."""
        return sum(kernel.bytes for kernel in self.kernels)

    @property
    def flops(self) -> int:
        return sum(kernel.flops for kernel in self.kernels)

    @property
    def seconds(self) -> float:
        """How long the kernels take, one by one, if that was measured."""
        return sum(kernel.seconds for kernel in self.kernels)

    def __str__(self) -> str:
        count = len(self.kernels)
        took = f", {_amount(self.seconds, 's')}" if self.seconds else ""
        lines = [
            f"{self.title}: {count} kernel{'' if count == 1 else 's'}, "
            f"{_amount(self.bytes, 'B')} moved, {_amount(self.flops, 'flop')}{took}"
        ]
        for number, kernel in enumerate(self.kernels, 1):
            first, *rest = str(kernel).splitlines()
            lines += [f"  {number:3d} {first}", *(f"  {line}" for line in rest)]
        if self.refused:
            lines.append("  not fused:")
        lines += [f"    {line}" for each in self.refused for line in _refusal(each).splitlines()]
        return "\n".join(lines)


@record()
class Explanation:
    """What a call of a compiled function runs. `str` of it is a report.

    `sizes` says of those that were to vary (`dynamic`) for which sizes the call was traced, and
    which line of the user's fixed one.
    """

    name: str
    reason: str
    plans: tuple[PlanExplanation, ...]
    sizes: tuple[str, ...] = ()

    @property
    def kernels(self) -> tuple[KernelLine, ...]:
        """The kernels of all plans, forward ones first."""
        return tuple(kernel for plan in self.plans for kernel in plan.kernels)

    @property
    def refused(self) -> tuple[Any, ...]:
        """The fusions that were not made: consumer, producer and reason."""
        return tuple(each for plan in self.plans for each in plan.refused)

    @property
    def bytes(self) -> int:
        return sum(plan.bytes for plan in self.plans)

    @property
    def flops(self) -> int:
        return sum(plan.flops for plan in self.plans)

    @property
    def seconds(self) -> float:
        return sum(plan.seconds for plan in self.plans)

    def __str__(self) -> str:
        head = f"{self.name} (compiled for: {self.reason})"
        return "\n".join([head, *(f"  {each}" for each in self.sizes), *map(str, self.plans)])

    __repr__ = __str__


def explain_plan(
    name: str,
    reason: str,
    plan: CompiledCall,
    leaves: Sequence[Any] | None = None,
    sizes: tuple[str, ...] = (),
    whole: Any = None,
) -> Explanation:
    """The report on one plan, with its backward plan where it has one.

    With `leaves` of a call, its kernels are measured. `sizes` are the notes on those that vary. In
    front are the plans of the earlier stages of `whole`, which are not measured.
    """
    function = plan.function
    if not plan.function.differentiable:
        plans = [("plan", function.plain)]
    else:
        backward, _ = function.backward_plan(function.asks_all)
        plans = [("forward", function.forward.executable), ("backward", backward)]
    if leaves is None:
        speeds: list[list[Speed | None]] = [[None] * len(each.kernels) for _, each in plans]
    else:
        speeds = [list(each) for each in measured(plan, leaves)]
    stages = [each.function.plain for each in getattr(whole, "earlier", ())]
    plans = [*((f"stage {n}", each) for n, each in enumerate(stages, 1)), *plans]
    unknown: list[list[Speed | None]] = [[None] * len(each.kernels) for each in stages]
    speeds = [*unknown, *speeds]
    explained = tuple(_explained(*each, found) for each, found in zip(plans, speeds))
    return Explanation(name, reason, explained, sizes)


def explain_executable(
    name: str,
    sizes: tuple[str, ...],
    executable: Any,
    inputs: Sequence[Any] | None,
    earlier: Sequence[Any] = (),
) -> Explanation:
    """The report on one executable; with `inputs`, its kernels are measured.

    In front are those of `earlier` stages, which are not.
    """
    speeds: Sequence[Speed | None] = [None] * len(executable.kernels)
    if inputs is not None:
        speeds = speeds_of(executable, inputs)
    stages = [
        _explained(f"stage {n}", each, [None] * len(each.kernels))
        for n, each in enumerate(earlier, 1)
    ]
    return Explanation(name, "a graph", (*stages, _explained("plan", executable, speeds)), sizes)


def _explained(title: str, executable: Any, speeds: Sequence[Speed | None]) -> PlanExplanation:
    kernels = tuple(map(KernelLine, executable.kernels, speeds))
    return PlanExplanation(title, kernels, tuple(executable.refused))


def _refusal(refusal: Any) -> str:
    consumer, producer = refusal.consumer, refusal.producer
    return (
        f"{consumer.primitive.name} {consumer.type} ({consumer.where})\n"
        f"  with {producer.primitive.name} {producer.type} ({producer.where}): {refusal.reason}"
    )


def _amount(value: float, unit: str) -> str:
    """Such as "1.5 MB" or "12 us"."""
    if unit == "s":
        value, unit = value * 1e9, "ns"
        for larger in ("us", "ms", "s"):
            if value < 1000:
                break
            value, unit = value / 1000, larger
        return f"{value:.3g} {unit}"
    for prefix in ("", "k", "M", "G", "T"):
        if abs(value) < 1000 or prefix == "T":
            break
        value /= 1000
    digits = f"{value:.0f}" if prefix == "" else f"{value:.3g}"
    return f"{digits} {prefix}{unit}"
