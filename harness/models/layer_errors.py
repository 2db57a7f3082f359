"""In which layer of a given model does a variant err? Each node of the ONNX model is evaluated in float64 on the inputs
that the variant gave it, and may be off by what rounding does to it alone: the culprit is the layer that adds error and
not the one that shows it. Where the variant's values have the model's names (ONNX) they are told by these, else by what
they are (TFLite, PyTorch, TVM)."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from harness.backends.target.text import swapped
from harness.conversions.model_file import Signature, plain, why_not
from harness.conversions.route import ORDERED
from harness.execute.pool import HarnessError, Job, Pool
from harness.models.reference import preamble
from harness.models.variants import Variant
from oracles.judge.outcome import Timeout, Value

_ONNX = """
def opened(path, folder):
    onnx.save(all_values(onnx.load(path)), folder + "/model.onnx")
    inputs, outputs, call = open_model(folder + "/model.onnx")
    ends = [value.name for value in onnx.load(path, load_external_data=False).graph.output]

    def run(*arrays):
        seen = dict(zip([name for name, _, _ in outputs], call(*arrays)))
        order = [*(name for name in seen if name not in ends), *ends]
        return [(name, seen[name]) for name in order], [seen[name] for name in ends]

    return inputs, [(name, None, None) for name in ends], run
"""

_OTHERS = """
def opened(path, folder):
    inputs, outputs, call = open_model(path)

    def run(*arrays):
        ends = call(*arrays)
        return shown(call), ends

    return inputs, outputs, run
"""

_TFLITE = """
def shown(call):
    # fused ones have the names of all
    names = {one["index"]: one["name"].rpartition(";")[2] for one in call.interpreter.get_tensor_details()}
    found = []
    for operator in call.interpreter._get_ops_details():
        for index in operator["outputs"]:
            try:
                found.append((f"{operator['op_name']} {names.get(index, index)}", call.interpreter.get_tensor(index)))
            except ValueError:  # inside a delegate
                pass
    return found
"""

_TORCH = """
import torch


class Observer(torch.fx.Interpreter):
    def run_node(self, node):
        result = super().run_node(node)
        if node.op == "call_function" and isinstance(result, torch.Tensor):
            SEEN.append((f"{node.target} {node.name}", result.numpy().copy()))
        return result


SEEN = []


def shown(call):
    return SEEN
"""

_TVM = """
SEEN = []


def kernel(function, name, before, result, *arguments):
    if not before and not name.startswith("vm.builtin.alloc"):  # which nothing has been written to
        for value in (result, *arguments[-1:]):  # kernels write to their last argument
            if hasattr(value, "numpy"):
                SEEN.append((name, value.numpy()))


def shown(call):
    return SEEN
"""

_PRESERVED = (
    ("num_threads=1,", "num_threads=1, experimental_preserve_all_tensors=True,"),
    ("    return inputs, outputs, call\n", "    call.interpreter = interpreter\n    return inputs, outputs, call\n"),
)
_INTERPRETED = (
    ("program.module()", "Observer(program.module(check_guards=False))"),
    ("module(*given[0], **given[1])", "module.run(*given[0], **given[1])"),
)
_HOOKED = (("    return *[[tuple(port)", "    machine.set_instrument(kernel)\n    return *[[tuple(port)"),)

_LOAD = """
def load(parameters):
    import json
    import tempfile

    def run(*inputs):
        with tempfile.TemporaryDirectory() as folder:
            ports, outputs, call = opened(OBSERVED, folder)
            taken = ordered(ports, INPUTS)
            values, ends = call(*[dict(zip(INPUTS, inputs))[name] for name in taken])
            given = ordered(outputs, OUTPUTS)
            ends = [ends[given.index(name)] for name in OUTPUTS]
        model = onnx.load(RIGHT)
        seen, twins = known_values(model, onnx.load(OBSERVED), dict(values)) if NAMED else ({}, {})
        ported = {item.name for item in model.graph.output}
        case, judged = None, False
        if set(seen) - ported:
            if OBSERVED == RIGHT:
                told, figures, case = layer_errors(model, inputs, seen)
            else:
                told, figures, case, seen = sure_errors(model, inputs, seen, twins)
            judged = not any(np.isnan(row[1]) for node, row in zip(told, figures) if node[1] != "Constant")
        if case is None and not judged:
            told, figures, case = aligned_errors(model, inputs, values, ends, seen)
        name, arguments, right, allowed = case or ("", {}, None, None)
        header = json.dumps([told, *([twins.get(one, one) for one in some] for some in ([name], arguments))])
        more = [*arguments.values(), seen[name], right, allowed] if case else []
        return [np.frombuffer(header.encode(), np.uint8), figures, *more]

    return run
