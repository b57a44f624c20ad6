"""The functions of the `tgraph` namespace that accept `out=`, or other names of arguments."""

from __future__ import annotations

from ..core.keywords import with_keywords
from ..core.out_argument import with_out
from . import (
    activations,
    comparison,
    creation,
    elementwise,
    gather_scatter,
    joining,
    linalg,
    movement,
    random,
    reductions,
    sorting,
)

log_softmax = with_out(activations.log_softmax)
relu = with_out(activations.relu)
sigmoid = with_out(activations.sigmoid)
softmax = with_out(activations.softmax)

abs = with_out(elementwise.abs)
acos = with_out(elementwise.acos)
add = with_out(elementwise.add)
addcdiv = with_out(elementwise.addcdiv)
addcmul = with_out(elementwise.addcmul)
asin = with_out(elementwise.asin)
atan = with_out(elementwise.atan)
atan2 = with_out(elementwise.atan2)
bitwise_and = with_out(comparison.bitwise_and)
bitwise_left_shift = with_out(comparison.bitwise_left_shift)
bitwise_not = with_out(comparison.bitwise_not)
bitwise_or = with_out(comparison.bitwise_or)
bitwise_right_shift = with_out(comparison.bitwise_right_shift)
bitwise_xor = with_out(comparison.bitwise_xor)
ceil = with_out(elementwise.ceil)
clamp = with_out(elementwise.clamp)
cos = with_out(elementwise.cos)
cosh = with_out(elementwise.cosh)
div = with_out(elementwise.div)
eq = with_out(comparison.eq)
erf = with_out(elementwise.erf)
exp = with_out(elementwise.exp)
exp2 = with_out(elementwise.exp2)
expm1 = with_out(elementwise.expm1)
floor = with_out(elementwise.floor)
floor_divide = with_out(elementwise.floor_divide)
fmod = with_out(elementwise.fmod)
frac = with_out(elementwise.frac)
ge = with_out(comparison.ge)
gt = with_out(comparison.gt)
isclose = with_out(reductions.isclose)
isfinite = with_out(comparison.isfinite)
isinf = with_out(comparison.isinf)
isnan = with_out(comparison.isnan)
le = with_out(comparison.le)
lerp = with_out(elementwise.lerp)
log = with_out(elementwise.log)
log10 = with_out(elementwise.log10)
log1p = with_out(elementwise.log1p)
log2 = with_out(elementwise.log2)
logical_and = with_out(comparison.logical_and)
logical_not = with_out(comparison.logical_not)
logical_or = with_out(comparison.logical_or)
logical_xor = with_out(comparison.logical_xor)
lt = with_out(comparison.lt)
maximum = with_out(elementwise.maximum)
minimum = with_out(elementwise.minimum)
mul = with_out(elementwise.mul)
nan_to_num = with_out(elementwise.nan_to_num)
ne = with_out(comparison.ne)
neg = with_out(elementwise.neg)
positive = with_out(elementwise.positive)
pow = with_out(elementwise.pow)
reciprocal = with_out(elementwise.reciprocal)
remainder = with_out(elementwise.remainder)
round = with_out(elementwise.round)
rsqrt = with_out(elementwise.rsqrt)
rsub = with_out(elementwise.rsub)
sign = with_out(elementwise.sign)
sin = with_out(elementwise.sin)
sinh = with_out(elementwise.sinh)
sqrt = with_out(elementwise.sqrt)
square = with_out(elementwise.square)
sub = with_out(elementwise.sub)
tan = with_out(elementwise.tan)
tanh = with_out(elementwise.tanh)
trunc = with_out(elementwise.trunc)
where = with_out(elementwise.where)

addmm = with_out(linalg.addmm, "any")
addmv = with_out(linalg.addmv, "any")
baddbmm = with_out(linalg.baddbmm, "any")
bmm = with_out(linalg.bmm, "any")
dot = with_out(linalg.dot, "any")
matmul = with_out(linalg.matmul, "any")
mm = with_out(linalg.mm, "any")
mv = with_out(linalg.mv, "any")
outer = with_out(linalg.outer, "any")

