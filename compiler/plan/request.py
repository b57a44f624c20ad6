"""What the compiler is asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...runtime.records import record
from ..ir import Graph, TensorType
from ..ir.complex_numbers import pair_strides


@record(eq=False)
class Request:
    """A graph that is to be compiled, and how.

    `donate` maps outputs to the inputs whose memory they take. `strides`, in elements, tells which
    inputs are not dense. `overwritten` are inputs that are written by who calls the plan, and
    `from_host` those whose arrays are the host's, though they are values of the device. `varying`
    says that the same is asked for size after size. A plan of `eager` mode is one of many, each
    called now and then with arrays that were made just before. Unless they are `aligned`, these may
    begin at any element.
    """

    graph: Graph
    donate: Mapping[int, int] | None = None
    strides: Mapping[int, tuple[int, ...]] | None = None
    overwritten: Sequence[int] = ()
    from_host: Sequence[int] = ()
    varying: bool = False
    eager: bool = False
    aligned: bool = True

    @property
    def types(self) -> list[TensorType]:
        """What the results are to whoever runs the plan."""
        return [node.type for node in self.graph.outputs]

    @property
    def real_strides(self) -> dict[int, tuple[int, ...]]:
        """`strides` of the inputs that the plan has, where complex ones are pairs of real ones."""
        inputs = self.graph.inputs
        return {
            number: pair_strides(given) if inputs[number].type.dtype.is_complex else given
            for number, given in (self.strides or {}).items()
        }
