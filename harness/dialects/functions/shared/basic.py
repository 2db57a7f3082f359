"""Functions that spellings of several dialects may call: written once for any `Space`, the names that
`shared_namespace.py` give to a dialect's functions. Read as text; a program carries the source of what it uses."""

import numpy as np


def gates(F, x, weight, bias):
    """x by the transposed weight, and the bias."""
    return F.matmul(x, F.transpose(weight, [1, 0])) + bias


def columns(F, x, number, count):
    """One of so many blocks of columns."""
    size = x.shape[1] // count
    return F.take(x, list(range(number * size, (number + 1) * size)), 1)


def rows(F, x, first, last, count):
    """The blocks of rows from `first` to `last` of so many."""
    size = x.shape[0] // count
    return F.take(x, list(range(first * size, (last + 1) * size)), 0)


def rnn_cell(F, x, h, w, r, bw, br, activation):
    total = gates(F, x, w, bw) + gates(F, h, r, br)
    return F.maximum(total, 0) if activation == "relu" else F.tanh(total)


def gru_cell(F, x, h, w, r, bw, br, reset):
    """Gates r, z, n; the reset gate scales the state's part of n after its product, or the state before it."""
    inner = gates(F, x, w, bw)
    outer = gates(F, h, rows(F, r, 0, 1, 3), rows(F, br, 0, 1, 3))
    scale = F.sigmoid(columns(F, inner, 0, 3) + columns(F, outer, 0, 2))
    update = F.sigmoid(columns(F, inner, 1, 3) + columns(F, outer, 1, 2))
    weight, bias = rows(F, r, 2, 2, 3), rows(F, br, 2, 2, 3)
    rest = scale * gates(F, h, weight, bias) if reset == "after" else gates(F, scale * h, weight, bias)
    new = F.tanh(columns(F, inner, 2, 3) + rest)
    return (1 - update) * new + update * h


def lstm_step(F, x, h, c, w, r, bw, br):
    """Gates i, f, g, o."""
    total = gates(F, x, w, bw) + gates(F, h, r, br)
    i, f, g, o = (columns(F, total, number, 4) for number in range(4))
    c = F.sigmoid(f) * c + F.sigmoid(i) * F.tanh(g)
    return F.sigmoid(o) * F.tanh(c), c


def lstm_cell(F, x, h, c, w, r, bw, br, output):
    return lstm_step(F, x, h, c, w, r, bw, br)[1 if output == "cell" else 0]


def over_time(F, step, x, state, direction, output):
    """The step from state to state, over the first axis of x."""
    order = list(range(x.shape[0]))
    if direction == "reverse":
        order.reverse()
    results = []
    for t in order:
        state = step(F.reshape(F.take(x, [t], 0), x.shape[1:]), *state)
        results.append(state[0])
    if output != "all":
        return state[1 if output == "cell" else 0]
    if direction == "reverse":
        results.reverse()
    return F.stack(results, 0)


def rnn(F, x, h, w, r, bw, br, activation, direction, output):
    def step(x, h):
        return (rnn_cell(F, x, h, w, r, bw, br, activation),)

    return over_time(F, step, x, [h], direction, output)


def gru(F, x, h, w, r, bw, br, reset, direction, output):
    def step(x, h):
        return (gru_cell(F, x, h, w, r, bw, br, reset),)

    return over_time(F, step, x, [h], direction, output)


def lstm(F, x, h, c, w, r, bw, br, direction, output):
    def step(x, h, c):
        return lstm_step(F, x, h, c, w, r, bw, br)

    return over_time(F, step, x, [h, c], direction, output)


def reduced(F, x, reduction):
    """No reduction, or the mean or the sum of all elements."""
    if reduction == "none":
        return x
    axes = list(range(len(x.shape)))
    return F.mean(x, axes) if reduction == "mean" else F.sum(x, axes)


def margin_ranking(F, first, second, y, margin, reduction):
    return reduced(F, F.maximum(margin - y * (first - second), 0), reduction)


