"""Classes that users derive from Tensor: what operations give of them is of the class, too."""

from __future__ import annotations

import copy
import io
import pickle
from typing import Any

import pytest
from opcases import CASES

import tgraph as tg
from tgraph.core import pytree


class Celsius(tg.Tensor):
    def fahrenheit(self) -> Any:
        return self * 1.8 + 32


class Body(Celsius):
    pass


class Other(tg.Tensor):
    pass


class Tagged(tg.Tensor):
    tag: Any

    def __new__(cls, data: Any, tag: Any) -> Any:
        made: Any = super().__new__(cls, data)
        made.tag = tag
        return made


def kinds(found: Any) -> set[type]:
    return {type(each) for each in pytree.leaves(found) if isinstance(each, tg.Tensor)}


def test_every_operation_passes_the_class_on() -> None:
    for case in CASES:
        if case.name in ("equal", "allclose"):  # which give a bool
            continue
        tensors = [tg.tensor(each).as_subclass(Celsius) for each in case.arrays(case.dtypes[0])]
        if tensors:
            found = kinds(case.function(*tensors))
            assert found == {Celsius}, f"{case.name} gives {found}"


def test_what_makes_tensors_like_another_one() -> None:
    x = tg.ones(2, 3).as_subclass(Celsius)
    made = [
        tg.zeros_like(x), tg.rand_like(x), x.new_tensor([1]), x.new_zeros(2), x.data, x.detach(),
        x.nonzero(), x[0], x[x > 0], x.cpu(), x.to("meta"), [*x], tg.utils.checkpoint.checkpoint(
            tg.sin, x.clone().requires_grad_(), use_reentrant=False), tg.nn.Linear(3, 2)(x),
        tg.ones(3) + x, tg.cat([tg.ones(2, 3), x]), x.sub_(1), x.view(tg.int32), x.T.as_strided(
            (2,), (1,)), tg.vmap(tg.sin)(x),
    ]  # fmt: skip
    assert kinds(made) == {Celsius}
    assert kinds([tg.tensor(x.numpy()), x.as_subclass(tg.Tensor) + 1, tg.Tensor(x)]) == {tg.Tensor}
    with pytest.warns(UserWarning, match="copy construct"):
        assert type(tg.tensor(x)) is tg.Tensor


def test_of_several_classes_the_derived_one() -> None:
    x, y = tg.ones(2).as_subclass(Celsius), tg.ones(2).as_subclass(Body)
    assert kinds([x + y, y * x]) == {Body}
    with pytest.raises(TypeError, match="operands of the classes Celsius and Other: expected one"):
        x + tg.ones(2).as_subclass(Other)


def test_a_view_of_another_class_has_gradients() -> None:
    x = tg.tensor([0.0, 100.0], requires_grad=True)
    y = x.as_subclass(Celsius)
    assert y._base is x and not y.is_leaf and y.data_ptr() == x.data_ptr()
    assert repr(y.detach().fahrenheit()) == "Celsius([ 32., 212.])"
    y.fahrenheit().sum().backward()
    assert type(x.grad) is tg.Tensor and x.grad.tolist() == pytest.approx([1.8, 1.8])


def test_compiled_functions_keep_classes() -> None:
    @tg.compile
    def f(x: Any) -> Any:
        return x.fahrenheit(), x[0], x.as_subclass(tg.Tensor), (x * 2).as_subclass(Body)

    x = tg.tensor([0.0, 100.0]).as_subclass(Celsius)
    for _ in range(2):
        assert [type(each) for each in f(x)] == [Celsius, Celsius, tg.Tensor, Body]
    assert type(f(x.as_subclass(Body))[0]) is Body


def test_construction_copies_and_files() -> None:
    x = Tagged([1.0, 2.0], "a")
    file = io.BytesIO()
    tg.save([x, tg.ones(2, device="meta").as_subclass(Other)], file)
    file.seek(0)
    loaded, empty = tg.load(file, weights_only=False)
    for each in (copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x)), loaded):
        assert type(each) is Tagged and each.tag == "a" and each.tolist() == [1.0, 2.0]
    assert not hasattr(x + 1, "tag") and copy.copy(x).data_ptr() == x.data_ptr()
    assert type(empty) is Other and empty.is_meta
    x.__class__ = Other
    assert type(x.exp()) is Other
    made = tg.Tensor._make_subclass(Other, tg.ones(1), True)
    assert repr(made) == "Other([1.], requires_grad=True)"


def test_parameters_are_not_passed_on() -> None:
    class Own(tg.nn.Parameter):
        def __new__(cls, data: Any, tag: str) -> Any:
            made: Any = super().__new__(cls, data, requires_grad=False)
            made.tag = tag
            return made

    p: Any = Own(tg.ones(1), "a")
    assert p.tag == "a" and not p.requires_grad and kinds([p + 1, p[0]]) == {tg.Tensor}
    assert repr(p) == "Parameter containing:\nParameter(Own([1.]))"
    with pytest.raises(TypeError, match=r"Parameter\(\) expected a plain Tensor, got Other"):
        tg.nn.Parameter(tg.ones(1).as_subclass(Other))


@pytest.mark.parametrize("name", ["__torch_function__", "__torch_dispatch__"])
def test_functions_are_not_overridden(name: str) -> None:
    cls = type("Overriding", (tg.Tensor,), {name: classmethod(lambda cls, *args: None)})
    for make in (cls, tg.ones(1).as_subclass):
        with pytest.raises(TypeError, match=f"Overriding has {name}: functions are not overridden"):
            make(cls) if make is not cls else make(1)
    with pytest.raises(TypeError, match="does not inherit from Tensor"):
        tg.ones(1).as_subclass(int)  # type: ignore[type-var]
