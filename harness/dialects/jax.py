"""JAX, with 64-bit types."""

from __future__ import annotations

from generators.graph import EVERY
from harness.dialects.dialect import Dialect, functions

JAX = Dialect(
    "jax",
    'import numpy as np\nimport jax\nimport jax.numpy as jnp\n\njax.config.update("jax_enable_x64", True)',
    {n: f"jnp.{n}_" if n == "bool" else f"jnp.{n}" for n in EVERY},
    functions("jax"),
)

DIALECTS = (JAX,)
