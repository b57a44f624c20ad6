"""Language models of the `transformers` package, with small configurations."""

from __future__ import annotations

from typing import Any

from .registry import case, floats, tokens

_SMALL = {
    "vocab_size": 20, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2,
    "intermediate_size": 32, "max_position_embeddings": 32,
}  # fmt: skip


def _plain(model: Any) -> tuple[Any, list[Any]]:
    """A model that gives a tuple of its first result, and tokens."""
    import torch

    class Plain(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, *inputs: Any) -> Any:
            return self.model(*inputs)[0]

    return Plain(), [tokens(2, 10)]


@case
def transformers__gpt2() -> tuple[Any, list[Any]]:
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(
        vocab_size=20, n_positions=32, n_embd=16, n_layer=2, n_head=2,
        resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
    )  # fmt: skip
    return _plain(GPT2LMHeadModel(config))


@case
def transformers__bert() -> tuple[Any, list[Any]]:
    from transformers import BertConfig, BertForMaskedLM

    config = BertConfig(**_SMALL, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    return _plain(BertForMaskedLM(config))


@case
def transformers__roberta() -> tuple[Any, list[Any]]:
    from transformers import RobertaConfig, RobertaForSequenceClassification

    config = RobertaConfig(**_SMALL, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    return _plain(RobertaForSequenceClassification(config))


@case
def transformers__distilbert() -> tuple[Any, list[Any]]:
    from transformers import DistilBertConfig, DistilBertModel

    config = DistilBertConfig(
        vocab_size=20, dim=16, n_layers=2, n_heads=2, hidden_dim=32, max_position_embeddings=32,
        dropout=0.0, attention_dropout=0.0,
    )  # fmt: skip
    return _plain(DistilBertModel(config))


@case
def transformers__llama() -> tuple[Any, list[Any]]:
    from transformers import LlamaConfig, LlamaForCausalLM

    return _plain(LlamaForCausalLM(LlamaConfig(**_SMALL, num_key_value_heads=1)))


@case
def transformers__mistral() -> tuple[Any, list[Any]]:
    from transformers import MistralConfig, MistralForCausalLM

    return _plain(MistralForCausalLM(MistralConfig(**_SMALL, num_key_value_heads=1)))


@case
def transformers__qwen2() -> tuple[Any, list[Any]]:
    from transformers import Qwen2Config, Qwen2ForCausalLM

    return _plain(Qwen2ForCausalLM(Qwen2Config(**_SMALL, num_key_value_heads=1)))


@case
def transformers__t5() -> tuple[Any, list[Any]]:
    import torch
    from transformers import T5Config, T5ForConditionalGeneration

    config = T5Config(
        vocab_size=20,
        d_model=16,
        d_kv=8,
        d_ff=32,
        num_layers=2,
        num_heads=2,
        dropout_rate=0.0,
        decoder_start_token_id=0,
    )
    model = T5ForConditionalGeneration(config)

    class Pair(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, inputs: Any, labels: Any) -> Any:
            return self.model(input_ids=inputs, labels=labels).loss

    return Pair(), [tokens(2, 10), tokens(2, 6)]


@case
def transformers__vit() -> tuple[Any, list[Any]]:
    from transformers import ViTConfig, ViTForImageClassification

    config = ViTConfig(
        hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32,
        image_size=16, patch_size=4, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
    )  # fmt: skip
    return _plain(ViTForImageClassification(config))[0], [floats(2, 3, 16, 16)]


@case
def transformers__convnext() -> tuple[Any, list[Any]]:
    from transformers import ConvNextConfig, ConvNextForImageClassification

    config = ConvNextConfig(hidden_sizes=[8, 16, 16, 16], depths=[1, 1, 1, 1])
    return _plain(ConvNextForImageClassification(config))[0], [floats(2, 3, 32, 32)]
