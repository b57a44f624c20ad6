"""Attention, transformers and what they are made of."""

from __future__ import annotations

from typing import Any

from .registry import case, floats, tokens


@case
def einops__functions() -> tuple[Any, list[Any]]:
    from einops import einsum, pack, rearrange, reduce, repeat, unpack

    def call(x: Any) -> Any:
        patches = rearrange(x, "b c (h p) (w q) -> b (h w) (p q c)", p=2, q=2)
        packed, shapes = pack([patches, patches], "b * d")
        one, _ = unpack(packed, shapes, "b * d")
        pooled = reduce(one, "b n d -> b d", "mean")
        return einsum(repeat(pooled, "b d -> b n d", n=3), patches, "b n d, b m d -> b n m")

    return call, [floats(2, 3, 4, 4)]


@case
def einops__layers() -> tuple[Any, list[Any]]:
    import torch
    from einops.layers.torch import EinMix, Rearrange, Reduce

    model = torch.nn.Sequential(
        Rearrange("b c h w -> b (h w) c"),
        EinMix("b n c -> b n d", weight_shape="c d", bias_shape="d", c=3, d=5),
        Reduce("b n d -> b d", "max"),
    )
    return model, [floats(2, 3, 4, 4)]


def _x_transformers(**options: Any) -> tuple[Any, list[Any]]:
    from x_transformers import Decoder, TransformerWrapper

    model = TransformerWrapper(
        num_tokens=20, max_seq_len=16,
        attn_layers=Decoder(dim=32, depth=2, heads=2, attn_dim_head=16, **options),
    )  # fmt: skip
    return model, [tokens(2, 12)]


@case
def x_transformers__decoder() -> tuple[Any, list[Any]]:
    return _x_transformers()


@case
def x_transformers__rotary_swiglu() -> tuple[Any, list[Any]]:
    return _x_transformers(rotary_pos_emb=True, ff_swish=True, ff_glu=True, use_rmsnorm=True)


@case
def x_transformers__encoder() -> tuple[Any, list[Any]]:
    from x_transformers import ContinuousTransformerWrapper, Encoder

    model = ContinuousTransformerWrapper(
        dim_in=8, dim_out=4, max_seq_len=16, attn_layers=Encoder(dim=32, depth=2, heads=2)
    )
    return model, [floats(2, 12, 8)]


@case
def x_transformers__vit() -> tuple[Any, list[Any]]:
    from x_transformers import Encoder, ViTransformerWrapper

    model = ViTransformerWrapper(
        image_size=16, patch_size=4, num_classes=5,
        attn_layers=Encoder(dim=32, depth=2, heads=2),
    )  # fmt: skip
    return model, [floats(2, 3, 16, 16)]


@case
def vit_pytorch__vit() -> tuple[Any, list[Any]]:
    from vit_pytorch.vit import ViT

    model = ViT(image_size=16, patch_size=4, num_classes=5, dim=32, depth=2, heads=2, mlp_dim=32)
    return model, [floats(2, 3, 16, 16)]


@case
def vit_pytorch__simple_vit() -> tuple[Any, list[Any]]:
    from vit_pytorch.simple_vit import SimpleViT

    model = SimpleViT(
        image_size=16, patch_size=4, num_classes=5, dim=32, depth=2, heads=2, mlp_dim=32
    )
    return model, [floats(2, 3, 16, 16)]


@case
def vit_pytorch__deepvit() -> tuple[Any, list[Any]]:
    from vit_pytorch.deepvit import DeepViT

    model = DeepViT(
        image_size=16, patch_size=4, num_classes=5, dim=32, depth=2, heads=2, mlp_dim=32
    )
    return model, [floats(2, 3, 16, 16)]


@case
def vit_pytorch__cct() -> tuple[Any, list[Any]]:
    from vit_pytorch.cct import CCT

    model = CCT(
        img_size=(16, 16), embedding_dim=32, n_conv_layers=1, num_layers=2, num_heads=2,
        mlp_ratio=2.0, num_classes=5, positional_embedding="learnable", dropout_rate=0.0,
        attention_dropout=0.0, stochastic_depth_rate=0.0,
    )  # fmt: skip
    return model, [floats(2, 3, 16, 16)]


