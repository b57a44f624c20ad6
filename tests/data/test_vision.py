"""Readers of image files, from tiny ones in every format and damaged ones; transforms."""

from __future__ import annotations

import gzip
import pickle
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import tgraph as tg
from tgraph.utils.data import DataLoader
from tgraph.vision import datasets, utils
from tgraph.vision import transforms as T
from tgraph.vision.transforms import functional as F

RNG = np.random.default_rng(0)
PIXELS = RNG.integers(0, 256, (5, 7, 3), np.uint8)
IMAGE = Image.fromarray(PIXELS)


def idx(array: np.ndarray) -> bytes:
    return struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape) + array.tobytes()


def write_mnist(folder: Path, end: str = "") -> tuple[np.ndarray, np.ndarray]:
    folder.mkdir(parents=True, exist_ok=True)
    images, labels = RNG.integers(0, 256, (6, 28, 28), np.uint8), np.arange(6, dtype=np.uint8)
    for name, array in (("images-idx3", images), ("labels-idx1", labels)):
        data = idx(array)
        (folder / f"t10k-{name}-ubyte{end}").write_bytes(gzip.compress(data) if end else data)
    return images, labels


@pytest.mark.parametrize(
    ("kind", "folder", "end"),
    [("MNIST", "MNIST/raw", ""), ("FashionMNIST", "FashionMNIST/raw", ".gz"), ("KMNIST", "", "")],
)
def test_mnist(tmp_path: Path, kind: str, folder: str, end: str) -> None:
    images, labels = write_mnist(tmp_path / folder, end)
    make = getattr(datasets, kind)
    data = make(tmp_path, train=False)
    assert len(data) == 6 and np.array_equal(data.data.numpy(), images)
    assert data.targets.dtype == tg.int64 and data.targets.tolist() == labels.tolist()
    image, label = data[5]
    assert image.mode == "L" and np.array_equal(np.asarray(image), images[5]) and label == 5
    assert len(data.classes) == 10 and data.class_to_idx[data.classes[3]] == 3
    data = make(tmp_path, False, T.ToTensor(), target_transform=lambda label: -label)
    (x, y), *_ = DataLoader(data, batch_size=6)
    np.testing.assert_allclose(x.numpy()[:, 0], images / 255, rtol=1e-6)
    assert y.tolist() == [0, -1, -2, -3, -4, -5]
    assert repr(data).startswith(
        f"Dataset {kind}\n    Number of datapoints: 6\n    Root location: {tmp_path}\n"
        "    Split: Test\n    StandardTransform\n    Transform: ToTensor()\n    Target transform: <"
    )
    with pytest.raises(RuntimeError, match="Dataset not found: there is no train-images"):
        make(tmp_path)
    with pytest.raises(NotImplementedError, match=f"nothing from the network.*{kind}/raw"):
        make(tmp_path, download=True)


IMAGES = idx(np.zeros((6, 28, 28), np.uint8))
LABELS = idx(np.zeros(6, np.uint8))


@pytest.mark.parametrize(
    ("images", "labels", "text"),
    [
        (IMAGES[:-1], LABELS, "takes 4720 bytes, the file has 4719"),
        (IMAGES[:9], LABELS, "damaged idx file"), (b"", LABELS, "not an idx file"),
        (gzip.compress(IMAGES)[:-20], LABELS, "damaged gzip file"),
        (b"\0\0\x08\xff" + IMAGES[4:20], LABELS, "damaged idx file"),
        (b"\0\0\x08\x12" + b"\0" * 4 + b"\xff" * 68, LABELS, "damaged idx file"),
        (IMAGES, idx(np.zeros(5, np.uint8)), "6 images and 5 labels"),
        (IMAGES, idx(np.full(6, 10, np.uint8)), "label 10, of 10 classes"),
        (LABELS, IMAGES, "expected bytes in 3 axes, got uint8 of shape"),
    ],
    ids=range(9),
)  # fmt: skip
def test_damaged_idx_files(tmp_path: Path, images: bytes, labels: bytes, text: str) -> None:
    (tmp_path / "t10k-images-idx3-ubyte").write_bytes(images)
    (tmp_path / "t10k-labels-idx1-ubyte").write_bytes(labels)
    with pytest.raises(RuntimeError, match=text):
        datasets.MNIST(tmp_path, train=False)


def python_2(found: dict[str, Any], core: str) -> bytes:
    """A pickle as Python 2 writes them: text is bytes, arrays come of numpy.core."""
    data = found["data"]
    text = lambda value: b"U" + bytes([len(value)]) + value.encode()  # noqa: E731
    array = (
        f"cnumpy.{core}.multiarray\n_reconstruct\ncnumpy\nndarray\n".encode()
        + b"K\x00\x85U\x01b\x87R(K\x01M" + len(data).to_bytes(2, "little") + b"M\x00\x0c\x86"
        + b"cnumpy\ndtype\nU\x02u1K\x00K\x01\x87R(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xff"
        + b"K\x00tb\x89T" + data.size.to_bytes(4, "little") + data.tobytes() + b"tb"
    )  # fmt: skip
    other = [(key, value) for key, value in found.items() if key != "data"]
    lists = b"".join(
        text(key) + b"](" + b"".join(b"K" + bytes([each]) if isinstance(each, int) else text(each)
                                     for each in value) + b"e"
        for key, value in other
    )  # fmt: skip
    return b"\x80\x02}(" + text("data") + array + lists + b"u."