def hinge_embedding(F, x, alike, margin, reduction):
    return reduced(F, F.where(alike, x, F.maximum(margin - x, 0)), reduction)


def soft_margin(F, x, y, reduction):
    return reduced(F, F.log(F.exp(-(x * y)) + 1), reduction)


def cosine_embedding(F, x, y, alike, margin, reduction):
    squares = [F.sum(v * v, [1]) + 1e-12 for v in (x, y)]
    cosine = F.sum(x * y, [1]) / F.sqrt(squares[0] * squares[1])
    return reduced(F, F.where(alike, 1 - cosine, F.maximum(cosine - margin, 0)), reduction)


def pairwise_distance(F, x, y, p, eps):
    d = x - y + eps
    return F.sum(F.abs(d), [1]) if p == 1 else F.sqrt(F.sum(d * d, [1]))


def triplet_margin(F, anchor, positive, negative, margin, p, reduction):
    near, far = (pairwise_distance(F, anchor, other, p, 2.0**-20) for other in (positive, negative))
    return reduced(F, F.maximum(near - far + margin, 0), reduction)


def is_class(F, classes, axis, count, like):
    """Along a new axis of that many classes: is this the one?"""
    shape = list(classes.shape)
    shape.insert(axis, 1)
    row = [1] * len(shape)
    row[axis] = count
    places = F.reshape(F.constant(list(range(count)), classes), row)
    return F.equal(F.reshape(classes, shape), places)


def multi_margin(F, x, classes, margin, p, reduction):
    right = is_class(F, classes, 1, x.shape[1], x)
    chosen = F.sum(F.where(right, x, 0), [1], True)
    terms = F.maximum(margin - chosen + x, 0)
    terms = F.where(right, 0, terms * terms if p == 2 else terms)
    return reduced(F, F.sum(terms, [1]) / x.shape[1], reduction)


def binary_cross_entropy(F, x, t, reduction):
    logarithms = F.maximum(F.log(x), -100), F.maximum(F.log(1 - x), -100)
    return reduced(F, -(t * logarithms[0] + (1 - t) * logarithms[1]), reduction)


def bce_pos_weight(F, x, t, weight, reduction):
    """(1 - t) x + (1 + (weight - 1) t) softplus(-x). Whatever its slope at 0, that of the maximum cancels."""
    below = F.maximum(-x, 0)
    rest = F.log(F.exp(-x - 2 * below) + 1) + below
    return reduced(F, (1 - t) * x + ((weight - 1) * t + 1) * rest, reduction)


def kl_div_log_target(F, x, t, reduction):
    return reduced(F, F.exp(t) * (t - x), reduction)


def poisson_nll(F, x, t, log_input, eps, reduction):
    return reduced(F, F.exp(x) - t * x if log_input else x - t * F.log(x + eps), reduction)


def gaussian_nll(F, x, t, variance, eps, reduction):
    variance = F.maximum(variance, eps)
    d = x - t
    return reduced(F, 0.5 * (F.log(variance) + d * d / variance), reduction)


def nll_loss_weighted(F, scores, classes, weight, ignore, reduction, smoothing=0.0):
    """The share `smoothing` of the loss is the mean over all classes."""
    count = scores.shape[1]
    right = is_class(F, classes, 1, count, scores)
    weights = F.take(weight, classes, 0)
    terms = -(weights * F.sum(F.where(right, scores, 0), [1]))
    if smoothing:
        each = F.reshape(weight, [count] + [1] * (len(scores.shape) - 2))
        terms = (1 - smoothing) * terms + smoothing / count * -F.sum(scores * each, [1])
    ignored = F.equal(classes, F.constant(ignore, classes))
    terms = F.where(ignored, 0, terms)
    if reduction != "mean":
        return reduced(F, terms, reduction)
    return reduced(F, terms, "sum") / reduced(F, F.where(ignored, 0, weights), "sum")


def cross_entropy_weighted(F, scores, classes, weight, ignore, smoothing, reduction):
    return nll_loss_weighted(F, F.log_softmax(scores, 1), classes, weight, ignore, reduction, smoothing)


