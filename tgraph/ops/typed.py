"""Classes of one dtype: `FloatTensor`, `LongTensor`, ... and `FloatStorage`, `LongStorage`, ...

No tensor is an instance of a subclass: a `FloatTensor` makes tensors of float32, and is the class
of all of them for `isinstance`. PyTorch's files name the dtype of a storage by these classes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..compiler.ir import promotion
from ..core.devices import DeviceLike, as_device
from ..core.dispatch import settled
from ..core.operands import on_device
from ..core.public import public
from ..core.tensor import Size, Tensor
from ..runtime import dtypes
from ..runtime.device import Device, set_default_device
from ..runtime.dtypes import DType
from .creation import empty
from .creation_options import as_dtype
from .from_data import tensor
from .movement import as_sizes
from .storage import UntypedStorage, lines_of, untyped_storage
from .storage_views import tensor_over

NAMES = {
    "Float": dtypes.float32, "Double": dtypes.float64, "Half": dtypes.float16,
    "BFloat16": dtypes.bfloat16, "Byte": dtypes.uint8, "Char": dtypes.int8,
    "Short": dtypes.int16, "Int": dtypes.int32, "Long": dtypes.int64, "Bool": dtypes.bool_,
    "ComplexFloat": dtypes.complex64, "ComplexDouble": dtypes.complex128,
    "UInt16": dtypes.uint16, "UInt32": dtypes.uint32, "UInt64": dtypes.uint64,
}  # fmt: skip
"""PyTorch's words for dtypes in the names of classes."""
_WORDS = {dtype: word for word, dtype in NAMES.items()}


# --- storages ----------------------------------------------------------------------------------


class TypedStorage:
    """A storage whose elements are of one dtype, as `tensor.storage()` gives it.

    >>> import tgraph as tg
    >>> x = tg.arange(4.0)
    >>> x[2:].storage().tolist(), x.storage().dtype
    ([0.0, 1.0, 2.0, 3.0], tgraph.float32)
    """

    dtype: DType
    __slots__ = ("_untyped",)

    if TYPE_CHECKING:  # what storage_sizes.py adds

        def resize_(self, size: int) -> None: ...

    def __new__(
        cls, data: Any = 0, *, device: DeviceLike = "cpu", dtype: DType | None = None
    ) -> TypedStorage:
        """One of the class of its dtype, which `TypedStorage` itself is told."""
        own = STORAGES[dtype or promotion.default_dtype] if cls is TypedStorage else cls
        made: TypedStorage = object.__new__(own)
        return made

    def __init__(
        self, data: Any = 0, *, device: DeviceLike = "cpu", dtype: DType | None = None
    ) -> None:
        if isinstance(data, UntypedStorage):
            self._untyped = data
        elif isinstance(data, int):
            self._untyped = UntypedStorage(data * self.dtype.itemsize, device=device)
        else:
            self._untyped = untyped_storage(tensor(data, dtype=self.dtype, device=device))

    def untyped(self) -> UntypedStorage:
        """The bytes."""
        return self._untyped

    _untyped_storage = property(untyped)

    @property
    def device(self) -> Any:
        return self._untyped.device

    @property
    def is_cuda(self) -> bool:
        return self._untyped.is_cuda

    def data_ptr(self) -> int:
        """The address of the first element."""
        return self._untyped.data_ptr()

    def nbytes(self) -> int:
        """How many bytes there are."""
        return self._untyped.nbytes()

    @property
    def _cdata(self) -> int:
        return self._untyped._cdata

    def element_size(self) -> int:
        """Bytes per element."""
        return self.dtype.itemsize

    is_sparse = is_sparse_csr = is_hpu = UntypedStorage.is_sparse
    filename = None

    def get_device(self) -> int:
        """The number of the device; -1 for the CPU."""
        return self._untyped.get_device()

    def is_pinned(self, device: DeviceLike = "cuda") -> bool:
        """Whether devices reach this memory by themselves."""
        return self._untyped.is_pinned(device)

    def pickle_storage_type(self) -> str:
        """The name of this class, by which PyTorch's files tell the dtype."""
        return type(self).__name__

    @classmethod
    def from_buffer(
        cls, buffer: Any, byte_order: str, offset: int = 0, count: int = -1
    ) -> TypedStorage:
        """A copy of the elements in a buffer, which lie in "little" or "big" order."""
        made = UntypedStorage.from_buffer(
            buffer, byte_order, dtype=cls.dtype, offset=offset, count=count
        )
        return cls(made)

    def is_shared(self) -> bool:
        """Whether other processes can have this memory."""
        return self._untyped.is_shared()

    def share_memory_(self) -> TypedStorage:
        """Move this memory, with tensors that show it, to where other processes see it."""
        self._untyped.share_memory_()
        return self

    def type(self, dtype: DType | None = None) -> Any:
        """PyTorch's name of this class, or the elements as a storage of another dtype."""
        if dtype is None:
            return f"torch.{type(self).__name__}"
        return storage(self._elements().to(dtype))

    def size(self) -> int:
        """How many elements there are."""
        return self.nbytes() // self.dtype.itemsize

    __len__ = size

    def _elements(self) -> Tensor:
        return tensor_over(self._untyped, self.dtype, 0, (len(self),), (1,))

    def tolist(self) -> list[Any]:
        """All elements as Python numbers."""
        found: list[Any] = self._elements().tolist()
        return found

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    def __getitem__(self, index: int) -> Any:
        if not isinstance(index, (int, np.integer)):
            raise RuntimeError(
                f"can't index a {type(self)} with {type(index)}: single numbers are taken; use a "
                "tensor for slices"
            )
        if not -len(self) <= index < len(self):
            raise IndexError(f"index {index} out of range for storage of size {len(self)}")
        return self._elements()[index].item()

    def __setitem__(self, key: Any, value: Any) -> None:
        self._elements()[key] = value

    def fill_(self, value: Any) -> TypedStorage:
        """Write one value over all elements."""
        self._elements().fill_(value)
        return self

    def copy_(self, source: TypedStorage, non_blocking: bool = False) -> TypedStorage:
        """Write the bytes of another storage over these; there must be as many."""
        self._untyped.copy_(source.untyped())
        return self

    def clone(self) -> TypedStorage:
        """A copy with memory of its own."""
        return type(self)(self._untyped.clone())

    def cpu(self) -> TypedStorage:
        """This storage on the CPU."""
        return type(self)(self._untyped.cpu())

    def cuda(self, device: DeviceLike = None, non_blocking: bool = False) -> TypedStorage:
        """This storage on a CUDA device."""
        return type(self)(self._untyped.cuda(device))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TypedStorage) or self.dtype is not other.dtype:
            return False
        return self._untyped == other._untyped

    def __hash__(self) -> int:
        return hash(self._untyped)

    def __copy__(self) -> TypedStorage:
        return self.clone()

    def __deepcopy__(self, memo: dict[int, Any]) -> TypedStorage:
        return type(self)(self._untyped.__deepcopy__(memo))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._untyped,)

    def __repr__(self) -> str:
        what = f"dtype={self.dtype}, device={self.device}"
        kind = f"[tgraph.storage.TypedStorage({what}) of size {len(self)}]"
        return "\n".join([*lines_of(self), kind])