WRITERS: dict[str, Callable[[dict[str, Any]], bytes]] = {
    "python 2": lambda found: python_2(found, "core") if "data" in found else pickle.dumps(found),
    **{f"protocol {n}": lambda found, n=n: pickle.dumps(found, n) for n in (2, 4, 5)},
}


@pytest.mark.parametrize("written", WRITERS)
@pytest.mark.parametrize("kind", ["CIFAR10", "CIFAR100"])
def test_cifar(tmp_path: Path, kind: str, written: str) -> None:
    pixels = RNG.integers(0, 256, (4, 3072), np.uint8)
    write = WRITERS[written]
    make = getattr(datasets, kind)
    folder = tmp_path / make.base_folder
    folder.mkdir()
    (folder / make.meta).write_bytes(write({make.names: ["cat", "dog"]}))
    for name in (*make.train_list, *make.test_list):
        (folder / name).write_bytes(write({"data": pixels, make.labels: [0, 1, 1, 0]}))
    data = make(tmp_path)
    assert len(data) == 4 * len(make.train_list) and data.class_to_idx == {"cat": 0, "dog": 1}
    image, label = data[1]
    assert image.mode == "RGB" and label == 1
    assert np.array_equal(np.asarray(image), pixels[1].reshape(3, 32, 32).transpose(1, 2, 0))
    assert make(tmp_path, False).targets == [0, 1, 1, 0]
    with pytest.raises(NotImplementedError, match=f"nothing from the network.*{make.base_folder}"):
        make(tmp_path, download=True)


class Harm:
    def __reduce__(self) -> Any:
        return (print, ("code of the file has run",))


PLAIN = np.zeros((2, 3072), np.uint8)
GOOD = pickle.dumps({"data": PLAIN, "labels": [0, 1]})


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (pickle.dumps(Harm()), "names builtins.print, which is no array"), (b"", "ends too early"),
        (GOOD[:-3000], "ends too early"), (pickle.dumps([1]), "is of a list, not of a dict"),
        (GOOD.replace(b"labels", b"babels"), "'labels' is not one label for each of 2"),
        (pickle.dumps({"data": np.zeros((2, 9), np.uint8)}), "not rows of 3,072 bytes"),
        (pickle.dumps({"data": np.zeros((2, 3072))}), "not rows of 3,072 bytes"),
        (pickle.dumps({"data": np.array([None])}), "array of 'O8'"),
        (pickle.dumps({"data": PLAIN, "labels": [0, 2]}), "label 2, of 2"),
        (python_2({"data": PLAIN}, "core").replace(b"M\x02\x00M", b"M\x03\x00M"), "cannot reshape"),
    ],
    ids=range(10),
)  # fmt: skip
def test_damaged_pickles_and_those_that_run_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes, text: str
) -> None:
    folder = tmp_path / "cifar-10-batches-py"
    folder.mkdir()
    with pytest.raises(RuntimeError, match=r"there is no .*batches\.meta"):
        datasets.CIFAR10(tmp_path)
    (folder / "batches.meta").write_bytes(pickle.dumps({"label_names": ["a", "b"]}))
    (folder / "test_batch").write_bytes(content)
    with pytest.raises(RuntimeError, match=f"test_batch: .*{text}"):
        datasets.CIFAR10(tmp_path, train=False)
    assert not capsys.readouterr().out


def test_image_folder(tmp_path: Path) -> None:
    for place in ("dog/2.png", "dog/1.PNG", "cat/deep/3.ppm", "cat/note.txt"):
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        if place.endswith("txt"):
            (tmp_path / place).write_text("no image")
        else:
            IMAGE.convert("RGBA" if place.endswith("png") else "RGB").save(tmp_path / place)
    data = datasets.ImageFolder(tmp_path)
    assert data.classes == ["cat", "dog"] and data.class_to_idx == {"cat": 0, "dog": 1}
    files = (("cat/deep/3.ppm", 0), ("dog/1.PNG", 1), ("dog/2.png", 1))
    places = [(str(tmp_path / file), label) for file, label in files]
    assert data.samples == data.imgs == places and data.targets == [0, 1, 1]
    for image, label in data:
        assert image.mode == "RGB" and np.array_equal(np.asarray(image), PIXELS) and label < 2
    texts = datasets.DatasetFolder(tmp_path, Path, (".txt",), str, allow_empty=True)
    assert list(texts) == [(str(tmp_path / "cat" / "note.txt"), 0)]
    (tmp_path / "cat" / "broken.jpg").write_bytes(b"\xff\xd8\xff\xe0 what is this")
    with pytest.raises(OSError, match=r"broken\.jpg: not an image that Pillow can read"):
        datasets.ImageFolder(tmp_path)[0]
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match="no valid file for the classes empty"):
        datasets.ImageFolder(tmp_path)
    with pytest.raises(FileNotFoundError, match="Couldn't find any class folder"):
        datasets.ImageFolder(tmp_path / "empty")


