"""Gradient programs: how each framework differentiates the model. Each `load(parameters)` returns a function from the
inputs, the weights of the floating outputs last, to the gradients by LEAVES of the weighted sum of these outputs."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping

from generators.graph import Graph, Node
from generators.ops import OPS
from generators.ops.spec import Unsupported
from harness.backends.target.target import Target
from harness.backends.target.text import before, swapped
from oracles.derivatives.gradient import differentiable_leaves, weight_name, weights
from oracles.derivatives.rounding.first_derivatives import UNDERIVED

_TORCH = """
def load(parameters):
    compiled = {compiled}

    def run(*inputs):
        given = {{**dict(zip(INPUTS, inputs)), **parameters}}
        values = {{name: torch.from_numpy(array.copy()) for name, array in given.items()}}
        for name in LEAVES:
            values[name].requires_grad_()
        outputs = compiled(*[values[name] for name in given if name not in WEIGHTS.values()])
        # what is a constant by the framework's own rules has a gradient of zero
        pairs = [(outputs[i], values[weight]) for i, weight in WEIGHTS.items() if outputs[i].requires_grad]
        wanted = [values[name] for name in LEAVES]
        if pairs:
            reached, seeds = zip(*pairs)
            gradients = torch.autograd.grad(reached, wanted, seeds, allow_unused=True, materialize_grads=True)
        else:
            gradients = [torch.zeros_like(leaf) for leaf in wanted]
        return [output.numpy(force=True) for output in gradients]

    return run
"""

_TENSORFLOW = """
def load(parameters):
{decorator}    def gradients(given):
        weights = {{i: given[weight] for i, weight in WEIGHTS.items()}}
        with tf.GradientTape() as tape:
            for name in LEAVES:
                tape.watch(given[name])
            outputs = model(*[given[name] for name in [*INPUTS, *PARAMETERS] if name not in WEIGHTS.values()])
        found = tape.gradient(
            [outputs[i] for i in weights],
            [given[name] for name in LEAVES],
            output_gradients=list(weights.values()),
            unconnected_gradients=tf.UnconnectedGradients.ZERO,
        )
        return [tf.convert_to_tensor(gradient) for gradient in found]  # from IndexedSlices, too

    def run(*inputs):
        given = {{**dict(zip(INPUTS, inputs)), **parameters}}
        found = gradients({{name: tf.constant(array) for name, array in given.items()}})
        return [gradient.numpy() for gradient in found]

    return run
"""

_JAX = """
def load(parameters):
    def gradients(given):
        def outputs(*leaves):
            values = {{**given, **dict(zip(LEAVES, leaves))}}
            results = model(*[values[name] for name in [*INPUTS, *PARAMETERS] if name not in WEIGHTS.values()])
            return [results[i] for i in WEIGHTS]

        # JAX pulls back dL/dRe - i dL/dIm
        _, pull_back = jax.vjp(outputs, *[given[name] for name in LEAVES])
        return [jnp.conj(found) for found in pull_back([jnp.conj(given[weight]) for weight in WEIGHTS.values()])]

    compiled = {compiled}

    def run(*inputs):
        given = {{**dict(zip(INPUTS, inputs)), **parameters}}
        with jax.default_device(jax.devices("cpu")[0]):  # also where there is a GPU
            found = compiled({{name: jnp.asarray(array) for name, array in given.items()}})
            return [np.asarray(gradient) for gradient in found]

    return run
"""

TORCH_EAGER = _TORCH.format(compiled="model")
TENSORFLOW_EAGER = _TENSORFLOW.format(decorator="")
JAX_EAGER = _JAX.format(compiled="gradients")
JAX_JIT = _JAX.format(compiled="jax.jit(gradients)")


def torch_compiled(expression: str) -> str:
    """The model as this expression compiles it."""
    return _TORCH.format(compiled=expression)


def tensorflow_function(options: str) -> str:
    """The whole computation of the gradients as one tf.function."""
    return _TENSORFLOW.format(decorator=f"    @tf.function{options}\n")


def tvm(load: str) -> str:
    """The text of a TVM target's `load`, with the adjoint of the weighted sum in place of the model."""
    built = before(load, "    with bb.function")
    model = load.removeprefix(built)
    model = before(model, "bb.emit_func_output(results)\n") + "bb.emit_func_output(results)\n"
    adjoint = """    given = dict(zip([*INPUTS, *PARAMETERS], arguments))
    with bb.function("main", arguments):
        with bb.dataflow():
            outputs = model(bb, *[given[name] for name in given if name not in WEIGHTS.values()])
            terms = [relax.op.sum(relax.op.multiply(outputs[i], given[w])) for i, w in WEIGHTS.items()]
            total = terms[0]
            for term in terms[1:]:
                total = relax.op.add(total, term)
            result = bb.emit_output(bb.normalize(total))
        bb.emit_func_output(result)
    module = relax.transform.Gradient("main", [given[name] for name in LEAVES])(bb.get())
    module = tvm.IRModule({"main": module["main_adjoint"].with_attr("global_symbol", "main")})
"""
    return swapped(
        load,
        (model, adjoint),
        ("tvm.compile(bb.get(),", "tvm.compile(module,"),
        ('output.numpy() for output in machine["main"]', 'gradient.numpy() for gradient in machine["main"]'),
        ("for x in inputs])]", "for x in inputs])[1]]"),
    )


