"""The cases of one package with one library: results, gradients and losses, as arrays in files."""

from __future__ import annotations

import pickle
import re
import sys
import traceback
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
    """Stands for torchvision in PyTorch's run, of which no build may fit that of PyTorch."""

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
    if not isinstance(value, (list, tuple)):
        return []
    return [each for part in value for each in _flat(part)]


def _floats(value: Any) -> list[Any]:
    return [each for each in _flat(value) if each.is_floating_point()]


def _made(name: str, folder: Path) -> tuple[Any, list[Any]]:
    """What a case calls and its inputs; a model has the weights that PyTorch's run left."""
    import torch

    torch.manual_seed(0)
    call, arrays = CASES[name]()
    if isinstance(call, torch.nn.Module):
        for each in call.modules():
            if "Drop" in type(each).__name__ and hasattr(each, "p"):
                each.p = 0.0
        weights = folder / f"{name}.weights"
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
    return call, inputs


def _gradients(name: str, folder: Path, compiled: bool) -> tuple[list[Any], list[Any]]:
    """Results of a call, and the gradients of inputs and parameters."""
    import torch

    call, inputs = _made(name, folder)
    is_model = isinstance(call, torch.nn.Module)
    results = _floats((torch.compile(call, fullgraph=True) if compiled else call)(*inputs))
    outputs = [each.detach().numpy().copy() for each in results]
    loss = sum((each * each).mean() for each in results if each.requires_grad)
    if not isinstance(loss, torch.Tensor):
        return outputs, []
    sources = [*inputs, *(call.parameters() if is_model else ())]
    loss.backward()
    found = [each.grad for each in sources if each.requires_grad]
    return outputs, [None if each is None else each.numpy().copy() for each in found]


def _losses(name: str, folder: Path, compiled: bool) -> list[Any]:
    """The losses of three training steps of a model; with `compiled` a step is one function."""
    import torch

    call, inputs = _made(name, folder)
    if not isinstance(call, torch.nn.Module):
        return []
    parameters = [each for each in call.parameters() if each.requires_grad]
    if not parameters:
        return []
    optimizer = torch.optim.SGD(parameters, lr=1e-2, momentum=0.9)
    inputs = [each.detach() for each in inputs]
    if not any(each.requires_grad for each in _floats(call(*inputs))):
        return []

    def step(*inputs: Any) -> Any:
        optimizer.zero_grad()
        loss = sum((each * each).mean() for each in _floats(call(*inputs)) if each.requires_grad)
        loss.backward()
        optimizer.step()
        return loss.detach()

    run = torch.compile(step, fullgraph=True) if compiled else step
    return [run(*inputs).numpy().copy() for _ in range(3)]


def run(name: str, folder: Path, compiled: bool) -> dict[str, Any]:
    """All that is compared of a case."""
    outputs, gradients = _gradients(name, folder, compiled)
    losses = _losses(name, folder, compiled) if gradients else []
    return {"outputs": outputs, "gradients": gradients, "losses": losses}


def _told(error: Exception) -> str:
    """The first line of an error; files are named as in their package."""
    line = f"{type(error).__name__}: {error}".partition("\n")[0]
    return re.sub(r"/\S*/site-packages/", "", line)[:160]


def main() -> None:
    library, folder, names = sys.argv[1], Path(sys.argv[2]), sys.argv[3:]
    warnings.simplefilter("ignore")
    if library == "tgraph":
        import tgraph

        tgraph.compat.as_torch()
    else:
        sys.meta_path.insert(0, _EmptyModules())  # type: ignore[arg-type]
    for name in names:
        for way in ("torch",) if library == "torch" else ("eager", "compiled"):
            answer: dict[str, Any]
            try:
                answer = run(name, folder, way == "compiled")
            except Exception as error:
                traceback.print_exc()
                answer = {"error": _told(error)}
            (folder / f"{name}.{way}").write_bytes(pickle.dumps(answer))


main()
