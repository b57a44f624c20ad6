"""When a device has no memory left: which tensors hold it, and where they were made."""

from __future__ import annotations

import gc
import weakref
from typing import Any

from ..runtime.cuda import memory
from .provenance import Site, user_site
from .tensor import Tensor

NOTED_BYTES = 1 << 20
"""The line that makes an array is kept for arrays of at least this many bytes."""
SHOWN = 10

_made: dict[int, tuple[weakref.ref[Any], Site]] = {}


class OutOfMemoryError(RuntimeError, MemoryError):
    """A device has no memory left, even after everything unused was given back."""


def note(array: Any) -> None:
    """Remember which line of the user's made an array of a device, if it is large."""
    if array.nbytes >= NOTED_BYTES:
        key = id(array)
        _made[key] = weakref.ref(array, lambda _: _made.pop(key, None)), user_site()


def explained(error: Exception) -> OutOfMemoryError:
    """The error with the largest tensors that are alive, by the lines that made them."""
    together: dict[tuple[str, str], list[int]] = {}
    for nbytes, *key in _living():
        together.setdefault((key[0], key[1]), []).append(nbytes)
    rows = sorted(together.items(), key=lambda row: -sum(row[1]))
    lines = [
        f"  {_size(sum(sizes)):>10}  {len(sizes)} x {what}  {where}"
        for (what, where), sizes in rows[:SHOWN]
    ]
    if len(rows) > SHOWN:
        rest = sum(sum(sizes) for _, sizes in rows[SHOWN:])
        lines.append(f"  {_size(rest):>10}  others")
    held = "\n".join(lines) if lines else "  (none)"
    return OutOfMemoryError(
        f"{error}\nWhat holds most, and where it was made:\n{held}\n"
        "Ways out: smaller batches, `del` of what is not needed, `with tgraph.no_grad()` where no "
        "gradient is wanted."
    )


def _living() -> list[tuple[int, str, str]]:
    """Bytes, type and line of every tensor on a device; of those that share memory, one."""
    found: dict[int, tuple[int, str, str]] = {}
    for each in gc.get_objects():
        # By its type: `__class__` of foreign objects may be code, which warns or raises.
        if not issubclass(type(each), Tensor) or not hasattr(each, "_value") or not each.is_cuda:
            continue
        memory_of = each._value.data.mem if hasattr(each._value, "data") else None
        if memory_of is not None and memory_of.ptr not in found:
            found[memory_of.ptr] = (int(memory_of.size), str(each._type), _where(each))
    return list(found.values())


def _where(tensor: Tensor) -> str:
    noted = _made.get(id(tensor._value))
    if noted is not None and noted[0]() is tensor._value:
        return str(noted[1])
    return "" if tensor._record is None else str(tensor._record.site)


def _size(nbytes: int) -> str:
    size = float(nbytes)
    for unit in ("bytes", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.0f} {unit}"
        size /= 1024
    return f"{size:.1f} GiB"


memory.explain = explained
