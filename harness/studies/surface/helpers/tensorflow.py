"""TensorFlow: its register of operators, with the dtypes that kernels on the CPU take, and the nodes of a traced
function."""

import tensorflow as tf
from tensorflow.python.framework import kernels, op_def_registry

NUMERIC = [
    *("float32", "float64", "half", "bfloat16", "bool", "int8", "int16", "int32", "int64"),
    *("uint8", "uint16", "uint32", "uint64", "complex64", "complex128"),
]
DEVICES = "CPU", "XLA_CPU_JIT"


def dtype_name(number):
    name = tf.as_dtype(number).name
    return {"half": "float16"}.get(name, name)


def on_processor(name):
    """attribute -> dtypes that have a kernel on the CPU; None where the operator has no such kernel."""
    found, free = {}, set()
    mine = [one for one in kernels.get_registered_kernels_for_op(name).kernel if one.device_type in DEVICES]
    if not mine:
        return None
    for kernel in mine:
        said = set()
        for constraint in kernel.constraint:
            said.add(constraint.name)
            found.setdefault(constraint.name, set()).update(constraint.allowed_values.list.type)
        free |= {None} if not said else set()
    return found


def tags_of(definition, kernel_types):
    ports = [*definition.input_arg, *definition.output_arg]
    types = {port.type for port in ports if port.type}
    if kernel_types is None:
        yield "without a kernel on the CPU"
    if definition.is_stateful:
        yield "stateful"
    if definition.deprecation.version:
        yield "deprecated"
    if types & {tf.resource.as_datatype_enum, tf.variant.as_datatype_enum}:
        yield "of resources"
    if any(port.is_ref for port in ports):
        yield "of references"
    if tf.string.as_datatype_enum in types:
        yield "of strings"


def listed():
    found = {}
    for name in (one for one in dir(tf.raw_ops) if not one.startswith("_")):
        definition = op_def_registry.get(name)
        if definition is None:
            continue
        kernel_types = on_processor(name)
        features = [f"is {one}" for one in tags_of(definition, kernel_types)]
        for attribute in definition.attr:
            if attribute.type == "type":
                allowed = [dtype_name(number) for number in attribute.allowed_values.list.type] or [
                    dtype_name(tf.as_dtype(one)) for one in NUMERIC
                ]
                kernel = {dtype_name(number) for number in (kernel_types or {}).get(attribute.name, ())}
                features += [f"type {attribute.name}={one}" for one in allowed if not kernel or one in kernel]
            elif attribute.type == "string" and attribute.allowed_values.list.s:
                features += [f"attribute {attribute.name}={one.decode()}" for one in attribute.allowed_values.list.s]
            elif attribute.type == "bool":
                features += [f"attribute {attribute.name}={one}" for one in (False, True)]
            elif attribute.HasField("default_value"):
                features += [f"attribute {attribute.name}={how}" for how in ("default", "given")]
        for port in definition.input_arg:
            features += [f"operand {port.name}={kind}" for kind in ("tensor", "constant")]
        found[name] = features
    return found


def observe(program, note):
    bound = [tf.constant(array) for array in plain_numbers(program["PARAMETERS"], 1).values()]
    signature = [tf.TensorSpec(shape, dtype) for dtype, shape in program["INPUTS"].values()]
    function = tf.function(lambda *inputs: program["model"](*inputs, *bound), signature, autograph=False)
    for operation in function.get_concrete_function().graph.get_operations():
        observe_operation(operation, note)


def observe_operation(operation, note):
    definition = op_def_registry.get(operation.type)
    if definition is None or operation.type in ("Placeholder", "NoOp"):
        return
    features, attributes = [], operation.node_def.attr
    for attribute in definition.attr:
        if attribute.name not in attributes:
            continue
        value = attributes[attribute.name]
        if attribute.type == "type":
            features.append(f"type {attribute.name}={dtype_name(value.type)}")
        elif attribute.type == "string" and attribute.allowed_values.list.s:
            features.append(f"attribute {attribute.name}={value.s.decode()}")
        elif attribute.type == "bool":
            features.append(f"attribute {attribute.name}={value.b}")
        elif attribute.HasField("default_value"):
            how = "default" if value == attribute.default_value else "given"
            features.append(f"attribute {attribute.name}={how}")
    for number, port in enumerate(operation.inputs):
        name = definition.input_arg[min(number, len(definition.input_arg) - 1)].name
        features.append(f"operand {name}={'constant' if source_of(port) == 'Const' else 'tensor'}")
    note(operation.type, features)


def source_of(tensor):
    operation = tensor.op
    while operation.type in ("Identity", "Reshape") and operation.inputs:
        operation = operation.inputs[0].op
    return operation.type
