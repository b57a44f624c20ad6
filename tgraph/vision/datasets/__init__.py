"""Data sets of images that lie in files. Nothing is loaded from the network."""

from .cifar import CIFAR10, CIFAR100
from .folder import DatasetFolder, ImageFolder
from .mnist import KMNIST, MNIST, FashionMNIST
from .vision import VisionDataset

__all__ = [
    "CIFAR10",
    "CIFAR100",
    "KMNIST",
    "MNIST",
    "DatasetFolder",
    "FashionMNIST",
    "ImageFolder",
    "VisionDataset",
]  # fmt: skip
