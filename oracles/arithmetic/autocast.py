"""Does automatic mixed precision cast what it documents? A graph rewritten with the casts of PyTorch's autocast on the
CPU, against the ordinary reference of the rewritten graph, with each dtype's own unit roundoff.

The lists: "CPU Op-Specific Behavior" in the documentation of torch.amp;
`tests/meta/oracles/arithmetic/test_autocast.py` compares them with the casts that PyTorch makes. Casts
concern 16-bit floats and float32; float64 is left alone."""

from __future__ import annotations

from dataclasses import replace
from zlib import crc32

import numpy as np

from generators.bounds.bounded import PRECISION
from generators.graph import Graph, Leaf, Node, TensorType
from generators.graphs import Case
from generators.ops import OPS, SAID_OTHERWISE
from generators.ops.shape.pad_repeat import pairs
from oracles.judge.compare import Expected
from oracles.questions import forward

NAME = "autocast"

DTYPES = ("bfloat16", "float16")

LOWER = frozenset(
    [
        "addbmm",
        "addmm",
        "addmm_bias",
        "attention",
        "attention_biased",
        "attention_masked",
        "baddbmm",
        "baddbmm_bias",
        "batch_matmul",
        "conv1d",
        "conv1d_same",
        "conv2d",
        "conv2d_same",
        "conv3d",
        "conv_transpose1d",
        "conv_transpose2d",
        "conv_transpose3d",
        "depthwise_conv2d",
        "linear",
        "matmul",
        "matrix_vector",
        "multi_dot",
        "prelu",
        "vecdot",
        "vector_matrix",
    ]
)
"""Operators that PyTorch spells as one of those which "can autocast" to the lower dtype."""
FLOAT32 = frozenset(
    [
        "adaptive_avg_pool3d",
        "adaptive_max_pool3d",
        "avg_pool3d",
        "avg_pool3d_ceil",
        "avg_pool3d_divided",
        "bce_pos_weight",
        "bce_with_logits",
        "binary_cross_entropy",
        "cosine_embedding",
        "cross_entropy",
        "cross_entropy_weighted",
        "grid_sample",
        "hinge_embedding",
        "huber_loss",
        "kl_div",
        "kl_div_log_target",
        "l1_loss",
        "margin_ranking",
        "max_pool3d",
        "max_pool3d_ceil",
        "max_unpool1d",
        "max_unpool2d",
        "max_unpool3d",
        "mse_loss",
        "multi_margin",
        "multilabel_margin",
        "nll_loss",
        "nll_loss_weighted",
        "pad_edge",
        "pad_reflect",
        "poisson_nll",
        "quantile",
        "smooth_l1_loss",
        "soft_margin",
        "trace",
        "triplet_margin",
    ]
)
"""Those which "autocast to float32"; but see `_in_float32`."""
WIDEST = frozenset(
    [
        "add_n",
        "concat",
        "cumulative_sum",
        "dynamic_stitch",
        "hsv_to_rgb",
        "image_patches",
        "kept_cumprod",
        "kept_cumsum",
        "matrix_diag",
        "matrix_diag_part",
        "mean_n",
        "rgb_to_hsv",
        "roll",
        "roll_axes",
        "running_product",
        "running_sum",
        "sampled_gradient",
        "space_to_batch",
        "stack",
        "tensor_diag",
        "volume_patches",
    ]
)
"""Those which "promote to the widest input type", and what PyTorch or its spelling makes of one of them."""
COMPOSED = frozenset(
    [
        "affine_grid",
        "bilinear_form",
        "cdist",
        "cdist_of_order",
        "cholesky",
        "cholesky_inverse",
        "cholesky_solve",
        "corrcoef",
        "cov",
        "dilation2d",
        "eigenvalues",
        "eigh_product",
        "einsum",
        "gru",
        "gru_cell",
        "householder_product",
        "inverse",
        "local_response_norm",
        "lstm",
        "lstm_cell",
        "lu_product",
        "lu_unpacked_product",
        "matmul_widened",
        "matrix_exp",
        "matrix_power",
        "matrix_set_diag",
        "prod",
        "pseudo_inverse",
        "qr_factor",
        "qr_product",
        "reflections",
        "rfft",
        "rnn",
        "rnn_cell",
        "rotary_embedding",
        "singular_values",
        "softmax_cross_entropy",
        "solve",
        "svd_product",
        "tensordot",
    ]
)
"""Those which PyTorch, or its spelling, composes of listed operators and others: results in between have dtypes that
the graph does not tell."""
PROMOTES = frozenset(
    [
        "add",
        "addcmul",
        "atan2",
        "copysign",
        "div",
        "equal",
        "floor_divide",
        "fmax",
        "fmin",
        "fmod",
        "greater",
        "greater_equal",
        "hypot",
        "less",
        "less_equal",
        "logaddexp",
        "maximum",
        "minimum",
        "mul",
        "not_equal",
        "pow",
        "remainder",
        "squared_difference",
        "sub",
        "where",
        "xlogy",
    ]
)
"""Operators on no list that promote operands of several dtypes (documentation of torch.result_type). Others refuse
them, or name no common dtype."""


