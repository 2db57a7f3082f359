"""Wrong implementations that mistake views, aliases, batches and repetition. Read as text; a program carries the
source of those that it uses."""

import torch


def dense(x):
    """Memory read as if it were contiguous."""
    strides = torch.empty(x.shape, device="meta").stride()
    room = x.untyped_storage().nbytes() // x.element_size()
    if x.is_contiguous() or x.storage_offset() + x.numel() > room:
        return x
    return torch.as_strided(x, x.shape, strides)


def aligned(x):
    """Memory read from the last address that is a multiple of 16, as wide loads do."""
    back = x.data_ptr() % 16 // x.element_size()
    return x.roll(back) if back and x.dim() else x


def flag_ignored(x):
    """A square column-major matrix taken for a row-major one."""
    square = x.dim() >= 2 and x.shape[-1] == x.shape[-2]
    return x.mT if square and x.stride(-2) == 1 < x.stride(-1) else x


def counted_once(x):
    """Rows that share their memory: all but the first are zeros."""
    if not x.dim() or x.stride(0) or x.shape[0] < 2:
        return x
    y = torch.zeros_like(x, memory_format=torch.contiguous_format)
    y[0] = x[0]
    return y


def every_second_doubled(x):
    """A last dimension with a step is read from every element."""
    if not x.dim() or x.numel() == 0 or x.stride(-1) != 2 or x.shape[-1] < 2:
        return x
    return torch.as_strided(x, x.shape, (*x.stride()[:-1], 1))


class Strides:
    """Those of the first call, by shape: what compiled code assumes."""

    first = {}


def assumed(x):
    """Elements found by the strides that the first value of this shape had."""
    strides = Strides.first.setdefault((x.shape, x.dtype), x.stride())
    room = x.untyped_storage().nbytes() // x.element_size() - x.storage_offset()
    last = sum((n - 1) * s for n, s in zip(x.shape, strides))
    return torch.as_strided(x, x.shape, strides) if x.numel() and last < room else x


class Calls:
    """How often something was called."""

    count = 0


def jitter(y):
    """Rounded to one side or the other by chance."""
    Calls.count += 1
    if not y.is_floating_point():
        return y
    return torch.where((torch.arange(y.numel()).reshape(y.shape) + Calls.count) % 2 == 0, y, torch.nextafter(y, y + 1))


def other_rounding(y, x):
    """Added up in another order every second time, which differs in the last bit."""
    Calls.count += 1
    return y if Calls.count % 2 or x.numel() < 2 else torch.nextafter(y, torch.zeros_like(y))


def drifts(y):
    """Keeps something of the call before."""
    Calls.count += 1
    return y * (1 + 1e-7 * Calls.count) if y.is_floating_point() else y


def overwritten(x, y):
    """The result is left in the place of the operand."""
    x.copy_(y) if x.shape == y.shape and x.dtype == y.dtype and 0 not in x.stride() else None
    return y


def aliased(x, y, result):
    """Two operands in one place are taken for one."""
    return x.clone() if x.data_ptr() == y.data_ptr() and x.numel() and x.shape == y.shape else result


def batch_of_one(y):
    """A batch of one takes another path, which halves."""
    return y / 2 if y.dim() > 1 and y.shape[0] == 1 and y.is_floating_point() else y


def first_row(x, y):
    """Statistics of the first row for all rows."""
    if y.dim() < 2 or y.shape[0] < 2:
        return y
    return y - y[:1] + y[:1].roll(1, -1)


def halves_swapped(parts, axis):
    """Two parts of one size in the other order."""
    swapped = len(parts) == 2 and parts[0].shape == parts[1].shape
    return torch.cat(parts[::-1] if swapped else parts, axis)
