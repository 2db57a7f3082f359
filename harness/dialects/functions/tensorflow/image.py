"""Functions of images that tensorflow spellings may call. Read as text, as basic.py is."""

import tensorflow as tf


def resized(x, f, size, **options):
    """NCHW; TensorFlow resizes NHWC."""
    return tf.transpose(f(tf.transpose(x, [0, 2, 3, 1]), list(size), **options), [0, 3, 1, 2])


def affine_grid(maps, size, align_corners):
    """The coordinates of each point and 1, times the maps."""
    rows, columns = (
        tf.linspace(tf.constant(-1, maps.dtype), 1, n) * (1 if align_corners else (n - 1) / n) for n in size
    )
    x, y = tf.meshgrid(columns, rows)
    return tf.einsum("hwk,nck->nhwc", tf.stack([x, y, tf.ones_like(x)], axis=-1), maps)
