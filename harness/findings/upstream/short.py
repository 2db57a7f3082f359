"""A short program that shows a fault, of at most 30 lines as a rule: inputs as literals, the operators as a user writes
them, expected and got side by side, and one assertion. Several ways to write it are offered, the shortest first, since
what a target of ours does step by step a user gets by one call; whoever runs them keeps the first that shows the
fault."""

from __future__ import annotations

import re
from collections.abc import Iterator

from generators.graphs import Case
from harness.backends import Target
from harness.findings.upstream import runners
from harness.findings.upstream.derived import WRITTEN, derived
from harness.findings.upstream.literals import NoProgramError
from harness.findings.upstream.onnx_nodes import model_lines, model_of
from harness.findings.upstream.parts import (
    DECORATORS,
    FAMILIES,
    bound,
    ending,
    feeds_of,
    function,
    head,
    inputs_of,
    statements,
)
from harness.findings.upstream.quantised import quantised, quantiser_not_written
from harness.findings.upstream.relax import forward
from harness.findings.upstream.routes import (
    EXACT_LIMITS,
    conversions,
    tensorflow_function,
    to_tflite,
    traced,
    way_not_written,
)
from harness.findings.upstream.seen import Seen, checks
from harness.findings.upstream.tidy import readable, tidy
from harness.questions.conversion import CONVERSION
from harness.questions.forward import FORWARD
from harness.questions.quantisers import QUANTISATION

AS_DRAWN = (FORWARD.name, "quantized", "metamorphic")
"""Questions whose programs return what the graph says."""

PREFERRED = (
    *("torch-eager", "tf-eager", "jax-jit", "jax-eager", "ort-all", "openvino", "litert-xnnpack", "tvm-O2", "tvm-O1"),
    *("torch-inductor", "tf-graph", "tf-xla", "ort-disable", "litert-builtin", "tvm-O3", "tvm-O0"),
)
"""Targets that need the fewest lines first."""


def why_not(question: str, target: Target) -> str | None:
    """Why no program is written of what this question shows on a target, whatever the graph; None: one is tried."""
    if question == CONVERSION.name:
        return way_not_written(target)
    if question == QUANTISATION.name:
        return quantiser_not_written(target)
    written = WRITTEN.get(question, {})
    if question not in AS_DRAWN and not written:
        return f"it is shown by the question {question!r}, of which none is written"
    if target.name in DECORATORS and (not written or target.dialect.name in written):
        return None
    if target.name == "tvm-fx" and not written:
        return None
    if re.fullmatch(r"tvm-O\d", target.name) and (not written or question == "gradient"):
        return None
    if not written and (target.name in runners.LEVELS or target.name in runners.KERNELS or target.name == "openvino"):
        return None
    return f"none is written for {target.name}" + (f" and the question {question!r}" if written else "")


def programs(target: Target, case: Case, seen: Seen, question: str = FORWARD.name) -> Iterator[str]:
    """Programs that may show what was seen, the shortest first. question: that showed it. Raises NoProgramError where
    none can be written."""
    why = why_not(question, target)
    if why:
        raise NoProgramError(why)
    if question == CONVERSION.name:
        bodies = conversions(target, case, seen)
    elif question == QUANTISATION.name:
        bodies = quantised(target, case, seen)
    elif question in WRITTEN:
        bodies = derived(question, target, case, seen)
    elif target.name in DECORATORS:
        bodies = _function(target, case, seen)
    elif target.name in runners.LEVELS or target.name == "openvino":
        bodies = _onnx(target, case, seen)
    elif target.name in runners.KERNELS:
        bodies = _litert(target, case, seen)
    else:
        bodies = traced(case, seen) if target.name == "tvm-fx" else forward(case, seen)
    for body in bodies:
        yield readable(tidy(body))


def _function(target: Target, case: Case, seen: Seen) -> Iterator[list[str]]:
    """Statements as they are where nothing is compiled, else a function of the inputs; PyTorch's parameters are inputs,
    too, the others' are constants of the function."""
    graph, dialect = case.graph, target.dialect
    decorator, maker = DECORATORS[target.name], dialect.name
    lines = statements(graph, dialect)
    returned = graph.outputs if seen.symptom == "outputs" else (graph.outputs[seen.output],)
    before = [*head(graph, dialect), *bound(case.arrays, [leaf.name for leaf in graph.leaves], maker)]
    tail = checks(seen, FAMILIES[maker])
    if not decorator:
        first, last = ending(lines, returned)
        array = last if seen.symptom == "outputs" else FAMILIES[maker].array.format(last)
        yield [*before, *first, f"y = {array}", *tail]
        return
    inputs = [leaf.name for leaf in (graph.leaves if maker == "torch" else graph.inputs)]
    yield [*before, decorator, *function(lines, returned, inputs), f"y = f({', '.join(inputs)})", *tail]


def _litert(target: Target, case: Case, seen: Seen) -> Iterator[list[str]]:
    """A function of TensorFlow, converted, and run by the interpreter."""
    yield [
        *tensorflow_function(case, (case.graph.outputs[seen.output],)),
        *to_tflite(EXACT_LIMITS),
        *runners.litert(target.name, inputs_of(case), seen),
    ]


def _onnx(target: Target, case: Case, seen: Seen) -> Iterator[list[str]]:
    """A model of nodes, run by ONNX Runtime at the target's level, or by OpenVINO."""
    model, given = model_of(case), feeds_of(case)
    for made in (model.bare(), model):
        if target.name == "openvino":
            run = runners.openvino("core.read_model(model.SerializeToString())", given, seen)
        else:
            run = runners.onnxruntime(target.name, given, seen)
        yield [*model_lines(made), *run]
