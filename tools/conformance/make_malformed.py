"""What PyTorch does with malformed calls, and where tgraph does something else."""

from __future__ import annotations

import concurrent.futures
import functools
import multiprocessing
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch

from .encode import decoded, encoded
from .malformed import Form, Line, cases, difference, forms_of, ours, outcome_of, table
from .replay import COMPOSED, Record, in_order, method
from .values import Difference, Missing, compare, told


class Differing(NamedTuple):
    """A call with which tgraph does another thing: of which kind, and what both do."""

    key: str
    text: str
    kind: str
    theirs: str
    ours: str


def operation_of(name: str) -> Callable[..., Any]:
    """PyTorch's operation; a method where it has no function of the name."""
    if not name.endswith("_") or "." in name or name.startswith("__"):
        found = functools.reduce(lambda at, part: getattr(at, part, None), name.split("."), torch)
        if callable(found):  # and not the dtype `float`
            return in_order(name, found)
    in_place = f"{name}_"  # of random numbers there is often nothing else
    return method(name if hasattr(torch.Tensor, name) else in_place)


def _line(key: str, record: Record) -> tuple[Line, list[Differing]]:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    function, theirs, found, differing = operation_of(record.name), "", [], []
    for form in forms_of(record):
        torch.manual_seed(0)
        wanted, result = _theirs(function, form)
        mine, other = ours(record, form)
        theirs, found = theirs + wanted, [*found, mine]
        if wanted not in mine or not (record.given["random"] or _same_numbers(result, other)):
            kind = _class(result) + " -> " + _class(other)
            differing.append(Differing(key, form.text, kind, _told(result), _told(other)))
    return Line(key, theirs, difference(theirs, found)), differing


def _theirs(function: Callable[..., Any], form: Form) -> tuple[str, Any]:
    args, keywords = decoded([list(form.args), form.keywords])
    letters, result = outcome_of(function, args, keywords)
    return letters[0], result


def _same_numbers(theirs: Any, found: Any) -> bool:
    """Whether the numbers of results agree, of which it is known that shapes and types do."""
    if isinstance(theirs, (list, tuple)):
        return all(map(_same_numbers, theirs, found))
    if not isinstance(theirs, torch.Tensor) or theirs.is_meta or theirs.layout != torch.strided:
        return True
    try:
        compare("values", found, encoded(theirs))
    except Missing:
        return True
    except Difference:
        return False
    return True


def _class(result: Any) -> str:
    return type(result).__name__ if isinstance(result, Exception) else "taken"


def _told(result: Any) -> str:
    if isinstance(result, Exception):
        return told(result)
    if hasattr(result, "dtype"):
        return f"{str(result.dtype).rpartition('.')[2]}{list(result.shape)}"
    if isinstance(result, (list, tuple)):
        return f"({', '.join(map(_told, result))})"[:120]
    return repr(result)[:80]


def lines_of(
    sample: Path, only: Sequence[str] | None, processes: int
) -> Iterator[tuple[Line, list[Differing]]]:
    """Each case of a sample, in order, with what differs."""
    context = multiprocessing.get_context("spawn")
    chosen = [(key, record) for key, record in cases(sample)
              if record.name not in COMPOSED and (not only or record.name in only)]  # fmt: skip
    with concurrent.futures.ProcessPoolExecutor(processes, context) as pool:
        waiting = [pool.submit(_line, key, record) for key, record in chosen]
        yield from (each.result() for each in waiting)


def write_malformed(
    path: Path | None, sample: Path, only: Sequence[str] | None, processes: int
) -> None:
    """What differs, and the table; of some operations alone their lines of it."""
    lines = dict.fromkeys(key for key, _ in cases(sample))
    if path is not None and path.exists() and only:
        lines |= table(path)
    calls, kinds = 0, Counter[str]()
    for line, differing in lines_of(sample, only, processes):
        lines[line.key] = line
        calls += len(line.theirs)
        kinds.update(each.kind for each in differing)
        for each in differing if only else ():
            print(f"{each.key} {each.text}: {each.theirs}\n    {each.ours}")
    for kind, count in kinds.most_common():
        print(f"{count:6} {kind}")
    print(f"{kinds.total()} of {calls} calls differ")
    if path is not None:
        text = [f"{' | '.join(each)}\n" for each in lines.values() if each is not None]
        path.write_text("".join(text))
