"""The schema of torch.export's JSON (torch/_export/serde/schema.py), version 8, and what each of its texts may be.

A type is a record of RECORDS, a leaf of LEAVES, `[T]`, `{K:T}` (a dictionary) or `T?` (may be null)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from harness.conversions.gate import pt2_texts as texts
from harness.conversions.gate.reading.refused import Refused, quoted
from harness.conversions.gate.reading.words import words

LARGEST = 2**63
UNIONS = words(
    """SymExprHint SymInt SymFloat SymBool SymIntArgument SymFloatArgument SymBoolArgument OptionalTensorArgument
    Argument InputArgument ConstantValue InputSpec OutputSpec"""
)
_ARGUMENT = {
    "as_none": "bool",
    "as_tensor": "Tensor",
    "as_tensors": "[Tensor]",
    "as_int": "int",
    "as_ints": "[int]",
    "as_float": "float",
    "as_floats": "[float]",
    "as_string": "text",
    "as_strings": "[text]",
    "as_sym_int": "SymIntArgument",
    "as_sym_ints": "[SymIntArgument]",
    "as_scalar_type": "int",
    "as_memory_format": "int",
    "as_layout": "int",
    "as_device": "Device",
    "as_bool": "bool",
    "as_bools": "[bool]",
    "as_sym_bool": "SymBoolArgument",
    "as_sym_bools": "[SymBoolArgument]",
    "as_graph": "GraphArgument",
    "as_optional_tensors": "[OptionalTensorArgument]",
    "as_operator": "operator",
    "as_sym_float": "SymFloatArgument",
    "as_sym_floats": "[SymFloatArgument]",
    "as_optional_tensor": "OptionalTensorArgument",
    "as_complex": "Complex",
    "as_nested_tensors": "[[Tensor]]",
    "as_int_lists": "[[int]]",
    "as_string_to_argument": "{key:Argument}",
    "as_float_lists": "[[float]]",
}
"""Objects of custom classes (as_custom_obj) are not among them: they are pickles of code."""
RECORDS: Mapping[str, Mapping[str, str]] = {
    "Device": {"type": "device", "index": "int?"},
    "SymExprHint": {"as_int": "int", "as_bool": "bool", "as_float": "float"},
    "SymExpr": {"expr_str": "expression", "hint": "SymExprHint?"},
    "SymInt": {"as_expr": "SymExpr", "as_int": "int"},
    "SymFloat": {"as_expr": "SymExpr", "as_float": "float"},
    "SymBool": {"as_expr": "SymExpr", "as_bool": "bool"},
    "TensorMeta": {
        "dtype": "int",
        "sizes": "[SymInt]",
        "requires_grad": "bool",
        "device": "Device",
        "strides": "[SymInt]",
        "storage_offset": "SymInt",
        "layout": "int",
    },
    "SymIntArgument": {"as_name": "name", "as_int": "int"},
    "SymFloatArgument": {"as_name": "name", "as_float": "float"},
    "SymBoolArgument": {"as_name": "name", "as_bool": "bool"},
    "Tensor": {"name": "name"},
    "OptionalTensorArgument": {"as_tensor": "Tensor", "as_none": "bool"},
    "GraphArgument": {"name": "name", "graph": "Graph"},
    "Complex": {"real": "float", "imag": "float"},
    "Argument": _ARGUMENT,
    # what an input is compared with stands in generated code
    "InputArgument": {**_ARGUMENT, "as_string": "key", "as_strings": "[key]"},
    "NamedArgument": {"name": "name_or_none", "arg": "Argument", "kind": "int?"},
    "Node": {
        "target": "operator",
        "inputs": "[NamedArgument]",
        "outputs": "[Argument]",
        "metadata": "metadata",
        "is_hop_single_tensor_return": "bool?",
        "name": "name?",
    },
    "Graph": {
        "inputs": "[InputArgument]",
        "outputs": "[Argument]",
        "nodes": "[Node]",
        "tensor_values": "{name:TensorMeta}",
        "sym_int_values": "{name:SymInt}",
        "sym_bool_values": "{name:SymBool}",
        "is_single_tensor_return": "bool",
        "custom_obj_values": "nothing",
        "sym_float_values": "{name:SymFloat}",
    },
    "UserInput": {"arg": "InputArgument"},
    "ConstantValue": {"as_none": "bool", "as_int": "int", "as_float": "float", "as_string": "key", "as_bool": "bool"},
    "ConstantInput": {"name": "name_or_none", "value": "ConstantValue"},
    "Parameter": {"arg": "Tensor", "parameter_name": "path"},
    "Buffer": {"arg": "Tensor", "buffer_name": "path", "persistent": "bool"},
    "TensorConstant": {"arg": "Tensor", "tensor_constant_name": "path"},
    "InputSpec": {
        "user_input": "UserInput",
        "parameter": "Parameter",
        "buffer": "Buffer",
        "tensor_constant": "TensorConstant",
        "token": "Token",
        "constant_input": "ConstantInput",
    },
    "Token": {"arg": "Tensor"},
    "UserOutput": {"arg": "Argument"},
    "BufferMutation": {"arg": "Tensor", "buffer_name": "path"},
    "ParameterMutation": {"arg": "Tensor", "parameter_name": "path"},
    "InputMutation": {"arg": "Tensor", "user_input_name": "name"},
    "OutputSpec": {
        "user_output": "UserOutput",
        "loss_output": "Token",
        "buffer_mutation": "BufferMutation",
        "gradient_to_parameter": "ParameterMutation",
        "gradient_to_user_input": "InputMutation",
        "user_input_mutation": "InputMutation",
        "token": "Token",
        "parameter_mutation": "ParameterMutation",
    },
    "GraphSignature": {"input_specs": "[InputSpec]", "output_specs": "[OutputSpec]"},
    "RangeConstraint": {"min_val": "int?", "max_val": "int?"},
    "ModuleCallSignature": {
        "inputs": "[InputArgument]",
        "outputs": "[Argument]",
        "in_spec": "tree",
        "out_spec": "tree",
        "forward_arg_names": "[name]?",
    },
    "ModuleCallEntry": {"fqn": "path", "signature": "ModuleCallSignature?"},
    "NamedTupleDef": {"field_names": "[name]"},
    "GraphModule": {
        "graph": "Graph",
        "signature": "GraphSignature",
        "module_call_graph": "[ModuleCallEntry]",
        "metadata": "metadata",
        "treespec_namedtuple_fields": "{path:NamedTupleDef}",
    },
    "SchemaVersion": {"major": "int", "minor": "int"},
    "ExportedProgram": {
        "graph_module": "GraphModule",
        "opset_version": "{name:int}",
        "range_constraints": "{expression:RangeConstraint}",
        "schema_version": "SchemaVersion",
        "verifiers": "[name]",
        "torch_version": "key",
        "guards_code": "[guard]",
    },
    "PayloadMeta": {"path_name": "payload", "is_param": "bool", "use_pickle": "false", "tensor_meta": "TensorMeta"},
    "PayloadConfig": {"config": "{path:PayloadMeta}"},
}


def _is(kind: type | tuple[type, ...]) -> Callable[[Any, str], None]:
    def check(value: Any, spot: str) -> None:
        wrong = not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool)
        if wrong or (isinstance(value, int) and abs(value) > LARGEST):
            raise Refused(f"{spot} is {quoted(value)}")

    return check


def _is_float(value: Any, spot: str) -> None:
    if not (isinstance(value, str) and re.fullmatch(r"-?Infinity|NaN", value)):
        _is((int, float))(value, spot)


def _is_empty(value: Any, spot: str) -> None:
    if value:
        raise Refused(f"{spot} holds {quoted(value)}")


LEAVES: Mapping[str, Callable[[Any, str], None]] = {
    "int": _is(int),
    "float": _is_float,
    "bool": _is(bool),
    "nothing": _is_empty,
    "false": _is_empty,
    "name": texts.name,
    "name_or_none": texts.name_or_none,
    "path": texts.path,
    "key": texts.key,
    "text": texts.text,
    "device": texts.device,
    "payload": texts.payload,
    "operator": texts.operator,
    "expression": texts.expression,
    "guard": texts.guard,
    "tree": texts.tree,
    "metadata": texts.metadata,
}


def check(value: Any, kind: str, spot: str) -> None:
    """That a parsed JSON value is of a type. spot: where it stands. Raises Refused."""
    if kind.endswith("?"):
        if value is not None:
            check(value, kind[:-1], spot)
    elif kind in LEAVES:
        LEAVES[kind](value, spot)
    elif kind.startswith("["):
        _is(list)(value, spot)
        for place, one in enumerate(value):
            check(one, kind[1:-1], f"{spot}[{place}]")
    elif kind.startswith("{"):
        _is(dict)(value, spot)
        of_key, _, of_value = kind[1:-1].partition(":")
        for key, one in value.items():
            LEAVES[of_key](key, f"a key of {spot}")
            check(one, of_value, f"{spot}.{key[:60]}")
    else:
        _record(value, kind, spot)


def _record(value: Any, kind: str, spot: str) -> None:
    _is(dict)(value, spot)
    fields = RECORDS[kind]
    if kind in UNIONS and len(value) != 1:
        raise Refused(f"{spot} has {len(value)} values for one")
    for key, one in value.items():
        if key not in fields:
            raise Refused(f"{spot} has {quoted(key)}, which no {kind} has")
        check(one, fields[key], f"{spot}.{key}")
