"""What a compiled function runs, in words: its kernels, what each computes and moves."""

from __future__ import annotations

from collections import Counter
from typing import Any

from .compiled_call import CompiledCall
from .compiler.ir import Node
from .runtime.records import record


@record()
class KernelLine:
    """One step of a plan: a generated kernel, a library call or a Python function."""

    name: str
    kind: str
    nodes: tuple[Node, ...]
    bytes: int
    flops: int

    @property
    def operations(self) -> str:
        """Such as "mul, sum, exp x2"."""
        names = Counter(
            node.primitive.name for node in self.nodes if node.primitive.family.name != "SOURCE"
        )
        return ", ".join(name if n == 1 else f"{name} x{n}" for name, n in names.items())

    @property
    def lines(self) -> list[str]:
        """The lines of the user's program that it computes."""
        return list(dict.fromkeys(str(node.where) for node in self.nodes if node.where.file))

    def __str__(self) -> str:
        head = f"{self.name} [{self.kind}]: {self.operations or 'copy'}"
        moved = f"{_amount(self.bytes, 'B')} moved, {_amount(self.flops, 'flop')}"
        return "\n".join([head, f"    {moved}", *(f"    {line}" for line in self.lines)])


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

    def __str__(self) -> str:
        count = len(self.kernels)
        lines = [
            f"{self.title}: {count} kernel{'' if count == 1 else 's'}, "
            f"{_amount(self.bytes, 'B')} moved, {_amount(self.flops, 'flop')}"
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
    """What a call of a compiled function runs. `str` of it is a report."""

    name: str
    reason: str
    plans: tuple[PlanExplanation, ...]

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

    def __str__(self) -> str:
        return "\n".join([f"{self.name} (compiled for: {self.reason})", *map(str, self.plans)])

    __repr__ = __str__


def explain_plan(name: str, reason: str, plan: CompiledCall) -> Explanation:
    """The report on one plan, with its backward plan where it has one."""
    function = plan.function
    if not plan.function.differentiable:
        plans = [_explained("plan", function.plain)]
    else:
        wanted = (True,) * len(function.asked)
        backward, _ = function.backward_plan(wanted)
        plans = [
            _explained("forward", function.forward.executable), _explained("backward", backward)
        ]  # fmt: skip
    return Explanation(name, reason, tuple(plans))


def _explained(title: str, executable: Any) -> PlanExplanation:
    kernels = tuple(
        KernelLine(info.name, info.kind, tuple(info.nodes), info.bytes, info.flops)
        for info in executable.kernels
    )
    return PlanExplanation(title, kernels, tuple(executable.refused))


def _refusal(refusal: Any) -> str:
    consumer, producer = refusal.consumer, refusal.producer
    return (
        f"{consumer.primitive.name} {consumer.type} ({consumer.where})\n"
        f"  with {producer.primitive.name} {producer.type} ({producer.where}): {refusal.reason}"
    )


def _amount(value: float, unit: str) -> str:
    """Such as "1.5 MB"."""
    for prefix in ("", "k", "M", "G", "T"):
        if abs(value) < 1000 or prefix == "T":
            break
        value /= 1000
    digits = f"{value:.0f}" if prefix == "" else f"{value:.3g}"
    return f"{digits} {prefix}{unit}"
