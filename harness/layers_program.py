"""The program that judges each node of an ONNX model alone (`harness/layers.py`): MODEL, OBSERVED and INPUTS stand
before it, `open_model` after it."""

from __future__ import annotations

PROGRAM = '''
import json
import tempfile
from pathlib import Path

import numpy as np
from onnx import helper, numpy_helper

PLAIN = onnxruntime.SessionOptions()
PLAIN.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
PLAIN.log_severity_level = 4


def open_plain(path):
    session = onnxruntime.InferenceSession(path, PLAIN, providers=["CPUExecutionProvider"])
    inputs = [(item.name, None, None) for item in session.get_inputs()]
    outputs = [(item.name, None, None) for item in session.get_outputs()]
    return inputs, outputs, lambda arrays: session.run(None, dict(zip([name for name, _, _ in inputs], arrays)))


def values(path, given, opener):
    """What every tensor of the model holds, by name: constants, inputs, and results with all of them as outputs."""
    model = onnx.load(path)
    held = {item.name: numpy_helper.to_array(item) for item in model.graph.initializer}
    known = {item.name for item in model.graph.output}
    types = {item.name: item for item in onnx.shape_inference.infer_shapes(model).graph.value_info}
    for name in (name for node in model.graph.node for name in node.output):
        if name and name not in known and (name not in types or types[name].type.HasField("tensor_type")):
            model.graph.output.append(types.get(name) or onnx.ValueInfoProto(name=name))
    with tempfile.TemporaryDirectory() as folder:
        onnx.save(model, f"{folder}/model.onnx")
        inputs, outputs, call = opener(f"{folder}/model.onnx")
        results = call([given[name] for name, _, _ in inputs])
    return model, {**held, **given, **{item[0]: np.asarray(x) for item, x in zip(outputs, results)}}


def alone(model, node, held, magnitudes=False):
    """The results of one node on these values; of their magnitudes, where asked."""
    constants = {item.name for item in model.graph.initializer}
    arrays = {name: held[name] for name in dict.fromkeys(node.input) if name}
    if magnitudes:
        arrays = {name: np.abs(x) if x.dtype.kind == "f" else x for name, x in arrays.items()}

    def info(name):
        array = arrays[name]
        return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)

    graph = helper.make_graph(
        [node],
        "alone",
        [info(name) for name in arrays if name not in constants],
        [onnx.ValueInfoProto(name=name) for name in node.output if name],
        [numpy_helper.from_array(np.ascontiguousarray(x), name) for name, x in arrays.items() if name in constants],
    )
    single = helper.make_model(graph, opset_imports=model.opset_import, functions=model.functions)
    single.ir_version = model.ir_version
    session = onnxruntime.InferenceSession(single.SerializeToString(), PLAIN, providers=["CPUExecutionProvider"])
    results = session.run(None, {name: x for name, x in arrays.items() if name not in constants})
    return dict(zip([name for name in node.output if name], results))


def terms(node, held):
    """How many terms each element of a linear node's result is the sum of; None for other nodes."""
    shapes = [held[name].shape if name else () for name in node.input]
    if node.op_type == "Conv":
        return int(np.prod(shapes[1][1:])) + 1
    if node.op_type == "ConvTranspose":
        return int(np.prod(shapes[1])) // max(1, shapes[1][1]) + 1
    if node.op_type in ("MatMul", "Gemm"):
        transposed = any(item.name == "transA" and item.i for item in node.attribute)
        return (shapes[0][0 if transposed else -1] if shapes[0] else 1) + 2
    if node.op_type in ("Add", "Sub", "Sum"):
        return len(shapes)
    if node.op_type in ("AveragePool", "GlobalAveragePool", "ReduceMean", "ReduceSum"):
        return int(np.prod(shapes[0][1:])) + 1
    return None


def compared(got, right, allowed=None):
    """(greatest error relative to the greatest magnitude, greatest error in units of what is allowed)."""
    if got.dtype != right.dtype or got.shape != right.shape:
        return np.inf, np.inf
    if not right.size:
        return 0.0, 0.0
    if right.dtype.kind != "f":
        different = float(np.any(got != right))
        return different, np.inf if different else 0.0
    a, b = got.astype("float64"), right.astype("float64")
    finite = np.isfinite(b)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    if not np.all(same | (finite & np.isfinite(a))):
        return np.inf, np.inf
    error = np.where(same, 0.0, np.abs(np.where(finite, a, 0) - np.where(finite, b, 0)))
    scale = np.abs(np.where(finite, b, 0)).max()
    if allowed is None:
        return float(error.max() / (scale or 1.0)), 0.0
    return float(error.max() / (scale or 1.0)), float((error / np.maximum(allowed, 1e-300)).max())


def judged(model, node, seen):
    """[name of the result that errs most, error, error in units of what is allowed] of a node on what a run gave it."""
    right, unit = alone(model, node, seen), np.finfo("float32").eps
    count, linear = terms(node, seen), {}
    if count is not None:
        plus = onnx.NodeProto()
        plus.CopyFrom(node)
        plus.op_type = "Add" if node.op_type == "Sub" else node.op_type
        linear = alone(model, plus, seen, magnitudes=True)
    worst = ["", 0.0, 0.0]
    for name, expected in right.items():
        if expected.dtype.kind == "f":
            unit = float(np.finfo(expected.dtype).eps)
            size = np.abs(np.where(np.isfinite(expected), expected, 0)).astype("float64")
            if count is not None:
                # two sums of so many products, in any order, each off by gamma of the sum of the magnitudes
                allowed = 2 * count * unit * np.abs(linear[name]).astype("float64")
            else:
                allowed = np.full(expected.shape, 64 * unit * (size.max() if size.size else 0.0))
            allowed = np.where(np.isfinite(allowed), allowed, np.inf) + np.finfo(expected.dtype).tiny
        else:
            allowed = None
        added, excess = compared(seen[name], expected, allowed)
        if not worst[0] or excess > worst[2]:
            worst = [name, added, excess]
    return worst


def load(parameters):
    def run(*arrays):
        given = dict(zip(INPUTS, arrays))
        model, clean = values(MODEL, given, open_plain)
        _, seen = values(OBSERVED, given, open_model)
        figures, texts = [], []
        for node in model.graph.node:
            output = next((name for name in node.output if name), "")
            added, excess, shown, why = np.nan, np.nan, np.nan, ""
            missing = [name for name in (*node.input, *node.output) if name and name not in seen]
            if any(item.type in (onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS) for item in node.attribute):
                why = "it has graphs of its own"
            elif missing:
                why = f"the run does not show {missing[0]}"
            else:
                try:
                    output, added, excess = judged(model, node, seen)
                    shown = compared(seen[output], clean[output])[0] if output in clean else np.nan
                except Exception as error:
                    why = f"alone it is refused: {type(error).__name__}: {error}"[:200]
            figures.append((added, excess, shown))
            texts.append((node.name or output, node.op_type, output, why))
        told = np.frombuffer(json.dumps(texts).encode(), "uint8")
        return [np.array(figures, "float64").reshape(-1, 3), told]

    return run
'''
