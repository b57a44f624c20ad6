"""Sequences of different lengths in one tensor: padded, or packed time by time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

from ...compiler.ir.shapes import is_same
from ...core.tensor import Tensor
from ...core.trace_state import TraceError
from ...core.values import known_values
from ...ops import elementwise as e
from ...ops import movement as m
from ...ops import reductions as r
from ...ops.concatenation import stack
from ...ops.creation import arange, full
from ...ops.from_data import as_tensor
from ...ops.gather_scatter import index_select, masked_select
from ...ops.padding import pad
from ...ops.scans import cumsum
from ...ops.scatter_reductions import scatter
from ...ops.sorting import sort
from ...runtime.dtypes import float16, float32, float64, int8, int16, int32, int64, uint8
from ...runtime.records import NamedTuple


class _Packed(NamedTuple):
    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None
    unsorted_indices: Tensor | None


class PackedSequence(_Packed):
    """Sequences in one tensor: first the first step of all of them, then the second, ...

    `data` is (all steps, ...), `batch_sizes` tells how many sequences have each step, the indices
    how they were sorted by length, and back. Made by `pack_padded_sequence` and `pack_sequence`;
    RNN, LSTM and GRU take and give it.

    >>> import tgraph as tg
    >>> packed = tg.nn.utils.rnn.pack_sequence([tg.tensor([1, 2, 3]), tg.tensor([4, 5])])
    >>> packed.data, packed.batch_sizes
    (tensor([1, 4, 2, 5, 3]), tensor([2, 2, 1]))
    """

    def __new__(
        cls,
        data: Any,
        batch_sizes: Tensor | None = None,
        sorted_indices: Tensor | None = None,
        unsorted_indices: Tensor | None = None,
    ) -> PackedSequence:
        if batch_sizes is None:
            if not (isinstance(data, (list, tuple)) and len(data) == 2):
                raise AssertionError("Expected data to be a list or tuple of length 2")
            data, batch_sizes = data
        elif batch_sizes.device.type != "cpu":
            raise ValueError(
                "batch_sizes should always be on CPU. Instances of PackedSequence should never be "
                "created manually. They should be instantiated by functions like pack_sequence "
                "and pack_padded_sequences in nn.utils.rnn."
            )
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    padded: Padded | None = None

    @property
    def number(self) -> int:
        """How many sequences there are."""
        if self.padded is not None:
            return self.padded.is_inside.shape[1]
        return number_of_sequences(self.batch_sizes)

    def to(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """Data of another dtype or on another device; `batch_sizes` stay on the CPU."""
        data = self.data.to(*args, **kwargs)
        if data is self.data:
            return self
        indices = (
            None if each is None else each.to(data.device)
            for each in (self.sorted_indices, self.unsorted_indices)
        )  # fmt: skip
        return type(self)(data, self.batch_sizes, *indices)

    def cuda(self, device: Any = "cuda") -> PackedSequence:
        return self.to(device)

    def cpu(self) -> PackedSequence:
        return self.to("cpu")

    def double(self) -> PackedSequence:
        return self.to(float64)

    def float(self) -> PackedSequence:
        return self.to(float32)

    def half(self) -> PackedSequence:
        return self.to(float16)

    def long(self) -> PackedSequence:
        return self.to(int64)

    def int(self) -> PackedSequence:
        return self.to(int32)

    def short(self) -> PackedSequence:
        return self.to(int16)

    def char(self) -> PackedSequence:
        return self.to(int8)

    def byte(self) -> PackedSequence:
        return self.to(uint8)

    @property
    def is_cuda(self) -> bool:
        return self.data.is_cuda


class Padded(NamedTuple):
    """Sequences as they stand in (time, batch, ...), and which steps are inside of one.

    In a trace in which data decides how many steps there are, these have the sizes that are known.
    """

    rows: Tensor
    is_inside: Tensor

    def with_rows(self, rows: Tensor) -> Padded:
        return Padded(rows, self.is_inside)

    def packed(
        self, batch_sizes: Tensor, sorted_indices: Tensor | None, unsorted_indices: Tensor | None
    ) -> PackedSequence:
        made = PackedSequence(
            self.rows[self.is_inside], batch_sizes, sorted_indices, unsorted_indices
        )
        made.padded = self
        return made


def number_of_sequences(batch_sizes: Tensor) -> int:
    """How many sequences are packed: as many as have a first step."""
    values = known_values(batch_sizes)
    if values is None:
        raise TraceError(
            "a packed sequence is used here whose batch_sizes only the calls of the compiled "
            "function know, so that the number of sequences is not known: pack inside the compiled "
            "function, or give the lengths as a list of numbers"
        )
    return values[0]


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """Where each index stands in a permutation.

    >>> import tgraph as tg
    >>> tg.nn.utils.rnn.invert_permutation(tg.tensor([2, 0, 1]))
    tensor([1, 2, 0])
    """
    if permutation is None:
        return None
    places = arange(permutation.numel(), device=permutation.device)
    return scatter(places, 0, permutation, places)


def pack_padded_sequence(
    input: Tensor,
    lengths: Tensor | Sequence[int],
    batch_first: bool = False,
    enforce_sorted: bool = True,
) -> PackedSequence:
    """Pack sequences of given `lengths` out of (time, batch, ...), or (batch, time, ...).

    They have to come longest first, unless not `enforce_sorted`, which sorts them.

    >>> import tgraph as tg
    >>> x = tg.tensor([[1, 2, 0], [3, 0, 0], [4, 5, 6]])
    >>> tg.nn.utils.rnn.pack_padded_sequence(x, [2, 1, 3], True, enforce_sorted=False).data
    tensor([4, 1, 3, 5, 2, 6])
    """
    axis = 0 if batch_first else 1
    if input.ndim < 2:
        raise IndexError(
            "pack_padded_sequence: expected an input of at least 2 dimensions, time and batch, got "
            f"{list(input.shape)}"
        )
    given = as_tensor(lengths).to(int64)
    if given.ndim != 1 or given.device.type != "cpu":
        raise RuntimeError(
            f"'lengths' argument should be a 1D CPU int64 tensor, but got {given.ndim}D "
            f"{given.device.type} {given.dtype} tensor"
        )
    if input.shape[axis] != given.shape[0]:
        raise RuntimeError(
            "Expected `len(lengths)` to be equal to batch_size, but got "
            f"{given.shape[0]} (batch_size={input.shape[axis]})"
        )
    values, order = known_values(given), None
    if values is not None and not enforce_sorted:
        order = as_tensor(sorted(range(len(values)), key=lambda at: -values[at]), dtype=int64)
        values = sorted(values, reverse=True)
    elif not enforce_sorted:
        given, order = sort(given, descending=True)
    if order is not None:
        order = order.to(input.device)
        input = index_select(input, axis, order)
    rows = m.transpose(input, 0, 1) if batch_first else input
    if values is not None:
        return _pack_known(rows, values, order)
    is_inside = e.lt(m.unsqueeze(arange(rows.shape[0]), 1), m.unsqueeze(given, 0))
    sizes = r.sum(is_inside, 1)
    sizes = masked_select(sizes, e.gt(sizes, 0))
    return Padded(rows, is_inside.to(input.device)).packed(sizes, order, None)


def _pack_known(rows: Tensor, lengths: list[int], order: Tensor | None) -> PackedSequence:
    """Out of (time, batch, ...), sequences of lengths that are known, the longest first."""
    times, batch = _checked(lengths, rows.shape[0]), rows.shape[1]
    sizes = [sum(each > time for each in lengths) for time in range(times)]
    at = [time * batch + each for time, size in enumerate(sizes) for each in range(size)]
    flat = m.reshape(rows, -1, *rows.shape[2:])
    data = index_select(flat, 0, as_tensor(at, dtype=int64, device=rows.device))
    return PackedSequence(data, as_tensor(sizes, dtype=int64), order)


def _checked(lengths: list[int], times: int) -> int:
    """The largest of them."""
    if any(one < other for one, other in pairwise(lengths)):
        raise RuntimeError(
            "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You "
            "can pass `enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to "
            "sidestep this requirement if you do not need ONNX exportability."
        )
    if not lengths or lengths[-1] <= 0:
        raise RuntimeError(
            "Length of all samples has to be greater than 0, but found an element in 'lengths' "
            "that is <= 0"
        )
    if lengths[0] > times:
        raise RuntimeError(
            f"pack_padded_sequence: expected lengths of at most {times}, the number of times in "
            f"the input, got {lengths[0]}"
        )
    return lengths[0]


def pad_packed_sequence(
    sequence: PackedSequence,
    batch_first: bool = False,
    padding_value: float = 0.0,
    total_length: int | None = None,
) -> tuple[Tensor, Tensor]:
    """The sequences padded to the length of the longest, or `total_length`, and their lengths.

    >>> import tgraph as tg
    >>> from tgraph.nn.utils import rnn
    >>> rnn.pad_packed_sequence(rnn.pack_sequence([tg.tensor([1, 2]), tg.tensor([3])]), True)
    (tensor([[1, 2],
            [3, 0]]), tensor([2, 1]))
    """
    batch_sizes, unsorted_indices = sequence.batch_sizes, sequence.unsorted_indices
    rows, is_inside = _unpacked(sequence) if sequence.padded is None else sequence.padded
    lengths = r.sum(is_inside, 0).to("cpu")
    inside = m.reshape(is_inside, *is_inside.shape, *(1,) * (rows.ndim - 2))
    value = full((), padding_value, dtype=rows.dtype, device=rows.device)
    padded = _of_length(
        e.where(inside, rows, value), batch_sizes.shape[0], total_length, padding_value
    )
    padded = m.transpose(padded, 0, 1) if batch_first else padded
    if unsorted_indices is None:
        return padded, lengths
    axis = 0 if batch_first else 1
    return (
        index_select(padded, axis, unsorted_indices),
        index_select(lengths, 0, unsorted_indices.to("cpu")),
    )


def _of_length(rows: Tensor, longest: int, total: int | None, value: float) -> Tensor:
    """With `total` times, or as many as the longest sequence has; the rest is padding already."""
    times = rows.shape[0]
    if total is None:
        return rows if is_same(longest, times) else rows[:longest]
    if total < times:  # where not all of these have to be known
        if total < longest:
            raise ValueError(
                "Expected total_length to be at least the length of the longest sequence in input, "
                f"but got total_length={total} and max sequence length being {longest}"
            )
        return rows[:total]
    behind = (0,) * (2 * rows.ndim - 1) + (total - times,)
    return pad(rows, behind, value=value) if total > times else rows


def _unpacked(sequence: PackedSequence) -> Padded:
    data, batch_sizes = sequence.data, sequence.batch_sizes.to(sequence.data.device)
    times, batch = batch_sizes.shape[0], sequence.number
    column = m.unsqueeze(arange(batch, device=data.device), 0)
    is_inside = e.lt(column, m.unsqueeze(batch_sizes, 1))
    starts = m.unsqueeze(e.sub(cumsum(batch_sizes, 0), batch_sizes), 1)
    rows = m.reshape(e.where(is_inside, e.add(starts, column), 0), times * batch)
    return Padded(m.reshape(index_select(data, 0, rows), times, batch, *data.shape[1:]), is_inside)


def pad_sequence(
    sequences: Any,
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> Tensor:
    """Tensors of different first sizes in one: (time, batch, ...), or (batch, time, ...).

    >>> import tgraph as tg
    >>> tg.nn.utils.rnn.pad_sequence([tg.tensor([1, 2]), tg.tensor([3])], batch_first=True)
    tensor([[1, 2],
            [3, 0]])
    """
    if not isinstance(sequences, Iterable):
        raise RuntimeError(
            "pad_sequence: Expected iterable for input sequences, but got arg of type: "
            f"{type(sequences)}"
        )
    tensors = list(sequences)
    if not tensors:
        raise RuntimeError("received an empty list of sequences")
    if padding_side not in ("left", "right"):
        raise RuntimeError(
            f"Expected padding_side to be one of left or right, but got {padding_side}."
        )
    for each in tensors:
        if not each.ndim or each.shape[1:] != tensors[0].shape[1:]:
            raise RuntimeError(
                "pad_sequence: expected tensors that differ in their first size alone, got "
                f"{', '.join(str(list(each.shape)) for each in tensors)}"
            )
    longest = max(each.shape[0] for each in tensors)
    dtype = tensors[0].dtype
    return stack(
        [_padded(each, longest, padding_value, padding_side).to(dtype) for each in tensors],
        0 if batch_first else 1,
    )


def _padded(x: Tensor, length: int, value: float, side: str) -> Any:
    missing = length - x.shape[0]
    if not missing:
        return x
    around = (0, missing) if side == "right" else (missing, 0)
    return pad(x, (0,) * (2 * x.ndim - 2) + around, value=value)


def unpad_sequence(
    padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False
) -> list[Tensor]:
    """The sequences of given `lengths` out of a padded tensor.

    >>> import tgraph as tg
    >>> from tgraph.nn.utils import rnn
    >>> rnn.unpad_sequence(tg.tensor([[1, 2], [3, 0]]), tg.tensor([2, 1]), batch_first=True)
    [tensor([1, 2]), tensor([3])]
    """
    by_sequence = padded_sequences if batch_first else m.transpose(padded_sequences, 0, 1)
    return [each[:length] for each, length in zip(by_sequence, lengths.tolist(), strict=True)]


def pack_sequence(sequences: Sequence[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Pack sequences of different lengths, longest first unless not `enforce_sorted`.

    >>> import tgraph as tg
    >>> tg.nn.utils.rnn.pack_sequence([tg.tensor([1, 2]), tg.tensor([3])]).data
    tensor([1, 3, 2])
    """
    lengths = [each.shape[0] for each in sequences]
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """The sequences that were packed.

    >>> import tgraph as tg
    >>> from tgraph.nn.utils import rnn
    >>> rnn.unpack_sequence(rnn.pack_sequence([tg.tensor([1, 2]), tg.tensor([3])]))
    [tensor([1, 2]), tensor([3])]
    """
    return unpad_sequence(*pad_packed_sequence(packed_sequences, True), batch_first=True)
