"""Gradients of functions, of any order, eager or compiled."""

import tgraph as tg


def energy(x: tg.Tensor) -> tg.Tensor:
    return (tg.sin(x) * x).sum()


x = tg.tensor([0.5, 1.0, 2.0])
slope = tg.grad(energy)
print("first derivative ", slope(x))  # x cos x + sin x

curvature = tg.grad(lambda x: slope(x).sum())
print("second derivative", curvature(x))  # 2 cos x - x sin x

fast = tg.compile(curvature)
print("compiled         ", fast(x))
assert tg.allclose(fast(x), curvature(x))
assert tg.allclose(curvature(x), 2 * tg.cos(x) - x * tg.sin(x), atol=1e-6)