def _as_other(dtype: DType) -> Any:
    def convert(self: TypedStorage) -> TypedStorage:
        return self if self.dtype is dtype else self.type(dtype)

    convert.__doc__ = f"The elements as a storage of {dtype}: itself where it is one."
    return convert


for _name, _dtype in {
    "float": dtypes.float32, "double": dtypes.float64, "half": dtypes.float16,
    "bfloat16": dtypes.bfloat16, "byte": dtypes.uint8, "char": dtypes.int8,
    "short": dtypes.int16, "int": dtypes.int32, "long": dtypes.int64, "bool": dtypes.bool_,
    "complex_float": dtypes.complex64, "complex_double": dtypes.complex128,
}.items():  # fmt: skip
    setattr(TypedStorage, _name, _as_other(_dtype))


@public()
def is_storage(obj: Any) -> bool:
    """Whether `obj` is a storage."""
    return isinstance(obj, TypedStorage | UntypedStorage)


def _storage_class(word: str, dtype: DType) -> type[TypedStorage]:
    doc = f"Storages of {dtype}: see `TypedStorage`."
    name = f"{word}Storage"
    own = {"dtype": dtype, "__slots__": (), "__doc__": doc, "__module__": __name__}
    return type(name, (TypedStorage,), {**own, "__qualname__": name})


STORAGES = {dtype: _storage_class(word, dtype) for word, dtype in NAMES.items()}
FloatStorage = STORAGES[dtypes.float32]
DoubleStorage = STORAGES[dtypes.float64]
HalfStorage = STORAGES[dtypes.float16]
BFloat16Storage = STORAGES[dtypes.bfloat16]
ByteStorage = STORAGES[dtypes.uint8]
CharStorage = STORAGES[dtypes.int8]
ShortStorage = STORAGES[dtypes.int16]
IntStorage = STORAGES[dtypes.int32]
LongStorage = STORAGES[dtypes.int64]
BoolStorage = STORAGES[dtypes.bool_]
ComplexFloatStorage = STORAGES[dtypes.complex64]
ComplexDoubleStorage = STORAGES[dtypes.complex128]
UInt16Storage = STORAGES[dtypes.uint16]
UInt32Storage = STORAGES[dtypes.uint32]
UInt64Storage = STORAGES[dtypes.uint64]


@public(function=False, method=True)
def storage(self: Tensor) -> TypedStorage:
    """The memory that this tensor and its views share, as elements of its dtype."""
    return STORAGES[settled(self)._type.dtype](untyped_storage(self))


# --- tensors -----------------------------------------------------------------------------------