"""


@dataclass(frozen=True)
class Layer:
    """One node. index: its place; added: the greatest error of its result given its inputs, by the greatest value;
    excess: the same by what is allowed, above 1 is wrong; shown: like added, given the model's inputs. NaN: not judged,
    since the variant has no such values. first: the node at which an error begins that shows here, where the variant
    makes one operator of several (empty: this one); seen: what the variant calls it (empty: the same)."""

    index: int
    name: str
    op: str
    output: str
    added: float
    excess: float
    shown: float
    first: str = ""
    seen: str = ""

    @property
    def judged(self) -> bool:
        return not math.isnan(self.excess)

    @property
    def wrong(self) -> bool:
        return self.excess > 1


@dataclass(frozen=True)
class LayerCase:
    """A layer that errs, to be run alone. output: its name in the variant's file; inputs: what the variant gave it, by
    name there; got: what it made of them; right: its float64 value on them; allowed: how far a correct one may be from
    it."""

    output: str
    inputs: Mapping[str, np.ndarray]
    got: np.ndarray
    right: np.ndarray
    allowed: np.ndarray


@dataclass(frozen=True)
class LayerErrors:
    """Errors of one variant by layer. why: there are none (empty: there are); case: of the culprit (None: where names
    are not kept)."""

    variant: str
    errors: tuple[Layer, ...] = ()
    why: str = ""
    case: LayerCase | None = field(default=None, kw_only=True)

    @property
    def culprit(self) -> Layer | None:
        """The first layer that adds more error than it may."""
        return next((layer for layer in self.errors if layer.wrong), None)

    @property
    def judged(self) -> int:
        """So many layers were looked at."""
        return sum(layer.judged for layer in self.errors)

    @property
    def where(self) -> str:
        """The place of the culprit; empty where there is none."""
        culprit = self.culprit
        if culprit is None:
            return ""
        where = f"{culprit.name or culprit.output} ({culprit.op}, {culprit.index + 1} of {len(self.errors)})"
        return f"{culprit.first} or by {where}, which are one operator there" if culprit.first else where

    @property
    def blamed(self) -> tuple[Layer, ...]:
        """The culprit, with the layers before it that the variant makes one operator with it."""
        last = self.culprit
        if last is None or not last.first:
            return () if last is None else (last,)
        start = next(layer.index for layer in self.errors if last.first in (layer.name, layer.output))
        return self.errors[start : last.index + 1]


def _observer(variant: Variant) -> str | None:
    """The text of `opened(path, folder)`, which opens a variant's file so that what runs it returns all values and then
    the outputs; None where they cannot be had."""
    library, text = variant.library, variant.runner.open
    if variant.file.format == "onnx" and library == "ort":
        return text + _ONNX
    if library in ("litert", "tf.lite"):
        return swapped(text, *_PRESERVED) + _TFLITE + _OTHERS
    if variant.runner.name == "torch-exported":
        return _TORCH + swapped(text, *_INTERPRETED) + _OTHERS
    if library == "tvm":
        return _TVM + swapped(text, *_HOOKED) + _OTHERS
    return None


def can(variant: Variant) -> bool:
    """Is it one whose layers can be looked at?"""
    return _observer(variant) is not None


def helpers(*names: str) -> str:
    """Modules of this folder as one text."""
    texts = [(Path(__file__).parent / "helpers" / f"{name}.py").read_text(encoding="utf-8") for name in names]
    return re.sub(r"^from harness\.models\..*\n", "", "\n\n".join(texts), flags=re.MULTILINE)


def layers_of(
    pool: Pool, right: Path, variant: Variant, arrays: Sequence[np.ndarray], ports: Signature | None = None,
    seconds: float = float("inf"),
) -> LayerErrors:  # fmt: skip
    """right: the ONNX file that the variant is to agree with; arrays: what both are run on; ports: of the model, in
    whose order arrays and outputs are (None: it has one of each); seconds: that it may take. With all values as outputs
    a compiler may fuse less."""
    runner = variant.runner
    observer = _observer(variant)
    if observer is None:
        return LayerErrors(variant.name, why=f"{runner.name} does not show what it computes on the way")
    names = [port.name for port in ports.inputs] if ports else ["x"]
    outputs = [port.name for port in ports.outputs] if ports else ["y"]
    settings = (
        f"RIGHT = {str(right.resolve())!r}\nOBSERVED = {str(variant.file.path.resolve())!r}\n"
        f"NAMED = {variant.file.format == 'onnx'!r}\nOUTPUTS = {outputs!r}\n"
        f"TRUST = False\nINPUTS = {names!r}\nPARAMETERS = []\n"
    )
    ours = helpers("same_values", "errors_by_name", "errors_by_value")
    text = f"{preamble()}{ours}\n\n{settings}{ORDERED}\n{observer}\n{_LOAD}"
    given, reads = dict(zip(names, arrays, strict=True)), (right, variant.file.path)
    job = Job(f"layers-{runner.framework}", ("onnx", *runner.modules), text, given, reads=reads, seconds=seconds)
    try:
        (outcome,) = pool.run([job], confirm=False)
    except HarnessError as error:
        return LayerErrors(variant.name, why=plain(str(error).splitlines()[0]))
    if isinstance(outcome, Timeout):
        return LayerErrors(variant.name, why=f"they take longer than {outcome.seconds:g} s; none was looked at")
    if not isinstance(outcome, Value):
        return LayerErrors(variant.name, why=why_not(outcome))
    header, figures, *more = outcome.outputs
    nodes, (output,), shown = json.loads(np.asarray(header).tobytes().decode())
    errors = tuple(
        Layer(index, *node[:3], *(float(x) for x in row), *node[3:])
        for index, (node, row) in enumerate(zip(nodes, figures, strict=True))
    )
    if not any(layer.judged for layer in errors):
        return LayerErrors(variant.name, why="none of its values is one of the reference's")
    case = LayerCase(output, dict(zip(shown, more, strict=False)), *more[-3:]) if more else None
    return LayerErrors(variant.name, errors, case=case)
