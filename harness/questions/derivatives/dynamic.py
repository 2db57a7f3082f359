"""Gradients of what was compiled once with a symbolic dimension, at several sizes. The programs stand in
`harness/backends/programs/dynamic_gradient.py`."""

from __future__ import annotations

from generators.graph import Graph, TensorType
from generators.graphs import SMOOTH, Case
from harness.backends import Target
from harness.backends.programs import gradient as gradient_programs
from harness.questions import dynamic as at_sizes
from harness.questions.derivatives.gradient import GRADIENT, differentiable
from harness.questions.dynamic import DYNAMIC
from harness.questions.forward import FORWARD
from harness.questions.question import Question
from oracles.derivatives import dynamic
from oracles.derivatives.gradient import differentiable_leaves
from oracles.judge.outcome import Rejected
from oracles.questions import dynamic as sizes

_SYMBOLS = ("jax", "tvm")
"""Frameworks that want to be told how each size follows from n."""


def _gradients(graph: Graph) -> list[TensorType]:
    return [leaf.type for leaf in differentiable_leaves(graph)]


def program(target: Target, graph: Graph) -> str:
    """One program: the gradients, compiled for a symbolic dimension, and their runs at all sizes."""
    plan = sizes.plan(graph)
    assert plan is not None  # `unsupported` says so before
    load = gradient_programs.head(plan.first) + f"\n{target.question_loads[dynamic.NAME].strip()}\n\n{at_sizes.RUNS}"
    return at_sizes.text(target, graph, load, dynamic.taken, _gradients)


def unsupported(target: Target, graph: Graph) -> str | None:
    """Why a target cannot be asked."""
    if dynamic.NAME not in target.question_loads:
        return "no program of its gradients at several sizes is written"
    why = at_sizes.sized(target, graph, lambda one: gradient_programs.unsupported(target, one))
    plan = sizes.plan(graph)
    if why or plan is None or target.library not in _SYMBOLS:
        return why
    shapes = sizes.arguments(plan, dynamic.taken).values()
    return (
        "a result has a size that is no multiple of n and a constant"
        if any("?" in dims for _, dims in shapes)
        else None
    )


def _accepts(graph: Graph) -> bool:
    return bool(differentiable_leaves(graph)) and at_sizes.accepts(graph)


def prepare(case: Case) -> Case:
    """What of a drawn case can be asked."""
    return sizes.changing(case, _accepts)


def refusal(target: Target, outcome: Rejected) -> str | None:
    """The documented reason why a framework refused either the symbolic dimension or the derivative."""
    return at_sizes.refusal(target, outcome) or GRADIENT.refusal(target, outcome)


DYNAMIC_GRADIENT = Question(
    dynamic.NAME,
    dynamic.expect,
    program,
    unsupported,
    dynamic.arrays,
    prepare=prepare,
    refusal=refusal,
    inherits=(FORWARD.name, GRADIENT.name, DYNAMIC.name),
    style=SMOOTH,
    concerns=differentiable,
    resizes=True,
    joins=lambda graph: None,
    fills=1,
)

QUESTIONS = (DYNAMIC_GRADIENT,)
