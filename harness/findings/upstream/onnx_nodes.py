"""The nodes that a printed program makes of a graph, as lines that make the same model without helpers of ours."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping

import numpy as np

from generators.graph import Graph
from generators.graphs import Case
from harness.findings.upstream.literals import NoProgramError, literal

_SHOW = """

import json

g = Builder()
results = model(g, *INPUTS, *PARAMETERS)
nodes = []
for node in g.nodes:
    attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    if "to" in attributes:
        attributes["to"] = "TensorProto." + TensorProto.DataType.Name(attributes["to"])
    plain = {k: [x.decode() if isinstance(x, bytes) else x for x in (v if isinstance(v, list) else [v])]
             for k, v in attributes.items()}
    attributes = {k: x if isinstance(attributes[k], list) else x[0] for k, x in plain.items()}
    nodes.append([node.op_type, list(node.input), list(node.output), attributes])
arrays = {t.name: numpy_helper.to_array(t) for t in g.initializers}
constants = {name: [str(a.dtype), list(a.shape), a.tolist()] for name, a in arrays.items()}
print(json.dumps([nodes, constants, list(results), g.opset]))
"""
_SECONDS = 120
_ELEMENT = {"float32": "FLOAT", "float64": "DOUBLE"}


Nodes = tuple[list, Mapping[str, list], list[str], int]
"""Of a model: nodes, constants, names of what it returns, opset."""


def nodes_of(program: str) -> Nodes:
    """The model that a program makes. program: what a target runs. Raises NoProgramError."""
    done = subprocess.run(
        [sys.executable, "-c", program + _SHOW], capture_output=True, text=True, timeout=_SECONDS, check=False
    )
    if done.returncode:
        raise NoProgramError(f"the nodes cannot be listed: {(done.stderr.splitlines() or ['no reason'])[-1]}")
    return tuple(json.loads(done.stdout.splitlines()[-1]))


def model_lines(case: Case, made_of: Nodes, apart: bool) -> list[str]:
    """Lines that bind `model`, an ONNX model of the case. apart: each output is that of an Identity of its own. Raises
    NoProgramError."""
    graph = case.graph
    nodes, constants, results, opset = made_of
    made = {output for _, _, outputs, _ in nodes for output in outputs}
    outputs = []
    for number, name in enumerate(results):  # an output needs a name of its own, and may not be an input
        if apart or name not in made or name in results[:number]:
            nodes = [*nodes, ["Identity", [name], [f"y{number}"], {}]]
            outputs.append(f"y{number}")
        else:
            outputs.append(name)
    lines = ["nodes = ["]
    for kind, operands, returned, attributes in nodes:
        told = "".join(f", {name}={_attribute(value)}" for name, value in attributes.items())
        lines.append(f"    helper.make_node({kind!r}, {operands!r}, {returned!r}{told}),".replace("'", '"'))
    arrays = {leaf.name: case.arrays[leaf.name] for leaf in graph.parameters}
    arrays |= {name: np.array(values, dtype).reshape(shape) for name, (dtype, shape, values) in constants.items()}
    given = ", ".join(_info(leaf.name, leaf.type.dtype, leaf.type.shape) for leaf in graph.inputs)
    typed = zip(outputs, graph.outputs, strict=True)
    returned = ", ".join(_info(name, graph.types[of].dtype, graph.types[of].shape) for name, of in typed)
    lines += ["]", f"inputs = [{given}]", f"outputs = [{returned}]", "constants = {" if arrays else "constants = {}"]
    lines += [f'    "{name}": {literal(array, "numpy")},' for name, array in arrays.items()] + ["}"] * bool(arrays)
    return [
        *lines,
        "constants = [numpy_helper.from_array(array, name) for name, array in constants.items()]",
        'graph = helper.make_graph(nodes, "graph", inputs, outputs, constants)',
        f'opsets = [helper.make_opsetid("", {opset})]',
        f"model = helper.make_model(graph, opset_imports=opsets, ir_version={10 + (opset > 22)})",
    ]


def feeds(graph: Graph, case: Case) -> str:
    """The dict that a session is given."""
    return "{" + ", ".join(f'"{x.name}": {literal(case.arrays[x.name], "numpy")}' for x in graph.inputs) + "}"


def _info(name: str, dtype: str, shape: tuple[int, ...]) -> str:
    return f'helper.make_tensor_value_info("{name}", TensorProto.{_ELEMENT.get(dtype, dtype.upper())}, {list(shape)})'


def _attribute(value: object) -> str:
    if isinstance(value, str):
        return value if value.startswith("TensorProto.") else f'"{value}"'
    return repr(value)
