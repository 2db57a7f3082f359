"""Programs of second derivatives in the other order: how each framework differentiates the tangents of the outputs by
the leaves. Each `load(parameters)` returns what those of `hessian` do, since it is the same."""

from __future__ import annotations

from harness.backends.programs.hessian import VALUES

TORCH_PUSHED = """
        def outputs(*leaves):
            values = {{**given, **dict(zip(LEAVES, leaves))}}
            results = model(*{values})
            return tuple(results[i] for i in WEIGHTS)

        def pushed(*leaves):
            return torch.func.jvp(outputs, leaves, tuple(given[name] for name in LEAVES.values()))[1]
"""
"""The tangents of the outputs as a function of the leaves, in the body of one of `given`."""

JAX_PUSHED = """
        def outputs(*leaves):
            values = {{**given, **dict(zip(LEAVES, leaves))}}
            results = model(*{values})
            return [results[i] for i in WEIGHTS]

        def pushed(*leaves):
            return jax.jvp(outputs, leaves, tuple(given[name] for name in LEAVES.values()))[1]
"""

_TORCH = (
    """
def load(parameters):
    def bent(given):"""
    + TORCH_PUSHED
    + """
        _, pull_back = torch.func.vjp(pushed, *[given[name] for name in LEAVES])
        return pull_back(tuple(given[weight] for weight in WEIGHTS.values()))

    compiled = {compiled}

    def run(*inputs):
        given = {{**dict(zip(INPUTS, inputs)), **parameters}}
        found = compiled({{name: torch.from_numpy(array) for name, array in given.items()}})
        return [output.numpy(force=True) for output in found]

    return run
"""
)

_TENSORFLOW = """
def load(parameters):
{decorator}    def bent(given):
        leaves, along = [given[name] for name in LEAVES], [given[name] for name in LEAVES.values()]
        with tf.GradientTape() as tape:
            tape.watch(leaves)
            with tf.autodiff.ForwardAccumulator(leaves, along) as accumulator:
                values = given
                outputs = model(*{values})
                found = [
                    accumulator.jvp(outputs[i], unconnected_gradients=tf.UnconnectedGradients.ZERO) for i in WEIGHTS
                ]
            tangents = [tf.convert_to_tensor(tangent) for tangent in found]  # from IndexedSlices, too
        found = tape.gradient(
            tangents,
            leaves,
            output_gradients=[given[weight] for weight in WEIGHTS.values()],
            unconnected_gradients=tf.UnconnectedGradients.ZERO,
        )
        return [tf.convert_to_tensor(bent) for bent in found]

    def run(*inputs):
        given = {{**dict(zip(INPUTS, inputs)), **parameters}}
        found = bent({{name: tf.constant(array) for name, array in given.items()}})
        return [bent.numpy() for bent in found]

    return run
"""

_JAX = (
    """
def load(parameters):
    def bent(given):"""
    + JAX_PUSHED
    + """
        _, pull_back = jax.vjp(pushed, *[given[name] for name in LEAVES])
        return pull_back([given[weight] for weight in WEIGHTS.values()])

    compiled = {compiled}

    def run(*inputs):
        given = {{**dict(zip(INPUTS, inputs)), **parameters}}
        with jax.default_device(jax.devices("cpu")[0]):  # also where there is a GPU
            found = compiled({{name: jnp.asarray(array) for name, array in given.items()}})
            return [np.asarray(bent) for bent in found]

    return run
"""
)

TORCH_EAGER = _TORCH.format(values=VALUES, compiled="bent")
TENSORFLOW_EAGER = _TENSORFLOW.format(values=VALUES, decorator="")
JAX_EAGER = _JAX.format(values=VALUES, compiled="bent")
JAX_JIT = _JAX.format(values=VALUES, compiled="jax.jit(bent)")


def torch_compiled(backend: str) -> str:
    """The whole computation, compiled."""
    compiled = f'torch.compile(bent, backend="{backend}", fullgraph=True, dynamic=False)'
    return _TORCH.format(values=VALUES, compiled=compiled)


def tensorflow_function(options: str) -> str:
    """The whole computation as one tf.function."""
    return _TENSORFLOW.format(values=VALUES, decorator=f"    @tf.function{options}\n")
