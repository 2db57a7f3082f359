"""Element types (TensorProto.DataType) of values: what a type says, and what a node's results have by its schema. That
of a sequence or an optional value is that of its elements."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import onnx
from onnx import TensorProto, defs

from oracles.onnx.kinds import kind_of

_CHOSEN = {
    "BitCast": ("to", 0),
    "Cast": ("to", 0),
    "Bernoulli": ("dtype", 0),
    "BlackmanWindow": ("output_datatype", TensorProto.FLOAT),
    "DequantizeLinear": ("output_dtype", 0),
    "EyeLike": ("dtype", 0),
    "HammingWindow": ("output_datatype", TensorProto.FLOAT),
    "HannWindow": ("output_datatype", TensorProto.FLOAT),
    "MelWeightMatrix": ("output_datatype", TensorProto.FLOAT),
    "Multinomial": ("dtype", TensorProto.INT32),
    "QuantizeLinear": ("output_dtype", 0),
    "RandomNormal": ("dtype", TensorProto.FLOAT),
    "RandomNormalLike": ("dtype", 0),
    "RandomUniform": ("dtype", TensorProto.FLOAT),
    "RandomUniformLike": ("dtype", 0),
    "SequenceEmpty": ("dtype", TensorProto.FLOAT),
}
"""Operators with an attribute that is the type of their first result, and its default (0: as the inputs say)."""
_KINDS = frozenset(TensorProto.DataType.keys())
_CONSTANT = {
    "value_float": TensorProto.FLOAT,
    "value_floats": TensorProto.FLOAT,
    "value_int": TensorProto.INT64,
    "value_ints": TensorProto.INT64,
    "value_string": TensorProto.STRING,
    "value_strings": TensorProto.STRING,
}


def kind_of_type(type_: onnx.TypeProto) -> int:
    """The element type that a type states; 0 for none."""
    which = type_.WhichOneof("value")
    if which == "sequence_type":
        return kind_of_type(type_.sequence_type.elem_type)
    if which == "optional_type":
        return kind_of_type(type_.optional_type.elem_type)
    if which in ("tensor_type", "sparse_tensor_type"):
        return getattr(type_, which).elem_type
    return 0


def rank_of_type(type_: onnx.TypeProto) -> int | None:
    """The rank that a type states; None for none."""
    if type_.HasField("tensor_type") and type_.tensor_type.HasField("shape"):
        return len(type_.tensor_type.shape.dim)
    return None


@cache
def schema_of(operator: str, domain: str, version: int) -> defs.OpSchema | None:
    """The schema that an operator set of this version has of an operator; None where onnx knows none."""
    domain = "" if domain == "ai.onnx" else domain
    try:
        return defs.get_schema(operator, version, domain)
    except defs.SchemaError:
        return None


def _named(text: str) -> int:
    """The element type in `seq(tensor(float16))`; 0 where it is no one type."""
    found = re.search(r"tensor\((\w+)\)", text)
    name = found.group(1).upper() if found else ""
    return TensorProto.DataType.Value(name) if name in _KINDS else 0


def kinds_of_outputs(
    proto: onnx.NodeProto,
    version: int,
    attributes: Mapping[str, Any],
    kinds: Sequence[int],
    bodies: Sequence[Sequence[int]],
) -> tuple[int, ...]:
    """kinds: of the inputs; bodies: of the results of the graphs inside. Where the schema leaves a type open it is
    that of the first input that has one."""
    operator, count = proto.op_type, len(proto.output)
    if bodies:
        made = list(bodies[0][1:] if operator == "Loop" else bodies[0])
        return tuple((made + [0] * count)[:count])
    if operator == "Constant":
        return (_constant(proto, attributes),) * count
    if operator == "ConstantOfShape":
        stated = next((one for one in proto.attribute if one.name == "value"), None)
        return (TensorProto.FLOAT if stated is None else stated.t.data_type,) * count
    name, default = _CHOSEN.get(operator, ("", 0))
    chosen = attributes.get(name, 0) or default
    schema = schema_of(operator, proto.domain, version)
    first = next((kind for kind in kinds if kind), 0)
    if schema is None:
        return (chosen or first,) * count
    found = []
    for place in range(count):
        formal = schema.outputs[min(place, len(schema.outputs) - 1)]
        found.append(
            chosen if chosen and not place else _of_formal(schema, formal.type_str, kinds, attributes) or first
        )
    return tuple(found)


def _of_formal(schema: defs.OpSchema, text: str, kinds: Sequence[int], attributes: Mapping[str, Any]) -> int:
    """The type of a result whose formal type is given; 0 where it is open."""
    if "(" in text:
        return _named(text)
    for place, kind in enumerate(kinds):
        formal = schema.inputs[min(place, len(schema.inputs) - 1)]
        if formal.type_str == text and kind:
            return kind
    if "stash_type" in schema.attributes and text == "U":
        return attributes.get("stash_type", TensorProto.FLOAT)
    allowed = next((one.allowed_type_strs for one in schema.type_constraints if one.type_param_str == text), [])
    return _named(allowed[0]) if len(allowed) == 1 else 0


def _constant(proto: onnx.NodeProto, attributes: Mapping[str, Any]) -> int:
    """The type of a constant, before its value was widened."""
    for attribute in proto.attribute:
        if attribute.name == "value":
            return attribute.t.data_type
        if attribute.name == "sparse_value":
            return attribute.sparse_tensor.values.data_type
    return next((kind for name, kind in _CONSTANT.items() if name in attributes), kind_of(attributes.get("value")))
