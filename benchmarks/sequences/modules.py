"""The models as users of PyTorch write them; `library` is torch or tgraph, with equal names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..hyperparameters import ADAMW, heads
from .workloads import BLOCKS, LARGEST_NORM, LAYERS

Tensors = Mapping[str, Any]


def recurrent(library: Any, data: Tensors) -> tuple[Any, dict[str, Any]]:
    """The model of characters, and its parameters by the names of the data."""
    nn = library.nn
    words, width = data["words_w"].shape

    class Characters(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.embedding = nn.Embedding(words, width)
            self.lstm = nn.LSTM(width, width, LAYERS, batch_first=True)
            self.head = nn.Linear(width, words)

        def forward(self, tokens: Any) -> Any:
            return self.head(self.lstm(self.embedding(tokens))[0])

    model = Characters()
    names = {"embedding.weight": "words_w", "head.weight": "head_w", "head.bias": "head_b"}
    for layer in range(LAYERS):
        for kind, own in (("ih", "input"), ("hh", "hidden")):
            names[f"lstm.weight_{kind}_l{layer}"] = f"{own}{layer}_w"
            names[f"lstm.bias_{kind}_l{layer}"] = f"{own}{layer}_b"
    return model, _filled(library, model, names, data)


def gpt(library: Any, data: Tensors) -> tuple[Any, dict[str, Any]]:
    """The transformer, and its parameters by the names of the data."""
    nn = library.nn
    words, width = data["words_w"].shape
    length = len(data["places_w"])

    class Attention(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.qkv = nn.Linear(width, 3 * width)
            self.out = nn.Linear(width, width)

        def forward(self, x: Any) -> Any:
            batch, length, _ = x.shape
            q, k, v = (
                each.view(batch, length, heads(width), -1).transpose(1, 2)
                for each in self.qkv(x).split(width, dim=2)
            )
            mixed = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            return self.out(mixed.transpose(1, 2).contiguous().view(batch, length, width))

    class Block(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.norm1, self.attention = nn.LayerNorm(width), Attention()
            self.norm2 = nn.LayerNorm(width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
            self.gelu = nn.GELU(approximate="tanh")

        def forward(self, x: Any) -> Any:
            x = x + self.attention(self.norm1(x))
            return x + self.down(self.gelu(self.up(self.norm2(x))))

    class GPT(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.words, self.places = nn.Embedding(words, width), nn.Embedding(length, width)
            self.blocks = nn.ModuleList(Block() for _ in range(BLOCKS))
            self.final = nn.LayerNorm(width)
            self.head = nn.Linear(width, words, bias=False)
            self.head.weight = self.words.weight

        def forward(self, tokens: Any) -> Any:
            x = self.words(tokens) + self.places(library.arange(tokens.shape[1]))
            for block in self.blocks:
                x = block(x)
            return self.head(self.final(x))

    model = GPT()
    names = {"words.weight": "words_w", "places.weight": "places_w"}
    for own, given in (("weight", "w"), ("bias", "b")):
        names[f"final.{own}"] = f"final_{given}"
        for number in range(BLOCKS):
            for part in ("norm1", "norm2", "up", "down", "attention.qkv", "attention.out"):
                name = part.removeprefix("attention.")
                names[f"blocks.{number}.{part}.{own}"] = f"block{number}_{name}_{given}"
    return model, _filled(library, model, names, data)


def _filled(library: Any, model: Any, names: Mapping[str, str], data: Tensors) -> dict[str, Any]:
    found = {names[name]: value for name, value in model.named_parameters()}
    with library.no_grad():
        for name, value in found.items():
            value.copy_(data[name])
    return found


def adam(library: Any, model: Any, **settings: Any) -> Any:
    betas = (ADAMW.beta1, ADAMW.beta2)
    return library.optim.Adam(model.parameters(), ADAMW.rate, betas, ADAMW.epsilon, **settings)


def adamw(library: Any, model: Any, **settings: Any) -> Any:
    """Matrices and tables decay, biases and the weights of norms do not."""
    values = list(model.parameters())
    groups = [
        {"params": [each for each in values if each.ndim > 1], "weight_decay": ADAMW.decay},
        {"params": [each for each in values if each.ndim < 2], "weight_decay": 0.0},
    ]
    betas = (ADAMW.beta1, ADAMW.beta2)
    return library.optim.AdamW(groups, ADAMW.rate, betas, ADAMW.epsilon, **settings)


def loss_of(library: Any, model: Any, tokens: Any, labels: Any) -> Any:
    scores = model(tokens)
    return library.nn.functional.cross_entropy(scores.view(-1, scores.shape[-1]), labels.view(-1))


def step(library: Any, model: Any, optimizer: Any, loss: Any) -> Any:
    """A training step: `loss()` is the loss."""
    optimizer.zero_grad()
    value = loss()
    value.backward()
    library.nn.utils.clip_grad_norm_(model.parameters(), LARGEST_NORM)
    optimizer.step()
    return value
