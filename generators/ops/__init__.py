"""Every operator: one record each, one family a file."""

from __future__ import annotations

from generators.graph import Graph, GraphError
from generators.ops.complex.elementwise import COMPLEXES
from generators.ops.complex.fourier_pairs import FOURIER
from generators.ops.complex.tensors import COMPLEX_TENSORS
from generators.ops.elementwise.activations import ACTIVATIONS
from generators.ops.elementwise.arithmetic import BINARY
from generators.ops.elementwise.bitwise import BITWISE
from generators.ops.elementwise.comparison import COMPARISON
from generators.ops.elementwise.division import DIVISION
from generators.ops.elementwise.exponential import FUNCTIONS
from generators.ops.elementwise.floating import NUMERALS
from generators.ops.elementwise.rectifiers import THRESHOLDS
from generators.ops.elementwise.selection import PAIRS
from generators.ops.elementwise.special import SPECIAL
from generators.ops.elementwise.trigonometric import UNARY
from generators.ops.index.embedding import BAGS
from generators.ops.index.gather import INDEXING
from generators.ops.index.index_put import ARRAYS
from generators.ops.index.put import WRITES
from generators.ops.index.scatter import SCATTER
from generators.ops.linear.decompositions import SPECTRA
from generators.ops.linear.einsum import CONTRACTIONS
from generators.ops.linear.matmul import LINALG
from generators.ops.linear.products import PRODUCTS
from generators.ops.linear.solve import SYSTEMS
from generators.ops.nn.adaptive_pooling import ADAPTIVE
from generators.ops.nn.attention import ATTENTION
from generators.ops.nn.conv import CONV, SELDOM_CONV
from generators.ops.nn.fake_quantize import QUANTIZATION
from generators.ops.nn.grid_sample import SAMPLING
from generators.ops.nn.likelihood_losses import LIKELIHOODS
from generators.ops.nn.local_response_norm import STANDARDS
from generators.ops.nn.losses import LOSSES
from generators.ops.nn.margin_losses import MARGIN_LOSSES
from generators.ops.nn.normalization import NORM
from generators.ops.nn.pooling import POOLING, SELDOM_POOLING
from generators.ops.nn.recurrent import RECURRENT
from generators.ops.nn.resize import RESIZE
from generators.ops.nn.unfold import PATCHES
from generators.ops.reduce.cumulative import SCAN
from generators.ops.reduce.magnitudes import MAGNITUDES
from generators.ops.reduce.norms import NORMS
from generators.ops.reduce.reductions import REDUCTION
from generators.ops.reduce.running import RUNNING
from generators.ops.reduce.softmax import SOFTMAX
from generators.ops.reduce.sorting import SORTING
from generators.ops.reduce.statistics import STATISTICS
from generators.ops.shape.diagonal import PLACES
from generators.ops.shape.join_split import PIECES
from generators.ops.shape.meshgrid import GRIDS
from generators.ops.shape.pad_repeat import REARRANGE
from generators.ops.shape.reshape import LAYOUT
from generators.ops.spec import Call, OpSpec, TypeRuleError, Value

FAMILIES = (
    UNARY,
    ACTIVATIONS,
    BINARY,
    COMPARISON,
    REDUCTION,
    SCAN,
    LINALG,
    CONV,
    POOLING,
    SOFTMAX,
    NORM,
    LAYOUT,
    PIECES,
    REARRANGE,
    INDEXING,
    SCATTER,
)
"""What hunts and campaigns draw most."""

STEPPED = (
    NUMERALS,
    GRIDS,
    FOURIER,
    RESIZE,
    WRITES,
    SPECIAL,
    BAGS,
    PATCHES,
    NORMS,
    SYSTEMS,
    SPECTRA,
    SAMPLING,
    STATISTICS,
    ATTENTION,
    RECURRENT,
    MARGIN_LOSSES,
    LIKELIHOODS,
    STANDARDS,
    COMPLEXES,
    COMPLEX_TENSORS,
    ARRAYS,
)
"""Drawn seldom, too. What they lose between their steps is derived for ordinary roundings only: arithmetic that
reassociates is not asked of graphs with them."""

SELDOM = (
    BITWISE,
    DIVISION,
    FUNCTIONS,
    THRESHOLDS,
    PAIRS,
    MAGNITUDES,
    RUNNING,
    LOSSES,
    PRODUCTS,
    CONTRACTIONS,
    SORTING,
    PLACES,
    ADAPTIVE,
    SELDOM_CONV,
    SELDOM_POOLING,
    *STEPPED,
)
"""What is drawn, too, some of it for each graph: the many would else crowd out the few that models are made of."""

YOUNG = (QUANTIZATION,)
"""What is tested alone and swept, but not yet drawn unless asked for (`hunt --operators`): its bounds have not been
shown to raise no false alarm in random graphs."""

OPS: dict[str, OpSpec] = {spec.name: spec for family in (*FAMILIES, *SELDOM, *YOUNG) for spec in family}
DRAWN: tuple[str, ...] = tuple(spec.name for family in (*FAMILIES, *SELDOM) for spec in family)
DRAWN_SELDOM: frozenset[str] = frozenset(spec.name for family in SELDOM for spec in family)
STEPPED_OPS: frozenset[str] = frozenset(spec.name for family in STEPPED for spec in family)


def check(graph: Graph) -> Graph:
    """Check every node against its operator's record; raise GraphError naming the node, else return `graph`."""
    graph.validate()
    values = {leaf.name: Value(leaf.type, leaf.domain) for leaf in graph.leaves}
    for node in graph.nodes:
        spec = OPS.get(node.op)
        if spec is None:
            raise GraphError(f"node {node.name}: unknown operator {node.op!r}")
        least, most = len(spec.operands), len(spec.operands) - 1 + spec.variadic
        if not least <= len(node.operands) <= most:
            raise GraphError(f"node {node.name}: {node.op} takes {least} operands, not {len(node.operands)}")
        if set(node.attributes) != set(spec.attrs):
            raise GraphError(f"node {node.name}: {node.op} has attributes {sorted(spec.attrs)}")
        types = tuple(values[operand].type for operand in node.operands)
        for position, operand in enumerate(node.operands):
            if not spec.slot(position).fits(values[operand], types[:position]):
                raise GraphError(f"node {node.name}: operand {position} ({types[position]}) does not fit {node.op}")
        try:
            result = spec.result(types, node.attributes)
        except TypeRuleError as error:
            raise GraphError(f"node {node.name}: {error}") from error
        if result != node.type:
            raise GraphError(f"node {node.name}: the type is {result}, not {node.type}")
        values[node.name] = Value(node.type)
    return graph


def call_of(graph: Graph, index: int) -> Call:
    """Types and attributes of the graph's node number `index`."""
    node = graph.nodes[index]
    return Call(tuple(graph.types[o] for o in node.operands), node.attributes, node.type)


__all__ = [
    "DRAWN",
    "DRAWN_SELDOM",
    "OPS",
    "STEPPED_OPS",
    "Call",
    "OpSpec",
    "call_of",
    "check",
    "valid",
]


def valid(graph: Graph) -> bool:
    """Does it pass `check`?"""
    try:
        check(graph)
    except GraphError:
        return False
    return True
