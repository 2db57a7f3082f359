"""Quantisation that jax spellings may call. Read as text, like basic.py."""

import jax.numpy as jnp


def quantize_dequantize(x, scale, zero_point, low, high):
    """As ONNX defines it."""
    scale = jnp.asarray(scale, x.dtype)
    levels = jnp.clip(jnp.round(x / scale) + zero_point, low, high)
    return (levels - zero_point) * scale


def quantize_channels(x, scales, zero_point, axis, low, high):
    """A scale for each place on the axis."""
    shape = [-1 if i == axis % x.ndim else 1 for i in range(x.ndim)]
    return quantize_dequantize(x, jnp.reshape(jnp.asarray(scales, x.dtype), shape), zero_point, low, high)
