"""Functions that jax spellings may call. Read as text; a program carries the source of those that it uses."""

import jax
import jax.numpy as jnp
import numpy as np


def argmax(x, axis, keepdims, dtype):
    """jax.lax.argmax, which is given the dtype of its result, that can keep the axis."""
    place = jax.lax.argmax(x, axis % x.ndim, dtype)
    return jnp.expand_dims(place, axis) if keepdims else place


def argmin(x, axis, keepdims, dtype):
    """jax.lax.argmin, which is given the dtype of its result, that can keep the axis."""
    place = jax.lax.argmin(x, axis % x.ndim, dtype)
    return jnp.expand_dims(place, axis) if keepdims else place


def convolution(x, weight, bias=None, *, padding, stride, dilation, groups):
    """Padding is written as all fronts, then all backs."""
    n = len(stride)
    y = jax.lax.conv_general_dilated(
        x,
        weight,
        window_strides=stride,
        padding=list(zip(padding[:n], padding[n:])),
        rhs_dilation=dilation,
        feature_group_count=groups,
    )
    return y if bias is None else y + bias.reshape(-1, *[1] * n)


def conv_transpose(x, weight, stride, dilation, padding, output_padding, groups):
    """The gradient of a convolution with respect to its input; weight is (C, O / groups, kernel...)."""
    channels, out, *kernel = weight.shape
    flipped = jnp.flip(weight, range(2, weight.ndim)).reshape(groups, channels // groups, out, *kernel)
    flipped = flipped.swapaxes(1, 2).reshape(groups * out, channels // groups, *kernel)
    border = [d * (k - 1) - p for d, k, p in zip(dilation, kernel, padding)]
    return jax.lax.conv_general_dilated(
        x,
        flipped,
        window_strides=(1,) * len(kernel),
        padding=[(b, b + extra) for b, extra in zip(border, output_padding)],
        lhs_dilation=stride,
        rhs_dilation=dilation,
        feature_group_count=groups,
    )


def max_pool(x, kernel, stride, padding, dilation):
    return jax.lax.reduce_window(
        x,
        np.array(-np.inf, x.dtype),  # a constant also under jit, or there is no derivative
        jax.lax.max,
        window_dimensions=(1, 1, *kernel),
        window_strides=(1, 1, *stride),
        padding=((0, 0), (0, 0), *((p, p) for p in padding)),
        window_dilation=(1, 1, *dilation),
    )


def avg_pool(x, kernel, stride, padding, count_include_pad):
    def total(array):
        return jax.lax.reduce_window(
            array,
            np.array(0, array.dtype),
            jax.lax.add,
            window_dimensions=(1, 1, *kernel),
            window_strides=(1, 1, *stride),
            padding=((0, 0), (0, 0), *((p, p) for p in padding)),
        )

    return total(x) / (int(np.prod(kernel)) if count_include_pad else total(jnp.ones_like(x)))


def normalize(x, axes, epsilon):
    """Zero mean, unit variance (the variance in two passes)."""
    mean = jnp.mean(x, axis=axes, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(jnp.var(x, axis=axes, keepdims=True) + epsilon)


def rms_norm(x, weight, epsilon):
    square = jnp.mean(x * x, axis=tuple(range(-weight.ndim, 0)), keepdims=True)
    return x * jax.lax.rsqrt(square + epsilon) * weight


def batch_norm(x, scale, bias, mean, variance, epsilon):
    scale, bias, mean, variance = (p.reshape(-1, *[1] * (x.ndim - 2)) for p in (scale, bias, mean, variance))
    return (x - mean) * jax.lax.rsqrt(variance + epsilon) * scale + bias


def group_norm(x, scale, bias, groups, epsilon):
    n, channels, *spatial = x.shape
    split = x.reshape(n, groups, channels // groups, *spatial)
    y = normalize(split, tuple(range(2, split.ndim)), epsilon).reshape(x.shape)
    return y * scale.reshape(-1, *[1] * len(spatial)) + bias.reshape(-1, *[1] * len(spatial))


def at_elements(x, indices, axis):
    """x.at[...] for indices along one axis."""
    grid = list(jnp.indices(indices.shape, dtype=indices.dtype, sparse=True))
    grid[axis] = indices
    return x.at[tuple(grid)]


def logit(x, eps):
    return jax.scipy.special.logit(x if eps is None else jnp.clip(x, eps, 1 - eps))


def huber(x, y, delta):
    """d^2 / 2 below delta, delta (d - delta / 2) above, d = |x - y|."""
    d = jnp.abs(x - y)
    return jnp.where(d < delta, 0.5 * d * d, delta * (d - delta / 2))


def bce_with_logits(x, z):
    return jnp.maximum(x, 0) - x * z + jnp.log1p(jnp.exp(-jnp.abs(x)))


def at_classes(x, classes):
    """The element of each class along axis 1."""
    return jnp.squeeze(jnp.take_along_axis(x, jnp.expand_dims(classes, 1), axis=1), axis=1)


def topk(x, k, axis, largest):
    """The greatest or least k elements in order, along any axis."""
    if largest:
        return jnp.moveaxis(jax.lax.top_k(jnp.moveaxis(x, axis, -1), k)[0], -1, axis)
    return jnp.take(jnp.sort(x, axis=axis), jnp.arange(k), axis=axis)


def topk_indices(x, k, axis, largest):
    """Where the greatest or least k elements stand."""
    if largest:
        places = jnp.moveaxis(jax.lax.top_k(jnp.moveaxis(x, axis, -1), k)[1], -1, axis)
    else:
        places = jnp.take(jnp.argsort(x, axis=axis), jnp.arange(k), axis=axis)
    return places.astype(jnp.int64)


def diag_embed(x, offset):
    """Zeros with the operand on one diagonal."""
    n = x.shape[-1]
    rows, columns = jnp.arange(n) + max(0, -offset), jnp.arange(n) + max(0, offset)
    size = n + abs(offset)
    return jnp.zeros((*x.shape[:-1], size, size), x.dtype).at[..., rows, columns].set(x)


def adaptive_pool(reduce, x, *cells):
    """Every cell reduced by itself."""
    counts, axes, parts = [len(along) for along in cells], tuple(range(2, len(x.shape))), []
    for place in np.ndindex(*counts):
        box = (slice(*along[number]) for along, number in zip(cells, place))
        parts.append(reduce(x[(..., *box)], axis=axes))
    return jnp.stack(parts, axis=-1).reshape(*x.shape[:2], *counts)


def attention(q, k, v, scale, causal=False, mask=None, bias=None):
    """Over (batch, heads, length, features); jax.nn has the length before the heads, and values as wide as keys."""
    q, k, v = (x.swapaxes(1, 2) for x in (q, k, v))
    width, features = v.shape[-1], k.shape[-1]
    if width > features:
        parts = [(start, min(start + features, width)) for start in range(0, width, features)]
    else:
        parts = [(0, width)]
    results = []
    for start, stop in parts:
        part = jnp.pad(v[..., start:stop], [(0, 0)] * 3 + [(0, features - (stop - start))])
        y = jax.nn.dot_product_attention(
            q,
            k,
            part,
            scale=scale,
            is_causal=causal,
            mask=mask if mask is None else mask.reshape((1,) * (4 - mask.ndim) + mask.shape),
            bias=bias if bias is None else bias.reshape((1,) * (4 - bias.ndim) + bias.shape),
        )
        results.append(y[..., : stop - start])
    return jnp.concatenate(results, axis=-1).swapaxes(1, 2)


def over_time(F, step, x, state, direction, output):
    """The step from state to state, over the first axis of x."""

    def body(state, x):
        state = tuple(step(x, *state))
        return state, state[0]

    state, results = jax.lax.scan(body, tuple(state), x, reverse=direction == "reverse")
    return results if output == "all" else state[1 if output == "cell" else 0]


def patches(x, kernel, stride, padding, dilation):
    """torch.nn.functional.unfold."""
    pads = [(p, p) for p in padding]
    y = jax.lax.conv_general_dilated_patches(x, kernel, stride, pads, rhs_dilation=dilation)
    return y.reshape(*y.shape[:2], -1)


def segment_extreme(f, x, places, segments, greatest):
    """The lowest or greatest number of the dtype where JAX has an infinity, of no rows."""
    info = jnp.finfo(x.dtype) if jnp.issubdtype(x.dtype, jnp.floating) else jnp.iinfo(x.dtype)
    nothing = jnp.asarray(info.min if greatest else info.max, x.dtype)
    rows = jax.ops.segment_sum(jnp.ones(places.shape, jnp.int32), places, num_segments=segments)
    rows = rows.reshape((segments,) + (1,) * (x.ndim - 1))
    return jnp.where(rows > 0, f(x, places, num_segments=segments), nothing)


def reverse_sequence(x, lengths, axis, batch):
    """Each sequence turned round up to its length."""
    place = jnp.expand_dims(jnp.arange(x.shape[axis]), [i for i in range(x.ndim) if i != axis])
    lengths = jnp.expand_dims(lengths, [i for i in range(x.ndim) if i != batch])
    source = jnp.where(place < lengths, lengths - 1 - place, place)
    return jnp.take_along_axis(x, jnp.broadcast_to(source, x.shape), axis)


def running(scan, x, axis, exclusive, reverse, start):
    """A scan from either end, with or without each element itself."""
    if exclusive:
        size = x.shape[axis]
        edge = jnp.full_like(jax.lax.slice_in_dim(x, 0, 1, axis=axis), start)
        rest = jax.lax.slice_in_dim(x, int(reverse), size - int(not reverse), axis=axis)
        x = jnp.concatenate([rest, edge] if reverse else [edge, rest], axis)
    return scan(x, axis=axis, reverse=reverse)


def write_cache(cache, update, first, axis, circular):
    """Rows along an axis, each part of the batch from a place of its own on."""
    place = first[:, None] + jnp.arange(update.shape[axis])
    place = place % cache.shape[axis] if circular else place
    batch = jnp.arange(cache.shape[0])[:, None]
    rows = jnp.moveaxis(cache, axis, 1).at[batch, place].set(jnp.moveaxis(update, axis, 1))
    return jnp.moveaxis(rows, 1, axis)


def while_sum(x, start, limit, step, comparison):
    """x added up while start, start + step, ... compare so with the limit."""

    def more(state):
        return getattr(jnp, comparison)(state[0], limit)

    def once(state):
        return state[0] + step, state[1] + x

    return jax.lax.while_loop(more, once, (jnp.int32(start), jnp.zeros_like(x)))[1]
