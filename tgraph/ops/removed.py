"""Functions that PyTorch has removed, and kept as errors that tell what to write instead."""

from __future__ import annotations

from typing import Any, NoReturn

from ..core.public import public

_REMOVED = "This function was deprecated since version 1.9 and is now removed. "


def _removed(name: str, instead: str, difference: str) -> NoReturn:
    raise RuntimeError(f"{_REMOVED}`{name}` is `tgraph.linalg.{instead}`{difference}.")


@public(method=True)
def eig(input: Any, eigenvectors: bool = False) -> NoReturn:
    """RuntimeError: `linalg.eig` gives complex numbers."""
    _removed("eig", "eig", ", or `linalg.eigvals`, which give complex tensors")


@public(method=True)
def symeig(input: Any, eigenvectors: bool = False, upper: bool = True) -> NoReturn:
    """RuntimeError: `linalg.eigh` reads the lower triangle."""
    _removed("symeig", "eigh", ", or `linalg.eigvalsh`, with UPLO='U' for the upper triangle")


@public(method=True)
def lstsq(input: Any, A: Any) -> NoReturn:
    """RuntimeError: `linalg.lstsq` has its arguments the other way round."""
    _removed("lstsq", "lstsq", ", whose arguments are reversed: lstsq(A, input).solution")


@public(method=True)
def solve(input: Any, A: Any) -> NoReturn:
    """RuntimeError: `linalg.solve` has its arguments the other way round."""
    _removed("solve", "solve", ", whose arguments are reversed: solve(A, input)")


@public()
def matrix_rank(input: Any, tol: Any = None, symmetric: bool = False) -> NoReturn:
    """RuntimeError: `linalg.matrix_rank` calls `symmetric` hermitian."""
    _removed("matrix_rank", "matrix_rank", ", whose `symmetric` is called hermitian")


@public(function=False, method=True)
def reinforce(self: Any, reward: Any) -> NoReturn:
    """RuntimeError: `distributions` have `log_prob`."""
    raise RuntimeError(
        "reinforce() was removed. Use tgraph.distributions instead: "
        "(-distribution.log_prob(action) * reward).backward()"
    )
