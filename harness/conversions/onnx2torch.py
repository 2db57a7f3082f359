"""onnx2torch, in an environment of its own: from ONNX to a module of PyTorch, which torch.export writes."""

from __future__ import annotations

from harness.conversions.edge import Edge

_CONVERT = """
def convert(source, target):
    import sys
    import types

    import onnx
    import torch

    if "torchvision" not in sys.modules:  # for two operators of detection networks, which are not converted without it
        vision, operators = types.ModuleType("torchvision"), types.ModuleType("torchvision.ops")
        vision.ops, operators.roi_align = operators, None
        sys.modules.update({"torchvision": vision, "torchvision.ops": operators})
    import onnx2torch

    proto = onnx.load(source)
    constants = {tensor.name for tensor in proto.graph.initializer}
    given = [value.type.tensor_type for value in proto.graph.input if value.name not in constants]
    examples = tuple(
        torch.zeros(
            [dim.dim_value if dim.HasField("dim_value") else 1 for dim in one.shape.dim],
            dtype=getattr(torch, str(onnx.helper.tensor_dtype_to_np_dtype(one.elem_type))),
        )
        for one in given
    )
    torch.export.save(torch.export.export(onnx2torch.convert(proto).eval(), examples), target)
"""

EDGES = (
    Edge(
        "onnx2torch",
        "onnx",
        "pt2",
        ("onnx", "torch"),
        {"onnx2torch": "1.5", "onnx": "1.17", "torch": "2.9"},
        _CONVERT,
        environment="onnx2torch",
        refuses=((r"Converter is not implemented .*operation_type='(\w+)', version=(\d+)", "no {} of version {}"),),
    ),
)
