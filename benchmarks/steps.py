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
from unittest import mock

from tgraph.compiler.plan.ready_plan import ReadyPlan
from tgraph.compiler.plan.step_info import StepInfo
from tgraph.compiler.targets.cpu.executable import CpuExecutable
from tgraph.compiler.targets.cpu.step_times import step_times

import tgraph

from .case import Array
from .contenders import implementation
from .report import seconds
from .workload import Workload
from .workloads import BY_NAME


def observed_call(workload: Workload) -> tuple[CpuExecutable, list[Array]]:
    """The compiled workload and the inputs of one of its calls."""
    case = implementation("tgraph", workload)(workload.data())
    seen: list[tuple[ReadyPlan, list[Array]]] = []
    run = ReadyPlan.run

    def watched(self: ReadyPlan, inputs: Sequence[Array]) -> list[Array]:
        seen.append((self, list(inputs)))
        return run(self, inputs)

    # The compiled call keeps the method that it finds when it is made.
    with mock.patch.object(ReadyPlan, "run", watched):
        case.call()
    plan, inputs = seen[-1]
    return plan.whole, inputs  # one from the disk knows no steps


def whole_time(executable: CpuExecutable, inputs: Sequence[Array], rounds: int) -> float:
    """Median seconds of the whole plan."""
    taken = []
    for _ in range(rounds):
        began = time.perf_counter()
        executable.run(inputs)
        taken.append(time.perf_counter() - began)
    return statistics.median(taken)


def line(took: float, info: StepInfo) -> str:
    """One row of the table."""
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
    executable, inputs = observed_call(BY_NAME[options.workload])
    times = step_times(executable, inputs)
    whole = whole_time(executable, inputs, options.rounds)
    for number, (took, info) in enumerate(zip(times, executable.kernels, strict=True)):
        print(f"{number:3d} {line(took, info) if took else 'nothing to do'}")
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
                print(f"\n{info.name}\n{info.schedule.kernel}\n  {info.summary()}")


if __name__ == "__main__":
    main()
