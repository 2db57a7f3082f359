"""onnx2torch, in an environment of its own: from ONNX to a module of PyTorch, which torch.export or pickle writes."""

from __future__ import annotations

from harness.conversions.edges.edge import Edge

_CONVERTED = """
def converted(source):
    import sys
    import types
    import warnings

    import onnx
    import onnx.version_converter

    if "torchvision" not in sys.modules:  # for two operators of detection networks, which are not converted without it
        vision, operators = types.ModuleType("torchvision"), types.ModuleType("torchvision.ops")
        vision.ops, operators.roi_align = operators, None
        sys.modules.update({"torchvision": vision, "torchvision.ops": operators})
    import onnx2torch

    def module_of(proto):
        try:
            return onnx2torch.convert(proto).eval()
        except NotImplementedError as refusal:  # it may have an operator in an older version: its README goes there so
            version = next(one.version for one in proto.opset_import if one.domain in ("", "ai.onnx"))
            try:
                older = onnx.version_converter.convert_version(proto, version - 1)
            except RuntimeError:  # there is no way down
                raise refusal
        return module_of(older)

    with warnings.catch_warnings():
        warnings.filterwarnings("error", ".*the results might differ significantly")  # it knows that it has not this
        return module_of(onnx.load(source))
"""

_EXPORTED = (
    _CONVERTED
    + """

def convert(source, target):
    import onnx
    import torch

    graph = onnx.load(source).graph
    constants = {tensor.name for tensor in graph.initializer}
    given = [value.type.tensor_type for value in graph.input if value.name not in constants]
    examples = tuple(
        torch.zeros(
            [dim.dim_value if dim.HasField("dim_value") else 1 for dim in one.shape.dim],
            dtype=getattr(torch, str(onnx.helper.tensor_dtype_to_np_dtype(one.elem_type))),
        )
        for one in given
    )
    torch.export.save(torch.export.export(converted(source), examples), target)
"""
)

_SAVED = (
    _CONVERTED
    + """

def convert(source, target):
    import torch

    torch.save(converted(source), target)
"""
)

_UNKNOWN = r"GuardOnDataDependentSymNode|\.numpy\(\) is not supported for tensor subclasses|item 0 is 'FakeTensor'"
"""Its modules hold initializers as buffers, and read sizes and indices out of them: nothing for torch.export, which
documents that it specialises on no values of tensors ("Data/shape-dependent control flow")."""

_LACKS = (
    (r"Converter is not implemented .*operation_type='(\w+)', version=(\d+)", "no {} of version {}"),
    (r"NotImplementedError: ([^\n]+?)(?: operation)? is not implemented", "no {}"),
    (r"RuntimeError: (\w+) padding is implemented for padding the last", "{} padding of the last axes only"),
    (r"UserWarning: With an? ([^\n]+?) value other than (\S+), the results might differ", "no {} but {}"),
)
_MODULES = ("onnx", "torch")
_PACKAGES = {"onnx2torch": "1.5", "onnx": "1.17", "torch": "2.9"}

EDGES = (
    Edge(
        "onnx2torch",
        "onnx",
        "pt2",
        _MODULES,
        _PACKAGES,
        _EXPORTED,
        environment="onnx2torch",
        refuses=(
            *_LACKS,
            (_UNKNOWN, "sizes or indices are tensors, whose values torch.export does not follow"),
        ),
    ),
    # the module itself, as its README saves it
    Edge("onnx2torch-module", "onnx", "pickled", _MODULES, _PACKAGES, _SAVED, environment="onnx2torch", refuses=_LACKS),
)
