"""Programs of second derivatives by forward mode alone: how each framework pushes tangents through the tangents of the
model. Each `load(parameters)` returns what those of `hessian` do, since it is the same: the second tangents of the
outputs, weighted, along the tangents of the leaves and one element of a leaf after the other."""

from __future__ import annotations

from generators.graph import Graph
from harness.backends.programs.hessian import VALUES, unsupported_by
from harness.backends.programs.tangent_gradient import JAX_PUSHED, TORCH_PUSHED
from harness.backends.target.target import Target
from oracles.derivatives.gradient import differentiable_leaves
from oracles.derivatives.tangent_tangent import NAME

MOST = 160
"""Elements of all leaves together: each takes a run of the program."""

_RUN = """
    def run(*inputs):
        arrays = {{**dict(zip(INPUTS, inputs)), **parameters}}
        given = {{name: tensor(value) for name, value in arrays.items()}}
        still = {{name: tensor(np.zeros_like(arrays[name])) for name in LEAVES}}
        weights = [arrays[weight].astype(np.float64) for weight in WEIGHTS.values()]
        result = []
        for name in LEAVES:
            slopes = np.zeros(arrays[name].size)
            for place in range(slopes.size):
                one = np.zeros_like(arrays[name])
                one.reshape(-1)[place] = 1
                found = compiled(given, {{**still, name: tensor(one)}})
                terms = zip(weights, map(array, found), strict=True)
                slopes[place] = sum(np.sum(weight * output.astype(np.float64)) for weight, output in terms)
            result.append(slopes.reshape(arrays[name].shape).astype(arrays[name].dtype))
        return result
"""
"""Of `compiled`, and of `tensor` and `array`, which convert."""

_TORCH = (
    """
def load(parameters):
    def twice(given, beside):"""
    + TORCH_PUSHED
    + """
        leaves = tuple(given[name] for name in LEAVES)
        return torch.func.jvp(pushed, leaves, tuple(beside[name] for name in LEAVES))[1]

    def tensor(value):
        return torch.from_numpy(value)

    def array(output):
        return output.numpy(force=True)

    compiled = {compiled}
"""
    + _RUN
    + """
    return run
"""
)

_TENSORFLOW = (
    """
def load(parameters):
{decorator}    def compiled(given, beside):
        leaves, along = [given[name] for name in LEAVES], [given[name] for name in LEAVES.values()]
        with tf.autodiff.ForwardAccumulator(leaves, [beside[name] for name in LEAVES]) as outer:
            with tf.autodiff.ForwardAccumulator(leaves, along) as inner:
                values = given
                outputs = model(*{values})
                found = [inner.jvp(outputs[i], unconnected_gradients=tf.UnconnectedGradients.ZERO) for i in WEIGHTS]
            tangents = [tf.convert_to_tensor(tangent) for tangent in found]  # from IndexedSlices, too
            found = [outer.jvp(tangent, unconnected_gradients=tf.UnconnectedGradients.ZERO) for tangent in tangents]
        return [tf.convert_to_tensor(tangent) for tangent in found]

    tensor, array = tf.constant, np.asarray
"""
    + _RUN
    + """
    return run
"""
)

_JAX = (
    """
def load(parameters):
    def twice(given, beside):"""
    + JAX_PUSHED
    + """
        return jax.jvp(pushed, [given[name] for name in LEAVES], [beside[name] for name in LEAVES])[1]

    compiled, tensor, array = {compiled}, jnp.asarray, np.asarray
"""
    + _RUN
    + """
    def run_on_cpu(*inputs):
        with jax.default_device(jax.devices("cpu")[0]):  # also where there is a GPU
            return run(*inputs)

    return run_on_cpu
"""
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
