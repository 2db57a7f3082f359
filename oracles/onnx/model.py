"""An ONNX model as nodes that are ready to be evaluated: attributes decoded, constants widened, versions and element
types known, and when a value is used last."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import onnx
from onnx import AttributeProto, inliner, numpy_helper

from oracles.onnx.exact import exact_values
from oracles.onnx.graph import DEFAULT_DOMAINS, Graph, Node, used
from oracles.onnx.kinds import widened
from oracles.onnx.order import sorted_nodes
from oracles.onnx.rule import Value
from oracles.onnx.types import kind_of_type, kinds_of_outputs, rank_of_type


@dataclass(frozen=True)
class _Reader:
    """folder: of external data; opsets: version by domain; bound: attributes of the function's call."""

    folder: str
    opsets: Mapping[str, int]
    functions: Mapping[tuple[str, str], onnx.FunctionProto]
    bound: Mapping[str, AttributeProto] = field(default_factory=dict)

    def version(self, domain: str) -> int:
        return self.opsets.get("" if domain in DEFAULT_DOMAINS else domain, 1)

    def attributes(self, node: onnx.NodeProto) -> dict[str, AttributeProto]:
        """By name, those of a function's call put in; what the call does not state is absent."""
        found = {}
        for attribute in node.attribute:
            if not attribute.ref_attr_name:
                found[attribute.name] = attribute
            elif attribute.ref_attr_name in self.bound:
                found[attribute.name] = self.bound[attribute.ref_attr_name]
        return found

    def decoded(self, attribute: AttributeProto) -> Any:
        """The value of one that holds no graph."""
        if attribute.type == AttributeProto.TENSOR:
            return widened(numpy_helper.to_array(attribute.t, self.folder))
        if attribute.type == AttributeProto.SPARSE_TENSOR:
            return self.dense(attribute.sparse_tensor)
        if attribute.type == AttributeProto.STRING:
            return attribute.s.decode(errors="surrogateescape")
        if attribute.type == AttributeProto.STRINGS:
            return [item.decode(errors="surrogateescape") for item in attribute.strings]
        if attribute.type == AttributeProto.TENSORS:
            return [widened(numpy_helper.to_array(item, self.folder)) for item in attribute.tensors]
        value = onnx.helper.get_attribute_value(attribute)
        return list(value) if isinstance(value, Iterable) and not isinstance(value, bytes | str) else value

    def dense(self, sparse: onnx.SparseTensorProto) -> np.ndarray:
        """A sparse tensor with its zeros; indices are places in the flat tensor, or rows of coordinates."""
        values = widened(numpy_helper.to_array(sparse.values, self.folder))
        indices = numpy_helper.to_array(sparse.indices, self.folder)
        whole = np.zeros(tuple(sparse.dims), values.dtype)
        places = np.unravel_index(indices, whole.shape) if indices.ndim == 1 else tuple(indices.T)
        whole[places] = values
        return whole

    def constants(self, graph: onnx.GraphProto) -> tuple[dict[str, Value], dict[str, int]]:
        """Values and element types of initializers."""
        values: dict[str, Value] = {}
        kinds: dict[str, int] = {}
        for tensor in graph.initializer:
            values[tensor.name] = widened(numpy_helper.to_array(tensor, self.folder))
            kinds[tensor.name] = tensor.data_type
        for sparse in graph.sparse_initializer:
            values[sparse.values.name] = self.dense(sparse)
            kinds[sparse.values.name] = sparse.values.data_type
        return values, kinds

    def graph(self, graph: onnx.GraphProto, outer: Mapping[str, int], given: Sequence[int] = ()) -> Graph:
        """outer: element types of the values around it; given: of its inputs, where it does not state them."""
        constants, kinds = self.constants(graph)
        inputs = [value for value in graph.input if value.name not in constants]
        for place, value in enumerate(inputs):
            kinds[value.name] = kind_of_type(value.type) or (given[place] if place < len(given) else 0)
        stated = {value.name: kind_of_type(value.type) for value in (*graph.value_info, *graph.output)}
        data = frozenset(
            value.name
            for value in inputs
            if kinds[value.name] in (0, *_FLOATING) and rank_of_type(value.type) not in (0, 1)
        )
        names, outputs = [value.name for value in inputs], [value.name for value in graph.output]
        return self.body(names, outputs, constants, graph.node, {**outer, **kinds}, stated, data)

    def body(
        self,
        inputs: Sequence[str],
        outputs: Sequence[str],
        constants: dict[str, Value],
        protos: Iterable[onnx.NodeProto],
        kinds: dict[str, int],
        stated: Mapping[str, int],
        data: frozenset[str],
    ) -> Graph:
        """kinds: of all values that are known before them; stated: of some that they make."""
        nodes = []
        for proto in sorted_nodes(protos):
            node = self.node(proto, kinds)
            made = tuple(m or stated.get(name, 0) for m, name in zip(node.made, node.outputs, strict=True))
            kinds.update(zip(node.outputs, made, strict=True))
            nodes.append(replace(node, made=made))
        known = {"", *inputs, *constants}
        captured: set[str] = set()
        for node in nodes:
            captured.update(used(node) - known)
            known.update(node.outputs)
        captured.update(name for name in outputs if name not in known)
        return Graph(
            tuple(inputs),
            tuple(outputs),
            constants,
            _with_last_uses(nodes, {*outputs, *captured}),
            frozenset(captured),
            tuple(kinds.get(name, 0) for name in outputs),
            data,
        )

    def node(self, proto: onnx.NodeProto, kinds: Mapping[str, int]) -> Node:
        stated = self.attributes(proto)
        taken = tuple(kinds.get(name, 0) for name in proto.input)
        bodies = {
            name: self.graph(attribute.g, kinds, _given(proto.op_type, taken))
            for name, attribute in stated.items()
            if attribute.type == AttributeProto.GRAPH
        }
        attributes = {name: self.decoded(attribute) for name, attribute in stated.items() if name not in bodies}
        version = self.version(proto.domain)
        made = kinds_of_outputs(proto, version, attributes, taken, [body.made for body in bodies.values()])
        source = onnx.NodeProto()
        source.CopyFrom(proto)
        if any(attribute.ref_attr_name for attribute in proto.attribute):
            del source.attribute[:]
            source.attribute.extend(_renamed(attribute, name) for name, attribute in stated.items())
        return Node(
            *(proto.name, proto.op_type, proto.domain, version, attributes, tuple(proto.input), tuple(proto.output)),
            kinds=taken,
            made=made,
            bodies=bodies,
            source=source,
            opsets=self.opsets,
            functions=self.functions,
        )


