"""JAX: operation by operation, and the whole function through jit (XLA)."""

from __future__ import annotations

from harness.backends.target import Level, Target
from harness.dialects import JAX

REFUSES: dict[tuple[str, str], str] = {}
"""(operator, dtype) that the dialect can say and JAX has no kernel for."""

_MODULES = ("jax", "jax.numpy")
_PACKAGES = {"jax": "0.5"}

_LOAD = """
def load(parameters):
    with jax.default_device(jax.devices("cpu")[0]):  # also where there is a GPU
        bound = [jnp.asarray(parameters[name]) for name in PARAMETERS]

    def apply(*inputs):
        return model(*inputs, *bound)

    compiled = {compiled}

    def run(*inputs):
        with jax.default_device(jax.devices("cpu")[0]):
            return [np.asarray(output) for output in compiled(*[jnp.asarray(x) for x in inputs])]

    return run
"""

TARGETS = (
    Target(
        "jax-eager",
        "jax",
        _MODULES,
        JAX,
        _LOAD.format(compiled="apply"),
        _PACKAGES,
        Level("jax", 0),
        refuses=REFUSES,
        stride=4,
    ),
    Target(
        "jax-jit",
        "jax",
        _MODULES,
        JAX,
        _LOAD.format(compiled="jax.jit(apply)"),
        _PACKAGES,
        Level("jax", 1),
        refuses=REFUSES,
        stride=2,
    ),
)
