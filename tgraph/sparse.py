"""`torch.sparse`, of which nothing is here: tensors are dense.

`nn.Embedding(sparse=True)` gives dense gradients.

>>> import tgraph as tg
>>> tg.sparse.mm(tg.eye(2), tg.ones(2, 2))
Traceback (most recent call last):
    ...
NotImplementedError: tgraph.sparse.mm is not here: tensors are dense here; ...
"""

from __future__ import annotations

from typing import Any

from .core.absent import DENSE, attribute_error, not_here

__all__ = ["addmm", "log_softmax", "mm", "sampled_addmm", "softmax", "spdiags", "spsolve", "sum"]

addmm = not_here("sparse.addmm", DENSE)
log_softmax = not_here("sparse.log_softmax", DENSE)
mm = not_here("sparse.mm", DENSE)
sampled_addmm = not_here("sparse.sampled_addmm", DENSE)
softmax = not_here("sparse.softmax", DENSE)
spdiags = not_here("sparse.spdiags", DENSE)
spsolve = not_here("sparse.spsolve", DENSE)
sum = not_here("sparse.sum", DENSE)


def __getattr__(name: str) -> Any:
    raise attribute_error(__name__, name, None if name.startswith("__") else DENSE)
