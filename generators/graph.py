"""The graph: frozen, validated data that every other part of Dissent reads, prints, judges and shrinks."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import isfinite, prod
from typing import Literal, get_args

FORMAT = "dissent-graph"
VERSION = 1

COMMON = ("float32", "float64", "int32", "int64", "bool")
RARE = ("int8", "int16", "uint8", "uint16", "uint32", "uint64", "float16", "bfloat16")
"""dtypes that come only to graphs which favour them: what frameworks refuse of them is measured and recorded."""
DTYPES = (*COMMON, *RARE)
FLOATS = ("float32", "float64", "float16", "bfloat16")
COMPONENT = {"complex64": "float32", "complex128": "float64"}
"""The dtype of the real and the imaginary part of each complex one."""
COMPLEX = tuple(COMPONENT)
"""Like `RARE`, and rarer: drawn only by operators of complex numbers, and where a hunt asks for graphs of them."""
EVERY = (*DTYPES, *COMPLEX)
CONTINUOUS = (*FLOATS, *COMPLEX)
"""dtypes of numbers that derivatives are taken of and by."""
MEASURED = (*RARE, *COMPLEX)
"""dtypes of which it is measured and recorded what frameworks refuse."""
INTEGERS = ("int32", "int64", "int8", "int16", "uint8", "uint16", "uint32", "uint64")

Attr = bool | int | float | str | tuple[int, ...] | tuple[float, ...] | None
Role = Literal["input", "parameter"]


class GraphError(ValueError):
    """A graph that breaks a rule; the message names the node or leaf."""


@dataclass(frozen=True, slots=True)
class TensorType:
    """A dtype (one of `EVERY`) and a static shape; a dimension may be 0, a scalar has shape ()."""

    dtype: str
    shape: tuple[int, ...]

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return prod(self.shape)

    def __str__(self) -> str:
        return f"{self.dtype}[{','.join(map(str, self.shape))}]"


@dataclass(frozen=True, slots=True)
class Leaf:
    """A value that comes from outside: an `input` changes with each run, a `parameter` is a constant that
    compilers may fold. `domain` is the closed interval its elements lie in (None: anything of its dtype)."""

    name: str
    type: TensorType
    role: Role = "input"
    domain: tuple[int, int] | None = None


@dataclass(frozen=True)
class Node:
    """One application of an operator; it has one result, of type `type`, known by the node's name."""

    name: str
    op: str
    operands: tuple[str, ...]
    attrs: tuple[tuple[str, Attr], ...]
    type: TensorType

    @cached_property
    def attributes(self) -> dict[str, Attr]:
        return dict(self.attrs)

    def __str__(self) -> str:
        arguments = [*self.operands, *(f"{k}={v!r}" for k, v in self.attrs)]
        return f"{self.name} = {self.op}({', '.join(arguments)})"


