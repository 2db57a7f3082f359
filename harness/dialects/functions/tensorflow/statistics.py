"""Functions of samples that tensorflow spellings may call. Read as text, as basic.py is."""

import tensorflow as tf


def quantile(x, q, axis, method):
    """Between two elements in order."""
    place = q * (x.shape[axis] - 1)
    low = int(place)
    high = low + (place > low)
    rising = tf.sort(x, axis=axis)
    a, b = tf.gather(rising, low, axis=axis), tf.gather(rising, high, axis=axis)
    if method in ("lower", "higher") or low == high:
        return b if method == "higher" else a
    w = 0.5 if method == "midpoint" else place - low
    return a * (1 - w) + b * w


def neighbours(x, axis):
    """All elements but the last, and all but the first."""
    n = x.shape[axis]
    return tf.split(x, [n - 1, 1], axis=axis)[0], tf.split(x, [1, n - 1], axis=axis)[1]


def diff(x, n, axis):
    for _ in range(n):
        earlier, later = neighbours(x, axis)
        x = later - earlier
    return x


def trapezoid(x, dx, axis):
    earlier, later = neighbours(x, axis)
    return tf.reduce_sum((earlier + later) * (dx / 2), axis=axis)


def cov(x, correction):
    d = x - tf.reduce_mean(x, axis=1, keepdims=True)
    return tf.matmul(d, d, transpose_b=True) / (x.shape[1] - correction)


def cdist(x, y, p):
    d = tf.expand_dims(x, -2) - tf.expand_dims(y, -3)
    return tf.reduce_sum(tf.abs(d), axis=-1) if p == 1 else tf.sqrt(tf.reduce_sum(d * d, axis=-1))


def searchsorted(sequence, values, right):
    """tf.searchsorted takes a row of values."""
    row = tf.reshape(values, [-1])
    places = tf.searchsorted(tf.sort(sequence), row, side="right" if right else "left", out_type=tf.int64)
    return tf.reshape(places, values.shape)
