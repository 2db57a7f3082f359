"""Functions that tensorflow spellings may call. Read as text; a program carries the source of those it uses."""

import numpy as np
import tensorflow as tf


def argmax(x, axis, keepdims, dtype=tf.int64):
    """tf.argmax that can keep the axis."""
    place = tf.argmax(x, axis=axis, output_type=dtype)
    return tf.expand_dims(place, axis) if keepdims else place


def argmin(x, axis, keepdims, dtype=tf.int64):
    """tf.argmin that can keep the axis."""
    place = tf.argmin(x, axis=axis, output_type=dtype)
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


def conv_same(x, weight, bias=None, *, stride, dilation):
    """N, C, spatial... by (O, C / groups, kernel...), padded by TensorFlow's own rule."""
    n = x.shape.rank - 2
    spatial = range(2, n + 2)
    filters = tf.transpose(weight, [*spatial, 1, 0])
    x = tf.transpose(x, [0, *spatial, 1])
    y = tf.nn.convolution(x, filters, strides=list(stride), padding="SAME", dilations=list(dilation))
    y = y if bias is None else tf.nn.bias_add(y, bias)
    return tf.transpose(y, [0, n + 1, *range(1, n + 1)])


def pool_same(x, kernel, stride, kind):
    """Over the spatial dimensions of (N, C, spatial...), padded by TensorFlow's own rule; paddings do not count."""
    n = len(kernel)
    pool = {"MAX": (tf.nn.max_pool1d, tf.nn.max_pool2d), "AVG": (tf.nn.avg_pool1d, tf.nn.avg_pool2d)}[kind][n - 1]
    y = pool(tf.transpose(x, [0, *range(2, n + 2), 1]), list(kernel), list(stride), "SAME")
    return tf.transpose(y, [0, n + 1, *range(1, n + 1)])


def conv_transpose(x, weight, stride, dilation, padding, output_padding, groups):
    """N, C, spatial... by (C, O / groups, kernel...), one group at a time. What padding cuts off is sliced off: on a
    CPU, TensorFlow transposes dilated convolutions without explicit padding only."""
    out, *kernel = weight.shape[1:]
    n = len(kernel)
    size = [
        (n - 1) * s + d * (k - 1) + 1 + extra
        for n, s, k, d, extra in zip(x.shape[2:], stride, kernel, dilation, output_padding)
    ]
    last, spatial = n + 1, range(2, n + 2)
    parts = [
        tf.nn.conv_transpose(
            part,
            filters,
            output_shape=[x.shape[0], *size, out],
            strides=list(stride),
            padding="VALID",
            dilations=list(dilation),
        )
        for part, filters in zip(
            tf.split(tf.transpose(x, [0, *spatial, 1]), groups, axis=last),
            tf.split(tf.transpose(weight, [*spatial, 1, 0]), groups, axis=last),
        )
    ]
    y = tf.transpose(tf.concat(parts, axis=last), [0, last, *range(1, last)])
    return y[(..., *(slice(p, total - p) for p, total in zip(padding, size)))]


def tril(x, k):
    """Zero above diagonal k. tf.linalg.band_part keeps the main diagonal, so it cannot say k < 0."""
    rows, columns = tf.range(x.shape[-2])[:, tf.newaxis], tf.range(x.shape[-1])
    return tf.where(columns - rows <= k, x, tf.zeros_like(x))


def triu(x, k):
    """Zero below diagonal k."""
    rows, columns = tf.range(x.shape[-2])[:, tf.newaxis], tf.range(x.shape[-1])
    return tf.where(columns - rows >= k, x, tf.zeros_like(x))


def max_pool(x, kernel, stride, padding, dilation):
    """Over the spatial dimensions of (N, C, spatial...). Padding counts as the least number."""
    n = len(kernel)
    x = tf.transpose(x, [0, *range(2, n + 2), 1])
    least = float("-inf") if x.dtype.is_floating else x.dtype.min
    x = tf.pad(x, [[0, 0], *[[p, p] for p in padding], [0, 0]], constant_values=least)
    if all(d == 1 for d in dilation):
        pool = (tf.nn.max_pool1d, tf.nn.max_pool2d, tf.nn.max_pool3d)[n - 1]
        y = pool(x, list(kernel), list(stride), "VALID")
    else:  # tf.nn.pool takes no strides together with dilations
        y = tf.nn.pool(x, kernel, "MAX", padding="VALID", dilations=dilation)
        y = y[(slice(None), *(slice(None, None, s) for s in stride))]
    return tf.transpose(y, [0, n + 1, *range(1, n + 1)])


