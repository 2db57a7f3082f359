"""OpenVINO's converter from ONNX, SavedModel, TFLite, torch.export and TorchScript to its own representation."""

from __future__ import annotations

from harness.conversions.edges.edge import Edge
from harness.conversions.formats.pt2 import LOAD, TRACEABLE, UNTRACED
from harness.conversions.formats.tflite import SIGNED

_CONVERT = """
def convert(source, target):
    import openvino

    openvino.save_model(openvino.convert_model(source), target, compress_to_fp16=False)
"""

_TFLITE = (
    SIGNED
    + """

def convert(source, target):
    import openvino

    def place(value):
        return value.get_node().get_name(), value.get_index()

    model = openvino.convert_model(source)
    ends = {name: output.get_node().input_value(0) for output in model.outputs for name in output.get_names()}
    had = [output.get_node().input_value(0) for output in model.outputs]
    values = [ends[tensor] for tensor, _ in sorted(signed(source), key=lambda one: one[1]) if tensor in ends]
    # it makes one output of those that are one tensor, and what is an input has the input's name alone
    if len(values) >= len(had) and list(map(place, values)) != list(map(place, had)):
        results = [openvino.opset13.result(value) for value in values]
        model = openvino.Model(results, model.get_sinks(), model.get_parameters())
    openvino.save_model(model, target, compress_to_fp16=False)
"""
)

_TORCH = (
    LOAD
    + """

def convert(source, target):
    import openvino

    openvino.save_model(openvino.convert_model(exported_program(source)), target, compress_to_fp16=False)
"""
)

_SCRIPT = (
    LOAD
    + TRACEABLE
    + """

def convert(source, target):
    import openvino
    import torch

    module, examples = traceable(exported_program(source))
    if examples:
        model = openvino.convert_model(module, example_input=examples)
    else:  # it does not trace what takes nothing
        model = openvino.convert_model(torch.jit.trace(module, ()))
    openvino.save_model(model, target, compress_to_fp16=False)
"""
)

SAYS = (
    (r"No conversion rule found for operations: ([^\n]+)", "no rule for {}"),
    (r"No translator found for (\w+) node", "no translation of {}"),
    (r"Unsupported padding mode: \[(\w+)\]", "no padding by {}"),
    (r"do(?:es)? not support ([^\n]{1,120})", "it does not support {}"),
    (r"Check 'complex_type_mark' failed|Unsupported element type: DT_COMPLEX", "no complex numbers"),
    (r"(Explicit padding for \w+) is not supported", "no {}"),
    (r"Unsupported operation of type: (\w+)(?:.*\n){1,9}Not Implemented:", "no kernel for {}"),
)
_PARTIAL = (
    (r"ord=0 supported only for vector norm", "no norm of order 0 of what has several axes"),
    (r"Unsupported ord (\S+) for matrix norm", "no norm of order {} of matrices"),
    (r"conversion is currently supported with (\S+) only", "only with {}"),
)
_TRACED = (
    *SAYS,
    *_PARTIAL,
    # the None is the type, and taken for a second shape
    (
        r"More than one input shape provided: \('\w+', <PartialShape: [^>]*>, None\)",
        "its table of PyTorch's dtypes lacks an input's",
    ),
    (r"_Type\.Complex object", "no complex inputs"),
    (r"Conversion is failed for: ComplexTypeMark", "no complex results"),
    (r"w_hh_pshape\[1\]\.is_static", "no lstm of weights whose sizes are known at run time only"),
    (r"\"(\w+)\" not implemented for '(\w+)'", "it runs the model once, and PyTorch has no {} of {}"),
    (r"MKL FFT doesn't support tensors of type: (\w+)", "it runs the model once, and PyTorch has no FFT of {}"),
    (r"Expected both inputs to be Half, Float or Double tensors but got (\w+)", "PyTorch has no complex numbers of {}"),
)
"""What is traced runs once, in PyTorch, and has sizes that are known at run time only."""
_ONNX = (
    *SAYS,
    (
        r"Conversion failed for (\w+)-\d+\n(?:[^\n]*\n){1,4}?[^\n]*must (?:be|have) static",
        "no {} of sizes that are known at run time only",
    ),
    (r"Loading input model\n(Unsupported type)\n", "{} of constants: integers of two bits"),
    (r"DequantizeLinear doesn't support case when (dimension of X at axis \d+ \(\d+\) cannot be divided)", "{}"),
    (r"(output_size must be a 1D input of shape \[2\])", "Col2Im of images alone: {}"),
    (r"Attribute ('min' must be less or equal than 'max')", "Clip up to opset 10, whose bounds are attributes: {}"),
)
_EXPORTED = (
    *SAYS,
    *UNTRACED,
    *_PARTIAL,
    (r"Conversion is failed for: ComplexTypeMark", "no complex results"),
    (r"Bad as from: N2ov8frontend4type7ComplexE", "no conversion to complex numbers"),
    (r"^KeyError: 'torch\.(\w+)'", "its table of PyTorch's dtypes lacks {}"),
)
_PACKAGES = {"openvino": "2025.0"}

EDGES = (
    *(
        Edge(f"openvino-{format_}", format_, "openvino", ("openvino",), _PACKAGES, _CONVERT, refuses=says)
        for format_, says in (("onnx", _ONNX), ("savedmodel", SAYS))
    ),
    Edge(
        "openvino-tflite",
        "tflite",
        "openvino",
        ("openvino", "tflite"),
        {**_PACKAGES, "tflite": "2.18"},
        _TFLITE,
        refuses=SAYS,
    ),
    *(
        Edge(name, "pt2", "openvino", ("openvino", "torch"), {**_PACKAGES, "torch": "2.9"}, text, refuses=says)
        for name, text, says in (("openvino-pt2", _TORCH, _EXPORTED), ("openvino-script", _SCRIPT, _TRACED))
    ),
)
