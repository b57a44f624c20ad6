"""PyTorch's names for programs that nobody edits: `import torch` gives tgraph.

`python -m tgraph.compat script.py arguments` runs a program so, and tells at its end what it asked
for that tgraph has not.
"""

from .torch_names import TorchNames, as_torch

__all__ = ["TorchNames", "as_torch"]