_FLOATING = (
    onnx.TensorProto.FLOAT,
    onnx.TensorProto.FLOAT16,
    onnx.TensorProto.BFLOAT16,
    onnx.TensorProto.DOUBLE,
)


def _renamed(attribute: AttributeProto, name: str) -> AttributeProto:
    copy = AttributeProto()
    copy.CopyFrom(attribute)
    copy.name = name
    return copy


def _given(operator: str, kinds: tuple[int, ...]) -> tuple[int, ...]:
    """Element types of a body's inputs, from those of its node."""
    return (onnx.TensorProto.INT64, onnx.TensorProto.BOOL, *kinds[2:]) if operator == "Loop" else kinds


def _with_last_uses(nodes: Sequence[Node], kept: set[str]) -> tuple[Node, ...]:
    """Each node with what may be dropped after it; a result that nothing uses goes at once."""
    seen = set(kept)
    found: list[Node] = []
    for node in reversed(nodes):
        names = (used(node) | {name for name in node.outputs if name}) - seen
        seen |= names
        found.append(replace(node, last=tuple(sorted(names))))
    return tuple(reversed(found))


def read(model: onnx.ModelProto, folder: str = "") -> Graph:
    """folder: where external data lies that is not loaded."""
    if model.functions:
        model = inliner.inline_local_functions(model)
    opsets = {("" if one.domain in DEFAULT_DOMAINS else one.domain): one.version for one in model.opset_import}
    functions = {(function.domain, function.name): function for function in model.functions}
    return _marked(_Reader(folder, opsets, functions).graph(model.graph, {}))


def read_function(function: onnx.FunctionProto, node: Node) -> Graph:
    """The body of a function for one call of it."""
    opsets = {("" if one.domain in DEFAULT_DOMAINS else one.domain): one.version for one in function.opset_import}
    bound = {attribute.name: attribute for attribute in function.attribute_proto}
    if node.source is not None:
        bound.update({attribute.name: attribute for attribute in node.source.attribute})
    reader = _Reader("", {**node.opsets, **opsets}, node.functions, bound)
    kinds = dict(zip(function.input, node.kinds, strict=False))
    data = frozenset(name for name in function.input if kinds.get(name, 0) in (0, *_FLOATING))
    made = {*function.input}.union(*(one.output for one in function.node))
    outputs = [
        name if name in made else "" for name in function.output
    ]  # some are left out where nothing asks for them
    return _marked(reader.body(function.input, outputs, {}, function.node, kinds, {}, data))


def _marked(graph: Graph) -> Graph:
    """The graph with the nodes told which of their outputs are exact."""
    exact = exact_values(graph)

    def mark(graph: Graph) -> Graph:
        nodes = [
            replace(
                node,
                exact=exact.intersection(node.outputs),
                bodies={name: mark(body) for name, body in node.bodies.items()},
            )
            for node in graph.nodes
        ]
        return replace(graph, nodes=tuple(nodes))

    return mark(graph)
