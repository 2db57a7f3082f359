"""Short programs of TVM: a function of Relax, and its gradient."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from generators.graph import Graph
from generators.graphs import Case
from generators.inputs import Arrays
from harness.dialects import RELAX
from harness.findings.upstream import runners
from harness.findings.upstream.literals import literal
from harness.findings.upstream.parts import by_name, head, inputs_of
from harness.findings.upstream.seen import Seen
from oracles.derivatives.gradient import differentiable_leaves, weight_name, weights

_PASSES = (
    "CanonicalizeBindings, EliminateCommonSubexpr, FuseTransposeMatmul, CombineParallelMatmul",
    "CanonicalizeBindings, EliminateCommonSubexpr, LegalizeOps, FoldConstant",
)
"""Passes that TVM's default pipeline leaves out, and that levels of ours take."""


def forward(case: Case, seen: Seen) -> Iterator[list[str]]:
    """Compiled by TVM's default pipeline, or by it after passes that levels of ours take."""
    graph = case.graph
    lines = [*_function(graph, [f"y = bb.emit_output({graph.outputs[seen.output]})"], "y"), "module = bb.get()"]
    names = [leaf.name for leaf in graph.parameters]
    if names:
        held = by_name(names, (literal(case.arrays[name], "numpy") for name in names))
        lines.append(f'module = relax.transform.BindParams("main", {held})(module)')
    tail = runners.relax(inputs_of(case), seen)
    yield [*lines, *tail]
    for passes in _PASSES:
        named = ", ".join(f'"{name}"' for name in passes.split(", "))
        yield [*lines, f"for name in ({named}):", "    module = getattr(relax.transform, name)()(module)", *tail]


def gradient(arrays: Arrays, graph: Graph, seen: Seen) -> Iterator[list[str]]:
    """The adjoint of the outputs' sum, each element with its weight."""
    terms = [f"relax.op.sum(relax.op.multiply({name}, {weight_name(name)}))" for name in weights(graph)]
    total = terms[0]
    for term in terms[1:]:
        total = f"relax.op.add({total}, {term})"
    seeds = [(weight_name(name), graph.types[name]) for name in weights(graph)]
    leaf = differentiable_leaves(graph)[seen.output].name
    given = [leaf.name for leaf in graph.leaves] + [name for name, _ in seeds]
    yield [
        *_function(graph, [f"total = bb.emit_output({total})"], "total", seeds),
        f'module = relax.transform.Gradient("main", [{leaf}])(bb.get())',
        *runners.relax([literal(arrays[name], "numpy") for name in given], seen, "[1][0]", "main_adjoint"),
    ]


def _function(graph: Graph, last: Sequence[str], result: str, further: Sequence[tuple] = ()) -> list[str]:
    """Lines that bind `bb` with a function `main`. last: lines of its block behind the nodes; further: names and types
    of arguments behind the leaves."""
    typed = [*((leaf.name, leaf.type) for leaf in graph.leaves), *further]
    return [
        *head(graph, RELAX),
        "bb = relax.BlockBuilder()",
        *(f'{name} = relax.Var("{name}", relax.TensorType({of.shape}, "{of.dtype}"))' for name, of in typed),
        f'with bb.function("main", [{", ".join(name for name, _ in typed)}]):',
        "    with bb.dataflow():",
        *(f"        {RELAX.line.format(name=n.name, expression=RELAX.node(graph, n))}" for n in graph.nodes),
        *(f"        {line}" for line in last),
        f"    bb.emit_func_output({result})",
    ]
