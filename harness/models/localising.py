"""In which layer of a given model does a variant err? Each node of the ONNX model is evaluated in float64 on the inputs
that the variant gave it, and may be off by what rounding does to it alone: the culprit is the layer that adds error and
not the one that shows it. Only where the variant is ONNX, too, with the same names of tensors: what another converter
or compiler calls its values is not known."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from harness.formats.opening import why_not
from harness.models.variants import Variant
from harness.pool import Job, Pool
from oracles.outcome import Value

_LOAD = """

def load(parameters):
    import json
    import tempfile

    def run(*inputs):
        with tempfile.TemporaryDirectory() as folder:
            onnx.save(all_values(onnx.load(OBSERVED)), folder + "/model.onnx")
            _, outputs, call = open_model(folder + "/model.onnx")
            seen = dict(zip([name for name, _, _ in outputs], call(*inputs)))
        told, figures = layer_errors(onnx.load(RIGHT), inputs, seen)
        return [np.frombuffer(json.dumps(told).encode(), np.uint8), figures]

    return run
"""


@dataclass(frozen=True)
class Layer:
    """One node. index: its place; added: the greatest error of its result given its inputs, by the greatest value;
    excess: the same by what is allowed, above 1 is wrong; shown: like added, given the model's inputs. NaN: not judged,
    since the variant has no such values."""

    index: int
    name: str
    op: str
    output: str
    added: float
    excess: float
    shown: float

    @property
    def judged(self) -> bool:
        return not math.isnan(self.excess)

    @property
    def wrong(self) -> bool:
        return self.excess > 1


@dataclass(frozen=True)
class Layers:
    """Errors of one variant by layer. why: there are none (empty: there are)."""

    variant: str
    errors: tuple[Layer, ...] = ()
    why: str = ""

    @property
    def culprit(self) -> Layer | None:
        """The first layer that adds more error than it may."""
        return next((layer for layer in self.errors if layer.wrong), None)


def can(variant: Variant) -> bool:
    """Is it one whose layers can be looked at?"""
    return variant.file.format == "onnx" and variant.library == "ort"


def layers_of(pool: Pool, right: Path, variant: Variant, arrays: Sequence[np.ndarray]) -> Layers:
    """right: the ONNX file that the variant is to agree with; arrays: what both are run on. With all values as outputs
    a compiler may fuse less than it does without."""
    runner = variant.runner
    names = [f"x{place}" for place in range(len(arrays))]
    helpers = Path(__file__).with_name("onnx_noise_helpers.py").read_text(encoding="utf-8")
    settings = f"RIGHT = {str(right.resolve())!r}\nOBSERVED = {str(variant.file.path.resolve())!r}\n"
    text = f"{helpers}\n\n{settings}TRUST = False\nINPUTS = {names!r}\nPARAMETERS = []\n{runner.open}\n{_LOAD}"
    job = Job("layers", ("onnx", *runner.modules), text, dict(zip(names, arrays, strict=True)))
    (outcome,) = pool.run([job], confirm=False)
    if not isinstance(outcome, Value):
        return Layers(variant.name, why=why_not(outcome))
    told, figures = outcome.outputs
    nodes = json.loads(np.asarray(told).tobytes().decode())
    errors = tuple(
        Layer(index, *node, *(float(x) for x in row))
        for index, (node, row) in enumerate(zip(nodes, figures, strict=True))
    )
    if not any(layer.judged for layer in errors):
        return Layers(variant.name, why="it shares no names of tensors with the reference")
    return Layers(variant.name, errors)
