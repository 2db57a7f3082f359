"""The node tests of the onnx package, each with one node, and single nodes on ONNX Runtime."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend.test.loader import load_model_tests

from oracles.onnx.kinds import kind_of, widened
from oracles.onnx.rule import Call, Rule


@cache
def node_tests() -> dict[str, Any]:
    """By name. The package computes the expected arrays when it loads them, and numpy warns of overflows in them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {test.name: test for test in load_model_tests(kind="node")}


def tests_of(names: Sequence[str]) -> Iterator[str]:
    """The tests whose only node is one of these operators."""
    for name, test in node_tests().items():
        nodes = test.model.graph.node
        if len(nodes) == 1 and operator_of(nodes[0]) in names:
            yield name


def operator_of(node: onnx.NodeProto) -> str:
    """As rules name it."""
    return f"{node.domain}:{node.op_type}" if node.domain not in ("", "ai.onnx") else node.op_type


def decoded(value: Any) -> Any:
    """Attributes and protos of tensors, sequences and optional values as rules take them."""
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, onnx.TensorProto):
        return widened(numpy_helper.to_array(value))
    if isinstance(value, onnx.SequenceProto):
        return widened(numpy_helper.to_list(value))
    if isinstance(value, onnx.OptionalProto):
        return widened(numpy_helper.to_optional(value))
    if isinstance(value, list | tuple):
        return [decoded(item) for item in value]
    return widened(value)


def element_kind(info: onnx.TypeProto) -> int:
    """The element type of what a type describes; 0 for a map."""
    while info.WhichOneof("value") in ("sequence_type", "optional_type"):
        which = getattr(info, info.WhichOneof("value"))
        info = which.elem_type
    return info.tensor_type.elem_type


def call_of(model: onnx.ModelProto, inputs: Sequence[Any]) -> Call:
    """The call of a model's only node, on the model's inputs."""
    (node,) = model.graph.node
    given = dict(zip((info.name for info in model.graph.input), inputs, strict=False))
    kinds = {info.name: element_kind(info.type) for info in (*model.graph.input, *model.graph.output)}
    versions = {entry.domain: entry.version for entry in model.opset_import}
    domain = "" if node.domain == "ai.onnx" else node.domain
    return Call(
        operator=node.op_type,
        domain=domain,
        version=versions[domain] if domain in versions else versions["ai.onnx"],
        attributes={item.name: decoded(onnx.helper.get_attribute_value(item)) for item in node.attribute},
        inputs=tuple(decoded(given[name]) if name else None for name in node.input),
        outputs=tuple(node.output),
        kind=next((kinds[name] for name in node.output if name), 0),
        kinds=tuple(kinds.get(name, 0) for name in node.input),
    )


def runtime(operator: str, attributes: dict[str, Any], inputs: Sequence[np.ndarray | None], count: int, version: int):
    """What ONNX Runtime returns for a single node, without any rewriting; the version is that of the node's domain."""
    import onnxruntime as ort

    domain, _, name = operator.rpartition(":")
    names = ["" if array is None else f"x{place}" for place, array in enumerate(inputs)]
    outputs = [f"y{place}" for place in range(count)]
    node = onnx.helper.make_node(name, names, outputs, domain=domain, **attributes)
    given = {f"x{place}": array for place, array in enumerate(inputs) if array is not None}
    infos = [onnx.helper.make_tensor_value_info(key, kind_of(array), array.shape) for key, array in given.items()]
    imports = [onnx.helper.make_opsetid(domain, version)]
    if domain:
        imports.append(onnx.helper.make_opsetid("", 17))
    graph = onnx.helper.make_graph([node], "one", infos, [onnx.ValueInfoProto(name=key) for key in outputs])
    model = onnx.helper.make_model(graph, opset_imports=imports, ir_version=10)
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, given)


def single(operator: str, attributes: dict[str, Any], inputs: Sequence[Any], count: int, version: int) -> Call:
    """The call that `runtime` runs."""
    domain, _, name = operator.rpartition(":")
    return Call(
        operator=name,
        domain=domain,
        version=version,
        attributes={key: decoded(value) for key, value in attributes.items()},
        inputs=tuple(widened(array) for array in inputs),
        outputs=tuple(f"y{place}" for place in range(count)),
        kinds=tuple(kind_of(array) for array in inputs),
    )


def difference(found: Any, expected: Any, roundings: float) -> str:
    """Where a result is not the expected one; "" where it is. Floats may differ by so many roundings of the greatest
    finite element, in the type that the expected tensor has; all else is equal."""
    if isinstance(expected, list):
        if not isinstance(found, list) or len(found) != len(expected):
            return f"{found!r} instead of {len(expected)} items"
        parts = (difference(*pair, roundings) for pair in zip(found, expected, strict=True))
        return next((part for part in parts if part), "")
    if expected is None or isinstance(expected, dict):
        return "" if found == expected else f"{found!r} instead of {expected!r}"
    array, wanted = np.asarray(found), widened(np.asarray(expected))
    if array.shape != wanted.shape or array.dtype != wanted.dtype:
        return f"{array.dtype}{array.shape} instead of {wanted.dtype}{wanted.shape}"
    if wanted.dtype != np.float64:
        wrong = array.astype(object) != wanted.astype(object) if wanted.dtype == object else _unequal(array, wanted)
        return f"{int(wrong.sum())} of {wrong.size} elements differ" if wrong.any() else ""
    return _apart(array, wanted, roundings * step_of(expected))


def step_of(expected: Any) -> float:
    """Half the distance of 1 and the next number in the tensor's own type."""
    import ml_dtypes

    return float(ml_dtypes.finfo(np.asarray(expected).dtype).eps) / 2


def _unequal(array: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    if wanted.dtype.kind in "iub":
        return array != wanted
    return ~((array == wanted) | ((array != array) & (wanted != wanted)))


def _apart(array: np.ndarray, wanted: np.ndarray, relative: float) -> str:
    finite = np.isfinite(wanted)
    if not np.array_equal(array[~finite], wanted[~finite], equal_nan=True):
        return "what is not finite differs"
    if not finite.any():
        return ""
    allowed = relative * np.abs(wanted[finite]).max()
    apart = np.abs(array[finite] - wanted[finite])
    if (apart <= allowed).all():
        return ""
    return f"{np.nanmax(apart)} apart, {allowed} allowed" if not np.isnan(apart).all() else "NaN"


def examined(name: str, rule: Rule, roundings: float) -> str:
    """What is wrong with a rule's outputs in a node test; "" for nothing."""
    test = node_tests()[name]
    for inputs, outputs in test.data_sets:
        with np.errstate(all="ignore"):
            found = rule(call_of(test.model, inputs))
        places = [place for place, output in enumerate(test.model.graph.node[0].output) if output]
        for place, expected in zip(places, outputs, strict=True):
            given = expected if not isinstance(expected, onnx.TensorProto) else numpy_helper.to_array(expected)
            if wrong := difference(found[place], given, roundings):
                return f"output {place}: {wrong}"
    return ""
