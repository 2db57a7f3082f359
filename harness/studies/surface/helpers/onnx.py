"""ONNX: its schemas up to the newest opset that ONNX Runtime takes, with the types of which that has kernels, and the
nodes of a model."""

from functools import partial

import onnx
from onnx import defs, helper

SHORT = {"float": "float32", "double": "float64"}
NO_TENSOR = "graph", "graphs"


def short(type_text):
    inner = type_text.removeprefix("tensor(").removesuffix(")")
    return SHORT.get(inner, inner)


def title(domain, name):
    return f"{domain}:{name}" if domain else name


def constraints(schema):
    return {one.type_param_str: [short(text) for text in one.allowed_type_strs] for one in schema.type_constraints}


def runtime():
    """The newest opset that ONNX Runtime takes, and what its kernels on the CPU take: (domain, operator) -> type
    parameter -> types."""
    import onnxruntime.capi.onnxruntime_pybind11_state as state

    taken = {}
    for kernel in state.get_all_opkernel_def():
        if kernel.provider == "CPUExecutionProvider":
            types = taken.setdefault((kernel.domain, kernel.op_name), {})
            for name, allowed in kernel.type_constraints.items():
                types.setdefault(name, set()).update(map(short, allowed))
    return newest_opset(), taken


def newest_opset():
    return next(opset for opset in range(defs.onnx_opset_version(), 0, -1) if runs(opset))


def runs(opset):
    import onnxruntime

    x, y = (helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, (1,)) for name in "xy")
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "net", [x], [y])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    try:
        onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    except Exception:
        return False
    return True


def end_of(schema, newest):
    """Why no runner is asked for this version of an operator; nothing where one is."""
    others = [one.since_version for one in HISTORY if (one.name, one.domain) == (schema.name, schema.domain)]
    after = [one for one in others if one > schema.since_version]
    if not schema.domain and after and min(after) <= OLDEST:
        return " older than runners promise"
    return " newer than any runner" if not schema.domain and schema.since_version > newest else ""


OLDEST = 7
"""The oldest opset that ONNX Runtime promises to run."""


def has_kernel(kernels, name, text):
    """Of one type parameter. Where ONNX Runtime has none of float16, it casts around one of float32; operators without
    kernels are taken apart."""
    taken = (kernels or {}).get(name)
    return not taken or text in taken or (text == "float16" and "float32" in taken)


def listed():
    found = {}
    newest, taken = runtime()
    for schema in defs.get_all_schemas():
        came = min(one.since_version for one in HISTORY if (one.name, one.domain) == (schema.name, schema.domain))
        features = ["is newer than any runner"] if not schema.domain and came > newest else []
        if not schema.domain and came <= newest < schema.since_version:
            schema = defs.get_schema(schema.name, newest)
        used = {port.type_str for port in (*schema.inputs, *schema.outputs)}
        kernels = taken.get((schema.domain, schema.name))
        for name, types in constraints(schema).items():
            for text in types if name in used else ():
                lacking = "" if has_kernel(kernels, name, text) else " without a kernel"
                features.append(f"type {name}={text}{lacking}")
        for name, attribute in schema.attributes.items():
            kind = attribute.type.name.lower()
            if kind in NO_TENSOR:
                features.append(f"attribute {name}=graph")
            elif attribute.required:
                features.append(f"attribute {name}=given")
            else:
                features += [f"attribute {name}={how}" for how in ("default", "given")]
        for port in schema.inputs:
            features += [f"operand {port.name}={kind}" for kind in ("tensor", "constant")]
            if port.option == defs.OpSchema.FormalParameterOption.Optional:
                features.append(f"operand {port.name}=absent")
        found[title(schema.domain, schema.name)] = features
    for schema in HISTORY:
        if not schema.deprecated and title(schema.domain, schema.name) in found:
            found[title(schema.domain, schema.name)].append(f"version {schema.since_version}{end_of(schema, newest)}")
    return found


def element(dtype):
    return helper.np_dtype_to_tensor_dtype(np.dtype(dtype))


def model_of(program):
    g, inputs = program["Builder"](), program["INPUTS"]
    results = program["model"](g, *inputs, *program["PARAMETERS"])
    return g.model(
        {name: (element(dtype), shape) for name, (dtype, shape) in inputs.items()},
        plain_numbers(program["PARAMETERS"], 1),
        [(element(dtype), shape) for dtype, shape in program["OUTPUTS"]],
        results,
    )


def observe(program, note):
    """The nodes of a model, and of its other forms, which sweeps of conversions take."""
    model = model_of(program)
    observe_model(model, note)
    for change in (terse, explicit, computed, equivalent, *(partial(move, opset=opset) for opset in OPSETS)):
        form = onnx.ModelProto.FromString(model.SerializeToString())
        try:
            change(form)
        except NotImplementedError:
            continue  # it has no such form
        observe_model(form, note)


def observe_model(model, note):
    graph = onnx.shape_inference.infer_shapes(model).graph
    constants = {tensor.name for tensor in graph.initializer}
    constants |= {name for node in graph.node if node.op_type == "Constant" for name in node.output}
    types = {tensor.name: tensor.data_type for tensor in graph.initializer}
    for value in (*graph.input, *graph.output, *graph.value_info):
        types[value.name] = value.type.tensor_type.elem_type
    opsets = {one.domain: one.version for one in model.opset_import}
    for node in graph.node:
        if node.op_type == "Identity" and node.output[0].startswith("out"):
            continue  # the end of every graph
        domain = "" if node.domain == "ai.onnx" else node.domain
        schema = defs.get_schema(node.op_type, opsets[domain], domain)
        note(title(domain, node.op_type), list(features(node, schema, types, constants)))


def port_of(ports, number):
    """The last one may repeat."""
    return ports[min(number, len(ports) - 1)]


def features(node, schema, types, constants):
    yield f"version {schema.since_version}"
    values, stated = given(node), defaults(schema)
    for name, attribute in schema.attributes.items():
        if attribute.type.name.lower() in NO_TENSOR:
            yield f"attribute {name}=graph"
        else:  # one that is given as its default tells nothing of it
            usual = name not in values or (name in stated and values[name] == stated[name])
            yield f"attribute {name}={'default' if usual else 'given'}"
    for number, name in enumerate(node.input):
        port = port_of(schema.inputs, number)
        yield f"operand {port.name}={'absent' if not name else 'constant' if name in constants else 'tensor'}"
    for port in schema.inputs[len(node.input) :]:
        yield f"operand {port.name}=absent"
    for ports, names in ((schema.inputs, node.input), (schema.outputs, node.output)):
        for number, name in enumerate(names):
            if types.get(name):
                dtype = onnx.TensorProto.DataType.Name(types[name]).lower()
                yield f"type {port_of(ports, number).type_str}={SHORT.get(dtype, dtype)}"
