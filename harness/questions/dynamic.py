"""Compiled once with a symbolic dimension, run at several sizes."""

from __future__ import annotations

from generators.graph import Graph
from generators.graphs import Case
from harness.backends import Target
from harness.backends.target.documented_refusals import Patterns, refusal_of
from harness.backends.target.target import types_text
from harness.dialects import DIALECTS
from harness.dialects.dialect import Dialect
from harness.questions.forward import FORWARD
from harness.questions.question import Question
from oracles.questions import dynamic

_LOAD = """
def load(parameters):
    compiled = compile_once(parameters)

    def run(*inputs):
        outputs, count = [], len(ARGUMENTS)
        for i, size in enumerate(SIZES):
            outputs += compiled(size, *inputs[i * count : (i + 1) * count])
        return outputs

    return run
"""

_HELPER = "a helper of the dialect computes with static sizes"

_REFUSALS: Patterns = (
    ("tensorflow", "TypeError: .*NoneType", _HELPER),
    ("tvm", r"TypeError: int\(\) argument must be .*'Var'", _HELPER),
    (
        "torch",
        "Constraints violated|ConstraintViolationError",
        "n is constrained or specialised (ConstraintViolationError)",
    ),
    ("tensorflow", "ValueError: None values not supported", _HELPER),
    ("jax", "TypeError: '_DimExpr' object cannot be interpreted as an integer", _HELPER),
    ("jax", "InconclusiveDimensionOperation", "sizes are compared that n leaves open (InconclusiveDimensionOperation)"),
    ("jax", "Shape polymorphism is supported for jnp.pad", "jnp.pad reflects a symbolic dimension only with bounds"),
)
"""What a framework documents that it cannot compile with
a symbolic dimension."""


def program(target: Target, graph: Graph) -> str:
    """One program: the model, compiled for a symbolic dimension, and its runs at all sizes."""
    plan = dynamic.plan(graph)
    assert plan is not None  # `unsupported` says so before
    first, graphs = plan.first, plan.graphs

    def shape(name: str, dims: tuple[int, ...]) -> tuple[int | str, ...]:
        return tuple("n" if (name, axis) in plan.places else d for axis, d in enumerate(dims))

    results = []
    for name in first.outputs:
        types = [g.types[name] for g in graphs.values()]
        dims = zip(*(t.shape for t in types), strict=True)
        results.append((types[0].dtype, tuple(d[0] if len(set(d)) == 1 else None for d in dims)))
    inputs = ((dynamic.at(i.name, size), i.type) for size, g in graphs.items() for i in g.inputs)
    outputs = [(t.dtype, t.shape) for g in graphs.values() for t in (g.types[name] for name in g.outputs)]
    imports, load = target.imports_and_load(first, f"{target.symbolic.strip()}\n\n{_LOAD}")
    header = [
        imports,
        "",
        f"TARGET = {target.name!r}",
        "# what the model takes: n changes from run to run; the first size is compiled for",
        f"ARGUMENTS = { ({i.name: (i.type.dtype, shape(i.name, i.type.shape)) for i in first.inputs})!r}",
        f"SIZES = {plan.sizes!r}",
        "# None: changes from run to run",
        f"RESULTS = {results!r}",
        "# name: (dtype, shape), of all runs in order",
        f"INPUTS = {types_text(inputs)}",
        f"PARAMETERS = {types_text((i.name, i.type) for i in first.parameters)}",
        f"OUTPUTS = {outputs!r}",
    ]
    return target.with_switches("\n".join(header) + "\n\n\n" + target.dialect.source(first, load))


def unsupported(target: Target, graph: Graph) -> str | None:
    """Why a target cannot be asked."""
    if not target.symbolic:
        return "this target has no way of compiling a symbolic dimension"
    plan = dynamic.plan(graph)
    if plan is None:
        return "no dimension of the graph can change"
    for one in plan.graphs.values():
        why = target.unsupported(one)
        if why:
            return why
    if not _same_text(target.dialect, plan):
        return f"the {target.dialect.name} program states the size"
    return None


def _same_text(dialect: Dialect, plan: dynamic.Plan) -> bool:
    return len({dialect.source(graph, "") for graph in plan.graphs.values()}) == 1


def _accepts(graph: Graph) -> bool:
    """Can some dialect express the graph without stating the size?"""
    plan = dynamic.plan(graph)
    expressible = [d for d in DIALECTS.values() if plan and not any(map(d.unsupported, plan.graphs.values()))]
    return any(plan and _same_text(dialect, plan) for dialect in expressible)


def prepare(case: Case) -> Case:
    """What of a drawn case can be asked."""
    return dynamic.changing(case, _accepts)


refusal = refusal_of(_REFUSALS)
"""The documented reason why a framework refused to compile a symbolic dimension."""


DYNAMIC = Question(
    dynamic.NAME,
    dynamic.expect,
    program,
    unsupported,
    dynamic.arrays,
    prepare=prepare,
    refusal=refusal,
    inherits=(FORWARD.name,),
    resizes=True,
    joins=lambda graph: None,
    fills=1,
)

QUESTIONS = (DYNAMIC,)
