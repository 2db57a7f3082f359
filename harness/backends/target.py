"""A target: one way of compiling and running a dialect's programs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from generators.graph import Graph
from harness.dialects.base import Dialect


@dataclass(frozen=True)
class Level:
    """A place among the optimisation levels of one compiler; level 0 optimises least."""

    compiler: str
    number: int


@dataclass(frozen=True, eq=False)
class Target:
    """name:      e.g. tvm-O2
    framework: the worker that runs it, e.g. tvm; targets of one framework share a worker
    modules:   what that worker imports before its first program
    load:      source of `def load(parameters)`, which compiles `model` and returns a function from input
               arrays to a list of output arrays. It may use INPUTS, PARAMETERS and OUTPUTS of the program
    packages:  PyPI distributions and the least version that this was written for
    stride:    in a hunt over many targets, this one runs on one case in `stride` (slow compilers)
    refuses:   what the back end does not implement although its dialect can say it:
               (operator, dtype of the result or of operand 0) -> why
    device:    "cpu", or "cuda" for what needs a GPU"""

    name: str
    framework: str
    modules: tuple[str, ...]
    dialect: Dialect
    load: str
    packages: Mapping[str, str]
    level: Level
    stride: int = 1
    refuses: Mapping[tuple[str, str], str] = field(default_factory=dict)
    device: str = "cpu"

    def unsupported(self, graph: Graph) -> str | None:
        """Why this target cannot run the graph, or None. Every reason was written down by somebody."""
        reason = self.dialect.unsupported(graph)
        if reason:
            return reason
        for node in graph.nodes if self.refuses else ():
            dtypes = {node.type.dtype, *(graph.types[o].dtype for o in node.operands[:1])}
            for dtype in sorted(dtypes):
                why = self.refuses.get((node.op, dtype))
                if why:
                    return f"{node.op}: {why}"
        return None

    def program(self, graph: Graph) -> str:
        """The source text of a standalone program: `load(parameters)` returns `run(*inputs) -> outputs`."""
        header = [
            self.dialect.imports,
            "",
            f"TARGET = {self.name!r}",
            "# name: (dtype, shape), in the order that the model takes them",
            f"INPUTS = {_types((leaf.name, leaf.type) for leaf in graph.inputs)}",
            f"PARAMETERS = {_types((leaf.name, leaf.type) for leaf in graph.parameters)}",
            f"OUTPUTS = {[(t.dtype, t.shape) for t in (graph.types[o] for o in graph.outputs)]!r}",
        ]
        return "\n".join(header) + "\n\n\n" + self.dialect.source(graph, self.load)


def _types(pairs) -> str:
    return "{" + ", ".join(f"{name!r}: ({t.dtype!r}, {t.shape!r})" for name, t in pairs) + "}"
