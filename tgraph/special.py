"""Special functions by the names that they have beside PyTorch's others: `tgraph.special`.

>>> import tgraph as tg
>>> tg.special.expit(tg.tensor([0.0]))
tensor([0.5000])
"""

from .core.out_argument import with_out as _with_out
from .nn.functional import log_softmax, softmax
from .ops.activations import sigmoid as expit
from .ops.bessel_functions import i0, i0e, i1, i1e
from .ops.elementwise import erf, exp2, expm1, log1p, round
from .ops.error_functions import entr, erfc, erfcx, log_ndtr, ndtr, ndtri, xlog1py
from .ops.incomplete_gamma import igamma as gammainc
from .ops.incomplete_gamma import igammac as gammaincc
from .ops.mathematics import logit, sinc
from .ops.reductions import logsumexp
from .ops.special_functions import digamma, erfinv, polygamma, xlogy
from .ops.special_functions import digamma as psi
from .ops.special_functions import lgamma as gammaln
from .ops.zeta_functions import mvlgamma as multigammaln
from .ops.zeta_functions import zeta

__all__ = [
    "digamma", "entr", "erf", "erfc", "erfcx", "erfinv", "exp2", "expit", "expm1", "gammainc",
    "gammaincc", "gammaln", "i0", "i0e", "i1", "i1e", "log1p", "log_ndtr", "log_softmax", "logit",
    "logsumexp", "multigammaln", "ndtr", "ndtri", "polygamma", "psi", "round", "sinc", "softmax",
    "xlog1py", "xlogy", "zeta",
]  # fmt: skip

for _name in __all__:
    if "softmax" not in _name:
        globals()[_name] = _with_out(globals()[_name])
