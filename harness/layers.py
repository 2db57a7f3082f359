"""Which layer of an ONNX model adds the error that a run shows: each node judged alone, on the inputs that the run
gave it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from harness.layers_program import PROGRAM
from harness.pool import HarnessError, Job, Pool
from oracles.outcome import Value

OPEN = """
def open_model(path):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    inputs = [(item.name, None, None) for item in session.get_inputs()]
    outputs = [(item.name, None, None) for item in session.get_outputs()]
    return inputs, outputs, lambda arrays: session.run(None, dict(zip([name for name, _, _ in inputs], arrays)))
"""
"""A run by ONNX Runtime with all its optimisations."""


@dataclass(frozen=True)
class LayerError:
    """One node of the model, in the model's order. name, op: of the node; output: of its result that errs most.

    added:  the greatest error of its results, given the inputs that the run gave it, relative to their greatest
            magnitude; infinite where NaN, infinities, dtype or shape differ
    excess: the greatest error in units of what two correct evaluations of the node may differ by; above 1, it is wrong
    shown:  like added, but against a run in which nothing before it has erred either
    why:    why it could not be judged, empty where it was"""

    index: int
    name: str
    op: str
    output: str
    added: float
    excess: float
    shown: float
    why: str = ""

    @property
    def wrong(self) -> bool:
        """Does it add more error than a correct evaluation may?"""
        return self.excess > 1


def localise(
    pool: Pool,
    model: Path,
    inputs: Mapping[str, np.ndarray],
    opened: str = OPEN,
    modules: Sequence[str] = ("onnx", "onnxruntime"),
    observed: Path | None = None,
    framework: str = "onnxruntime",
) -> tuple[LayerError, ...]:
    """The error of each node of an ONNX model in one run of it.

    inputs:    of the model, by name
    opened:    source of `def open_model(path)`, how the run is made: it returns (inputs, outputs, call), the first two
               as lists of (name, dtype, shape), and `call` takes the arrays in that order and returns a list of arrays
    modules:   what the worker imports first; framework: its name
    observed:  the model that is run, where it is another one with the same names of tensors (a converted one, say);
               the model itself is always what is right

    The model runs with the results of all nodes as further outputs, which may keep a compiler from fusing. Raises
    HarnessError where the model cannot be run so."""
    header = f"MODEL = {str(model.resolve())!r}\nOBSERVED = {str((observed or model).resolve())!r}\nTRUST = False\n"
    names = f"INPUTS = {dict.fromkeys(inputs)!r}\nPARAMETERS = {{}}\n"
    imports = "".join(f"import {name}\n" for name in dict.fromkeys(("onnx", "onnxruntime", *modules)))
    program = imports + header + names + PROGRAM + opened
    outcome = pool.run([Job(framework, tuple(modules), program, dict(inputs))])[0]
    if not isinstance(outcome, Value):
        raise HarnessError(f"{(observed or model).name} with all values as outputs: {outcome}")
    figures, told = outcome.outputs
    return tuple(
        LayerError(index, name, op, output, float(added), float(excess), float(shown), why)
        for index, ((name, op, output, why), (added, excess, shown)) in enumerate(
            zip(json.loads(told.tobytes()), figures, strict=True)
        )
    )


def first_wrong(layers: Sequence[LayerError]) -> LayerError | None:
    """The first node that adds error, which is to blame for what the nodes after it show."""
    return next((layer for layer in layers if layer.wrong), None)


def ranked(layers: Sequence[LayerError]) -> list[LayerError]:
    """The nodes that were judged, the one that adds most, in terms of what it may, first."""
    return sorted((layer for layer in layers if not layer.why), key=lambda layer: -layer.excess)