def avg_pool(x, kernel, stride, padding, count_include_pad):
    """Over the spatial dimensions of (N, C, spatial...). Padding counts as zeros, or not at all."""
    n = len(kernel)

    def average(array):
        array = tf.pad(array, [[0, 0], *[[p, p] for p in padding], [0, 0]])
        return tf.nn.avg_pool(array, list(kernel), list(stride), "VALID")

    x = tf.transpose(x, [0, *range(2, n + 2), 1])
    y = average(x)
    if any(padding) and not count_include_pad:
        y = y / average(tf.ones_like(x))
    return tf.transpose(y, [0, n + 1, *range(1, n + 1)])


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


def signbit(x):
    """The first bit; tf.experimental.numpy.signbit compares with 0."""
    return tf.bitcast(x, {2: tf.int16, 4: tf.int32, 8: tf.int64}[x.dtype.size]) < 0


def nan_to_num(x, nan, posinf, neginf):
    y = tf.where(tf.math.is_nan(x), tf.constant(nan, x.dtype), x)
    y = tf.where(x == float("inf"), tf.constant(posinf, x.dtype), y)
    return tf.where(x == -float("inf"), tf.constant(neginf, x.dtype), y)


def logit(x, eps):
    z = x if eps is None else tf.clip_by_value(x, eps, 1 - eps)
    return tf.math.log(z / (1 - z))


def glu(x, axis):
    first, second = tf.split(x, 2, axis=axis)
    return first * tf.sigmoid(second)


def copysign(x, y):
    return tf.where(signbit(y), -tf.abs(x), tf.abs(x))


def ignoring_nan(f, x, y):
    """f (maximum or minimum) of the operands that are numbers."""
    return tf.where(tf.math.is_nan(x), y, tf.where(tf.math.is_nan(y), x, f(x, y)))


def isclose(x, y, rtol, atol):
    """tf.experimental.numpy.isclose finds infinities close to nothing and to everything."""
    near = tf.experimental.numpy.isclose(x, y, rtol=rtol, atol=atol)
    return (x == y) | near & tf.math.is_finite(y)


def running(f, x, axis):
    """Of every element and all before it, in log2(size) steps: step 2^k joins neighbours 2^k apart."""
    shift, size = 1, x.shape[axis]
    while shift < size:
        first, later = tf.split(x, [shift, size - shift], axis=axis)
        earlier, _ = tf.split(x, [size - shift, shift], axis=axis)
        x = tf.concat([first, f(later, earlier)], axis=axis)
        shift *= 2
    return x


def huber(x, y, delta):
    """d^2 / 2 below delta, delta (d - delta / 2) above, d = |x - y|."""
    d = tf.abs(x - y)
    return tf.where(d < delta, 0.5 * d * d, delta * (d - delta / 2))


def classes_last(x):
    return tf.transpose(x, [0, *range(2, len(x.shape)), 1])


def at_classes(x, classes):
    """The element of each class along axis 1."""
    return tf.gather(classes_last(x), classes, batch_dims=len(classes.shape))


def cross_entropy(x, classes):
    return tf.nn.sparse_softmax_cross_entropy_with_logits(labels=classes, logits=classes_last(x))


def kron(x, y):
    """Every element of x by all of y, as blocks."""
    blocks = x[:, tf.newaxis, :, tf.newaxis] * y[tf.newaxis, :, tf.newaxis, :]
    return tf.reshape(blocks, [x.shape[0] * y.shape[0], x.shape[1] * y.shape[1]])


def topk(x, k, axis, largest):
    """The greatest or least k elements in order, along any axis; tf.math.top_k knows the greatest of the last."""
    if not largest:
        return tf.gather(tf.sort(x, axis=axis), tf.range(k), axis=axis)
    order = list(range(x.shape.rank))
    order[axis], order[-1] = order[-1], order[axis]
    return tf.transpose(tf.math.top_k(tf.transpose(x, order), k).values, order)


def topk_indices(x, k, axis, largest):
    """Where the greatest or least k elements stand."""
    if not largest:
        return tf.cast(tf.gather(tf.argsort(x, axis=axis), tf.range(k), axis=axis), tf.int64)
    order = list(range(x.shape.rank))
    order[axis], order[-1] = order[-1], order[axis]
    return tf.cast(tf.transpose(tf.math.top_k(tf.transpose(x, order), k).indices, order), tf.int64)


