"""What does TVM's ToMixedPrecision compute in float16? A graph rewritten with the casts that the pass makes, by the
policy that each Relax operator carries, against the ordinary reference of the rewritten graph.

The pass (src/relax/transform/to_mixed_precision.cc): operands of ALWAYS operators are cast to float16, their sums are
of `out_dtype`, and what they return is kept in float16; FOLLOW operators compute in float16 where each of their
operands is of float16 or a constant that float16 can hold, else in float32; all others compute in float32. Inputs and
outputs keep their dtypes. `tests/meta/oracles/arithmetic/test_tvm_mixed_precision.py` compares the lists with what the
operators carry, and what is told here of graphs with the modules that the pass makes of them."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from generators.bounds.bounded import PRECISION
from generators.graph import Graph, Leaf, Node, TensorType
from generators.graphs import Case
from generators.inputs import Arrays
from generators.ops import OPS, Call
from generators.ops.attributes import OTHERWISE
from oracles.decompositions.composite import GraphBuilder, Rule

LARGEST = 65504.0
"""The greatest number of float16: the pass leaves constants of float32 that have a greater one."""


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


ALWAYS = _names("""
    matmul nn.attention nn.conv1d nn.conv1d_transpose nn.conv2d nn.conv2d_transpose nn.conv3d nn.conv3d_transpose
    outer
""")
FOLLOW = _names("""
    abs acos acosh add asin asinh astype atan atan2 atanh bitwise_and bitwise_not bitwise_or bitwise_xor
    broadcast_to ceil concat cos cosh divide dynamic_strided_slice equal erf exp expand_dims flatten floor
    floor_divide floor_mod full full_like greater greater_equal image.affine_grid image.grid_sample image.resize2d
    image.resize3d isfinite isinf isnan layout_transform left_shift less less_equal log log_add_exp logical_and
    logical_not logical_or logical_xor maximum minimum mod multiply negative nn.adaptive_avg_pool1d
    nn.adaptive_avg_pool2d nn.adaptive_avg_pool3d nn.avg_pool1d nn.avg_pool2d nn.avg_pool3d nn.dropout nn.gelu
    nn.gelu_tanh nn.group_norm nn.instance_norm nn.layer_norm nn.max_pool1d nn.max_pool2d nn.max_pool3d nn.relu
    nn.rms_norm nn.selu nn.silu not_equal permute_dims power reshape right_shift round rsqrt sigmoid sign sin sinh
    split sqrt square squeeze stack strided_slice subtract tan tanh trunc vision.roi_align zeros
""")
"""Policies of the Relax operators that spellings name, in TVM 0.27; those on neither list have none, or "never"."""

_WHOLE = _names("""
    equal greater greater_equal isfinite isinf isnan less less_equal logical_and logical_not logical_or logical_xor
    not_equal
""")
"""Those that return truth values."""

_PRODUCTS_INSIDE = _names("""
    attention attention_biased attention_masked cdist corrcoef cov det fft fft2 gru gru_cell irfft lstm lstm_cell
    matrix_power rfft rnn rnn_cell slogdet tensordot triangular_solve cholesky attention_otherwise
