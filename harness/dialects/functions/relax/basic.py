"""Functions that relax spellings may call. Read as text; a program carries the source of those that it uses."""

import numpy as np
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


def sinc(bb, x, dtype):
    zero = bb.emit(relax.op.equal(x, relax.const(0, dtype)))  # kept from the quotient, whose derivative is NaN there
    given = relax.op.where(zero, relax.const(1, dtype), x)
    angle = bb.emit(relax.op.multiply(given, relax.const(3.141592653589793, dtype)))
    ratio = relax.op.divide(relax.op.sin(angle), angle)
    return relax.op.where(zero, relax.const(1, dtype), ratio)


def signbit(x, dtype):
    """Negative, or a zero whose reciprocal is."""
    zero = relax.const(0, dtype)
    below = relax.op.less(relax.op.divide(relax.const(1, dtype), x), zero)
    return relax.op.logical_or(relax.op.less(x, zero), relax.op.logical_and(relax.op.equal(x, zero), below))


def nan_to_num(x, nan, posinf, neginf, dtype):
    y = relax.op.where(relax.op.isnan(x), relax.const(nan, dtype), x)
    y = relax.op.where(relax.op.equal(x, relax.const(float("inf"), dtype)), relax.const(posinf, dtype), y)
    return relax.op.where(relax.op.equal(x, relax.const(-float("inf"), dtype)), relax.const(neginf, dtype), y)


def logit(bb, x, eps, dtype):
    z = x if eps is None else bb.emit(relax.op.clip(x, eps, 1 - eps))
    return relax.op.log(relax.op.divide(z, relax.op.subtract(relax.const(1, dtype), z)))


def softshrink(bb, x, lambd, dtype):
    limit = relax.const(lambd, dtype)
    nearer = bb.emit(relax.op.subtract(x, relax.op.multiply(relax.op.sign(x), limit)))
    return relax.op.where(relax.op.greater(relax.op.abs(x), limit), nearer, relax.const(0, dtype))


def celu(bb, x, alpha, dtype):
    positive = bb.emit(relax.op.greater(x, relax.const(0, dtype)))
    # the branch that is not taken must not overflow: its gradient is multiplied by 0
    held = relax.op.where(positive, relax.op.zeros_like(x), x)
    power = bb.emit(relax.op.exp(relax.op.divide(held, relax.const(alpha, dtype))))
    below = relax.op.multiply(relax.const(alpha, dtype), relax.op.subtract(power, relax.const(1, dtype)))
    return relax.op.where(positive, x, below)


def glu(x, axis):
    halves = relax.op.split(x, 2, axis)
    return relax.op.multiply(halves[0], relax.op.sigmoid(halves[1]))


def copysign(x, y, dtype):
    sign = relax.op.where(signbit(y, dtype), relax.const(-1, dtype), relax.const(1, dtype))
    return relax.op.multiply(relax.op.abs(x), sign)


def xlogy(x, y, dtype):
    zero = relax.const(0, dtype)
    return relax.op.where(relax.op.equal(x, zero), zero, relax.op.multiply(x, relax.op.log(y)))


def heaviside(x, y, dtype):
    zero = relax.const(0, dtype)
    step = relax.op.where(relax.op.greater(x, zero), relax.const(1, dtype), zero)
    return relax.op.where(relax.op.equal(x, zero), y, step)


def ignoring_nan(bb, f, x, y):
    """f (maximum or minimum) of the operands that are numbers."""
    rest = bb.emit(relax.op.where(relax.op.isnan(y), x, f(x, y)))
    return relax.op.where(relax.op.isnan(x), y, rest)


def isclose(bb, x, y, rtol, atol, dtype):
    """|x - y| <= atol + rtol |y|, or equal; nothing else is close to an infinity."""
    scaled = relax.op.multiply(relax.const(rtol, dtype), relax.op.abs(y))
    limit = bb.emit(relax.op.add(relax.const(atol, dtype), scaled))
    near = relax.op.less_equal(relax.op.abs(relax.op.subtract(x, y)), limit)
    near = relax.op.logical_and(near, relax.op.logical_not(relax.op.isinf(y)))
    return relax.op.logical_or(relax.op.equal(x, y), near)


def running(bb, f, x, axis, shape):
    """Of every element and all before it, in log2(size) steps: step 2^k joins neighbours 2^k apart."""
    shift, size = 1, shape[axis]
    while shift < size:
        earlier = relax.op.strided_slice(x, [axis], [0], [size - shift])
        later = relax.op.strided_slice(x, [axis], [shift], [size])
        first = relax.op.strided_slice(x, [axis], [0], [shift])
        x = bb.emit(relax.op.concat([first, bb.emit(f(later, earlier))], axis=axis))
        shift *= 2
    return x


def stable_log_add_exp(x, y):
    """The greater one and log(1 + exp(-|x - y|)); equal numbers, which may be infinite, apart."""
    rest = relax.op.exp(relax.op.negative(relax.op.abs(relax.op.subtract(x, y))))
    rest = relax.op.where(relax.op.equal(x, y), relax.op.ones_like(x), rest)
    return relax.op.add(relax.op.maximum(x, y), relax.op.log(relax.op.add(relax.op.ones_like(x), rest)))


def huber(bb, x, y, delta, dtype):
    """d^2 / 2 below delta, delta (d - delta / 2) above, d = |x - y|."""
    limit = relax.const(delta, dtype)
    d = bb.emit(relax.op.abs(relax.op.subtract(x, y)))
    square = relax.op.multiply(relax.const(0.5, dtype), relax.op.square(d))
    line = relax.op.multiply(limit, relax.op.subtract(d, relax.const(delta / 2, dtype)))
    return relax.op.where(relax.op.less(d, limit), square, line)


