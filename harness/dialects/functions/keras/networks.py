"""Functions of networks that spellings of Keras may call. Read as text, as basic.py is."""

import keras
import numpy as np


def keras_conv_transpose(x, kernel, stride, dilation, padding, shape):
    """All that a transposed convolution gives, without a border. The kernel is (C, O, kernel...)."""
    rank = len(shape)
    turned = keras.ops.transpose(kernel, (*range(2, rank), 1, 0))
    x = keras.ops.transpose(x, (0, *range(2, rank), 1))
    y = keras.ops.conv_transpose(x, turned, stride, "valid", None, "channels_last", dilation)
    y = keras.ops.transpose(y, (0, rank - 1, *range(1, rank - 1)))
    missing = [max(0, p + size - y.shape[i + 2]) for i, (p, size) in enumerate(zip(padding, shape[2:]))]
    if any(missing):
        y = keras.ops.pad(y, [(0, 0), (0, 0), *((0, more) for more in missing)])
    return keras.ops.slice(y, (0, 0, *padding), shape)


def keras_set(layer, x, *weights):
    """The layer of what it is built for, with these weights."""
    layer.build(x.shape)
    for variable, value in zip(layer.weights, weights):
        variable.assign(value)
    return layer


def keras_group_norm(x, scale, bias, groups, epsilon):
    layer = keras.layers.GroupNormalization(groups, axis=1, epsilon=epsilon, dtype=x.dtype)
    return keras_set(layer, x, scale, bias)(x)


def keras_batch_training(x, scale, bias, epsilon):
    mean, variance = keras.ops.moments(x, [axis for axis in range(len(x.shape)) if axis != 1])
    return keras.ops.batch_normalization(x, mean, variance, 1, bias, scale, epsilon)


def keras_recurrent(layer, x, states, kernel, recurrent, bias, direction, output):
    """A recurrent layer of Keras over (batch, time, feature), of an operand whose first axis is time. What it returns
    backwards is in the order of its steps."""
    x = keras.ops.transpose(x, (1, 0, 2))
    keras_set(layer, x, kernel, recurrent, bias)
    results = layer(x, initial_state=list(states))
    if output != "all":
        return results[-1 if output == "cell" else 0]
    results = results[0]
    if direction == "reverse":
        results = keras.ops.flip(results, 1)
    return keras.ops.transpose(results, (1, 0, 2))


def keras_options(x, direction, output):
    return {
        "go_backwards": direction == "reverse",
        "return_sequences": output == "all",
        "return_state": True,
        "kernel_initializer": "zeros",
        "recurrent_initializer": "zeros",
        "dtype": x.dtype,
    }


def keras_rnn(x, h, w, r, bw, br, activation, direction, output):
    layer = keras.layers.SimpleRNN(h.shape[-1], activation=activation, **keras_options(x, direction, output))
    w, r = keras.ops.transpose(w), keras.ops.transpose(r)
    return keras_recurrent(layer, x, [h], w, r, keras.ops.add(bw, br), direction, output)


def keras_gru(x, h, w, r, bw, br, reset, direction, output):
    """Keras has the gates z, r, n."""
    units = h.shape[-1]
    order = np.concatenate([np.arange(units, 2 * units), np.arange(units), np.arange(2 * units, 3 * units)])
    options = keras_options(x, direction, output)
    layer = keras.layers.GRU(units, reset_after=reset == "after", **options)
    w, r, bw, br = (keras.ops.take(one, order, axis=0) for one in (w, r, bw, br))
    bias = keras.ops.stack([bw, br]) if reset == "after" else keras.ops.add(bw, br)
    return keras_recurrent(layer, x, [h], keras.ops.transpose(w), keras.ops.transpose(r), bias, direction, output)


def keras_lstm(x, h, c, w, r, bw, br, direction, output):
    layer = keras.layers.LSTM(h.shape[-1], **keras_options(x, direction, output))
    w, r = keras.ops.transpose(w), keras.ops.transpose(r)
    return keras_recurrent(layer, x, [h, c], w, r, keras.ops.add(bw, br), direction, output)


def keras_segments(kind, x, places, segments):
    """The lowest or greatest number of the dtype, of no rows: Keras does not say what it has there."""
    found = (keras.ops.segment_max if kind == "max" else keras.ops.segment_min)(x, places, num_segments=segments)
    dtype = keras.backend.standardize_dtype(x.dtype)
    if "int" in dtype:
        edge = np.iinfo(dtype).min if kind == "max" else np.iinfo(dtype).max
    else:
        most = 3.3895313892515355e38 if dtype == "bfloat16" else float(np.finfo(dtype).max)
        edge = -most if kind == "max" else most
    counts = keras.ops.segment_sum(keras.ops.ones_like(places, dtype="int32"), places, num_segments=segments)
    empty = keras.ops.reshape(keras.ops.equal(counts, 0), (segments,) + (1,) * (len(x.shape) - 1))
    return keras.ops.where(empty, keras.ops.full_like(found, edge), found)
