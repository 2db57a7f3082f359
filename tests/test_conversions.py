"""Does a graph that was written as a model file and converted still compute what the graph says?"""

from __future__ import annotations

import numpy as np
import pytest

from generators.graph import Graph, Leaf, Node, TensorType
from generators.graphs import Case
from harness.backends import probe
from harness.conversions.edges import EDGES
from harness.conversions.route import shortest, target_of
from harness.execute.pool import Pool
from harness.questions.conversion import CONVERSION, refusal
from harness.search import hypothesis_profiles
from harness.search.laboratory import Laboratory
from harness.search.trial import Trial
from oracles.judge.outcome import Rejected

CHEAP = ("onnx-version", "ort-optimised")
"""Milliseconds a graph."""


def _parameters() -> list:
    """Every edge that drawn graphs reach; those that cost seconds a graph in the nightly profile only."""
    found = []
    for name, edge in EDGES.items():
        route = shortest(edge)
        if route:
            marks = [] if name in CHEAP else [pytest.mark.nightly]
            status = probe.probe(target_of(route.name))
            if not status.available:
                marks.append(pytest.mark.skip(reason=f"{name}: {status.reason}"))
            found.append(pytest.param(route.name, id=name, marks=marks))
    return found


@pytest.mark.parametrize("route", _parameters())
def test_conversions(route: str, trial: Trial) -> None:
    """Each drawn case by the shortest route that ends with the edge, against the reference and its bound."""
    target = target_of(route)
    trial = trial.with_question(CONVERSION, share=4 if hypothesis_profiles.nightly() else 1)
    trial.run([target], trial.examine_on(target))


def needs(route: str) -> None:
    status = probe.probe(target_of(route))
    if not status.available:
        pytest.skip(f"{route}: {status.reason}")


def agrees(pool: Pool, route: str, graph: Graph, array: np.ndarray) -> None:
    """A graph of one input by this route."""
    target = target_of(route)
    verdict = Laboratory(pool, CONVERSION).judge(Case(graph, {"x0": array}), [target]).verdicts[target.name]
    assert verdict.status == "agree", verdict.discrepancy


def test_tvm_need_not_know_the_shape_of_an_output(pool: Pool) -> None:
    leaf = Leaf("x0", TensorType("float32", (1, 0)))
    node = Node("v0", "reshape", ("x0",), (("shape", (0, 0)),), TensorType("float32", (0, 0)))
    graph = Graph((leaf,), (node,), ("v0",)).validate()
    agrees(pool, "onnx/tvm-onnx/tvm", graph, np.ones((1, 0), "f4"))


@pytest.mark.parametrize(
    "edge",
    [
        "tf2onnx-tflite",
        pytest.param("tvm-tflite", marks=pytest.mark.nightly),
        pytest.param("openvino-tflite", marks=pytest.mark.nightly),
    ],
)
def test_outputs_that_are_one_tensor_are_told_by_the_signature(edge: str, pool: Pool) -> None:
    """TensorFlow's converter makes one tensor of the first two, and the file has the outputs in another order."""
    type_ = TensorType("float32", (3,))
    nodes = [Node(f"v{i}", op, ("x0",), (), type_) for i, op in enumerate(("neg", "neg", "abs"))]
    graph = Graph((Leaf("x0", type_),), tuple(nodes), ("v0", "v1", "v2")).validate()
    route = shortest(EDGES[edge])
    assert route
    needs(route.name)
    agrees(pool, route.name, graph, np.ones(3, "f4"))


def test_keras_exports_what_takes_an_empty_tensor(pool: Pool) -> None:
    empty = TensorType("float32", (3, 0, 4))
    graph = Graph((Leaf("x0", empty),), (Node("v0", "neg", ("x0",), (), empty),), ("v0",)).validate()
    agrees(pool, "keras/keras-savedmodel/tf-savedmodel", graph, np.ones((3, 0, 4), "f4"))


