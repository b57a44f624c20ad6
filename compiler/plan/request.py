"""What the compiler is asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...runtime.records import record
from ..ir import Graph


@record(eq=False)
class Request:
    """A graph that is to be compiled, and how.

    `donate` maps outputs to the inputs whose memory they take. `strides`, in elements, tells which
    inputs are not dense. `overwritten` are inputs that are written by who calls the plan, and
    `from_host` those whose arrays are the host's, though they are values of the device.
    """

    graph: Graph
    donate: Mapping[int, int] | None = None
    strides: Mapping[int, tuple[int, ...]] | None = None
    overwritten: Sequence[int] = ()
    from_host: Sequence[int] = ()
