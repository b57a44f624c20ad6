"""Transforms of functions, by the names of `torch.func`.

>>> import tgraph as tg
>>> per_sample = tg.func.vmap(tg.func.grad(lambda w, x: (w * x).sum()), in_dims=(None, 0))
>>> per_sample(tg.zeros(2), tg.tensor([[1.0, 2.0], [3.0, 4.0]]))
tensor([[1., 2.],
        [3., 4.]])
"""

from .autograd.transforms import grad, grad_and_value, vjp
from .transforms.batching import vmap
from .transforms.forward import jvp, linearize
from .transforms.functional import (
    functional_call,
    replace_all_batch_norm_modules_,
    stack_module_state,
)
from .transforms.jacobians import hessian, hvp, jacfwd, jacrev

__all__ = [
    "functional_call", "grad", "grad_and_value", "hessian", "hvp", "jacfwd", "jacrev", "jvp",
    "linearize", "replace_all_batch_norm_modules_", "stack_module_state", "vjp", "vmap",
]  # fmt: skip
