"""The parts that short programs are put together of: functions that spellings call, statements, a function of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from generators.graph import Graph
from generators.graphs import Case
from harness.dialects.dialect import Dialect
from harness.findings.upstream.literals import literal
from harness.findings.upstream.tidy import bare

DECORATORS = {
    "torch-eager": "",
    "torch-aot-eager": '@torch.compile(backend="aot_eager")',
    "torch-inductor": "@torch.compile",
    "tf-eager": "",
    "tf-graph": "@tf.function",
    "tf-xla": "@tf.function(jit_compile=True)",
    "jax-eager": "",
    "jax-jit": "@jax.jit",
    "keras-tensorflow": "",
    "keras-torch": "",
    "keras-jax": "",
}
"""By target: what makes of a function of the framework what the target runs ("": nothing)."""


@dataclass(frozen=True)
class Family:
    """How programs of a framework read `y`. names: its dtype's name; item: the element {element} as a {kind}; array:
    `y` of an expression."""

    names: str
    item: str
    array: str = "{}"


NUMPY = Family("str(y.dtype)", "{kind}({element})")
FAMILIES = {
    "torch": Family('str(y.dtype).removeprefix("torch.")', "{element}.item()"),
    "tensorflow": Family("y.dtype.name", "{kind}({element})"),
    "jax": NUMPY,
    "keras": Family(NUMPY.names, NUMPY.item, "keras.ops.convert_to_numpy({})"),
}


def head(graph: Graph, dialect: Dialect) -> list[str]:
    """Imports, and the functions that the spellings of a graph call."""
    return [*dialect.imports.splitlines(), *bare(dialect.source(graph, "").split("def model(", 1)[0])]


def bound(arrays: Mapping[str, np.ndarray], names: Sequence[str], maker: str) -> list[str]:
    """Lines that bind arrays to their names. maker: a key of MAKERS."""
    return [f"{name} = {literal(arrays[name], maker)}" for name in names]


def inputs_of(case: Case) -> list[str]:
    """NumPy's expressions of the inputs, in order."""
    return [literal(case.arrays[leaf.name], "numpy") for leaf in case.graph.inputs]


def by_name(names: Iterable[str], arrays: Iterable[str]) -> str:
    """A dict of expressions."""
    return "{" + ", ".join(f'"{name}": {array}' for name, array in zip(names, arrays, strict=True)) + "}"


def feeds_of(case: Case) -> str:
    """NumPy's expression of a dict of the inputs."""
    return by_name((leaf.name for leaf in case.graph.inputs), inputs_of(case))


def statements(graph: Graph, dialect: Dialect) -> list[str]:
    """The nodes as assignments."""
    return [f"{node.name} = {dialect.node(graph, node)}" for node in graph.nodes]


def ending(lines: Sequence[str], names: Sequence[str]) -> tuple[list[str], str]:
    """Assignments without the last one where that alone is asked for, and the expression of these names."""
    start = f"{names[0]} = " if len(names) == 1 else ""
    if start and lines and lines[-1].startswith(start):
        return list(lines[:-1]), lines[-1].removeprefix(start)
    return list(lines), ", ".join(names)


def function(lines: Sequence[str], names: Sequence[str], inputs: Sequence[str], called: str = "f") -> list[str]:
    """A function of these inputs that runs assignments and returns the values of these names."""
    first, last = ending(lines, names)
    return [f"def {called}({', '.join(inputs)}):", *(f"    {line}" for line in [*first, f"return {last}"])]


def several(names: Sequence[str]) -> str:
    """One name as it is, several as a tuple."""
    return names[0] if len(names) == 1 else f"({', '.join(names)})"


def tuple_of(names: Sequence[str]) -> str:
    """A tuple, of one, too."""
    return f"({', '.join(names)}{',' if len(names) == 1 else ''})"
