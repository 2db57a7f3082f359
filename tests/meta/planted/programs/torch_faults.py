"""Wrong implementations that planted faults call. Read as text; a program carries the source of those it uses."""

import torch


def one_wrong(x):
    """One element is off by one part in ten thousand."""
    if x.numel() == 0 or not x.is_floating_point():
        return x
    y = x.clone()
    y[(-1,) * y.ndim] *= 1.0001
    return y


def tail_lost(x):
    """The last, incomplete tile of 8 elements is never written."""
    y = x.clone().contiguous()
    flat = y.view(-1)
    if flat.numel() > 8 and flat.numel() % 8:
        flat[flat.numel() - flat.numel() % 8 :] = 0
    return y


def off_by_one(x):
    """Shifted by one along the last dimension."""
    return torch.roll(x, 1, -1) if x.dim() else x


def low(x, dtype):
    """Through a shorter floating dtype and back."""
    return x.to(dtype).to(x.dtype) if x.is_floating_point() else x


def half_sum(x, axes, keepdims):
    """Accumulates in float16."""
    if not x.is_floating_point() or not axes:
        return torch.sum(x, dim=axes, keepdim=keepdims, dtype=x.dtype) if axes else x
    return torch.sum(x.half(), dim=axes, keepdim=keepdims).to(x.dtype)


def nan_lost(x, instead):
    """NaN replaced by the neutral element."""
    return torch.where(x != x, torch.full_like(x, instead), x) if x.is_floating_point() else x


def last_tie(x, axis, keepdims):
    """The last of several equal maxima instead of the first."""
    return x.shape[axis] - 1 - torch.argmax(torch.flip(x, [axis]), dim=axis, keepdim=keepdims)


def transposed_if_square(x):
    return x.mT.contiguous() if x.dim() >= 2 and x.shape[-1] == x.shape[-2] else x


def narrow_product(x, y):
    """int64 multiplied in int32."""
    return (x.int() * y.int()).long() if x.dtype == torch.int64 else x * y


def fortran_reshape(x, shape):
    """Elements read in column-major order."""
    return x.mT.reshape(shape) if x.dim() >= 2 else x.reshape(shape)


def rounded_cast(x, dtype):
    """Rounds to the nearest integer instead of truncating."""
    return torch.round(x).to(dtype) if x.is_floating_point() and not dtype.is_floating_point else x.to(dtype)


class Stale:
    """Buffers that are filled once and handed out again for every later result of the same size and dtype."""

    buffers = {}


def stale(x):
    return Stale.buffers.setdefault((x.numel(), x.dtype), x).view(x.shape)


def kept_bits(x, bits):
    """Rounded to nearest, ties to even, with so many bits of mantissa: 10 are TF32, 7 bfloat16."""
    if x.dtype != torch.float32:
        return x
    raw, gone = x.contiguous().view(torch.int32), 23 - bits
    raw = raw + (1 << (gone - 1)) - 1 + ((raw >> gone) & 1)
    return (raw >> gone << gone).view(torch.float32)
