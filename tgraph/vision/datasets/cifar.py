"""CIFAR-10 and CIFAR-100 in their files for Python."""

from __future__ import annotations

import os
from typing import Any, ClassVar

import numpy as np

from ..pillow import image_module
from .pickled import read_pickle
from .vision import Transform, VisionDataset, refuse_download


class CIFAR10(VisionDataset):
    """Colour images of 32 x 32 of ten classes: 50,000 to learn from, and 10,000 to test with.

    The files `data_batch_1` to `data_batch_5`, `test_batch` and `batches.meta` lie in
    `root/cifar-10-batches-py`, as `cifar-10-python.tar.gz` unpacks. They are pickles, and read
    without running what is in them. Examples are images of Pillow's and integers. `data` is all
    images as an array of shape (count, 32, 32, 3), `targets` the list of numbers.

    NotImplementedError for `download=True`, RuntimeError where files are missing or damaged.
    """

    base_folder = "cifar-10-batches-py"
    train_list: ClassVar[list[str]] = [f"data_batch_{number}" for number in range(1, 6)]
    test_list: ClassVar[list[str]] = ["test_batch"]
    meta, names, labels = "batches.meta", "label_names", "labels"

    data: np.ndarray
    targets: list[int]
    classes: list[str]

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
        refuse_download(self, download, os.path.join(self.root, self.base_folder))
        self.classes = self._classes()
        parts = [self._part(name) for name in (self.train_list if train else self.test_list)]
        images = np.concatenate([data for data, _ in parts]).reshape(-1, 3, 32, 32)
        self.data = np.ascontiguousarray(images.transpose(0, 2, 3, 1))
        self.targets = [label for _, labels in parts for label in labels]

    @property
    def class_to_idx(self) -> dict[str, int]:
        """The number of each class by its name."""
        return {name: number for number, name in enumerate(self.classes)}

    def _file(self, name: str) -> tuple[str, dict[str, Any]]:
        path = os.path.join(self.root, self.base_folder, name)
        if not os.path.isfile(path):
            raise RuntimeError(
                f"{type(self).__name__}: Dataset not found: there is no {path}. tgraph loads "
                "nothing from the network"
            )
        return path, read_pickle(path)

    def _classes(self) -> list[str]:
        path, found = self._file(self.meta)
        names = found.get(self.names)
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise RuntimeError(f"{path}: has no list {self.names!r} of names: it is damaged")
        return names

    def _part(self, name: str) -> tuple[np.ndarray, list[int]]:
        path, found = self._file(name)
        data, labels = found.get("data"), found.get(self.labels)
        if not isinstance(data, np.ndarray) or data.dtype != np.uint8 or data.shape[1:] != (3072,):
            raise RuntimeError(f"{path}: 'data' is not rows of 3,072 bytes: it is damaged")
        if not isinstance(labels, list) or len(labels) != len(data):
            raise RuntimeError(f"{path}: {self.labels!r} is not one label for each of {len(data)} "
                               "images: it is damaged")  # fmt: skip
        for label in labels:
            if type(label) is not int or not 0 <= label < len(self.classes):
                raise RuntimeError(
                    f"{path}: label {label!r}, of {len(self.classes)} classes: it is damaged"
                )
        return data, labels

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        image = image_module().fromarray(self.data[index])
        return self._transformed(image, self.targets[index])

    def __len__(self) -> int:
        return len(self.data)

    def extra_repr(self) -> str:
        """The part of the data."""
        return f"Split: {'Train' if self.train else 'Test'}"


class CIFAR100(CIFAR10):
    """As CIFAR10, of a hundred classes: `train`, `test`, `meta` in `root/cifar-100-python`."""

    base_folder = "cifar-100-python"
    train_list: ClassVar[list[str]] = ["train"]
    test_list: ClassVar[list[str]] = ["test"]
    meta, names, labels = "meta", "fine_label_names", "fine_labels"
