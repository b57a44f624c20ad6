# ruff: noqa: E402, F401 - the names are here to be imported, once the floors below are found
"""Tensors recorded in a graph: PyTorch-style code, differentiated and compiled.

>>> import tgraph as tg
>>> x = tg.tensor([1.0, 2.0], requires_grad=True)
>>> (x**2).sum().backward()
>>> x.grad
tensor([2., 4.])
"""

import importlib as _importlib
import math as _math
import os as _os
import types as _types
from builtins import bool as _bool
from builtins import int as _int
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

_folder = _os.path.dirname(_os.path.abspath(__file__))
if not _os.path.isdir(_os.path.join(_folder, "compiler")):
    # In the repository, where the lower floors lie beside this folder.
    __path__.append(_os.path.dirname(_folder))

from .runtime import garbage as _garbage

_importing = _garbage.no_collection()
_importing.__enter__()  # until the end of this file: a tenth of the time

from . import autograd, tracing
from .autograd import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    no_grad,
    set_grad_enabled,
)
from .autograd.anomaly_mode import (
    is_anomaly_check_nan_enabled,
    is_anomaly_enabled,
    set_anomaly_enabled,
)
from .autograd.transforms import grad, value_and_grad, vjp
from .compiled import operation_plans as _operation_plans  # gives eager mode its kernels
from .compiled.compile import compile
from .compiled.named_size import Dim
from .compiler.ir.promotion import can_cast, promote_types
from .core import pytree
from .core.determinism import (
    are_deterministic_algorithms_enabled,
    get_deterministic_debug_mode,
    is_deterministic_algorithms_warn_only_enabled,
    set_deterministic_debug_mode,
    use_deterministic_algorithms,
)
from .core.grad_mode import is_inference_mode_enabled
from .core.layouts import Layout as layout
from .core.layouts import sparse_coo, sparse_csc, sparse_csr, strided
from .core.memory_format import MemoryFormat as memory_format
from .core.memory_format import (
    channels_last,
    channels_last_3d,
    contiguous_format,
    preserve_format,
)
from .core.printing import set_printoptions
from .core.tensor import Size, Tensor
from .core.trace_state import RecompileWarning, TraceError
from .core.views import detach
from .drawing.draw import draw
from .interop import array_protocols as _array_protocols  # gives Tensor NumPy's protocols
from .interop.dlpack import from_dlpack
from .ops import methods as _methods  # gives Tensor its operations
from .ops.functions import FUNCTIONS as _FUNCTIONS
from .ops.fused import fused
from .ops.generator import Generator, default_generator
from .ops.storage import UntypedStorage
from .ops.typed import (
    BFloat16Storage,
    BFloat16Tensor,
    BoolStorage,
    BoolTensor,
    ByteStorage,
    ByteTensor,
    CharStorage,
    CharTensor,
    ComplexDoubleStorage,
    ComplexFloatStorage,
    DoubleStorage,
    DoubleTensor,
    FloatStorage,
    FloatTensor,
    HalfStorage,
    HalfTensor,
    IntStorage,
    IntTensor,
    LongStorage,
    LongTensor,
    ShortStorage,
    ShortTensor,
    TypedStorage,
)
from .runtime import interrupts as _interrupts
from .runtime.device import Device as device
from .runtime.device import default_device as get_default_device
from .runtime.device import set_default_device
from .runtime.dtypes import (
    DType as dtype,
)
from .runtime.dtypes import (
    bfloat16,
    complex64,
    complex128,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)
from .runtime.dtypes import (
    bool_ as bool,
)
from .runtime.parallel import get_num_threads, set_num_threads
from .tracing import host, trace
from .tracing.recording.world import TraceWarning

