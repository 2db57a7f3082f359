"""Functions that relax spellings may call. Read as text; a program carries the source of those that it uses."""

from tvm import relax


def logsumexp(bb, x, axes, keepdims):
    """max + log(sum(exp(x - max))), the maximum only where it is finite."""
    axes = list(axes)
    top = bb.normalize(relax.op.max(x, axis=axes, keepdims=True))
    top = bb.emit(relax.op.where(relax.op.isfinite(top), top, relax.op.zeros_like(top)))
    total = relax.op.sum(relax.op.exp(relax.op.subtract(x, top)), axis=axes, keepdims=True)
    result = relax.op.add(relax.op.log(total), top)
    return result if keepdims else relax.op.squeeze(result, axis=axes)


def conv2d(x, weight, bias, stride, padding, dilation, groups):
    y = relax.op.nn.conv2d(x, weight, stride, padding, dilation, groups)
    return relax.op.add(y, relax.op.reshape(bias, (1, -1, 1, 1)))


def flip(x, axes):
    """relax.op.flip takes one axis."""
    for axis in axes:
        x = relax.op.flip(x, axis)
    return x


def roll(x, place, axis):
    """The elements from `place` on come first."""
    rest = relax.op.strided_slice(x, [axis], [place], [int(x.ty.shape[axis])])
    return relax.op.concat([rest, relax.op.strided_slice(x, [axis], [0], [place])], axis=axis)


def normalize(x, axes, epsilon, dtype):
    """Zero mean, unit variance."""
    centered = relax.op.subtract(x, relax.op.mean(x, axes, keepdims=True))
    variance = relax.op.variance(x, axes, keepdims=True)
    return relax.op.multiply(centered, relax.op.rsqrt(relax.op.add(variance, relax.const(epsilon, dtype))))


def layer_norm(x, scale, bias, axes, epsilon, dtype):
    return relax.op.add(relax.op.multiply(normalize(x, axes, epsilon, dtype), scale), bias)


def group_norm(bb, x, scale, bias, groups, epsilon, shape, dtype):
    n, channels, *spatial = shape
    split = bb.emit(relax.op.reshape(x, (n, groups, channels // groups, *spatial)))
    y = bb.emit(normalize(split, list(range(2, len(shape) + 1)), epsilon, dtype))
    y = relax.op.reshape(y, shape)
    each = (1, channels, *[1] * len(spatial))
    return relax.op.add(relax.op.multiply(y, relax.op.reshape(scale, each)), relax.op.reshape(bias, each))


def index_add(x, axis, indices, update):
    """Rows added along an axis: every element of a row goes by the row's index."""
    shape = [int(n) for n in update.ty.shape]
    others = [a for a in range(len(shape)) if a != axis % len(shape)]
    places = relax.op.broadcast_to(relax.op.expand_dims(indices, others) if others else indices, shape)
    return relax.op.scatter_elements(x, places, update, axis=axis, reduction="add")