@pytest.mark.parametrize(
    ("kind", "message", "why"),
    [
        (
            "NotImplementedError",
            "Converter is not implemented (OperationDescription(domain='', operation_type='Sinh', version=9))",
            "no Sinh of version 9",
        ),
        ("NotImplementedError", "DepthToSpace for mode other than CRD is not implemented", "no DepthToSpace for mode"),
        (
            "GuardOnDataDependentSymNode",
            "Could not guard on data-dependent expression Eq(u0, 2)",
            "sizes or indices are",
        ),
        ("KeyError", "'w1'", None),
        ("RuntimeError", "The size of tensor a (2) must match the size of tensor b (3)", None),
    ],
)
def test_what_onnx2torch_says_that_it_lacks_is_refused(kind: str, message: str, why: str | None) -> None:
    target = target_of("onnx/onnx2torch/torch-exported")
    told = refusal(target, Rejected(kind, f"{message}\nin step onnx2torch"))
    assert told is None if why is None else str(told).startswith(f"onnx2torch: {why}")


def test_what_onnx_has_no_type_for_is_refused() -> None:
    said = "[ShapeInferenceError] (op_type:CumSum): x typestr: T, has unsupported type: tensor(int16)"
    target = target_of("onnx/onnx-opset-23/ort-all")
    assert (
        refusal(target, Rejected("InferenceError", f"{said}\nin step write"))
        == "write: ONNX has no CumSum of tensor(int16)"
    )
    assert refusal(target, Rejected("InferenceError", f"{said}\nin step onnx-opset-23")) is None


@pytest.mark.parametrize(
    ("route", "said", "why"),
    [
        ("tensorflow/tf2onnx/ort-all", "RuntimeError: don't know how to cast type 14 on node x0\nin step tf2onnx",
         "tf2onnx: it does not know how to cast type 14"),
        ("tensorflow/tf2onnx/ort-all", "RuntimeError: don't know how to cast type 14 on node x0\nin step write", None),
        ("tensorflow/tf2onnx/ort-all",
         "ValueError: make_sure failure: Current implementation of RFFT or FFT only allows ComplexAbs as consumer not "
         "{'Real'}\nin step tf2onnx", "tf2onnx: RFFT or FFT for ComplexAbs alone"),
        ("tensorflow/tf2onnx/ort-all",
         "NotImplemented: [ONNXRuntimeError] : 9 : NOT_IMPLEMENTED : Failed to find kernel for Pow(15) (node:'p')\n"
         "in step open", "open: no kernel for Pow"),
        ("tensorflow/tf2onnx/ort-all",
         "Fail: Exception during loading: MLDataType for: tensor(complex64) is not currently registered or supported\n"
         "in step open", "open: no complex64"),
        ("keras/tflite-keras/litert",
         "InvalidArgumentError: Value for attr 'T' of uint8 is not in the list of allowed values: bfloat16\n"
         "in step tflite-keras", "tflite-keras: TensorFlow takes no uint8"),
        ("jax/jax2tf/tf-savedmodel",
         "NotImplementedError: (KeyError(<class 'numpy.float16'>), 'Unsupported dtype float16.')\nin step write",
         "write: JAX has no kernel of float16"),
    ],
)  # fmt: skip
def test_what_a_tool_says_that_it_lacks_is_refused(route: str, said: str, why: str | None) -> None:
    kind, _, message = said.partition(": ")
    assert refusal(target_of(route), Rejected(kind, message)) == why


@pytest.mark.nightly
def test_litert_torch_keeps_64_bits(pool: Pool) -> None:
    type_ = TensorType("int64", (2,))
    graph = Graph((Leaf("x0", type_),), (Node("v0", "neg", ("x0",), (), type_),), ("v0",)).validate()
    needs("torch/litert-torch/litert")
    agrees(pool, "torch/litert-torch/litert", graph, np.array([2**40, 3]))