def counted(F, indices, padding, like):
    """1 where an index counts, 0 where it is the padding, with a new last axis."""
    shape = [*indices.shape, 1]
    ones = F.constant(np.ones(indices.shape), like)
    if padding is None:
        return F.reshape(ones, shape)
    return F.reshape(F.where(F.equal(indices, F.constant(padding, indices)), 0, ones), shape)


def embedding_bag(F, table, indices, mode, padding):
    """Bags of (bag, index, feature)."""
    found, there = F.take(table, indices, 0), counted(F, indices, padding, table)
    total = F.sum(there, [1])
    if mode == "max":
        greatest = F.max(F.where(there > 0, found, -float("inf")), [1])
        return F.where(total > 0, greatest, 0)
    result = F.sum(F.where(there > 0, found, 0), [1])
    return result if mode == "sum" else F.where(total > 0, result / F.maximum(total, 1), 0)


def embedding_bag_offsets(F, table, indices, offsets, mode, padding, groups):
    """groups: the places of each bag among the indices."""
    results = []
    for places in groups:
        if places:
            bag = F.reshape(F.take(indices, places, 0), [1, len(places)])
            results.append(embedding_bag(F, table, bag, mode, padding))
        else:
            results.append(F.constant(np.zeros((1, table.shape[1])), table))
    return F.concat(results, 0)


def embedding_bag_weighted(F, table, indices, weights, padding):
    found, there = F.take(table, indices, 0), counted(F, indices, padding, table)
    products = found * F.reshape(weights, [*indices.shape, 1])
    return F.sum(F.where(there > 0, products, 0), [1])


def normalized(F, x, axes, epsilon, scale=None, bias=None):
    """Zero mean, unit variance (in two passes), then scale and bias by channel."""
    d = x - F.mean(x, axes, True)
    y = d / F.sqrt(F.mean(d * d, axes, True) + epsilon)
    if scale is None:
        return y
    shape = [1, x.shape[1]] + [1] * (len(x.shape) - 2)
    return y * F.reshape(scale, shape) + F.reshape(bias, shape)


def batch_norm_training(F, x, scale, bias, epsilon):
    return normalized(F, x, [0, *range(2, len(x.shape))], epsilon, scale, bias)


def layer_norm_plain(F, x, last, epsilon):
    return normalized(F, x, list(range(len(x.shape) - last, len(x.shape))), epsilon)


def instance_norm_plain(F, x, epsilon):
    return normalized(F, x, list(range(2, len(x.shape))), epsilon)


