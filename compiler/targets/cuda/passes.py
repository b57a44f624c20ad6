"""The passes for CUDA: those of the pipeline, but for what depends on the machine."""

from __future__ import annotations

from ...passes.decompose import decompose_for_gpu
from ...passes.one_pass_statistics import one_pass_statistics_for_gpu
from ...passes.split_reductions import split_reductions_for_gpu
from ...passes.split_scans import split_scans_for_gpu
from ...pipeline import PASSES, Pass
from .select_branches import select_branches

_INSTEAD = {
    "decompose": Pass(
        "decompose", decompose_for_gpu, "convolutions that are products, or that no kernel takes"
    ),
    "one_pass_statistics": Pass(
        "one_pass_statistics", one_pass_statistics_for_gpu, "long rows come from memory once"
    ),
    "split_reductions": Pass(
        "split_reductions", split_reductions_for_gpu, "long reductions that all blocks share"
    ),
    "split_scans": Pass("split_scans", split_scans_for_gpu, "and long scans"),
}
# Threads fold values with their positions as they are; products and attention are a library's, and
# kernels'. Launches that repeat themselves are captured one by one.
_WITHOUT = (
    "roll_loops", "lay_out_windows", "decompose_positions", "fuse_attention",
    "fuse_attention_gradients",
)  # fmt: skip

_BEHIND = {
    "simplify_control": Pass(
        "select_branches", select_branches, "nobody waits where a wait takes longer than all sides"
    ),
}

CUDA_PASSES = tuple(
    one
    for each in PASSES
    if each.name not in _WITHOUT
    for one in (_INSTEAD.get(each.name, each), _BEHIND.get(each.name))
    if one is not None
)
