"""Calls as PyTorch takes them: the order of arguments, what is left out, and classes of errors.

Run: python -m tools.call_table tests/compat/data/calls.txt   (needs PyTorch)

`CALLS` have arguments by position, in PyTorch's order. Each is made malformed in many ways: every
argument is replaced by others, left out, or followed by too many. A line of the table is a call,
what it gives, and one letter for each of its malformed forms: that of the class of the error, or
"=" where PyTorch takes it. Behind them stands tgraph's letter where it is another, "." elsewhere.
"""

from __future__ import annotations

import ast
import math
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import tgraph

LETTERS = {
    "TypeError": "T", "RuntimeError": "R", "IndexError": "I", "ValueError": "V",
    "NotImplementedError": "N", "AttributeError": "A", "AssertionError": "S",
    "LinAlgError": "L", "_LinAlgError": "L", "ZeroDivisionError": "Z", "OverflowError": "O",
    "KeyError": "K", "UnboundLocalError": "U",
}  # fmt: skip
OTHERS = (
    "None", "True", "1.5", "'a'", "-9", "9", "1j", "(0, 0)", "[1.5]", "x[None]", "i", "b", "q",
)  # fmt: skip
"""What stands in the place of an argument; `q` has no elements in memory."""

CALLS = [
    # reductions
    *(f"x.{name}({args})" for name in ("sum", "mean", "amax", "any", "std", "logsumexp", "nansum")
      for args in ("0", "-1, True") if (name, args) != ("std", "-1, True")),
    "x.std(0, True, True)", "x.var(1, False)", "x.max(0)", "x.max(1, True)", "x.min(-1)",
    "x.argmax(0, True)", "x.argmin(1)", "x.prod(0, True)", "x.median(1)", "x.mode(0, True)",
    "x.kthvalue(2, 1, True)", "x.topk(2, 1, False, True)", "x.sort(0, True)", "x.argsort(1)",
    "x.cumsum(0)", "x.cumprod(1)", "x.cummax(0)", "x.logcumsumexp(1)", "x.count_nonzero(0)",
    "T.aminmax(x, dim=0)", "T.norm(x, 2, 1, True)", "x.quantile(0.5, 0, True)", "x.all(0)",
    "T.var_mean(x, 0)", "T.linalg.vector_norm(x, 2, 0)", "T.linalg.matrix_norm(s, 'fro')",
    # movement
    "x.reshape(4, 3)", "x.view(2, 6)", "x.permute(1, 0)", "x.transpose(0, 1)", "x.unsqueeze(1)",
    "x.squeeze(0)", "x.flatten(0, 1)", "x.unflatten(1, (2, 2))", "x.expand(3, 4)",
    "x.expand(2, 3, 4)", "x.repeat(2, 1)", "x.flip(0)", "x.roll(1, 0)", "x.rot90(1, (0, 1))",
    "x.movedim(0, 1)", "x.narrow(1, 1, 2)", "x.select(0, 1)", "x.diagonal(1, 0, 1)",
    "x.unfold(1, 2, 1)", "x.split(2, 1)", "x.chunk(2, 1)", "x.tensor_split(2, 1)", "x.unbind(1)",
    "x.tril(1)", "x.triu(-1)", "x.diff(1, 0)", "x.tile(2, 1)", "x.swapaxes(0, 1)", "x.t()",
    "T.cat([x, x], 1)", "T.stack([x, x], 1)", "T.broadcast_to(v, (3, 4))", "T.diag_embed(v, 1)",
    "T.meshgrid(v, v, indexing='ij')", "x.repeat_interleave(2, 1)", "T.vander(v, 3)",
    "x.index_select(0, i)", "x.gather(1, g)", "x.take_along_dim(g, 1)", "x.take(i)",
    "x.masked_select(m)", "x.masked_fill(m, 2.0)", "x.scatter(1, g, x)", "x.scatter_add(1, g, x)",
    "x.index_add(0, i, x[:2])", "x.index_copy(0, i, x[:2])", "x.index_fill(0, i, 2.0)",
    "T.where(m, x, x)", "T.searchsorted(v, x)", "T.bucketize(x, v)", "T.bincount(i, None, 5)",
    "T.isin(i, i)", "T.histc(x, 4, 0, 1)",
    # elementwise
    *(f"{form}" for name in ("add", "mul", "div", "pow", "remainder", "eq", "lt", "maximum",
                             "atan2", "bitwise_and", "logical_or", "fmod", "copysign")
      for form in (f"T.{name}({'i, i' if name == 'bitwise_and' else 'x, x'})",)),
    "x.add_(x)", "x.mul_(2)", "i.add_(1)", "i.mul_(i)", "x.clamp(0, 1)", "x.clamp_(0.2)",
    "x.lerp(x, 0.5)", "x.round(decimals=1)", "T.nan_to_num(x, 1.0)", "x.copy_(x)", "x.fill_(2)",
    "T.neg(x)", "T.bitwise_not(i)", "T.isclose(x, x, 1e-3)", "T.float_power(x, 2)",
    "T.logit(x, 0.1)", "T.polygamma(1, x)", "T.sqrt(x)", "T.abs(x)", "T.ceil(x)",
    "T.heaviside(x, x)",
    # products
    "T.matmul(x, y)", "T.mm(x, y)", "T.mv(x, v)", "T.dot(v, v)", "T.bmm(x[None], y[None])",
    "T.addmm(s, x, y)", "T.baddbmm(s[None], x[None], y[None])", "T.outer(v, v)",
    "T.einsum('ij,jk->ik', x, y)", "T.tensordot(x, y, 1)", "T.kron(x, y)", "T.cdist(x, x, 1.0)",
    "T.cross(s, s.flip(0), 1)", "T.linalg.inv(s)", "T.linalg.solve(s, x)", "T.linalg.cholesky(s)",
    "T.linalg.eigvalsh(s, 'U')", "T.linalg.svdvals(x)", "T.linalg.det(s)", "T.linalg.pinv(x)",
    "T.linalg.matrix_power(s, 2)", "T.linalg.norm(x, 2)", "T.trace(s)", "T.linalg.qr(x, 'r')",
    # makers
    "T.zeros(2, 3)", "T.ones((2,))", "T.full((2,), 3.0)", "T.arange(1, 5, 2)", "T.eye(2, 3)",
    "T.linspace(0, 1, 3)", "T.tensor([1.0, 2.0])", "T.zeros_like(x)", "T.full_like(x, 2)",
    "x.new_zeros((2,))", "T.tril_indices(3, 3, 1)", "T.complex(x, x)", "T.polar(x, x)",
    "x.to(T.float32)", "x.type(T.int64)", "x.size(1)", "x.stride(0)", "v[:1].item()",
    # networks
    "F.relu(x)", "F.gelu(x, approximate='tanh')", "F.leaky_relu(x, 0.1)", "F.elu(x, 0.5)",
    "F.softplus(x, 2, 10)", "F.hardtanh(x, 0, 1)", "F.softmax(x, 1)", "F.glu(x, 1)",
    "F.threshold(x, 0.3, 0.0)", "F.linear(x, y.mT, s[0])", "F.bilinear(x, x, w)",
    "F.conv2d(z, k, s[0], 1, 1, 1, 1)", "F.conv1d(z[0], k[:, :, 0], None, 2)",
    "F.conv_transpose2d(z, k.transpose(0, 1), None, 2, 1, 1)", "F.max_pool2d(z, 2, 1, 1)",
    "F.avg_pool2d(z, 2, 2, 0, True, False)", "F.adaptive_avg_pool2d(z, (2, 3))",
    "F.unfold(z, 2, 1, 0, 2)", "F.pad(z, (1, 1), 'constant', 2.0)",
    "F.pad(z, (1, 1, 0, 1), 'reflect')",
    "F.interpolate(z, (4, 4), None, 'bilinear', False)", "F.pixel_unshuffle(z, 2)",
    "F.layer_norm(x, (4,), v, v, 1e-5)", "F.group_norm(z, 2)", "F.batch_norm(x, v, v)",
    "F.normalize(x, 2.0, 0)", "F.one_hot(i, 4)", "F.embedding(i, x)",
    "F.cosine_similarity(x, x, 0)",
    "F.mse_loss(x, x[:1].expand(3, 4), reduction='sum')", "F.l1_loss(x, x, reduction='none')",
    "F.cross_entropy(x, c, v)", "F.nll_loss(x, c, v)", "F.smooth_l1_loss(x, x, beta=0.5)",
    "F.binary_cross_entropy(x, x / 2)", "F.binary_cross_entropy_with_logits(x, x)",
    "F.kl_div(x, x, reduction='batchmean')", "F.hinge_embedding_loss(x, x)",
    "F.margin_ranking_loss(v, v, v, 0.5)", "F.triplet_margin_loss(x, x, x)",
    "F.scaled_dot_product_attention(x, x, x)", "F.dropout(x, 0.0, False)", "F.rms_norm(x, (4,))",
    "F.huber_loss(x, x, delta=0.5)", "F.prelu(x, v[:1])", "F.fold(x[None], (2, 2), 1)",
    # transforms and special functions
    "T.fft.fft(x, 4, 1, 'ortho')", "T.fft.irfft(x, 6, 0)", "T.fft.fftn(x, (2, 2), (0, 1))",
    "T.fft.fftshift(x, 1)", "T.special.xlogy(x, x)", "T.special.logsumexp(x, 1)",
    "T.special.softmax(x, 0)", "T.special.entr(x)", "T.special.multigammaln(x + 3, 2)",
]  # fmt: skip


