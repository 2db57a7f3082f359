"""What an ONNX model is read as: nodes with all that their evaluation needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import onnx

from oracles.onnx.rule import Value

DEFAULT_DOMAINS = ("", "ai.onnx")


@dataclass(frozen=True)
class Node:
    """version: of its domain's operator set; inputs, outputs: names, "" where one is absent; kinds, made: element types
    of inputs and outputs, 0 where unknown; bodies: the graphs inside by attribute; exact: those outputs that are never
    disturbed; last: names that nothing uses after it."""

    name: str
    operator: str
    domain: str
    version: int
    attributes: Mapping[str, Any]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    kinds: tuple[int, ...] = ()
    made: tuple[int, ...] = ()
    bodies: Mapping[str, Graph] = field(default_factory=dict)
    exact: frozenset[str] = frozenset()
    last: tuple[str, ...] = ()
    source: onnx.NodeProto | None = field(default=None, repr=False, compare=False)
    opsets: Mapping[str, int] = field(default_factory=dict, repr=False)
    functions: Mapping[tuple[str, str], onnx.FunctionProto] = field(default_factory=dict, repr=False)

    @property
    def title(self) -> str:
        """Its operator and name, as messages give them."""
        operator = self.operator if self.domain in DEFAULT_DOMAINS else f"{self.domain}:{self.operator}"
        return f"{operator} {self.name or next(filter(None, self.outputs), '')}".strip()


@dataclass(frozen=True)
class Graph:
    """inputs, outputs: names; constants: values by name; captured: names of outer values that are used inside; made:
    element types of the outputs; data: inputs that are floating tensors of rank 2 or more, or of unknown rank."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    constants: Mapping[str, Value]
    nodes: tuple[Node, ...]
    captured: frozenset[str]
    made: tuple[int, ...]
    data: frozenset[str]


def used(node: Node) -> set[str]:
    """Names that a node uses, in the graphs inside as well."""
    return {name for name in node.inputs if name}.union(*(body.captured for body in node.bodies.values()))
