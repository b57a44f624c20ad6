"""One module per contender: `start`, `versions` and a function per workload.

``start(threads)`` imports the library (its time is the import time) and sets its threads;
``versions()`` names it; ``<workload>(data)`` gives a `Case`.
"""

NAMES = ["numpy", "torch", "torch_compile", "jax", "tgraph"]
TITLES = {
    "numpy": "NumPy",
    "torch": "torch",
    "torch_compile": "torch.compile",
    "jax": "JAX",
    "tgraph": "tgraph",
}
COMPILERS = ["torch_compile", "jax", "tgraph"]
