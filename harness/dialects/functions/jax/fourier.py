"""Pairs as complex numbers, for jax spellings. Read as text, as basic.py is."""

import jax
import jax.numpy as jnp


def complex_of(x):
    return jax.lax.complex(x[..., 0], x[..., 1])


def pairs_of(y):
    return jnp.stack([y.real, y.imag], axis=-1)


def short_time(x, window, step, onesided):
    """Of pieces that begin a step apart, each by the window."""
    n = window.shape[0]
    first = jnp.arange((x.shape[1] - n) // step + 1) * step
    pieces = x[:, first[:, None] + jnp.arange(n)] * window
    return pairs_of((jnp.fft.rfft if onesided else jnp.fft.fft)(pieces))
