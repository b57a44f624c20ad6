"""The driver: what it visits, when it stops, and what it says when it cannot."""

import pytest
from pass_testing import Maker, body
from random_graphs.check import program_of_seed
from tgraph.compiler.ir import Family
from tgraph.compiler.ir import primitives as p
from tgraph.compiler.passes import propagate_layouts, simplify
from tgraph.compiler.passes.rewrite import RewriteBuilder, RewriteError, apply_rules, rewrite


@rewrite(p.neg)
def double_negation(build, node):
    (x,) = node.inputs
    return x.inputs[0] if x.primitive is p.neg else None


@rewrite(p.sin)
def sin_to_cos(build, node):
    return build.apply(p.cos, node.inputs)


@rewrite(p.cos)
def cos_to_sin(build, node):
    return build.apply(p.sin, node.inputs)


@rewrite(p.exp)
def grow(build, node):
    return build.apply(p.exp, [build.apply(p.neg, node.inputs)])


@rewrite(p.exp)
def never(build, node):
    return None


@rewrite(p.tanh)
def wrap(build, node):
    return build.apply(p.neg, [node])


def chain(make, *names):
    x = make.input(3)
    for name in names:
        x = getattr(make, name)(x)
    return make.graph(x)


def test_a_rule_sees_rewritten_operands():
    graph = chain(Maker(), *["neg"] * 7)
    assert body(apply_rules(graph, [double_negation])) == "%0 = neg(%x) | return %0"


def test_replacements_are_looked_at_again():
    @rewrite(p.tan)
    def to_negations(build, node):
        return build.apply(p.neg, [build.apply(p.neg, node.inputs)])

    graph = chain(Maker(), "exp", "tan")
    rules = [to_negations, double_negation]
    assert body(apply_rules(graph, rules)) == "%0 = exp(%x) | return %0"


def test_nodes_made_inside_a_replacement_are_looked_at():
    @rewrite(p.tan)
    def hidden(build, node):
        inner = build.apply(p.neg, [build.apply(p.neg, node.inputs)])
        return build.apply(p.exp, [inner])

    graph = chain(Maker(), "tan")
    assert body(apply_rules(graph, [hidden, double_negation])) == "%0 = exp(%x) | return %0"


def test_rules_on_a_family_and_in_order():
    seen = []

    @rewrite(Family.ELEMENTWISE)
    def look(build, node):
        seen.append(node.primitive.name)

    make = Maker()
    x = make.input(3)
    make_sum = make.sum(make.exp(x), axes=(0,), keepdims=False)
    apply_rules(make.graph(make.neg(make_sum)), [look])
    assert seen == ["exp", "neg"]


def test_an_unchanged_graph_keeps_its_nodes():
    graph = chain(Maker(), "exp", "neg", "tan")
    assert apply_rules(graph, [double_negation]) is graph
    assert apply_rules(graph, [cos_to_sin]) is graph


def test_equal_nodes_of_different_builders_become_one():
    one, other = Maker(), Maker()
    x = one.input(3)
    graph = one.graph(one.exp(x), other.exp(x))
    assert graph.outputs[0] is not graph.outputs[1]
    after = apply_rules(graph, [never])
    assert after.outputs[0] is after.outputs[1]


@pytest.mark.parametrize("rules, names, culprits", [
    ([sin_to_cos, cos_to_sin], ["exp", "sin"], ["sin_to_cos on sin at user.py:2", "cos_to_sin"]),
    ([wrap], ["tanh"], ["wrap on tanh at user.py:1"]),
    ([grow], ["exp"], ["grow on exp"]),
])  # fmt: skip
def test_endless_rules_are_named(rules, names, culprits):
    with pytest.raises(RewriteError) as caught:
        apply_rules(chain(Maker(), *names), rules)
    for culprit in culprits:
        assert culprit in str(caught.value)


def test_the_limit():
    graph = chain(Maker(), *["neg"] * 6)
    apply_rules(graph, [double_negation], limit=1)
    with pytest.raises(RewriteError, match="too many rewrites; fired last: double_negation on neg"):
        apply_rules(graph, [double_negation], limit=0)


def test_new_nodes_come_from_the_line_that_they_replace():
    make = Maker()
    tangent = make.sin(make.input(3))
    after = apply_rules(make.graph(tangent), [sin_to_cos])
    assert after.outputs[0].primitive is p.cos
    assert after.outputs[0].where == tangent.where


def test_reads_are_counted():
    once, many = [], []

    @rewrite(p.neg)
    def note(build, node):
        (once if build.read_once(node.inputs[0]) else many).append(node.inputs[0].primitive.name)

    make = Maker()
    x = make.input(3)
    a, b, c = make.exp(x), make.sin(x), make.cos(x)
    graph = make.graph(make.neg(a), make.neg(b), make.tan(b), make.neg(c), c)
    apply_rules(graph, [note], count_reads=True)
    assert once == ["exp"] and many == ["sin", "cos"]


def test_rules_leave_alone_what_reads_none_of_what_they_name():
    """What they are not shown, since it reads other primitives, they would not have changed."""
    rules = {rule for rule in (*simplify.RULES, *propagate_layouts.RULES) if rule.reading}
    asked = set()
    for seed in range(250):
        graph = program_of_seed(seed).graph()
        build = RewriteBuilder()
        for node in graph.nodes:
            read = {each.primitive for each in node.inputs}
            for rule in rules:
                fits = not rule.targets.isdisjoint((node.primitive, node.primitive.family))
                if fits and rule.reading.isdisjoint(read):
                    build.node, build.asked = node, False
                    assert rule.function(build, node) is None, (rule.name, seed)
                    assert not build.asked
                    asked.add(rule)
    assert asked == rules
