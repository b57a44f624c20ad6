"""What functions write into Python objects: a table of small worlds.

Each row makes a world anew: a function, and what it writes into. `test_state_writes` calls the
function, eager and compiled, and compares what it leaves behind.
"""

from . import (  # noqa: F401 (each enters its rows)
    control_flow,
    dictionaries,
    library_code,
    lists_sets_deques,
    numpy_arrays,
    object_attributes,
    results,
    tensors,
    variables_and_arguments,
    written_again,
)
from .table import ROWS, Bag, Row, World

__all__ = ["ROWS", "Bag", "Row", "World"]
