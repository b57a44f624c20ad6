"""Switches of PyTorch's libraries. What has no meaning here is kept and unused.

`backends.cuda.matmul.allow_tf32` is `set_float32_matmul_precision`: True "high", False "highest".
"""

from __future__ import annotations

import sys
from contextlib import nullcontext as _nullcontext
from types import ModuleType
from typing import Any

from .. import cuda as _cuda
from ..runtime.cuda.precision import get_precision, set_precision

__all__ = ["cuda", "cudnn", "mha", "mkl", "mkldnn", "mps", "openmp", "opt_einsum"]


class _Switches(ModuleType):
    """Attributes that may be set; `is_available` tells whether there is what they switch.

    They are modules, as in PyTorch, of which `import tgraph.backends.cudnn as cudnn` gives one.
    """

    def __init__(self, name: str, available: Any = False, **values: Any) -> None:
        super().__init__(f"{__name__}.{name}", f"What PyTorch switches in `backends.{name}`.")
        sys.modules[self.__name__] = self
        self.__dict__.update(values)
        self._available = available

    def is_available(self) -> bool:
        """Whether this machine has it."""
        return bool(self._available() if callable(self._available) else self._available)

    def is_built(self) -> bool:
        """Whether it is there at all."""
        return self.is_available()

    def version(self) -> None:
        """None: it is not used."""
        return None


class _Matmul(_Switches):
    @property
    def allow_tf32(self) -> bool:
        """Whether products of float32 on CUDA may round to TF32."""
        return get_precision() != "highest"

    @allow_tf32.setter
    def allow_tf32(self, value: bool) -> None:
        set_precision("high" if value else "highest")


cuda = _Switches(
    "cuda", _cuda.is_available, matmul=_Matmul("cuda.matmul"),
    enable_flash_sdp=lambda enabled: None, enable_mem_efficient_sdp=lambda enabled: None,
    enable_math_sdp=lambda enabled: None,
    enable_cudnn_sdp=lambda enabled: None, sdp_kernel=lambda **enabled: _nullcontext(),
)  # fmt: skip
cudnn = _Switches(
    "cudnn",
    False,
    enabled=True,
    benchmark=False,
    deterministic=True,
    allow_tf32=True,
    benchmark_limit=10,
)  # fmt: skip
mps = _Switches("mps", False)
mkl = _Switches("mkl", False)
mkldnn = _Switches("mkldnn", False, enabled=False)
openmp = _Switches("openmp", False)
opt_einsum = _Switches("opt_einsum", True, enabled=True, strategy="auto")
mha = _Switches("mha", True, fastpath_enabled=True)
