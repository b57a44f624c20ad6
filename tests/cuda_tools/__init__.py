"""Checks of generated CUDA C that need no GPU: run it on the CPU, compile it with NVRTC."""