""")
"""Operators whose spelling is a function that multiplies matrices."""

_CONVOLUTIONS = frozenset(["conv2d", *(f"conv{rank}d{OTHERWISE}" for rank in (1, 2, 3))])
_PRODUCT = _CONVOLUTIONS | {"linear"}
"""Those whose spelling is a function, and without a bias an ALWAYS operator alone."""


@dataclass(frozen=True)
class _Tensor:
    """What the pass finds a value to be. floating: is it of float16 or float32? low: is it of float16, or a constant
    that is cast to it? None: that depends on steps which are not seen."""

    floating: bool
    low: bool | None


_WIDE = _Tensor(floating=True, low=False)
_OTHER = _Tensor(floating=False, low=False)
_DTYPES = {True: {"float16"}, False: {"float32"}, None: {"float16", "float32"}}


def _lowest(tensors: Sequence[_Tensor]) -> bool | None:
    """Are all of them low?"""
    known = {tensor.low for tensor in tensors}
    return False if False in known else None if None in known else True


@dataclass
class _Walk:
    """The Relax operators of one spelling. took: the dtypes that they compute in; product: is one of them an ALWAYS
    operator, and is one that of whole numbers?"""

    operands: Sequence[_Tensor]
    took: set[str] = field(default_factory=set)
    product: bool = False
    whole: bool = False

    def value(self, node: ast.AST) -> list[_Tensor]:
        """The tensors of an expression: one, several of a list, none of an attribute."""
        if isinstance(node, ast.Name) and re.fullmatch(r"t\d+", node.id):
            return [self.operands[int(node.id[1:])]]
        if isinstance(node, (ast.List, ast.Tuple)):
            return [tensor for part in node.elts for tensor in self.value(part)]
        if isinstance(node, ast.Subscript):
            return self.value(node.value)
        if not isinstance(node, ast.Call):
            return []
        name = ast.unparse(node.func)
        if name == "relax.const":
            return [_constant(node)]
        inside = [tensor for part in (*node.args, *(k.value for k in node.keywords)) for tensor in self.value(part)]
        if name == "bb.emit":
            return inside
        if name.startswith("relax.op."):
            return [self.step(name.removeprefix("relax.op."), inside, ast.unparse(node))]
        return [self.function(inside)] if inside else []

    def step(self, name: str, operands: list[_Tensor], text: str) -> _Tensor:
        """One operator of Relax."""
        floating = any(tensor.floating for tensor in operands)
        if name in ALWAYS:
            self.product, self.whole = True, self.whole or not floating
            return _Tensor(floating=True, low=True)
        low = _lowest(operands) if name in FOLLOW else False
        self.took |= _DTYPES[low] if floating else set()
        if name in ("astype", "zeros"):
            return _WIDE if "float" in text.split(",")[-1] else _OTHER
        return _OTHER if name in _WHOLE or not floating else _Tensor(floating, low)

    def function(self, operands: list[_Tensor]) -> _Tensor:
        """One of several steps, none of which is seen: of values of float32 alone they compute in float32."""
        floating = [tensor for tensor in operands if tensor.floating]
        low = None if any(tensor.low is not False for tensor in floating) else False
        self.took |= _DTYPES[low] if floating else set()
        return _Tensor(bool(floating), low)


def _constant(node: ast.Call) -> _Tensor:
    """relax.const(value, dtype)."""
    try:
        greatest = np.abs(np.asarray(ast.literal_eval(node.args[0]))).max(initial=0)
    except ValueError:  # an infinity, or an array that numpy makes
        greatest = np.inf
    return _Tensor("float" in ast.unparse(node), bool(greatest <= LARGEST))


def _walked(node: Node, call: Call, operands: Sequence[_Tensor]) -> tuple[_Walk, _Tensor] | None:
    """The steps of a node's spelling on such operands, and what they return; None where it has none."""
    spelling = OPS[node.op].relax
    text = spelling(call) if callable(spelling) else spelling
    if not isinstance(text, str):
        return None
    names = [f"t{i}" for i in range(len(operands))]
    fields = {"args": ", ".join(names), **{str(i): name for i, name in enumerate(names)}}
    fields |= {key: repr(value) for key, value in node.attrs} | {"dtype": repr(node.type.dtype)}
    fields |= {"name": repr(node.type.dtype)} | {f"{key}0": repr(call.operands[0].dtype) for key in ("dtype", "name")}
    text = re.sub(r"\{(\w+)\}", lambda found: fields.get(found[1], "None"), text)
    walk = _Walk(operands)
    if node.op in _PRODUCT:
        walk.product, walk.whole = True, not operands[0].floating
        return walk, _Tensor(floating=True, low=True)
    (result,) = walk.value(ast.parse(text.replace("relax.op.nn.relu6(", "relax.op.clip("), mode="eval").body)
    if node.op in _PRODUCTS_INSIDE:
        walk.took, walk.whole = {"float16", "float32"}, not operands[0].floating
        result = _Tensor(floating=True, low=None)
    return walk, result


