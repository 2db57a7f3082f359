"""PyTorch's two exporters to ONNX: by torch.export (dynamo) and by TorchScript."""

from __future__ import annotations

from harness.conversions.edges.edge import Edge
from harness.conversions.formats.pt2 import LOAD, TRACEABLE

_ONNX = (
    LOAD
    + """

def convert(source, target):
    import torch

    program = exported_program(source)
    try:
        torch.onnx.export(program, (), target, dynamo=True, external_data=False, verbose=False)
    except torch.onnx.OnnxExporterError as error:  # a page of text around what its first cause says in a line
        while error.__cause__:
            error = error.__cause__
        raise error
"""
)

_SCRIPT = (
    LOAD
    + TRACEABLE
    + """

def convert(source, target):
    import torch

    module, examples = traceable(exported_program(source))
    torch.onnx.export(module, examples, target, dynamo=False, opset_version=18)
"""
)

_PACKAGES = {"torch": "2.9", "onnx": "1.17"}

EDGES = (
    Edge(
        "torch-onnx",
        "pt2",
        "onnx",
        ("torch", "onnxscript"),
        {**_PACKAGES, "onnxscript": "0.5"},
        _ONNX,
        refuses=(
            (r"DispatchError: No ONNX function found for <OpOverload\(op='([\w.]+)'", "no ONNX function for {}"),
            (r"KeyError: torch\.(complex32)", "no {}"),
            (r"UnsupportedOperatorException: (aten\.\w+)", "no {}"),
            (r"NotImplementedError: (\S+ with \w+) is not supported", "no {}"),
            ("only (4D) query, key, and value are supported", "attention of {} only"),
            (
                # but ScatterND by int32, and a loss of probabilities, which are operators that fit other operands
                r"Type 'tensor\((u?int\d+|bfloat16)\)' of input parameter \(\S+\) of operator "
                r"\((?!Scatter|SoftmaxCross)(\w+)\)",
                "{1} of {0}, which ONNX lacks",
            ),
        ),
    ),
    Edge(
        "torchscript-onnx",
        "pt2",
        "onnx",
        ("torch",),
        _PACKAGES,
        _SCRIPT,
        refuses=(
            ("UnsupportedOperatorError: Exporting the operator '(.*?)' to ONNX.* is not supported", "no {}"),
            (r"For \(quant_min, quant_max\), (ONNX allows only [^.]+)\.", "{}"),
            (r"conversion of (\w+) not implemented if (\w+) is True", "no {} with {}"),
            (r"ONNX export does NOT support exporting (bitwise \w+) for non-boolean", "no {} of integers"),
            (r"STFT does not currently support complex types", "no complex numbers"),
            (r"'Tensor' object has no attribute 'complex\w+'", "no complex numbers"),
            (r"MKL FFT doesn't support tensors of type: (Half)", "no {}"),
            (r"ONNX does not support (.*?) *(?:\[|for|$)", "no {}"),
            (r"embedding_bag with (padding_idx)", "no embedding_bag with {}"),
            (r"Unsupported type for (attn_mask)", "no {} of this dtype"),
            (r"ScalarType (UInt\d+|Complex\w+) is an unexpected tensor scalar type", "no {}"),
            (
                # but Not of numbers, which the exporter writes where it has to compare them
                r"Type 'tensor\((\w+)\)' of input parameter \(\S+\) of operator \((?!Not\))(\w+)\)",
                "{1} of {0}, which ONNX lacks",
            ),
            (r"Unknown torch or scalar type: '(UInt\d+)'", "no {}"),
            (r"Unsupported: ONNX export of operator (\S+), (.+?)\. Please feel free to request support", "no {} of {}"),
            (
                r"NotImplementedError: \"(\w+)\" not implemented for '(UInt\d+|BFloat16|Half)'",
                "PyTorch has no {} of {}",
            ),
            (
                r"ONNX export does not support exporting '(\w+?)_?\(\)' function with duplicated",
                "no {} where indices repeat",
            ),
        ),
    ),
)
