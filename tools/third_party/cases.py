"""Models and functions of packages that were written for PyTorch.

Each case makes something to call and the arrays to call it with. It runs twice: with PyTorch, and
with `import torch` from tgraph. It must not draw random numbers in `call`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

CASES: dict[str, Callable[[], tuple[Any, list[Any]]]] = {}


def case(function: Callable[[], tuple[Any, list[Any]]]) -> Callable[[], tuple[Any, list[Any]]]:
    """Enter a case by its name: package, two underscores, what of it."""
    CASES[function.__name__] = function
    return function


def floats(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def tokens(*shape: int, below: int = 20) -> Any:
    return np.random.default_rng(1).integers(0, below, shape)


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


def _timm(name: str, size: int = 32, **options: Any) -> tuple[Any, list[Any]]:
    import timm

    return timm.create_model(name, num_classes=5, **options), [floats(2, 3, size, size)]


@case
def timm__resnet18() -> tuple[Any, list[Any]]:
    return _timm("resnet18")


@case
def timm__resnet26d() -> tuple[Any, list[Any]]:
    return _timm("resnet26d")


@case
def timm__mobilenetv3() -> tuple[Any, list[Any]]:
    return _timm("mobilenetv3_small_050")


@case
def timm__efficientnet() -> tuple[Any, list[Any]]:
    return _timm("efficientnet_lite0")


@case
def timm__convnext() -> tuple[Any, list[Any]]:
    return _timm("convnext_atto")


@case
def timm__vit() -> tuple[Any, list[Any]]:
    return _timm("vit_tiny_patch16_224", img_size=32, depth=2)


@case
def timm__swin() -> tuple[Any, list[Any]]:
    return _timm(
        "swin_tiny_patch4_window7_224", 32, img_size=32, window_size=4, depths=(2, 2, 1, 1)
    )


@case
def timm__mlp_mixer() -> tuple[Any, list[Any]]:
    return _timm("mixer_s32_224", img_size=32, num_blocks=2)


@case
def torchdiffeq__rk4() -> tuple[Any, list[Any]]:
    return _odeint("rk4")


@case
def torchdiffeq__dopri5() -> tuple[Any, list[Any]]:
    return _odeint("dopri5")


@case
def torchdiffeq__adjoint() -> tuple[Any, list[Any]]:
    return _odeint("dopri5", adjoint=True)


def _odeint(method: str, adjoint: bool = False) -> tuple[Any, list[Any]]:
    import torch
    import torchdiffeq

    solve = torchdiffeq.odeint_adjoint if adjoint else torchdiffeq.odeint

    class Flow(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = torch.nn.Sequential(
                torch.nn.Linear(2, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2)
            )

        def forward(self, t: Any, y: Any) -> Any:
            return self.net(y * y * y)

    class Solved(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.flow = Flow()

        def forward(self, y: Any) -> Any:
            return solve(self.flow, y, torch.linspace(0.0, 1.0, 5), method=method)

    return Solved(), [floats(3, 2)]


@case
def nflows__coupling() -> tuple[Any, list[Any]]:
    from nflows.distributions.normal import StandardNormal
    from nflows.flows.base import Flow
    from nflows.transforms.autoregressive import MaskedAffineAutoregressiveTransform
    from nflows.transforms.base import CompositeTransform
    from nflows.transforms.permutations import ReversePermutation

    layers = [
        each
        for _ in range(2)
        for each in (
            ReversePermutation(features=3),
            MaskedAffineAutoregressiveTransform(features=3, hidden_features=8),
        )
    ]
    flow = Flow(CompositeTransform(layers), StandardNormal([3]))
    flow.forward = flow.log_prob
    return flow, [floats(4, 3)]


@case
def siren_pytorch__net() -> tuple[Any, list[Any]]:
    from siren_pytorch import SirenNet

    return SirenNet(dim_in=2, dim_hidden=16, dim_out=3, num_layers=3), [floats(5, 2)]


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
def efficientnet_pytorch__b0() -> tuple[Any, list[Any]]:
    from efficientnet_pytorch import EfficientNet

    return EfficientNet.from_name("efficientnet-b0", num_classes=5), [floats(1, 3, 64, 64)]


@case
def torchmetrics__functions() -> tuple[Any, list[Any]]:
    import torch
    from torchmetrics.functional import accuracy, mean_squared_error, pearson_corrcoef, r2_score

    def call(scores: Any, classes: Any, other: Any) -> Any:
        chosen = scores.argmax(1)
        return torch.stack([
            accuracy(chosen, classes, task="multiclass", num_classes=5),
            mean_squared_error(scores[:, 0], other), pearson_corrcoef(scores[:, 0], other),
            r2_score(scores[:, 0], other),
        ])  # fmt: skip

    return call, [floats(16, 5), tokens(16, below=5), floats(16, seed=2)]


@case
def torchmetrics__classes() -> tuple[Any, list[Any]]:
    import torch
    from torchmetrics import MeanMetric
    from torchmetrics.classification import MulticlassAccuracy, MulticlassF1Score

    def call(scores: Any, classes: Any) -> Any:
        metrics = [
            MulticlassAccuracy(num_classes=5), MulticlassF1Score(num_classes=5, average="macro"),
        ]  # fmt: skip
        mean = MeanMetric()
        for rows in (slice(0, 8), slice(8, 16)):
            for each in metrics:
                each.update(scores[rows], classes[rows])
            mean.update(scores[rows].mean())
        return torch.stack([*(each.compute() for each in metrics), mean.compute()])

    return call, [floats(16, 5), tokens(16, below=5)]


@case
def pytorch_metric_learning__triplets() -> tuple[Any, list[Any]]:
    from pytorch_metric_learning.losses import ContrastiveLoss, TripletMarginLoss

    def call(embeddings: Any, labels: Any) -> Any:
        return TripletMarginLoss()(embeddings, labels) + ContrastiveLoss()(embeddings, labels)

    return call, [floats(12, 6), tokens(12, below=3)]


@case
def lion_pytorch__step() -> tuple[Any, list[Any]]:
    return _steps(lambda parameters: __import__("lion_pytorch").Lion(parameters, lr=1e-2))


@case
def torch_optimizer__lamb() -> tuple[Any, list[Any]]:
    return _steps(lambda parameters: __import__("torch_optimizer").Lamb(parameters, lr=1e-2))


@case
def torch_optimizer__radam() -> tuple[Any, list[Any]]:
    return _steps(lambda parameters: __import__("torch_optimizer").RAdam(parameters, lr=1e-2))


def _steps(make: Any) -> tuple[Any, list[Any]]:
    import torch

    def call(start: Any) -> Any:
        weight = torch.nn.Parameter(start.detach().clone())
        optimizer = make([weight])
        for _ in range(5):
            optimizer.zero_grad()
            ((weight - 1) ** 2).sum().backward()
            optimizer.step()
        return weight.detach()

    return call, [floats(4, 3)]


@case
def ema_pytorch__average() -> tuple[Any, list[Any]]:
    import torch
    from ema_pytorch import EMA

    model = torch.nn.Linear(3, 2)
    average = EMA(model, beta=0.9, update_after_step=0, update_every=1)

    class Averaged(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.average = average

        def forward(self, x: Any) -> Any:
            with torch.no_grad():
                model.weight += 1
            self.average.update()
            return self.average(x)

    return Averaged(), [floats(4, 3)]


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
def geoopt__poincare() -> tuple[Any, list[Any]]:
    import geoopt

    ball = geoopt.PoincareBall()

    def call(x: Any, y: Any) -> Any:
        one, other = ball.expmap0(x * 0.1), ball.expmap0(y * 0.1)
        return ball.dist(one, other) + ball.mobius_add(one, other).sum(-1)

    return call, [floats(4, 3), floats(4, 3, seed=1)]


@case
def gpytorch__regression() -> tuple[Any, list[Any]]:
    import gpytorch
    import torch

    class Model(gpytorch.models.ExactGP):
        def __init__(self, x: Any, y: Any, likelihood: Any) -> None:
            super().__init__(x, y, likelihood)
            self.mean_module = gpytorch.means.ConstantMean()
            self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())

        def forward(self, x: Any) -> Any:
            return gpytorch.distributions.MultivariateNormal(
                self.mean_module(x), self.covar_module(x)
            )

    x = torch.linspace(0, 1, 12)
    y = torch.sin(x * 6)
    likelihood = gpytorch.likelihoods.GaussianLikelihood()
    model = Model(x, y, likelihood)
    model.train()
    likelihood.train()
    loss = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
    return (lambda scale: loss(model(x), y) * scale.sum()), [floats(1)]


@case
def pyro__normal() -> tuple[Any, list[Any]]:
    import pyro.distributions as dist

    return (lambda x: dist.Normal(x, 1.0).to_event(1).log_prob(x * 2)), [floats(4, 3)]


@case
def kornia__filters() -> tuple[Any, list[Any]]:
    import kornia

    def call(x: Any) -> Any:
        return kornia.filters.gaussian_blur2d(x, (3, 3), (1.0, 1.0)) + kornia.filters.sobel(x)

    return call, [floats(1, 3, 8, 8)]


@case
def torch_geometric__gcn() -> tuple[Any, list[Any]]:
    import torch
    from torch_geometric.nn import GCNConv

    model = GCNConv(4, 3)
    edges = torch.tensor([[0, 1, 2, 3], [1, 2, 3, 0]])

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = model

        def forward(self, x: Any) -> Any:
            return self.layer(x, edges)

    return Net(), [floats(4, 4)]


@case
def segmentation_models_pytorch__unet() -> tuple[Any, list[Any]]:
    import segmentation_models_pytorch as smp

    model = smp.Unet("resnet18", encoder_weights=None, classes=2)
    return model, [floats(1, 3, 32, 32)]
