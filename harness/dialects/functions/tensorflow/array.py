"""Functions of arrays that tensorflow spellings may call. Read as text, like basic.py."""

import tensorflow as tf


def corrcoef(x):
    """Of the rows."""
    d = x - tf.reduce_mean(x, axis=1, keepdims=True)
    products = tf.matmul(d, d, transpose_b=True)
    size = tf.sqrt(tf.linalg.diag_part(products))
    return products / size[:, None] / size[None, :]


def nanmedian(x, axis):
    """The lower one of two in the middle."""
    missing = tf.math.is_nan(x)
    rising = tf.sort(tf.where(missing, tf.constant(float("inf"), x.dtype), x), axis)
    count = tf.reduce_sum(tf.cast(tf.logical_not(missing), tf.int32), axis, keepdims=True)
    places = tf.range(x.shape[axis])
    places = tf.reshape(places, [-1 if i == axis % len(x.shape) else 1 for i in range(len(x.shape))])
    chosen = tf.where(tf.equal(places, tf.maximum((count - 1) // 2, 0)), rising, tf.constant(float("-inf"), x.dtype))
    found = tf.reduce_max(chosen, axis)
    return tf.where(tf.squeeze(tf.equal(count, 0), axis), tf.constant(float("nan"), x.dtype), found)


def histogram(x, bins):
    """tf.histogram_fixed_width counts what is outside at the ends."""
    places = tf.floor((x + 2) * tf.cast(bins / 4, x.dtype))
    places = tf.where(tf.equal(x, 2), tf.cast(bins - 1, x.dtype), places)
    same = tf.equal(places[:, None], tf.cast(tf.range(bins), x.dtype)[None, :])
    return tf.reduce_sum(tf.cast(same, tf.int64), 0)


def write_cache(cache, update, first, axis, circular):
    """Rows along an axis, each part of the batch from a place of its own on: which row comes to each place."""
    axis %= len(cache.shape)
    size, count = cache.shape[axis], update.shape[axis]
    row = tf.range(size)[None, :] - tf.cast(first, tf.int32)[:, None]
    row = tf.math.floormod(row, size) if circular else row
    written = tf.logical_and(row >= 0, row < count)
    rows = tf.gather(update, tf.clip_by_value(row, 0, count - 1), axis=axis, batch_dims=1)
    shape = [dim if i in (0, axis) else 1 for i, dim in enumerate(cache.shape)]
    return tf.where(tf.reshape(written, shape), rows, cache)


def kept(x, mask, make):
    """What is made of the rows that the mask keeps, at their places."""
    return tf.scatter_nd(tf.where(mask), make(tf.boolean_mask(x, mask)), tf.constant([*x.shape], tf.int64))
