"""The last lines of short programs: how what was made is run on inputs, which are expressions, and `y` is checked."""

from __future__ import annotations

from collections.abc import Sequence

from harness.findings.upstream.parts import NUMPY
from harness.findings.upstream.seen import Seen, checks

LEVELS = {"ort-disable": "DISABLE_ALL", "ort-basic": "ENABLE_BASIC", "ort-extended": "ENABLE_EXTENDED", "ort-all": ""}
"""By target or runner: ONNX Runtime's level ("": its default)."""
KERNELS = {
    "litert-reference": "OpResolverType.BUILTIN_REF",
    "litert-ref": "OpResolverType.BUILTIN_REF",
    "litert-builtin": "OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES",
    "litert-xnnpack": "",
    "litert": "",
}
"""By target or runner: LiteRT's kernels ("": its default)."""


def onnxruntime(name: str, given: str, seen: Seen) -> list[str]:
    """`model` in a session. name: a key of LEVELS; given: the dict of inputs."""
    level = LEVELS[name]
    options = [
        "options = onnxruntime.SessionOptions()",
        f"options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_{level}",
    ]
    session = f"onnxruntime.InferenceSession(model.SerializeToString(){', options' if level else ''})"
    return [
        "import onnxruntime",
        *(options if level else ()),
        f"session = {session}",
        f"y = session.run(None, {given}){_which(seen)}",
        *checks(seen, NUMPY),
    ]


def evaluator(given: str, seen: Seen) -> list[str]:
    """`model` by ONNX' own evaluator."""
    run = f"y = ReferenceEvaluator(model).run(None, {given}){_which(seen)}"
    return ["from onnx.reference import ReferenceEvaluator", run, *checks(seen, NUMPY)]


def openvino(made: str, given: str, seen: Seen) -> list[str]:
    """On the CPU, in float32. made: an expression of OpenVINO's model; given: inputs as a dict or a list."""
    return [
        "import openvino",
        "core = openvino.Core()",
        'precision = {"INFERENCE_PRECISION_HINT": "f32"}',
        f'compiled = core.compile_model({made}, "CPU", precision)',
        f"y = compiled({given}){_which(seen)}",
        *checks(seen, NUMPY),
    ]


def litert(name: str, given: Sequence[str], seen: Seen) -> list[str]:
    """`content`, the bytes of a TFLite file. name: a key of KERNELS, or that with `tf.lite` in place of `litert`."""
    kernels = KERNELS[name.replace("tf.lite", "litert")]
    if name.startswith("tf.lite"):
        made, kernels = "tf.lite.Interpreter", kernels and f"tf.lite.experimental.{kernels}"
        imports = ["import tensorflow as tf"]
    else:
        made = "Interpreter"
        imports = [f"from ai_edge_litert.interpreter import Interpreter{', OpResolverType' if kernels else ''}"]
    resolver = f", experimental_op_resolver_type={kernels}" if kernels else ""
    return [
        *imports,
        f"interpreter = {made}(model_content=content{resolver})",
        "interpreter.allocate_tensors()",
        *(
            f'interpreter.set_tensor(interpreter.get_input_details()[{number}]["index"], {array})'
            for number, array in enumerate(given)
        ),
        "interpreter.invoke()",
        'y = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])',
        *checks(seen, NUMPY),
    ]


def relax(given: Sequence[str], seen: Seen, result: str = "", called: str = "main") -> list[str]:
    """`module`, compiled by TVM's default pipeline. result: what is taken of what it returns."""
    tensors = ", ".join(f"tvm.runtime.tensor({array})" for array in given)
    return [
        "import tvm",
        "from tvm import relax",
        'machine = relax.VirtualMachine(tvm.compile(module, "llvm"), tvm.cpu())',
        f'y = machine["{called}"]({tensors}){result}.numpy()',
        *checks(seen, NUMPY),
    ]


def _which(seen: Seen) -> str:
    """All outputs where their number is what is wrong."""
    return "" if seen.symptom == "outputs" else f"[{seen.output}]"
