"""What is raised where a matrix cannot be factorized: PyTorch's words."""

from __future__ import annotations

NOT_FINITE = 1 << 31
"""Beside what was said of a matrix, where a step tells both in one word."""
STATUS_BASE = (1 << 62) - 1
"""The status is this minus what failed: of two failures that of the first matrix is larger."""


class LinAlgError(RuntimeError):
    """A matrix cannot be factorized, or a system not be solved."""


def failure(
    primitive: str, function: str, element: int | None, said: int, is_finite: bool
) -> LinAlgError:
    """The error of a public `function` that needs a factorization.

    `element` is the number of the matrix in its batch, if there is one, `said` is LAPACK's `info`.

    >>> print(failure("lu", "linalg.solve", 3, 1, True))
    linalg.solve: (Batch element 3): The solver failed because the input matrix is singular.
    """
    of = "" if element is None else f"(Batch element {element}): "
    if primitive == "cholesky":
        why = (
            "The factorization could not be completed because the input is not positive-definite "
            f"(the leading minor of order {said} is not positive-definite)."
        )
    elif primitive == "lu":
        what = f"diagonal element {said} is zero, the inversion could not be completed"
        what = what if function == "linalg.inv" else "solver failed"
        why = f"The {what} because the input matrix is singular."
    else:
        what = "is ill-conditioned" if is_finite else "contained non-finite values"
        why = f"The algorithm failed to converge because the input matrix {what}."
    return LinAlgError(f"{function}: {of}{why}")


def decode(status: int) -> tuple[int, int, bool]:
    """Which matrix of a batch failed first, what LAPACK said, and whether its elements are finite.

    >>> decode(STATUS_BASE - (3 << 32 | 1 << 31 | 7))
    (3, 7, False)
    """
    word = STATUS_BASE - status
    return word >> 32, word & (1 << 31) - 1, not word >> 31 & 1
