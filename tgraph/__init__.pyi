# Written by `python -m tools.make_stubs`; do not edit.
# ruff: noqa

import builtins as _builtins
from typing import Any as _Any
from . import accelerator as accelerator
from . import amp as amp
from . import array_api as array_api
from . import autograd as autograd
from . import backends as backends
from . import compat as compat
from . import cuda as cuda
from . import distributed as distributed
from . import distributions as distributions
from . import fft as fft
from . import func as func
from . import functional as functional
from . import fx as fx
from . import hub as hub
from . import jit as jit
from . import linalg as linalg
from . import masked as masked
from . import multiprocessing as multiprocessing
from . import nn as nn
from . import onnx as onnx
from . import optim as optim
from . import overrides as overrides
from . import profiler as profiler
from . import quasirandom as quasirandom
from . import random as random
from . import return_types as return_types
from . import serialization as serialization
from . import signal as signal
from . import sparse as sparse
from . import special as special
from . import testing as testing
from . import tracing as tracing
from . import types as types
from . import utils as utils
from . import version as version
from . import vision as vision
from collections.abc import Sequence as _Sequence
from tgraph.amp.autocast_mode import autocast as autocast
from tgraph.amp.autocast_mode import get_autocast_cpu_dtype as get_autocast_cpu_dtype
from tgraph.amp.autocast_mode import get_autocast_dtype as get_autocast_dtype
from tgraph.amp.autocast_mode import get_autocast_gpu_dtype as get_autocast_gpu_dtype
from tgraph.amp.autocast_mode import is_autocast_cache_enabled as is_autocast_cache_enabled
from tgraph.amp.autocast_mode import is_autocast_cpu_enabled as is_autocast_cpu_enabled
from tgraph.amp.autocast_mode import is_autocast_enabled as is_autocast_enabled
from tgraph.autograd import enable_grad as enable_grad
from tgraph.autograd import inference_mode as inference_mode
from tgraph.autograd import is_grad_enabled as is_grad_enabled
from tgraph.autograd import no_grad as no_grad
from tgraph.autograd import set_grad_enabled as set_grad_enabled
from tgraph.autograd.anomaly_mode import (
    is_anomaly_check_nan_enabled as is_anomaly_check_nan_enabled,
)
from tgraph.autograd.anomaly_mode import is_anomaly_enabled as is_anomaly_enabled
from tgraph.autograd.anomaly_mode import set_anomaly_enabled as set_anomaly_enabled
from tgraph.autograd.custom import custom_jvp as custom_jvp
from tgraph.autograd.custom import custom_vjp as custom_vjp
from tgraph.autograd.custom import stop_gradient as stop_gradient
from tgraph.autograd.transforms import grad as grad
from tgraph.autograd.transforms import value_and_grad as value_and_grad
from tgraph.autograd.transforms import vjp as vjp
from tgraph.compiled.compile import compile as compile
from tgraph.compiled.named_size import Dim as Dim
from tgraph.compiler.ir.promotion import can_cast as can_cast
from tgraph.compiler.ir.promotion import promote_types as promote_types
from tgraph.core import pytree as pytree
from tgraph.core import return_types as _return_types
from tgraph.core.determinism import (
    are_deterministic_algorithms_enabled as are_deterministic_algorithms_enabled,
)
from tgraph.core.determinism import get_deterministic_debug_mode as get_deterministic_debug_mode
from tgraph.core.determinism import (
    is_deterministic_algorithms_warn_only_enabled as is_deterministic_algorithms_warn_only_enabled,
)
from tgraph.core.determinism import set_deterministic_debug_mode as set_deterministic_debug_mode
from tgraph.core.determinism import use_deterministic_algorithms as use_deterministic_algorithms
from tgraph.core.devices import DeviceLike as _DeviceLike
from tgraph.core.dtype_info import finfo as finfo
from tgraph.core.dtype_info import iinfo as iinfo
from tgraph.core.grad_mode import is_inference_mode_enabled as is_inference_mode_enabled
from tgraph.core.layouts import Layout as _Layout
from tgraph.core.layouts import sparse_coo as sparse_coo
from tgraph.core.layouts import sparse_csc as sparse_csc
from tgraph.core.layouts import sparse_csr as sparse_csr
from tgraph.core.layouts import strided as strided
from tgraph.core.memory_format import MemoryFormat as _MemoryFormat
from tgraph.core.memory_format import channels_last as channels_last
from tgraph.core.memory_format import channels_last_3d as channels_last_3d
from tgraph.core.memory_format import contiguous_format as contiguous_format
from tgraph.core.memory_format import preserve_format as preserve_format
from tgraph.core.operands import Operand as _Operand
from tgraph.core.operands import Scalar as _Scalar
from tgraph.core.printing import set_printoptions as set_printoptions
from tgraph.core.return_types import frexp as _MantissaAndExponent
from tgraph.core.return_types import geqrf as _Reflections
from tgraph.core.return_types import svd as _SVDOf
from tgraph.core.return_types import triangular_solve as _TriangularSolve
from tgraph.core.settings import get_num_interop_threads as get_num_interop_threads
from tgraph.core.settings import is_vulkan_available as is_vulkan_available
from tgraph.core.settings import is_warn_always_enabled as is_warn_always_enabled
from tgraph.core.settings import set_flush_denormal as set_flush_denormal
from tgraph.core.settings import set_num_interop_threads as set_num_interop_threads
from tgraph.core.settings import set_warn_always as set_warn_always
from tgraph.core.symbolic import sym_float as sym_float
from tgraph.core.symbolic import sym_int as sym_int
from tgraph.core.symbolic import sym_ite as sym_ite
from tgraph.core.symbolic import sym_max as sym_max
from tgraph.core.symbolic import sym_min as sym_min
from tgraph.core.symbolic import sym_not as sym_not
from tgraph.core.symbolic import sym_sqrt as sym_sqrt
from tgraph.core.symbolic import sym_sum as sym_sum
from tgraph.core.tensor import Size as Size
from tgraph.core.tensor import Size as _Size
from tgraph.core.tensor import Tensor as Tensor
from tgraph.core.tensor import Tensor as _Tensor
from tgraph.core.trace_state import RecompileWarning as RecompileWarning
from tgraph.core.trace_state import TraceError as TraceError
from tgraph.core.views import detach as detach
from tgraph.drawing.draw import draw as draw
from tgraph.graphs.gradients import gradients as gradients
from tgraph.graphs.graph import Graph as Graph
from tgraph.graphs.lookup import identity as identity
from tgraph.graphs.operation import Operation as Operation
from tgraph.graphs.placeholder import placeholder as placeholder
from tgraph.graphs.placeholder import placeholder_with_default as placeholder_with_default
from tgraph.graphs.scopes import assign as assign
from tgraph.graphs.scopes import control_dependencies as control_dependencies
from tgraph.graphs.scopes import group as group
from tgraph.graphs.scopes import name_scope as name_scope
from tgraph.graphs.scopes import variable as variable
from tgraph.graphs.session import Session as Session
from tgraph.graphs.session import function_of as function_of
from tgraph.interop.dlpack import from_dlpack as from_dlpack
from tgraph.nn.functional import adaptive_avg_pool1d as adaptive_avg_pool1d
from tgraph.nn.functional import avg_pool1d as avg_pool1d
from tgraph.nn.functional import bilinear as bilinear
from tgraph.nn.functional import celu as celu
from tgraph.nn.functional import celu_ as celu_
from tgraph.nn.functional import channel_shuffle as channel_shuffle
from tgraph.nn.functional import conv1d as conv1d
from tgraph.nn.functional import conv2d as conv2d
from tgraph.nn.functional import conv3d as conv3d
from tgraph.nn.functional import conv_transpose1d as conv_transpose1d
from tgraph.nn.functional import conv_transpose2d as conv_transpose2d
from tgraph.nn.functional import conv_transpose3d as conv_transpose3d
from tgraph.nn.functional import cosine_similarity as cosine_similarity
from tgraph.nn.functional import hardshrink as hardshrink
from tgraph.nn.functional import max_pool1d as max_pool1d
from tgraph.nn.functional import max_pool1d_with_indices as max_pool1d_with_indices
from tgraph.nn.functional import max_pool2d as max_pool2d
from tgraph.nn.functional import max_pool3d as max_pool3d
from tgraph.nn.functional import native_channel_shuffle as native_channel_shuffle
from tgraph.nn.functional import pairwise_distance as pairwise_distance
from tgraph.nn.functional import pixel_shuffle as pixel_shuffle
from tgraph.nn.functional import pixel_unshuffle as pixel_unshuffle
from tgraph.nn.functional import prelu as prelu
from tgraph.nn.functional import rms_norm as rms_norm
from tgraph.nn.functional import rrelu_ as rrelu_
from tgraph.nn.functional import selu as selu
from tgraph.nn.functional import selu_ as selu_
from tgraph.nn.functional import threshold as threshold
from tgraph.nn.functional import threshold_ as threshold_
from tgraph.ops import generator as _generator
from tgraph.ops.buffers_and_files import from_file as from_file
from tgraph.ops.buffers_and_files import frombuffer as frombuffer
from tgraph.ops.control_trees import Function as _Function
from tgraph.ops.deprecated import range as range
from tgraph.ops.fused import fused as fused
from tgraph.ops.generator import Generator as Generator
from tgraph.ops.generator import Generator as _Generator
from tgraph.ops.generator import default_generator as default_generator
from tgraph.ops.histograms import histogram as histogram
from tgraph.ops.histograms import histogramdd as histogramdd
from tgraph.ops.low_rank import LowRank as _LowRank
from tgraph.ops.movement import Sizes as _Sizes
from tgraph.ops.network_forms import adaptive_max_pool1d as adaptive_max_pool1d
from tgraph.ops.network_forms import affine_grid_generator as affine_grid_generator
from tgraph.ops.network_forms import alpha_dropout as alpha_dropout
from tgraph.ops.network_forms import alpha_dropout_ as alpha_dropout_
from tgraph.ops.network_forms import batch_norm as batch_norm
from tgraph.ops.network_forms import (
    binary_cross_entropy_with_logits as binary_cross_entropy_with_logits,
)
from tgraph.ops.network_forms import constant_pad_nd as constant_pad_nd
from tgraph.ops.network_forms import conv_tbc as conv_tbc
from tgraph.ops.network_forms import convolution as convolution
from tgraph.ops.network_forms import cosine_embedding_loss as cosine_embedding_loss
from tgraph.ops.network_forms import ctc_loss as ctc_loss
from tgraph.ops.network_forms import dropout as dropout
from tgraph.ops.network_forms import dropout_ as dropout_
from tgraph.ops.network_forms import embedding as embedding
from tgraph.ops.network_forms import embedding_renorm_ as embedding_renorm_
from tgraph.ops.network_forms import feature_alpha_dropout as feature_alpha_dropout
from tgraph.ops.network_forms import feature_alpha_dropout_ as feature_alpha_dropout_
from tgraph.ops.network_forms import feature_dropout as feature_dropout
from tgraph.ops.network_forms import feature_dropout_ as feature_dropout_
from tgraph.ops.network_forms import grid_sampler as grid_sampler
from tgraph.ops.network_forms import grid_sampler_2d as grid_sampler_2d
from tgraph.ops.network_forms import grid_sampler_3d as grid_sampler_3d
from tgraph.ops.network_forms import group_norm as group_norm
from tgraph.ops.network_forms import hinge_embedding_loss as hinge_embedding_loss
from tgraph.ops.network_forms import instance_norm as instance_norm
from tgraph.ops.network_forms import kl_div as kl_div
from tgraph.ops.network_forms import layer_norm as layer_norm
from tgraph.ops.network_forms import margin_ranking_loss as margin_ranking_loss
from tgraph.ops.network_forms import native_batch_norm as native_batch_norm
from tgraph.ops.network_forms import native_dropout as native_dropout
from tgraph.ops.network_forms import native_group_norm as native_group_norm
from tgraph.ops.network_forms import native_layer_norm as native_layer_norm
from tgraph.ops.network_forms import poisson_nll_loss as poisson_nll_loss
from tgraph.ops.network_forms import rrelu as rrelu
from tgraph.ops.network_forms import triplet_margin_loss as triplet_margin_loss
from tgraph.ops.recurrent_forms import gru as gru
from tgraph.ops.recurrent_forms import gru_cell as gru_cell
from tgraph.ops.recurrent_forms import lstm as lstm
from tgraph.ops.recurrent_forms import lstm_cell as lstm_cell
from tgraph.ops.recurrent_forms import rnn_relu as rnn_relu
from tgraph.ops.recurrent_forms import rnn_relu_cell as rnn_relu_cell
from tgraph.ops.recurrent_forms import rnn_tanh as rnn_tanh
from tgraph.ops.recurrent_forms import rnn_tanh_cell as rnn_tanh_cell
from tgraph.ops.reductions import Dims as _Dims
from tgraph.ops.segments import segment_reduce as segment_reduce
from tgraph.ops.sparse_creation import sparse_compressed_tensor as sparse_compressed_tensor
from tgraph.ops.sparse_creation import sparse_coo_tensor as sparse_coo_tensor
from tgraph.ops.sparse_creation import sparse_csc_tensor as sparse_csc_tensor
from tgraph.ops.sparse_creation import sparse_csr_tensor as sparse_csr_tensor
from tgraph.ops.storage import UntypedStorage as UntypedStorage
from tgraph.ops.typed import BFloat16Storage as BFloat16Storage
from tgraph.ops.typed import BFloat16Tensor as BFloat16Tensor
from tgraph.ops.typed import BoolStorage as BoolStorage
from tgraph.ops.typed import BoolTensor as BoolTensor
from tgraph.ops.typed import ByteStorage as ByteStorage
from tgraph.ops.typed import ByteTensor as ByteTensor
from tgraph.ops.typed import CharStorage as CharStorage
from tgraph.ops.typed import CharTensor as CharTensor
from tgraph.ops.typed import ComplexDoubleStorage as ComplexDoubleStorage
from tgraph.ops.typed import ComplexFloatStorage as ComplexFloatStorage
from tgraph.ops.typed import DoubleStorage as DoubleStorage
from tgraph.ops.typed import DoubleTensor as DoubleTensor
from tgraph.ops.typed import FloatStorage as FloatStorage
from tgraph.ops.typed import FloatTensor as FloatTensor
from tgraph.ops.typed import HalfStorage as HalfStorage
from tgraph.ops.typed import HalfTensor as HalfTensor
from tgraph.ops.typed import IntStorage as IntStorage
from tgraph.ops.typed import IntTensor as IntTensor
from tgraph.ops.typed import LongStorage as LongStorage
from tgraph.ops.typed import LongTensor as LongTensor
from tgraph.ops.typed import ShortStorage as ShortStorage
from tgraph.ops.typed import ShortTensor as ShortTensor
from tgraph.ops.typed import TypedStorage as TypedStorage
from tgraph.ops.view_copies import alias_copy as alias_copy
from tgraph.ops.view_copies import as_strided_copy as as_strided_copy
from tgraph.ops.view_copies import detach_copy as detach_copy
from tgraph.ops.view_copies import diagonal_copy as diagonal_copy
from tgraph.ops.view_copies import expand_copy as expand_copy
from tgraph.ops.view_copies import narrow_copy as narrow_copy
from tgraph.ops.view_copies import permute_copy as permute_copy
from tgraph.ops.view_copies import select_copy as select_copy
from tgraph.ops.view_copies import slice_copy as slice_copy
from tgraph.ops.view_copies import slice_inverse as slice_inverse
from tgraph.ops.view_copies import split_copy as split_copy
from tgraph.ops.view_copies import split_with_sizes_copy as split_with_sizes_copy
from tgraph.ops.view_copies import squeeze_copy as squeeze_copy
from tgraph.ops.view_copies import t_copy as t_copy
from tgraph.ops.view_copies import transpose_copy as transpose_copy
from tgraph.ops.view_copies import unbind_copy as unbind_copy
from tgraph.ops.view_copies import unfold_copy as unfold_copy
from tgraph.ops.view_copies import unsqueeze_copy as unsqueeze_copy
from tgraph.ops.view_copies import view_as_complex_copy as view_as_complex_copy
from tgraph.ops.view_copies import view_as_real_copy as view_as_real_copy
from tgraph.ops.view_copies import view_copy as view_copy
from tgraph.runtime.cuda.precision import get_precision as _get_precision
from tgraph.runtime.cuda.precision import set_precision as _set_precision
from tgraph.runtime.device import Device as _Device
from tgraph.runtime.device import default_device as _default_device
from tgraph.runtime.device import set_default_device as set_default_device
from tgraph.runtime.dtypes import DType as _DType
from tgraph.runtime.dtypes import bfloat16 as bfloat16
from tgraph.runtime.dtypes import bool_ as _bool_
from tgraph.runtime.dtypes import complex128 as complex128
from tgraph.runtime.dtypes import complex64 as complex64
from tgraph.runtime.dtypes import float16 as float16
from tgraph.runtime.dtypes import float32 as float32
from tgraph.runtime.dtypes import float64 as float64
from tgraph.runtime.dtypes import int16 as int16
from tgraph.runtime.dtypes import int32 as int32
from tgraph.runtime.dtypes import int64 as int64
from tgraph.runtime.dtypes import int8 as int8
from tgraph.runtime.dtypes import uint16 as uint16
from tgraph.runtime.dtypes import uint32 as uint32
from tgraph.runtime.dtypes import uint64 as uint64
from tgraph.runtime.dtypes import uint8 as uint8
from tgraph.runtime.parallel import get_num_threads as get_num_threads
from tgraph.runtime.parallel import set_num_threads as set_num_threads
from tgraph.serialization.files import load as load
from tgraph.serialization.files import save as save
from tgraph.tracing import host as host
from tgraph.tracing import trace as trace
from tgraph.tracing.recording.world import TraceWarning as TraceWarning
from tgraph.transforms.batching import vmap as vmap
from tgraph.transforms.checkpoint import checkpoint as checkpoint
from tgraph.transforms.checkpoint import checkpoint_name as checkpoint_name
from tgraph.transforms.checkpoint import checkpoint_policies as checkpoint_policies
from tgraph.transforms.forward import jvp as jvp
from tgraph.transforms.forward import linearize as linearize
from tgraph.transforms.functional import functional_call as functional_call
from tgraph.transforms.jacobians import hessian as hessian
from tgraph.transforms.jacobians import hvp as hvp
from tgraph.transforms.jacobians import jacfwd as jacfwd
from tgraph.transforms.jacobians import jacrev as jacrev
from typing import NoReturn as _NoReturn
import numpy as _np

