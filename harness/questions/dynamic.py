"""Compiled once with a symbolic dimension, run at several sizes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from generators.graph import Graph, TensorType
from generators.graphs import Case
from harness.backends import Target
from harness.backends.target.documented_refusals import Patterns, refusal_of
from harness.backends.target.target import types_text
from harness.dialects import DIALECTS
from harness.dialects.dialect import Dialect
from harness.questions.forward import FORWARD
from harness.questions.question import Question
from oracles.questions import dynamic

RUNS = """
def load(parameters):
    compiled = compile_once(parameters)

    def run(*inputs):
        outputs, count = [], len(ARGUMENTS)
        for i, size in enumerate(SIZES):
            outputs += compiled(size, *inputs[i * count : (i + 1) * count])
        return outputs

    return run
"""
"""What follows the text of `compile_once`."""

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
    ("tensorflow", r"TypeError: Failed to convert elements of \[.*None.*\] to Tensor", _HELPER),
    ("jax", "TypeError: '_DimExpr' object cannot be interpreted as an integer", _HELPER),
    ("jax", r"TracerBoolConversionError: [\s\S]*\(window_table\)", _HELPER),
    ("jax", "Shape polymorphism for FFT with non-constant fft_length", "it transforms no axis of a symbolic size"),
    (
        "torch",
        "aten.fake_quantize_per_channel_affine_cachemask",
        "scales by channel are looked at, which a traced tensor does not allow",
    ),
    ("jax", "InconclusiveDimensionOperation", "sizes are compared that n leaves open (InconclusiveDimensionOperation)"),
    (
        "jax",
        r"ValueError: Incompatible types for broadcasting: input type=\S*\[.*min\(n",
        "sizes are compared that n leaves open (of a slice that is written elsewhere)",
    ),
    ("jax", "Shape polymorphism is supported for jnp.pad", "jnp.pad reflects a symbolic dimension only with bounds"),
)
"""What a framework documents that it cannot compile with
a symbolic dimension."""


def program(target: Target, graph: Graph) -> str:
    """One program: the model, compiled for a symbolic dimension, and its runs at all sizes."""
    load = f"{target.symbolic.strip()}\n\n{RUNS}"
    return text(target, graph, load, dynamic.taken, lambda one: [one.types[name] for name in one.outputs])


def text(
    target: Target,
    graph: Graph,
    load: str,
    taken: Callable[[Graph], Mapping[str, TensorType]],
    returned: Callable[[Graph], Sequence[TensorType]],
) -> str:
    """A program with this `load`. taken, returned: what the program takes beside parameters, and returns, of the graph
    at one size."""
    plan = dynamic.plan(graph)
    assert plan is not None  # `unsupported` says so before
    first, graphs = plan.first, plan.graphs
    results = []
    for types in zip(*map(returned, graphs.values()), strict=True):
        dims = zip(*(t.shape for t in types), strict=True)
        results.append((types[0].dtype, tuple(d[0] if len(set(d)) == 1 else None for d in dims)))
    inputs = ((dynamic.at(name, size), t) for size, g in graphs.items() for name, t in taken(g).items())
    imports, load = target.imports_and_load(first, load)
    header = [
        imports,
        "",
        f"TARGET = {target.name!r}",
        "# what the model takes: n changes from run to run; the first size is compiled for",
        f"ARGUMENTS = {dynamic.arguments(plan, taken)!r}",
        f"SIZES = {plan.sizes!r}",
        "# None: changes from run to run",
        f"RESULTS = {results!r}",
        "# name: (dtype, shape), of all runs in order",
        f"INPUTS = {types_text(inputs)}",
        f"PARAMETERS = {types_text((i.name, i.type) for i in first.parameters)}",
        f"OUTPUTS = {[(t.dtype, t.shape) for g in graphs.values() for t in returned(g)]!r}",
    ]
    return target.with_switches("\n".join(header) + "\n\n\n" + target.dialect.source(first, load))


def unsupported(target: Target, graph: Graph) -> str | None:
    """Why a target cannot be asked."""
    if not target.symbolic:
        return "this target has no way of compiling a symbolic dimension"
    return sized(target, graph, target.unsupported)


def sized(target: Target, graph: Graph, why_not: Callable[[Graph], str | None]) -> str | None:
    """Why a target cannot run the graph at several sizes by one text. why_not: why it cannot at one."""
    plan = dynamic.plan(graph)
    if plan is None:
        return "no dimension of the graph can change"
    for one in plan.graphs.values():
        why = why_not(one)
        if why:
            return why
    if not _same_text(target.dialect, plan):
        return f"the {target.dialect.name} program states the size"
    return None


def _same_text(dialect: Dialect, plan: dynamic.Plan) -> bool:
    return len({dialect.source(graph, "") for graph in plan.graphs.values()}) == 1


def accepts(graph: Graph) -> bool:
    """Can some dialect express the graph without stating the size?"""
    plan = dynamic.plan(graph)
    expressible = [d for d in DIALECTS.values() if plan and not any(map(d.unsupported, plan.graphs.values()))]
    return any(plan and _same_text(dialect, plan) for dialect in expressible)


def prepare(case: Case) -> Case:
    """What of a drawn case can be asked."""
    return dynamic.changing(case, accepts)


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
    parts=lambda case, place: (dynamic.part(case, place),),
    joins=lambda graph: None,
    fills=1,
)

QUESTIONS = (DYNAMIC,)