cat = with_out(joining.cat, "none")
stack = with_out(joining.stack, "none")

# The other names of arguments (see keywords.py).
all = with_keywords(reductions.all)
amax = with_keywords(reductions.amax)
amin = with_keywords(reductions.amin)
aminmax = with_keywords(reductions.aminmax)
any = with_keywords(reductions.any)
argmax = with_keywords(reductions.argmax)
argmin = with_keywords(reductions.argmin)
count_nonzero = with_keywords(reductions.count_nonzero)
logsumexp = with_keywords(reductions.logsumexp)
max = with_keywords(reductions.max)
mean = with_keywords(reductions.mean)
min = with_keywords(reductions.min)
norm = with_keywords(reductions.norm)
prod = with_keywords(reductions.prod)
std = with_keywords(reductions.std)
std_mean = with_keywords(reductions.std_mean)
sum = with_keywords(reductions.sum)
var = with_keywords(reductions.var)
var_mean = with_keywords(reductions.var_mean)
flip = with_keywords(joining.flip)
roll = with_keywords(joining.roll)
tile = with_keywords(joining.tile)
chunk = with_keywords(movement.chunk)
narrow = with_keywords(movement.narrow)
permute = with_keywords(movement.permute)
reshape = with_keywords(movement.reshape)
select = with_keywords(movement.select)
split = with_keywords(movement.split)
squeeze = with_keywords(movement.squeeze)
tensor_split = with_keywords(movement.tensor_split)
transpose = with_keywords(movement.transpose)
unbind = with_keywords(movement.unbind)
unsqueeze = with_keywords(movement.unsqueeze)
gather = with_keywords(gather_scatter.gather)
index_add = with_keywords(gather_scatter.index_add)
index_copy = with_keywords(gather_scatter.index_copy)
index_fill = with_keywords(gather_scatter.index_fill)
index_select = with_keywords(gather_scatter.index_select)
repeat_interleave = with_keywords(gather_scatter.repeat_interleave)
scatter = with_keywords(gather_scatter.scatter)
scatter_add = with_keywords(gather_scatter.scatter_add)
take_along_dim = with_keywords(gather_scatter.take_along_dim)
argsort = with_keywords(sorting.argsort)
cumsum = with_keywords(sorting.cumsum)
kthvalue = with_keywords(sorting.kthvalue)
median = with_keywords(sorting.median)
searchsorted = with_keywords(sorting.searchsorted)
sort = with_keywords(sorting.sort)
topk = with_keywords(sorting.topk)
unique = with_keywords(sorting.unique)
arange = with_keywords(creation.arange)
empty = with_keywords(creation.empty)
empty_like = with_keywords(creation.empty_like)
eye = with_keywords(creation.eye)
full = with_keywords(creation.full)
full_like = with_keywords(creation.full_like)
linspace = with_keywords(creation.linspace)
logspace = with_keywords(creation.logspace)
ones = with_keywords(creation.ones)
scalar_tensor = with_keywords(creation.scalar_tensor)
ones_like = with_keywords(creation.ones_like)
zeros = with_keywords(creation.zeros)
zeros_like = with_keywords(creation.zeros_like)
rand = with_keywords(random.rand)
rand_like = with_keywords(random.rand_like)
randint = with_keywords(random.randint)
randint_like = with_keywords(random.randint_like)
randn = with_keywords(random.randn)
randn_like = with_keywords(random.randn_like)
randperm = with_keywords(random.randperm)

# Other names of the same functions.
absolute = abs
arccos = acos
arcsin = asin
arctan = atan
arctan2 = atan2
clip = clamp
concat = cat
concatenate = cat
divide = div
greater = gt
greater_equal = ge
less = lt
less_equal = le
multiply = mul
negative = neg
not_equal = ne
subtract = sub
true_divide = div
swapaxes = swapdims = transpose
