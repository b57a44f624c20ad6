"""What is right for a kernel that only writes an array is not chosen where it reads that, too."""

from __future__ import annotations

from kernel_cases import Make
from tgraph.compiler.fusion.fusion import fuse
from tgraph.compiler.kernel.index import Axis, of_axis
from tgraph.compiler.kernel.kernel import Instr, Kernel, Param, Stage
from tgraph.compiler.kernel.scatter_parts import copies_base, scatter_parts
from tgraph.compiler.targets.cpu.rules import CpuRules
from tgraph.compiler.targets.cpu.schedule import schedule_cpu
from tgraph.compiler.targets.cuda.schedule import is_transposed
from tgraph.runtime.dtypes import float32, int64
from tgraph.runtime.records import replace


def scatter() -> Kernel:
    """Rows that are put into a copy of an array: its first two parameters."""
    make = Make()
    x, at, y = make.input(300, 64), make.input(40, dtype=int64), make.input(40, 64)
    fused = fuse(CpuRules(make.graph(make.index_put(x, at, y, axis=0, accumulate=False))))
    (group,) = fused.groups
    return fused.lowering(group).run()


def reading(kernel: Kernel, param: int) -> Kernel:
    """`kernel`, whose last stage also loads an element of a parameter where it stores."""
    *first, last = kernel.stages
    (store,) = (each for each in last.body if each.op == "store")
    load = Instr("load", param=param, index=store.index)
    return replace(kernel, stages=(*first, replace(last, body=(*last.body, load))))


def test_a_base_that_the_scatter_reads_is_more_than_copied():
    kernel = scatter()
    base, copy = 0, 1
    assert copies_base(kernel, base, copy)
    assert not copies_base(reading(kernel, base), base, copy)


def test_threads_do_not_share_a_scatter_that_reads_its_array():
    (part,) = scatter_parts(scatter(), on_base=True, is_checked=True)
    (store,) = (each for each in part.kernel.instructions() if each.op == "store")
    assert schedule_cpu(part.kernel).targets is not None
    assert schedule_cpu(reading(part.kernel, store.param)).targets is None


def test_tiles_are_not_read_ahead_from_what_is_written():
    across, lane = Axis("i", 64), Axis("j", 64)
    load = Instr("load", param=0, index=of_axis(across) + of_axis(lane) * 64)
    for written in (False, True):
        params = (Param("x", float32, 64 * 64, written),)
        kernel = Kernel("k", params, (across, lane), (Stage((), (load,)),))
        assert is_transposed(kernel, load, across, lane) is not written
