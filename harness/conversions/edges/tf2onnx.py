"""tf2onnx: from SavedModel, TFLite and Keras to ONNX."""

from __future__ import annotations

from harness.conversions.edges.edge import Edge
from harness.conversions.formats.savedmodel import NO_KERNEL
from harness.conversions.formats.tflite import SIGNED

_SAVED_MODEL = """
def convert(source, target):
    import sys

    import tf2onnx.convert

    sys.argv = ["tf2onnx.convert", "--saved-model", source, "--output", target, "--opset", "18"]
    tf2onnx.convert.main()
"""

_TFLITE = (
    SIGNED
    + """

def convert(source, target):
    import onnx
    import tf2onnx.convert

    tf2onnx.convert.from_tflite(source, opset=18, output_path=target)
    model, names = onnx.load(target), [name for _, name in signed(source)]
    graph = model.graph
    if {*names} & {name for node in graph.node for name in (*node.input, *node.output)}:
        return
    for value, name in zip(graph.output, names):  # it leaves them the names of tensors
        graph.node.append(onnx.helper.make_node("Identity", [value.name], [name]))
        value.name = name
    onnx.save(model, target)
"""
)

_KERAS = """
def convert(source, target):
    import keras
    import tf2onnx.convert

    model = keras.saving.load_model(source, compile=False, safe_mode=not TRUST)
    tf2onnx.convert.from_keras(model, opset=18, output_path=target)
"""

_MODULES = ("tensorflow", "tf2onnx")
LEFT = (
    ("Could not infer the attribute type from the elements of the passed Iterable", "XlaCallModule is left as it is"),
    (r"INVALID_GRAPH .* No Op registered for (\w+)", "{} is left as it is"),
    (r"make_sure failure: (.*) not yet supported", "no {}"),
    (r"ComplexAbs expected the first dimension to be 2", "complex numbers are left as they are"),
    (r"don't know how to cast type (\d+) on node", "it does not know how to cast type {}"),  # of TensorProto
    (r"make_sure failure: Current implementation of (.*) only allows (\w+) as consumer", "{} for {} alone"),
    (r"make_sure failure: Unable to convert node (\w+) with narrow_range=1", "no {} of a narrow range"),
    (r"make_sure failure: Unable to convert node (\w+) with num_bits=(\d+)", "no {} of {} bits"),
    (r"dtype (\d+) is not supported in onnx for now", "it knows no such operator of type {}"),  # of TensorProto
    ("make_sure failure: perm can't be dynamic in ONNX", "ONNX has no permutation that is computed"),
    ("make_sure failure: dtype for Segment ops must be float or int", "no segments of this dtype"),
    (r"Type 'tensor\((\w+)\)' of input parameter .* of operator \((\w+)\)", "{1} of {0} is left as it is"),
)
"""It logs that it has no rule for an operator, and copies it, which an empty list among its attributes ends at once (of
XlaCallModule, by which jax2tf's models compute); ONNX' operators have no complex dtypes."""
_PACKAGES = {"tf2onnx": "1.16", "tensorflow-cpu|tensorflow": "2.16", "onnx": "1.17"}

EDGES = (
    Edge("tf2onnx", "savedmodel", "onnx", _MODULES, _PACKAGES, _SAVED_MODEL, refuses=LEFT),
    Edge(
        "tf2onnx-tflite",
        "tflite",
        "onnx",
        (*_MODULES, "onnx", "tflite"),
        {**_PACKAGES, "tflite": "2.18"},
        _TFLITE,
        refuses=(*LEFT, (r"KeyError: 18\n", "its table of TFLite's dtypes has no bfloat16")),  # TensorType.BFLOAT16
    ),
    Edge("tf2onnx-keras", "keras", "onnx", _MODULES, _PACKAGES, _KERAS, refuses=(*LEFT, *NO_KERNEL)),
)
