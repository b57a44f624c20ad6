"""Examples in a folder for each class."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Sequence
from typing import Any

from ..pillow import image_module
from .vision import Transform, VisionDataset

IMG_EXTENSIONS = (
    ".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp",
)  # fmt: skip


def has_file_allowed_extension(filename: str, extensions: str | tuple[str, ...]) -> bool:
    """Whether a name ends with one of `extensions`, in small letters or large ones."""
    return filename.lower().endswith(extensions)


def is_image_file(filename: str) -> bool:
    """Whether a name ends as those of images do."""
    return has_file_allowed_extension(filename, IMG_EXTENSIONS)


def find_classes(directory: str | os.PathLike[str]) -> tuple[list[str], dict[str, int]]:
    """The names of the folders in `directory`, sorted, and their numbers.

    FileNotFoundError where there are none.
    """
    classes = sorted(entry.name for entry in os.scandir(directory) if entry.is_dir())
    if not classes:
        raise FileNotFoundError(f"Couldn't find any class folder in {directory}.")
    return classes, {name: number for number, name in enumerate(classes)}


def make_dataset(
    directory: str | os.PathLike[str],
    class_to_idx: dict[str, int] | None = None,
    extensions: str | tuple[str, ...] | None = None,
    is_valid_file: Callable[[str], bool] | None = None,
    allow_empty: bool = False,
) -> list[tuple[str, int]]:
    """Paths and the numbers of their classes, in sorted order, folders in folders too.

    FileNotFoundError where a class has no file, unless `allow_empty`.
    """
    directory = os.path.expanduser(directory)
    if class_to_idx is None:
        class_to_idx = find_classes(directory)[1]
    elif not class_to_idx:
        raise ValueError("'class_to_index' must have at least one entry to collect any samples.")
    if (extensions is None) == (is_valid_file is None):
        raise ValueError(
            "Both extensions and is_valid_file cannot be None or not None at the same time"
        )
    taken = is_valid_file or (lambda path: has_file_allowed_extension(path, extensions or ()))
    found, empty = [], []
    for name in sorted(class_to_idx):
        walk = sorted(os.walk(os.path.join(directory, name), followlinks=True))
        paths = [os.path.join(folder, file) for folder, _, files in walk for file in sorted(files)]
        chosen = [(path, class_to_idx[name]) for path in paths if taken(path)]
        found += chosen
        if not chosen:
            empty.append(name)
    if empty and not allow_empty:
        hint = "" if extensions is None else f" Supported extensions are: {_joined(extensions)}"
        raise FileNotFoundError(
            f"Found no valid file for the classes {', '.join(empty)} in {directory}.{hint}"
        )
    return found


def _joined(extensions: str | Sequence[str]) -> str:
    return extensions if isinstance(extensions, str) else ", ".join(extensions)


def pil_loader(path: str) -> Any:
    """The image of a file, in colours; OSError that names it where Pillow cannot read it."""
    module = image_module()
    with open(path, "rb") as file:
        try:
            return module.open(file).convert("RGB")
        except (OSError, SyntaxError, ValueError, struct.error) as error:
            raise OSError(f"{path}: not an image that Pillow can read: {error}") from error


default_loader = pil_loader


class DatasetFolder(VisionDataset):
    """Files of any kind, which `loader` reads, in a folder for each class.

    Taken are those that end with one of `extensions`, or for whose path `is_valid_file` is true.
    `classes`, `class_to_idx`, `samples` (paths and numbers of classes) and `targets` tell what was
    found. FileNotFoundError where a class has no files, unless `allow_empty`.
    """

    def __init__(
        self,
        root: str | os.PathLike[str],
        loader: Callable[[str], Any],
        extensions: tuple[str, ...] | None = None,
        transform: Transform | None = None,
        target_transform: Transform | None = None,
        is_valid_file: Callable[[str], bool] | None = None,
        allow_empty: bool = False,
    ) -> None:
        super().__init__(root, transform=transform, target_transform=target_transform)
        self.classes, self.class_to_idx = self.find_classes(self.root)
        self.loader = loader
        self.extensions = extensions
        self.samples = self.make_dataset(
            self.root, self.class_to_idx, extensions, is_valid_file, allow_empty
        )
        self.targets = [target for _, target in self.samples]

    @staticmethod
    def make_dataset(
        directory: str | os.PathLike[str],
        class_to_idx: dict[str, int],
        extensions: tuple[str, ...] | None = None,
        is_valid_file: Callable[[str], bool] | None = None,
        allow_empty: bool = False,
    ) -> list[tuple[str, int]]:
        """What a subclass may override to choose files otherwise."""
        return make_dataset(directory, class_to_idx, extensions, is_valid_file, allow_empty)

    def find_classes(self, directory: str | os.PathLike[str]) -> tuple[list[str], dict[str, int]]:
        """What a subclass may override to name or choose classes otherwise."""
        return find_classes(directory)

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        path, target = self.samples[index]
        return self._transformed(self.loader(path), target)

    def __len__(self) -> int:
        return len(self.samples)


class ImageFolder(DatasetFolder):
    """Images in a folder for each class: `root/dog/1.png`, `root/cat/of mine/2.jpg`.

    `imgs` is another name of `samples`.
    """

    def __init__(
        self,
        root: str | os.PathLike[str],
        transform: Transform | None = None,
        target_transform: Transform | None = None,
        loader: Callable[[str], Any] = default_loader,
        is_valid_file: Callable[[str], bool] | None = None,
        allow_empty: bool = False,
    ) -> None:
        super().__init__(
            root, loader, IMG_EXTENSIONS if is_valid_file is None else None, transform,
            target_transform, is_valid_file, allow_empty,
        )  # fmt: skip
        self.imgs = self.samples
