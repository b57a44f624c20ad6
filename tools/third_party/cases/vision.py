"""Networks for images."""

from __future__ import annotations

from typing import Any

from .registry import case, floats


def _timm(name: str, size: int = 32, count: int = 2, **options: Any) -> tuple[Any, list[Any]]:
    """Where batch normalization comes last, few values in a batch make much of roundings."""
    import timm

    return timm.create_model(name, num_classes=5, **options), [floats(count, 3, size, size)]


@case
def timm__resnet18() -> tuple[Any, list[Any]]:
    return _timm("resnet18", 64)


@case
def timm__resnet26d() -> tuple[Any, list[Any]]:
    return _timm("resnet26d", 64)


@case
def timm__mobilenetv3() -> tuple[Any, list[Any]]:
    return _timm("mobilenetv3_small_050", 64, 8)


@case
def timm__efficientnet() -> tuple[Any, list[Any]]:
    return _timm("efficientnet_lite0", 64, 8)


@case
def timm__convnext() -> tuple[Any, list[Any]]:
    return _timm("convnext_atto")


@case
def timm__vit() -> tuple[Any, list[Any]]:
    return _timm("vit_tiny_patch16_224", img_size=32, depth=2)


@case
def timm__swin() -> tuple[Any, list[Any]]:
    return _timm(
        "swin_tiny_patch4_window7_224",
        32,
        img_size=32,
        window_size=4,
        depths=(2, 2, 1, 1),
        drop_path_rate=0.0,
    )


@case
def timm__mlp_mixer() -> tuple[Any, list[Any]]:
    return _timm("mixer_s32_224", 64, img_size=64)


@case
def efficientnet_pytorch__b0() -> tuple[Any, list[Any]]:
    from efficientnet_pytorch import EfficientNet

    model = EfficientNet.from_name("efficientnet-b0", num_classes=5, drop_connect_rate=0.0)
    return model, [floats(8, 3, 64, 64)]


@case
def kornia__filters() -> tuple[Any, list[Any]]:
    import kornia

    def call(x: Any) -> Any:
        return kornia.filters.gaussian_blur2d(x, (3, 3), (1.0, 1.0)) + kornia.filters.sobel(x)

    return call, [floats(1, 3, 8, 8)]


@case
def segmentation_models_pytorch__unet() -> tuple[Any, list[Any]]:
    import segmentation_models_pytorch as smp

    model = smp.Unet("resnet18", encoder_weights=None, classes=2)
    return model, [floats(2, 3, 64, 64)]