@dataclass(frozen=True)
class Graph:
    """A directed acyclic graph in execution order. Construct, then `validate()`; operators' own type rules
    are checked by `generators.ops.check`."""

    leaves: tuple[Leaf, ...]
    nodes: tuple[Node, ...]
    outputs: tuple[str, ...]

    @cached_property
    def types(self) -> dict[str, TensorType]:
        """The type of every value by name."""
        return {v.name: v.type for v in (*self.leaves, *self.nodes)}

    @cached_property
    def inputs(self) -> tuple[Leaf, ...]:
        return tuple(leaf for leaf in self.leaves if leaf.role == "input")

    @cached_property
    def parameters(self) -> tuple[Leaf, ...]:
        return tuple(leaf for leaf in self.leaves if leaf.role == "parameter")

    @property
    def operators(self) -> tuple[str, ...]:
        """Names of the operators in use, sorted, each once."""
        return tuple(sorted({node.op for node in self.nodes}))

    def validate(self) -> Graph:
        """Check names, types, order and outputs; raise GraphError naming the culprit, else return self."""
        seen: set[str] = set()
        for value in (*self.leaves, *self.nodes):
            if not value.name.isidentifier():
                raise GraphError(f"{value.name!r} is not an identifier")
            if value.name in seen:
                raise GraphError(f"{value.name} is defined twice")
            _check_type(value.name, value.type)
            if isinstance(value, Node):
                for operand in value.operands:
                    if operand not in seen:
                        raise GraphError(f"node {value.name}: operand {operand} is not defined before it")
                for key, attr in value.attrs:
                    if isinstance(attr, float) and not isfinite(attr):
                        raise GraphError(f"node {value.name}: attribute {key} is not finite")
            elif value.role not in get_args(Role):
                raise GraphError(f"leaf {value.name}: unknown role {value.role!r}")
            seen.add(value.name)
        if not self.outputs:
            raise GraphError("a graph needs at least one output")
        for name in self.outputs:
            if name not in seen:
                raise GraphError(f"output {name} is not defined")
        return self

    def pruned(self, outputs: Iterable[str] | None = None) -> Graph:
        """The same graph with `outputs` (default: its own) and without what reaches none of them."""
        kept = tuple(outputs) if outputs is not None else self.outputs
        needed = set(kept)
        for node in reversed(self.nodes):
            if node.name in needed:
                needed.update(node.operands)
        return Graph(
            tuple(leaf for leaf in self.leaves if leaf.name in needed),
            tuple(node for node in self.nodes if node.name in needed),
            kept,
        )

    def __str__(self) -> str:
        lines = [f"{leaf.name}: {leaf.type} {leaf.role}" for leaf in self.leaves]
        lines += [f"{node}: {node.type}" for node in self.nodes]
        return "\n".join([*lines, f"return {', '.join(self.outputs)}"])

    def to_json(self) -> dict:
        """A plain JSON object; `from_json` is its inverse."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "leaves": [
                {
                    "name": leaf.name,
                    "dtype": leaf.type.dtype,
                    "shape": list(leaf.type.shape),
                    "role": leaf.role,
                    "domain": list(leaf.domain) if leaf.domain else None,
                }
                for leaf in self.leaves
            ],
            "nodes": [
                {
                    "name": node.name,
                    "op": node.op,
                    "operands": list(node.operands),
                    "attrs": {k: list(v) if isinstance(v, tuple) else v for k, v in node.attrs},
                    "dtype": node.type.dtype,
                    "shape": list(node.type.shape),
                }
                for node in self.nodes
            ],
            "outputs": list(self.outputs),
        }

    @staticmethod
    def from_json(data: object) -> Graph:
        """Read what `to_json` wrote. Raises GraphError on anything that it does not understand."""
        if not isinstance(data, Mapping) or data.get("format") != FORMAT:
            raise GraphError(f"not a {FORMAT} object")
        if data.get("version") != VERSION:
            raise GraphError(f"{FORMAT} version {data.get('version')!r} is not {VERSION}")
        _expect("graph", data, {"format", "version", "leaves", "nodes", "outputs"})
        try:
            return Graph(
                tuple(_leaf(item) for item in data["leaves"]),
                tuple(_node(item) for item in data["nodes"]),
                tuple(data["outputs"]),
            ).validate()
        except (TypeError, KeyError, AttributeError) as error:
            raise GraphError(f"malformed {FORMAT} object: {error}") from error


def loads(text: str) -> Graph:
    """Parse a graph from JSON text; raises GraphError."""
    try:
        return Graph.from_json(json.loads(text))
    except json.JSONDecodeError as error:
        raise GraphError(f"not JSON: {error}") from error


def _check_type(name: str, type_: TensorType) -> None:
    if type_.dtype not in EVERY:
        raise GraphError(f"{name}: unknown dtype {type_.dtype!r}")
    for dim in type_.shape:
        if isinstance(dim, bool) or not isinstance(dim, int) or dim < 0:
            raise GraphError(f"{name}: {dim!r} is not a dimension")


def _expect(what: str, item: Mapping, keys: set[str]) -> None:
    if set(item) != keys:
        odd = sorted(set(item) ^ keys)
        raise GraphError(f"{what}: unknown or missing keys {', '.join(odd)}")


def _leaf(item: Mapping) -> Leaf:
    _expect(f"leaf {item.get('name')}", item, {"name", "dtype", "shape", "role", "domain"})
    domain = None if item["domain"] is None else (int(item["domain"][0]), int(item["domain"][1]))
    return Leaf(item["name"], TensorType(item["dtype"], tuple(item["shape"])), item["role"], domain)


def _node(item: Mapping) -> Node:
    _expect(f"node {item.get('name')}", item, {"name", "op", "operands", "attrs", "dtype", "shape"})
    attrs = tuple((k, tuple(v) if isinstance(v, list) else v) for k, v in item["attrs"].items())
    type_ = TensorType(item["dtype"], tuple(item["shape"]))
    return Node(item["name"], item["op"], tuple(item["operands"]), attrs, type_)
