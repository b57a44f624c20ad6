"""One module per contender: `start`, `versions` and a function per workload.

``start(threads)`` imports the library (its time is the import time) and sets its threads;
``versions()`` names it; ``<workload>(data)`` gives a `Case`.
"""

NAMES = ["numpy", "torch", "torch_compile", "jax", "tgraph"]
"""To choose from. `before` is tgraph as it was at a commit that the command line names."""
TITLES = {
    "numpy": "NumPy",
    "torch": "torch",
    "torch_compile": "torch.compile",
    "jax": "JAX",
    "tgraph": "tgraph",
    "before": "tgraph before",
}
COMPILERS = ["torch_compile", "jax", "tgraph", "before"]
VERSIONS = ("tgraph", "before")
