"""Functions of arrays that relax spellings may call. Read as text, like basic.py."""

import numpy as np
from tvm import relax


def vander(bb, x, columns, increasing, dtype):
    """Products of powers."""
    powers = [bb.emit(relax.op.expand_dims(x, 1))]
    for _ in range(columns - 2):
        powers.append(bb.emit(relax.op.multiply(powers[-1], powers[0])))
    one = bb.emit(relax.op.full_like(powers[0], relax.const(1, dtype)))
    powers = [one, *powers][:columns]
    return relax.op.concat(powers if increasing else powers[::-1], axis=1)


def tensordot(x, y, axes, shape, other, result):
    """One product of matrices."""
    terms = int(np.prod(other[:axes]))
    left = relax.op.reshape(x, (int(np.prod(shape)) // terms, terms))
    right = relax.op.reshape(y, (terms, int(np.prod(other)) // terms))
    return relax.op.reshape(relax.op.matmul(left, right), result)


def corrcoef(bb, x):
    """Of the rows."""
    d = bb.emit(relax.op.subtract(x, relax.op.mean(x, 1, keepdims=True)))
    products = relax.op.matmul(d, relax.op.permute_dims(d, [1, 0]))
    size = bb.emit(relax.op.sqrt(relax.op.sum(relax.op.multiply(d, d), 1, keepdims=True)))
    return relax.op.divide(relax.op.divide(products, size), relax.op.permute_dims(size, [1, 0]))


def nanmedian(bb, x, axis, dtype):
    """The lower one of two in the middle."""
    missing = bb.emit(relax.op.isnan(x))
    rising = relax.op.sort(bb.emit(relax.op.where(missing, relax.const(np.inf, dtype), x)), axis, False)
    there = relax.op.astype(relax.op.logical_not(missing), "int64")
    count = bb.emit(relax.op.sum(there, axis, keepdims=True))
    before = relax.op.floor_divide(relax.op.subtract(count, relax.const(1, "int64")), relax.const(2, "int64"))
    place = relax.op.maximum(before, relax.const(0, "int64"))
    found = relax.op.squeeze(relax.op.gather_elements(rising, place, axis), axis)
    none = relax.op.squeeze(relax.op.equal(count, relax.const(0, "int64")), axis)
    return relax.op.where(none, relax.const(np.nan, dtype), found)


def histogram(x, bins, dtype):
    """How many fall in each place."""
    scaled = relax.op.multiply(relax.op.add(x, relax.const(2, dtype)), relax.const(bins / 4, dtype))
    last = relax.op.equal(x, relax.const(2, dtype))
    places = relax.op.where(last, relax.const(bins - 1, dtype), relax.op.floor(scaled))
    same = relax.op.equal(relax.op.expand_dims(places, 1), relax.const(np.arange(bins).astype(dtype), dtype))
    return relax.op.sum(relax.op.astype(same, "int64"), 0)


def index_put(x, rows, columns, values, shape):
    """Pairs of places, and what is added there."""
    wide = relax.op.broadcast_to(columns, shape)
    pairs = relax.op.concat([relax.op.expand_dims(relax.op.astype(i, "int64"), -1) for i in (rows, wide)], axis=-1)
    return relax.op.scatter_nd(x, pairs, values, "add")


def write_cache(bb, cache, update, first, axis, circular, sizes, shape, dtype):
    """Rows along an axis, each part of the batch from a place of its own on."""
    axis %= len(sizes)
    along = [size if i == axis else 1 for i, size in enumerate(shape)]
    start = relax.op.reshape(first, [size if i == 0 else 1 for i, size in enumerate(shape)])
    steps = relax.const(np.arange(shape[axis], dtype=dtype).reshape(along), dtype)
    place = bb.emit(relax.op.add(start, steps))
    place = bb.emit(relax.op.floor_mod(place, relax.const(sizes[axis], dtype))) if circular else place
    return relax.op.scatter_elements(cache, relax.op.broadcast_to(place, shape), update, axis=axis)


def roi_align(bb, x, regions, which, size, samples, scale, aligned, dtype, pooled):
    """The number of the image stands before the corners. `aligned` leaves the least size out, and moves nothing."""
    regions = bb.emit(relax.op.subtract(regions, relax.const(0.5 / scale, dtype))) if aligned else regions
    which = bb.emit(relax.op.expand_dims(relax.op.astype(which, dtype), 1))
    rows = relax.op.concat([which, regions], axis=1)
    return relax.op.vision.roi_align(x, rows, size, scale, samples or -1, aligned, mode=pooled)


def block_at(bb, x, places, sizes, shape, dtype):
    """A block of these sizes from places on that a tensor gives, or from the last ones where it would fit."""
    last = relax.const([whole - size for whole, size in zip(shape, sizes)], "int64")
    first = bb.emit(relax.op.minimum(relax.op.astype(places, "int64"), last))
    end = bb.emit(relax.op.add(first, relax.const(list(sizes), "int64")))
    steps = relax.const([1] * len(sizes), "int64")
    return bb.match_cast(bb.emit(relax.op.dynamic_strided_slice(x, first, end, steps)), relax.TensorType(sizes, dtype))
