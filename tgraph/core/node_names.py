"""Names of nodes of the graph of gradients: those that PyTorch has for the public operations.

A record knows the functions of this package that led to it (`Site.calls`). Its name is that of the
outermost one that PyTorch has a node for: an operation that is one there may be several steps here,
which all have its name. The digit behind a name tells overloads apart, as far as a record knows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

Name = str | Callable[[Any, Iterable[str]], str | None]


def camel(name: str) -> str:
    """As PyTorch derives the name of a node: "log1p" gives "Log1P".

    >>> camel("max_pool2d")
    'MaxPool2D'
    """
    return re.sub(r"(?:^|_|(?<=\d))([a-z])", lambda match: match[1].upper(), name).replace("_", "")


def node_name(calls: Iterable[str], record: Any) -> str | None:
    """The name of a record that came of `calls`, names of functions from the outermost inwards.

    None where PyTorch has no node for one of them.
    """
    names = tuple(name.lstrip("_") for name in calls)
    for name in names:
        found = NODES.get(name)
        if found is None and names[-1] == name:
            found = LAST_STEPS.get(name)
        if callable(found):
            found = found(record, names)
        if found is not None:
            return found if "Backward" in found else f"{found}Backward0"
    return None


# --- what a record tells of its operands ---------------------------------------------------------


def _ndim(record: Any) -> int:
    return len(record.outputs[0].shape)


def _primitive(record: Any) -> str:
    return getattr(getattr(record, "primitive", None), "name", "")


def _operands(record: Any) -> list[Any]:
    """The types of the operands of a record, as far as it is one operation."""
    given = getattr(record, "inputs", None) or ()
    return [each.tensor._type if hasattr(each, "tensor") else each for each in given]


def _is_tensor(record: Any, at: int) -> bool:
    """Whether operand `at` is no number."""
    if len(record.edges) > at and record.edges[at] is not None:
        return True
    operands = _operands(record)
    return len(operands) > at and len(getattr(operands[at], "shape", ())) > 0


def _of_whole(whole: str, along: str) -> Name:
    """`whole` where the result is one number, `along` where it has dimensions."""
    return lambda record, names: along if _ndim(record) else whole


def _of_second(number: str, tensor: str) -> Name:
    """`tensor` where the second operand is one, `number` where it is none."""
    return lambda record, names: tensor if _is_tensor(record, 1) else number


def _of_primitive(primitive: str, then: str | None, other: str | None) -> Name:
    return lambda record, names: then if _primitive(record) == primitive else other


def _reflected(then: str, other: str) -> Name:
    """`then` where a number is the first operand of an operator."""
    return lambda record, names: then if "reflected" in names else other


def _pow(record: Any, names: Iterable[str]) -> str:
    if _primitive(record) != "pow":
        return "PowBackward0"
    if not _is_tensor(record, 0):
        return "PowBackward2"
    return "PowBackward1" if _is_tensor(record, 1) else "PowBackward0"


def _clamp(record: Any, names: Iterable[str]) -> str:
    bounds = sum(edge is not None for edge in record.edges) > 1
    return "ClampBackward0" if bounds else "ClampBackward1"


def _product(record: Any, names: Iterable[str]) -> str:
    return ("Dot", "Mv", "Mm", "UnsafeView")[min(_ndim(record), 3)]


def _linear(record: Any, names: Iterable[str]) -> str:
    function = getattr(record, "function", None)
    biased = _primitive(record) == "add" or len(function.graph.inputs if function else ()) > 2
    if _ndim(record) == 2:
        return "Addmm" if biased else "Mm"
    if biased:
        return "View"
    return "SqueezeBackward4" if _ndim(record) == 1 else _product(record, names)


def _selected(record: Any, names: Iterable[str]) -> str | None:
    """Of an index of numbers and slices, its last step: what takes one, or adds one."""
    before = _operands(record)
    if _primitive(record) not in ("reshape", "select") or not before:
        return None
    more = _ndim(record) - len(before[0].shape)
    return ("Alias", "Unsqueeze", "Select")[(more > 0) - (more < 0)]


def _squeezed(record: Any, names: Iterable[str]) -> str:
    before = _operands(record)
    removed = len(before[0].shape) - _ndim(record) if before else 1
    return "SqueezeBackward1" if removed == 1 else "SqueezeBackward0"


_PLAIN = """
    abs acos acosh add addbmm addcdiv addcmul addmm addmv addr amax amin aminmax angle argsort asin
    asinh atan atan2 atanh baddbmm bernoulli binary_cross_entropy binary_cross_entropy_with_logits
    block_diag bmm ceil celu clamp_max clamp_min col2im complex conj convolution copysign cos cosh
    cummax cummin cumprod cumsum deg2rad diag_embed digamma dist elu embedding embedding_bag erf
    erfc erfinv exp exp2 expand expm1 flip floor frac gather gelu glu hardshrink hardsigmoid
    hardswish huber_loss hypot i0 index_add index_copy index_fill index_put index_reduce
    index_select kthvalue leaky_relu lgamma log log10 log1p log2 log_softmax logaddexp logaddexp2
    logcumsumexp logit logsumexp masked_fill masked_scatter masked_select mish mode mse_loss
    multi_margin_loss multilabel_margin_loss nan_to_num nansum neg permute pixel_shuffle
    pixel_unshuffle polar polygamma put rad2deg reciprocal relu renorm repeat roll rot90 round rrelu
    rsqrt scatter_add scatter_reduce segment_reduce sgn sigmoid sign silu sin sinc sinh
    smooth_l1_loss soft_margin_loss softmax softplus softshrink sort split sqrt stack std std_mean
    take tan tanh threshold topk trace tril triu trunc unbind unsqueeze var var_mean vdot where
    xlogy
    """
NODES: dict[str, Name] = {name: camel(name) for name in _PLAIN.split()}
"""The name of a node by the name of the public function, or what tells it of the record."""
NODES |= {f"{name}_": camel(name) for name in ("normal", "uniform", "zero", "exponential")}
NODES |= {
    # overloads
    "clamp": _clamp, "clip": _clamp,
    "diag": lambda record, names: "DiagEmbed" if _ndim(record) == 2 else "DiagonalBackward0_copy",
    "div": _reflected("Mul", "Div"), "sub": _reflected("RsubBackward1", "Sub"),
    "fill_": "FillBackward2",
    "fmod": _of_second("FmodBackward0", "FmodBackward1"),
    "lerp": lambda record, names: "LerpBackward1" if _is_tensor(record, 2) else "LerpBackward0",
    "max": lambda record, names: _largest("Max", record), "mul": "Mul",
    "mean": _of_whole("MeanBackward0", "MeanBackward1"),
    "median": _of_whole("MedianBackward0", "MedianBackward1"),
    "min": lambda record, names: _largest("Min", record),
    "nanmedian": _of_whole("NanmedianBackward0", "NanmedianBackward1"),
    "pow": _pow, "float_power": _pow, "square": "Pow",
    "prod": _of_whole("ProdBackward0", "ProdBackward1"),
    "remainder": _of_second("RemainderBackward0", "RemainderBackward1"),
    "rsub": lambda r, names: "RsubBackward0" if _is_tensor(r, 0) else "RsubBackward1",
    "scatter": lambda r, names: "ScatterBackward0" if _is_tensor(r, 2) else "ScatterBackward1",
    "sum": _of_whole("SumBackward0", "SumBackward1"),
    "squeeze": _squeezed, "squeeze_": "SqueezeBackward3", "t_": "TBackward1",
    "transpose_": "TransposeBackward1", "unsqueeze_": "UnsqueezeBackward1",
    # shapes and parts
    "contiguous": "Clone", "row_major_copy": "Clone",
    "unfold": _of_primitive("unfold", "Unfold", "Im2Col"),
    "atleast_2d": "Unsqueeze", "atleast_3d": "Unsqueeze", "chunk": "Split", "diagonal": "Diagonal",
    "hsplit": "Slice", "vsplit": "Slice", "dsplit": "Slice", "tensor_split": "Slice",
    "conjugate_transpose": "Transpose", "getitem": _selected, "matrix_transpose": "Transpose",
    "conjugate_matrix_transpose": "Transpose", "select": "Select", "swapaxes": "Transpose",
    "swapdims": "Transpose", "t": "T", "tile": "Repeat", "transpose": "Transpose",
    "imag": "Select", "real": "Select", "msort": "Sort", "greatest": "Max", "least": "Min",
    # products
    "matmul": _product, "mm": "Mm", "mv": "Mv", "dot": "Dot", "inner": _product, "linear": _linear,
    "bilinear": "View", "cdist": "Cdist", "cross": "LinalgCross", "kron": "UnsafeView",
    "einsum": "View", "matrix_power": _product, "scaled_dot_product_attention": "UnsafeView",
    "entr": "SpecialEntr", "erfcx": "SpecialErfcx", "i0e": "SpecialI0E", "i1": "SpecialI1",
    "i1e": "SpecialI1E", "log_ndtr": "SpecialLogNdtr", "ndtri": "SpecialNdtri",
    "xlog1py": "SpecialXlog1Py", "rfft": "FftR2C", "irfft": "FftC2R",
    # linear algebra
    "cholesky": "LinalgCholeskyEx", "cholesky_ex": "LinalgCholeskyEx",
    "cholesky_inverse": "CholeskyInverse", "cholesky_solve": "CholeskySolve", "eig": "LinalgEig",
    "eigvals": "LinalgEig", "householder_product": "LinalgHouseholderProduct",
    "inv_ex": "LinalgInvEx", "triangular_solve": "TriangularSolve", "det": "LinalgDet",
    "eigh": "LinalgEigh",
    "eigvalsh": "LinalgEigh", "inv": "LinalgInvEx", "inverse": "LinalgInvEx",
    "lstsq": "LinalgLstsq", "lu_factor": "LinalgLuFactorEx", "matrix_exp": "LinalgMatrixExp",
    "matrix_norm": "LinalgVectorNorm", "norm": "LinalgVectorNorm", "pinv": "LinalgPinv",
    "qr": "LinalgQr", "slogdet": "LinalgSlogdet", "solve": "LinalgSolveEx",
    "solve_triangular": "LinalgSolveTriangular", "svd": "LinalgSvd", "svdvals": "LinalgSvd",
    "vector_norm": "LinalgVectorNorm",
    # networks
    "adaptive_avg_pool2d": lambda record, names: _pooled(record),
    "adaptive_avg_pool3d": "AdaptiveAvgPool3D",
    "adaptive_max_pool2d": "AdaptiveMaxPool2D", "avg_pool2d": "AvgPool2D",
    "avg_pool3d": "AvgPool3D", "avg_pool1d": "SqueezeBackward1", "batch_norm": "NativeBatchNorm",
    "instance_norm": "View", "conv1d": "Convolution", "conv2d": "Convolution",
    "conv3d": "Convolution", "conv_transpose1d": "Convolution", "conv_transpose2d": "Convolution",
    "conv_transpose3d": "Convolution", "cross_entropy": "NllLoss", "nll_loss": "NllLoss",
    "dropout": "Mul", "dropout2d": "Mul", "fold": "Col2Im", "group_norm": "NativeGroupNorm",
    "grid_sample": lambda record, names: f"GridSampler{_ndim(record) - 2}D",
    "affine_grid": "AffineGridGenerator", "hardtanh": "Hardtanh", "relu6": "Hardtanh",
    "layer_norm": "NativeLayerNorm", "logsigmoid": "LogSigmoid", "max_pool1d": "SqueezeBackward1",
    "max_pool2d": "MaxPool2DWithIndices", "max_pool3d": "MaxPool3DWithIndices",
    "prelu": "PreluKernel", "selu": "Elu", "pairwise_distance": "NormBackward1", "pdist": "Pdist",
}  # fmt: skip


_mean = _of_whole("Mean", "Mul")
LAST_STEPS: dict[str, Name] = {
    "absolute_error": _of_whole("Mean", "Abs"), "cosine_embedding_loss": _mean,
    "cosine_similarity": "SumBackward1", "gaussian_nll_loss": _mean, "hinge_embedding_loss": _mean,
    "kl_div": _mean, "local_response_norm": "Div", "margin_ranking_loss": _mean,
    "multilabel_soft_margin_loss": _mean, "normalize": "Div", "poisson_nll_loss": _mean,
    "recurrent": "Stack", "rms_norm": "Mul", "softsign": "Div", "tanhshrink": "Sub",
    "triplet_margin_loss": _mean,
}  # fmt: skip
"""The last step of what PyTorch composes and a plan computes at once here."""


def _pooled(record: Any) -> str:
    return "MeanBackward1" if record.outputs[0].shape[-2:] == (1, 1) else "AdaptiveAvgPool2D"


def _largest(name: str, record: Any) -> str:
    if _primitive(record) in ("maximum", "minimum"):
        return f"{name}imum"
    return f"{name}Backward{0 if _ndim(record) else 1}"
