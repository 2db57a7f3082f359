"""Small ONNX models, and the functions that say a model in another form, as the programs of edges have them."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import numpy as np
import onnx
from onnx import helper, numpy_helper

from harness.conversions.helpers import onnx_forms
from oracles.onnx.evaluate import evaluate

FORMS = ModuleType("forms")  # the texts one behind the other, as the programs of edges have them
PARTS = (
    *("forms", "equals", "around", "otherwise", "differently", "constants", "shapes", "opsets"),
    *("narrow", "microsoft", "microsoft_attention", "stored", "idle"),
)
for name in PARTS:
    text = Path(str(onnx_forms.__file__)).with_name(f"onnx_{name}.py").read_text(encoding="utf-8")
    exec(compile(text, name, "exec"), FORMS.__dict__)


def model_of(nodes: list[onnx.NodeProto], constants: dict[str, object], opset: int = 20) -> onnx.ModelProto:
    """Of one float32 input of shape (2, 3, 4, 4) and the outputs of the last node."""
    held = [numpy_helper.from_array(np.asarray(array), name) for name, array in constants.items()]
    given = [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, (2, 3, 4, 4))]
    ends = [onnx.ValueInfoProto(name=name) for name in nodes[-1].output]
    graph = helper.make_graph(nodes, "net", given, ends, held)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    typed = onnx.shape_inference.infer_shapes(model)
    known = {value.name: value for value in typed.graph.value_info} | {one.name: one for one in typed.graph.output}
    del model.graph.output[:]
    model.graph.output.extend(known[name] for name in nodes[-1].output)
    onnx.checker.check_model(model, full_check=True)
    return model


def only(model: onnx.ModelProto, kind: str) -> onnx.NodeProto:
    """The one node of that kind."""
    (node,) = [node for node in model.graph.node if node.op_type == kind]
    return node


INTS, F4 = np.array, np.float32
FLOORED = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
CASES = {
    "reduce": ([helper.make_node("ReduceSum", ["x", "a"], ["y"], keepdims=0)], {"a": INTS([-1])}),
    "mean": ([helper.make_node("ReduceMean", ["x", "a"], ["y"], keepdims=1)], {"a": INTS([0, 1, 2, 3])}),
    "squeeze": (
        [helper.make_node("Unsqueeze", ["x", "a"], ["u"]), helper.make_node("Squeeze", ["u", "a"], ["y"])],
        {"a": INTS([-5])},
    ),
    "split": ([helper.make_node("Split", ["x"], ["y", "z"], axis=-1, num_outputs=2)], {}),
    "sizes": ([helper.make_node("Split", ["x", "s"], ["y", "z"], axis=1)], {"s": INTS([1, 2])}),
    "clip": ([helper.make_node("Clip", ["x", "", "h"], ["y"])], {"h": np.float32(0.5)}),
    "slice": ([helper.make_node("Slice", ["x", "s", "e"], ["y"])], {"s": INTS([0, 1]), "e": INTS([2, 3])}),
    "steps": (
        [helper.make_node("Slice", ["x", "s", "e", "a", "t"], ["y"])],
        {"s": INTS([1, 0]), "e": INTS([3, 4]), "a": INTS([-1, 2]), "t": INTS([1, 1])},
    ),
    "pad": (
        [helper.make_node("Pad", ["x", "p", "v"], ["y"])],
        {"p": INTS([0, 0, 1, 0, 0, 0, 0, 2]), "v": np.float32(3)},
    ),
    "topk": ([helper.make_node("TopK", ["x", "k"], ["y", "i"], axis=-1)], {"k": INTS([2])}),
    "softmax": ([helper.make_node("Softmax", ["x"], ["y"])], {}),
    "scattered": (
        [helper.make_node("ScatterElements", ["x", "i", "u"], ["y"], axis=1)],
        {"i": np.arange(32).reshape(2, 1, 4, 4) % 3, "u": np.arange(32, dtype="float32").reshape(2, 1, 4, 4)},
    ),
    "classes": (
        [
            helper.make_node("ArgMax", ["x"], ["m"], axis=3, keepdims=0),
            helper.make_node("OneHot", ["m", "d", "v"], ["y"]),
        ],
        {"d": INTS(4), "v": np.array([0, 1], "float32")},
    ),
    "flattened": (
        [helper.make_node("ReduceMax", ["x", "a"], ["m"]), helper.make_node("Softmax", ["m"], ["y"], axis=3)],
        {"a": INTS([1, 2])},
    ),
    "upsample": ([helper.make_node("Resize", ["x", "", "", "s"], ["y"], **FLOORED)], {"s": INTS([2, 3, 8, 6])}),
    "upsample-linear": (
        [helper.make_node("Resize", ["x", "", "s"], ["y"], mode="linear", coordinate_transformation_mode="asymmetric")],
        {"s": np.array([1, 1, 2, 2], "float32")},
    ),
    "reshape": ([helper.make_node("Reshape", ["x", "s"], ["y"], allowzero=1)], {"s": INTS([6, 16])}),
    "sums": ([helper.make_node("CumSum", ["x", "a"], ["y"])], {"a": INTS(2)}),
    "rows": ([helper.make_node("Gather", ["x", "a"], ["y"], axis=1)], {"a": INTS([0, 2])}),
    "one": ([helper.make_node("TopK", ["x", "k"], ["y", "i"], axis=2)], {"k": INTS([1])}),
    "last": ([helper.make_node("ArgMax", ["x"], ["y"], axis=3, keepdims=0)], {}),
    "places": ([helper.make_node("GatherND", ["x", "a"], ["y"])], {"a": INTS([[1, 2], [0, 0], [1, 0]])}),
    "cast": ([helper.make_node("Cast", ["x"], ["y"], to=onnx.TensorProto.INT32)], {}),
    "shape": ([helper.make_node("Shape", ["x"], ["y"])], {}),
    "itself": ([helper.make_node("Identity", ["x"], ["y"])], {}),
    "units": (
        [helper.make_node("Unsqueeze", ["x", "a"], ["u"]), helper.make_node("Squeeze", ["u", "a"], ["y"])],
        {"a": INTS([2, 5])},
    ),
    "turned": ([helper.make_node("Transpose", ["x"], ["y"], perm=[3, 2, 1, 0])], {}),
    "conv": (
        [helper.make_node("Conv", ["x", "w"], ["y"], pads=[1, 1, 1, 1])],
        {"w": np.arange(27, dtype="f4").reshape(1, 3, 3, 3)},
    ),
    "spread": (
        [helper.make_node("ConvTranspose", ["x", "w"], ["y"], strides=[2, 2], pads=[1, 1, 1, 1])],
        {"w": np.arange(54, dtype="f4").reshape(3, 2, 3, 3)},
    ),
    "zeros": ([helper.make_node("Add", ["x", "z"], ["y"])], {"z": np.zeros((3, 1, 1), "f4")}),
    "counts": ([helper.make_node("Mul", ["x", "z"], ["y"])], {"z": np.arange(4, dtype="f4")}),
    "bounds": ([helper.make_node("Clip", ["x", "l", "h"], ["y"])], {"l": np.float32(-1), "h": np.float32(0.5)}),
    "product": (
        [helper.make_node("Reshape", ["x", "s"], ["r"]), helper.make_node("MatMul", ["r", "w"], ["y"])],
        {"s": INTS([6, 16]), "w": np.ones((16, 2), "f4")},
    ),
    "resize": (
        [helper.make_node("Resize", ["x", "", "s"], ["y"], mode="nearest")],
        {"s": np.array([1, 1, 2, 2], "f4")},
    ),
    "lstm": (
        [
            helper.make_node("Reshape", ["x", "s"], ["r"]),
            helper.make_node("LSTM", ["r", "w", "v"], ["y", "h"], hidden_size=2),
        ],
        {
            "s": INTS([4, 4, 6]),
            "w": np.linspace(-1, 1, 48, dtype="f4").reshape(1, 8, 6),
            "v": np.linspace(-1, 1, 16, dtype="f4").reshape(1, 8, 2),
        },
    ),
    "same": (
        [helper.make_node("MaxPool", ["x"], ["y"], kernel_shape=[2, 2], strides=[1, 2], auto_pad="SAME_UPPER")],
        {},
    ),
    "one-sided": (
        [helper.make_node("Conv", ["x", "w"], ["y"], pads=[0, 1, 1, 2])],
        {"w": np.arange(36, dtype="f4").reshape(1, 3, 3, 4)},
    ),
    "longer": (
        [
            helper.make_node(
                "ConvTranspose", ["x", "w"], ["y"], strides=[2, 2], pads=[0, 1, 1, 1], output_padding=[0, 1]
            )
        ],
        {"w": np.arange(54, dtype="f4").reshape(3, 2, 3, 3)},
    ),
    "spaced": (
        [helper.make_node("ConvTranspose", ["x", "w"], ["y"], strides=[2, 1], pads=[1, 1, 0, 1])],
        {"w": np.arange(54, dtype="f4").reshape(3, 2, 3, 3)},
    ),
    "patches": (
        [
            helper.make_node("Reshape", ["x", "s"], ["r"]),
            helper.make_node("Col2Im", ["r", "i", "b"], ["y"], pads=[1, 0, 0, 1], dilations=[2, 1], strides=[1, 2]),
        ],
        {"s": INTS([2, 4, 12]), "i": INTS([7, 3]), "b": INTS([2, 1])},
    ),
    "joined": ([helper.make_node("Concat", ["x", "x", "z"], ["y"], axis=1)], {"z": np.ones((2, 1, 4, 4), "f4")}),
    "three": ([helper.make_node("Split", ["x", "s"], ["y", "z", "w"], axis=2)], {"s": INTS([1, 2, 1])}),
    "uneven": ([helper.make_node("Split", ["x", "s"], ["y", "z"], axis=2)], {"s": INTS([3, 1])}),
    "trailing": ([helper.make_node("ReduceMean", ["x", "a"], ["y"], keepdims=0)], {"a": INTS([-1, 2])}),
    "expanded": ([helper.make_node("Expand", ["x", "s"], ["y"])], {"s": INTS([2, 2, 3, 4, 4])}),
    "square": ([helper.make_node("MatMul", ["x", "x"], ["y"])], {}),
    "pool": ([helper.make_node("MaxPool", ["x"], ["y"], kernel_shape=[2, 2], dilations=[1, 1])], {}),
    "squares": ([helper.make_node("Mul", ["x", "x"], ["y"])], {}),
    "logarithms": ([helper.make_node("Abs", ["x"], ["a"]), helper.make_node("Log", ["a"], ["y"])], {}),
    "normalised": (
        [helper.make_node("LayerNormalization", ["x", "s", "b"], ["y"])],
        {"s": np.full(4, 2, "f4"), "b": np.arange(4, dtype="f4")},
    ),
    "power": ([helper.make_node("Pow", ["x", "e"], ["y"])], {"e": np.array([3, 2, 0, 1], "f4")}),
    "picture": (
        [
            helper.make_node("ReduceMax", ["x", "a"], ["m"]),
            helper.make_node("Resize", ["m", "", "", "s"], ["y"], mode="linear"),
        ],
        {"a": INTS([0, 1]), "s": INTS([1, 1, 3, 7])},
    ),
    "every-second": (
        [helper.make_node("Slice", ["x", "s", "e", "a", "t"], ["y"])],
        {"s": INTS([0, 2]), "e": INTS([4, 2]), "a": INTS([3, 1]), "t": INTS([2, 1])},
    ),
    "windows": ([helper.make_node("MaxPool", ["x"], ["y"], kernel_shape=[2, 2], dilations=[2, 1], strides=[1, 2])], {}),
    "proportion": ([helper.make_node("Resize", ["x", "", "", "s"], ["y"], mode="linear")], {"s": INTS([2, 3, 8, 8])}),
    "letters": (
        [helper.make_node("Einsum", ["x", "w"], ["y"], equation="abcd,de->abce")],
        {"w": np.arange(8, dtype="f4").reshape(4, 2)},
    ),
    "negated": ([helper.make_node("Greater", ["x", "z"], ["g"]), helper.make_node("Not", ["g"], ["y"])], {"z": F4(0)}),
    "unpooled": (
        [
            helper.make_node("MaxPool", ["x"], ["m", "i"], kernel_shape=[2, 2], strides=[2, 2]),
            helper.make_node("MaxUnpool", ["m", "i"], ["y"], kernel_shape=[2, 2], strides=[2, 2]),
        ],
        {},
    ),
    "attended": ([helper.make_node("Attention", ["x", "x", "x", "m"], ["y"])], {"m": np.tri(4, dtype=bool)}),
    "colours": ([helper.make_node("Resize", ["x", "", "", "s"], ["y"], mode="cubic")], {"s": INTS([2, 3, 7, 5])}),
    "last-rows": ([helper.make_node("Gather", ["x", "a"], ["y"], axis=1)], {"a": INTS([1, 2])}),
    "weights": (
        [
            helper.make_node("QuantizeLinear", ["w", "s", "z"], ["q"], axis=0),
            helper.make_node("DequantizeLinear", ["q", "s", "z"], ["d"], axis=0),
            helper.make_node("MatMul", ["x", "d"], ["y"]),
        ],
        {
            "w": np.linspace(-2, 2, 8, dtype="f4").reshape(4, 2),
            "s": np.array([0.5, 0.25, 0.125, 1], "f4"),
            "z": np.zeros(4, "i1"),
        },
    ),
    "numbers": (
        [
            helper.make_node("Slice", ["x", "z", "e"], ["r"]),
            helper.make_node("Reshape", ["r", "s"], ["f"]),
            helper.make_node("QuantizeLinear", ["f", "h", "p"], ["q"]),
            helper.make_node("MatMulInteger", ["q", "w"], ["y"]),
        ],
        {
            "z": INTS([0, 0, 0, 0]),
            "e": INTS([1, 1, 2, 2]),
            "s": INTS([1, 4]),
            "h": F4(0.125),
            "p": np.uint8(100),
            "w": np.arange(8, dtype="u1").reshape(4, 2),
        },
    ),
    "levels": (
        [
            helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"], axis=1),
            helper.make_node("DequantizeLinear", ["q", "s", "z"], ["y"], axis=1),
        ],
        {"s": np.array([0.5, 0.25, 0.125], "f4"), "z": np.zeros(3, "u1")},
    ),
    "gelu": ([helper.make_node("Gelu", ["x"], ["y"])], {}),
    "gelu-tanh": ([helper.make_node("Gelu", ["x"], ["y"], approximate="tanh")], {}),
    "swish": ([helper.make_node("Swish", ["x"], ["y"], alpha=0.5)], {}),
    "root": ([helper.make_node("RMSNormalization", ["x", "s"], ["y"])], {"s": np.arange(4, dtype="f4")}),
    "words": (
        [helper.make_node("Gather", ["w", "i"], ["r"]), helper.make_node("Mul", ["x", "r"], ["y"])],
        {
            "w": np.arange(8, dtype="f4").reshape(2, 4),
            "i": INTS([1, 0, 1, 1]),
        },
    ),
    "general": (
        [helper.make_node("Reshape", ["x", "s"], ["r"]), helper.make_node("Gemm", ["r", "w", "b"], ["y"], transB=1)],
        {"s": INTS([6, 16]), "w": np.ones((2, 16), "f4"), "b": np.arange(2, dtype="f4")},
    ),
    "pooled-bytes": (
        [
            helper.make_node("QuantizeLinear", ["x", "h", "p"], ["q"]),
            helper.make_node("MaxPool", ["q"], ["y"], kernel_shape=[2, 2], pads=[1, 0, 0, 1]),
        ],
        {"h": F4(0.125), "p": np.int8(5)},
    ),
    "angles": (
        [helper.make_node("RotaryEmbedding", ["x", "c", "n"], ["y"])],
        {"c": np.arange(12, dtype="f4").reshape(2, 3, 2)[:, :3].repeat(2, 1)[:, :4], "n": np.ones((2, 4, 2), "f4")},
    ),
    "heads": ([helper.make_node("Attention", ["x", "x", "x"], ["y"], scale=0.5)], {}),
    "one-way": ([helper.make_node("Attention", ["x", "x", "x"], ["y"], is_causal=1)], {}),
    "eight": (
        [
            helper.make_node("Concat", ["x", "x"], ["r"], axis=3),
            helper.make_node("Attention", ["r", "r", "r"], ["y"], is_causal=1),
        ],
        {},
    ),
    "came": (
        [
            helper.make_node("Slice", ["x", "z", "e", "a"], ["q"]),
            helper.make_node("Attention", ["q", "x", "x", "m"], ["y"]),
        ],
        {"z": INTS([1]), "e": INTS([4]), "a": INTS([2]), "m": np.tri(3, 4, dtype="f4")},
    ),
    "columns": (
        [
            helper.make_node("QuantizeLinear", ["w", "s", "z"], ["q"], axis=1),
            helper.make_node("DequantizeLinear", ["q", "s", "z"], ["d"], axis=1),
            helper.make_node("MatMul", ["x", "d"], ["y"]),
        ],
        {
            "w": np.linspace(-2, 2, 8, dtype="f4").reshape(4, 2),
            "s": np.array([0.5, 0.25], "f4"),
            "z": np.zeros(2, "i1"),
        },
    ),
    "four-bits": (
        [
            helper.make_node("QuantizeLinear", ["w", "s", "z"], ["q"], axis=1),
            helper.make_node("DequantizeLinear", ["q", "s", "z"], ["d"], axis=1),
            helper.make_node("MatMul", ["x", "d"], ["y"]),
        ],
        {
            "w": np.linspace(-2, 1, 8, dtype="f4").reshape(4, 2),
            "s": np.array([0.5, 0.25], "f4"),
            "z": np.array([3, 5], "u1"),
        },
    ),
    "two-bits": (
        [
            helper.make_node("QuantizeLinear", ["w", "s", "z"], ["q"]),
            helper.make_node("DequantizeLinear", ["q", "s", "z"], ["d"]),
            helper.make_node("MatMul", ["x", "d"], ["y"]),
        ],
        {"w": np.linspace(-1, 2, 8, dtype="f4").reshape(4, 2), "s": np.float32(1), "z": np.int8(7)},
    ),
    "table": (
        [
            helper.make_node("QuantizeLinear", ["w", "s", "z"], ["q"], axis=0),
            helper.make_node("DequantizeLinear", ["q", "s", "z"], ["d"], axis=0),
            helper.make_node("Gather", ["d", "i"], ["r"]),
            helper.make_node("Reshape", ["x", "f"], ["g"]),
            helper.make_node("Mul", ["g", "r"], ["y"]),
        ],
        {
            "w": np.linspace(-2, 2, 32, dtype="f4").reshape(2, 16),
            "s": np.array([0.5, 0.25], "f4"),
            "z": np.array([3, 0], "u1"),
            "i": INTS([1]),
            "f": INTS([6, 16]),
        },
    ),
    "quantised-product": (
        [
            helper.make_node("QuantizeLinear", ["x", "h", "p"], ["a"]),
            helper.make_node("DequantizeLinear", ["a", "h", "p"], ["b"]),
            helper.make_node("QuantizeLinear", ["w", "s", "z"], ["q"], axis=1),
            helper.make_node("DequantizeLinear", ["q", "s", "z"], ["d"], axis=1),
            helper.make_node("MatMul", ["b", "d"], ["m"]),
            helper.make_node("QuantizeLinear", ["m", "h", "p"], ["y"]),
        ],
        {
            "w": np.linspace(-2, 2, 8, dtype="f4").reshape(4, 2),
            "s": np.array([0.5, 0.25], "f4"),
            "z": np.zeros(2, "i1"),
            "h": F4(0.25),
            "p": np.uint8(100),
        },
    ),
    "traced": ([helper.make_node("Einsum", ["x"], ["y"], equation="abcc->ab")], {}),
}


def values(model: onnx.ModelProto) -> list[np.ndarray]:
    """In float64, by the reference of given models."""
    x = np.random.default_rng(5).normal(size=(2, 3, 4, 4)).astype("f4")
    return [np.asarray(array) for array in evaluate(model, {"x": x})]


OPSETS_OF = {"attended": 23, "swish": 24, "root": 23}
OPSETS_OF |= dict.fromkeys(("angles", "heads", "one-way", "eight", "came"), 23)
"""In which a case is written, where that is not opset 20."""
CAME = {
    "attended": 23,
    "unpooled": 11,
    "weights": 13,
    "letters": 12,
    "proportion": 11,
    "normalised": 17,
    "sums": 11,
    "classes": 11,
    "places": 11,
    "resize": 11,
    "picture": 11,
    "colours": 11,
    "traced": 12,
    "every-second": 10,
    "patches": 18,
    "windows": 10,
    "numbers": 10,
    "levels": 13,
    "gelu": 20,
    "gelu-tanh": 20,
    "pooled-bytes": 12,
    "scattered": 11,
    "general": 11,
    "columns": 13,
    "four-bits": 13,
    "two-bits": 13,
    "table": 13,
    "quantised-product": 13,
    "swish": 24,
    **dict.fromkeys(("root", "angles", "heads", "one-way", "eight", "came"), 23),
}
"""The opset in which the operator of a case came, or became what it is."""
