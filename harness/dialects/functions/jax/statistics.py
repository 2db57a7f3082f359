"""Functions of samples that jax spellings may call. Read as text, as basic.py is."""

import jax.numpy as jnp


def cdist(x, y, p):
    return jnp.linalg.norm(x[..., :, None, :] - y[..., None, :, :], ord=p, axis=-1)
