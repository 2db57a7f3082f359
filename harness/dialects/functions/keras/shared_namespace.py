"""The names that `functions/shared` calls, for Keras. Read as text; a program carries the source of what it uses."""

import keras
import numpy as np


class Space:
    """One set of names for all dialects; see `shared_helpers.py`."""

    exp, log, sqrt, tanh, sigmoid = keras.ops.exp, keras.ops.log, keras.ops.sqrt, keras.ops.tanh, keras.ops.sigmoid
    abs, where, equal, matmul = keras.ops.abs, keras.ops.where, keras.ops.equal, keras.ops.matmul
    concat, stack, transpose = keras.ops.concatenate, keras.ops.stack, keras.ops.transpose
    reshape, maximum, minimum = keras.ops.reshape, keras.ops.maximum, keras.ops.minimum
    softmax, log_softmax = keras.ops.softmax, keras.ops.log_softmax
    sum, mean, max = keras.ops.sum, keras.ops.mean, keras.ops.max

    @staticmethod
    def take(x, places, axis):
        return keras.ops.take(x, np.array(places) if isinstance(places, list) else places, axis=axis)

    @staticmethod
    def constant(values, like):
        return keras.ops.convert_to_tensor(values, like.dtype)

    @staticmethod
    def cast(x, like):
        return keras.ops.cast(x, like.dtype)