@case
def vit_pytorch__mobile_vit() -> tuple[Any, list[Any]]:
    from vit_pytorch.mobile_vit import MobileViT

    model = MobileViT(
        image_size=(64, 64), dims=[32, 32, 32],
        channels=[8, 16, 24, 24, 32, 32, 48, 48, 64, 64, 96],
        num_classes=5,
    )  # fmt: skip
    return model, [floats(2, 3, 64, 64)]


@case
def nystrom_attention__attention() -> tuple[Any, list[Any]]:
    from nystrom_attention import NystromAttention

    model = NystromAttention(dim=16, dim_head=8, heads=2, num_landmarks=4, pinv_iterations=6)
    return model, [floats(2, 16, 16)]


@case
def local_attention__transformer() -> tuple[Any, list[Any]]:
    from local_attention import LocalTransformer

    model = LocalTransformer(
        num_tokens=20, dim=16, depth=1, causal=True, local_attn_window_size=4, max_seq_len=16,
        heads=2, dim_head=8,
    )  # fmt: skip
    return model, [tokens(2, 16)]


@case
def rotary_embedding_torch__rotate() -> tuple[Any, list[Any]]:
    from rotary_embedding_torch import RotaryEmbedding

    rotary = RotaryEmbedding(dim=8)
    return rotary.rotate_queries_or_keys, [floats(1, 2, 6, 8)]


@case
def entmax__entmax15() -> tuple[Any, list[Any]]:
    from entmax import entmax15

    return lambda x: entmax15(x, dim=-1), [floats(3, 7)]


@case
def entmax__sparsemax() -> tuple[Any, list[Any]]:
    from entmax import sparsemax

    return lambda x: sparsemax(x, dim=-1), [floats(3, 7)]


@case
def vector_quantize_pytorch__fsq() -> tuple[Any, list[Any]]:
    from vector_quantize_pytorch import FSQ

    return FSQ(levels=[5, 5, 3]), [floats(2, 6, 3)]


@case
def linear_attention_transformer__model() -> tuple[Any, list[Any]]:
    from linear_attention_transformer import LinearAttentionTransformer

    model = LinearAttentionTransformer(dim=16, heads=2, depth=1, max_seq_len=16)
    return model, [floats(2, 16, 16)]


@case
def reformer_pytorch__autopadder() -> tuple[Any, list[Any]]:
    from reformer_pytorch.reformer_pytorch import FeedForward

    return FeedForward(16), [floats(2, 8, 16)]


@case
def linformer__model() -> tuple[Any, list[Any]]:
    from linformer import Linformer

    return Linformer(dim=16, seq_len=8, depth=2, heads=2, k=4), [floats(2, 8, 16)]


@case
def perceiver_pytorch__perceiver() -> tuple[Any, list[Any]]:
    from perceiver_pytorch import Perceiver

    model = Perceiver(
        num_freq_bands=2, depth=1, max_freq=4.0, input_channels=3, num_latents=4, latent_dim=16,
        cross_heads=1, latent_heads=2, cross_dim_head=8, latent_dim_head=8, num_classes=5,
    )  # fmt: skip
    return model, [floats(2, 6, 6, 3)]


@case
def conformer__block() -> tuple[Any, list[Any]]:
    from conformer import ConformerBlock

    return ConformerBlock(dim=16, dim_head=8, heads=2, conv_kernel_size=7), [floats(2, 12, 16)]


@case
def g_mlp_pytorch__model() -> tuple[Any, list[Any]]:
    from g_mlp_pytorch import gMLP

    return gMLP(num_tokens=20, dim=16, depth=2, seq_len=8), [tokens(2, 8)]


@case
def mlp_mixer_pytorch__model() -> tuple[Any, list[Any]]:
    from mlp_mixer_pytorch import MLPMixer

    model = MLPMixer(image_size=16, channels=3, patch_size=4, dim=16, depth=2, num_classes=5)
    return model, [floats(2, 3, 16, 16)]
