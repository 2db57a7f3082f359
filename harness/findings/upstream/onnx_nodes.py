"""An ONNX model as lines that make the same model without helpers of ours."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from msgspec import Struct

from generators.graphs import Case
from generators.schema import converted
from harness.conversions.edges import Edge
from harness.conversions.route import target_of
from harness.findings.upstream.literals import NoProgramError, literal

_SHOW = """

def _described(folder):
    import json

    def plain(value):
        if isinstance(value, TensorProto):
            array = numpy_helper.to_array(value)
            return {"dtype": str(array.dtype), "shape": list(array.shape), "values": array.tolist()}
        if isinstance(value, bytes):
            return value.decode()
        if isinstance(value, onnx.GraphProto):
            raise TypeError("an attribute is a graph")
        return [plain(one) for one in value] if isinstance(value, list) else value

    def port(value):
        of = value.type.tensor_type
        dims = [one.dim_param or (one.dim_value if one.HasField("dim_value") else None) for one in of.shape.dim]
        return [value.name, TensorProto.DataType.Name(of.elem_type), dims if of.HasField("shape") else None]

    def described(node):
        attributes = {a.name: plain(helper.get_attribute_value(a)) for a in node.attribute}
        if "to" in attributes:
            attributes["to"] = "TensorProto." + TensorProto.DataType.Name(attributes["to"])
        return [node.op_type, list(node.input), list(node.output), attributes, node.domain]

    with np.load(f"{folder}/parameters.npz") as arrays:
        write(dict(arrays), f"{folder}/0.onnx")
    for number, (_, convert) in enumerate(STEPS):
        convert(f"{folder}/{number}.onnx", f"{folder}/{number + 1}.onnx")
    made = onnx.load(f"{folder}/{len(STEPS)}.onnx")
    held = {tensor.name: plain(tensor) for tensor in made.graph.initializer}
    return json.dumps({
        "nodes": list(map(described, made.graph.node)),
        "inputs": [port(value) for value in made.graph.input if value.name not in held],
        "outputs": list(map(port, made.graph.output)),
        "constants": held,
        "opsets": {one.domain: one.version for one in made.opset_import},
        "version": made.ir_version,
    })


import sys

print(_described(sys.argv[1]))
"""
"""The model as JSON, in one function, since the program has names of its own."""
_SECONDS = 120

Port = tuple[str, str, list[int | str | None] | None]
"""Name, element type, sizes."""


class Array(Struct, frozen=True):
    """A tensor."""

    dtype: str
    shape: list[int]
    values: object

    @property
    def literal(self) -> str:
        """An expression of numpy's. Raises NoProgramError."""
        try:
            return literal(np.array(self.values, self.dtype).reshape(self.shape), "numpy")
        except TypeError as error:
            raise NoProgramError(f"numpy has no {self.dtype} of its own") from error


class Model(Struct, frozen=True):
    """nodes: operator, operands, results, attributes, domain of each; version: of ONNX' own format"""

    nodes: list[tuple[str, list[str], list[str], dict[str, object], str]]
    inputs: list[Port]
    outputs: list[Port]
    constants: dict[str, Array]
    opsets: dict[str, int]
    version: int

    def bare(self) -> Model:
        """Without an Identity that only gives an output a name of its own."""
        made = {name: node for node in self.nodes for name in node[2]}
        given = [name for node in self.nodes for name in node[1]]
        ends = [made.get(name) for name, _, _ in self.outputs]
        short = {
            end[1][0]: end[2][0]
            for end in ends
            if end and end[0] == "Identity" and end[1][0] in made and given.count(end[1][0]) == 1
        }
        nodes = [node for node in self.nodes if not (node[0] == "Identity" and node[1][0] in short)]
        back = {new: old for old, new in short.items()}
        outputs = [(back.get(name, name), element, dims) for name, element, dims in self.outputs]
        return Model(nodes, self.inputs, outputs, self.constants, self.opsets, self.version)


def _plainly(told: dict) -> dict:
    """With short names in place of those that conversions make, which have a dot in them."""
    names = [name for _, _, results, _, _ in told["nodes"] for name in results] + list(told["constants"])
    made = [name for name in dict.fromkeys(names) if "." in name]
    text = json.dumps(told)
    for number, name in enumerate(made):
        text = text.replace(json.dumps(name), json.dumps(f"v{number}"))
    return json.loads(text)


def model_of(case: Case, forms: Sequence[Edge] = ()) -> Model:
    """The model that a case is written as, after conversions from ONNX to ONNX. Raises NoProgramError."""
    target = target_of("/".join(("onnx", *(edge.name for edge in forms), "ort-all")))
    with tempfile.TemporaryDirectory(prefix="dissent-") as folder:
        parameters = {leaf.name: case.arrays[leaf.name] for leaf in case.graph.parameters}
        np.savez(Path(folder) / "parameters.npz", allow_pickle=False, **parameters)
        done = subprocess.run(
            [sys.executable, "-c", target.program(case.graph) + _SHOW, folder],
            capture_output=True, text=True, timeout=_SECONDS, check=False,
        )  # fmt: skip
    if done.returncode:
        raise NoProgramError(f"the nodes cannot be listed: {(done.stderr.splitlines() or ['no reason'])[-1]}")
    return converted(_plainly(json.loads(done.stdout.splitlines()[-1])), Model)


def model_lines(model: Model) -> list[str]:
    """Lines that bind `model`. Raises NoProgramError."""
    lines = ["import numpy as np", "from onnx import TensorProto, helper, numpy_helper", "nodes = ["]
    for kind, operands, results, attributes, domain in model.nodes:
        told = "".join(f", {name}={_attribute(value)}" for name, value in attributes.items())
        told += f', domain="{domain}"' if domain else ""
        lines.append(f"    helper.make_node({_quoted(kind)}, {_quoted(operands)}, {_quoted(results)}{told}),")
    lines += [
        "]",
        f"inputs = [{', '.join(map(_info, model.inputs))}]",
        f"outputs = [{', '.join(map(_info, model.outputs))}]",
    ]
    used = {name for node in model.nodes for name in node[1]} | {name for name, _, _ in model.outputs}
    constants = {name: array for name, array in model.constants.items() if name in used}
    lines += ["constants = {", *(f'    "{name}": {array.literal},' for name, array in constants.items()), "}"]
    if not constants:
        lines[-2:] = []
    opsets = ", ".join(f'helper.make_opsetid("{domain}", {version})' for domain, version in model.opsets.items())
    given = ", constants" if constants else ""
    return [
        *lines,
        *["constants = [numpy_helper.from_array(array, name) for name, array in constants.items()]"] * bool(constants),
        f'graph = helper.make_graph(nodes, "graph", inputs, outputs{given})',
        f"opsets = [{opsets}]",
        f"model = helper.make_model(graph, opset_imports=opsets, ir_version={model.version})",
    ]


def _info(port: Port) -> str:
    name, element, dims = port
    return f'helper.make_tensor_value_info("{name}", TensorProto.{element}, {_quoted(dims)})'


def _quoted(value: object) -> str:
    return repr(value).replace("'", '"')


def _attribute(value: object) -> str:
    if isinstance(value, Mapping):
        return f"numpy_helper.from_array({converted(value, Array).literal})"
    if isinstance(value, str):
        return value if value.startswith("TensorProto.") else f'"{value}"'
    return _quoted(value)
