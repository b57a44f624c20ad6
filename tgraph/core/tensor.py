"""The Tensor: a mutable handle to a value, with what autograd needs to know about it.

This module holds the handle alone. `methods.py` gives it its operations, each of which is a plain
function of a module named after its family.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from ..compiler.ir import Node, Primitive, TensorType
from ..compiler.ir.layouts import node_strides, step_strides
from ..runtime.device import CPU, Device
from ..runtime.dtypes import DType
from ..runtime.records import NamedTuple
from .layouts import Layout, strided
from .state import state


class Size(tuple[int, ...]):
    """The shape of a tensor: a tuple that also knows its number of elements.

    >>> Size((2, 3)).numel()
    6
    """

    __slots__ = ()

    def __new__(cls, sizes: Iterable[Any] = ()) -> Size:
        return tuple.__new__(cls, [_whole(at, each) for at, each in enumerate(sizes)])

    def numel(self) -> int:
        total = 1
        for size in self:
            total *= size
        return total

    def __getitem__(self, key: Any) -> Any:
        found = tuple.__getitem__(self, key)
        return tuple.__new__(Size, found) if isinstance(key, slice) else found

    def __add__(self, other: Any) -> Any:
        found = tuple.__add__(self, other)
        return found if found is NotImplemented else Size(found)

    def __radd__(self, other: Any) -> Any:
        return Size(other + tuple(self)) if isinstance(other, tuple) else NotImplemented

    def __mul__(self, times: Any) -> Any:
        return Size(tuple.__mul__(self, times))

    __rmul__ = __mul__

    def __repr__(self) -> str:
        return f"tgraph.Size({list(self)})"

    __str__ = __repr__


def _whole(at: int, size: Any) -> Any:
    """An item of a Size, which may be one that a trace leaves open."""
    if type(size) is int:
        return size
    if not hasattr(size, "__index__"):
        kind = type(size).__name__
        raise TypeError(f"tgraph.Size() takes an iterable of 'int' (item {at} is '{kind}')")
    return int(size) if isinstance(size, (Tensor, np.integer)) else size


class Storage:
    """The memory that views share: how often and where it was last written in place.

    `version` counts the writes that the backward pass must know of. `changes` counts all of them,
    so that views know when to look again: `.data` shares the memory and counts for itself.
    """

    __slots__ = ("changes", "memory", "version", "written")

    def __init__(self) -> None:
        self.version = 0
        self.changes = 0
        self.memory: Any = None  # a weak reference to an UntypedStorage, once one was asked for
        self.written: Any = None  # a provenance.Site


class InferenceStorage(Storage):
    """That of what was made under `inference_mode`: nobody counts its writes, so that no gradient
    may depend on it."""

    __slots__ = ()


INFERENCE: list[None] = []
"""An element for each block of `inference_mode` that is entered, in any thread."""


def _first_storage() -> Storage | None:
    """That of a new tensor while some thread is in inference mode."""
    return InferenceStorage() if state.inference and state.context is None else None


def refuse_inference(target: Tensor) -> None:
    """RuntimeError where an inference tensor would be written outside of inference mode."""
    if type(target._storage) is InferenceStorage and not state.inference:
        raise RuntimeError(
            "Inplace update to inference tensor outside InferenceMode is not allowed. You can make "
            "a clone() to get a normal tensor before doing inplace update."
        )


def refuse_inference_leaf(target: Tensor) -> None:
    """RuntimeError where gradients of an inference tensor would be asked outside of the mode."""
    if type(target._storage) is InferenceStorage and not state.inference:
        raise RuntimeError(
            "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed."
        )


CONSTANTS = Storage()
"""That of numbers of Python that are operands, and of tables that follow from sizes: nobody writes
them, and what is kept for the backward pass has them for nothing."""


class ViewStep(NamedTuple):
    """One view primitive on the way from a base to a view.

    `operands` are those of `index`, in a trace alone: which row is shown, data tell.
    """

    primitive: Primitive
    attrs: dict[str, Any]
    operands: tuple[Any, ...] = ()


class View:
    """How a tensor looks at another's memory.

    The value of the view is that of `base` after `steps`. `changes` is that of `memory`, the
    storage that counts all its writes, when the view's own value and history were derived; they are
    derived again once it has changed. `differentiable` is False for `detach()`: writes do not
    change the history of the base. Only such views are themselves the base of others. `apart` are
    those that users make: contexts below do not know derivatives of them either.
    """

    __slots__ = ("apart", "base", "changes", "differentiable", "memory", "steps", "without_grad")

    def __init__(
        self,
        base: Tensor,
        steps: tuple[ViewStep, ...],
        differentiable: bool = True,
        without_grad: str = "",
    ) -> None:
        self.base = base
        self.memory = memory = shared_storage(base)
        self.steps = steps
        self.changes = memory.changes
        self.differentiable = differentiable
        self.without_grad = without_grad  # "no_grad" or "inference" where it was made under it
        self.apart = False


class Lifted:
    """The value of a tensor in a context that stands over another one: see `transforms/lifted.py`.

    `below` is the tensor of the context below whose memory it goes by; `strides` are in bytes.
    `serial` grows with each that is made.
    """

    __slots__ = ("below", "context", "serial", "where")

    serials = itertools.count()

    # Axes of `below` that come before those of the tensor itself.
    leading = 0

    def __init__(self, context: Any, below: Tensor, where: Any) -> None:
        self.context = context
        self.below = below
        self.where = where  # the user's line, a provenance.Site
        self.serial = next(Lifted.serials)

    def of(self, function: Callable[[Tensor], Tensor]) -> Lifted:
        """The value whose tensors below are what `function` gives for those of this one."""
        raise NotImplementedError

    @property
    def itemsize(self) -> int:
        return self.below._type.dtype.itemsize

    @property
    def strides(self) -> tuple[int, ...]:
        own = strides_of(self.below)[self.leading :]
        return tuple(stride * self.itemsize for stride in own)


PASSED_ON: set[type] = set()
"""Classes of users, which the results of operations have, too: see `classes.py`."""


class Tensor:
    """A multi-dimensional array of one dtype, recorded for gradients where they are asked for.

    Made by `tgraph.tensor`, `tgraph.zeros` and the like, and by operations on tensors.

    >>> import tgraph as tg
    >>> x = tg.tensor([1.0, 2.0], requires_grad=True)
    >>> (x * x).sum().backward()
    >>> x.grad
    tensor([2., 4.])
    """

    # _value: an array of NumPy or CuPy (eager) or a Node (traced); _record, _index: which output of
    # which autograd record this is; _storage: made when first needed; _hooks: gradient hooks.
    __slots__ = (
        "__dict__",
        "__weakref__",
        "_grad",
        "_hooks",
        "_index",
        "_record",
        "_requires_grad",
        "_storage",
        "_type",
        "_value",
        "_view",
    )

    _value: Any
    _type: TensorType
    _requires_grad: bool
    _record: Any
    _index: int
    _grad: Tensor | None
    _storage: Storage | None
    _view: View | None
    _hooks: Any

    # Whether what operations give of tensors of this class is of it: see `classes.py`.
    _is_passed_on = True

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if cls._is_passed_on:
            PASSED_ON.add(cls)

    __hash__ = object.__hash__

    if TYPE_CHECKING:  # what methods.py adds

        def __getattr__(self, name: str) -> Any: ...

    @property
    def shape(self) -> Size:
        """The size of every dimension."""
        return tuple.__new__(Size, self._type.shape)

    @property
    def dtype(self) -> DType:
        return self._type.dtype

    @property
    def device(self) -> Device:
        return self._type.device

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self._type.shape)

    @property
    def itemsize(self) -> int:
        """Bytes per element."""
        return self._type.dtype.itemsize

    @property
    def nbytes(self) -> int:
        return self._type.nbytes

    @property
    def is_cpu(self) -> bool:
        return self._type.device.type == "cpu"

    @property
    def is_cuda(self) -> bool:
        return self._type.device.type == "cuda"

    @property
    def is_meta(self) -> bool:
        return self._type.device.type == "meta"

    @property
    def layout(self) -> Layout:
        """How elements are kept: all of them, `strided`."""
        return strided

    @property
    def is_sparse(self) -> bool:
        """Whether only some elements are kept, with their positions: see `SparseTensor`."""
        return False

    is_sparse_csr = is_quantized = is_nested = is_mkldnn = is_mps = is_xpu = is_sparse
    is_xla = is_ipu = is_hpu = is_maia = is_mtia = is_vulkan = is_sparse

    def _is_view(self) -> bool:
        """Whether writes in place also change the history of another tensor."""
        if self._view is None and state.context is not None:
            return bool(state.context.origin_of(self).is_view)
        return self._view is not None and self._view.differentiable

    @property
    def _base(self) -> Tensor | None:
        """What this tensor is a view of."""
        view = self._view
        if view is None and state.context is not None:
            return state.context.base_of(self)  # type: ignore[no-any-return]
        return view.base if view is not None and view.differentiable else None

    @property
    def _version(self) -> int:
        """How often the memory was written in place."""
        if type(self._storage) is InferenceStorage:
            raise RuntimeError("Inference tensors do not track version counter.")
        return 0 if self._storage is None else self._storage.version

    def dim(self) -> int:
        """The number of dimensions."""
        return len(self._type.shape)

    ndimension = dim

    def numel(self) -> int:
        """The number of elements."""
        return self._type.numel

    nelement = numel

    def element_size(self) -> int:
        """Bytes per element."""
        return self._type.dtype.itemsize

    def is_floating_point(self) -> bool:
        return self._type.dtype.is_floating_point

    def is_complex(self) -> bool:
        return self._type.dtype.is_complex

    def is_signed(self) -> bool:
        return self._type.dtype.is_signed

    def size(self, dim: int | None = None) -> Any:
        """The shape, or the size of dimension `dim`."""
        if dim is None:
            return self.shape
        ndim = len(self._type.shape)
        bound = max(ndim, 1)
        if not isinstance(dim, (int, np.integer)):
            kind = type(dim).__name__
            raise TypeError(f"size(): argument 'dim' (position 1) must be int, not {kind}")
        if ndim == 0:
            raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
        if not -bound <= dim < bound:
            raise IndexError(
                f"Dimension out of range (expected to be in range of [{-bound}, {bound - 1}], "
                f"but got {dim})"
            )
        return self._type.shape[dim]


_AnyTensor = TypeVar("_AnyTensor", bound=Tensor)


def blank(cls: type[_AnyTensor]) -> _AnyTensor:
    """A handle of a class, without a value and a type yet."""
    self = _new(cls)
    self._record = None
    self._index = 0
    self._requires_grad = False
    self._grad = None
    self._storage = None
    self._view = None
    self._hooks = None
    return self


_TYPES: dict[Any, TensorType] = {}
_CACHED_TYPES = 1 << 16
_new = object.__new__


def intern_type(shape: tuple[int, ...], dtype: DType, device: Device = CPU) -> TensorType:
    """The TensorType, one object for equal ones as long as the table is not full."""
    key = (shape, dtype) if device is CPU else (shape, dtype, device)
    found = _TYPES.get(key)
    if found is None:
        if len(_TYPES) >= _CACHED_TYPES:
            _TYPES.clear()
        found = _TYPES[key] = TensorType(tuple(shape), dtype, device)
    return found


def wrap(value: Any, type_: TensorType) -> Tensor:
    """A new handle to `value`, without history. The hot path of every operation."""
    self = _new(Tensor)
    self._value = value
    self._type = type_
    self._record = None
    self._index = 0
    self._requires_grad = False
    self._grad = None
    self._storage = _first_storage() if INFERENCE else None
    self._view = None
    self._hooks = None
    return self


def unwritten(made: Tensor) -> Tensor:
    """`made`, which follows from numbers and sizes, and which nobody else has, as a constant."""
    made._storage = CONSTANTS
    return made


def storage_of(tensor: Tensor) -> Storage:
    """The tensor's storage, made on first use."""
    found = tensor._storage
    if found is None:
        found = tensor._storage = Storage()
    return found


