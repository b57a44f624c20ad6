"""`torch.jit.annotations`: Python's types under the names that TorchScript had for them."""

from typing import Any, Dict, List, Optional, Tuple, Union  # noqa: UP035

__all__ = ["Any", "Dict", "List", "Optional", "Tuple", "Union"]
