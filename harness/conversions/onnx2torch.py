"""onnx2torch, in an environment of its own: from ONNX to a module of PyTorch, which torch.export writes."""

from __future__ import annotations

from harness.conversions.edge import Edge

_CONVERT = """
def convert(source, target):
    import sys
    import types

    import onnx
    import onnx.version_converter
    import torch

    if "torchvision" not in sys.modules:  # for two operators of detection networks, which are not converted without it
        vision, operators = types.ModuleType("torchvision"), types.ModuleType("torchvision.ops")
        vision.ops, operators.roi_align = operators, None
        sys.modules.update({"torchvision": vision, "torchvision.ops": operators})
    import onnx2torch

    def converted(proto):
        try:
            return onnx2torch.convert(proto)
        except NotImplementedError as refusal:  # it may have an operator in an older version: its README goes there so
            version = next(one.version for one in proto.opset_import if one.domain in ("", "ai.onnx"))
            try:
                older = onnx.version_converter.convert_version(proto, version - 1)
            except RuntimeError:  # there is no way down
                raise refusal
        return converted(older)

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
    torch.export.save(torch.export.export(converted(proto).eval(), examples), target)
"""

_UNKNOWN = r"GuardOnDataDependentSymNode|\.numpy\(\) is not supported for tensor subclasses|item 0 is 'FakeTensor'"
"""Its modules hold initializers as buffers, and read sizes and indices out of them: nothing for torch.export, which
documents that it specialises on no values of tensors ("Data/shape-dependent control flow")."""

EDGES = (
    Edge(
        "onnx2torch",
        "onnx",
        "pt2",
        ("onnx", "torch"),
        {"onnx2torch": "1.5", "onnx": "1.17", "torch": "2.9"},
        _CONVERT,
        environment="onnx2torch",
        refuses=(
            (r"Converter is not implemented .*operation_type='(\w+)', version=(\d+)", "no {} of version {}"),
            (r"NotImplementedError: ([^\n]+?)(?: operation)? is not implemented", "no {}"),
            (r"RuntimeError: (\w+) padding is implemented for padding the last", "{} padding of the last axes only"),
            (_UNKNOWN, "sizes or indices are tensors, whose values torch.export does not follow"),
        ),
    ),
)
