"""`torch.__config__`: how the library was built."""

from __future__ import annotations

__all__ = ["parallel_info", "show"]


def show() -> str:
    """What tgraph is built with."""
    return "tgraph: NumPy, kernels by LLVM on CPUs and CUDA C on GPUs; USE_CUDA=OFF, USE_MKL=OFF"


def parallel_info() -> str:
    """Where the number of threads is asked."""
    return "tgraph.get_num_threads() tells the number of threads"