def operands(T: Any) -> dict[str, Any]:
    x = (T.arange(12, dtype=T.float64) * 7 % 12 / 12 + 0.05).reshape(3, 4)
    z = T.arange(72, dtype=T.float64).reshape(1, 2, 6, 6) / 72
    return {
        "T": T, "F": T.nn.functional, "x": x, "y": x.clone().reshape(4, 3), "z": z,
        "v": (T.arange(4, dtype=T.float64) + 1) / 4, "i": T.tensor([2, 1]), "m": x > 0.4,
        "s": x @ x.mT + T.eye(3, dtype=T.float64), "b": T.tensor([True, False]),
        "c": T.tensor([0, 3, 1]), "g": T.tensor([[1, 2, 0, 3], [0, 1, 2, 3], [2, 2, 2, 2]]),
        "k": z.flatten()[:54].reshape(3, 2, 3, 3) - 0.2, "q": T.ones(2, device="meta"),
        "w": T.ones(2, 4, 4, dtype=T.float64),
    }  # fmt: skip


def malformed(call: str) -> Iterator[str]:
    """A call with others in the place of each argument, with fewer, and with more."""
    node = ast.parse(call, mode="eval").body
    if not isinstance(node, ast.Call):  # an operator behind the call
        return
    function, keywords = ast.unparse(node.func), [ast.unparse(each) for each in node.keywords]
    args = [ast.unparse(each) for each in node.args]

    def text(arguments: list[str], named: list[str]) -> str:
        return f"{function}({', '.join([*arguments, *named])})"

    for place in range(len(args)):
        for other in OTHERS:
            yield text([*args[:place], other, *args[place + 1 :]], keywords)
    for place, keyword in enumerate(keywords):
        for other in OTHERS:
            changed = f"{keyword.partition('=')[0]}={other}"
            yield text(args, [*keywords[:place], changed, *keywords[place + 1 :]])
    if args:
        yield text(args[:-1], keywords)
    yield text([*args, "None", "'a'", "x", "x", "x", "x", "x", "x", "x"], keywords)
    yield text(args, [*keywords, "nothing_has_this=1"])


