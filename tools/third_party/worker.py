"""One case with one library: what is called gives, and its gradients, as arrays in a file."""

from __future__ import annotations

import pickle
import sys
import types
import warnings
from pathlib import Path
from typing import Any

from .cases import CASES


class _Names(type):
    """Classes that have whatever is asked for."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Names(name, (), {})


class _Empty(types.ModuleType):
    """Stands for torchvision, whose compiled parts neither library has here."""

    __path__: tuple[str, ...] = ()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Names(name, (), {})


class _EmptyModules:
    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        import importlib.machinery

        if name.split(".")[0] != "torchvision":
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)  # type: ignore[arg-type]

    def create_module(self, spec: Any) -> types.ModuleType:
        return _Empty(spec.name)

    def exec_module(self, module: Any) -> None:
        pass


def _flat(value: Any) -> list[Any]:
    import torch

    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return (
        [each for part in value for each in _flat(part)] if isinstance(value, (list, tuple)) else []
    )


def run(name: str, folder: Path, compiled: bool) -> dict[str, Any]:
    """Results and gradients; a model takes the weights that PyTorch's run left in `folder`."""
    import torch

    torch.manual_seed(0)
    call, arrays = CASES[name]()
    is_model = isinstance(call, torch.nn.Module)
    weights = folder / f"{name}.weights"
    if is_model:
        for each in call.modules():
            if "Drop" in type(each).__name__ and hasattr(each, "p"):
                each.p = 0.0
        if weights.exists():
            found = pickle.loads(weights.read_bytes())
            call.load_state_dict({key: torch.from_numpy(each) for key, each in found.items()})
        else:
            state = {key: each.detach().numpy().copy() for key, each in call.state_dict().items()}
            weights.write_bytes(pickle.dumps(state))
    inputs = [torch.from_numpy(each.copy()) for each in arrays]
    for each in inputs:
        if each.is_floating_point():
            each.requires_grad_()
    run_call = torch.compile(call) if compiled else call
    results = [each for each in _flat(run_call(*inputs)) if each.is_floating_point()]
    outputs = [each.detach().numpy().copy() for each in results]
    loss = sum((each * each).mean() for each in results if each.requires_grad)
    sources = [*inputs, *(call.parameters() if is_model else ())]
    sources = [each for each in sources if each.requires_grad]
    gradients = []
    if isinstance(loss, torch.Tensor):
        loss.backward()
        gradients = [None if each.grad is None else each.grad.numpy().copy() for each in sources]
    return {"outputs": outputs, "gradients": gradients}


def main() -> None:
    name, library, folder = sys.argv[1], sys.argv[2], Path(sys.argv[3])
    warnings.simplefilter("ignore")
    names = None
    if library != "torch":
        import tgraph

        names = tgraph.compat.as_torch()
    sys.meta_path.insert(0, _EmptyModules())  # type: ignore[arg-type]
    answer: dict[str, Any]
    try:
        answer = run(name, folder, library == "compiled")
    except Exception as error:
        import traceback

        traceback.print_exc()
        answer = {"error": f"{type(error).__name__}: {error}".split("\n")[0][:160]}
    if names is not None:
        answer["missing"] = sorted({each[0] for each in names.missing})
    (folder / f"{name}.{library}").write_bytes(pickle.dumps(answer))


main()