if _TYPE_CHECKING:
    from . import (
        accelerator,
        amp,
        array_api,
        backends,
        compat,
        cuda,
        distributed,
        distributions,
        fft,
        func,
        functional,
        fx,
        hub,
        jit,
        linalg,
        masked,
        multiprocessing,
        nn,
        onnx,
        optim,
        overrides,
        profiler,
        quasirandom,
        random,
        return_types,
        serialization,
        signal,
        sparse,
        special,
        testing,
        types,
        utils,
        version,
        vision,
    )
    from .amp.autocast_mode import (
        autocast,
        get_autocast_cpu_dtype,
        get_autocast_dtype,
        get_autocast_gpu_dtype,
        is_autocast_cache_enabled,
        is_autocast_cpu_enabled,
        is_autocast_enabled,
    )
    from .autograd.custom import custom_jvp, custom_vjp, stop_gradient
    from .core.dtype_info import finfo, iinfo
    from .core.settings import (
        get_num_interop_threads,
        is_vulkan_available,
        is_warn_always_enabled,
        set_flush_denormal,
        set_num_interop_threads,
        set_warn_always,
    )
    from .core.symbolic import (
        sym_float,
        sym_int,
        sym_ite,
        sym_max,
        sym_min,
        sym_not,
        sym_sqrt,
        sym_sum,
    )
    from .graphs.gradients import gradients
    from .graphs.graph import Graph
    from .graphs.lookup import identity
    from .graphs.operation import Operation
    from .graphs.placeholder import placeholder, placeholder_with_default
    from .graphs.scopes import assign, control_dependencies, group, name_scope, variable
    from .graphs.session import Session, function_of
    from .nn.functional import (
        adaptive_avg_pool1d,
        avg_pool1d,
        bilinear,
        celu,
        celu_,
        channel_shuffle,
        conv1d,
        conv2d,
        conv3d,
        conv_transpose1d,
        conv_transpose2d,
        conv_transpose3d,
        cosine_similarity,
        hardshrink,
        max_pool1d,
        max_pool1d_with_indices,
        max_pool2d,
        max_pool3d,
        native_channel_shuffle,
        pairwise_distance,
        pixel_shuffle,
        pixel_unshuffle,
        prelu,
        rms_norm,
        rrelu_,
        selu,
        selu_,
        threshold,
        threshold_,
    )
    from .ops.buffers_and_files import (
        from_file,
        frombuffer,
    )
    from .ops.deprecated import (
        range,
    )
    from .ops.histograms import (
        histogram,
        histogramdd,
    )
    from .ops.network_forms import (
        adaptive_max_pool1d,
        affine_grid_generator,
        alpha_dropout,
        alpha_dropout_,
        batch_norm,
        binary_cross_entropy_with_logits,
        constant_pad_nd,
        conv_tbc,
        convolution,
        cosine_embedding_loss,
        ctc_loss,
        dropout,
        dropout_,
        embedding,
        embedding_renorm_,
        feature_alpha_dropout,
        feature_alpha_dropout_,
        feature_dropout,
        feature_dropout_,
        grid_sampler,
        grid_sampler_2d,
        grid_sampler_3d,
        group_norm,
        hinge_embedding_loss,
        instance_norm,
        kl_div,
        layer_norm,
        margin_ranking_loss,
        native_batch_norm,
        native_dropout,
        native_group_norm,
        native_layer_norm,
        poisson_nll_loss,
        rrelu,
        triplet_margin_loss,
    )
    from .ops.recurrent_forms import (
        gru,
        gru_cell,
        lstm,
        lstm_cell,
        rnn_relu,
        rnn_relu_cell,
        rnn_tanh,
        rnn_tanh_cell,
    )
    from .ops.segments import (
        segment_reduce,
    )
    from .ops.sparse_creation import (
        sparse_compressed_tensor,
        sparse_coo_tensor,
        sparse_csc_tensor,
        sparse_csr_tensor,
    )
    from .ops.view_copies import (
        alias_copy,
        as_strided_copy,
        detach_copy,
        diagonal_copy,
        expand_copy,
        narrow_copy,
        permute_copy,
        select_copy,
        slice_copy,
        slice_inverse,
        split_copy,
        split_with_sizes_copy,
        squeeze_copy,
        t_copy,
        transpose_copy,
        unbind_copy,
        unfold_copy,
        unsqueeze_copy,
        view_as_complex_copy,
        view_as_real_copy,
        view_copy,
    )
    from .runtime.cuda.precision import get_precision as get_float32_matmul_precision
    from .runtime.cuda.precision import set_precision as set_float32_matmul_precision
    from .serialization.files import load, save
    from .transforms.batching import vmap
    from .transforms.checkpoint import checkpoint, checkpoint_name, checkpoint_policies
    from .transforms.forward import jvp, linearize
    from .transforms.functional import functional_call
    from .transforms.jacobians import hessian, hvp, jacfwd, jacrev

