"""Functions that tensorflow spellings may call. Read as text; a program carries the source of those it uses."""

import tensorflow as tf


def argmax(x, axis, keepdims):
    """tf.argmax that can keep the axis."""
    place = tf.argmax(x, axis=axis, output_type=tf.int64)
    return tf.expand_dims(place, axis) if keepdims else place


def argmin(x, axis, keepdims):
    """tf.argmin that can keep the axis."""
    place = tf.argmin(x, axis=axis, output_type=tf.int64)
    return tf.expand_dims(place, axis) if keepdims else place


def conv1d(x, weight, stride, padding, dilation, groups):
    """NCW by OIW. TensorFlow convolves NWC by WIO on a CPU; the number of groups follows from the shapes."""
    x = tf.pad(tf.transpose(x, [0, 2, 1]), [[0, 0], [padding[0], padding[1]], [0, 0]])
    y = tf.nn.conv1d(x, tf.transpose(weight, [2, 1, 0]), stride[0], "VALID", dilations=dilation[0])
    return tf.transpose(y, [0, 2, 1])


def conv2d(x, weight, bias, stride, padding, dilation, groups):
    """NCHW by OIHW. TensorFlow convolves NHWC by HWIO on a CPU; the number of groups follows from the shapes."""
    top, left, bottom, right = padding
    y = tf.nn.conv2d(
        tf.transpose(x, [0, 2, 3, 1]),
        tf.transpose(weight, [2, 3, 1, 0]),
        strides=list(stride),
        padding=[[0, 0], [top, bottom], [left, right], [0, 0]],
        dilations=list(dilation),
    )
    return tf.transpose(tf.nn.bias_add(y, bias), [0, 3, 1, 2])


def conv_transpose2d(x, weight, stride, dilation, padding, output_padding, groups):
    """NCHW by (C, O / groups, height, width), one group at a time. What padding cuts off is sliced off: on a
    CPU, TensorFlow transposes dilated convolutions without explicit padding only."""
    out, *kernel = weight.shape[1:]
    size = [
        (n - 1) * s + d * (k - 1) + 1 + extra
        for n, s, k, d, extra in zip(x.shape[2:], stride, kernel, dilation, output_padding)
    ]
    parts = [
        tf.nn.conv2d_transpose(
            part,
            filters,
            output_shape=[x.shape[0], *size, out],
            strides=list(stride),
            padding="VALID",
            dilations=list(dilation),
        )
        for part, filters in zip(
            tf.split(tf.transpose(x, [0, 2, 3, 1]), groups, axis=3),
            tf.split(tf.transpose(weight, [2, 3, 1, 0]), groups, axis=3),
        )
    ]
    y = tf.transpose(tf.concat(parts, axis=3), [0, 3, 1, 2])
    return y[:, :, padding[0] : size[0] - padding[0], padding[1] : size[1] - padding[1]]


def tril(x, k):
    """Zero above diagonal k. tf.linalg.band_part keeps the main diagonal, so it cannot say k < 0."""
    rows, columns = tf.range(x.shape[-2])[:, tf.newaxis], tf.range(x.shape[-1])
    return tf.where(columns - rows <= k, x, tf.zeros_like(x))


def triu(x, k):
    """Zero below diagonal k."""
    rows, columns = tf.range(x.shape[-2])[:, tf.newaxis], tf.range(x.shape[-1])
    return tf.where(columns - rows >= k, x, tf.zeros_like(x))


def max_pool(x, kernel, stride, padding, dilation):
    """Over the spatial dimensions of (N, C, spatial...). Padding counts as minus infinity."""
    n = len(kernel)
    x = tf.transpose(x, [0, *range(2, n + 2), 1])
    x = tf.pad(x, [[0, 0], *[[p, p] for p in padding], [0, 0]], constant_values=float("-inf"))
    if all(d == 1 for d in dilation):
        pool = tf.nn.max_pool1d if n == 1 else tf.nn.max_pool2d
        y = pool(x, list(kernel), list(stride), "VALID")
    else:  # tf.nn.pool takes no strides together with dilations
        y = tf.nn.pool(x, kernel, "MAX", padding="VALID", dilations=dilation)
        y = y[(slice(None), *(slice(None, None, s) for s in stride))]
    return tf.transpose(y, [0, n + 1, *range(1, n + 1)])


