"""The named tuples that functions with several results give, as `torch.return_types`.

>>> import tgraph as tg
>>> tg.tensor([[1, 5], [7, 2]]).max(dim=1)
tgraph.return_types.max(
values=tensor([5, 7]),
indices=tensor([1, 0]))
"""

from .core import return_types as _types

__all__ = sorted(name for name, value in vars(_types).items() if hasattr(value, "_fields"))  # pyright: ignore
globals().update({name: getattr(_types, name) for name in __all__})
