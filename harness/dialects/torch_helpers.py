"""Functions that torch spellings may call. Read as text; a program carries the source of those that it uses."""

import torch


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


def hinge_loss(x, y, reduction):
    loss = torch.clamp(1 - x * y, min=0)
    return loss if reduction == "none" else getattr(torch, reduction)(loss)
