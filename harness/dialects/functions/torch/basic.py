"""Functions that torch spellings may call. Read as text; a program carries the source of those that it uses."""

import torch


def from_array(array):
    """torch.from_numpy, which does not know bfloat16."""
    if array.dtype != "bfloat16":
        return torch.from_numpy(array)
    return torch.from_numpy(array.view("int16")).view(torch.bfloat16)


def to_array(tensor):
    """Tensor.numpy, which knows neither bfloat16 nor conjugates that are not computed, nor zeros without memory."""
    if tensor.dtype != torch.bfloat16:
        return tensor.numpy(force=True)
    return tensor.float().numpy(force=True).astype("bfloat16")


def prod(x, axes, keepdims):
    """The product over several axes; torch.prod takes one."""
    for axis in sorted((axis % x.dim() for axis in axes), reverse=True):
        x = torch.prod(x, dim=axis, keepdim=keepdims, dtype=x.dtype)
    return x


def count_nonzero(x, axes, keepdims):
    """torch.count_nonzero that can keep the axes."""
    count = torch.count_nonzero(x, dim=axes)
    for axis in sorted(axis % x.dim() for axis in axes) if keepdims else ():
        count = count.unsqueeze(axis)
    return count


def log_density(distribution, x):
    """-infinity outside of the support, which log_prob does not look at unless it is asked to raise there."""
    inside = distribution.support.check(x) | x.isnan()
    return torch.where(inside, distribution.log_prob(x), -torch.inf)


def distribution_function(distribution, x):
    """0 below the support, which cdf does not look at unless it is asked to raise there; of an interval it does."""
    cdf = distribution.cdf(x)
    if isinstance(distribution, torch.distributions.Uniform):
        return cdf
    return torch.where(distribution.support.check(x) | x.isnan(), cdf, torch.zeros_like(x))


def distribution_quantile(distribution, q):
    """NaN of what is no probability, at which icdf does not look unless it is asked to raise."""
    return torch.where((q >= 0) & (q <= 1), distribution.icdf(q), torch.nan)


def hinge_loss(x, y, reduction):
    loss = torch.clamp(1 - x * y, min=0)
    return loss if reduction == "none" else getattr(torch, reduction)(loss)


def recurrent(kind, x, states, weights, direction, output):
    """One layer of torch.lstm and its kin, over the first axis of x."""
    x = torch.flip(x, [0]) if direction == "reverse" else x
    states = [state.unsqueeze(0) for state in states]
    given = states if kind == "lstm" else states[0]
    y, *last = getattr(torch, kind)(x, given, weights, True, 1, 0.0, False, False, False)
    if output == "all":
        return torch.flip(y, [0]) if direction == "reverse" else y
    return last[1 if output == "cell" else 0].squeeze(0)


def reverse_sequence(x, lengths, axis, batch):
    """Each sequence turned round up to its length."""
    shape = [1] * x.dim()
    shape[axis] = -1
    place = torch.arange(x.shape[axis], device=x.device).reshape(shape)
    shape[axis], shape[batch] = 1, -1
    lengths = lengths.long().reshape(shape)
    return torch.gather(x, axis, torch.where(place < lengths, lengths - 1 - place, place).expand(x.shape))


def running(scan, x, axis, exclusive, reverse, start):
    """A scan from either end, with or without each element itself."""
    x = torch.flip(x, [axis]) if reverse else x
    if exclusive:
        first = torch.full_like(x.narrow(axis, 0, 1), start)
        x = torch.cat([first, x.narrow(axis, 0, x.shape[axis] - 1)], axis)
    y = scan(x, dim=axis, dtype=x.dtype)
    return torch.flip(y, [axis]) if reverse else y


def write_cache(cache, update, first, axis, circular):
    """Rows along an axis, each part of the batch from a place of its own on."""
    axis %= cache.dim()
    place = first.long()[:, None] + torch.arange(update.shape[axis], device=update.device)
    place = place % cache.shape[axis] if circular else place
    shape = [size if i in (0, axis) else 1 for i, size in enumerate(update.shape)]
    return torch.scatter(cache, axis, place.reshape(shape).expand(update.shape), update)


def kept(x, mask, make):
    """What is made of the rows that the mask keeps, at their places."""
    return torch.zeros_like(x).index_put((mask,), make(x[mask]))


def running_rows(scan, rows, first, exclusive, reverse):
    """A cumulative sum or product, of what comes before where it is exclusive."""
    rows = rows.flip(0) if reverse else rows
    if exclusive:
        rows = torch.cat([torch.full_like(rows[:1], first), rows[:-1]])
    found = scan(rows, 0, dtype=rows.dtype)
    return found.flip(0) if reverse else found


def while_sum(x, start, limit, step, comparison):
    """x added up while start, start + step, ... compare so with the limit."""
    compare = {"less": "lt", "less_equal": "le", "greater": "gt", "greater_equal": "ge", "not_equal": "ne"}[comparison]
    counter, total = start, torch.zeros_like(x)
    while getattr(counter, f"__{compare}__")(limit):
        counter, total = counter + step, total + x
    return total
