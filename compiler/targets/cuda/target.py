"""GPUs of NVIDIA: kernels of CUDA C, products by cublasLt."""

from __future__ import annotations

from collections.abc import Sequence

from ....runtime.cuda.cublas_lt import CublasLtError, Status
from ....runtime.cuda.devices import architecture
from ....runtime.device import Device
from ...ir import Graph
from ...ir import primitives as p
from ...pipeline import Pass
from ...plan.request import Request
from ..target import Target
from .executable import CudaExecutable, EagerExecutable
from .passes import CUDA_PASSES
from .program import CudaProgram


class CudaTarget(Target[CudaProgram]):
    """Graphs all of whose values lie on `device`."""

    def __init__(self, device: Device) -> None:
        self.device = device

    @property
    def passes(self) -> Sequence[Pass]:
        return CUDA_PASSES

    def program(self, optimized: Graph, request: Request, epilogues: bool = True) -> CudaProgram:
        arch = architecture(self.device)
        # Loops are worth graphs, which plans of eager mode have not.
        eager = request.eager and optimized.primitives.isdisjoint((p.branch, p.loop))
        return CudaProgram(
            optimized, arch, request.donate, request.real_strides, epilogues, request.types,
            request.varying, eager, request.aligned or not eager, request.from_host,
        )  # fmt: skip

    def load(self, program: CudaProgram, request: Request) -> CudaExecutable | EagerExecutable:
        try:
            return self._loaded(program, request)
        except CublasLtError as error:
            if error.status != Status.NOT_SUPPORTED or not program.epilogues:
                raise
        # What products cannot do besides on this device, kernels can.
        return self._loaded(self.program(program.optimized, request, epilogues=False), request)

    def _loaded(self, program: CudaProgram, request: Request) -> CudaExecutable | EagerExecutable:
        if program.eager:
            return EagerExecutable(program, self.device, request.from_host)
        return CudaExecutable(program, self.device, request.from_host, request.eager)
