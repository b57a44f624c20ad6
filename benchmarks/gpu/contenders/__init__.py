"""The contenders on a device: one module per library, one class `Contender` in each.

``Contender(variant, device, threads)`` imports and sets up the library; ``versions()`` names it;
``<workload>(data)`` gives a `Case` whose calls need not have finished when they return;
``synchronize(result)`` waits for all calls, of which the last one gave `result`; ``release()``
gives memory back that no case needs any more.
"""

from __future__ import annotations

import importlib
from typing import Any

from ... import contenders
from ..workloads import GpuWorkload

# The module and the variant of each.
CONTENDERS = {
    "numpy": ("with_arrays", "numpy"),
    "cupy": ("with_arrays", "cupy"),
    "cupy_fuse": ("with_arrays", "cupy_fuse"),
    "torch": ("with_torch", "eager"),
    "torch_compile": ("with_torch", "default"),
    "torch_autotune": ("with_torch", "max-autotune-no-cudagraphs"),
    "torch_overhead": ("with_torch", "reduce-overhead"),
    "jax": ("with_jax", ""),
    "tgraph_eager": ("with_tgraph", "eager"),
    "tgraph_launched": ("with_tgraph", "launched"),
    "tgraph": ("with_tgraph", "compiled"),
}
TITLES = {
    **contenders.TITLES,
    "cupy": "CuPy",
    "cupy_fuse": "cupy.fuse",
    "torch_autotune": "torch.compile max-autotune",
    "torch_overhead": "torch.compile reduce-overhead",
    "tgraph_eager": "tgraph eager",
    "tgraph_launched": "tgraph without capture",
}
NAMES = {
    "cuda": [name for name in CONTENDERS if name != "numpy"],
    "cpu": [name for name in CONTENDERS if not name.startswith(("cupy", "tgraph_launched"))],
}
# These compile, which takes long enough to need several processes.
SLOW = ("torch_compile", "torch_autotune", "torch_overhead", "jax")
EAGER = (
    "gelu_chain", "gelu_chain_1k", "softmax", "layer_norm", "layer_norm_small", "cross_entropy",
    "tiny_mlp", "mlp_train", "adamw",
)  # fmt: skip
FUSED = ("gelu_chain", "gelu_chain_1k", "black_scholes", "transposed")
LARGE = "gpt2_train"


def takes_part(name: str, workload: GpuWorkload) -> bool:
    """Whether a contender is measured on a workload: variants are, where they may matter."""
    match name:
        case "tgraph_eager":
            return workload.name in EAGER
        case "tgraph_launched":
            return workload.kind in ("call", "training") and workload.name != LARGE
        case "cupy_fuse":
            return workload.name in FUSED
        case "torch_autotune":
            return workload.kind in ("memory", "compute") and workload.name != "adamw"
        case "torch_overhead":
            return workload.kind not in ("memory", "compute") and workload.name != LARGE
        case "numpy" | "cupy":  # they have no bfloat16 products
            return workload.name != LARGE
    return True


def start(name: str, device: str, threads: int) -> Any:
    """The contender of a name."""
    module, variant = CONTENDERS[name]
    return importlib.import_module(f".{module}", __package__).Contender(variant, device, threads)