# ---- what is spelled with an ALWAYS operator and others ----------------------------------------------------------


def _linear(s: GraphBuilder, node: Node) -> str:
    x, weight, bias = node.operands
    nothing = s.array(np.zeros(s.types[bias].shape, s.types[bias].dtype))
    return s.add("add", s.add("linear", x, weight, nothing), bias)


def _convolution(s: GraphBuilder, node: Node) -> str | None:
    if len(node.operands) < 3:
        return None
    x, weight, bias = node.operands
    shape = (1, s.types[bias].shape[0], *[1] * (len(s.types[x].shape) - 2))
    return s.add("add", s.add(node.op, x, weight, **node.attributes), s.add("reshape", bias, shape=shape))


def _addmm(s: GraphBuilder, node: Node) -> str:
    """Spelled without its last operand where beta is 0."""
    left, right, x = node.operands
    alpha, beta = (float(node.attributes[key]) for key in ("alpha", "beta"))  # type: ignore[arg-type]
    product = s.add("mul", s.constant(alpha, x), s.add("matmul", left, right))
    return s.add("add", s.add("mul", s.constant(beta, x), x), product) if beta else product


_APART: dict[str, Rule] = {
    "linear": _linear, "linear_otherwise": _linear, "addmm": _addmm, "baddbmm": _addmm,
    **dict.fromkeys(_CONVOLUTIONS, _convolution)
}  # fmt: skip


# ---- the graph with its casts ------------------------------------------------------------------------------------


def casts(graph: Graph, arrays: Arrays, sums: str = "float32") -> Case | str:
    """The graph as the pass has it computed, of float32 leaves that keep their names, as do the nodes; outputs are of
    float32 and have names of their own. Or why that cannot be told. arrays: of the parameters, which decide whether
    they are cast; without one, it fits. sums: the dtype that products are added up in, `out_dtype`."""
    odd = next((t.dtype for t in graph.types.values() if t.dtype in PRECISION and t.dtype != "float32"), None)
    if odd:
        return f"the pass is for modules of float32, not {odd}"
    writer = _Writer(graph, sums)
    for leaf in graph.leaves:
        writer.leaf(leaf, arrays.get(leaf.name))
    for node in graph.nodes:
        steps = GraphBuilder(f"{node.name}_d", dict(graph.types))
        result = _APART[node.op](steps, node) if node.op in _APART else None
        for name, array in steps.constants.items():
            writer.constant(name, array)
        parts = [*steps.nodes[:-1], replace(steps.nodes[-1], name=node.name)] if result else [node]
        for part in parts:
            why = writer.add(part, Call(tuple(steps.types[o] for o in part.operands), part.attributes, part.type))
            if why:
                return f"{node.op}: {why}"
    outputs = tuple(writer.cast(name, "float32") for name in graph.outputs)
    after = Graph((*graph.leaves, *writer.leaves), tuple(writer.nodes), outputs).validate()
    return Case(after, {**arrays, **writer.arrays})


def certain(graph: Graph, name: str) -> bool:
    """Are the dtypes of all steps known that this value comes of?"""
    for node in graph.pruned([name]).nodes:
        call = Call(tuple(graph.types[o] for o in node.operands), node.attributes, node.type)
        low = [_Tensor(graph.types[o].dtype == "float32", low=True) for o in node.operands]
        walked = _walked(node, call, low)
        if walked is None or len(walked[0].took) > 1 or node.op in ("identity", "positive"):
            return False
    return True


