"""What JAX has no one function for: elements that an order picks. Read as text."""

import jax.numpy as jnp


def lower_median(x, axis, keepdims):
    """The lower one of two in the middle; NaN where there is one."""
    found = jnp.take(jnp.sort(x, axis=axis), jnp.array([(x.shape[axis] - 1) // 2]), axis=axis)
    if jnp.issubdtype(x.dtype, jnp.floating):
        found = jnp.where(jnp.any(jnp.isnan(x), axis=axis, keepdims=True), jnp.nan, found)
    return found if keepdims else jnp.squeeze(found, axis)
