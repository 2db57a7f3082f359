"""Programs that write, in PyTorch: nodes `write` of a graph as in-place operators, `out=`, `copy_` and assignments."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from generators.graph import Graph, Node
from generators.ops.spec import Unsupported
from harness.backends.target.target import Target
from harness.dialects import TORCH
from harness.dialects.dialect import NOTHING, Dialect, extended
from oracles.questions import cells

_ARITHMETIC = (
    *("neg", "abs", "sign", "square", "reciprocal", "sqrt", "rsqrt", "exp", "expm1", "log", "log1p", "log2", "sin"),
    *("cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "floor", "ceil"),
    *("round", "trunc", "logical_not", "add", "sub", "mul", "div", "pow", "atan2", "logical_and", "logical_or"),
    *("logical_xor", "equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "clip", "bitwise_and"),
    *("bitwise_or", "bitwise_xor", "bitwise_not", "left_shift", "right_shift", "remainder", "fmod", "tril", "triu"),
)
_METHODS_ONLY = (
    *("relu", "sigmoid", "scatter_add", "scatter", "index_add", "floor_divide", "exp2", "log10", "erfc", "sinc"),
    *("deg2rad", "rad2deg", "frac", "hypot", "copysign", "xlogy", "lerp", "addcmul", "masked_fill", "addmm", "baddbmm"),
    *("gcd", "lcm", "erfinv", "lgamma", "digamma", "nextafter", "trunc_divide", "index_fill", "index_put"),
    *("index_reduce", "put", "masked_scatter", "scatter_nd", "scatter_value", "scatter_sub", "scatter_max"),
    *("scatter_min", "scatter_reduce"),
)
METHODS = frozenset((*_ARITHMETIC, *_METHODS_ONLY))
"""Operators that have a method NAME_ which writes over the first operand."""
_MIXING = ("matmul", "concat", "stack", "sum", "mean", "max", "min", "cumsum", "cumprod")
OUT = frozenset((*_ARITHMETIC, "maximum", "minimum", *_MIXING))
"""Operators that take `out=`; elements of _MIXING depend on others than that of their own place."""
_OWN = (
    *("identity", "where", "relu6", "leaky_relu", "elu", "selu", "silu", "gelu", "softplus", "softmax", "log_softmax"),
    *("slice_update", "slice_update_front", "select_scatter", "diagonal_scatter", "zeros_like", "ones_like"),
)
BARE = METHODS | OUT | frozenset(_OWN)
"""Operators whose result is always memory of its own; what others return is copied."""

_CALLED = re.compile(r"torch\.(?:nn\.functional\.)?(\w+)\((.*)\)\Z", re.DOTALL)

LOAD = """
def load(parameters):
    compiled = {compiled}

    def run(*inputs):
        given = {{**dict(zip(INPUTS, inputs)), **parameters}}
        with torch.no_grad():
            leaves = [torch.from_numpy(np.array(array)) for array in given.values()]
            held = []
            for _ in range({calls}):
                outputs = compiled(*leaves)
                held += [output.clone() for output in [*outputs, *leaves]]
            strides = [np.array(output.stride(), "int64") for output in outputs]
            later = []
            if POKED is not None:
                outputs[POKED].fill_({poke})
                later = [output.clone() for output in [*outputs, *leaves]]
        return [output.numpy() for output in held] + strides + [output.numpy() for output in later]

    return run
"""
"""`load` of the question `memory`."""


FUNCTIONALIZED = """
def load(parameters):
    def poking(*leaves):
        outputs = model(*leaves)
        outputs[POKED].fill_({poke})
        return outputs

    def run(*inputs):
        given = {{**dict(zip(INPUTS, inputs)), **parameters}}
        with torch.no_grad():
            leaves = [torch.from_numpy(np.array(array)) for array in given.values()]
            held = []
            for _ in range({calls}):
                before = [leaf.clone() for leaf in leaves]
                outputs = torch.func.functionalize(model)(*leaves)
                held += [output.clone() for output in [*outputs, *leaves]]
            strides = [np.array(output.stride(), "int64") for output in outputs]
            later = []
            if POKED is not None:
                later = [*torch.func.functionalize(poking)(*before), *before]
        return [output.numpy() for output in held] + strides + [output.numpy() for output in later]

    return run
