"""Metrics, losses, optimizers and averages."""

from __future__ import annotations

from typing import Any

from .registry import case, floats, tokens


@case
def torchmetrics__functions() -> tuple[Any, list[Any]]:
    import torch
    from torchmetrics.functional import accuracy, mean_squared_error, pearson_corrcoef, r2_score

    def call(scores: Any, classes: Any, other: Any) -> Any:
        chosen = scores.argmax(1)
        return torch.stack([
            accuracy(chosen, classes, task="multiclass", num_classes=5),
            mean_squared_error(scores[:, 0], other), pearson_corrcoef(scores[:, 0], other),
            r2_score(scores[:, 0], other),
        ])  # fmt: skip

    return call, [floats(16, 5), tokens(16, below=5), floats(16, seed=2)]


@case
def torchmetrics__classes() -> tuple[Any, list[Any]]:
    import torch
    from torchmetrics import MeanMetric
    from torchmetrics.classification import MulticlassAccuracy, MulticlassF1Score

    def call(scores: Any, classes: Any) -> Any:
        metrics = [
            MulticlassAccuracy(num_classes=5), MulticlassF1Score(num_classes=5, average="macro"),
        ]  # fmt: skip
        mean = MeanMetric()
        for rows in (slice(0, 8), slice(8, 16)):
            for each in metrics:
                each.update(scores[rows], classes[rows])
            mean.update(scores[rows].mean())
        return torch.stack([*(each.compute() for each in metrics), mean.compute()])

    return call, [floats(16, 5), tokens(16, below=5)]


@case
def pytorch_metric_learning__triplets() -> tuple[Any, list[Any]]:
    from pytorch_metric_learning.losses import ContrastiveLoss, TripletMarginLoss

    def call(embeddings: Any, labels: Any) -> Any:
        return TripletMarginLoss()(embeddings, labels) + ContrastiveLoss()(embeddings, labels)

    return call, [floats(12, 6), tokens(12, below=3)]


@case
def lion_pytorch__step() -> tuple[Any, list[Any]]:
    return _steps(lambda parameters: __import__("lion_pytorch").Lion(parameters, lr=1e-2))


@case
def torch_optimizer__lamb() -> tuple[Any, list[Any]]:
    return _steps(lambda parameters: __import__("torch_optimizer").Lamb(parameters, lr=1e-2))


@case
def torch_optimizer__radam() -> tuple[Any, list[Any]]:
    return _steps(lambda parameters: __import__("torch_optimizer").RAdam(parameters, lr=1e-2))


def _steps(make: Any) -> tuple[Any, list[Any]]:
    import torch

    def call(start: Any) -> Any:
        weight = torch.nn.Parameter(start.detach().clone())
        optimizer = make([weight])
        for _ in range(5):
            optimizer.zero_grad()
            ((weight - 1) ** 2).sum().backward()
            optimizer.step()
        return weight.detach()

    return call, [floats(4, 3)]


@case
def ema_pytorch__average() -> tuple[Any, list[Any]]:
    import torch
    from ema_pytorch import EMA

    model = torch.nn.Linear(3, 2)
    average = EMA(model, beta=0.9, update_after_step=0, update_every=1)

    class Averaged(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.average = average

        def forward(self, x: Any) -> Any:
            with torch.no_grad():
                model.weight += 1
            self.average.update()
            return self.average(x)

    return Averaged(), [floats(4, 3)]
