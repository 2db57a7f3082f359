"""OpenVINO's CPU plugin, given the graph as an ONNX model."""

from __future__ import annotations

from generators.ops.spec import Unsupported
from harness.backends.programs import control_flow
from harness.backends.programs.onnx_model import PROTO
from harness.backends.target.target import Level, Target
from harness.dialects import ONNX

_BUILD = """
def load(parameters):
    import openvino
{proto}
    core = openvino.Core()
    options = {{"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1}}
    compiled = core.compile_model(core.read_model(proto.SerializeToString()), "CPU", options)
    taken = {{name for port in compiled.inputs for name in port.names}}  # what no node reads it leaves out

    def outputs_of(inputs):
        request = compiled.create_infer_request()
        if all(port.names & inputs.keys() for port in compiled.inputs):  # else it says what it lost
            inputs = {{name: array for name, array in inputs.items() if name in taken}}
        request.infer(inputs, share_inputs=False)
        return [np.array(request.get_output_tensor(i).data) for i in range(len(OUTPUTS))]

    def run(*inputs):
        {run}

    return run
"""
_ONCE = "return outputs_of(dict(zip(INPUTS, inputs)))"
_CHOSEN = """given = dict(zip(INPUTS, inputs))
        each = [outputs_of({**given, "branch.number": np.array(number)}) for number in range(len(inputs[0]))]
        return [np.stack(outputs) for outputs in zip(*each)]"""

_NARROW = "the CPU plugin computes in f32 and i32"
REFUSES = {
    ("*", dtype): f"{_NARROW}: {dtype} is converted"
    for dtype in ("float64", "float16", "bfloat16", "int64", "int16", "int8", "uint64", "uint32", "uint16", "uint8")
} | {("matmul_widened", dtype): "" for dtype in ("int8", "uint8")}
"""OpenVINO's documentation, "CPU Device", "Supported Model Precision": what is not f32, bf16, f16 or i32 is converted,
or for quantised operations only; with the inference precision f32, f16 and bf16 are converted, too. Products of bytes
are quantised operations: "" refuses nothing."""

_DECLINES = {
    "Unsupported padding mode": "the importer of ONNX does not know this mode of Pad",
    "No conversion rule found for operations": "the importer of ONNX does not know this operator",
}

TARGETS = (
    Target(
        "openvino",
        "openvino",
        ("onnx", "openvino"),
        ONNX,
        _BUILD.format(proto=PROTO.format(inputs="INPUTS", outputs="OUTPUTS"), run=_ONCE),
        {"openvino": "2026.4", "onnx": "1.17"},
        Level("openvino", 0),
        refuses=REFUSES,
        declines=_DECLINES,
        gradient=Unsupported("OpenVINO does inference only"),
        opt_in=True,
        question_loads={
            "loop": _BUILD.format(proto=control_flow.ONNX_LOOP, run=_ONCE),
            "branch": _BUILD.format(proto=control_flow.ONNX_BRANCH, run=_CHOSEN),
        },
    ),
)
