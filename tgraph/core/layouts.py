"""How the elements of a tensor are kept: all of them, or those that are not zero."""

from __future__ import annotations

from collections.abc import Callable


class Layout:
    """A layout by its name, one object for each.

    >>> import tgraph as tg
    >>> tg.eye(2).layout, tg.eye(2).to_sparse().layout
    (tgraph.strided, tgraph.sparse_coo)
    """

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"tgraph.{self.name}"

    def __reduce__(self) -> tuple[Callable[[str], Layout], tuple[str]]:
        return layout_named, (f"torch.{self.name}",)


strided = Layout("strided")
sparse_coo = Layout("sparse_coo")
sparse_csr = Layout("sparse_csr")
sparse_csc = Layout("sparse_csc")


def layout_named(name: str) -> Layout:
    """The layout that PyTorch calls so, as its files do; ValueError for others."""
    for each in (strided, sparse_coo, sparse_csr, sparse_csc):
        if name == f"torch.{each.name}":
            return each
    raise ValueError(f"layouts are strided, sparse_coo, sparse_csr and sparse_csc here, not {name}")
