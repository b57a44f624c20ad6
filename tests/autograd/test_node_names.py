"""Names of nodes, as books and tutorials print them: those of PyTorch for the same expression."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tgraph as tg

EXPRESSIONS = """
    a+a; a+1; 1+a; a-a; a-1; 1-a; a*a; a*2; 2*a; a/a; a/2; 2/a; a**2; a**3; a**0.5; a**1; a**0;
    a**-1; 2**a; a**a; -a; +a; abs(a); a@a; a@v; v@v; b3@b3; b3@a; a%2; a.square(); a.exp();
    a.log(); a.log2(); a.log10(); a.log1p(); a.expm1(); a.exp2(); a.sqrt(); a.rsqrt();
    a.reciprocal(); a.sin(); a.cos(); a.tan(); v.asin(); v.acos(); a.atan(); a.sinh(); a.cosh();
    a.tanh(); a.asinh(); (a+1).acosh(); v.atanh(); a.sigmoid(); F.logsigmoid(a); a.relu();
    F.relu(a); F.relu6(a); F.leaky_relu(a); F.elu(a); F.selu(a); F.celu(a); F.gelu(a); F.silu(a);
    F.mish(a); F.softplus(a); F.softsign(a); F.hardtanh(a); F.hardsigmoid(a); F.hardswish(a);
    F.tanhshrink(a); F.softshrink(a); F.hardshrink(a); F.threshold(a,0.1,0.); F.prelu(a, v);
    F.glu(a); F.softmax(a,1); F.log_softmax(a,1); a.softmax(0); F.softmin(a,1); a.sum(); a.sum(0);
    a.sum(0,keepdim=True); a.mean(); a.mean(0); a.var(); a.var(0); a.std(); a.std(0);
    T.var_mean(a)[0]; T.std_mean(a)[0]; a.prod(); a.prod(0); a.max(); a.max(0)[0];
    a.max(0).values; a.min(); a.min(0)[0]; T.max(a,a); T.min(a,a); T.maximum(a,a); T.minimum(a,a);
    a.amax(); a.amax(0); a.amin(0); a.aminmax()[0]; a.median(); a.median(0)[0]; a.nanmedian();
    a.mode(0)[0]; a.kthvalue(2)[0]; a.topk(2)[0]; a.sort()[0]; T.msort(a); a.norm();
    a.norm(dim=0); a.norm(1); T.linalg.norm(a); T.linalg.vector_norm(a); T.linalg.matrix_norm(a);
    a.logsumexp(0); a.cumsum(0); a.cumprod(0); a.cummax(0)[0]; a.cummin(0)[0]; a.logcumsumexp(0);
    a.nansum(); a.nanmean(); a.renorm(2,0,1.); a.clamp(0.6,1.); a.clamp(min=0.6); a.clamp(max=1.);
    T.clip(a,0.6,1.); a.clamp_min(0.6); a.clamp_max(1.); a.clamp(v,v+1); a.round(); a.floor();
    a.ceil(); a.trunc(); a.frac(); a.sign(); a.lerp(a,0.5); a.addcmul(a,a); a.addcdiv(a,a);
    T.addmm(a,a,a); T.addmv(v,a,v); T.addr(a,v,v); T.baddbmm(b3,b3,b3); T.addbmm(a,b3,b3);
    a.mm(a); a.mv(v); v.dot(v); T.bmm(b3,b3); a.matmul(a); T.outer(v,v); T.ger(v,v); T.vdot(v,v);
    T.einsum('ij,jk->ik',a,a); T.tensordot(a,a,1); T.kron(a,a); T.cross(w3,w3,dim=0); a.t(); a.T;
    a.mT; a.H; a.transpose(0,1); a.permute(1,0); a.swapaxes(0,1); a.movedim(0,1); a.view(16);
    a.view(2,8); a.reshape(16); a.flatten(); a.unflatten(0,(2,2)); a.unsqueeze(0);
    a.unsqueeze(0).squeeze(0); a.expand(2,4,4); v.expand(4,4); a.expand_as(b3); a.repeat(2,2);
    a.tile(2); v.broadcast_to((3,4)); T.repeat_interleave(a,2,0); a[0]; a[0:2]; a[:,1]; a[0,1];
    a[None]; a[...]; a[idx]; a[idx,idx]; a[mask]; a[::2]; a.index_select(0,idx); a.gather(0,ind);
    a.scatter(0,ind,a); a.scatter_add(0,ind,a); a.index_add(0,idx,a[:2]);
    a.index_copy(0,idx,a[:2]); a.index_fill(0,idx,1.); a.index_put((idx,),a[:2]);
    a.masked_fill(mask,0.); a.masked_select(mask); a.masked_scatter(mask,a); a.take(idx);
    a.take_along_dim(ind,0); a.select(0,1); a.narrow(0,0,2); a.split(2)[0]; a.chunk(2)[0];
    a.unbind()[0]; T.cat([a,a]); T.stack([a,a]); T.hstack([a,a]); T.vstack([a,a]);
    T.dstack([a,a]); T.concat([a,a]); T.column_stack([a,a]); T.where(mask,a,a);
    T.where(mask,a,0.); a.tril(); a.triu(); a.diag(); v.diag(); a.diagonal(); T.diag_embed(v);
    a.trace(); a.flip(0); a.roll(1,0); a.rot90(); a.unfold(0,2,1); a.clone(); a.contiguous();
    a.t().contiguous(); a.double(); a.to(T.float64); a.half(); a.type(T.float64);
    a.to(T.complex64); a.atan2(a); T.hypot(a,a); T.logaddexp(a,a); T.logaddexp2(a,a);
    T.xlogy(a,a); a.remainder(a); a.fmod(2.); a.fmod(a); T.copysign(a,a); a.erf(); a.erfc();
    v.erfinv(); a.lgamma(); a.digamma(); T.polygamma(1,a); T.special.i0(a); a.i0();
    T.special.i1(a); T.special.expit(a); v.logit(); a.sinc(); a.deg2rad(); a.rad2deg();
    a.nan_to_num(); a.inverse(); T.linalg.inv(a); T.linalg.det(a); a.det(); a.logdet();
    a.slogdet()[1]; T.linalg.solve(a,v); T.linalg.cholesky(s); T.linalg.qr(a)[0];
    T.linalg.svd(a)[1]; T.linalg.eigh(s)[0]; T.linalg.eigvalsh(s); T.linalg.pinv(a);
    T.linalg.matrix_exp(a); T.matrix_power(a,2); T.linalg.lstsq(a,a)[0]; T.linalg.lu(a)[0];
    T.linalg.lu_factor(a)[0]; T.linalg.solve_triangular(s,a,upper=False); T.cdist(a,a);
    F.pdist(a); T.dist(a,a); F.cosine_similarity(a,a); F.pairwise_distance(a,a); F.normalize(a);
    F.linear(a,w); F.linear(a,w,v[:3]); F.linear(b3,w); F.linear(b3,w,v[:3]);
    F.bilinear(a,a,b3[:, :, :]); F.conv2d(i,k); F.conv2d(i,k,padding=1); F.conv1d(l,k1);
    F.conv_transpose2d(i,k.transpose(0,1)); F.max_pool2d(i,2); F.avg_pool2d(i,2);
    F.adaptive_avg_pool2d(i,1); F.adaptive_avg_pool2d(i,2); F.adaptive_max_pool2d(i,2);
    F.max_pool1d(l,2); F.avg_pool1d(l,2); F.lp_pool2d(i,2.,2); F.dropout(a);
    F.dropout(a,training=False); F.dropout2d(i); F.alpha_dropout(a);
    F.batch_norm(i,None,None,training=True); F.layer_norm(a,(4,)); F.layer_norm(a,(4,),v,v);
    F.group_norm(i,3); F.instance_norm(i); F.local_response_norm(i,2); F.rms_norm(a,(4,));
    F.embedding(idx,a); F.embedding_bag(idx[None],a); F.mse_loss(a,b);
    F.mse_loss(a,b,reduction='none'); F.l1_loss(a,b); F.smooth_l1_loss(a,b); F.huber_loss(a,b);
    F.cross_entropy(a,cls); F.nll_loss(a,cls); F.kl_div(a,b);
    F.binary_cross_entropy(v,v.detach()); F.binary_cross_entropy_with_logits(a,b);
    F.poisson_nll_loss(a,b); F.hinge_embedding_loss(a,b); F.margin_ranking_loss(v,v,v.detach());
    F.triplet_margin_loss(a,a,a); F.cosine_embedding_loss(a,a,v.detach());
    F.soft_margin_loss(a,b); F.multi_margin_loss(a,cls); F.multilabel_soft_margin_loss(a,b);
    F.gaussian_nll_loss(a,b,b); F.pad(a,(1,1)); F.pixel_shuffle(T.cat([i,i,i,i],1),2);
    F.pixel_unshuffle(i,2); F.unfold(i,2); F.fold(F.unfold(i,2),(8,8),2); F.grid_sample(i,g);
    F.affine_grid(th,(2,3,4,4)); F.scaled_dot_product_attention(b3,b3,b3); F.gumbel_softmax(a);
    F.one_hot(cls)*a[:,:4]; T.fft.rfft(a); T.view_as_real(c); T.view_as_complex(a.view(4,2,2));
    c.real; c.imag; c.conj(); c.angle(); c.abs(); T.complex(a,a); T.polar(a,a); c*c; c.sum();
    a.sub(a,alpha=2); a.add(a,alpha=2); T.rsub(a,a); T.rsub(a,1); a.true_divide(a);
    a.float_power(2); T.float_power(a,a); T.meshgrid(v,v,indexing='ij')[0]; T.block_diag(a,a);
    T.atleast_2d(v); T.atleast_3d(a); a.squeeze(); T.diff(a); T.gradient(a)[0];
    T.gradient(a,spacing=2.)[1]; T.gradient(a,edge_order=2)[0];
    T.gradient(v,spacing=[v.detach()])[0]; T.corrcoef(a);
    T.special.entr(a); T.special.erfcx(a); T.special.i0e(a); T.special.i1e(a);
    T.special.log_ndtr(a); T.special.ndtri(v); T.special.xlog1py(a,a); T.hsplit(a,2)[0];
    T.vsplit(a,2)[1]; T.tensor_split(a,3)[1]; T.linalg.inv_ex(a)[0]; T.linalg.eigvals(a);
    T.linalg.cholesky_ex(s)[0]; T.linalg.eig(a)[0]; T.linalg.householder_product(a,v);
    T.cholesky_solve(a,s); T.cholesky_inverse(s); T.triangular_solve(a,s)[0];
    a.index_reduce(0,idx,a[:2],'mean'); a.scatter_reduce(0,ind,a,'sum'); a.logical_not();
    a.view_as(b); a.reshape_as(b); a.new_tensor([1.])*v; a.clone().add_(1); a.clone().mul_(2);
    a.clone().zero_(); a.clone().fill_(1.); a.clone().copy_(b+a); a.clone().relu_();
    a.clone().sub_(a); a.clone().div_(a); a.clone().pow_(2); a.clone().exp_();
    a.clone().clamp_(0,1); a.clone().masked_fill_(mask,0.); a.clone().index_fill_(0,idx,0.);
    a.clone().transpose_(0,1); a.clone().unsqueeze_(0); a.clone().squeeze_(); a.clone().t_();
    setit(a.clone(),0,1.); setit(a.clone(),slice(0,2),v); a.clone().sigmoid_(); a.clone().tanh_();
    a.clone().normal_(); a.clone().uniform_(); a.clone().index_add_(0,idx,a[:2]);
    T.segment_reduce(v,'sum',lengths=lens); T.bucketize(v,v)*v; T.histc(v)+v[0];
    nn.Linear(4,2)(a); nn.Linear(4,2,bias=False)(a); nn.Linear(4,2)(b3); nn.Conv2d(3,4,3)(i);
    nn.BatchNorm2d(3)(i); nn.BatchNorm1d(4)(a); nn.LayerNorm(4)(a); nn.GroupNorm(3,3)(i);
    nn.Embedding(5,4)(idx); nn.ReLU()(a); nn.Softmax(1)(a); nn.MSELoss()(a,b);
    nn.CrossEntropyLoss()(a,cls); nn.NLLLoss()(a,cls); nn.BCELoss()(v,v.detach());
    nn.BCEWithLogitsLoss()(a,b); nn.MaxPool2d(2)(i); nn.AvgPool2d(2)(i);
    nn.AdaptiveAvgPool2d(1)(i); nn.Dropout(0.5)(a); nn.Flatten()(i);
    nn.Sequential(nn.Linear(4,4),nn.ReLU())(a); nn.Sequential(nn.Linear(4,4),nn.Sigmoid())(a);
    nn.RNN(4,3)(b3)[0]; nn.GRU(4,3)(b3)[0]; nn.MultiheadAttention(4,2)(b3,b3,b3)[0];
    nn.TransformerEncoderLayer(4,2)(b3); nn.ConvTranspose2d(3,4,3)(i); nn.PReLU()(a);
    nn.Unflatten(1,(2,2))(a); nn.PixelShuffle(1)(i);
