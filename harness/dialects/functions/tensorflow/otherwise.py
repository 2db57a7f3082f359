"""Functions that tensorflow spellings of operators said otherwise may call. Read as text; a program carries the source
of those it uses."""

import tensorflow as tf


def kept_in_list(x, pick):
    """The rows in an array of tensors, of which one is read."""
    return tf.TensorArray(x.dtype, x.shape[0]).unstack(x).read(pick)


def scanned(f, x, axis):
    """What a loop has gathered by each place of the axis."""
    axis %= x.shape.rank
    order = [axis, *(a for a in range(x.shape.rank) if a != axis)]
    back = [order.index(a) for a in range(x.shape.rank)]
    return tf.transpose(tf.scan(f, tf.transpose(x, order)), back)


def either(f, x):
    """The function in both branches of a condition."""
    return tf.cond(tf.reduce_any(x > 0), lambda: f(x), lambda: f(x))


def by_rows(f, x):
    """Row after row, in a loop."""
    rows = tf.TensorArray(x.dtype, x.shape[0])
    _, rows = tf.while_loop(
        lambda i, rows: i < x.shape[0], lambda i, rows: (i + 1, rows.write(i, f(x[i]))), (tf.constant(0), rows)
    )
    return tf.ensure_shape(rows.stack(), x.shape)


def convolved(x, weight, bias, stride, padding, dilation, f):
    """NCHW by OIHW, by another function of TensorFlow for windows of any number of dimensions."""
    top, left, bottom, right = padding
    x = tf.pad(tf.transpose(x, [0, 2, 3, 1]), [[0, 0], [top, bottom], [left, right], [0, 0]])
    y = f(x, tf.transpose(weight, [2, 3, 1, 0]), list(stride), "VALID", dilations=list(dilation))
    return tf.transpose(y + bias, [0, 3, 1, 2])
