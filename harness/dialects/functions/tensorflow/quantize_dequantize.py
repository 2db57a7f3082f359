"""Quantisation that tensorflow spellings may call. Read as text, like basic.py."""

import numpy as np
import tensorflow as tf


def quantize_dequantize(x, scale, zero_point, low, high):
    """As ONNX defines it; TensorFlow's own takes ends of an interval, and moves them."""
    scale = tf.constant(scale, x.dtype)
    levels = tf.clip_by_value(tf.round(x / scale) + zero_point, low, high)
    return (levels - zero_point) * scale


def quantize_channels(x, scales, zero_point, axis, low, high):
    """A scale for each place on the axis."""
    shape = [-1 if i == axis % len(x.shape) else 1 for i in range(len(x.shape))]
    return quantize_dequantize(x, np.reshape(scales, shape), zero_point, low, high)