def bce_with_logits(bb, x, z, dtype):
    """max(x, 0) - x z + log(1 + exp(-|x|))."""
    rest = relax.op.exp(relax.op.negative(relax.op.abs(x)))
    rest = bb.emit(relax.op.log(relax.op.add(relax.const(1, dtype), rest)))
    return relax.op.add(relax.op.subtract(relax.op.nn.relu(x), relax.op.multiply(x, z)), rest)


def kron(bb, x, y, shape):
    """Every element of x by all of y, as blocks."""
    blocks = bb.emit(relax.op.multiply(relax.op.expand_dims(x, [1, 3]), relax.op.expand_dims(y, [0, 2])))
    return relax.op.reshape(blocks, shape)


def cross(x, y):
    """x[1] y[2] - x[2] y[1], and so on round."""

    def turned(operand, places):
        return relax.op.take(operand, relax.const(places, "int64"), axis=-1)

    first = relax.op.multiply(turned(x, [1, 2, 0]), turned(y, [2, 0, 1]))
    return relax.op.subtract(first, relax.op.multiply(turned(x, [2, 0, 1]), turned(y, [1, 2, 0])))


def scaled_sum(x, beta, y, alpha, dtype):
    """beta x + alpha y."""
    first = relax.op.multiply(relax.const(beta, dtype), x)
    return relax.op.add(first, relax.op.multiply(relax.const(alpha, dtype), y))


def slice_backwards(x, starts, steps):
    """From each start to the first element."""
    shape = [int(n) for n in x.ty.shape]
    beyond = [-n - 1 for n in shape]
    return relax.op.strided_slice(x, list(range(len(shape))), list(starts), beyond, [-step for step in steps])


def diag_embed(bb, x, offset, shape, dtype):
    """Places of the operand, or of a zero behind it."""
    *batch, n = shape
    table = np.where(np.eye(n + abs(offset), k=offset, dtype=bool), 1, 0)
    table = np.where(table, np.minimum(np.arange(len(table))[:, None], np.arange(len(table))), n)
    wide = bb.emit(relax.op.concat([x, relax.op.zeros((*batch, 1), dtype)], axis=-1))
    return relax.op.take(wide, relax.const(table, "int64"), axis=-1)


def block_diag(x, y, first, second, dtype):
    """Two matrices of these shapes with zeros beside them."""
    above = relax.op.concat([x, relax.op.zeros((first[0], second[1]), dtype)], axis=1)
    below = relax.op.concat([relax.op.zeros((second[0], first[1]), dtype), y], axis=1)
    return relax.op.concat([above, below], axis=0)


def adaptive_max_pool2d(x, rows, columns):
    """Every cell reduced by itself."""

    def cell(top, bottom, left, right):
        part = relax.op.strided_slice(x, [2, 3], [top, left], [bottom, right])
        return relax.op.max(part, axis=[2, 3], keepdims=True)

    lines = [relax.op.concat([cell(*row, *column) for column in columns], axis=3) for row in rows]
    return relax.op.concat(lines, axis=2)


def mask_bias(bb, mask, dtype):
    """Zero where the mask holds, otherwise minus infinity."""
    zero, never = relax.const(0, dtype), relax.const(-float("inf"), dtype)
    return bb.emit(relax.op.where(mask, zero, never))


def attention(bb, q, k, v, scale, causal=False, bias=None):
    """Over (batch, heads, length, features); relax has the length before the heads and as many heads of keys and
    values as of queries."""
    groups = int(q.ty.shape[1]) // int(k.ty.shape[1])
    k, v = (x if groups == 1 else relax.op.repeat(x, groups, axis=1) for x in (k, v))
    q, k, v = (bb.emit(relax.op.permute_dims(x, [0, 2, 1, 3])) for x in (q, k, v))
    if bias is not None and len(bias.ty.shape) == 2:
        bias = bb.emit(relax.op.expand_dims(bias, [0, 1]))
    y = relax.op.nn.attention(q, k, v, bias, scale, "TopLeft" if causal else None)
    return relax.op.permute_dims(y, [0, 2, 1, 3])


def window(bb, x, places, parts, angle, span, dtype):
    """x by a - b cos t + c cos 2 t, t from 0 on in steps of angle / span."""

    def by(number, y):
        return relax.op.multiply(relax.const(number, dtype), y)

    t = bb.emit(relax.op.divide(by(angle, places), relax.const(float(span), dtype)))
    a, b, c = parts
    once, twice = by(b, relax.op.cos(t)), by(c, relax.op.cos(by(2.0, t)))
    total = relax.op.add(relax.op.subtract(relax.const(a, dtype), once), twice)
    return relax.op.multiply(x, total)


def elu(x, alpha, dtype):
    """x above zero, alpha (exp(x) - 1) under it, where alone the exponential is taken."""
    zero = relax.const(0, dtype)
    above = relax.op.greater(x, zero)
    low = relax.op.subtract(relax.op.exp(relax.op.where(above, zero, x)), relax.const(1, dtype))
    return relax.op.where(above, x, relax.op.multiply(relax.const(alpha, dtype), low))


def scaled_elu(x, alpha, gamma, dtype):
    return relax.op.multiply(relax.const(gamma, dtype), elu(x, alpha, dtype))
