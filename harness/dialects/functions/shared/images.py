"""Functions of images that spellings of several dialects may call. Read as text, as basic.py is."""

import numpy as np


def zeros_around(F, x, axis, before, after):
    """Zeros in front of an axis and behind it."""
    parts = []
    for count in (before, None, after):
        shape = list(x.shape)
        shape[axis] = count
        parts += [x] if count is None else [F.constant(np.zeros(shape), x)] if count else []
    return F.concat(parts, axis) if len(parts) > 1 else x


def space_to_batch(F, x, block, pads):
    """Each place of a block as a batch."""
    for i in range(len(block)):
        x = zeros_around(F, x, i + 1, pads[2 * i], pads[2 * i + 1])
    m, (n, *sizes) = len(block), x.shape
    split, batch = [n], n
    for i, b in enumerate(block):
        split += [sizes[i] // b, b]
        sizes[i] //= b
        batch *= b
    order = [*range(2, 2 * m + 1, 2), 0, *range(1, 2 * m + 1, 2), *range(2 * m + 1, len(x.shape) + m)]
    return F.reshape(F.transpose(F.reshape(x, [*split, *sizes[m:]]), order), [batch, *sizes])


def batch_to_space(F, x, block, pads):
    """The places of a block beside each other, without what is cut off."""
    m, (n, *sizes), order = len(block), x.shape, [len(block)]
    for i, b in enumerate(block):
        order += [m + 1 + i, i]
        n //= b
    order += range(2 * m + 1, m + 1 + len(sizes))
    y = F.transpose(F.reshape(x, [*block, n, *sizes]), order)
    y = F.reshape(y, [n, *[size * b for size, b in zip(sizes, block)], *sizes[m:]])
    for i, b in enumerate(block):
        before, after = pads[2 * i], pads[2 * i + 1]
        if before or after:
            y = F.take(y, list(range(before, sizes[i] * b - after)), i + 1)
    return y


def window_table(sizes, kernel, stride, dilation, padding):
    """(positions, kernel) -> the place in an image laid out as a row, or its size where padding is; and the number of
    positions along each axis."""
    axes, counts = [], []
    for size, k, s, d in zip(sizes, kernel, stride, dilation):
        reach = d * (k - 1) + 1
        count = -(-size // s) if padding == "SAME" else (size - reach) // s + 1
        before = max(0, (count - 1) * s + reach - size) // 2 if padding == "SAME" else 0
        counts.append(count)
        axes.append(np.arange(count)[:, None] * s + np.arange(k)[None] * d - before)
    table, inside, n = np.zeros((1, 1), "int64"), np.ones((1, 1), bool), 1
    for places, size in zip(axes, sizes):
        good = (places >= 0) & (places < size)
        table = table[:, None, :, None] * size + np.where(good, places, 0)[None, :, None, :]
        inside = inside[:, None, :, None] & good[None, :, None, :]
        table, inside = (a.reshape(a.shape[0] * a.shape[1], -1) for a in (table, inside))
        n *= size
    return np.where(inside, table, n), counts


def image_windows(F, x, kernel, stride, dilation, padding, fill):
    """(N, positions, kernel, C) of (N, spatial…, C), by way of places in a row with the filling behind it."""
    n, *sizes, channels = x.shape
    table, counts = window_table(sizes, kernel, stride, dilation, padding)
    size = 1
    for count in sizes:
        size *= count
    row = F.concat([F.reshape(x, [n, size, channels]), F.constant(np.full((n, 1, channels), fill), x)], 1)
    return F.reshape(F.take(row, table.ravel(), 1), [n, *table.shape, channels]), counts


def image_patches(F, x, kernel, stride, dilation, padding):
    y, counts = image_windows(F, x, kernel, stride, dilation, padding, 0)
    return F.reshape(y, [y.shape[0], *counts, y.shape[2] * y.shape[3]])


def dilation2d(F, x, weight, stride, dilation, padding):
    """The greatest sum of a window and the weights."""
    y, counts = image_windows(F, x, weight.shape[:2], stride, dilation, padding, -np.inf)
    sums = y + F.reshape(weight, [1, 1, *y.shape[2:]])
    return F.reshape(F.max(sums, [2]), [y.shape[0], *counts, y.shape[3]])


def rgb_to_hsv(F, x):
    """Of numbers between 0 and 1."""
    x = F.minimum(F.maximum(x, 0), 1)
    last = len(x.shape) - 1
    r, g, b = (F.take(x, [i], last) for i in range(3))
    v = F.maximum(F.maximum(r, g), b)
    d = v - F.minimum(F.minimum(r, g), b)
    part = F.where(d > 0, d, 1) * 6
    h = F.where(F.equal(r, v), (g - b) / part, F.where(F.equal(g, v), (b - r) / part + 1 / 3, (r - g) / part + 2 / 3))
    h = F.where(d > 0, F.where(0 - h > 0, h + 1, h), 0)
    return F.concat([h, F.where(v > 0, d / F.where(v > 0, v, 1), 0), v], last)


def hsv_to_rgb(F, x):
    """Of numbers between 0 and 1."""
    x = F.minimum(F.maximum(x, 0), 1)
    last = len(x.shape) - 1
    h, s, v = (F.take(x, [i], last) for i in range(3))
    h = h * 6
    shares = [F.abs(h - 3) - 1, 2 - F.abs(h - 2), 2 - F.abs(h - 4)]
    return F.concat([(1 - s + s * F.minimum(F.maximum(share, 0), 1)) * v for share in shares], last)


def adjust_contrast(F, x, factor):
    """Away from the mean of each channel, or towards it."""
    rank = len(x.shape)
    mean = F.mean(x, [rank - 3, rank - 2], True)
    return (x - mean) * factor + mean


def mean_variance(F, x, axes):
    """Mean 0 and variance 1."""
    d = x - F.mean(x, list(axes), True)
    return d / (F.sqrt(F.mean(d * d, list(axes), True)) + 1e-9)
