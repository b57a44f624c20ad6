"""Fit a line to noisy points: PyTorch-style code, run eagerly."""

import sys

import tgraph as tg
from tgraph import nn, optim

tg.manual_seed(0)
x = tg.linspace(-1, 1, 200).reshape(-1, 1)
y = 3 * x + 0.5 + 0.1 * tg.randn(200, 1)

model = nn.Linear(1, 1)
optimizer = optim.SGD(model.parameters(), lr=0.3)
loss_of = nn.MSELoss()

for _ in range(20 if "--quick" in sys.argv else 100):
    optimizer.zero_grad()
    loss = loss_of(model(x), y)
    loss.backward()
    optimizer.step()

print(f"loss {loss.item():.4f}")  # 0.01 is the variance of the noise
print("slope", model.weight, "intercept", model.bias)
