"""The names that `functions/shared` calls, for tensorflow. Read as text; a program carries what it uses."""

import tensorflow as tf


class Space:
    """One set of names for all dialects; see `shared_helpers.py`."""

    exp, log, sqrt, tanh, sigmoid = tf.exp, tf.math.log, tf.sqrt, tf.tanh, tf.sigmoid
    abs, equal, concat, stack, matmul = tf.abs, tf.equal, tf.concat, tf.stack, tf.matmul
    reshape, transpose, maximum, minimum = tf.reshape, tf.transpose, tf.maximum, tf.minimum

    @staticmethod
    def where(condition, x, y):
        """A number takes the dtype of the other operand, which a traced function does not see to."""
        dtype = (x if tf.is_tensor(x) else y).dtype
        return tf.where(condition, tf.cast(x, dtype), tf.cast(y, dtype))

    @staticmethod
    def sum(x, axes, keepdims=False):
        return tf.reduce_sum(x, axis=axes, keepdims=keepdims)

    @staticmethod
    def mean(x, axes, keepdims=False):
        return tf.reduce_mean(x, axis=axes, keepdims=keepdims)

    @staticmethod
    def max(x, axes, keepdims=False):
        return tf.reduce_max(x, axis=axes, keepdims=keepdims)

    @staticmethod
    def take(x, places, axis):
        return tf.gather(x, places, axis=axis)

    @staticmethod
    def softmax(x, axis):
        return tf.nn.softmax(x, axis=axis)

    @staticmethod
    def log_softmax(x, axis):
        return tf.nn.log_softmax(x, axis=axis)

    @staticmethod
    def constant(values, like):
        return tf.constant(values, like.dtype)

    @staticmethod
    def cast(x, like):
        return tf.cast(x, like.dtype)
