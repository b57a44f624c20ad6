"""Random programs that compute, make views and write in place, as text that two libraries run."""

from __future__ import annotations

import random
from typing import Any

SIZE = 3


class Writer:
    """Writes one program: statements over named tensors, whose dimensions it keeps track of."""

    def __init__(self, seed: int) -> None:
        self.pick = random.Random(seed)
        self.shapes: dict[str, tuple[int, ...]] = dict.fromkeys(("x", "w", "a", "b"), (SIZE, SIZE))
        self.lines: list[str] = []
        # Of views: whose memory they show, and whether it has gaps, or will when it is cut.
        self.roots: dict[str, str] = {}
        self.gaps: set[str] = set()
        self.transposed: set[str] = set()
        self.overlapping: set[str] = set()
        self.written: set[str] = {"a", "b"}  # what may be: leaves that require grad may not

    def name(self, shape: tuple[int, ...]) -> str:
        made = f"t{len(self.shapes)}"
        self.shapes[made] = shape
        return made

    def any(self) -> str:
        """A tensor, rather a late one."""
        names = list(self.shapes)
        return self.pick.choice(names[-4:] if self.pick.random() < 0.6 else names)

    def fitting(self, shape: tuple[int, ...]) -> str:
        """A tensor that broadcasts to `shape`, or a number."""
        found = [
            name for name, its in self.shapes.items()
            if len(its) <= len(shape) and all(a in (1, b) for a, b in zip(its[::-1], shape[::-1]))
        ]  # fmt: skip
        return self.pick.choice(found[-5:]) if found and self.pick.random() < 0.8 else "0.7"

    def beside(self, target: str, operand: str) -> str:
        """The operand, or a copy: with gaps in shared memory the order of work would show."""
        shared = self.roots.get(target, target) == self.roots.get(operand, operand)
        gaps = target in self.gaps or operand in self.gaps
        gaps = gaps or self.shapes[target] != self.shapes.get(operand)  # read several times
        return f"{operand}.clone()" if shared and gaps and target != operand else operand

    # --- statements ---

    def compute(self) -> None:
        a = self.any()
        shape = self.shapes[a]
        text = self.pick.choice(
            [
                "{a} * {b}", "{a} + {b}", "{a} - {b}", "{a} / ({b} * {b} + 1)", "{a} * 1",
                "{a}.sin()", "{a}.exp()", "{a}.tanh()", "{a}.sigmoid()", "{a}.abs()",
                "({a} * {a} + 1).sqrt()", "{a}.clone()", "{a} ** 2", "{a}.relu()",
                "T.where({a} > 0, {a}, {a} * 0.1)", "{a}.sum() * {a}", "{a}.clamp(-1, 1)",
                "{a}.softmax(-1)", "{a}.cumsum(-1)", "{a}.flip(0)", "T.cat([{a}, {a} * 2])[-{n}:]",
                "T.stack([{a}, {a}.cos()]).sum(0)", "{a} * {a}.amax()",
            ]
        )  # fmt: skip
        if len(shape) == 2 and self.pick.random() < 0.15:
            text = "{a} @ {a}.t()"
            shape = (shape[0], shape[0])
        if not shape:  # which has no dimension for some of them
            text = self.pick.choice(["{a} * {b}", "{a}.sin()", "{a} ** 2"])
        line = text.format(a=a, b=self.fitting(shape), n=shape[0] if shape else 1)
        made = self.name(shape)
        self.lines.append(f"{made} = {line}")
        self.written.add(made)

    def view(self) -> None:
        a = self.any()
        shape = self.shapes[a]
        choices: list[tuple[str, tuple[int, ...]]] = [
            (f"{a}.detach()", shape), (f"{a}.data", shape), (f"{a}[None]", (1, *shape)),
            (f"{a}.unsqueeze(-1)", (*shape, 1)), (f"{a}.expand(2, *{a}.shape)", (2, *shape)),
        ]  # fmt: skip
        if shape:
            numel = 1
            for size in shape:
                numel *= size
            choices += [
                (f"{a}[0]", shape[1:]),
                (f"{a}.reshape(-1)", (numel,)),
                (f"{a}[..., ::2]", (*shape[:-1], (shape[-1] + 1) // 2)),
                (f"{a}.select(-1, -1)", shape[:-1]),
                (f"{a}.narrow(0, 0, 1)", (1, *shape[1:])),
                (f"{a}.unfold(-1, 1, 2)", (*shape[:-1], (shape[-1] + 1) // 2, 1)),
                (f"{a}.split(1)[-1]", (1, *shape[1:])),
                (f"{a}.unbind(-1)[0]", shape[:-1]),
                (f"{a}.movedim(0, -1)", (*shape[1:], shape[0])),
            ]
            if shape[0] > 1:
                choices += [
                    (f"{a}[1:]", (shape[0] - 1, *shape[1:])),
                    (f"{a}[:-1]", (shape[0] - 1, *shape[1:])),
                ]
        if len(shape) == 2:
            choices += [(f"{a}.t()", shape[::-1]), (f"{a}.diagonal()", (min(shape),))]
        line, shape = self.pick.choice(choices)
        made = self.name(shape)
        self.lines.append(f"{made} = {line}")
        self.roots[made] = self.roots.get(a, a)
        cut = any(each in line for each in ("[1:]", "[:-1]", "[0]", "narrow", "split"))
        sparse = any(each in line for each in ("::2", "diagonal", "select", "unfold", "unbind"))
        if a in self.gaps or sparse or (a in self.transposed and cut):
            self.gaps.add(made)
        if (a in self.transposed) is not (".t()" in line or "movedim" in line):
            self.transposed.add(made)
        if a in self.overlapping or "expand" in line:  # which nobody writes
            self.overlapping.add(made)
        elif a in self.written or ".detach()" in line or ".data" in line:
            self.written.add(made)

    def write(self) -> None:
        names = [name for name in self.shapes if name in self.written]
        a = self.pick.choice(names[-5:])
        shape = self.shapes[a]
        line = self.pick.choice(
            [
                "{a}.mul_({b})", "{a}.add_({b})", "{a}.sub_({b})", "{a}.mul_(2)", "{a}.add_(1)",
                "{a}.sin_()", "{a}.exp_()", "{a}.tanh_()", "{a}.sigmoid_()", "{a}.cos_()",
                "{a}.copy_({b} * 1)", "{a}.copy_({c})", "{a}.fill_(0.5)", "{a}.zero_()",
                "{a}.neg_()", "{a}.pow_(2)", "{a}.clamp_(-1, 1)", "{a}.addcmul_({c}, {d})",
                "{a}.lerp_({c}, 0.3)", "{a}[...] = {b}", "{a} += {b}", "{a} *= {b}",
                "{a}.masked_fill_({a} > 0.5, 0.1)", "{a}.div_({b} * {b} + 1)", "{a}.abs_()",
            ]
        )  # fmt: skip
        full = [name for name, its in self.shapes.items() if its == shape]
        b, c, d = (
            self.beside(a, name)
            for name in (self.fitting(shape), self.pick.choice(full), self.pick.choice(full))
        )
        if shape and self.pick.random() < 0.25:
            line = self.pick.choice(
                [
                    "{a}[0] = 0.3", "{a}[0] *= 2", "{a}[1:] = {a}[1:] * 2",
                    "{a}[T.tensor([0])] = {c}[:1] * 2", "{a}[{a} > 0.5] = 0.2",
                    "{a}.index_add_(0, T.tensor([0, 0]), T.cat([{c}[:1] * 2, {d}[:1] * 3]))",
                    "{a}.index_fill_(-1, T.tensor([0]), 0.3)", "{a}[..., -1] += {c}[..., 0] * 1",
                    "{a}[{a} > 0.5] *= 2", "{a}.index_copy_(0, T.tensor([0]), {c}[-1:] * 2)",
                    "{a}.copy_({c}.flip(-1))", "{a}.cumsum_(0)", "{a}.squeeze_(0).unsqueeze_(0)"
                    if shape[0] == 1 else "{a}.addcdiv_({c}, {d} * {d} + 1)",
                ]
            )  # fmt: skip
        # PyTorch learns that a view has another history now when it is asked, not by writing to it.
        self.lines.append(f"{a}.grad_fn")
        line = line.format(a=a, b=b, c=c, d=d)
        if self.pick.random() < 0.2:
            line = f"with T.no_grad(): {line}"
        self.lines.append(line)

    def program(self) -> str:
        for _ in range(self.pick.randrange(3, 9)):
            statement = self.pick.random()
            if statement < 0.35:
                self.compute()
            elif statement < 0.55:
                self.view()
            else:
                self.write()
        late = list(self.shapes)[-4:]
        ending = " + ".join(f"({name} * {name}).sum()" for name in late)
        if self.pick.random() < 0.5:
            ending = " + ".join(f"{name}.sum()" for name in late)
        self.lines.append(f"total = {ending}")
        if self.pick.random() < 0.2:
            self.lines += ["if total.requires_grad: total.backward()", "total = total.detach()"]
        self.lines.append(f"return [total, {', '.join(late)}]")
        body = "\n".join(f"    {line}" for line in self.lines)
        return f"def program(T, x, w, a, b):\n{body}\n"


def program(seed: int) -> str:
    """The text of `program(T, x, w, a, b)`; x and w are leaves that require grad."""
    return Writer(seed).program()


def function(text: str) -> Any:
    found: dict[str, Any] = {}
    exec(text, found)
    return found["program"]
