"""ONNX: one protobuf file, perhaps with data beside it. Run by ONNX Runtime and by ONNX' own reference evaluator."""

from __future__ import annotations

from harness.backends.onnxruntime import LEVELS
from harness.backends.target.text import swapped
from harness.conversions.formats.format import Format, Runner, Writer, not_empty
from harness.dialects import ONNX

WRITE = """
def write(parameters, path):
    def element(dtype):
        return helper.np_dtype_to_tensor_dtype(np.dtype(dtype))

    g = Builder()
    results = model(g, *INPUTS, *PARAMETERS)
    proto = g.model(
        {name: (element(dtype), shape) for name, (dtype, shape) in INPUTS.items()},
        parameters,
        [(element(dtype), shape) for dtype, shape in OUTPUTS],
        results,
    )
    onnx.save(proto, path)
"""

_ORT = """
def open_model(path):
    import onnxruntime

    def ports(values):
        numpy_names = {"tensor(float)": "float32", "tensor(double)": "float64"}
        return [
            (
                value.name,
                numpy_names.get(value.type, value.type.removeprefix("tensor(").removesuffix(")")),
                [dim if isinstance(dim, int) else None for dim in value.shape] if value.type[:6] == "tensor" else None,
            )
            for value in values
        ]

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    # by default what is multiplied with quantised weights is rounded to eight bits, too
    options.add_session_config_entry("session.qdq_matmulnbits_accuracy_level", "1")
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    inputs, outputs = ports(session.get_inputs()), ports(session.get_outputs())

    def call(*arrays):
        return session.run(None, {name: array for (name, _, _), array in zip(inputs, arrays)})

    return inputs, outputs, call
"""

_REFERENCE = """
def open_model(path):
    import onnx
    from onnx.reference import ReferenceEvaluator

    proto = onnx.load(path)

    def ports(values):
        return [
            (
                value.name,
                dtype(value.type),
                [d.dim_value if d.HasField("dim_value") else None for d in value.type.tensor_type.shape.dim]
                if value.type.HasField("tensor_type")
                else None,
            )
            for value in values
        ]

    def dtype(type_):
        if not type_.HasField("tensor_type"):
            return f"({type_.WhichOneof('value')})"
        text = type_.tensor_type.elem_type == onnx.TensorProto.STRING
        return "string" if text else str(onnx.helper.tensor_dtype_to_np_dtype(type_.tensor_type.elem_type))

    constants = {tensor.name for tensor in proto.graph.initializer}
    inputs = ports(value for value in proto.graph.input if value.name not in constants)
    outputs = ports(proto.graph.output)
    evaluator = ReferenceEvaluator(proto)

    def call(*arrays):
        return evaluator.run(None, {name: array for (name, _, _), array in zip(inputs, arrays)})

    return inputs, outputs, call
"""

FORMATS = (
    Format(
        "onnx",
        ".onnx",
        (".onnx",),
        not_empty,
        writers=(Writer(ONNX, WRITE, ("onnx",), {"onnx": "1.17"}, ("ort-disable",)),),
        refuses=(
            (r"InferenceError: .*\(op_type:(\w+)\): .* has unsupported type: (\w+\(\w+\))", "ONNX has no {} of {}"),
            # of an operand after the first, which has the same type
            (r"InferenceError: .*\(op_type:(\w+)\): \w+ has inconsistent type (tensor\(bfloat16\))", "no {} of {} yet"),
        ),
    ),
)

_PACKAGES = {"onnxruntime|onnxruntime-gpu": "1.20"}
NO_KERNEL = (
    r"NOT_IMPLEMENTED : (?:Could not find an implementation|Failed to find kernel) for (\w+)",
    "no kernel for {}",
)
"""What ONNX Runtime says of an operator, or of a dtype of it, that it does not have."""

RUNNERS = (
    *(
        Runner(
            name,
            "onnx",
            "onnxruntime",
            ("onnxruntime",),
            _PACKAGES,
            swapped(_ORT, ("ORT_DISABLE_ALL", level)),
            inherits=(name,),
            level=list(LEVELS).index(name),
            owner="ONNX Runtime",
            refuses=(
                NO_KERNEL,
                (r"MLDataType for: tensor\((complex\d+)\) is not currently registered or supported", "no {}"),
                (r"No Op registered for (\S+)", "no {}"),
                (r"(Opset \d+) is under development", "no models of {}, which is under development"),
                (r"Fatal error: (\S+)\(-?\d+\) is not a registered function/op", "no {}"),
                (r"Numpy_type 1[45] can't be converted to MLDataType", "no complex tensors"),
                (r"(\w+) operator does not support double yet", "no {} of float64"),
                (r"Dilation not supported for AutoPadType", "no dilation beside auto_pad"),
                (r"(BFloat16|MLFloat16) data type is not supported with (\w+)", "{1} reduces no {0}"),
                (r"Numpy_type 2\d\d can't be converted to MLDataType", "no arrays of what numpy does not know"),
                (r"No corresponding Numpy type for Tensor Type\. (\w+)", "no arrays of {}, which numpy does not know"),
            ),
        )
        for name, level in reversed(LEVELS.items())
    ),
    Runner(
        "onnx-reference",
        "onnx",
        "onnx",
        ("onnx",),
        {"onnx": "1.17"},
        _REFERENCE,
        reference=True,
        owner="ONNX",
        refuses=((r"NotImplementedError: Node type '(\w+)' from domain '([\w.]+)' is unknown", "no {1}.{0}"),),
    ),
)