def both(function: Callable[..., Any], *arguments: Any, **options: Any) -> np.ndarray:
    """What becomes of an image; of a tensor it is the same, but for rounding."""
    of_image = np.asarray(function(IMAGE, *arguments, **options))
    of_tensor = function(F.pil_to_tensor(IMAGE), *arguments, **options)
    assert of_tensor.dtype == tg.uint8
    found = of_tensor.numpy().transpose(1, 2, 0)
    np.testing.assert_allclose(found.astype(int), of_image.reshape(found.shape), atol=2)
    return of_image


def test_transforms_of_images_and_tensors() -> None:
    assert np.array_equal(both(F.hflip), PIXELS[:, ::-1])
    assert np.array_equal(both(F.vflip), PIXELS[::-1])
    assert np.array_equal(both(F.crop, 1, 2, 3, 4), PIXELS[1:4, 2:6])
    assert np.array_equal(both(F.crop, -1, 5, 3, 4)[1:, :2], PIXELS[:2, 5:])
    assert np.array_equal(both(F.center_crop, 3), PIXELS[1:4, 2:5])
    assert np.array_equal(both(F.center_crop, (9, 7))[2:7], PIXELS)
    for mode, padding in (("edge", 2), ("reflect", (1, 2)), ("symmetric", (1, 2, 3, 4))):
        both(F.pad, padding, padding_mode=mode)
    assert (both(F.pad, 1, 9)[0] == 9).all()
    assert both(F.resize, 3).shape == (3, 4, 3) and both(F.resize, (10, 20)).shape == (10, 20, 3)
    assert np.array_equal(both(F.rotate, 90, expand=True), np.rot90(PIXELS))
    assert np.array_equal(both(F.rotate, 180), PIXELS[::-1, ::-1])
    assert (both(F.rotate, 45, fill=(1, 2, 3))[0, 0] == (1, 2, 3)).all()
    for change in (F.adjust_brightness, F.adjust_contrast, F.adjust_saturation):
        assert not np.array_equal(both(change, 1.3), PIXELS)
    np.testing.assert_allclose(both(F.to_grayscale), PIXELS @ [0.2989, 0.587, 0.114], atol=1)
    cyan = F.adjust_hue(Image.new("RGB", (1, 1), "red"), 0.5)
    np.testing.assert_allclose(np.asarray(cyan)[0, 0], [0, 255, 255], atol=6)
    x = T.Compose([T.ToTensor(), T.Normalize([0.5] * 3, [0.25] * 3)])(IMAGE)
    np.testing.assert_allclose(x.numpy().transpose(1, 2, 0), PIXELS / 255 * 4 - 2, atol=1e-6)
    assert np.array_equal(T.ToPILImage()(F.to_tensor(IMAGE)), PIXELS)
    with pytest.raises(TypeError, match=r"ToTensor\(\) comes first"):
        T.Normalize([0.5], [0.5])(IMAGE)
    with pytest.raises(TypeError, match="pad takes an image of Pillow's or a tensor"):
        F.pad(PIXELS, 2)


RANDOM = [
    T.RandomCrop(4, padding=1), T.RandomResizedCrop(4), T.RandomHorizontalFlip(),
    T.RandomVerticalFlip(), T.RandomRotation(90), T.ColorJitter(0.5, 0.5, 0.5, 0.2),
    T.RandomGrayscale(0.5), T.RandomApply([F.hflip, F.vflip]), T.RandomChoice([F.hflip, F.vflip]),
    T.Compose([T.ToTensor(), T.RandomErasing(value="random"), T.ToPILImage()]),
]  # fmt: skip


@pytest.mark.parametrize("transform", RANDOM, ids=lambda transform: type(transform).__name__)
def test_random_transforms_are_decided_by_the_seed(transform: Any) -> None:
    tg.manual_seed(1)
    found = [np.asarray(transform(IMAGE)).tobytes() for _ in range(12)]
    assert len(set(found)) > 1
    tg.manual_seed(1)
    assert found == [np.asarray(transform(IMAGE)).tobytes() for _ in range(12)]


def test_pictures_of_batches(tmp_path: Path) -> None:
    images = tg.linspace(-1, 1, 3 * 2 * 2).reshape(3, 1, 2, 2)
    utils.save_image(images, tmp_path / "grid.png", nrow=2, padding=1, normalize=True, pad_value=1)
    found = np.asarray(Image.open(tmp_path / "grid.png"))
    assert found.shape == (7, 7, 3) and (found[[0, 3, 6]] == 255).all()
    assert found[1, 1, 0] == 0 and found[5, 2, 0] == 255 and (found[4:, 4:] == 255).all()
