"""Files: checkpoints of PyTorch's format and others, read without running code.

`tgraph.save` and `tgraph.load` are the way in; here stands what files may name.
"""

from .errors import LoadError
from .files import get_unsafe_globals_in_checkpoint, load, save
from .locations import Location as MAP_LOCATION
from .user_globals import add_safe_globals, clear_safe_globals, get_safe_globals, safe_globals

__all__ = [
    "MAP_LOCATION", "LoadError", "add_safe_globals", "clear_safe_globals", "get_safe_globals",
    "get_unsafe_globals_in_checkpoint", "load", "safe_globals", "save",
]  # fmt: skip
