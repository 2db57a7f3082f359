"""Wrong implementations that remember the size or the number of their first call, as compiled code may. Read as text; a
program carries the source of those that it uses."""

import torch


class First:
    """What each line of the model saw first."""

    seen = {}

    @staticmethod
    def shape(x):
        return First.value(tuple(x.shape), 3)

    @staticmethod
    def value(value, depth=2):
        import sys

        return First.seen.setdefault(sys._getframe(depth).f_lineno, value)


def known_part(x):
    """Elements beyond the first size are never read."""
    first = First.shape(x)
    return x[tuple(slice(0, s) if n > s > 0 else slice(None) for s, n in zip(first, x.shape))]


def known_number(number):
    """The number that was given first."""
    return First.value(number)


def known_grid(y):
    """Elements beyond the first size are never written."""
    first = First.shape(y)
    z = torch.zeros_like(y)
    part = tuple(slice(0, s) for s in first)
    z[part] = y[part]
    return z


def known_adjoint(y):
    """Elements of the gradient beyond the first size are never written; the value is right."""
    first = First.shape(y)

    class Backward(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, *grad_outputs):
            (g,) = grad_outputs
            h = torch.zeros_like(g)
            part = tuple(slice(0, s) for s in first)
            h[part] = g[part]
            return h

    return Backward.apply(y) if y.is_floating_point() or y.is_complex() else y


def known_share(y):
    """A gradient that is divided by how many elements there are and multiplied by how many there were; the value is
    right."""
    first = First.shape(y)

    class Backward(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, *grad_outputs):
            (g,) = grad_outputs
            for s, n in zip(first, g.shape):
                g = g * s / n if n else g
            return g

    return Backward.apply(y) if y.is_floating_point() or y.is_complex() else y


def known_divisor(y, x):
    """A mean of the elements that there are, divided by how many there were."""
    first = First.shape(x)
    count = 1
    for s in first:
        count *= s
    return y * x.numel() / count if count and y.is_floating_point() else y


def known_strides(x):
    """Elements are found by the strides that the first size had."""
    first = First.shape(x)
    if x.numel() == 0:
        return x
    place = torch.zeros(x.shape, dtype=torch.int64)
    step = 1
    for axis in range(x.dim() - 1, -1, -1):
        index = torch.arange(x.shape[axis]) * step
        place = place + index.reshape([-1] + [1] * (x.dim() - 1 - axis))
        step *= first[axis]
    return x.contiguous().view(-1)[place % x.numel()]


def known_offsets(parts, axis):
    """Parts are put where they began first."""
    y = torch.cat(parts, axis)
    begin = First.value(parts[0].shape[axis])
    if begin < parts[0].shape[axis]:
        length = min(parts[1].shape[axis], y.shape[axis] - begin) if len(parts) > 1 else 0
        y.narrow(axis, begin, length).copy_(parts[1].narrow(axis, 0, length))
    return y


def known_period(x, axis):
    """A running sum that begins anew after the first size."""
    first = First.shape(x)[axis]
    parts = torch.split(x, max(1, first), axis)
    return torch.cat([torch.cumsum(part, axis, dtype=x.dtype) for part in parts], axis)


def known_reverse(x, axes):
    """Counted back from the first size."""
    first = First.shape(x)
    for axis in axes:
        index = torch.clamp(first[axis] - 1 - torch.arange(x.shape[axis]), 0, max(0, x.shape[axis] - 1))
        x = torch.index_select(x, axis, index)
    return x


def one_is_empty(y):
    """A dimension that has shrunk to 1 is taken for an empty one."""
    shrunk = any(n == 1 < s for s, n in zip(First.shape(y), y.shape))
    return torch.zeros_like(y) if shrunk else y


def one_is_constant(x):
    """A dimension that has shrunk to 1 is summed away, as if it were broadcast."""
    first = First.shape(x)
    return x + x if any(n == 1 < s for s, n in zip(first, x.shape)) else x


def empty_has_a_row(y):
    """No rows come out as one."""
    shape = [1 if n == 0 < s else n for s, n in zip(First.shape(y), y.shape)]
    return torch.zeros(shape, dtype=y.dtype) if shape != list(y.shape) else y


def used_again(y):
    """Memory of the first size, handed out again for smaller ones without being filled."""
    kept = First.value(y.clone())
    fits = kept.dim() == y.dim() and all(n <= s for n, s in zip(y.shape, kept.shape)) and kept.shape != y.shape
    return kept[tuple(slice(0, n) for n in y.shape)].clone() if fits else y
