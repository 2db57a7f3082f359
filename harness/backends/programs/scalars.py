"""Programs that are called with other numbers each time. `load(parameters)` returns a function that calls the model
with all numbers of CALLS, which it takes behind inputs and parameters, and returns the outputs of all calls."""

from __future__ import annotations

_TORCH = """
def load(parameters):
    bound = [torch.from_numpy(parameters[name]) for name in PARAMETERS]
    compiled = {compiled}

    def run(*inputs):
        tensors = [torch.from_numpy(x) for x in inputs]
        with torch.no_grad():
            outputs = [output for numbers in CALLS for output in compiled(*tensors, *bound, *numbers)]
        return [output.numpy() for output in outputs]

    return run
"""

_JAX = """
def load(parameters):
    with jax.default_device(jax.devices("cpu")[0]):  # also where there is a GPU
        bound = [jnp.asarray(parameters[name]) for name in PARAMETERS]

    compiled = {compiled}

    def run(*inputs):
        with jax.default_device(jax.devices("cpu")[0]):
            arrays = [jnp.asarray(x) for x in inputs]
            return [np.asarray(output) for numbers in CALLS for output in compiled(*arrays, *bound, *numbers)]

    return run
"""

TORCH_EAGER = _TORCH.format(compiled="model")
JAX_EAGER = _JAX.format(compiled="model")
JAX_JIT = _JAX.format(compiled="jax.jit(model)")


def torch_compiled(backend: str) -> str:
    """The model, compiled. Which numbers change the compiler finds out by itself, which is its default."""
    return _TORCH.format(compiled=f'torch.compile(model, backend="{backend}", fullgraph=True)')
