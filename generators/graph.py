"""The graph: frozen, validated data that every other part of Dissent reads, prints, judges and shrinks."""

from __future__ import annotations

import keyword
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from math import inf, isfinite, isnan, nan, prod
from typing import Annotated, Literal, get_args

from msgspec import Meta, Struct

from generators.schema import SchemaError, converted, one_line, parsed

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

LARGEST = 2**16
"""Elements of a tensor in a file that is read: 32 times as many as are drawn. Products of two such fit into memory."""
MOST_ELEMENTS = 2**22
"""Elements of all values of a graph in a file that is read."""
MOST_VALUES = 4096
"""Leaves, and nodes, of a graph in a file that is read."""
MOST_AXES = 32
GREATEST = 2**64 - 1
"""Of attributes that are whole numbers: of uint64."""

Attr = bool | int | float | str | tuple[int, ...] | tuple[float, ...] | None
Role = Literal["input", "parameter"]


class GraphError(ValueError):
    """A graph that breaks a rule; the message is one line and names the node or leaf, or the place in a file."""

    def __init__(self, message: str) -> None:
        super().__init__(one_line(message))


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

    @cached_property
    def constants(self) -> frozenset[str]:
        """Names of the values that follow from parameters alone, which compilers may fold."""
        found = {leaf.name for leaf in self.parameters}
        for node in self.nodes:
            if found.issuperset(node.operands):
                found.add(node.name)
        return frozenset(found)

    def leaf_for(self, name: str) -> Leaf:
        """A leaf in place of a node: a parameter where a compiler may fold the node, else an input."""
        return Leaf(name, self.types[name], "parameter" if name in self.constants else "input")

    @property
    def operators(self) -> tuple[str, ...]:
        """Names of the operators in use, sorted, each once."""
        return tuple(sorted({node.op for node in self.nodes}))

    def validate(self) -> Graph:
        """Check names, types, domains, order and outputs; raise GraphError naming the culprit, else return self."""
        seen: set[str] = set()
        for value in (*self.leaves, *self.nodes):
            if not value.name.isidentifier():
                raise GraphError(f"{value.name!r} is not an identifier")
            if keyword.iskeyword(value.name):
                raise GraphError(f"{value.name!r} is a keyword of Python")
            if value.name in seen:
                raise GraphError(f"{value.name} is defined twice")
            _check_type(value.name, value.type)
            if isinstance(value, Node):
                for operand in value.operands:
                    if operand not in seen:
                        raise GraphError(f"node {value.name}: operand {operand} is not defined before it")
            elif value.role not in get_args(Role):
                raise GraphError(f"leaf {value.name}: unknown role {value.role!r}")
            elif value.domain is not None and value.domain[0] > value.domain[1]:
                raise GraphError(f"leaf {value.name}: the domain {list(value.domain)} is empty")
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
                    "attrs": {k: _written(v) for k, v in node.attrs},
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
        try:
            return graph_of(converted(data, GraphFile))
        except SchemaError as error:
            raise GraphError(str(error)) from error


def _written(attr: Attr) -> object:
    """As JSON has it, which has neither infinities nor NaN."""
    if isinstance(attr, float) and not isfinite(attr):
        return {"nan": True} if isnan(attr) else {"infinite": "+" if attr > 0 else "-"}
    return list(attr) if isinstance(attr, tuple) else attr


def loads(text: str) -> Graph:
    """Parse a graph from JSON text; raises GraphError."""
    try:
        return Graph.from_json(parsed(text))
    except SchemaError as error:
        raise GraphError(str(error)) from error


Name = Annotated[str, Meta(pattern=r"^[A-Za-z][A-Za-z0-9_]*$", max_length=64)]
End = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
Whole = Annotated[int, Meta(ge=-(2**63))]
"""No more than GREATEST, too; bounds that int64 does not hold are beyond msgspec."""
Shape = Annotated[tuple[Annotated[int, Meta(ge=0, le=2**31 - 1)], ...], Meta(max_length=MOST_AXES)]
Names = Annotated[tuple[Name, ...], Meta(max_length=MOST_VALUES)]
ManyNumbers = Annotated[tuple[Whole | float, ...], Meta(max_length=1024)]


class SpecialFile(Struct, frozen=True, forbid_unknown_fields=True):
    """An infinity as files have it, by its sign, or NaN."""

    infinite: Literal["+", "-"] | None = None
    nan: bool = False

    def __post_init__(self) -> None:
        if self.nan == (self.infinite is not None):
            raise ValueError("a special number is an infinity or NaN")


AttrFile = bool | Whole | float | Annotated[str, Meta(max_length=256)] | ManyNumbers | SpecialFile | None


class LeafFile(Struct, frozen=True, forbid_unknown_fields=True):
    """A leaf as files have it."""

    name: Name
    dtype: Annotated[str, Meta(max_length=16)]
    shape: Shape
    role: Role
    domain: tuple[End, End] | None


class NodeFile(Struct, frozen=True, forbid_unknown_fields=True):
    """A node as files have it."""

    name: Name
    op: Annotated[str, Meta(max_length=64)]
    operands: Names
    attrs: Annotated[dict[str, AttrFile], Meta(max_length=32)]
    dtype: Annotated[str, Meta(max_length=16)]
    shape: Shape


class GraphFile(Struct, frozen=True, forbid_unknown_fields=True):
    """A graph as files have it."""

    format: Literal["dissent-graph"]
    version: Literal[1]
    leaves: Annotated[tuple[LeafFile, ...], Meta(max_length=MOST_VALUES)]
    nodes: Annotated[tuple[NodeFile, ...], Meta(max_length=MOST_VALUES)]
    outputs: Names


def _attributes_of(node: NodeFile) -> tuple[tuple[str, Attr], ...]:
    def read(attr: AttrFile) -> Attr:
        if isinstance(attr, SpecialFile):  # always the same NaN, so that what is read is equal to what was written
            return nan if attr.nan else inf if attr.infinite == "+" else -inf
        return attr

    return tuple((key, read(attr)) for key, attr in node.attrs.items())


def graph_of(file: GraphFile) -> Graph:
    """The graph of a file, unless it is too large. Raises GraphError."""
    total = 0
    for node in file.nodes:
        for name, attr in node.attrs.items():
            if any(isinstance(one, int) and one > GREATEST for one in (attr if isinstance(attr, tuple) else (attr,))):
                raise GraphError(f"{node.name}: {name} is a number beyond uint64")
    for value in (*file.leaves, *file.nodes):
        if prod(value.shape) > LARGEST:
            raise GraphError(f"{value.name}: {list(value.shape)} has more than {LARGEST} elements")
        total += prod(value.shape)
    if total > MOST_ELEMENTS:
        raise GraphError(f"the values of the graph have {total} elements; at most {MOST_ELEMENTS} are read")
    return Graph(
        tuple(Leaf(leaf.name, TensorType(leaf.dtype, leaf.shape), leaf.role, leaf.domain) for leaf in file.leaves),
        tuple(
            Node(node.name, node.op, node.operands, _attributes_of(node), TensorType(node.dtype, node.shape))
            for node in file.nodes
        ),
        file.outputs,
    ).validate()


def _check_type(name: str, type_: TensorType) -> None:
    if type_.dtype not in EVERY:
        raise GraphError(f"{name}: unknown dtype {type_.dtype!r}")
    for dim in type_.shape:
        if isinstance(dim, bool) or not isinstance(dim, int) or dim < 0:
            raise GraphError(f"{name}: {dim!r} is not a dimension")
