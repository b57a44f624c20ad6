"""Writes the small files in `data/` with PyTorch, which the tests read without it.

Run as `python tests/files/make_data.py`, where PyTorch is installed. What is in them stands in
`test_checkpoints.py`.
"""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path

import torch

FOLDER = Path(__file__).parent / "data"
DTYPES = (
    "bool", "uint8", "int8", "int16", "int32", "int64", "uint32", "float16", "bfloat16", "float32",
    "float64", "complex64", "complex128",
)  # fmt: skip


def checkpoint() -> dict[str, object]:
    torch.manual_seed(0)
    weight = torch.arange(12.0).reshape(3, 4)
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.25)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=3)
    model(torch.ones(2, 3)).sum().backward()
    optimizer.step()
    return {
        "weight": weight,
        "part": weight.t()[1:],
        "row": weight[2],
        "dtypes": {
            name: (torch.arange(6) % 5).to(getattr(torch, name)).reshape(2, 3).t()
            for name in DTYPES
        },
        "parameter": torch.nn.Parameter(torch.ones(2)),
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "scheduler": scheduler.state_dict(),
        "others": OrderedDict(
            size=weight.shape, dtype=torch.float16, device=torch.device("cpu"), none=None,
            list=[1, -2.5, True, "ü", b"bytes", (1 << 70, ()), {3, 4}, 1j, bytearray(b"xy")],
            empty=torch.zeros(0, 3), scalar=torch.tensor(3), random=torch.get_rng_state()[:8],
        ),
    }  # fmt: skip


def views() -> dict[str, object]:
    """What PyTorch keeps as the memory of something else, with a note on how to read it."""
    x = torch.tensor([1 + 2j, 3 - 1j])
    return {
        "conj": x.conj(),
        "neg": x.clone().conj().imag,
        "adjoint": x.reshape(1, 2).mH,
        "parameter": torch.nn.Parameter(x.conj()),
    }


if __name__ == "__main__":
    torch.save(checkpoint(), FOLDER / "torch.pt")
    weight = torch.arange(6.0)
    few = {"weight": weight, "part": weight[2:4]}
    torch.save(few, FOLDER / "legacy.pt", _use_new_zipfile_serialization=False)
    torch.save(views(), FOLDER / "views.pt")
    torch.save(views(), FOLDER / "legacy_views.pt", _use_new_zipfile_serialization=False)
