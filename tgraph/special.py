"""Special functions by the names that they have beside PyTorch's others: `tgraph.special`.

>>> import tgraph as tg
>>> tg.special.expit(tg.tensor([0.0]))
tensor([0.5000])
"""

from .core.keywords import publish as _publish
from .core.keywords import with_keywords as _with_keywords
from .core.out_argument import with_out as _with_out
from .ops.activations import log_softmax, softmax
from .ops.activations import sigmoid as expit
from .ops.bessel_decays import (
    airy_ai,
    modified_bessel_k0,
    modified_bessel_k1,
    scaled_modified_bessel_k0,
    scaled_modified_bessel_k1,
)
from .ops.bessel_functions import i0, i0e, i1, i1e
from .ops.bessel_functions import i0 as modified_bessel_i0
from .ops.bessel_functions import i1 as modified_bessel_i1
from .ops.bessel_waves import bessel_j0, bessel_j1, bessel_y0, bessel_y1, spherical_bessel_j0
from .ops.elementwise import erf, exp2, expm1, log1p, round
from .ops.error_functions import entr, erfc, erfcx, erfinv, log_ndtr, ndtr, ndtri, xlog1py
from .ops.incomplete_gamma import igamma as gammainc
from .ops.incomplete_gamma import igammac as gammaincc
from .ops.mathematics import logit, sinc
from .ops.orthogonal_polynomials import (
    chebyshev_polynomial_t,
    chebyshev_polynomial_u,
    chebyshev_polynomial_v,
    chebyshev_polynomial_w,
    hermite_polynomial_h,
    hermite_polynomial_he,
    laguerre_polynomial_l,
    legendre_polynomial_p,
    shifted_chebyshev_polynomial_t,
    shifted_chebyshev_polynomial_u,
    shifted_chebyshev_polynomial_v,
    shifted_chebyshev_polynomial_w,
)
from .ops.reductions import logsumexp
from .ops.special_functions import digamma, polygamma, xlogy
from .ops.special_functions import digamma as psi
from .ops.special_functions import lgamma as gammaln
from .ops.zeta_functions import mvlgamma as multigammaln
from .ops.zeta_functions import zeta

__all__ = [
    "airy_ai", "bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "chebyshev_polynomial_t",
    "chebyshev_polynomial_u", "chebyshev_polynomial_v", "chebyshev_polynomial_w", "digamma", "entr",
    "erf", "erfc", "erfcx", "erfinv", "exp2", "expit", "expm1", "gammainc", "gammaincc", "gammaln",
    "hermite_polynomial_h", "hermite_polynomial_he", "i0", "i0e", "i1", "i1e",
    "laguerre_polynomial_l", "legendre_polynomial_p", "log1p", "log_ndtr", "log_softmax", "logit",
    "logsumexp", "modified_bessel_i0", "modified_bessel_i1", "modified_bessel_k0",
    "modified_bessel_k1", "multigammaln", "ndtr", "ndtri", "polygamma", "psi", "round",
    "scaled_modified_bessel_k0", "scaled_modified_bessel_k1", "shifted_chebyshev_polynomial_t",
    "shifted_chebyshev_polynomial_u", "shifted_chebyshev_polynomial_v",
    "shifted_chebyshev_polynomial_w", "sinc", "softmax", "spherical_bessel_j0", "xlog1py", "xlogy",
    "zeta",
]  # fmt: skip

_publish(
    globals(),
    {
        _name: (_with_keywords if "softmax" in _name else _with_out)(globals()[_name])
        for _name in __all__
    },
)