Reason = str | Callable[[Graph, Node], str | None]


def _dilated(node: Node) -> bool:
    dilation = node.attributes.get("dilation", 1)
    return any(d != 1 for d in (dilation if isinstance(dilation, tuple) else (dilation,)))


def _convolution(graph: Graph, node: Node) -> str | None:
    if _dilated(node):
        return "its CPU kernels have no gradient with dilation (Current CPU implementations do not yet support it)"
    if node.attributes.get("groups", 1) != 1:
        return (
            "its CPU kernels have no gradient with groups (Gradients for grouped convolutions are not supported on CPU)"
        )
    return None


def _dilated_window(graph: Graph, node: Node) -> str | None:
    if _dilated(node):
        return "VJP not implemented for select_and_gather with window dilation"
    return None


def _statistics(graph: Graph, node: Node) -> str | None:
    live = {leaf.name for leaf in differentiable_leaves(graph)}
    for other in graph.nodes:
        if live & set(other.operands):
            live.add(other.name)
    return "it does not differentiate by the statistics" if live & set(node.operands[3:5]) else None


def _many_dimensions(graph: Graph, node: Node) -> str | None:
    if graph.types[node.operands[1]].rank == 1:
        return None
    return "the gradient of take takes indices of one dimension only"


def _class_weights(graph: Graph, node: Node) -> str | None:
    if not node.attributes.get("smoothing"):
        return "it documents no gradient of nll_loss by the weights"
    return _many_dimensions(graph, node)


def _steep(graph: Graph, node: Node) -> str | None:
    if node.attributes["alpha"] == 1.0:
        return None
    return _WHERE


def _frozen(graph: Graph, node: Node) -> str | None:
    if node.attributes["training"] and node.attributes["output"] == "y":
        return None
    return "FusedBatchNormGrad differentiates y alone, and hands nothing on to a given mean and variance"


def _orthogonal(graph: Graph, node: Node) -> str | None:
    return None if node.attributes["fast"] else "Gradient not defined for fast=False"


_NO_FORMULA = "it has no derivative"
_STRAIGHT = "documented to hand the gradient on as if it did not round"
_WHERE = "spelled with where, whose gradient is that of one branch, and NaN where the other one's is infinite (0 * inf)"
REFUSES: dict[str, dict[str, Reason]] = {
    "torch": {
        "batch_norm": _statistics,
        "embedding_padded": "documented to give the row of padding_idx no gradient, though the value is of it",
        "floor_divide": _NO_FORMULA,
        "heaviside": _NO_FORMULA,
        "line_between": "linspace makes a new tensor, which requires no gradient",
        "nextafter": _NO_FORMULA,
        "quantize_dequantize": _STRAIGHT,
        "quantize_dequantize_channels": _STRAIGHT,
        "quantize_dequantize_words": _STRAIGHT,
        "quantize_dequantize_channels_words": _STRAIGHT,
        "scatter_otherwise": "documented to have a backward pass only for a source of the index' shape",
        "weighted_bincount": "derivative for aten::bincount is not implemented",
    },
    "tensorflow": {
        "adjust_contrast": "AdjustContrastv2 has no registered gradient",
        "adjust_hue": "AdjustHue has no registered gradient",
        "adjust_saturation": "AdjustSaturation has no registered gradient",
        "complex_irfft3": "IRFFT3D has no registered gradient",
        "complex_rfft3": "RFFT3D has no registered gradient",
        "conv1d": _convolution,
        "conv1d_same": _convolution,
        "conv2d": _convolution,
        "conv2d_same": _convolution,
        "conv3d": _convolution,
        "elu": _steep,
        "fake_quant": _STRAIGHT,
        "fused_batch_norm": _frozen,
        "hsv_to_rgb": "HSVToRGB is not differentiable",
        "least_squares": _orthogonal,
        "least_squares_regularized": _orthogonal,
        "line_between": "LinSpace is not differentiable",
        "fmod": "TruncateMod has no registered gradient",
        "resize_area": "ResizeArea has no registered gradient",
        "softmax_cross_entropy": "documented for labels that add up to 1",
        "weighted_bincount": "Bincount has no registered gradient",
    },
    "jax": {
        **{f"max_pool{n}d": _dilated_window for n in (1, 2, 3)},
        "nextafter": "Differentiation rule for 'nextafter' not implemented",
        "reflections": "Differentiation rule for 'householder_product' not implemented",
        "segment_prod": "scatter_mul gradients are only implemented if unique_indices=True",
        "segment_prod_dropping": "scatter_mul gradients are only implemented if unique_indices=True",
    },
    "tvm": {
        "cross_entropy_weighted": _class_weights,
        "diag_embed": "spelled with take, whose gradient takes indices of one dimension only",
        "embedding": _many_dimensions,
        "embedding_bag_weighted": _many_dimensions,
        "nll_loss_weighted": _class_weights,
        "sliding_windows": "spelled with take, whose gradient takes indices of one dimension only",
        "take": _many_dimensions,
        "take_flat": _many_dimensions,
        "take_from_end": _many_dimensions,
        "take_flat_from_end": _many_dimensions,
        "pick": "spelled with take, whose gradient takes indices of one dimension only",
        "unstack": "spelled with take, whose gradient takes indices of one dimension only",
        "xlogy": _WHERE,
    },
}
"""framework -> operator -> why the framework says that it does not differentiate it, for some nodes or for all."""

