"""What data sets of images have in common."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from ...utils.data.dataset import Dataset

Transform = Callable[[Any], Any]


class StandardTransform:
    """One function for the image, one for its target."""

    def __init__(
        self, transform: Transform | None = None, target_transform: Transform | None = None
    ) -> None:
        self.transform, self.target_transform = transform, target_transform

    def __call__(self, input: Any, target: Any) -> tuple[Any, Any]:
        if self.transform is not None:
            input = self.transform(input)
        if self.target_transform is not None:
            target = self.target_transform(target)
        return input, target

    def __repr__(self) -> str:
        lines = [type(self).__name__]
        for name, each in (("Transform: ", self.transform), ("Target transform: ",
                                                             self.target_transform)):  # fmt: skip
            if each is not None:
                first, *more = repr(each).splitlines()
                lines += [name + first, *(" " * len(name) + line for line in more)]
        return "\n".join(lines)


class VisionDataset(Dataset[Any]):
    """Examples of a folder: subclasses define `__getitem__` and `__len__`.

    `transforms` is called with an image and its target; or `transform` with the image, and
    `target_transform` with the target.
    """

    _repr_indent = 4

    def __init__(
        self,
        root: str | os.PathLike[str],
        transforms: Callable[[Any, Any], Any] | None = None,
        transform: Transform | None = None,
        target_transform: Transform | None = None,
    ) -> None:
        self.root = os.path.expanduser(root)
        if transforms is not None and (transform is not None or target_transform is not None):
            raise ValueError(
                "Only transforms or transform/target_transform can be passed as argument"
            )
        self.transform, self.target_transform = transform, target_transform
        if transform is not None or target_transform is not None:
            transforms = StandardTransform(transform, target_transform)
        self.transforms = transforms

    def __getitem__(self, index: int) -> Any:
        raise NotImplementedError(f"{type(self).__name__} defines no __getitem__")

    def __len__(self) -> int:
        raise NotImplementedError(f"{type(self).__name__} defines no __len__")

    def __repr__(self) -> str:
        body = [f"Number of datapoints: {len(self)}", f"Root location: {self.root}"]
        body += self.extra_repr().splitlines()
        if self.transforms is not None:
            body += repr(self.transforms).splitlines()
        indent = " " * self._repr_indent
        return "\n".join([f"Dataset {type(self).__name__}", *(indent + line for line in body)])

    def extra_repr(self) -> str:
        """More lines of the representation."""
        return ""

    def _transformed(self, image: Any, target: Any) -> tuple[Any, Any]:
        if self.transform is not None:
            image = self.transform(image)
        if self.target_transform is not None:
            target = self.target_transform(target)
        return image, target


def refuse_download(dataset: Any, download: bool, where: str) -> None:
    """NotImplementedError for `download=True`, which tells where files are to lie."""
    if download:
        raise NotImplementedError(
            f"{type(dataset).__name__}(download=True): tgraph loads nothing from the network. Get "
            f"the files from where the data set is published and put them there: {where}"
        )