def spelled() -> frozenset[str]:
    """Relax operators that spellings name, but those that Relax itself writes with others."""
    texts = [str(spec.relax) for spec in OPS.values() if isinstance(spec.relax, str)]
    return frozenset(re.findall(r"relax\.op\.([\w.]+)\(", " ".join(texts))) - {"linear", "nn.relu6"}


@dataclass
class _Writer:
    """The rewritten graph in the making. leaves, arrays: constants that a spelling brings with it."""

    graph: Graph
    sums: str
    tensors: dict[str, _Tensor] = field(default_factory=dict)
    types: dict[str, TensorType] = field(default_factory=dict)
    nodes: list[Node] = field(default_factory=list)
    leaves: list[Leaf] = field(default_factory=list)
    arrays: dict[str, np.ndarray] = field(default_factory=dict)

    def leaf(self, leaf: Leaf, array: np.ndarray | None) -> None:
        """NaN fits: the pass asks whether a magnitude is greater."""
        fits = array is None or not (np.abs(array.astype(np.float64)) > LARGEST).any()
        low = leaf.role == "parameter" and fits and leaf.type.dtype != "bool"
        self.types[leaf.name] = leaf.type
        self.tensors[leaf.name] = _Tensor(leaf.type.dtype == "float32", low)

    def constant(self, name: str, array: np.ndarray) -> None:
        leaf = Leaf(name, TensorType(str(array.dtype), array.shape), "parameter")
        self.leaves.append(leaf)
        self.arrays[name] = array
        self.leaf(leaf, array)

    def cast(self, name: str, wanted: str) -> str:
        """The value in another floating dtype."""
        if self.types[name].dtype not in PRECISION or self.types[name].dtype == wanted:
            return name
        other = f"{name}_{wanted}"
        if other not in self.types:
            self.put(Node(other, "cast", (name,), (("to", wanted),), TensorType(wanted, self.types[name].shape)))
        return other

    def put(self, node: Node) -> None:
        self.nodes.append(node)
        self.types[node.name] = node.type
        self.tensors[node.name] = _Tensor(node.type.dtype in PRECISION, node.type.dtype == "float16")

    def add(self, node: Node, call: Call) -> str | None:
        """One node with its casts, or why it cannot be told."""
        walked = _walked(node, call, [self.tensors[name] for name in node.operands])
        if walked is None:
            return "it is not spelled in Relax"
        walk, result = walked
        if walk.whole:
            return "the pass makes sums of whole numbers floating: it is for modules of float32"
        if walk.product:
            given = replace(node, operands=tuple(self.cast(name, "float16") for name in node.operands))
            return self._plain(given, f"{node.name}_sum", self.sums) or self._named(node, f"{node.name}_sum", "float16")
        if "float16" not in walk.took:
            return self._plain(node, node.name, "float32")
        if result.low is False and result.floating:
            return self._plain(node, f"{node.name}_low", "float16") or self._named(node, f"{node.name}_low", "float32")
        why = self._plain(node, node.name, "float16")
        self.tensors[node.name] = replace(self.tensors.get(node.name, _OTHER), low=result.low)
        return why

    def _named(self, node: Node, operand: str, dtype: str) -> None:
        """A value by the node's name, in another dtype."""
        self.put(Node(node.name, "cast", (operand,), (("to", dtype),), TensorType(dtype, node.type.shape)))

    def _plain(self, node: Node, name: str, dtype: str) -> str | None:
        """The node with floating operands of this dtype."""
        operands = tuple(self.cast(operand, dtype) for operand in node.operands)
        taken = tuple(self.types[operand] for operand in operands)
        for position, type_ in enumerate(taken):
            if not OPS[node.op].slot(position).accepts(type_, taken[:position]):
                return f"it takes no {type_.dtype} as operand {position}"
        type_ = OPS[node.op].result(taken, node.attributes)
        self.put(replace(node, name=name, operands=operands, type=type_))
        return None
