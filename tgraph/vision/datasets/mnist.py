"""MNIST, and the data sets that lie in files of its format."""

from __future__ import annotations

import gzip
import math
import os
import zlib
from typing import Any, ClassVar

import numpy as np

from ...core.tensor import Tensor
from ...ops.from_data import from_numpy
from ...serialization.errors import LoadError
from ..pillow import image_module
from .vision import Transform, VisionDataset, refuse_download

_ELEMENTS: dict[int, np.dtype[Any]] = {
    0x08: np.dtype("u1"), 0x09: np.dtype("i1"), 0x0B: np.dtype(">i2"), 0x0C: np.dtype(">i4"),
    0x0D: np.dtype(">f4"), 0x0E: np.dtype(">f8"),
}  # fmt: skip
_MOST_AXES = 32


def read_idx(path: str | os.PathLike[str]) -> np.ndarray:
    """The array of an idx file, which may be compressed by gzip.

    Two zero bytes, a byte for the type of the elements, one for the number of axes, their sizes as
    big-endian integers of 4 bytes, the elements (http://yann.lecun.com/exdb/mnist).

    LoadError where the file is damaged.
    """
    with open(path, "rb") as file:
        data = file.read()
    if data[:2] == b"\x1f\x8b":
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError, zlib.error) as error:
            raise LoadError(f"{path}: damaged gzip file ({error})") from error
    if len(data) < 4 or data[:2] != b"\0\0" or data[2] not in _ELEMENTS:
        raise LoadError(f"{path}: not an idx file: it begins with {data[:4]!r}")
    dtype, axes = _ELEMENTS[data[2]], data[3]
    begin = 4 + 4 * axes
    if axes > _MOST_AXES or len(data) < begin:
        raise LoadError(f"{path}: damaged idx file: {axes} axes in {len(data)} bytes")
    shape = tuple(int(size) for size in np.frombuffer(data[4:begin], ">u4"))
    wanted = begin + math.prod(shape) * dtype.itemsize
    if len(data) != wanted:
        raise LoadError(
            f"{path}: damaged idx file: an array of shape {shape} takes {wanted} bytes, the file "
            f"has {len(data)}"
        )
    elements = np.frombuffer(data, dtype, offset=begin)
    try:
        return elements.reshape(shape).astype(dtype.newbyteorder("="))
    except ValueError as error:  # sizes beyond all, beside one of 0
        raise LoadError(f"{path}: damaged idx file: {error}") from error


class MNIST(VisionDataset):
    """Handwritten digits: 60,000 images of 28 x 28 to learn from, and 10,000 to test with.

    The files `train-images-idx3-ubyte`, `train-labels-idx1-ubyte`, `t10k-images-idx3-ubyte` and
    `t10k-labels-idx1-ubyte` lie in `root/MNIST/raw`, where torchvision leaves them, or in `root`,
    with or without `.gz`. Examples are images of Pillow's and integers. `data` and `targets` are
    all of them, as tensors.

    NotImplementedError for `download=True`, RuntimeError where files are missing or damaged.
    """

    classes: ClassVar[list[str]] = [
        "0 - zero", "1 - one", "2 - two", "3 - three", "4 - four", "5 - five", "6 - six",
        "7 - seven", "8 - eight", "9 - nine",
    ]  # fmt: skip

    data: Tensor
    targets: Tensor

    def __init__(
        self,
        root: str | os.PathLike[str],
        train: bool = True,
        transform: Transform | None = None,
        target_transform: Transform | None = None,
        download: bool = False,
    ) -> None:
        super().__init__(root, transform=transform, target_transform=target_transform)
        self.train = train
        refuse_download(self, download, self.raw_folder)
        part = "train" if train else "t10k"
        images = self._read(f"{part}-images-idx3-ubyte", 3)
        labels = self._read(f"{part}-labels-idx1-ubyte", 1)
        if len(images) != len(labels):
            raise RuntimeError(
                f"{type(self).__name__}: the files hold {len(images)} images and {len(labels)} "
                "labels: they do not belong together"
            )
        if len(labels) and labels.max() >= len(self.classes):
            raise RuntimeError(
                f"{type(self).__name__}: label {labels.max()}, of {len(self.classes)} classes: the "
                "file of labels is damaged, or of another data set"
            )
        self.data, self.targets = from_numpy(images), from_numpy(labels.astype(np.int64))

    @property
    def raw_folder(self) -> str:
        """Where torchvision keeps the files."""
        return os.path.join(self.root, type(self).__name__, "raw")

    @property
    def class_to_idx(self) -> dict[str, int]:
        """The number of each class by its name."""
        return {name: number for number, name in enumerate(self.classes)}

    def _read(self, name: str, axes: int) -> np.ndarray:
        places = [os.path.join(folder, name) for folder in (self.raw_folder, self.root)]
        for path in (place + end for place in places for end in ("", ".gz")):
            if os.path.isfile(path):
                found = read_idx(path)
                if found.ndim != axes or found.dtype != np.uint8:
                    raise RuntimeError(
                        f"{path}: expected bytes in {axes} axes, got {found.dtype} of shape "
                        f"{found.shape}"
                    )
                return found
        raise RuntimeError(
            f"{type(self).__name__}: Dataset not found: there is no {name}, with or without .gz, "
            f"in {self.raw_folder} or {self.root}. tgraph loads nothing from the network"
        )

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        image = image_module().fromarray(self.data.numpy()[index])
        return self._transformed(image, int(self.targets.numpy()[index]))

    def __len__(self) -> int:
        return len(self.data)

    def extra_repr(self) -> str:
        """The part of the data."""
        return f"Split: {'Train' if self.train else 'Test'}"


class FashionMNIST(MNIST):
    """Pieces of clothing, as large and as many as MNIST's digits; in `root/FashionMNIST/raw`."""

    classes: ClassVar[list[str]] = [
        "T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag",
        "Ankle boot",
    ]  # fmt: skip


class KMNIST(MNIST):
    """Japanese characters, as large and as many as MNIST's digits; in `root/KMNIST/raw`."""

    classes: ClassVar[list[str]] = ["o", "ki", "su", "tsu", "na", "ha", "ma", "ya", "re", "wo"]
