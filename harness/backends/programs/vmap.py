"""Programs of vectorised maps: how each framework maps the model over a new axis in front of its inputs. Each
`load(parameters)` returns a function from the inputs with that axis to the outputs with it."""

from __future__ import annotations

_TORCH = """
def load(parameters):
    bound = [torch.from_numpy(parameters[name]) for name in PARAMETERS]

    def mapped(*inputs):
        return torch.func.vmap(lambda *lane: model(*lane, *bound))(*inputs)

    compiled = {compiled}

    def run(*inputs):
        with torch.no_grad():
            outputs = compiled(*[torch.from_numpy(x) for x in inputs])
        return [output.numpy() for output in outputs]

    return run
"""

_TENSORFLOW = """
def load(parameters):
    bound = [tf.constant(parameters[name]) for name in PARAMETERS]

{decorator}    def mapped(*inputs):
        return tf.vectorized_map(lambda lane: model(*lane, *bound), inputs)

    def run(*inputs):
        return [output.numpy() for output in mapped(*[tf.constant(x) for x in inputs])]

    return run
"""

_JAX = """
def load(parameters):
    with jax.default_device(jax.devices("cpu")[0]):  # also where there is a GPU
        bound = [jnp.asarray(parameters[name]) for name in PARAMETERS]

    mapped = jax.vmap(lambda *lane: model(*lane, *bound))
    compiled = {compiled}

    def run(*inputs):
        with jax.default_device(jax.devices("cpu")[0]):
            return [np.asarray(output) for output in compiled(*[jnp.asarray(x) for x in inputs])]

    return run
"""

TORCH_EAGER = _TORCH.format(compiled="mapped")
TENSORFLOW_EAGER = _TENSORFLOW.format(decorator="")
JAX_EAGER = _JAX.format(compiled="mapped")
JAX_JIT = _JAX.format(compiled="jax.jit(mapped)")


def torch_compiled(backend: str) -> str:
    """The mapped model, compiled."""
    return _TORCH.format(compiled=f'torch.compile(mapped, backend="{backend}", fullgraph=True, dynamic=False)')


def tensorflow_function(options: str) -> str:
    """The mapped model as one tf.function."""
    return _TENSORFLOW.format(decorator=f"    @tf.function{options}\n")
