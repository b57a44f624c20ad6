"""Gradients of each example of a batch, and an ensemble of models trained as one.

python examples/per_sample_gradients.py
"""

from __future__ import annotations

import tgraph as tg

SAMPLES, FEATURES, MODELS, STEPS, RATE = 64, 5, 4, 60, 0.2


def make_model() -> tg.nn.Module:
    return tg.nn.Sequential(tg.nn.Linear(FEATURES, 16), tg.nn.Tanh(), tg.nn.Linear(16, 1))


def main() -> None:
    tg.manual_seed(0)
    x = tg.randn(SAMPLES, FEATURES)
    y = tg.sin(x.sum(1, keepdim=True))
    models = [make_model() for _ in range(MODELS)]

    def loss(params: dict[str, tg.Tensor], x: tg.Tensor, y: tg.Tensor) -> tg.Tensor:
        found: tg.Tensor = tg.functional_call(models[0], params, (x,))
        return ((found - y) ** 2).mean()

    # The gradient of each example: one for all would be their mean.
    own = {name: each.detach() for name, each in models[0].named_parameters()}
    per_sample = tg.compile(tg.vmap(tg.grad(loss), in_dims=(None, 0, 0)))
    gradients = per_sample(own, x, y)
    mean = tg.grad(loss)(own, x, y)
    for name, each in gradients.items():
        assert tg.allclose(each.mean(0), mean[name], atol=1e-5)
    norms = sum(each.reshape(SAMPLES, -1).pow(2).sum(1) for each in gradients.values()).sqrt()
    print(f"gradients of {SAMPLES} examples: norms from {norms.min():.3f} to {norms.max():.3f}")

    # An ensemble: the parameters of all models, stacked, each with its gradient.
    stacked, _ = tg.func.stack_module_state(models)
    params = {name: each.detach() for name, each in stacked.items()}
    step = tg.compile(tg.vmap(tg.func.grad_and_value(loss), in_dims=(0, None, None)))
    first = step(params, x, y)[1]
    for _ in range(STEPS):
        slopes, losses = step(params, x, y)
        params = {name: each - RATE * slopes[name] for name, each in params.items()}
    print("losses of the models, before and after:")
    for before, after in zip(first.tolist(), losses.tolist(), strict=True):
        print(f"  {before:.3f} -> {after:.3f}")
    assert bool((losses < first).all())


if __name__ == "__main__":
    main()