# What is imported when it is first asked for: packages that many programs do without, and functions
# of large modules.
_LATE = {
    "return_types": (".return_types", None),
    "quasirandom": (".quasirandom", None),
    "overrides": (".overrides", None),
    "functional": (".functional", None),
    "accelerator": (".accelerator", None),
    "array_api": (".array_api", None),
    "backends": (".backends", None),
    "distributed": (".distributed", None),
    "distributions": (".distributions", None),
    "fx": (".fx", None),
    "jit": (".jit", None),
    "multiprocessing": (".multiprocessing", None),
    "random": (".random", None),
    "special": (".special", None),
    "testing": (".testing", None),
    "compat": (".compat", None),
    "amp": (".amp", None),
    "cuda": (".cuda", None),
    "fft": (".fft", None),
    "func": (".func", None),
    "hub": (".hub", None),
    "linalg": (".linalg", None),
    "masked": (".masked", None),
    "nn": (".nn", None),
    "onnx": (".onnx", None),
    "profiler": (".profiler", None),
    "signal": (".signal", None),
    "sparse": (".sparse", None),
    "sparse_compressed_tensor": (".ops.sparse_creation", "sparse_compressed_tensor"),
    "sparse_coo_tensor": (".ops.sparse_creation", "sparse_coo_tensor"),
    "sparse_csc_tensor": (".ops.sparse_creation", "sparse_csc_tensor"),
    "sparse_csr_tensor": (".ops.sparse_creation", "sparse_csr_tensor"),
    "types": (".types", None),
    "version": (".version", None),
    "optim": (".optim", None),
    "utils": (".utils", None),
    "vision": (".vision", None),
    "autocast": (".amp.autocast_mode", "autocast"),
    "get_autocast_dtype": (".amp.autocast_mode", "get_autocast_dtype"),
    "is_autocast_cache_enabled": (".amp.autocast_mode", "is_autocast_cache_enabled"),
    "is_autocast_enabled": (".amp.autocast_mode", "is_autocast_enabled"),
    "serialization": (".serialization", None),
    "finfo": (".core.dtype_info", "finfo"),
    "iinfo": (".core.dtype_info", "iinfo"),
    "Graph": (".graphs.graph", "Graph"),
    "Operation": (".graphs.operation", "Operation"),
    "Session": (".graphs.session", "Session"),
    "assign": (".graphs.scopes", "assign"),
    "control_dependencies": (".graphs.scopes", "control_dependencies"),
    "function_of": (".graphs.session", "function_of"),
    "gradients": (".graphs.gradients", "gradients"),
    "group": (".graphs.scopes", "group"),
    "identity": (".graphs.lookup", "identity"),
    "name_scope": (".graphs.scopes", "name_scope"),
    "variable": (".graphs.scopes", "variable"),
    "placeholder": (".graphs.placeholder", "placeholder"),
    "placeholder_with_default": (".graphs.placeholder", "placeholder_with_default"),
    "get_float32_matmul_precision": (".runtime.cuda.precision", "get_precision"),
    "set_float32_matmul_precision": (".runtime.cuda.precision", "set_precision"),
    "load": (".serialization.files", "load"),
    "save": (".serialization.files", "save"),
    "functional_call": (".transforms.functional", "functional_call"),
    "checkpoint": (".transforms.checkpoint", "checkpoint"),
    "checkpoint_name": (".transforms.checkpoint", "checkpoint_name"),
    "checkpoint_policies": (".transforms.checkpoint", "checkpoint_policies"),
    "custom_jvp": (".autograd.custom", "custom_jvp"),
    "custom_vjp": (".autograd.custom", "custom_vjp"),
    "stop_gradient": (".autograd.custom", "stop_gradient"),
    "vmap": (".transforms.batching", "vmap"),
    "jvp": (".transforms.forward", "jvp"),
    "linearize": (".transforms.forward", "linearize"),
    "hessian": (".transforms.jacobians", "hessian"),
    "hvp": (".transforms.jacobians", "hvp"),
    "jacfwd": (".transforms.jacobians", "jacfwd"),
    "jacrev": (".transforms.jacobians", "jacrev"),
}
# What `torch` itself has of functions of networks, copies of views, settings.
_LATE_NAMES = {
    ".amp.autocast_mode": """
        get_autocast_cpu_dtype get_autocast_gpu_dtype is_autocast_cpu_enabled""",
    ".core.settings": """
        get_num_interop_threads is_vulkan_available is_warn_always_enabled set_flush_denormal
        set_num_interop_threads set_warn_always""",
    ".core.symbolic": """
        sym_float sym_int sym_ite sym_max sym_min sym_not sym_sqrt sym_sum""",
    ".ops.buffers_and_files": """
        from_file frombuffer""",
    ".ops.deprecated": """
        range""",
    ".ops.histograms": """
        histogram histogramdd""",
    ".ops.segments": """
        segment_reduce""",
    ".ops.network_forms": """
        adaptive_max_pool1d affine_grid_generator alpha_dropout alpha_dropout_ batch_norm
        binary_cross_entropy_with_logits constant_pad_nd conv_tbc convolution
        cosine_embedding_loss ctc_loss dropout dropout_ embedding embedding_renorm_
        feature_alpha_dropout feature_alpha_dropout_ feature_dropout feature_dropout_
        grid_sampler grid_sampler_2d grid_sampler_3d group_norm hinge_embedding_loss
        instance_norm kl_div layer_norm margin_ranking_loss native_batch_norm native_dropout
        native_group_norm native_layer_norm poisson_nll_loss rrelu triplet_margin_loss""",
    ".nn.functional": """
        adaptive_avg_pool1d avg_pool1d bilinear celu celu_ channel_shuffle conv1d conv2d conv3d
        conv_transpose1d conv_transpose2d conv_transpose3d cosine_similarity hardshrink
        max_pool1d max_pool1d_with_indices max_pool2d max_pool3d native_channel_shuffle
        pairwise_distance pixel_shuffle pixel_unshuffle prelu rms_norm rrelu_ selu selu_
        threshold threshold_""",
    ".ops.recurrent_forms": """
        gru gru_cell lstm lstm_cell rnn_relu rnn_relu_cell rnn_tanh rnn_tanh_cell""",
    ".ops.view_copies": """
        alias_copy as_strided_copy detach_copy diagonal_copy expand_copy narrow_copy
        permute_copy select_copy slice_copy slice_inverse split_copy split_with_sizes_copy
        squeeze_copy t_copy transpose_copy unbind_copy unfold_copy unsqueeze_copy
        view_as_complex_copy view_as_real_copy view_copy""",
}  # fmt: skip
for _place, _names in _LATE_NAMES.items():
    _LATE.update({name: (_place, name) for name in _names.split()})
