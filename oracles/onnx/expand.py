"""The function bodies of operators that have no rule: of the model's own functions, and of those that ONNX defines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper

from oracles.onnx.graph import Graph, Node
from oracles.onnx.model import read_function
from oracles.onnx.rule import Value
from oracles.onnx.types import schema_of


def expanded(node: Node, inputs: Sequence[Value]) -> Graph | None:
    """The body of an operator as a graph; None where it has none. inputs: of one run, whose shapes it may depend on."""
    own = node.functions.get((node.domain, node.operator))
    if own is not None:
        return read_function(own, node)
    schema: Any = schema_of(node.operator, node.domain, node.version)
    if schema is None or node.source is None:
        return None
    if schema.has_context_dependent_function:
        version = _body_version(schema.context_dependent_function_opset_versions, node.version)
        types = [_type(value, kind) for value, kind in zip(inputs, node.kinds, strict=True)]
        text = schema.get_context_dependent_function_with_opset_version(version, node.source.SerializeToString(), types)
        return read_function(onnx.FunctionProto.FromString(text), node) if text else None
    if schema.has_function:
        text = schema.get_function_with_opset_version(_body_version(schema.function_opset_versions, node.version))
        function = onnx.FunctionProto.FromString(text)
        bound = {attribute.name for attribute in node.source.attribute}
        for name, attribute in schema.attributes.items():
            if name not in bound and attribute.default_value.name:
                function.attribute_proto.append(attribute.default_value)
        return read_function(function, node)
    return None


def _body_version(versions: Sequence[int], version: int) -> int:
    """The newest body that an operator set of this version has, or the oldest one."""
    return max((one for one in versions if one <= version), default=min(versions))


def _type(value: Value, kind: int) -> bytes:
    """The type of an argument, serialized; that of an absent one is empty."""
    if isinstance(value, np.ndarray):
        return helper.make_tensor_type_proto(kind, value.shape).SerializeToString()
    if isinstance(value, list):
        return helper.make_sequence_type_proto(helper.make_tensor_type_proto(kind, None)).SerializeToString()
    return b""