REGISTERED = frozenset(
    [
        "abs",
        "add",
        "astype",
        "broadcast_to",
        "concat",
        "cos",
        "cumsum",
        "divide",
        "equal",
        "exp",
        "expand_dims",
        "full",
        "full_like",
        "greater",
        "greater_equal",
        "less",
        "less_equal",
        "log",
        "matmul",
        "maximum",
        "mean",
        "minimum",
        "multiply",
        "negative",
        "nn.avg_pool2d",
        "nn.conv2d",
        "nn.cross_entropy_with_logits",
        "nn.log_softmax",
        "nn.max_pool2d",
        "nn.nll_loss",
        "nn.relu",
        "nn.silu",
        "nn.softmax",
        "not_equal",
        "ones",
        "ones_like",
        "permute_dims",
        "power",
        "reshape",
        "sigmoid",
        "sin",
        "split",
        "sqrt",
        "subtract",
        "sum",
        "take",
        "tanh",
        "triu",
        "variance",
        "where",
        "zeros",
        "zeros_like",
    ]
)
"""Operators of relax that have a gradient (`register_gradient` in tvm/relax/op/_op_gradient.py, TVM 0.27)."""


def underivable(target: Target, graph: Graph, refused: Mapping[str, Reason]) -> str | None:
    """Why no derivative of the graph is asked of this target, or None. refused: reasons by operator."""
    if not differentiable_leaves(graph):
        return "no floating leaf reaches a floating output"
    reason = target.unsupported(graph)
    if reason:
        return reason
    for node in graph.nodes:
        why = refused.get(node.op) or refused.get(OPS[node.op].base)
        why = "what its derivative loses is not derived" if node.op in UNDERIVED else why
        if callable(why):
            why = why(graph, node)
        if why:
            return f"{node.op}: {why}"
    return None


def unsupported(target: Target, graph: Graph) -> str | None:
    """Why this target cannot differentiate the graph, or None."""
    if isinstance(target.gradient, Unsupported):
        return target.gradient.why
    reason = underivable(target, graph, REFUSES.get(target.library, {}))
    if reason is None and target.library == "tvm":
        return _unsupported_by_tvm(target, graph)
    return reason


def _called(text: str) -> str:
    """The text without methods of its classes, the names of `shared_namespace.py`, that are not called."""
    classes = [node for node in ast.parse(text).body if isinstance(node, ast.ClassDef)]
    methods = [method for node in classes for method in node.body if isinstance(method, ast.FunctionDef)]
    sources = {method.name: ast.get_source_segment(text, method) or "" for method in methods}
    for source in sources.values():
        text = text.replace(source, "")
    names = {"__and__": " & "}
    kept = [s for name, s in sources.items() if names.get(name, "" if name[0] == "_" else f".{name}(") in text]
    return "\n".join([text, *kept])


def _unsupported_by_tvm(target: Target, graph: Graph) -> str | None:
    """relax.transform.Gradient wants every operator of the module to be registered."""
    for operator in re.findall(r"\brelax\.op\.([\w.]+)", _called(target.dialect.source(graph, ""))):
        if operator not in REGISTERED:
            return f"relax.{operator} has no registered gradient"
    if any(leaf.type.dtype == "bfloat16" for leaf in differentiable_leaves(graph)):
        return "only tensors of a floating dtype can require gradients, which bfloat16 is not to it"
    dtypes = {graph.types[name].dtype for name in weights(graph)}
    if len(dtypes) > 1:
        return "one weighted sum cannot hold outputs of two dtypes"
    return None


def head(graph: Graph) -> str:
    """What the text of `load` counts on: by what is differentiated, and which outputs have which weights."""
    outputs = list(graph.outputs)
    names = {outputs.index(name): weight_name(name) for name in weights(graph)}
    return (
        f"LEAVES = {tuple(leaf.name for leaf in differentiable_leaves(graph))!r}\n"
        f"WEIGHTS = {names!r}  # number of an output -> its weights\n"
    )


def program(target: Target, graph: Graph) -> str:
    """The standalone program of the gradients."""
    assert isinstance(target.gradient, str)
    further = {weight_name(name): graph.types[name] for name in weights(graph)}
    types = [leaf.type for leaf in differentiable_leaves(graph)]
    return target.text(graph, head(graph) + "\n" + target.gradient, further, types)
