"""A plan with sizes as parameters: its numbers are expressions, computed when sizes are known."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...runtime.plan import Plan
from ...runtime.plan_steps import Step
from ..kernel.checks import Checks, RoutineCheck
from .output_memory import OutputMemory
from .plan_sizes import NotSizedError, PlanSizes, SizedSpace
from .ready_plan import LatePlan, ReadyPlan
from .request import Request
from .size_code import SizeCode


class SizedPlan:
    """The steps of a program whose numbers depend on `sizes`, for all that answer its questions.

    `request` is what it was made for. `steps` have their code already; what lies in the arena is
    laid out for each size by itself, as its places depend on each other.
    """

    refuses_gaps = ReadyPlan.refuses_gaps

    def __init__(
        self,
        request: Request,
        sizes: PlanSizes,
        space: SizedSpace,
        steps: Sequence[Step],
        outputs: OutputMemory,
        checks: Mapping[int, Checks],
        slots: int,
        constants: Mapping[int, Any],
        written: Sequence[int],
        dense: Sequence[int],
        pointers: Sequence[int],
    ) -> None:
        for each in checks.values():
            if isinstance(each, RoutineCheck):
                raise NotSizedError(f"LAPACK is called ({each.where})")
        self.request, self.donate = request, outputs.donate
        self.sizes, self.space, self.outputs, self.checks = sizes, space, outputs, dict(checks)
        self._slots, self._constants = slots, dict(constants)
        self._kinds = list(written), list(dense), list(pointers)
        self._spare: list[Any] = []  # the arena of the call before, of whatever size
        code = SizeCode(sizes.dims)
        code.ask(sizes)
        self._taken = code.giving(tuple(space.taken))
        code = SizeCode([*sizes.dims, *space.places])
        self._numbers = code.giving((list(steps), outputs.types(range(outputs.count))))

    def at(self, sizes: Sequence[int], make: Callable[[], ReadyPlan]) -> ReadyPlan | None:
        """The plan for sizes, in the order of `sizes.dims`; None where it is another one.

        `make` makes it by all of the compiler, with what can be told of it.
        """
        try:
            taken = self._taken(*sizes)
        except ArithmeticError:
            return None
        if taken is None:
            return None
        places = self.space.laid_out(taken)
        steps, types = self._numbers(*sizes, *places)
        plan = Plan(steps, places[0], self._slots, self._constants, *self._kinds)
        plan.spare = self._spare
        return LatePlan(plan, self.outputs.with_types(types), self.checks, make)

    def run(self, inputs: Sequence[Any]) -> list[Any]:
        """Plans run at certain sizes."""
        raise AssertionError("a plan of open sizes")
