"""Short programs of quantisers that refuse a model or end the process: a model in float, the samples that the quantiser
calibrates on, its call, and what runs the result. What a wrong value is depends on every level of the quantised model,
so that no short program tells it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from generators.graphs import Case
from harness.backends import Target
from harness.findings.upstream import runners
from harness.findings.upstream.literals import NoProgramError
from harness.findings.upstream.onnx_nodes import model_lines, model_of
from harness.findings.upstream.parts import feeds_of, inputs_of
from harness.findings.upstream.routes import tensorflow_function, to_tflite
from harness.findings.upstream.seen import Seen
from harness.quantisers.tensorflow import OPTIONS

_TOLD = ("rejected", "crash", "timeout")
"""Symptoms that a program shows."""

_CALL = re.compile(r"quantization\.quantize_(\w+)\(\s*given, path, (.*?),?\s*\)\n", re.DOTALL)
"""Of ONNX Runtime's quantisers, in what a target runs."""
_NEEDED = {"static": "CalibrationDataReader, QuantFormat, QuantType", "dynamic": "QuantType"}
_SAMPLES = "converter.representative_dataset = lambda: [[{}]]"


def quantiser_not_written(target: Target) -> str | None:
    """Why no program of this quantiser is written, whatever the graph; None: one is tried."""
    if target.name in OPTIONS or (target.library == "onnxruntime" and _CALL.search(target.load)):
        return None
    return f"none is written for the quantiser {target.name}"


def quantised(target: Target, case: Case, seen: Seen) -> Iterator[list[str]]:
    """Programs of a quantiser that one is written for: of the call alone, then of what runs its result, too.
    Raises NoProgramError for a wrong value."""
    if seen.symptom not in _TOLD:
        raise NoProgramError("of values of a quantised model none is written")
    if target.name in OPTIONS:
        yield from _tflite(target.name, case, seen)
    else:
        yield from _onnxruntime(target, case, seen)


def _tflite(name: str, case: Case, seen: Seen) -> Iterator[list[str]]:
    """Calibrated on the inputs themselves, run by both sets of kernels."""
    arrays = inputs_of(case)
    lines = [line.strip() for line in OPTIONS[name].splitlines() if line.strip() != "pass"]
    options = (_SAMPLES.format(", ".join(arrays)) if "representative_dataset" in line else line for line in lines)
    made = [
        *tensorflow_function(case, case.graph.outputs),
        *to_tflite("converter.optimizations = [tf.lite.Optimize.DEFAULT]", *options),
    ]
    yield made
    given = [] if name.endswith("-io") else arrays  # what is refused does not depend on the integers that it is given
    for kernels in ("tf.lite-ref", "tf.lite-builtin"):
        yield [*made, *runners.litert(kernels, given, seen)]


def _onnxruntime(target: Target, case: Case, seen: Seen) -> Iterator[list[str]]:
    """Calibrated on the inputs themselves, run without and with optimisations."""
    given = feeds_of(case)
    found = _CALL.search(target.load)
    assert found is not None
    kind, arguments = found[1], " ".join(found[2].replace("Samples(samples)", "Samples()").split())
    reader = [
        "class Samples(CalibrationDataReader):",
        f"    left = [{given}]",
        "    def get_next(self):",
        "        return self.left.pop() if self.left else None",
    ]
    made = [
        *model_lines(model_of(case).bare()),
        "import onnx",
        f"from onnxruntime.quantization import {_NEEDED[kind]}, quantize_{kind}",
        *(reader if kind == "static" else ()),
        'onnx.save(model, "model.onnx")',
        f'quantize_{kind}("model.onnx", "quantised.onnx", {arguments})',
        'model = onnx.load("quantised.onnx")',
    ]
    yield made
    for level in ("ort-disable", "ort-all"):
        yield [*made, *runners.onnxruntime(level, given, seen)]
