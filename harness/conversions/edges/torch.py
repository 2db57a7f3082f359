"""PyTorch's two exporters to ONNX: by torch.export (dynamo) and by TorchScript."""

from __future__ import annotations

from harness.conversions.edges.edge import Edge
from harness.conversions.formats.pt2 import LOAD

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
    + """

def convert(source, target):
    import torch

    program = exported_program(source)
    sizes = {node.name: getattr(node.meta.get("val"), "shape", ()) for node in program.graph.nodes}
    if any(not isinstance(size, int) for name in program.graph_signature.user_inputs for size in sizes.get(name, ())):
        raise NotImplementedError("it traces a model with fixed sizes, and those of this one vary")
    module = program.module().requires_grad_(False)  # a weight that has a gradient is no constant

    class Traced(torch.nn.Module):  # not a submodule: what torch.export returns refuses the mode that is set for all
        def forward(self, *inputs):
            return module(*inputs)

    examples = program.example_inputs[0]  # it runs the model on these: what divides by one of them takes no zeros
    try:
        Traced()(*examples)
    except RuntimeError as error:
        if "ZeroDivisionError" not in str(error):
            raise
        examples = tuple(map(torch.ones_like, examples))
    torch.onnx.export(Traced(), examples, target, dynamo=False, opset_version=18)
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
        refuses=((r"DispatchError: No ONNX function found for <OpOverload\(op='([\w.]+)'", "no ONNX function for {}"),),
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
            (r"conversion of (\w+) not implemented if (\w+) is True", "no {} with {}"),
            (r"ScalarType (UInt\d+) is an unexpected tensor scalar type", "no {}"),
            (r"NotImplementedError: \"(\w+)\" not implemented for '(UInt\d+)'", "PyTorch has no {} of {}"),
            (
                r"ONNX export does not support exporting '(\w+?)_?\(\)' function with duplicated",
                "no {} where indices repeat",
            ),
        ),
    ),
)
