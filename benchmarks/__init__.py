"""tgraph beside NumPy, PyTorch and JAX: `python -m benchmarks`."""
