"""Small graphs to draw."""

from tgraph.compiler.ir import Builder, Graph, Provenance, TensorType, input_node
from tgraph.compiler.ir import primitives as p
from tgraph.runtime.dtypes import float32

HERE = Provenance("/home/ada/train.py", 12, "step", "net.0")
THERE = Provenance("/home/ada/train.py", 30, "step", "net.1")


class Writer:
    """Writes nodes of one graph, all from one line of a program until `where` is changed."""

    def __init__(self):
        self.build = Builder()
        self.where = HERE

    def input(self, name, *shape, dtype=float32):
        return input_node(name, TensorType(shape, dtype))

    def scalar(self, value, dtype=float32):
        return self.build.full((), value, dtype)

    def __call__(self, primitive, *operands, **attrs):
        return self.build.apply(primitive, operands, attrs, self.where)

    def sum(self, operand, *axes):
        return self(p.sum_, operand, axes=axes, keepdims=True)

    def matmul(self, a, b):
        return self(p.matmul, a, b, transpose_a=False, transpose_b=False)

    def softmax(self, operand):
        top = self(p.max_, operand, axes=(1,), keepdims=True)
        raised = self(p.exp, self(p.sub, operand, top))
        return self(p.div, raised, self.sum(raised, 1))


def scaled_sum():
    """One operation with a constant, one reduction."""
    write = Writer()
    x = write.input("x", 2, 3)
    return Graph([x], [write.sum(write(p.mul, x, write.scalar(0.5)), 1)])


def layer(rows=64):
    """A matrix product, a softmax, and a weight that is updated."""
    write = Writer()
    x, w = write.input("x", rows, 128), write.input("w", 128, 16)
    y = write.softmax(write(p.mul, write.matmul(x, w), write.scalar(0.125)))
    write.where = THERE
    return Graph([x, w], [y, write(p.sub, w, write(p.mul, w, write.scalar(0.01)))])


def chain(length, places=7):
    """Additions one after another, from a few lines and modules."""
    write = Writer()
    x = value = write.input("x", 4)
    for number in range(length):
        line = number * places // length
        write.where = Provenance("loop.py", line + 1, "f", f"net.{line}")
        value = write(p.add, value, x)
    return Graph([x], [value])