def group_norm_plain(F, x, groups, epsilon):
    shape = list(x.shape)
    split = F.reshape(x, [shape[0], groups, shape[1] // groups, *shape[2:]])
    return F.reshape(normalized(F, split, list(range(2, len(shape) + 1)), epsilon), shape)


def local_response_norm(F, x, size, alpha, beta, k):
    """Sums of squares of neighbouring channels, by way of places with a channel of zeros behind the others."""
    channels = x.shape[1]
    zeros = F.constant(np.zeros([x.shape[0], 1, *x.shape[2:]]), x)
    squares = F.concat([x * x, zeros], 1)
    total = 0
    for shift in range(-(size // 2), (size - 1) // 2 + 1):
        places = [c + shift if 0 <= c + shift < channels else channels for c in range(channels)]
        total = F.take(squares, places, 1) + total
    total = k + alpha / size * total
    root = F.sqrt(total)
    return x / {0.5: root, 0.75: root * F.sqrt(root), 1.0: total}[beta]


def patch_table(sizes, kernel, stride, padding, dilation):
    """(kernel, positions) -> the place in an image laid out as a row, or its size where padding is."""
    lines = [
        [[p * s + k * d - pad for p in range((size + 2 * pad - d * (count - 1) - 1) // s + 1)] for k in range(count)]
        for size, count, s, pad, d in zip(sizes, kernel, stride, padding, dilation)
    ]
    high, wide = sizes
    table = [
        [y * wide + x if 0 <= y < high and 0 <= x < wide else high * wide for y in rows for x in columns]
        for rows in lines[0]
        for columns in lines[1]
    ]
    return np.array(table, "int64")


def unfold(F, x, kernel, padding, stride, dilation):
    """Patches by way of places in the image, with a zero behind it."""
    n, channels, high, wide = x.shape
    table = patch_table((high, wide), kernel, stride, padding, dilation)
    row = F.concat([F.reshape(x, [n, channels, high * wide]), F.constant(np.zeros((n, channels, 1)), x)], 2)
    patches = F.take(row, table.ravel(), 2)
    return F.reshape(patches, [n, channels * table.shape[0], table.shape[1]])


def fold(F, x, geometry, kernel, image, stride, padding, dilation):
    """Every pixel as the sum of its places in the patches, with a zero behind them."""
    high, wide = image
    table = patch_table(image, kernel, stride, padding, dilation).ravel()
    n, channels = x.shape[0], x.shape[1] * x.shape[2] // len(table)
    row = F.concat([F.reshape(x, [n, channels, len(table)]), F.constant(np.zeros((n, channels, 1)), x)], 2)
    places = [[place for place in range(len(table)) if table[place] == pixel] for pixel in range(high * wide)]
    most = max(1, max(len(found) for found in places))
    padded = np.array([found + [len(table)] * (most - len(found)) for found in places], "int64")
    terms = F.reshape(F.take(row, padded.ravel(), 2), [n, channels, high, wide, most])
    return F.sum(terms, [4])


def rotary_embedding(F, x, cosine, sine, interleaved):
    """The first half of the features and the second, or even and odd ones, turned by the angles."""
    size = x.shape[3]
    places = [list(range(0, size, 2)), list(range(1, size, 2))]
    if not interleaved:
        places = [list(range(size // 2)), list(range(size // 2, size))]
    first, second = (F.take(x, one, 3) for one in places)
    wide = [x.shape[0], 1, x.shape[2], size // 2]
    cosine, sine = F.reshape(cosine, wide), F.reshape(sine, wide)
    real, imaginary = first * cosine - second * sine, first * sine + second * cosine
    order = [places[0].index(i) if i in places[0] else size // 2 + places[1].index(i) for i in range(size)]
    return F.take(F.concat([real, imaginary], 3), order, 3)


def lp_pool(F, x, kernel, stride):
    """The root of the sum of squares of a window."""
    sizes = x.shape[2:]
    row = F.reshape(x, [*x.shape[:2], *([1] * (2 - len(sizes))), *sizes])
    kernel, stride = ((1,) * (2 - len(sizes)) + tuple(pair) for pair in (kernel, stride))
    table = patch_table(row.shape[2:], kernel, stride, (0, 0), (1, 1))
    n, channels, high, wide = row.shape
    patches = F.take(F.reshape(x, [n, channels, high * wide]), table.ravel(), 2)
    patches = F.reshape(patches, [n, channels, *table.shape])
    counts = [(size - k) // s + 1 for size, k, s in zip(row.shape[2:], kernel, stride)]
    return F.reshape(F.sqrt(F.sum(patches * patches, [2])), [n, channels, *counts[2 - len(sizes) :]])


def max_unpool(F, x, kernel):
    """Every window's maximum where it stood, zeros around it."""
    n, channels, high, wide = x.shape
    split = F.reshape(x, [n, channels, high // kernel[0], kernel[0], wide // kernel[1], kernel[1]])
    return F.reshape(F.where(F.equal(split, F.max(split, [3, 5], True)), split, 0), x.shape)


def placed(F, *values, table, batch, result, value=0, **_):
    """Elements of the values side by side, by their places; the value where there is none."""
    front = list(values[0].shape[:batch])
    rows = [F.reshape(v, [*front, -1]) for v in values]
    row = F.concat(rows, batch) if values[1:] else rows[0]
    places = table
    if min(places) < 0:
        row = F.concat([row, F.constant(np.full([*front, 1], value), row)], batch)
        places = [row.shape[batch] - 1 if place < 0 else place for place in places]
    return F.reshape(F.take(row, places, batch), list(result))
