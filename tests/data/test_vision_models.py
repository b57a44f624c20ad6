"""Networks of torchvision's names: the keys and shapes of their weights, and what they compute."""

import zlib

import pytest
from sampling import rotating

import tgraph as tg
from tgraph.vision import models

# Keys of the state_dict, numbers in the parameters, and crc32 of a line "key shape" for each key,
# as torchvision 0.28.0 has them.
STATES = {
    "alexnet": (16, 61100840, 1630271482),
    "densenet121": (727, 7978856, 337036915),
    "densenet161": (967, 28681000, 2765493015),
    "densenet169": (1015, 14149480, 3265074030),
    "densenet201": (1207, 20013928, 1651195700),
    "mobilenet_v2": (314, 3504872, 3710894366),
    "resnet101": (626, 44549160, 2172776777),
    "resnet152": (932, 60192808, 2689572413),
    "resnet18": (122, 11689512, 3269535270),
    "resnet34": (218, 21797672, 2402879462),
    "resnet50": (320, 25557032, 389688817),
    "resnext101_32x8d": (626, 88791336, 1981587682),
    "resnext101_64x4d": (626, 83455272, 948329222),
    "resnext50_32x4d": (320, 25028904, 3436125893),
    "squeezenet1_0": (52, 1248424, 147205316),
    "squeezenet1_1": (52, 1235496, 967197338),
    "vgg11": (22, 132863336, 4249873432),
    "vgg11_bn": (62, 132868840, 3626656645),
    "vgg13": (26, 133047848, 128212353),
    "vgg13_bn": (76, 133053736, 2530001516),
    "vgg16": (32, 138357544, 3022949719),
    "vgg16_bn": (97, 138365992, 1616242518),
    "vgg19": (38, 143667240, 603255321),
    "vgg19_bn": (118, 143678248, 4113857602),
    "wide_resnet101_2": (626, 126886696, 3515721026),
    "wide_resnet50_2": (320, 68883240, 579058945),
}


def test_their_weights_have_torchvisions_keys_and_shapes():
    assert models.list_models() == sorted(STATES)
    for name, wanted in rotating(STATES.items(), 3):
        with tg.device("meta"):
            model = models.get_model(name)
        lines = [f"{key} {tuple(each.shape)}" for key, each in model.state_dict().items()]
        numbers = sum(each.numel() for each in model.parameters())
        assert (len(lines), numbers, zlib.crc32("\n".join(lines).encode())) == wanted, name


def test_a_network_computes_the_same_compiled_and_takes_no_weights_by_name():
    tg.manual_seed(0)
    model = models.squeezenet1_1(num_classes=3).eval()
    images = tg.randn(2, 3, 33, 33)
    with tg.no_grad():
        tg.testing.assert_close(tg.compile(model)(images), model(images))
    for options in ({"weights": models.ResNet18_Weights.DEFAULT}, {"pretrained": True}):
        with pytest.raises(NotImplementedError, match=r"nothing is downloaded.*tgraph\.load"):
            models.resnet18(**options)
    with pytest.raises(ValueError, match="Unknown model resnet19; there are alexnet, densenet121"):
        models.get_model("resnet19")
    assert models.list_models(include=["vgg*", "res*"], exclude="*_*") == [
        "resnet101", "resnet152", "resnet18", "resnet34", "resnet50", "vgg11", "vgg13", "vgg16",
        "vgg19",
    ]  # fmt: skip
    with pytest.raises(ImportError, match="ViT_B_16_Weights"):
        from tgraph.vision.models import ViT_B_16_Weights  # noqa: F401
