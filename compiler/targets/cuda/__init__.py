"""NVIDIA GPUs: kernels written as CUDA C."""