_NAMESPACES = (
    "return_types",
    "quasirandom",
    "overrides",
    "functional",
    "accelerator",
    "amp",
    "array_api",
    "autograd",
    "backends",
    "compat",
    "cuda",
    "distributed",
    "distributions",
    "fft",
    "func",
    "fx",
    "hub",
    "jit",
    "linalg",
    "masked",
    "multiprocessing",
    "nn",
    "onnx",
    "optim",
    "profiler",
    "pytree",
    "random",
    "serialization",
    "signal",
    "sparse",
    "special",
    "testing",
    "tracing",
    "types",
    "utils",
    "version",
    "vision",
)


def __getattr__(name: str) -> _Any:
    if name not in _LATE:
        absent = _importlib.import_module(".core.absent", __name__)
        raise absent.attribute_error(__name__, name, absent.WAYS_OUT.get(name))
    place, own_name = _LATE[name]
    with _interrupts.held():
        found = _importlib.import_module(place, __name__)
    globals()[name] = value = found if own_name is None else getattr(found, own_name)
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})


float = float32
double = float64
half = float16
cfloat = complex64
cdouble = complex128
long = int64
int = int32
short = int16

__version__ = "0.1.0"

pi = _math.pi
e = _math.e
inf = _math.inf
nan = _math.nan
newaxis = None
has_lapack = True
has_mkl = False
has_openmp = False
has_spectral = True
legacy_contiguous_format = contiguous_format

globals().update(_FUNCTIONS)


def _assert(condition: _Any, message: str) -> None:
    """AssertionError with a message, unless the condition holds; a tensor is asked for its value.

    In compiled code a tensor's value is not known before it runs; see `tgraph.distributions` for
    values that are checked there.
    """
    assert condition, message


def is_tensor(obj: object) -> _bool:
    """Whether `obj` is a Tensor."""
    return isinstance(obj, Tensor)


def numel(input: Tensor) -> _int:
    """The number of elements."""
    return input.numel()


def is_floating_point(input: Tensor) -> _bool:
    """Whether the elements are floats."""
    return input.is_floating_point()


if not _TYPE_CHECKING:  # who reads the text finds them above
    __all__ = sorted(
        name
        for name, value in {**globals(), **_LATE}.items()
        if not name.startswith("_")
        and (name in _NAMESPACES or not isinstance(value, _types.ModuleType))
    )

_importing.__exit__(None, None, None)
