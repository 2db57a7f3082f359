"""The names that `functions/shared` calls, for jax. Read as text; a program carries the source of what it uses."""

import jax
import jax.numpy as jnp


class Space:
    """One set of names for all dialects; see `shared_helpers.py`."""

    exp, log, sqrt, tanh, sigmoid = jnp.exp, jnp.log, jnp.sqrt, jnp.tanh, jax.nn.sigmoid
    abs, where, equal, concat, stack, matmul = jnp.abs, jnp.where, jnp.equal, jnp.concatenate, jnp.stack, jnp.matmul
    reshape, transpose, maximum, minimum = jnp.reshape, jnp.transpose, jnp.maximum, jnp.minimum
    softmax, log_softmax = jax.nn.softmax, jax.nn.log_softmax

    @staticmethod
    def sum(x, axes, keepdims=False):
        return jnp.sum(x, axis=axes, keepdims=keepdims)

    @staticmethod
    def mean(x, axes, keepdims=False):
        return jnp.mean(x, axis=axes, keepdims=keepdims)

    @staticmethod
    def max(x, axes, keepdims=False):
        return jnp.max(x, axis=axes, keepdims=keepdims)

    @staticmethod
    def take(x, places, axis):
        return jnp.take(x, jnp.asarray(places), axis=axis)

    @staticmethod
    def constant(values, like):
        return jnp.asarray(values, like.dtype)

    @staticmethod
    def cast(x, like):
        return x.astype(like.dtype)