def bucketize(x, boundaries, right):
    """tf.searchsorted takes a row of values."""
    row = tf.reshape(x, [-1])
    places = tf.searchsorted(
        tf.constant(boundaries, x.dtype), row, side="right" if right else "left", out_type=tf.int64
    )
    return tf.reshape(places, x.shape)


def conv3d(x, weight, stride, padding, groups):
    """NCDHW by OIDHW, one group at a time. TensorFlow convolves NDHWC by DHWIO on a CPU."""
    x = tf.pad(tf.transpose(x, [0, 2, 3, 4, 1]), [[0, 0], *zip(padding[:3], padding[3:]), [0, 0]])
    parts = [
        tf.nn.conv3d(part, filters, [1, *stride, 1], "VALID")
        for part, filters in zip(
            tf.split(x, groups, axis=4), tf.split(tf.transpose(weight, [2, 3, 4, 1, 0]), groups, axis=4)
        )
    ]
    return tf.transpose(tf.concat(parts, axis=4), [0, 4, 1, 2, 3])


def block_diag(x, y):
    """Two matrices with zeros beside them."""
    above = tf.concat([x, tf.zeros([x.shape[0], y.shape[1]], x.dtype)], axis=1)
    below = tf.concat([tf.zeros([y.shape[0], x.shape[1]], x.dtype), y], axis=1)
    return tf.concat([above, below], axis=0)


def adaptive_pool(reduce, x, *cells):
    """Every cell reduced by itself."""
    counts, axes, parts = [len(along) for along in cells], tuple(range(2, len(x.shape))), []
    for place in np.ndindex(*counts):
        box = (slice(*along[number]) for along, number in zip(cells, place))
        parts.append(reduce(x[(..., *box)], axis=axes))
    return tf.reshape(tf.stack(parts, axis=-1), tf.concat([tf.shape(x)[:2], counts], 0))


def upsample_nearest(x, factor):
    """NCHW; TensorFlow resizes NHWC."""
    height, width = x.shape[2] * factor, x.shape[3] * factor
    y = tf.image.resize(tf.transpose(x, [0, 2, 3, 1]), [height, width], method="nearest")
    return tf.transpose(y, [0, 3, 1, 2])


def attention(q, k, v, scale, causal=False, mask=None, bias=None):
    """Over (batch, heads, length, features), by way of Keras, which has the length before the heads and as many
    heads of keys and values as of queries."""
    groups = q.shape[1] // k.shape[1]
    q, k, v = (tf.transpose(x, [0, 2, 1, 3]) for x in (q, tf.repeat(k, groups, axis=1), tf.repeat(v, groups, axis=1)))
    mask, bias = (x if x is None or x.shape.rank == 4 else x[tf.newaxis, tf.newaxis] for x in (mask, bias))
    y = tf.keras.ops.dot_product_attention(q, k, v, bias=bias, mask=mask, scale=scale, is_causal=causal)
    return tf.transpose(y, [0, 2, 1, 3])


def fused_batch_norm(x, scale, bias, epsilon):
    """NCHW with the statistics of the batch; on a CPU, TensorFlow normalises NHWC."""
    y, *_ = tf.compat.v1.nn.fused_batch_norm(tf.transpose(x, [0, 2, 3, 1]), scale, bias, epsilon=epsilon)
    return tf.transpose(y, [0, 3, 1, 2])


def local_response_norm_native(x, size, alpha, beta, k):
    """NCHW; TensorFlow normalises NHWC, and takes alpha for the sum instead of the mean."""
    y = tf.nn.local_response_normalization(tf.transpose(x, [0, 2, 3, 1]), size // 2, k, alpha / size, beta)
    return tf.transpose(y, [0, 3, 1, 2])


def depthwise_conv2d(x, weight, stride, padding):
    """NCHW by (C M, 1, kernel); TensorFlow convolves NHWC by (kernel, C, M)."""
    channels, (high, wide) = x.shape[1], weight.shape[2:]
    filters = tf.transpose(tf.reshape(weight, [channels, -1, high, wide]), [2, 3, 0, 1])
    pads = [[0, 0], *[[p, p] for p in padding], [0, 0]]
    y = tf.nn.depthwise_conv2d(tf.transpose(x, [0, 2, 3, 1]), filters, [1, *stride, 1], pads)
    return tf.transpose(y, [0, 3, 1, 2])


def while_sum(x, start, limit, step, comparison):
    """x added up while start, start + step, ... compare so with the limit."""

    def more(counter, total):
        return getattr(tf.math, comparison)(counter, limit)

    def once(counter, total):
        return counter + step, total + x

    return tf.while_loop(more, once, (tf.constant(start), tf.zeros_like(x)))[1]