def root_of(tensor: Tensor) -> Tensor:
    """The tensor whose memory a view shows a part of, in the end."""
    while tensor._view is not None:
        tensor = tensor._view.base
    return tensor


def shared_storage(tensor: Tensor) -> Storage:
    """The storage that counts every change of the tensor's memory."""
    if tensor._view is None:
        return tensor._storage or storage_of(tensor)
    return tensor._view.memory


def part_from_views(tensor: Tensor) -> None:
    """What shows the memory that `tensor` had does not show that of now: see `is_parted`."""
    before = tensor._storage
    if before is not None:
        tensor._storage = after = type(before)()
        after.version, after.changes, after.written = before.version, before.changes, before.written


def is_parted(view: View) -> bool:
    """Whether it shows memory that its base has no more, after assignment to `.data`."""
    return view.memory is not shared_storage(view.base)


def view_in(tensor: Tensor) -> View | None:
    """How `tensor` looks at another's memory, if it does: it may be left with what that had."""
    view = tensor._view
    if view is not None and is_parted(view):
        view = tensor._view = None
    return view


def strides_of(tensor: Tensor) -> tuple[int, ...]:
    """Strides in elements; in a trace those that eager code would have."""
    value = tensor._value
    if type(value) is Node:
        return node_strides(value)
    itemsize = value.itemsize
    return tuple(stride // itemsize for stride in value.strides)


def stride_step(
    step: ViewStep, shape: tuple[int, ...], strides: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Shape and element strides after one view primitive (which must be possible as a view)."""
    if step.operands:
        axis = step.attrs["axis"]
        return (*shape[:axis], *shape[axis + 1 :]), (*strides[:axis], *strides[axis + 1 :])
    return step_strides(step.primitive, step.attrs, shape, strides)


def overlaps_itself(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether several elements lie at one place in memory; strides are in elements."""
    axes = sorted((stride, size) for size, stride in zip(shape, strides) if size > 1)
    last = 0
    for stride, size in axes:
        if stride <= last:
            return _has_equal_places(axes)
        last += stride * (size - 1)
    return False


def _has_equal_places(axes: Sequence[tuple[int, int]]) -> bool:
    """Look at the place of every element, as axes that interlock may still miss each other."""
    if axes[0][0] == 0:
        return True
    places = np.zeros(1, np.int64)
    for stride, size in axes:
        places = np.add.outer(places, stride * np.arange(size)).reshape(-1)
    taken = np.zeros(places.max() + 1, np.bool_)
    taken[places] = True
    return bool(taken.sum() < places.size)
