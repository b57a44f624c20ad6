"""Modules under the paths that PyTorch has them at, such as `nn.modules.linear.Linear`."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from . import utils as utils

_PATHS = {
    "activation": "Threshold ReLU RReLU Hardtanh ReLU6 Sigmoid Hardsigmoid Tanh SiLU Mish "
    "Hardswish ELU CELU SELU GLU GELU Hardshrink LeakyReLU LogSigmoid Softplus Softshrink "
    "MultiheadAttention PReLU Softsign Tanhshrink Softmin Softmax Softmax2d LogSoftmax",
    "adaptive": "AdaptiveLogSoftmaxWithLoss _ASMoutput",
    "batchnorm": "BatchNorm1d LazyBatchNorm1d BatchNorm2d LazyBatchNorm2d BatchNorm3d "
    "LazyBatchNorm3d SyncBatchNorm _NormBase _BatchNorm _LazyNormBase",
    "channelshuffle": "ChannelShuffle",
    "container": "Container Sequential ModuleList ModuleDict ParameterList ParameterDict",
    "conv": "Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d LazyConv1d "
    "LazyConv2d LazyConv3d LazyConvTranspose1d LazyConvTranspose2d LazyConvTranspose3d _ConvNd "
    "_ConvTransposeNd",
    "distance": "PairwiseDistance CosineSimilarity",
    "dropout": "Dropout Dropout1d Dropout2d Dropout3d AlphaDropout FeatureAlphaDropout _DropoutNd",
    "flatten": "Flatten Unflatten",
    "fold": "Fold Unfold",
    "instancenorm": "InstanceNorm1d InstanceNorm2d InstanceNorm3d LazyInstanceNorm1d "
    "LazyInstanceNorm2d LazyInstanceNorm3d _InstanceNorm",
    "lazy": "LazyModuleMixin",
    "linear": "Bilinear Identity LazyLinear Linear",
    "loss": "L1Loss NLLLoss NLLLoss2d PoissonNLLLoss GaussianNLLLoss KLDivLoss MSELoss BCELoss "
    "BCEWithLogitsLoss HingeEmbeddingLoss MultiLabelMarginLoss SmoothL1Loss HuberLoss "
    "SoftMarginLoss CrossEntropyLoss LinearCrossEntropyLoss MultiLabelSoftMarginLoss "
    "CosineEmbeddingLoss MarginRankingLoss MultiMarginLoss TripletMarginLoss "
    "TripletMarginWithDistanceLoss CTCLoss _Loss _WeightedLoss",
    "module": "Module register_module_forward_pre_hook register_module_forward_hook "
    "register_module_full_backward_pre_hook register_module_backward_hook "
    "register_module_full_backward_hook register_module_buffer_registration_hook "
    "register_module_module_registration_hook register_module_parameter_registration_hook "
    "_IncompatibleKeys",
    "normalization": "LocalResponseNorm CrossMapLRN2d LayerNorm GroupNorm RMSNorm",
    "padding": "CircularPad1d CircularPad2d CircularPad3d ConstantPad1d ConstantPad2d "
    "ConstantPad3d ReflectionPad1d ReflectionPad2d ReflectionPad3d ReplicationPad1d "
    "ReplicationPad2d ReplicationPad3d ZeroPad1d ZeroPad2d ZeroPad3d _ConstantPadNd "
    "_CircularPadNd _ReflectionPadNd _ReplicationPadNd",
    "pixelshuffle": "PixelShuffle PixelUnshuffle",
    "pooling": "MaxPool1d MaxPool2d MaxPool3d MaxUnpool1d MaxUnpool2d MaxUnpool3d AvgPool1d "
    "AvgPool2d AvgPool3d FractionalMaxPool2d FractionalMaxPool3d LPPool1d LPPool2d LPPool3d "
    "AdaptiveMaxPool1d AdaptiveMaxPool2d AdaptiveMaxPool3d AdaptiveAvgPool1d AdaptiveAvgPool2d "
    "AdaptiveAvgPool3d _MaxPoolNd _AvgPoolNd _MaxUnpoolNd _LPPoolNd _AdaptiveMaxPoolNd "
    "_AdaptiveAvgPoolNd",
    "rnn": "RNNBase RNN LSTM GRU RNNCellBase RNNCell LSTMCell GRUCell",
    "sparse": "Embedding EmbeddingBag",
    "transformer": "Transformer TransformerEncoder TransformerDecoder TransformerEncoderLayer "
    "TransformerDecoderLayer",
    "upsampling": "Upsample UpsamplingNearest2d UpsamplingBilinear2d",
}
"""The names of each of PyTorch's files."""


def _own_modules() -> list[dict[str, Any]]:
    """What the files of `tgraph.nn` hold, first of all `tgraph.nn` itself."""
    package = __name__.rpartition(".")[0]
    return [
        vars(module)
        for name, module in list(sys.modules.items())
        if name == package or (name.startswith(f"{package}.") and not name.startswith(__name__))
    ]


def _made(path: str, names: str, held: list[dict[str, Any]]) -> ModuleType:
    module = ModuleType(f"{__name__}.{path}", f"What PyTorch has in `torch.nn.modules.{path}`.")
    for name in names.split():
        found = next((own[name] for own in held if name in own), None)
        if found is not None:
            setattr(module, name, found)
    return module


def _make_all() -> None:
    held = _own_modules()
    for path, names in _PATHS.items():
        module = _made(path, names, held)
        sys.modules[module.__name__] = globals()[path] = module
        for name, value in vars(module).items():
            if not name.startswith("_") and isinstance(value, type):
                globals().setdefault(name, value)


_make_all()
