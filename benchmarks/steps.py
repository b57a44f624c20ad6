"""Where tgraph's time goes: `python -m benchmarks.steps WORKLOAD [--kernels]`.

Runs the steps of a workload's plan one by one, in order, on the plan's own data, and prints the
median time of each beside the bytes that it has to move, at what rate it moves them and, for
matrix products, the operations per second. With --kernels the kernels' text follows.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any
from unittest import mock

import numpy as np
from tgraph.compiler.executable import Executable
from tgraph.compiler.plan_builder import StepInfo
from tgraph.runtime import memory
from tgraph.runtime.plan import ARENA_SLOT, BufferRef, Plan

import tgraph

from .case import Array
from .contenders import implementation
from .report import seconds
from .workload import Workload
from .workloads import BY_NAME


def observed_call(workload: Workload) -> tuple[Executable, list[Array]]:
    """The compiled workload and the arrays of one of its calls."""
    case = implementation("tgraph", workload)(workload.data())
    seen: list[tuple[Executable, list[Array]]] = []
    run = Executable.run

    def watched(self: Executable, inputs: Sequence[Array]) -> list[Array]:
        outputs = run(self, inputs)
        fresh = [outputs[number] for number in self.planning.fresh]
        seen.append((self, [*inputs, *fresh]))
        return outputs

    # The compiled call keeps the method that it finds when it is made.
    with mock.patch.object(Executable, "run", watched):
        case.call()
    return seen[-1]


def single_plans(plan: Plan) -> list[Plan]:
    """A plan for each step; they share one arena, so that they can be run one after another."""
    arena = memory.arena(plan.arena_bytes)
    slot = plan.num_slots
    constants = {**plan.constants, slot: arena}
    return [Plan([_moved(step, slot)], 0, slot + 1, constants) for step in plan.steps]


def _moved(value: Any, slot: int) -> Any:
    """A step, reference or tuple of them with the arena's slot replaced."""
    if isinstance(value, tuple):
        return tuple(_moved(each, slot) for each in value)
    if isinstance(value, BufferRef):
        return replace(value, slot=slot) if value.slot == ARENA_SLOT else value
    if is_dataclass(value) and not isinstance(value, type):
        names = [each.name for each in fields(value)]
        moved = {name: _moved(getattr(value, name), slot) for name in names}
        return type(value)(**moved)
    return value


def step_times(plan: Plan, arrays: Sequence[Array], rounds: int) -> tuple[list[float], float]:
    """Median seconds of each step, and of the whole plan."""
    plans = single_plans(plan)
    given = tuple(arrays)
    samples: list[list[float]] = [[] for _ in plans]
    whole = []
    for _ in range(rounds):
        for each, taken in zip(plans, samples):
            taken.append(_timed(each, given))
        whole.append(_timed(plan, given))
    return [statistics.median(taken) for taken in samples], statistics.median(whole)


def _timed(plan: Plan, arrays: tuple[Array, ...]) -> float:
    began = time.perf_counter()
    stopped = plan.run(arrays)
    took = time.perf_counter() - began
    if stopped:
        raise RuntimeError(f"step {plan.steps[stopped - 1]} stopped: {plan.status}")
    return took


def line(took: float, info: StepInfo | None) -> str:
    """One row of the table."""
    if info is None:
        return f"{seconds(took):>9}"
    rate = f"{info.bytes / took / 1e9:7.1f} GB/s {info.flops / took / 1e9:8.1f} GFlop/s"
    shapes = " ".join(str(node.type) for node in info.outputs[:4])
    names = " ".join(node.primitive.name for node in info.nodes[:12])
    return f"{seconds(took):>9} {info.bytes / 1e6:8.2f} MB {rate}  {info.name}: {names} -> {shapes}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("workload", choices=BY_NAME)
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--kernels", action="store_true", help="print the kernels' text")
    options = parser.parse_args()
    tgraph.set_num_threads(options.threads)
    executable, arrays = observed_call(BY_NAME[options.workload])
    times, whole = step_times(
        executable.plan, [np.asarray(each) for each in arrays], options.rounds
    )
    for number, took in enumerate(times):
        print(f"{number:3d} {line(took, executable._steps_to_kernels.get(number))}")
    print(
        f"steps {seconds(sum(times))}, plan {seconds(whole)}, "
        f"arena {executable.plan.arena_bytes / 1e6:.1f} MB"
    )
    for refusal in executable.refused:
        print(
            f"not fused: {refusal.producer.primitive.name} into "
            f"{refusal.consumer.primitive.name}: {refusal.reason}"
        )
    if options.kernels:
        for info in executable.kernels:
            if info.kernel is not None:
                print(
                    f"\n{info.name}\n{info.schedule.kernel}\n  tasks {info.schedule.tasks} "
                    f"lane {info.schedule.lane} direct {info.schedule.direct}"
                )


if __name__ == "__main__":
    main()
