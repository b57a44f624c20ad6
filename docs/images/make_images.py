"""Draws the pictures of the documentation: `python docs/images/make_images.py`.

They hold file names and lines of this script, so run it again after changing it.
"""

from __future__ import annotations

from pathlib import Path

import tgraph as tg
from tgraph import nn

FOLDER = Path(__file__).resolve().parent

tg.manual_seed(0)
model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
optimizer = tg.optim.SGD(model.parameters(), lr=0.1)
images, labels = tg.rand(128, 64), tg.randint(0, 10, (128,))


def step(x, y):
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss


def softmax_of_layer_norm(x):
    x = nn.functional.layer_norm(x, (256,))
    return tg.softmax(x, dim=-1)


def write(name, *drawn, **options):
    """Draw into a file; paths in it start at the repository, wherever that is."""
    svg = tg.draw(drawn[0], None, *drawn[1:], **options)
    text = svg.replace(f"{FOLDER.parents[1]}/", "")
    (FOLDER / name).write_text(text, encoding="utf-8")


def main() -> None:
    """Write every picture beside this file."""
    compiled = tg.compile(step)
    write("mlp_step_traced.svg", step, images, labels)
    write("mlp_step.svg", compiled, images, labels)
    write("mlp_step_kernels.svg", compiled, images, labels, collapse="kernel")
    write("mlp_step_lines.svg", compiled, images, labels, collapse="line")
    write("softmax.svg", tg.compile(softmax_of_layer_norm), tg.rand(512, 256))
    loss = nn.functional.cross_entropy(model(images), labels)
    write("autograd.svg", loss)


if __name__ == "__main__":
    main()
