"""Modules for sequences, and what normalises: PyTorch's numbers, committed; errors; loops."""

import copy
import json
import re
import warnings

import numpy as np
import pytest
import sequence_rows as rows
from sequence_rows import FIGURES, ROWS

import tgraph as tg
from tgraph import nn

KNOWN = json.loads(FIGURES.read_text())


def check(name, found):
    assert list(found) == list(KNOWN[name])
    for key, array in found.items():
        assert rows.figure(array) == pytest.approx(KNOWN[name][key], rel=1e-7, abs=1e-9), key


@pytest.mark.parametrize("name", ROWS)
def test_results_and_gradients_are_those_of_pytorch(name):
    check(name, rows.run(tg, name))
    compiled = tg.compile(ROWS[name].call)
    check(name, rows.run(tg, name, compiled))


def test_the_figures_are_those_of_the_pytorch_that_is_installed():
    torch = pytest.importorskip("torch", reason="compares with PyTorch, which is not installed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in ROWS:
            check(name, rows.run(torch, name))


# --- errors --------------------------------------------------------------------------------------

# What is called with a library, the error, and a part of its text, the same in PyTorch.
ERRORS = [
    (lambda t: t.nn.RNN(3, 4, nonlinearity="foo"), ValueError, "Unknown nonlinearity 'foo'"),
    (lambda t: t.nn.GRU(3, 4, proj_size=2), ValueError, "proj_size argument is only supported"),
    (lambda t: t.nn.GRU(3, 4, foo=2), TypeError, "unexpected keyword argument 'foo'"),
    (lambda t: t.nn.LSTM(3, 4, proj_size=4), ValueError, "has to be smaller than hidden_size"),
    (lambda t: t.nn.LSTM(3, 4, 0), ValueError, "num_layers must be greater than zero"),
    (lambda t: t.nn.LSTM(3, 4, dropout=2), ValueError, "number in range"),
    (lambda t: t.nn.LSTM(3, 4.0), TypeError, "hidden_size should be of type int, got: float"),
    (lambda t: t.nn.LSTM(3, 4)(t.ones(2)), ValueError, "LSTM: Expected input to be 2D or 3D"),
    (lambda t: t.nn.LSTM(3, 4)(t.ones(2, 2, 4)), RuntimeError, "Expected 3, got 4"),
    (lambda t: t.nn.LSTM(3, 4)(t.ones(0, 2, 3)), RuntimeError, "length to be larger than 0"),
    (lambda t: t.nn.LSTM(3, 4)(t.ones(5, 3), (t.ones(1, 1, 4),) * 2), RuntimeError,
     "For unbatched 2-D input, hx and cx should also be 2-D"),
    (lambda t: t.nn.LSTM(3, 4)(t.ones(5, 2, 3), (t.ones(1, 2, 4), t.ones(1, 1, 4))), RuntimeError,
     "Expected hidden[1] size (1, 2, 4), got [1, 1, 4]"),
    (lambda t: t.nn.GRU(3, 4)(t.ones(5, 2, 3), t.ones(1, 3, 4)), RuntimeError,
     "Expected hidden size (1, 2, 4), got [1, 3, 4]"),
    (lambda t: t.nn.GRU(3, 4)(t.ones(5, 2, 3, dtype=t.float64)), ValueError,
     "RNN input dtype"),
    (lambda t: t.nn.LSTMCell(3, 4)(t.ones(2, 5)), RuntimeError, "got 5 expected 3"),
    (lambda t: t.nn.GRUCell(3, 4)(t.ones(2, 3), t.ones(3, 4)), RuntimeError,
     "Input batch size 2 doesn't match hidden0 batch size 3"),
    (lambda t: t.nn.RNNCell(3, 4)(t.ones(2, 3), t.ones(2, 5)), RuntimeError, "got 5, expected 4"),
    (lambda t: t.nn.RNNCell(3, 4)(t.ones(2, 3, 1)), ValueError, "input to be 1D or 2D, got 3D"),
    (lambda t: t.nn.utils.rnn.pack_padded_sequence(t.ones(4, 3), [4, 2]), RuntimeError,
     "Expected `len(lengths)` to be equal to batch_size"),
    (lambda t: t.nn.utils.rnn.pack_padded_sequence(t.ones(4, 2), [2, 4]), RuntimeError,
     "must be sorted in decreasing order"),
    (lambda t: t.nn.utils.rnn.pack_padded_sequence(t.ones(4, 2), [2, 0]), RuntimeError,
     "Length of all samples has to be greater than 0"),
    (lambda t: t.nn.utils.rnn.pad_sequence([]), RuntimeError, "received an empty list"),
    (lambda t: t.nn.utils.rnn.pad_sequence([t.ones(2)], padding_side="up"), RuntimeError,
     "Expected padding_side to be one of left or right, but got up"),
    (lambda t: t.nn.MultiheadAttention(5, 2), AssertionError, "must be divisible by num_heads"),
    (lambda t: t.nn.MultiheadAttention(4, 0), ValueError, "must be greater than 0"),
    (lambda t: t.nn.MultiheadAttention(4, 2)(*[t.ones(3, 2, 6)] * 3), AssertionError,
     "expecting embedding dimension of 4, but got 6"),
    (lambda t: t.nn.MultiheadAttention(4, 2)(*[t.ones(3, 2, 4)] * 3, is_causal=True), RuntimeError,
     "Need attn_mask if specifying the is_causal hint"),
    (lambda t: t.nn.MultiheadAttention(4, 2)(*[t.ones(3, 2, 4)] * 3, attn_mask=t.ones(2, 3)),
     RuntimeError, "The shape of the 2D attn_mask is"),
    (lambda t: t.nn.TransformerEncoderLayer(4, 2, activation="foo"), RuntimeError,
     "activation should be relu/gelu, not foo"),
    (lambda t: t.nn.Transformer(4, 2, 1, 1, 4)(t.ones(3, 2, 4), t.ones(3, 1, 4)), RuntimeError,
     "the batch number of src and tgt must be equal"),
    (lambda t: t.nn.functional.scaled_dot_product_attention(*[t.ones(3)] * 3), RuntimeError,
     "at least 2 dimensional"),
    (lambda t: t.nn.functional.scaled_dot_product_attention(
        t.ones(3, 4, 2), *[t.ones(2, 4, 2)] * 2, enable_gqa=True), RuntimeError,
     "Number of heads in key and value must divide"),
    (lambda t: t.nn.Embedding(4, 3, 5), AssertionError, "adding_idx must be within num_embeddings"),
    (lambda t: t.nn.functional.embedding_bag(t.tensor([1, 2]), t.ones(4, 3)), ValueError,
     "offsets has to be a 1D Tensor but got None"),
    (lambda t: t.nn.functional.embedding_bag(t.tensor([1, 2]), t.ones(4, 3), t.tensor([1])),
     RuntimeError, "offsets[0] has to be 0"),
    (lambda t: t.nn.functional.embedding_bag(t.tensor([[1, 2]]), t.ones(4, 3), mode="foo"),
     ValueError, "mode has to be one of sum, mean or max"),
    (lambda t: t.nn.BatchNorm3d(3)(t.ones(2, 3)), ValueError, "expected 5D input (got 2D input)"),
    (lambda t: t.nn.functional.batch_norm(t.ones(2, 3), None, t.ones(3)), RuntimeError,
     "running_mean must be defined in evaluation mode"),
    (lambda t: t.nn.functional.batch_norm(t.ones(2, 3), t.ones(2), t.ones(3)), RuntimeError,
     "running_mean should contain 3 elements not 2"),
    (lambda t: t.nn.functional.batch_norm(t.ones(2, 3), None, None, training=True, eps=0.0),
     ValueError, "batch_norm eps must be positive during training"),
    (lambda t: t.nn.SyncBatchNorm(3)(t.ones(3)), ValueError, "expected at least 2D input"),
    (lambda t: t.nn.InstanceNorm1d(3, affine=True)(t.ones(2, 4, 5)), ValueError,
     "expected input's size at dim=1 to match num_features (3), but got: 4"),
    (lambda t: t.nn.InstanceNorm1d(3)(t.ones(2, 3, 1)), ValueError,
     "Expected more than 1 spatial element when training"),
    (lambda t: t.nn.GroupNorm(2, 3), ValueError, "must be divisible by num_groups"),
    (lambda t: t.nn.functional.group_norm(t.ones(2, 4, 2), 2, t.ones(3)), RuntimeError,
     "Expected weight to be a vector of size equal to the number of channels"),
    (lambda t: t.nn.functional.rms_norm(t.ones(2, 3), ()), RuntimeError,
     "Expected normalized_shape to be at least 1-dimensional"),
    (lambda t: t.nn.LocalResponseNorm(2)(t.ones(2, 3)), ValueError,
     "Expected 3D or higher dimensionality"),
    (lambda t: t.nn.Bilinear(0, 3, 2), ValueError, "in1_features must be > 0"),
    (lambda t: t.nn.LazyLinear(2).weight.shape, RuntimeError,
     "Can't access the shape of an uninitialized parameter"),
    (lambda t: t.nn.LazyLinear(2).weight + 1, ValueError,
     "Attempted to use an uninitialized parameter"),
]  # fmt: skip


def check_errors(library):
    for call, kind, text in ERRORS:
        with pytest.raises(kind, match=re.escape(text)):
            call(library)


def test_errors():
    check_errors(tg)


def test_errors_are_those_of_the_pytorch_that_is_installed():
    torch = pytest.importorskip("torch", reason="compares with PyTorch, which is not installed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_errors(torch)


# --- what only compiled code can do wrong --------------------------------------------------------


def test_a_loop_over_time_is_one_loop():
    """However many times there are, as many operations and loops are compiled."""
    layer = nn.GRU(2, 3, 2)
    counts = []
    for times in (3, 50):
        graph = tg.tracing.trace(lambda x: layer(x)[0], tg.ones(times, 1, 2))
        names = [each.primitive.name for each in graph.nodes]
        counts.append((len(names), names.count("loop")))
    assert counts[0] == counts[1] and counts[0][1] == 2


@pytest.mark.parametrize("sorted_already", [True, False])
def test_lengths_that_only_calls_know(sorted_already):
    """One compiled function for all lengths, which are tensors; gradients too."""
    layer = nn.LSTM(2, 3, bidirectional=True)
    rnn = nn.utils.rnn

    def function(x, lengths):
        packed = rnn.pack_padded_sequence(x, lengths, enforce_sorted=sorted_already)
        output, (h, _) = layer(packed)
        return rnn.pad_packed_sequence(output, total_length=4)[0], h

    compiled = tg.compile(function)
    for lengths in ([4, 3, 1], [2, 2, 1], [3, 1, 1]):
        found = []
        lengths = lengths if sorted_already else lengths[::-1]
        for each in (function, compiled):
            x = tg.linspace(-1, 1, 24).reshape(4, 3, 2).requires_grad_()
            results = each(x, tg.tensor(lengths))
            (results[0].square().sum() + results[1].sum()).backward()
            found.append([*results, x.grad])
        for one, other in zip(*found, strict=True):
            np.testing.assert_allclose(one.numpy(force=True), other.numpy(force=True), atol=1e-6)
    compiled.assert_compiles(1)


def test_packed_sequences():
    rnn = nn.utils.rnn
    parts = [tg.tensor([1.0, 2.0]), tg.tensor([3.0, 4.0, 5.0]), tg.tensor([6.0])]
    packed = rnn.pack_sequence(parts, enforce_sorted=False)
    assert packed.data.tolist() == [3, 1, 6, 4, 2, 5] and packed.batch_sizes.tolist() == [3, 2, 1]
    assert packed.sorted_indices.tolist() == [1, 0, 2] == packed.unsorted_indices.tolist()
    assert [each.tolist() for each in rnn.unpack_sequence(packed)] == [e.tolist() for e in parts]
    padded, lengths = rnn.pad_packed_sequence(packed, True, -1.0, 4)
    assert padded.tolist() == [[1, 2, -1, -1], [3, 4, 5, -1], [6, -1, -1, -1]]
    assert lengths.tolist() == [2, 3, 1]
    assert packed.double().data.dtype is tg.float64 and packed.to("cpu") is packed
    assert rnn.pad_sequence(parts, padding_side="left")[:, 2].tolist() == [0, 0, 6]
    with pytest.raises(RuntimeError, match="lengths of at most 3"):
        rnn.pack_padded_sequence(tg.ones(3, 1), [4])
    with pytest.raises(ValueError, match="got total_length=2 and max sequence length being 3"):
        rnn.pad_packed_sequence(packed, total_length=2)


# --- lazy modules --------------------------------------------------------------------------------


def test_lazy_modules_take_states_and_types_before_their_first_call():
    net = nn.Sequential(nn.LazyLinear(4), nn.LazyBatchNorm1d())
    assert repr(net.state_dict()["0.weight"]) == "<UninitializedParameter>"
    assert copy.deepcopy(net).double()[0].weight.dtype is tg.float64
    with pytest.raises(RuntimeError, match="Can't access the shape"):
        nn.Linear(3, 4).load_state_dict(net[0].state_dict())
    full = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    net.load_state_dict(full.state_dict())
    assert net[0].weight.shape == (4, 3) and type(net[1]) is nn.LazyBatchNorm1d
    x = tg.randn(5, 3)
    assert tg.allclose(net(x), full(x), atol=1e-6)
    assert type(net[0]) is nn.Linear and net[0].in_features == 3
    assert type(net[1].running_mean) is tg.Tensor


# --- norms and embeddings ------------------------------------------------------------------------


def test_a_batch_of_nothing_changes_no_running_statistics():
    layer = nn.BatchNorm1d(3)
    assert layer(tg.ones(0, 3)).shape == (0, 3)
    assert layer.running_mean.tolist() == [0] * 3 and layer.running_var.tolist() == [1] * 3
    assert layer.num_batches_tracked.item() == 1


def test_norms_load_states_without_a_count_of_batches():
    layer = nn.InstanceNorm1d(3, track_running_stats=True)
    state = dict(layer.state_dict())
    del state["num_batches_tracked"]
    assert layer.load_state_dict(state).missing_keys == []


def test_convert_sync_batchnorm():
    net = nn.Sequential(nn.Linear(2, 3), nn.Sequential(nn.BatchNorm1d(3, bias=False))).eval()
    x = tg.randn(4, 2)
    wanted, weight = net(x), net[1][0].weight
    converted = nn.SyncBatchNorm.convert_sync_batchnorm(net)
    assert type(converted[1][0]) is nn.SyncBatchNorm and converted[1][0].weight is weight
    assert tg.allclose(converted(x), wanted, atol=1e-6)


def test_instance_norm_warns_of_other_channels():
    with pytest.warns(UserWarning, match="does not match num_features"):
        nn.InstanceNorm1d(3)(tg.ones(2, 4, 5))


def test_attention_drops_weights():
    tg.manual_seed(0)
    ones = tg.ones(1, 100, 4)
    found = nn.functional.scaled_dot_product_attention(ones, ones, ones, dropout_p=0.5)
    assert 0.8 < found.mean().item() < 1.2 and found.std().item() > 0.05