class TypedTensor(type):
    """The class of `FloatTensor` and the others."""

    dtype: DType
    place: str

    @property
    def is_cuda(cls) -> bool:
        return cls.place == "cuda"

    def __instancecheck__(cls, instance: object) -> bool:
        if not isinstance(instance, Tensor) or instance._type.dtype is not cls.dtype:
            return False
        return instance._type.device.type == cls.place

    def __call__(cls, *args: Any, device: DeviceLike = None) -> Tensor:
        """`FloatTensor(3, 2)` has these sizes and any elements, `FloatTensor([1, 2])` these."""
        check_device_type(device, cls.place)
        there = as_device(cls.place if device is None else device)
        data = args[0] if len(args) == 1 else None
        if not isinstance(data, Tensor):
            return made_of(args, cls.dtype, there)
        if data._type.dtype is not cls.dtype:
            raise TypeError(
                f"{cls.__name__}() expected a tensor of {cls.dtype}, got {data._type.dtype}; use "
                f"tensor.to({cls.dtype})"
            )
        return on_device(data.detach(), there)


def check_device_type(device: DeviceLike, expected: str) -> None:
    """RuntimeError for a device of another type than a class of tensors has."""
    if device is not None and (found := Device.parse(device).type) != expected:
        raise RuntimeError(
            f"legacy constructor expects device type: {expected} but device type: {found} was "
            f"passed; use empty() or tensor() with device='{device}'"
        )


def made_of(args: Sequence[Any], dtype: DType, device: DeviceLike) -> Tensor:
    """What classes of tensors make: of sizes, a storage that is shared, or numbers in sequences."""
    if not args or isinstance(args[0], (int, np.integer, Size)):
        return empty(as_sizes(args or (0,)), dtype=dtype, device=device)
    if len(args) > 1:
        raise TypeError(f"new() received an invalid combination of arguments - got {len(args)}")
    (data,) = args
    if isinstance(data, TypedStorage | UntypedStorage):
        count = data.nbytes() // dtype.itemsize
        return tensor_over(data.untyped(), dtype, 0, (count,), (1,))
    if isinstance(data, str):
        raise TypeError("new(): invalid data type 'str'")
    if not isinstance(data, Iterable) or (isinstance(data, np.ndarray) and not data.ndim):
        raise TypeError(f"new(): data must be a sequence (got {type(data).__name__})")
    return tensor(data, dtype=dtype, device=device)


def _tensor_class(word: str, dtype: DType, place: str = "cpu") -> TypedTensor:
    name = f"{word}Tensor"
    doc = f"Makes tensors of {dtype}, and is the class of them on this kind of device."
    own = {"dtype": dtype, "place": place, "__doc__": doc, "__module__": __name__}
    return TypedTensor(name, (), {**own, "__qualname__": name})


FloatTensor = _tensor_class("Float", dtypes.float32)
DoubleTensor = _tensor_class("Double", dtypes.float64)
HalfTensor = _tensor_class("Half", dtypes.float16)
BFloat16Tensor = _tensor_class("BFloat16", dtypes.bfloat16)
ByteTensor = _tensor_class("Byte", dtypes.uint8)
CharTensor = _tensor_class("Char", dtypes.int8)
ShortTensor = _tensor_class("Short", dtypes.int16)
IntTensor = _tensor_class("Int", dtypes.int32)
LongTensor = _tensor_class("Long", dtypes.int64)
BoolTensor = _tensor_class("Bool", dtypes.bool_)
ON_CUDA = {
    f"{word}Tensor": _tensor_class(word, dtype, "cuda")
    for word, dtype in NAMES.items()
    if not dtype.is_complex and not word.startswith("UInt")
}
"""The same classes of tensors on CUDA devices, which `tgraph.cuda` has."""


def type_name(input: Tensor) -> str:
    """PyTorch's name of the class of a tensor, which programs compare with."""
    place = "" if input._type.device.is_host else f"{input._type.device.type}."
    return f"torch.{place}{_WORDS[input._type.dtype]}Tensor"


def typed(given: Any) -> tuple[DType, str | None]:
    """The dtype, and the kind of device if one is told, of what names a class of tensors."""
    if isinstance(given, TypedTensor):
        return given.dtype, given.place
    if isinstance(given, str):
        library, _, name = given.rpartition(".")
        word = name.removesuffix("Tensor")
        if library in ("torch", "tgraph", "torch.cuda", "tgraph.cuda") and word in NAMES:
            return NAMES[word], "cuda" if library.endswith("cuda") else "cpu"
        raise ValueError(f"invalid type: '{given}'; expected one such as 'torch.FloatTensor'")
    found = as_dtype(given)
    assert found is not None
    return found, None


@public()
def set_default_tensor_type(t: Any) -> None:
    """Make floats that come without a dtype those of a class, such as `tg.DoubleTensor`.

    `tg.cuda.FloatTensor` also makes the current CUDA device the default one.
    """
    dtype, place = typed(t)
    if not dtype.is_floating_point:
        raise TypeError(f"only floating-point types are supported as the default type, got {dtype}")
    promotion.default_dtype = dtype
    set_default_device(place)


@public(function=False, method=True)
def _typed_storage(self: Tensor) -> TypedStorage:
    """`storage()`, as libraries ask for it that know it to be deprecated in PyTorch."""
    return storage(self)
