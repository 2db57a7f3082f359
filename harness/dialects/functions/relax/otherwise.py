"""Functions that Relax' further spellings call: layouts with channels last, shapes and bounds that are computed."""

from tvm import relax


def places_of(rank):
    """The letters of the axes of an image."""
    return "DHW"[5 - rank :]


def channels_last(x, rank):
    return relax.op.permute_dims(x, [0, *range(2, rank), 1])


def channels_first(x, rank):
    return relax.op.permute_dims(x, [0, rank - 1, *range(1, rank - 1)])


def conv_last(x, weight, rank, kernel, stride, padding, dilation, groups):
    """A convolution of images whose channels come last, with a kernel of this layout."""
    places = places_of(rank)
    turned = relax.op.permute_dims(weight, [("OI" + places).index(letter) for letter in kernel])
    convolve = getattr(relax.op.nn, f"conv{rank - 2}d")
    y = convolve(channels_last(x, rank), turned, stride, padding, dilation, groups, f"N{places}C", kernel)
    return channels_first(y, rank)


def conv_turned(x, weight, rank, stride, padding, dilation, groups):
    """A convolution whose kernel has its inputs first."""
    places = places_of(rank)
    turned = relax.op.permute_dims(weight, [1, 0, *range(2, rank)])
    convolve = getattr(relax.op.nn, f"conv{rank - 2}d")
    return convolve(x, turned, stride, padding, dilation, groups, f"NC{places}", f"IO{places}")


def biased(y, bias, rank):
    """A number for each channel is added."""
    return relax.op.add(y, relax.op.reshape(bias, (1, -1, *[1] * (rank - 2))))


def pooled_last(name, x, rank, *arguments, **others):
    """Windows of images whose channels come last."""
    pool = getattr(relax.op.nn, name)
    return channels_first(pool(channels_last(x, rank), *arguments, layout=f"N{places_of(rank)}C", **others), rank)


def batch_norm_last(x, scale, bias, mean, variance, rank, epsilon, axis):
    """Channels last."""
    turned = channels_last(x, rank)
    y = relax.op.nn.batch_norm(turned, scale, bias, mean, variance, axis=axis, epsilon=epsilon, training=False)[0]
    return channels_first(y, rank)


def scaled_after(y, scale, bias, shape):
    """A scale and a bias for each channel, in this shape."""
    scale, bias = (relax.op.reshape(one, shape) for one in (scale, bias))
    return relax.op.add(relax.op.multiply(y, scale), bias)


def computed_reshape(bb, x, shape, dtype):
    """To a shape that is a tensor first."""
    sizes = bb.emit(relax.op.tensor_to_shape(relax.const(list(shape), "int64")))
    return bb.match_cast(bb.emit(relax.op.reshape(x, sizes)), relax.TensorType(shape, dtype))


def dynamic_slice(bb, x, starts, stops, steps, shape, dtype):
    """Between bounds that are tensors."""
    bounds = [relax.const(numbers, "int64") for numbers in (starts, stops, steps)]
    return bb.match_cast(bb.emit(relax.op.dynamic_strided_slice(x, *bounds)), relax.TensorType(shape, dtype))


def index_columns(bb, x, indices, shape):
    """Places whose coordinates stand in the last axis, as a tensor for each."""
    axis = len(shape) - 1
    parts = [relax.op.take(indices, relax.const(column, "int64"), axis=axis) for column in range(shape[-1])]
    return relax.op.index_tensor(x, [bb.emit(part) for part in parts])


def attention_of(bb, q, k, v, scale, causal):
    """attention, with the mask of this name."""
    groups = int(q.ty.shape[1]) // int(k.ty.shape[1])
    k, v = (x if groups == 1 else relax.op.repeat(x, groups, axis=1) for x in (k, v))
    q, k, v = (bb.emit(relax.op.permute_dims(x, [0, 2, 1, 3])) for x in (q, k, v))
    return relax.op.permute_dims(relax.op.nn.attention(q, k, v, None, scale, causal), [0, 2, 1, 3])