"""
AGAIN = """
    F.gelu(a); F.mse_loss(a,b); F.l1_loss(a,b); F.cross_entropy(a,cls); F.linear(a,w,v[:3]);
    a.var(); F.linear(a,w); F.layer_norm(a,(4,)); a.mean(); F.normalize(a); F.softplus(a);
"""
"""What is a plan when it is called a second time."""

_rng = np.random.default_rng(0)
_square = (_rng.random((4, 4)) + 0.5).astype("float32")
_vector = (_rng.random(4) * 0.8 + 0.1).astype("float32")
_rows = _rng.random((3, 4)).astype("float32")
_images = _rng.random((2, 3, 8, 8)).astype("float32")
_filters = _rng.random((5, 3, 3, 3)).astype("float32")
_sequence = _rng.random((2, 3, 8)).astype("float32")


def _put(x: Any, at: Any, value: Any) -> Any:
    x[at] = value
    return x


def names_of(T: Any) -> dict[str, Any]:
    def leaf(array: Any) -> Any:
        return T.tensor(array, requires_grad=True)

    return {
        "T": T, "F": T.nn.functional, "nn": T.nn, "a": leaf(_square), "v": leaf(_vector),
        "w": leaf(_rows), "i": leaf(_images), "k": leaf(_filters), "k1": leaf(_filters[:, :, 0]),
        "l": leaf(_sequence), "b": T.tensor(_square[::-1].copy()), "w3": leaf(_square[:3]),
        "s": leaf(_square @ _square.T + np.eye(4, dtype="float32")),
        "b3": leaf(np.stack([_square] * 4)),
        "c": leaf((_square + 1j * _square).astype("complex64")),
        "idx": T.tensor([0, 2]), "ind": T.tensor([[0, 1, 2, 3]]), "mask": T.tensor(_square > 0.9),
        "cls": T.tensor([0, 1, 2, 3]), "g": T.zeros(2, 4, 4, 2), "lens": T.tensor([1, 3]),
        "th": T.zeros(2, 2, 3, requires_grad=True), "setit": _put,
    }  # fmt: skip


def shown(names: dict[str, Any], expression: str) -> Any:
    node = eval(expression, names).grad_fn
    return node and (node.name(), type(node).__name__, repr(node).split(" object")[0].strip("<"))


def parts(text: str) -> list[str]:
    return [each.strip() for each in text.split(";") if each.strip()]


@pytest.mark.filterwarnings("ignore")
def test_nodes_have_the_names_that_pytorch_gives() -> None:
    torch = pytest.importorskip("torch", reason="compares with PyTorch, which is not installed")
    again, theirs, ours = parts(AGAIN), names_of(torch), names_of(tg)
    wanted = {each: shown(theirs, each) for each in [*parts(EXPRESSIONS), *again]}
    assert len(wanted) > 400
    found = {each: shown(ours, each) for each in wanted}
    assert {
        each: (found[each], wanted[each]) for each in wanted if found[each] != wanted[each]
    } == {}
    for _ in range(2):
        found = {each: shown(ours, each) for each in again}
    assert found == {each: wanted[each] for each in again}


def test_a_step_inside_of_an_operation_and_one_of_a_function() -> None:
    @tg.compile
    def compiled(x: Any) -> Any:
        return x.exp()

    x = tg.ones(2, requires_grad=True)
    assert compiled(x).grad_fn.name() == "CompiledFunctionBackward"
    assert repr(x.sum() * 2) == "tensor(4., grad_fn=<MulBackward0>)"
    (first,) = tg.autograd.grad(tg.tanh(x).sum(), x, create_graph=True)
    assert type(first.grad_fn).__name__.endswith("Backward0")


@pytest.mark.parametrize(
    "index", [1, (0, 2), (slice(None), 1), (1, slice(0, 3, 2)), (slice(0, 2), ..., -1), slice(1, 2)]
)
def test_an_index_of_numbers_and_slices_is_one_step(index: Any) -> None:
    x = tg.rand(2, 3, 4, dtype=tg.float64, requires_grad=True)
    part = x[index]
    ((leaf, _),) = part.grad_fn.next_functions
    assert leaf.name() == "torch::autograd::AccumulateGrad"
    assert part._base is x and part.data_ptr() == x.detach()[index].data_ptr()
    expected = np.zeros((2, 3, 4))
    expected[index] = 3 * x.detach().numpy()[index] ** 2
    (slope,) = tg.autograd.grad((part**3).sum(), x, create_graph=True)
    np.testing.assert_allclose(slope.detach().numpy(), expected)
    (slope.sum() * 2).backward()
    expected[index] = 12 * x.detach().numpy()[index]
    np.testing.assert_allclose(x.grad.numpy(), expected)