def avg_pool2d(x, kernel, stride, padding, count_include_pad):
    def average(array):
        array = tf.pad(array, [[0, 0], *[[p, p] for p in padding], [0, 0]])
        return tf.nn.avg_pool2d(array, kernel, stride, "VALID")

    x = tf.transpose(x, [0, 2, 3, 1])
    y = average(x)
    if any(padding) and not count_include_pad:
        y = y / average(tf.ones_like(x))
    return tf.transpose(y, [0, 3, 1, 2])


def pad_edge(x, pads):
    """tf.pad has no such mode: gather with places clipped to the axis."""
    for axis, (before, after) in enumerate(pads):
        size = x.shape[axis]
        if before or after:
            x = tf.gather(x, tf.clip_by_value(tf.range(-before, size + after), 0, size - 1), axis=axis)
    return x


def pad_wrap(x, pads):
    """tf.pad has no such mode: gather with places modulo the size."""
    for axis, (before, after) in enumerate(pads):
        size = x.shape[axis]
        if before or after:
            x = tf.gather(x, tf.range(-before, size + after) % size, axis=axis)
    return x


def normalize(x, axes, epsilon):
    """Zero mean, unit variance."""
    mean, variance = tf.nn.moments(x, axes, keepdims=True)
    return tf.nn.batch_normalization(x, mean, variance, None, None, epsilon)


def rms_norm(x, weight, epsilon):
    square = tf.reduce_mean(tf.square(x), axis=list(range(-weight.shape.rank, 0)), keepdims=True)
    return x * tf.math.rsqrt(square + epsilon) * weight


def batch_norm(x, scale, bias, mean, variance, epsilon):
    shape = [-1, *[1] * (x.shape.rank - 2)]
    scale, bias, mean, variance = (tf.reshape(p, shape) for p in (scale, bias, mean, variance))
    return tf.nn.batch_normalization(x, mean, variance, bias, scale, epsilon)


def group_norm(x, scale, bias, groups, epsilon):
    n, channels, *spatial = x.shape
    split = tf.reshape(x, [n, groups, channels // groups, *spatial])
    y = tf.reshape(normalize(split, list(range(2, split.shape.rank)), epsilon), x.shape)
    shape = [-1, *[1] * len(spatial)]
    return y * tf.reshape(scale, shape) + tf.reshape(bias, shape)


def take_along_axis(x, indices, axis):
    """tf.gather with batch dimensions, of which all come before the axis."""
    axis, last = axis % len(x.shape), len(x.shape) - 1
    batch = [a for a in range(last + 1) if a != axis]
    y = tf.gather(tf.transpose(x, [*batch, axis]), tf.transpose(indices, [*batch, axis]), batch_dims=last)
    return tf.transpose(y, [*range(axis), last, *range(axis, last)])


def slice_update(x, update, axis, places):
    """x with `update` at these places of an axis, through the first axis."""
    axis %= len(x.shape)
    front = [axis, *(a for a in range(len(x.shape)) if a != axis)]
    rows = tf.constant([[place] for place in places], tf.int64, shape=(len(places), 1))
    y = tf.tensor_scatter_nd_update(tf.transpose(x, front), rows, tf.transpose(update, front))
    return tf.transpose(y, [front.index(a) for a in range(len(front))])


def index_add(x, axis, indices, update):
    """Rows added along an axis, through the first axis."""
    axis %= len(x.shape)
    front = [axis, *(a for a in range(len(x.shape)) if a != axis)]
    rows = tf.expand_dims(indices, 1)
    y = tf.tensor_scatter_nd_add(tf.transpose(x, front), rows, tf.transpose(update, front))
    return tf.transpose(y, [front.index(a) for a in range(len(front))])


def coordinates(indices, axis):
    """The indices along one axis as full coordinates, in a new last axis."""
    grid = tf.meshgrid(*[tf.range(n, dtype=indices.dtype) for n in indices.shape], indexing="ij")
    grid[axis] = indices
    return tf.stack(grid, axis=-1)
