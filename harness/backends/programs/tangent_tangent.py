"""Programs of second derivatives by forward mode alone: how each framework pushes tangents through the tangents of the
model. Each `load(parameters)` returns what those of `hessian` do, since it is the same: the second tangents of the
outputs, weighted, along the tangents of the leaves and one element of a leaf after the other."""

from __future__ import annotations

from generators.graph import Graph
from harness.backends.programs.hessian import VALUES, unsupported_by
from harness.backends.target.target import Target
from oracles.derivatives.gradient import differentiable_leaves
from oracles.derivatives.tangent_tangent import NAME

MOST = 160
"""Elements of all leaves together: each takes a run of the program."""

_RUN = """
    compiled = {compiled}

    def run(*inputs):
        given = {{{{**dict(zip(INPUTS, inputs)), **parameters}}}}
        still = {{{{name: np.zeros_like(given[name]) for name in LEAVES}}}}
        weights = [given[weight].astype(np.float64) for weight in WEIGHTS.values()]
        result = []
        for name in LEAVES:
            slopes = np.zeros(given[name].size)
            for place in range(slopes.size):
                one = np.zeros_like(given[name])
                one.reshape(-1)[place] = 1
                found = compiled({given}, {beside})
                terms = zip(weights, found, strict=True)
                slopes[place] = sum(np.sum(weight * {second}.astype(np.float64)) for weight, output in terms)
            result.append(slopes.reshape(given[name].shape).astype(given[name].dtype))
        return result

    return run
"""

_TORCH = """
def load(parameters):
    def twice(given, beside):
        def outputs(*leaves):
            values = {{**given, **dict(zip(LEAVES, leaves))}}
            results = model(*{values})
            return tuple(results[i] for i in WEIGHTS)

        def pushed(*leaves):
            return torch.func.jvp(outputs, leaves, tuple(given[name] for name in LEAVES.values()))[1]

        leaves = tuple(given[name] for name in LEAVES)
        return torch.func.jvp(pushed, leaves, tuple(beside[name] for name in LEAVES))[1]
""" + _RUN.format(
    given="{{k: torch.from_numpy(v) for k, v in given.items()}}",
    beside="{{k: torch.from_numpy(v) for k, v in {{**still, name: one}}.items()}}",
    second="output.numpy(force=True)",
    compiled="{compiled}",
)

_TENSORFLOW = """
def load(parameters):
{decorator}    def twice(given, beside):
        leaves, along = [given[name] for name in LEAVES], [given[name] for name in LEAVES.values()]
        with tf.autodiff.ForwardAccumulator(leaves, [beside[name] for name in LEAVES]) as outer:
            with tf.autodiff.ForwardAccumulator(leaves, along) as inner:
                values = given
                outputs = model(*{values})
                found = [inner.jvp(outputs[i], unconnected_gradients=tf.UnconnectedGradients.ZERO) for i in WEIGHTS]
            tangents = [tf.convert_to_tensor(tangent) for tangent in found]  # from IndexedSlices, too
            found = [outer.jvp(tangent, unconnected_gradients=tf.UnconnectedGradients.ZERO) for tangent in tangents]
        return [tf.convert_to_tensor(tangent) for tangent in found]
""" + _RUN.format(
    given="{{k: tf.constant(v) for k, v in given.items()}}",
    beside="{{k: tf.constant(v) for k, v in {{**still, name: one}}.items()}}",
    second="output.numpy()",
    compiled="twice",
)

_JAX = """
def load(parameters):
    def twice(given, beside):
        def outputs(*leaves):
            values = {{**given, **dict(zip(LEAVES, leaves))}}
            results = model(*{values})
            return [results[i] for i in WEIGHTS]

        def pushed(*leaves):
            return jax.jvp(outputs, leaves, tuple(given[name] for name in LEAVES.values()))[1]

        return jax.jvp(pushed, [given[name] for name in LEAVES], [beside[name] for name in LEAVES])[1]
""" + _RUN.format(
    given="{{k: jnp.asarray(v) for k, v in given.items()}}",
    beside="{{k: jnp.asarray(v) for k, v in {{**still, name: one}}.items()}}",
    second="np.asarray(output)",
    compiled="{compiled}",
)

TORCH_EAGER = _TORCH.format(values=VALUES, compiled="twice")
TENSORFLOW_EAGER = _TENSORFLOW.format(values=VALUES, decorator="")
JAX_EAGER = _JAX.format(values=VALUES, compiled="twice")
JAX_JIT = _JAX.format(values=VALUES, compiled="jax.jit(twice)")


def torch_compiled(backend: str) -> str:
    """The second tangents along one element, compiled."""
    compiled = f'torch.compile(twice, backend="{backend}", fullgraph=True, dynamic=False)'
    return _TORCH.format(values=VALUES, compiled=compiled)


def tensorflow_function(options: str) -> str:
    """The second tangents along one element as one tf.function."""
    return _TENSORFLOW.format(values=VALUES, decorator=f"    @tf.function{options}\n")


_twice = unsupported_by(NAME)


def unsupported(target: Target, graph: Graph) -> str | None:
    """Why a target cannot be asked, or None."""
    if sum(leaf.type.size for leaf in differentiable_leaves(graph)) > MOST:
        return f"more than {MOST} elements to go along"
    return _twice(target, graph)