def shown(result: Any) -> str:
    """What a call gives, in terms of neither library."""
    if isinstance(result, Exception):
        return type(result).__name__
    if isinstance(result, (tuple, list)):
        return f"({', '.join(map(shown, result))})"
    if not hasattr(result, "dtype"):
        return f"{result:.5g}" if isinstance(result, float) else str(result)
    dtype = str(result.dtype).rpartition(".")[2]
    if result.device.type == "meta":
        return f"{dtype}{list(result.shape)}"
    numbers = result.detach().flatten().tolist()
    total = sum(abs(each) * (at % 7 + 1) for at, each in enumerate(numbers))
    return f"{dtype}{list(result.shape)} {total:.5g}" if math.isfinite(total) else f"{dtype} inf"


class Library:
    """PyTorch or tgraph, and the operands of calls, made anew after a call that writes."""

    def __init__(self, library: Any) -> None:
        self.library, self.given = library, operands(library)

    def result(self, call: str) -> Any:
        """What a call gives, or the error that it raises."""
        try:
            return eval(call, self.given)
        except Exception as error:
            return error
        finally:
            if "_(" in call:
                self.given = operands(self.library)


def letters(result: Any) -> list[str]:
    """That of the class of an error and those of its bases, or "="."""
    if not isinstance(result, Exception):
        return ["="]
    return [LETTERS[each.__name__] for each in type(result).__mro__ if each.__name__ in LETTERS]


def letter(result: Any) -> str:
    return letters(result)[0]


def difference(ours: Library, forms: list[str], wanted: str) -> str:
    """The letters of malformed calls, "." where they are the wanted ones."""
    found = [ours.result(each) for each in forms]
    return "".join(
        "." if want in letters(each) else letter(each)
        for each, want in zip(found, wanted, strict=True)
    ).rstrip(".")


def main(path: str) -> None:
    import torch

    warnings.simplefilter("ignore")
    library, ours, lines = Library(torch), Library(tgraph), []
    for call in CALLS:
        forms = list(malformed(call))
        wanted = "".join(letter(library.result(each)) for each in forms)
        other = difference(ours, forms, wanted)
        lines.append(f"{call} -> {shown(library.result(call))} | {wanted} | {other}\n")
    Path(path).write_text("".join(lines))


if __name__ == "__main__":
    main(sys.argv[1])
