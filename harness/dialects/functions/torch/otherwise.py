"""Functions that torch spellings of operators said otherwise may call. Read as text; a program carries the source of
those it uses."""

import torch


def narrowed(x, starts, sizes):
    """One axis after the other."""
    for axis, (start, size) in enumerate(zip(starts, sizes)):
        x = torch.narrow(x, axis, start, size)
    return x


def unbatched(f, x, *others):
    """Of a batch of one: the function of the sample alone."""
    return f(torch.squeeze(x, 0), *others).unsqueeze(0)


def scattered_rows(x, segments, count):
    """Row after row added up where its number says."""
    rows = segments.long().reshape(-1, *[1] * (x.dim() - 1)).expand(x.shape)
    return torch.zeros((count, *x.shape[1:]), dtype=x.dtype, device=x.device).scatter_add(0, rows, x)


def repeated(x, times, axis):
    """Each element along the axis as often as it says."""
    return torch.repeat_interleave(
        x, torch.tensor(times, dtype=torch.int64, device=x.device), dim=axis, output_size=sum(times)
    )


def written(x, view, value):
    """A copy of which a view is written to."""
    y = x.clone()
    view(y).copy_(value)
    return y


def by_views(f, x):
    """A copy of which every row is changed in place."""
    y = x.clone()
    for row in y.unbind():
        f(row)
    return y


def in_line(f, x):
    """A copy that is changed in place through a view of one dimension."""
    y = x.clone(memory_format=torch.contiguous_format)
    f(y.view(-1))
    return y


def seen_before(x, f):
    """What a view sees that was there before its base was changed in place."""
    y = x.clone()
    view = y.unsqueeze(0)
    f(y)
    return view.squeeze(0)


def turned_in_place(x, f):
    """A copy whose axes are changed in place, as large as it says to be then."""
    y = x.clone()
    f(y)
    return y.reshape(y.shape)