def prepare(case: Case) -> Case:
    """The case; where no operator of it is lowered, with a prelu before the first operand of rank 2 or more of an
    operator that would widen its result again, so that dtypes meet."""
    graph = case.graph
    if any(node.op in LOWER for node in graph.nodes):
        return case
    for index, node in enumerate(graph.nodes):
        types = [graph.types[name] for name in node.operands]
        fit = [i for i, type_ in enumerate(types) if type_.dtype == "float32" and type_.rank > 1]
        if node.op in PROMOTES | FLOAT32 | WIDEST and fit:
            name = node.operands[fit[0]]
            slope = Leaf("w_low", TensorType("float32", (1,)), "parameter")
            lowered = Node("v_low", "prelu", (name, slope.name), (), types[fit[0]])
            operands = (*node.operands[: fit[0]], lowered.name, *node.operands[fit[0] + 1 :])
            nodes = (*graph.nodes[:index], lowered, replace(node, operands=operands), *graph.nodes[index + 1 :])
            arrays = {**case.arrays, slope.name: np.full((1,), 0.75, np.float32)}
            return Case(Graph((*graph.leaves, slope), nodes, graph.outputs).validate(), arrays)
    return case


def dtype(graph: Graph) -> str:
    """What autocast lowers to: by the first operator on a list and the size of its first operand, so that reduction
    mostly keeps it."""
    for node in graph.nodes:
        if node.op in LOWER or node.op in FLOAT32:
            return DTYPES[crc32(f"{node.op} {sum(graph.types[node.operands[0]].shape)}".encode()) % len(DTYPES)]
    return DTYPES[0]


def rewritten(graph: Graph) -> Graph | str:
    """The graph with the casts that autocast makes, or why they cannot be told."""
    low = dtype(graph)
    types: dict[str, TensorType] = {leaf.name: leaf.type for leaf in graph.leaves}
    nodes: list[Node] = []

    def cast(name: str, wanted: str) -> str:
        """The value in another dtype."""
        if types[name].dtype == wanted:
            return name
        other = f"{name}_{wanted}"
        if other not in types:
            types[other] = TensorType(wanted, types[name].shape)
            nodes.append(Node(other, "cast", (name,), (("to", wanted),), types[other]))
        return other

    for node in graph.nodes:
        wanted = _wanted(node, [types[name] for name in node.operands], low)
        if wanted in _WHY:
            return f"{node.op}: {_WHY[wanted]}"
        operands = tuple(
            cast(name, wanted) if wanted and types[name].dtype in _CAST else name for name in node.operands
        )
        taken = tuple(types[name] for name in operands)
        for position, type_ in enumerate(taken):
            if not OPS[node.op].slot(position).accepts(type_, taken[:position]):
                return f"{node.op}: it takes no {type_.dtype} as operand {position}"
        type_ = types[node.name] = OPS[node.op].result(taken, node.attributes)
        nodes.append(Node(node.name, node.op, operands, node.attrs, type_))
    return Graph(graph.leaves, tuple(nodes), graph.outputs).validate()


_CAST = ("float32", *DTYPES)
_WHY = {
    "mixed": "operands of several floating dtypes meet",
    "composed": "composed of operators that autocast treats differently",
    "ranks": "a scalar of another dtype promotes by its rank",
    "unexpected": "autocast promotes float32 and its lower dtype only (Unexpected floating ScalarType)",
}


def _in_float32(node: Node) -> bool:
    """Of traces only that of a matrix is spelled with torch.trace; reflection_pad3d, of three axes, is on no list."""
    if node.op == "trace":
        return node.type.rank == 0
    if node.op == "pad_reflect":
        widths = pairs(node.attributes)
        first = next((axis for axis, width in enumerate(widths) if width != (0, 0)), len(widths))
        return len(widths) - first < 3
    return node.op in FLOAT32


def _wanted(node: Node, operands: list[TensorType], low: str) -> str | None:
    """The dtype that floating operands are cast to (None: as they are), or a key of `_WHY`."""
    floating = [type_ for type_ in operands if type_.dtype in _CAST]
    several = len({type_.dtype for type_ in floating}) > 1
    wide = "float32" if several else None
    if node.op in COMPOSED or node.op in SAID_OTHERWISE:
        return "composed"
    if node.op in LOWER:
        return low
    if _in_float32(node):
        return "float32"
    if node.op in WIDEST:
        known = all(type_.dtype in ("float32", low) or type_.dtype not in PRECISION for type_ in operands)
        return wide if known else "unexpected"
    if several and node.op not in PROMOTES:
        return "mixed"
    if several and any(type_.rank == 0 for type_ in floating) and any(type_.rank for type_ in floating):
        return "ranks"
    return wide


def expect(case: Case) -> Expected:
    """What the rewritten graph returns; nothing where it cannot be told, which no target is asked for."""
    graph = rewritten(case.graph)
    return forward.expect(Case(graph, case.arrays)) if isinstance(graph, Graph) else Expected((), (), ())