"""
"""The same of `torch.func.functionalize`. What it returns shares no memory with anything, so that the last write is a
part of what is functionalised, in the last call once more."""


def torch_functionalized(calls: int = 2, poke: int = 3) -> str:
    """How memory is looked at where programs are functionalised."""
    return FUNCTIONALIZED.format(calls=calls, poke=poke)


def torch(compiled: str, calls: int = 2, poke: int = 3) -> str:
    """How a target with this compiler looks at memory."""
    return LOAD.format(compiled=compiled, calls=calls, poke=poke)


@dataclass(frozen=True)
class InPlace(Dialect):
    """A dialect of PyTorch, with writes. plain: without. views: is what may be a view one?"""

    plain: Dialect = TORCH
    views: bool = True

    def node(self, graph: Graph, node: Node, numbers: Mapping[str, str] = NOTHING) -> str | Unsupported:
        """The source text of a node: a view, a write, or what makes memory of its own."""
        found, index = cells.layout(graph), graph.nodes.index(node)
        if node.op == cells.WRITE:
            if index and _fused(self.plain, graph, index - 1, found):
                return node.operands[1]
            return _copied(graph, index, found, self.views)
        text = self.plain.node(graph, node, numbers)
        if isinstance(text, Unsupported):
            return text
        if self.views and node.name in found.views:
            writes = (i for i, other in enumerate(graph.nodes) if other.op == cells.WRITE)
            return "None" if any(_assigned(graph, i, found) is node for i in writes) else text
        fused = _fused(self.plain, graph, index, found)
        if fused:
            return fused
        if node.op not in BARE:  # views that are none among them
            return f"torch.clone({text}, memory_format=torch.contiguous_format)"
        return f"{text}.contiguous()" if _laid_out(graph, node.name) else text


def _copied(graph: Graph, index: int, found: cells.Layout, views: bool) -> str:
    """The text of a write: a copy, a subscript assignment, or a copy by indices."""
    to, what = graph.nodes[index].operands
    by = _assigned(graph, index, found) if views else None
    mode = graph.nodes[index].attributes["mode"]
    if by:
        attrs = by.attributes
        return f"assigned_slice({by.operands[0]}, {attrs['starts']}, {attrs['stops']}, {attrs['steps']}, {what})"
    if mode == "slice":
        return f"assigned({to}, {what})"
    rows = graph.types[to].size and graph.types[to].rank and found.cells[to].flags.c_contiguous
    if mode == "rows" and rows and found.apart(to, what):  # functionalised, others would lie otherwise afterwards
        return f"copied_by_index({to}, {what})"
    return f"{to}.copy_({what})"


def _assigned(graph: Graph, index: int, found: cells.Layout) -> Node | None:
    """The slice that write number `index` assigns to by a subscript: one that nothing else looks at, so that no view of
    what is written to is made before."""
    to = graph.nodes[index].operands[0]
    by = next((node for node in graph.nodes if node.name == to), None)
    mode = graph.nodes[index].attributes["mode"]
    if mode != "slice" or by is None or by.op != "slice" or to not in found.views or to in graph.outputs:
        return None
    return by if sum(node.operands.count(to) for node in graph.nodes) == 1 else None


def _laid_out(graph: Graph, name: str) -> bool:
    """Does it matter which strides a result has?"""
    looked = {node.operands[0] for node in graph.nodes if node.op == cells.WRITE or node.op in cells.VIEWS}
    return name in looked or name in graph.outputs


def _fused(dialect: Dialect, graph: Graph, index: int, found: cells.Layout) -> str | None:
    """The text that computes node number `index` into what the next node writes to, where nothing else takes its value
    and none of its operands overlaps with that; else None."""
    node, after = graph.nodes[index], graph.nodes[index + 1] if index + 1 < len(graph.nodes) else None
    if after is None or after.op != cells.WRITE or after.operands[1] != node.name or node.name in graph.outputs:
        return None
    if node.op not in METHODS | OUT or sum(n.operands.count(node.name) for n in graph.nodes) > 1:
        return None
    if after.attributes["mode"] != "copy":
        return None
    to = after.operands[0]
    if not all(found.apart(name, to) or found.same(name, to) for name in node.operands):
        return None
    plain = dialect.node(graph, node)
    called = _CALLED.match(plain) if isinstance(plain, str) else None
    if not called:
        return None
    function, arguments = called.groups()
    if node.op in METHODS and arguments.split(",")[0].strip() == to and not (node.op in OUT and index % 3 == 1):
        rest = arguments.partition(",")[2].strip()
        return f"{to}.{function}_({rest})"
    contiguous = found.cells[to].flags.c_contiguous  # dynamo takes no other tensors as out=
    if node.op in OUT and contiguous and (node.op not in _MIXING or all(found.apart(o, to) for o in node.operands)):
        return f"torch.{function}({arguments}, out={to})"
    return None


def in_place(target: Target, views: bool = True) -> Target:
    """The target, whose programs write."""
    return replace(target, dialect=extended(target.dialect, InPlace, plain=target.dialect, views=views))
