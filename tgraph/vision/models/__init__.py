"""Networks that tell classes of images, by torchvision's names, layers and keys of `state_dict`.

Nothing is downloaded: a file of torchvision's weights is read by `tgraph.load`, and
`load_state_dict` takes it.

>>> import tgraph as tg
>>> from tgraph.vision.models import resnet18
>>> resnet18(num_classes=10).fc
Linear(in_features=512, out_features=10, bias=True)
"""

from typing import Any

from .alexnet import AlexNet, alexnet
from .builders import get_model, get_model_builder, list_models, weights_enum
from .densenet import DenseNet, densenet121, densenet161, densenet169, densenet201
from .mobilenetv2 import MobileNetV2, mobilenet_v2
from .resnet import (
    ResNet,
    resnet18,
    resnet34,
    resnet50,
    resnet101,
    resnet152,
    resnext50_32x4d,
    resnext101_32x8d,
    resnext101_64x4d,
    wide_resnet50_2,
    wide_resnet101_2,
)
from .squeezenet import SqueezeNet, squeezenet1_0, squeezenet1_1
from .vgg import VGG, vgg11, vgg11_bn, vgg13, vgg13_bn, vgg16, vgg16_bn, vgg19, vgg19_bn

__all__ = [
    "VGG",
    "AlexNet",
    "DenseNet",
    "MobileNetV2",
    "ResNet",
    "SqueezeNet",
    "alexnet",
    "densenet121",
    "densenet161",
    "densenet169",
    "densenet201",
    "get_model",
    "get_model_builder",
    "list_models",
    "mobilenet_v2",
    "resnet18",
    "resnet34",
    "resnet50",
    "resnet101",
    "resnet152",
    "resnext50_32x4d",
    "resnext101_32x8d",
    "resnext101_64x4d",
    "squeezenet1_0",
    "squeezenet1_1",
    "vgg11",
    "vgg11_bn",
    "vgg13",
    "vgg13_bn",
    "vgg16",
    "vgg16_bn",
    "vgg19",
    "vgg19_bn",
    "wide_resnet50_2",
    "wide_resnet101_2",
]


def __getattr__(name: str) -> Any:
    return weights_enum(name)
