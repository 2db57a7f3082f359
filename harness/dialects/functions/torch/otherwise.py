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