layout = _Layout
memory_format = _MemoryFormat
device = _Device
get_default_device = _default_device
dtype = _DType
bool = _bool_
get_float32_matmul_precision = _get_precision
set_float32_matmul_precision = _set_precision
float = float32
double = float64
half = float16
cfloat = complex64
cdouble = complex128
long = int64
int = int32
short = int16
__version__: _builtins.str
pi: _builtins.float
e: _builtins.float
inf: _builtins.float
nan: _builtins.float
newaxis: None
has_lapack: _builtins.bool
has_mkl: _builtins.bool
has_openmp: _builtins.bool
has_spectral: _builtins.bool
legacy_contiguous_format = contiguous_format

def is_tensor(obj: _builtins.object) -> _builtins.bool: ...
def numel(input: Tensor) -> _builtins.int: ...
def is_floating_point(input: Tensor) -> _builtins.bool: ...
def abs(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def absolute(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def acos(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def arccos(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def acosh(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def arccosh(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def add(
    input: _Operand, other: _Operand, *, alpha: _Scalar = 1, out: _Tensor | None = None
) -> _Tensor: ...
def addbmm(
    input: _Tensor,
    batch1: _Tensor,
    batch2: _Tensor,
    *,
    beta: _Scalar = 1,
    alpha: _Scalar = 1,
    out: _Tensor | None = None,
) -> _Tensor: ...
def addcdiv(
    input: _Tensor,
    tensor1: _Tensor,
    tensor2: _Tensor,
    *,
    value: _Scalar = 1,
    out: _Tensor | None = None,
) -> _Tensor: ...
def addcmul(
    input: _Tensor,
    tensor1: _Tensor,
    tensor2: _Tensor,
    *,
    value: _Scalar = 1,
    out: _Tensor | None = None,
) -> _Tensor: ...
def addmm(
    input: _Tensor,
    mat1: _Tensor,
    mat2: _Tensor,
    *,
    beta: _Scalar = 1,
    alpha: _Scalar = 1,
    out: _Tensor | None = None,
) -> _Tensor: ...
def addmv(
    input: _Tensor,
    mat: _Tensor,
    vec: _Tensor,
    *,
    beta: _Scalar = 1,
    alpha: _Scalar = 1,
    out: _Tensor | None = None,
) -> _Any: ...
def addr(
    input: _Tensor,
    vec1: _Tensor,
    vec2: _Tensor,
    *,
    beta: _Scalar = 1,
    alpha: _Scalar = 1,
    out: _Tensor | None = None,
) -> _Tensor: ...
def adjoint(input: _Tensor) -> _Tensor: ...
def all(
    input: _Tensor,
    dim: _Dims = None,
    keepdim: _builtins.bool = False,
    *,
    out: _Tensor | None = None,
) -> _Tensor: ...
def allclose(
    input: _Tensor,
    other: _Tensor,
    rtol: _builtins.float = 1e-05,
    atol: _builtins.float = 1e-08,
    equal_nan: _builtins.bool = False,
) -> _builtins.bool: ...
def amax(
    input: _Tensor,
    dim: _Dims = None,
    keepdim: _builtins.bool = False,
    *,
    out: _Tensor | None = None,
) -> _Tensor: ...
def amin(
    input: _Tensor,
    dim: _Dims = None,
    keepdim: _builtins.bool = False,
    *,
    out: _Tensor | None = None,
) -> _Tensor: ...
def aminmax(
    input: _Tensor,
    *,
    dim: _builtins.int | None = None,
    keepdim: _builtins.bool = False,
    out: _Tensor | None = None,
) -> _Any: ...
def angle(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def any(
    input: _Tensor,
    dim: _Dims = None,
    keepdim: _builtins.bool = False,
    *,
    out: _Tensor | None = None,
) -> _Tensor: ...
def arange(
    start: _Scalar | None = None,
    end: _Scalar | None = None,
    step: _Scalar = 1,
    *,
    dtype: _Any = None,
    device: _DeviceLike = None,
    requires_grad: _builtins.bool = False,
    out: _Tensor | None = None,
) -> _Tensor: ...
def argmax(
    input: _Tensor,
    dim: _builtins.int | None = None,
    keepdim: _builtins.bool = False,
    *,
    out: _Tensor | None = None,
) -> _Tensor: ...
def argmin(
    input: _Tensor,
    dim: _builtins.int | None = None,
    keepdim: _builtins.bool = False,
    *,
    out: _Tensor | None = None,
) -> _Tensor: ...
def argsort(
    input: _Tensor,
    dim: _builtins.int = -1,
    descending: _builtins.bool = False,
    stable: _builtins.bool = False,
    *,
    out: _Tensor | None = None,
) -> _Tensor: ...
def as_strided(
    input: _Tensor,
    size: _Sequence[_builtins.int],
    stride: _Sequence[_builtins.int],
    storage_offset: _builtins.int | None = None,
) -> _Tensor: ...
def as_strided_scatter(
    input: _Tensor,
    src: _Tensor,
    size: _Any,
    stride: _Any,
    storage_offset: _builtins.int | None = None,
) -> _Tensor: ...
def as_tensor(data: _Any, dtype: _Any = None, device: _DeviceLike = None) -> _Tensor: ...
def asarray(data: _Any, dtype: _Any = None, device: _DeviceLike = None) -> _Tensor: ...
def asin(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def arcsin(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def asinh(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def arcsinh(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def atan(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def arctan(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def atan2(input: _Operand, other: _Operand, *, out: _Tensor | None = None) -> _Tensor: ...
def arctan2(input: _Operand, other: _Operand, *, out: _Tensor | None = None) -> _Tensor: ...
def atanh(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def arctanh(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def atleast_1d(*tensors: _Any) -> _Any: ...
def atleast_2d(*tensors: _Any) -> _Any: ...
def atleast_3d(*tensors: _Any) -> _Any: ...
def baddbmm(
    input: _Tensor,
    batch1: _Tensor,
    batch2: _Tensor,
    *,
    beta: _Scalar = 1,
    alpha: _Scalar = 1,
    out: _Tensor | None = None,
) -> _Tensor: ...
def bartlett_window(
    window_length: _builtins.int, periodic: _builtins.bool = True, **options: _Any
) -> _Tensor: ...
def bernoulli(
    input: _Tensor,
    p: _builtins.float | None = None,
    *,
    generator: _Generator | None = None,
    out: _Tensor | None = None,
) -> _Tensor: ...
def bincount(
    input: _Tensor, weights: _Tensor | None = None, minlength: _builtins.int = 0
) -> _Tensor: ...
def binomial(
    count: _Tensor, prob: _Tensor, generator: _generator.Generator | None = None
) -> _Tensor: ...
def bitwise_and(input: _Operand, other: _Operand, *, out: _Tensor | None = None) -> _Tensor: ...
def bitwise_left_shift(
    input: _Operand, other: _Operand, *, out: _Tensor | None = None
) -> _Tensor: ...
def bitwise_not(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def bitwise_or(input: _Operand, other: _Operand, *, out: _Tensor | None = None) -> _Tensor: ...
def bitwise_right_shift(
    input: _Operand, other: _Operand, *, out: _Tensor | None = None
) -> _Tensor: ...
def bitwise_xor(input: _Operand, other: _Operand, *, out: _Tensor | None = None) -> _Tensor: ...
def blackman_window(
    window_length: _builtins.int, periodic: _builtins.bool = True, **options: _Any
) -> _Tensor: ...
def block_diag(*tensors: _Any) -> _Tensor: ...
def bmm(input: _Tensor, mat2: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def broadcast_shapes(*shapes: _builtins.int | _Sequence[_builtins.int]) -> _Size: ...
def broadcast_tensors(*tensors: _Tensor) -> _builtins.tuple[_Tensor, ...]: ...
def broadcast_to(input: _Tensor, size: _Sequence[_builtins.int]) -> _Tensor: ...
def bucketize(
    input: _Tensor | _Scalar,
    boundaries: _Tensor,
    *,
    out_int32: _builtins.bool = False,
    right: _builtins.bool = False,
    out: _Tensor | None = None,
) -> _Tensor: ...
def cartesian_prod(*tensors: _Any) -> _Tensor: ...
def cat(
    tensors: _Sequence[_Tensor], dim: _builtins.int = 0, *, out: _Tensor | None = None
) -> _Tensor: ...
def concat(
    tensors: _Sequence[_Tensor], dim: _builtins.int = 0, *, out: _Tensor | None = None
) -> _Tensor: ...
def concatenate(
    tensors: _Sequence[_Tensor], dim: _builtins.int = 0, *, out: _Tensor | None = None
) -> _Tensor: ...
def cdist(
    x1: _Tensor,
    x2: _Tensor,
    p: _builtins.float = 2.0,
    compute_mode: _builtins.str | None = "use_mm_for_euclid_dist_if_necessary",
) -> _Tensor: ...
def ceil(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def chain_matmul(*matrices: _Any, out: _Tensor | None = None) -> _Tensor: ...
def cholesky(
    input: _Tensor, upper: _builtins.bool = False, *, out: _Tensor | None = None
) -> _Tensor: ...
def cholesky_inverse(
    input: _Tensor, upper: _builtins.bool = False, *, out: _Tensor | None = None
) -> _Tensor: ...
def cholesky_solve(
    input: _Tensor, L: _Tensor, upper: _builtins.bool = False, *, out: _Tensor | None = None
) -> _Tensor: ...
def chunk(
    input: _Tensor, chunks: _builtins.int, dim: _builtins.int = 0
) -> _builtins.tuple[_Tensor, ...]: ...
def clamp(
    input: _Tensor,
    min: _Operand | None = None,
    max: _Operand | None = None,
    *,
    out: _Tensor | None = None,
) -> _Tensor: ...
def clip(
    input: _Tensor,
    min: _Operand | None = None,
    max: _Operand | None = None,
    *,
    out: _Tensor | None = None,
) -> _Tensor: ...
def clamp_max(input: _Tensor, max: _Operand, *, out: _Tensor | None = None) -> _Tensor: ...
def clamp_min(input: _Tensor, min: _Operand, *, out: _Tensor | None = None) -> _Tensor: ...
def clone(input: _Tensor, *, memory_format: _MemoryFormat | None = None) -> _Tensor: ...
def column_stack(tensors: _Sequence[_Tensor], *, out: _Tensor | None = None) -> _Tensor: ...
def combinations(
    input: _Tensor, r: _builtins.int = 2, with_replacement: _builtins.bool = False
) -> _Tensor: ...
def complex(real: _Tensor, imag: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def cond(pred: _Any, true_fn: _Function, false_fn: _Function, *operands: _Any) -> _Any: ...
def conj(input: _Tensor) -> _Tensor: ...
def conj_physical(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def copysign(input: _Tensor, other: _Operand, *, out: _Tensor | None = None) -> _Tensor: ...
def corrcoef(input: _Tensor) -> _Tensor: ...
def cos(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def cosh(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def count_nonzero(input: _Tensor, dim: _Dims = None) -> _Tensor: ...
def cov(
    input: _Tensor,
    *,
    correction: _builtins.int = 1,
    fweights: _Tensor | None = None,
    aweights: _Tensor | None = None,
) -> _Tensor: ...
def cross(
    input: _Tensor, other: _Tensor, dim: _builtins.int | None = None, *, out: _Tensor | None = None
) -> _Tensor: ...
def cummax(
    input: _Tensor, dim: _builtins.int, *, out: _Tensor | None = None
) -> _return_types.cummax: ...
def cummin(
    input: _Tensor, dim: _builtins.int, *, out: _Tensor | None = None
) -> _return_types.cummin: ...
def cumprod(
    input: _Tensor, dim: _builtins.int, *, dtype: _DType | None = None, out: _Tensor | None = None
) -> _Tensor: ...
def cumsum(
    input: _Tensor, dim: _builtins.int, *, dtype: _DType | None = None, out: _Tensor | None = None
) -> _Tensor: ...
def cumulative_trapezoid(
    y: _Tensor, x: _Tensor | None = None, *, dx: _Operand = 1, dim: _builtins.int = -1
) -> _Tensor: ...
def deg2rad(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def det(input: _Tensor) -> _Tensor: ...
def diag(input: _Tensor, diagonal: _builtins.int = 0, *, out: _Tensor | None = None) -> _Tensor: ...
def diag_embed(
    input: _Tensor, offset: _builtins.int = 0, dim1: _builtins.int = -2, dim2: _builtins.int = -1
) -> _Tensor: ...
def diagflat(input: _Tensor, offset: _builtins.int = 0) -> _Tensor: ...
def diagonal(
    input: _Tensor, offset: _builtins.int = 0, dim1: _builtins.int = 0, dim2: _builtins.int = 1
) -> _Tensor: ...
def diagonal_scatter(
    input: _Tensor,
    src: _Tensor,
    offset: _builtins.int = 0,
    dim1: _builtins.int = 0,
    dim2: _builtins.int = 1,
) -> _Tensor: ...
def diff(
    input: _Tensor,
    n: _builtins.int = 1,
    dim: _builtins.int = -1,
    prepend: _Tensor | None = None,
    append: _Tensor | None = None,
    *,
    out: _Tensor | None = None,
) -> _Tensor: ...
def digamma(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def dist(input: _Tensor, other: _Tensor, p: _builtins.float = 2) -> _Tensor: ...
def div(
    input: _Operand,
    other: _Operand,
    *,
    rounding_mode: _builtins.str | None = None,
    out: _Tensor | None = None,
) -> _Tensor: ...
def divide(
    input: _Operand,
    other: _Operand,
    *,
    rounding_mode: _builtins.str | None = None,
    out: _Tensor | None = None,
) -> _Tensor: ...
def true_divide(
    input: _Operand,
    other: _Operand,
    *,
    rounding_mode: _builtins.str | None = None,
    out: _Tensor | None = None,
) -> _Tensor: ...
def dot(input: _Tensor, other: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def dsplit(input: _Tensor, indices_or_sections: _Sizes) -> _builtins.tuple[_Tensor, ...]: ...
def dstack(tensors: _Sequence[_Tensor], *, out: _Tensor | None = None) -> _Tensor: ...
def eig(input: _Any, eigenvectors: _builtins.bool = False) -> _NoReturn: ...
def einsum(equation: _builtins.str, *operands: _Any) -> _Tensor: ...
def empty(
    *size: _Any,
    dtype: _Any = None,
    device: _DeviceLike = None,
    requires_grad: _builtins.bool = False,
    memory_format: _Any = None,
    out: _Tensor | None = None,
) -> _Tensor: ...
def empty_like(input: _Tensor, **options: _Any) -> _Tensor: ...
def empty_permuted(
    size: _Sequence[_builtins.int],
    physical_layout: _Sequence[_builtins.int],
    *,
    dtype: _Any = None,
    device: _DeviceLike = None,
    requires_grad: _builtins.bool = False,
) -> _Tensor: ...
def empty_strided(
    size: _Sequence[_builtins.int],
    stride: _Sequence[_builtins.int],
    *,
    dtype: _Any = None,
    device: _DeviceLike = None,
    requires_grad: _builtins.bool = False,
) -> _Tensor: ...
def eq(input: _Operand, other: _Operand, *, out: _Tensor | None = None) -> _Tensor: ...
def equal(input: _Tensor, other: _Tensor) -> _builtins.bool: ...
def erf(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def erfc(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def erfinv(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def exp(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def exp2(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def expm1(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def eye(
    n: _builtins.int,
    m: _builtins.int | None = None,
    *,
    dtype: _Any = None,
    device: _DeviceLike = None,
    requires_grad: _builtins.bool = False,
    out: _Tensor | None = None,
) -> _Tensor: ...
def fill(input: _Tensor, value: _Any) -> _Tensor: ...
def flatten(
    input: _Tensor, start_dim: _builtins.int = 0, end_dim: _builtins.int = -1
) -> _Tensor: ...
def flip(input: _Tensor, *dims: _Any) -> _Tensor: ...
def fliplr(input: _Tensor) -> _Tensor: ...
def flipud(input: _Tensor) -> _Tensor: ...
def float_power(input: _Operand, exponent: _Operand, *, out: _Tensor | None = None) -> _Tensor: ...
def floor(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def floor_divide(input: _Operand, other: _Operand, *, out: _Tensor | None = None) -> _Tensor: ...
def fmax(input: _Tensor, other: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def fmin(input: _Tensor, other: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def fmod(input: _Operand, other: _Operand, *, out: _Tensor | None = None) -> _Tensor: ...
def fori_loop(
    lower: _Any,
    upper: _Any,
    body_fun: _Function,
    init_val: _Any,
    checkpoints: _builtins.int | None = None,
) -> _Any: ...
def frac(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def frexp(input: _Tensor, *, out: _Tensor | None = None) -> _MantissaAndExponent: ...
def frobenius_norm(
    input: _Tensor, dim: _Any, keepdim: _builtins.bool = False, *, out: _Tensor | None = None
) -> _Tensor: ...
def from_numpy(ndarray: _np.ndarray[_Any, _Any]) -> _Tensor: ...
def full(
    size: _Any,
    fill_value: _Any,
    *,
    dtype: _Any = None,
    device: _DeviceLike = None,
    requires_grad: _builtins.bool = False,
    out: _Tensor | None = None,
) -> _Tensor: ...
def full_like(
    input: _Tensor,
    fill_value: _Any,
    *,
    dtype: _Any = None,
    device: _DeviceLike = None,
    requires_grad: _builtins.bool = False,
    memory_format: _Any = None,
) -> _Tensor: ...
def gather(
    input: _Tensor,
    dim: _builtins.int,
    index: _Tensor,
    *,
    sparse_grad: _builtins.bool = False,
    out: _Tensor | None = None,
) -> _Tensor: ...
def gcd(input: _Tensor, other: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def ge(input: _Operand, other: _Operand, *, out: _Tensor | None = None) -> _Tensor: ...
def greater_equal(input: _Operand, other: _Operand, *, out: _Tensor | None = None) -> _Tensor: ...
def geqrf(input: _Tensor, *, out: _Tensor | None = None) -> _Reflections: ...
def get_default_dtype() -> _DType: ...
def get_device(input: _Tensor) -> _builtins.int: ...
def get_rng_state() -> _Tensor: ...
def gradient(
    input: _Tensor,
    *,
    spacing: _Any = 1,
    dim: _builtins.int | _Sequence[_builtins.int] | None = None,
    edge_order: _builtins.int = 1,
) -> _builtins.tuple[_Tensor, ...]: ...
def gt(input: _Operand, other: _Operand, *, out: _Tensor | None = None) -> _Tensor: ...
def greater(input: _Operand, other: _Operand, *, out: _Tensor | None = None) -> _Tensor: ...
def hamming_window(
    window_length: _builtins.int,
    periodic: _builtins.bool = True,
    alpha: _builtins.float = 0.54,
    beta: _builtins.float = 0.46,
    **options: _Any,
) -> _Tensor: ...
def hann_window(
    window_length: _builtins.int, periodic: _builtins.bool = True, **options: _Any
) -> _Tensor: ...
def hash_tensor(
    input: _Tensor,
    dim: _Dims = ...,
    *,
    keepdim: _builtins.bool = False,
    mode: _builtins.int = 0,
    out: _Tensor | None = None,
) -> _Tensor: ...
def heaviside(input: _Tensor, values: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def histc(
    input: _Tensor,
    bins: _builtins.int = 100,
    min: _Scalar = 0,
    max: _Scalar = 0,
    *,
    out: _Tensor | None = None,
) -> _Tensor: ...
def hsplit(input: _Tensor, indices_or_sections: _Sizes) -> _builtins.tuple[_Tensor, ...]: ...
def hstack(tensors: _Sequence[_Tensor], *, out: _Tensor | None = None) -> _Tensor: ...
def hypot(input: _Tensor, other: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def i0(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def igamma(input: _Tensor, other: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def igammac(input: _Tensor, other: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def imag(input: _Tensor) -> _Tensor: ...
def index_add(
    input: _Tensor,
    dim: _builtins.int,
    index: _Tensor,
    source: _Tensor,
    *,
    alpha: _Scalar = 1,
    out: _Tensor | None = None,
) -> _Tensor: ...
def index_copy(
    input: _Tensor,
    dim: _builtins.int,
    index: _Tensor,
    source: _Tensor,
    *,
    out: _Tensor | None = None,
) -> _Tensor: ...
def index_fill(
    input: _Tensor, dim: _builtins.int, index: _Tensor, value: _Scalar | _Tensor
) -> _Tensor: ...
def index_put(
    input: _Tensor, indices: _Sequence[_Tensor], values: _Tensor, accumulate: _builtins.bool = False
) -> _Tensor: ...
def index_reduce(
    input: _Tensor,
    dim: _builtins.int,
    index: _Tensor,
    source: _Tensor,
    reduce: _builtins.str,
    *,
    include_self: _builtins.bool = True,
    out: _Tensor | None = None,
) -> _Tensor: ...
def index_select(
    input: _Tensor, dim: _builtins.int, index: _Tensor, *, out: _Tensor | None = None
) -> _Tensor: ...
def initial_seed() -> _builtins.int: ...
def inner(input: _Tensor, other: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def inverse(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def is_complex(input: _Tensor) -> _builtins.bool: ...
def is_conj(input: _Tensor) -> _builtins.bool: ...
def is_distributed(input: _Tensor) -> _builtins.bool: ...
def is_inference(input: _Tensor) -> _builtins.bool: ...
def is_neg(input: _Tensor) -> _builtins.bool: ...
def is_nonzero(input: _Tensor) -> _builtins.bool: ...
def is_same_size(input: _Tensor, other: _Tensor) -> _builtins.bool: ...
def is_signed(input: _Tensor) -> _builtins.bool: ...
def is_storage(obj: _Any) -> _builtins.bool: ...
def isclose(
    input: _Tensor,
    other: _Tensor,
    rtol: _builtins.float = 1e-05,
    atol: _builtins.float = 1e-08,
    equal_nan: _builtins.bool = False,
    *,
    out: _Tensor | None = None,
) -> _Tensor: ...
def isfinite(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def isin(
    elements: _Tensor | _Scalar,
    test_elements: _Tensor | _Scalar,
    *,
    assume_unique: _builtins.bool = False,
    invert: _builtins.bool = False,
    out: _Tensor | None = None,
) -> _Tensor: ...
def isinf(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def isnan(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def isneginf(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def isposinf(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def isreal(input: _Tensor) -> _Tensor: ...
def istft(
    input: _Tensor,
    n_fft: _builtins.int,
    hop_length: _builtins.int | None = None,
    win_length: _builtins.int | None = None,
    window: _Tensor | None = None,
    center: _builtins.bool = True,
    normalized: _builtins.bool = False,
    onesided: _builtins.bool | None = None,
    length: _builtins.int | None = None,
    return_complex: _builtins.bool = False,
) -> _Tensor: ...
def kaiser_window(
    window_length: _builtins.int,
    periodic: _builtins.bool = True,
    beta: _builtins.float = 12.0,
    **options: _Any,
) -> _Tensor: ...
def kron(input: _Tensor, other: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def kthvalue(
    input: _Tensor,
    k: _builtins.int,
    dim: _builtins.int = -1,
    keepdim: _builtins.bool = False,
    *,
    out: _Tensor | None = None,
) -> _return_types.kthvalue: ...
def lcm(input: _Tensor, other: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def ldexp(input: _Tensor, other: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def le(input: _Operand, other: _Operand, *, out: _Tensor | None = None) -> _Tensor: ...
def less_equal(input: _Operand, other: _Operand, *, out: _Tensor | None = None) -> _Tensor: ...
def lerp(
    input: _Tensor, end: _Tensor, weight: _Operand, *, out: _Tensor | None = None
) -> _Tensor: ...
def lgamma(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def linspace(
    start: _Tensor | _Scalar,
    end: _Tensor | _Scalar,
    steps: _builtins.int,
    *,
    dtype: _Any = None,
    device: _DeviceLike = None,
    requires_grad: _builtins.bool = False,
    out: _Tensor | None = None,
) -> _Tensor: ...
def lobpcg(
    A: _Tensor,
    k: _builtins.int | None = None,
    B: _Tensor | None = None,
    X: _Tensor | None = None,
    n: _builtins.int | None = None,
    iK: _Tensor | None = None,
    niter: _builtins.int | None = None,
    tol: _builtins.float | None = None,
    largest: _builtins.bool | None = None,
    method: _builtins.str | None = None,
    tracker: _Any = None,
    ortho_iparams: _Any = None,
    ortho_fparams: _Any = None,
    ortho_bparams: _Any = None,
) -> _builtins.tuple[_Tensor, _Tensor]: ...
def log(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def log10(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def log1p(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def log2(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def log_softmax(
    input: _Tensor, dim: _builtins.int, dtype: _DType | None = None, *, out: _Tensor | None = None
) -> _Tensor: ...
def logaddexp(input: _Tensor, other: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def logaddexp2(input: _Tensor, other: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def logcumsumexp(input: _Tensor, dim: _builtins.int, *, out: _Tensor | None = None) -> _Tensor: ...
def logdet(input: _Tensor) -> _Tensor: ...
def logical_and(input: _Tensor, other: _Operand, *, out: _Tensor | None = None) -> _Tensor: ...
def logical_not(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def logical_or(input: _Tensor, other: _Operand, *, out: _Tensor | None = None) -> _Tensor: ...
def logical_xor(input: _Tensor, other: _Operand, *, out: _Tensor | None = None) -> _Tensor: ...
def logit(
    input: _Tensor, eps: _builtins.float | None = None, *, out: _Tensor | None = None
) -> _Tensor: ...
def logspace(
    start: _Tensor | _Scalar,
    end: _Tensor | _Scalar,
    steps: _builtins.int,
    base: _builtins.float = 10.0,
    *,
    dtype: _Any = None,
    device: _DeviceLike = None,
    requires_grad: _builtins.bool = False,
    out: _Tensor | None = None,
) -> _Tensor: ...
def logsumexp(
    input: _Tensor, dim: _Dims, keepdim: _builtins.bool = False, *, out: _Tensor | None = None
) -> _Tensor: ...
def lstsq(input: _Any, A: _Any) -> _NoReturn: ...
def lt(input: _Operand, other: _Operand, *, out: _Tensor | None = None) -> _Tensor: ...
def less(input: _Operand, other: _Operand, *, out: _Tensor | None = None) -> _Tensor: ...
def lu(
    A: _Tensor,
    pivot: _builtins.bool = True,
    get_infos: _builtins.bool = False,
    *,
    out: _Tensor | None = None,
) -> _Any: ...
def lu_solve(
    input: _Tensor, LU_data: _Tensor, LU_pivots: _Tensor, *, out: _Tensor | None = None
) -> _Tensor: ...
def lu_unpack(
    LU_data: _Tensor,
    LU_pivots: _Tensor,
    unpack_data: _builtins.bool = True,
    unpack_pivots: _builtins.bool = True,
    *,
    out: _Tensor | None = None,
) -> _return_types.lu_unpack: ...
def manual_seed(seed: _builtins.int) -> _Generator: ...
def map(f: _Function, xs: _Any) -> _Any: ...
def masked_fill(input: _Tensor, mask: _Tensor, value: _Scalar | _Tensor) -> _Tensor: ...
def masked_scatter(input: _Tensor, mask: _Tensor, source: _Tensor) -> _Tensor: ...
def masked_select(input: _Tensor, mask: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def matmul(input: _Tensor, other: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def matrix_exp(input: _Tensor) -> _Tensor: ...
def matrix_power(input: _Tensor, n: _builtins.int, *, out: _Tensor | None = None) -> _Tensor: ...
def matrix_rank(input: _Any, tol: _Any = None, symmetric: _builtins.bool = False) -> _NoReturn: ...
def max(
    input: _Tensor, dim: _Any = None, keepdim: _builtins.bool = False, *, out: _Tensor | None = None
) -> _Any: ...
def maximum(input: _Operand, other: _Operand, *, out: _Tensor | None = None) -> _Tensor: ...
def mean(
    input: _Tensor,
    dim: _Dims = None,
    keepdim: _builtins.bool = False,
    *,
    dtype: _DType | None = None,
    out: _Tensor | None = None,
) -> _Tensor: ...
def median(
    input: _Tensor,
    dim: _builtins.int | None = None,
    keepdim: _builtins.bool = False,
    *,
    out: _Tensor | None = None,
) -> _Any: ...
def meshgrid(
    *tensors: _Any, indexing: _builtins.str | None = "ij"
) -> _builtins.tuple[_Tensor, ...]: ...
def min(
    input: _Tensor, dim: _Any = None, keepdim: _builtins.bool = False, *, out: _Tensor | None = None
) -> _Any: ...
def minimum(input: _Operand, other: _Operand, *, out: _Tensor | None = None) -> _Tensor: ...
def mm(input: _Tensor, mat2: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def mode(
    input: _Tensor,
    dim: _builtins.int = -1,
    keepdim: _builtins.bool = False,
    *,
    out: _Tensor | None = None,
) -> _return_types.mode: ...
def movedim(input: _Tensor, source: _Sizes, destination: _Sizes) -> _Tensor: ...
def moveaxis(input: _Tensor, source: _Sizes, destination: _Sizes) -> _Tensor: ...
def msort(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def mul(input: _Operand, other: _Operand, *, out: _Tensor | None = None) -> _Tensor: ...
def multiply(input: _Operand, other: _Operand, *, out: _Tensor | None = None) -> _Tensor: ...
def multinomial(
    input: _Tensor,
    num_samples: _builtins.int,
    replacement: _builtins.bool = False,
    *,
    generator: _Generator | None = None,
    out: _Tensor | None = None,
) -> _Tensor: ...
def mv(input: _Tensor, vec: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def mvlgamma(input: _Tensor, p: _builtins.int, *, out: _Tensor | None = None) -> _Tensor: ...
def nan_to_num(
    input: _Tensor,
    nan: _builtins.float = 0.0,
    posinf: _builtins.float | None = None,
    neginf: _builtins.float | None = None,
    *,
    out: _Tensor | None = None,
) -> _Tensor: ...
def nanmean(
    input: _Tensor,
    dim: _Dims = None,
    keepdim: _builtins.bool = False,
    *,
    dtype: _DType | None = None,
    out: _Tensor | None = None,
) -> _Tensor: ...
def nanmedian(
    input: _Tensor,
    dim: _builtins.int | None = None,
    keepdim: _builtins.bool = False,
    *,
    out: _Tensor | None = None,
) -> _Any: ...
def nanquantile(
    input: _Tensor,
    q: _builtins.float | _Tensor,
    dim: _builtins.int | None = None,
    keepdim: _builtins.bool = False,
    *,
    interpolation: _builtins.str = "linear",
    out: _Tensor | None = None,
) -> _Tensor: ...
def nansum(
    input: _Tensor,
    dim: _Dims = None,
    keepdim: _builtins.bool = False,
    *,
    dtype: _DType | None = None,
    out: _Tensor | None = None,
) -> _Tensor: ...
def narrow(input: _Tensor, dim: _builtins.int, start: _Any, length: _builtins.int) -> _Tensor: ...
def ne(input: _Operand, other: _Operand, *, out: _Tensor | None = None) -> _Tensor: ...
def not_equal(input: _Operand, other: _Operand, *, out: _Tensor | None = None) -> _Tensor: ...
def neg(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def negative(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def nextafter(input: _Tensor, other: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def nonzero(
    input: _Tensor, *, as_tuple: _builtins.bool = False, out: _Tensor | None = None
) -> _Any: ...
def argwhere(
    input: _Tensor, *, as_tuple: _builtins.bool = False, out: _Tensor | None = None
) -> _Any: ...
def nonzero_static(
    input: _Tensor, *, size: _builtins.int, fill_value: _builtins.int = -1
) -> _Tensor: ...
def norm(
    input: _Tensor,
    p: _builtins.float | _builtins.str | None = "fro",
    dim: _Dims = None,
    keepdim: _builtins.bool = False,
    dtype: _DType | None = None,
    *,
    out: _Tensor | None = None,
) -> _Tensor: ...
def norm_except_dim(v: _Tensor, pow: _builtins.int = 2, dim: _builtins.int = 0) -> _Tensor: ...
def normal(
    mean: _Tensor | _builtins.float,
    std: _Tensor | _builtins.float = 1.0,
    size: _Any = None,
    *,
    generator: _Generator | None = None,
    dtype: _Any = None,
    device: _DeviceLike = None,
    out: _Tensor | None = None,
) -> _Tensor: ...
def nuclear_norm(
    input: _Tensor, dim: _Any = None, keepdim: _builtins.bool = False, *, out: _Tensor | None = None
) -> _Tensor: ...
def one_hot(tensor: _Tensor, num_classes: _builtins.int = -1) -> _Tensor: ...
def ones(
    *size: _Any,
    dtype: _Any = None,
    device: _DeviceLike = None,
    requires_grad: _builtins.bool = False,
    out: _Tensor | None = None,
) -> _Tensor: ...
def ones_like(input: _Tensor, **options: _Any) -> _Tensor: ...
def orgqr(input: _Tensor, input2: _Tensor) -> _Tensor: ...
def ormqr(
    input: _Tensor,
    input2: _Tensor,
    input3: _Tensor,
    left: _builtins.bool = True,
    transpose: _builtins.bool = False,
    *,
    out: _Tensor | None = None,
) -> _Tensor: ...
def outer(input: _Tensor, vec2: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def ger(input: _Tensor, vec2: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def pca_lowrank(
    A: _Tensor,
    q: _builtins.int | None = None,
    center: _builtins.bool = True,
    niter: _builtins.int = 2,
) -> _LowRank: ...
def pdist(input: _Tensor, p: _builtins.float = 2.0) -> _Tensor: ...
def permute(input: _Tensor, *dims: _Any) -> _Tensor: ...
def pinverse(input: _Tensor, rcond: _builtins.float = 1e-15) -> _Tensor: ...
def poisson(input: _Tensor, generator: _generator.Generator | None = None) -> _Tensor: ...
def polar(abs: _Tensor, angle: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def polygamma(n: _builtins.int, input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def positive(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def pow(input: _Operand, exponent: _Operand, *, out: _Tensor | None = None) -> _Tensor: ...
def prod(
    input: _Tensor,
    dim: _builtins.int | None = None,
    keepdim: _builtins.bool = False,
    *,
    dtype: _DType | None = None,
    out: _Tensor | None = None,
) -> _Tensor: ...
def put(
    input: _Tensor, index: _Tensor, source: _Tensor, accumulate: _builtins.bool = False
) -> _Tensor: ...
def qr(
    input: _Tensor, some: _builtins.bool = True, *, out: _Tensor | None = None
) -> _return_types.qr: ...
def quantile(
    input: _Tensor,
    q: _builtins.float | _Tensor,
    dim: _builtins.int | None = None,
    keepdim: _builtins.bool = False,
    *,
    interpolation: _builtins.str = "linear",
    out: _Tensor | None = None,
) -> _Tensor: ...
def rad2deg(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def rand(
    *size: _Any,
    generator: _Generator | None = None,
    dtype: _Any = None,
    device: _DeviceLike = None,
    requires_grad: _builtins.bool = False,
    out: _Tensor | None = None,
) -> _Tensor: ...
def rand_like(input: _Tensor, *, dtype: _Any = None, **options: _Any) -> _Tensor: ...
def randint(
    low: _builtins.int = 0,
    high: _Any = None,
    size: _Any = None,
    *,
    generator: _Generator | None = None,
    dtype: _Any = None,
    device: _DeviceLike = None,
    requires_grad: _builtins.bool = False,
    out: _Tensor | None = None,
) -> _Tensor: ...
def randint_like(
    input: _Tensor,
    low: _builtins.int | None = None,
    high: _builtins.int | None = None,
    *,
    dtype: _Any = None,
    **options: _Any,
) -> _Tensor: ...
def randn(
    *size: _Any,
    generator: _Generator | None = None,
    dtype: _Any = None,
    device: _DeviceLike = None,
    requires_grad: _builtins.bool = False,
    out: _Tensor | None = None,
) -> _Tensor: ...
def randn_like(input: _Tensor, *, dtype: _Any = None, **options: _Any) -> _Tensor: ...
def randperm(
    n: _builtins.int,
    *,
    generator: _Generator | None = None,
    dtype: _Any = None,
    device: _DeviceLike = None,
    requires_grad: _builtins.bool = False,
    out: _Tensor | None = None,
) -> _Tensor: ...
def ravel(input: _Tensor) -> _Tensor: ...
def real(input: _Tensor) -> _Tensor: ...
def reciprocal(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def relu(
    input: _Tensor, inplace: _builtins.bool = False, *, out: _Tensor | None = None
) -> _Tensor: ...
def remainder(input: _Operand, other: _Operand, *, out: _Tensor | None = None) -> _Tensor: ...
def renorm(
    input: _Tensor,
    p: _builtins.float,
    dim: _builtins.int,
    maxnorm: _builtins.float,
    *,
    out: _Tensor | None = None,
) -> _Tensor: ...
def repeat_interleave(
    input: _Tensor | None = None,
    repeats: _builtins.int | _Tensor | None = None,
    dim: _builtins.int | None = None,
    *,
    output_size: _builtins.int | None = None,
) -> _Tensor: ...
def reshape(input: _Tensor, *shape: _Any) -> _Tensor: ...
def resolve_conj(input: _Tensor) -> _Tensor: ...
def resolve_neg(input: _Tensor) -> _Tensor: ...
def result_type(*operands: _Any) -> _DType: ...
def roll(input: _Tensor, shifts: _Sizes, dims: _Sizes | None = None) -> _Tensor: ...
def rot90(
    input: _Tensor, k: _builtins.int = 1, dims: _Sequence[_builtins.int] = ...
) -> _Tensor: ...
def round(
    input: _Tensor, *, decimals: _builtins.int = 0, out: _Tensor | None = None
) -> _Tensor: ...
def rsqrt(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def rsub(
    input: _Operand, other: _Operand, *, alpha: _Scalar = 1, out: _Tensor | None = None
) -> _Tensor: ...
def scalar_tensor(
    value: _Any,
    *,
    dtype: _Any = None,
    device: _DeviceLike = None,
    requires_grad: _builtins.bool = False,
) -> _Tensor: ...
def scan(
    f: _Function,
    init: _Any,
    xs: _Any = None,
    length: _builtins.int | None = None,
    reverse: _builtins.bool = False,
    checkpoints: _builtins.int | None = None,
) -> _builtins.tuple[_Any, _Any]: ...
def scatter(
    input: _Tensor,
    dim: _builtins.int,
    index: _Tensor,
    src: _Any,
    *,
    reduce: _builtins.str | None = None,
    out: _Tensor | None = None,
) -> _Any: ...
def scatter_add(
    input: _Tensor, dim: _builtins.int, index: _Tensor, src: _Tensor, *, out: _Tensor | None = None
) -> _Tensor: ...
def scatter_reduce(
    input: _Tensor,
    dim: _builtins.int,
    index: _Tensor,
    src: _Tensor,
    reduce: _builtins.str,
    *,
    include_self: _builtins.bool = True,
    out: _Tensor | None = None,
) -> _Tensor: ...
def searchsorted(
    sorted_sequence: _Tensor,
    values: _Tensor | _Scalar,
    *,
    out_int32: _builtins.bool = False,
    right: _builtins.bool = False,
    side: _builtins.str | None = None,
    sorter: _Tensor | None = None,
    out: _Tensor | None = None,
) -> _Tensor: ...
def seed() -> _builtins.int: ...
def select(input: _Tensor, dim: _builtins.int, index: _builtins.int) -> _Tensor: ...
def select_scatter(
    input: _Tensor, src: _Tensor, dim: _builtins.int, index: _builtins.int
) -> _Tensor: ...
def set_default_dtype(dtype: _DType) -> None: ...
def set_default_tensor_type(t: _Any) -> None: ...
def set_rng_state(new_state: _Tensor) -> None: ...
def sgn(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def sigmoid(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def sign(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def signbit(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def sin(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def sinc(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def sinh(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def slice_scatter(
    input: _Tensor,
    src: _Tensor,
    dim: _builtins.int = 0,
    start: _builtins.int | None = None,
    end: _builtins.int | None = None,
    step: _builtins.int = 1,
    *,
    out: _Tensor | None = None,
) -> _Tensor: ...
def slogdet(input: _Tensor) -> _return_types.slogdet: ...
def softmax(
    input: _Tensor, dim: _builtins.int, dtype: _DType | None = None, *, out: _Tensor | None = None
) -> _Tensor: ...
def solve(input: _Any, A: _Any) -> _NoReturn: ...
def sort(
    input: _Tensor,
    dim: _builtins.int = -1,
    descending: _builtins.bool = False,
    stable: _builtins.bool = False,
    *,
    out: _Tensor | None = None,
) -> _return_types.sort: ...
def split(
    input: _Tensor, split_size_or_sections: _Sizes, dim: _builtins.int = 0
) -> _builtins.tuple[_Tensor, ...]: ...
def split_with_sizes(
    input: _Tensor, split_sizes: _Sequence[_builtins.int], dim: _builtins.int = 0
) -> _Any: ...
def sqrt(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def square(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def squeeze(
    input: _Tensor, dim: _builtins.int | _Sequence[_builtins.int] | None = None
) -> _Tensor: ...
def stack(
    tensors: _Sequence[_Tensor], dim: _builtins.int = 0, *, out: _Tensor | None = None
) -> _Tensor: ...
def std(
    input: _Tensor,
    dim: _builtins.bool | _builtins.int | _Sequence[_builtins.int] | None = None,
    unbiased: _builtins.bool | None = None,
    keepdim: _builtins.bool = False,
    *,
    correction: _builtins.float | None = None,
    out: _Tensor | None = None,
) -> _Tensor: ...
def std_mean(
    input: _Tensor,
    dim: _builtins.bool | _builtins.int | _Sequence[_builtins.int] | None = None,
    unbiased: _builtins.bool | None = None,
    keepdim: _builtins.bool = False,
    *,
    correction: _builtins.float | None = None,
) -> _builtins.tuple[_Tensor, _Tensor]: ...
def stft(
    input: _Tensor,
    n_fft: _builtins.int,
    hop_length: _builtins.int | None = None,
    win_length: _builtins.int | None = None,
    window: _Tensor | None = None,
    center: _builtins.bool = True,
    pad_mode: _builtins.str = "reflect",
    normalized: _builtins.bool = False,
    onesided: _builtins.bool | None = None,
    return_complex: _builtins.bool | None = None,
    align_to_window: _builtins.bool | None = None,
) -> _Tensor: ...
def sub(
    input: _Operand, other: _Operand, *, alpha: _Scalar = 1, out: _Tensor | None = None
) -> _Tensor: ...
def subtract(
    input: _Operand, other: _Operand, *, alpha: _Scalar = 1, out: _Tensor | None = None
) -> _Tensor: ...
def sum(
    input: _Tensor,
    dim: _Dims = None,
    keepdim: _builtins.bool = False,
    *,
    dtype: _DType | None = None,
    out: _Tensor | None = None,
) -> _Tensor: ...
def svd(
    input: _Tensor,
    some: _builtins.bool = True,
    compute_uv: _builtins.bool = True,
    *,
    out: _Tensor | None = None,
) -> _SVDOf: ...
def svd_lowrank(
    A: _Tensor,
    q: _builtins.int | None = 6,
    niter: _builtins.int | None = 2,
    M: _Tensor | None = None,
) -> _LowRank: ...
def switch(index: _Any, branches: _Sequence[_Function], *operands: _Any) -> _Any: ...
def symeig(
    input: _Any, eigenvectors: _builtins.bool = False, upper: _builtins.bool = True
) -> _NoReturn: ...
def t(input: _Tensor) -> _Tensor: ...
def take(input: _Tensor, index: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def take_along_dim(
    input: _Tensor,
    indices: _Tensor,
    dim: _builtins.int | None = None,
    *,
    out: _Tensor | None = None,
) -> _Tensor: ...
def tan(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def tanh(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def tensor(
    data: _Any,
    *,
    dtype: _Any = None,
    device: _DeviceLike = None,
    requires_grad: _builtins.bool = False,
    pin_memory: _builtins.bool = False,
) -> _Tensor: ...
def tensor_split(
    input: _Tensor, indices_or_sections: _Sizes | _Tensor, dim: _builtins.int = 0
) -> _builtins.tuple[_Tensor, ...]: ...
def tensordot(a: _Tensor, b: _Tensor, dims: _Any = 2, *, out: _Tensor | None = None) -> _Tensor: ...
def tile(input: _Tensor, *dims: _Any) -> _Tensor: ...
def topk(
    input: _Tensor,
    k: _builtins.int,
    dim: _builtins.int = -1,
    largest: _builtins.bool = True,
    sorted: _builtins.bool = True,
    *,
    out: _Tensor | None = None,
) -> _return_types.topk: ...
def transpose(input: _Tensor, dim0: _builtins.int, dim1: _builtins.int) -> _Tensor: ...
def swapaxes(input: _Tensor, dim0: _builtins.int, dim1: _builtins.int) -> _Tensor: ...
def swapdims(input: _Tensor, dim0: _builtins.int, dim1: _builtins.int) -> _Tensor: ...
def trapezoid(
    y: _Tensor, x: _Tensor | None = None, *, dx: _Operand = 1, dim: _builtins.int = -1
) -> _Tensor: ...
def trapz(
    y: _Tensor, x: _Tensor | None = None, *, dx: _Operand = 1, dim: _builtins.int = -1
) -> _Tensor: ...
def triangular_solve(
    input: _Tensor,
    A: _Tensor,
    upper: _builtins.bool = True,
    transpose: _builtins.bool = False,
    unitriangular: _builtins.bool = False,
    *,
    out: _Tensor | None = None,
) -> _TriangularSolve: ...
def tril(input: _Tensor, diagonal: _builtins.int = 0, *, out: _Tensor | None = None) -> _Tensor: ...
def tril_indices(
    row: _builtins.int,
    col: _builtins.int,
    offset: _builtins.int = 0,
    *,
    dtype: _DType | None = None,
    device: _Any = None,
) -> _Tensor: ...
def triu(input: _Tensor, diagonal: _builtins.int = 0, *, out: _Tensor | None = None) -> _Tensor: ...
def triu_indices(
    row: _builtins.int,
    col: _builtins.int,
    offset: _builtins.int = 0,
    *,
    dtype: _DType | None = None,
    device: _Any = None,
) -> _Tensor: ...
def trunc(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def fix(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def typename(obj: _Any) -> _builtins.str: ...
def unbind(input: _Tensor, dim: _builtins.int = 0) -> _builtins.tuple[_Tensor, ...]: ...
def unflatten(input: _Tensor, dim: _builtins.int, sizes: _Sequence[_builtins.int]) -> _Tensor: ...
def unique(
    input: _Tensor,
    sorted: _builtins.bool = True,
    return_inverse: _builtins.bool = False,
    return_counts: _builtins.bool = False,
    dim: _builtins.int | None = None,
) -> _Any: ...
def unique_consecutive(
    input: _Tensor,
    return_inverse: _builtins.bool = False,
    return_counts: _builtins.bool = False,
    dim: _builtins.int | None = None,
) -> _Any: ...
def unravel_index(indices: _Tensor, shape: _Any) -> _builtins.tuple[_Tensor, ...]: ...
def unsafe_chunk(
    input: _Tensor, chunks: _builtins.int, dim: _builtins.int = 0
) -> _builtins.tuple[_Tensor, ...]: ...
def unsafe_split(
    input: _Tensor, split_size: _Sizes, dim: _builtins.int = 0
) -> _builtins.tuple[_Tensor, ...]: ...
def unsafe_split_with_sizes(
    input: _Tensor, split_sizes: _Sequence[_builtins.int], dim: _builtins.int = 0
) -> _builtins.tuple[_Tensor, ...]: ...
def unsqueeze(input: _Tensor, dim: _builtins.int) -> _Tensor: ...
def vander(
    x: _Tensor, N: _builtins.int | None = None, increasing: _builtins.bool = False
) -> _Tensor: ...
def var(
    input: _Tensor,
    dim: _builtins.bool | _builtins.int | _Sequence[_builtins.int] | None = None,
    unbiased: _builtins.bool | None = None,
    keepdim: _builtins.bool = False,
    *,
    correction: _builtins.float | None = None,
    out: _Tensor | None = None,
) -> _Tensor: ...
def var_mean(
    input: _Tensor,
    dim: _builtins.bool | _builtins.int | _Sequence[_builtins.int] | None = None,
    unbiased: _builtins.bool | None = None,
    keepdim: _builtins.bool = False,
    *,
    correction: _builtins.float | None = None,
) -> _builtins.tuple[_Tensor, _Tensor]: ...
def vdot(input: _Tensor, other: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def view_as_complex(input: _Tensor) -> _Tensor: ...
def view_as_real(input: _Tensor) -> _Tensor: ...
def vsplit(input: _Tensor, indices_or_sections: _Sizes) -> _builtins.tuple[_Tensor, ...]: ...
def vstack(tensors: _Sequence[_Tensor], *, out: _Tensor | None = None) -> _Tensor: ...
def row_stack(tensors: _Sequence[_Tensor], *, out: _Tensor | None = None) -> _Tensor: ...
def where(
    condition: _Tensor,
    input: _Operand | None = None,
    other: _Operand | None = None,
    *,
    out: _Tensor | None = None,
) -> _Any: ...
def while_loop(
    cond_fn: _Function,
    body_fn: _Function,
    carried_inputs: _Any,
    max_iterations: _builtins.int | None = None,
    checkpoints: _builtins.int | None = None,
) -> _Any: ...
def xlogy(input: _Operand, other: _Operand, *, out: _Tensor | None = None) -> _Tensor: ...
def zeros(
    *size: _Any,
    dtype: _Any = None,
    device: _DeviceLike = None,
    requires_grad: _builtins.bool = False,
    out: _Tensor | None = None,
) -> _Tensor: ...
def zeros_like(input: _Tensor, **options: _Any) -> _Tensor: ...
def abs_(input: _Tensor) -> Tensor: ...
def acos_(input: _Tensor) -> Tensor: ...
def acosh_(input: _Tensor) -> Tensor: ...
def addmv_(
    input: _Tensor, mat: _Tensor, vec: _Tensor, *, beta: _Scalar = 1, alpha: _Scalar = 1
) -> Tensor: ...
def arccos_(input: _Tensor) -> Tensor: ...
def arccosh_(input: _Tensor) -> Tensor: ...
def arcsin_(input: _Tensor) -> Tensor: ...
def arcsinh_(input: _Tensor) -> Tensor: ...
def arctan_(input: _Tensor) -> Tensor: ...
def arctanh_(input: _Tensor) -> Tensor: ...
def as_strided_(
    input: _Tensor,
    size: _Sequence[_builtins.int],
    stride: _Sequence[_builtins.int],
    storage_offset: _builtins.int | None = None,
) -> Tensor: ...
def asin_(input: _Tensor) -> Tensor: ...
def asinh_(input: _Tensor) -> Tensor: ...
def atan_(input: _Tensor) -> Tensor: ...
def atanh_(input: _Tensor) -> Tensor: ...
def ceil_(input: _Tensor) -> Tensor: ...
def clamp_(input: _Tensor, min: _Operand | None = None, max: _Operand | None = None) -> Tensor: ...
def clamp_max_(input: _Tensor, max: _Operand) -> Tensor: ...
def clamp_min_(input: _Tensor, min: _Operand) -> Tensor: ...
def clip_(input: _Tensor, min: _Operand | None = None, max: _Operand | None = None) -> Tensor: ...
def conj_physical_(input: _Tensor) -> Tensor: ...
def cos_(input: _Tensor) -> Tensor: ...
def cosh_(input: _Tensor) -> Tensor: ...
def deg2rad_(input: _Tensor) -> Tensor: ...
def detach_(self: _Tensor) -> Tensor: ...
def erf_(input: _Tensor) -> Tensor: ...
def erfc_(input: _Tensor) -> Tensor: ...
def exp_(input: _Tensor) -> Tensor: ...
def exp2_(input: _Tensor) -> Tensor: ...
def expm1_(input: _Tensor) -> Tensor: ...
def fill_(input: _Tensor, value: _Any) -> Tensor: ...
def fix_(input: _Tensor) -> Tensor: ...
def floor_(input: _Tensor) -> Tensor: ...
def frac_(input: _Tensor) -> Tensor: ...
def gcd_(input: _Tensor, other: _Tensor) -> Tensor: ...
def i0_(input: _Tensor) -> Tensor: ...
def index_put_(
    input: _Tensor, indices: _Sequence[_Tensor], values: _Tensor, accumulate: _builtins.bool = False
) -> Tensor: ...
def lcm_(input: _Tensor, other: _Tensor) -> Tensor: ...
def ldexp_(input: _Tensor, other: _Tensor) -> Tensor: ...
def log_(input: _Tensor) -> Tensor: ...
def log10_(input: _Tensor) -> Tensor: ...
def log1p_(input: _Tensor) -> Tensor: ...
def log2_(input: _Tensor) -> Tensor: ...
def logit_(input: _Tensor, eps: _builtins.float | None = None) -> Tensor: ...
def nan_to_num_(
    input: _Tensor,
    nan: _builtins.float = 0.0,
    posinf: _builtins.float | None = None,
    neginf: _builtins.float | None = None,
) -> Tensor: ...
def neg_(input: _Tensor) -> Tensor: ...
def negative_(input: _Tensor) -> Tensor: ...
def rad2deg_(input: _Tensor) -> Tensor: ...
def reciprocal_(input: _Tensor) -> Tensor: ...
def relu_(input: _Tensor, inplace: _builtins.bool = False) -> Tensor: ...
def resize_as_(self: _Tensor, tensor: _Tensor) -> Tensor: ...
def round_(input: _Tensor, *, decimals: _builtins.int = 0) -> Tensor: ...
def rsqrt_(input: _Tensor) -> Tensor: ...
def sigmoid_(input: _Tensor) -> Tensor: ...
def sin_(input: _Tensor) -> Tensor: ...
def sinc_(input: _Tensor) -> Tensor: ...
def sinh_(input: _Tensor) -> Tensor: ...
def sqrt_(input: _Tensor) -> Tensor: ...
def square_(input: _Tensor) -> Tensor: ...
def tan_(input: _Tensor) -> Tensor: ...
def tanh_(input: _Tensor) -> Tensor: ...
def trunc_(input: _Tensor) -> Tensor: ...
def xlogy_(input: _Operand, other: _Operand) -> Tensor: ...
def zero_(self: _Tensor) -> Tensor: ...
